"""What the evidence proves and does not, in words that stand in every report (RFC 9334 names in brackets)."""

from datetime import UTC, datetime

from interlock.report.account import Account

VERDICTS = {
    "complete": "The record is whole: every node, its place and its signature hold, up to the seal.",
    "unfinished": "There is no seal. What is here holds up to its last signed head; that more was recorded and cut off "
    "cannot be excluded.",
    "tampered": "The record does not hold. Nothing behind the place named below counts.",
}
LEVELS = {
    "software": "It is sealed by a key in a file of the machine that ran it. No hardware vouches for that machine: who "
    "held the key could have recorded something else, consistently.",
}
PROVES = (
    "It proves what the monitor recorded, in this order, under this key (Evidence), and that each verdict follows from "
    "it where the replay passed (Appraisal).",
    "It does not prove that the model was right, that what the agent read was true, or what happened outside of the "
    "boundary.",
    "It is an annex to an authority's own exit report, and no such report itself (Regulation (EU) 2024/1689, "
    "Article 57).",
)


def when(account: Account) -> str:
    """Return when the run began, UTC, as the recording machine's clock had it."""
    if not account.started_ns:
        return "not disclosed"
    return f"{datetime.fromtimestamp(account.started_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"


def broke(account: Account) -> str:
    """Return where and why a record does not hold, `""` where it does."""
    verified = account.verified
    if verified.verdict != "tampered":
        return ""
    place = "" if verified.node is None else f" at node {verified.node}"
    return f"{verified.reason}{place}: {verified.detail}"


def shown(text: str) -> str:
    """Return a text of a payload, or that it is not there."""
    return text or "not disclosed"
