"""How an effect is tied to the model's calls, in plain lines: slow, and written from docs/correlation.md.

Nothing of `src` imports this, and this imports nothing of `src`. A run is a list of happenings, each a dictionary:
`{"asked": exchange}`, `{"told": exchange, "calls": [...], "results": [call ids], "unread": bool}`, `{"over": exchange}`
and `{"wrote": path}`. A call is `{"id", "names": paths, "open": bool, "idle": bool}`; every path is plain data of the
workspace.
"""

from typing import Any

WORSE = ["announced", "covered", "unknown", "differs", "unannounced"]

Run = list[dict[str, Any]]


def calls_of(run: Run) -> list[dict[str, Any]]:
    """Every call with the times between which it was under way: the questions of its exchange and of its result's."""
    found: list[dict[str, Any]] = []
    for now, happening in enumerate(run):
        if "told" not in happening:
            continue
        asked = run.index({"asked": happening["told"]})
        for call in found:
            if call["id"] in happening["results"] and call["until"] is None:
                call["until"] = asked
        found += [{**call, "since": asked, "known": now, "until": None} for call in happening["calls"]]
    return found


def best_of(calls: list[dict[str, Any]], path: str) -> str:
    """The closest relation that any of these calls gives a path."""
    if any(path in call["names"] for call in calls):
        return "announced"
    if any(call["open"] for call in calls):
        return "covered"
    if any(not call["idle"] for call in calls):
        return "differs"
    return "unannounced"


def of_file(run: Run, path: str) -> str:
    """How a file's change stands to the calls: the worst of its writes counts."""
    questions = [now for now, happening in enumerate(run) if "asked" in happening]
    if not questions:
        return "unknown"
    writes = [now for now, happening in enumerate(run) if happening.get("wrote") == path]
    calls = calls_of(run)
    if not writes:
        # A folder, or what a moved one took along: nobody sees when.
        found = best_of(calls, path)
        return "unannounced" if found == "differs" else found
    after = [now for now in writes if now > questions[0]]
    found_all = []
    for now in after:
        # All that was written before a question was seen before it.
        earliest = max(question for question in questions if question < now)
        under = [
            call
            for call in calls
            if call["since"] < now and (call["until"] is None or call["until"] > earliest)
        ]
        found_all.append(best_of(under, path))
    return max(found_all, key=WORSE.index) if found_all else "unannounced"


def of_request(run: Run, host: str) -> str:
    """How a request that is made now stands to the calls."""
    if not any("asked" in happening for happening in run):
        return "unknown"
    under = [call for call in calls_of(run) if call["until"] is None]
    found = best_of(under, host)
    if found in ("announced", "covered"):
        return found
    asked = {happening["asked"] for happening in run if "asked" in happening}
    over = {happening["over"] for happening in run if "over" in happening}
    told = [happening for happening in run if "told" in happening]
    if asked - over or (told and told[-1]["unread"]):
        return "unknown"
    return found


def decided(lens: dict[str, str], decision: str, relation: str) -> str:
    """The verdict, once a policy's `lens` has had its say: it only defers what would be released."""
    key = "unannounced" if relation == "unknown" else relation
    return "defer" if decision == "release" and lens.get(key) == "defer" else decision
