"""Every rule and every form with an example and a counter-example; docs/derivations.md is written from here."""

from interlock.model.records import dataclass
from interlock.policy.derivations import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A value and a text. Takes: `kind`, the value's type, `place` for a changed file's path, `net` for a request's."""

    kind: str
    value: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a span of a text gives a value. Takes: `kinds`, of which types."""

    name: str
    kinds: str
    says: str
    example: Example
    counter_example: Example


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Why a text, a leaf or an answer vouches. Takes: `node`, which node a derivation by it names."""

    name: str
    node: str
    says: str
    example: str
    counter_example: str


def _form(
    name: str, kinds: str, says: str, given: tuple[str, str, str], not_given: tuple[str, str, str]
) -> Form:
    (kind, value, text), (other, wrong, there) = given, not_given
    return Form(
        name=name,
        kinds=kinds,
        says=says,
        example=Example(kind=kind, value=value, text=text),
        counter_example=Example(kind=other, value=wrong, text=there),
    )


FORMS = (
    _form(
        names.PHRASE,
        "`name`, `filename`, `text`, `choice`; `url` that is a bare host; `date` with a time; a link's target",
        "whole words, whatever the case, the white space, the quotes and the compatibility form (NFKC). Fewer than "
        "four letters and digits count only in quotes, in the same capitals, or as the whole text",
        ("name", "Ann Smith", "write to ann  smith."),
        ("name", "to", "send it to Bob"),
    ),
    _form(
        names.EMAIL,
        "`email`",
        "the whole address; letters beyond ASCII keep their case. A sentence right behind its full stop is no part of "
        "it, where a word such as `The` or `Please`, which is no top-level domain, begins it",
        ("email", "Ann@a.test", "mail ann@a.test, please"),
        ("email", "pay@strasse.test", "mail pay@stra\u00dfe.test"),
    ),
    _form(
        names.URL,
        "`url`; a request's URL",
        "the same URL; `https` where the text says `http`, never the other way (a request's: the same scheme). A "
        "tool's ends before such a sentence, too, where it has no path",
        ("url", "https://a.test/x", "open http://a.test/x."),
        ("url", "http://a.test/x", "open https://a.test/x."),
    ),
    _form(
        names.URL_PREFIX,
        "a request's URL",
        "the text's URL, and its path goes on behind a `/`; never of a DELETE, which needs its own URL named",
        ("net", "https://a.test/v1/items", "post to https://a.test/v1"),
        ("net", "https://a.test/v10", "post to https://a.test/v1"),
    ),
    _form(
        names.HOST,
        "`host`; a request's host",
        "a bare word that is this host",
        ("host", "docs.a.test", "read docs.a.test"),
        ("host", "a.test", "read docs.a.test"),
    ),
    _form(
        names.URL_HOST,
        "`host`; a request's host",
        "the host of a URL",
        ("host", "a.test", "read https://a.test/guide"),
        ("host", "a.test", "read https://a.test@b.test/"),
    ),
    _form(
        names.ORIGIN,
        "`host` written with its scheme",
        "scheme and host of a URL",
        ("host", "https://a.test", "read https://a.test/guide"),
        ("host", "http://a.test", "read https://a.test/guide"),
    ),
    _form(
        names.MAIL_DOMAIN,
        "`host`",
        "the domain of an address",
        ("host", "a.test", "ask ann@a.test"),
        ("host", "a.test", "ask ann@b.a.test"),
    ),
    _form(
        names.PATH,
        "`path`",
        "the same path, but for `./` and doubled slashes",
        ("path", "./docs//plan.txt", "read docs/plan.txt"),
        ("path", "plan.txt", "read docs/plan.txt"),
    ),
    _form(
        names.FILE_STEM,
        "`filename`",
        "the words of a file's name without its extension, with spaces for hyphens; `the`, `my` or `our` before them, "
        "and behind them `file`, `document`, `spreadsheet`, `sheet` or `presentation`",
        ("filename", "team-plan-2024.docx", "open the team plan 2024 file"),
        ("filename", "plan-2024.docx", "open the team plan 2024 file"),
    ),
    _form(
        names.PATH_TAIL,
        "a changed file's path",
        "the path below its root, or its end from some folder on",
        ("place", "app/.github/workflows/ci.yml", "mend .github/workflows/ci.yml"),
        ("place", "app/.github/workflows/ci.yml", "mend workflows/ci.yml.bak"),
    ),
    _form(
        names.BASE_NAME,
        "a changed file's path",
        "its last part, where that is enough for its kind (docs/executable-effects.md)",
        ("place", "app/Makefile", "add a target to the Makefile"),
        ("place", "app/Makefile", "add a target to Makefile.am"),
    ),
    _form(
        names.IBAN,
        "`iban`",
        "the account's letters and digits, in groups or not",
        ("iban", "DE89370400440532013000", "to DE89 3704 0044 0532 0130 00, please"),
        ("iban", "DE89370400440532013000", "to DE893704004405320130001"),
    ),
    _form(
        names.PHONE,
        "`phone`",
        "the same digits, and nothing but what a number is written with",
        ("phone", "555 0100 22", "ring 555-0100-22"),
        ("phone", "20240515", "on 2024-05-15"),
    ),
    _form(
        names.AMOUNT,
        "`amount`",
        "the same number; no part of a date, a time, a percentage or an id",
        ("amount", "1234.50", "pay 1,234.5 euros"),
        ("amount", "13", "pay on June 13"),
    ),
    _form(
        names.DATE,
        "`date`",
        "the same day; one that may be two is equal to its own writing alone",
        ("date", "2024-05-15", "on May 15th, 2024"),
        ("date", "2024-05-06", "on 05/06/2024"),
    ),
    _form(
        names.ID,
        "`id:KIND`",
        "the id itself, called one: of this kind, or of none. Six letters and digits or more need no such word",
        ("id:file", "13", "delete the file with the ID 13"),
        ("id:file", "13", "the user with id 13 wrote on June 13"),
    ),
)
"""The forms, in the order of the document."""

_TEXT = "The form says how the span gives the value."
RULES = (
    Rule(
        name=names.UNDER_ROOT,
        node="the task",
        says="A changed path of plain data below a folder that you gave to the run; you ran the command there.",
        example="`src/a.py` in the workspace",
        counter_example="`.git/hooks/pre-commit`, which runs",
    ),
    Rule(
        name=names.NAMED_IN_TASK,
        node="the task",
        says=f"Your own words name the value. {_TEXT}",
        example='`ann@a.test`, task "mail ann@a.test"',
        counter_example='`ann@a.test`, task "mail ann@a.test.evil.test"',
    ),
    Rule(
        name=names.NAMED_IN_FILE,
        node="the read",
        says=f"A file that the policy trusts names it, as the host had it; none that an agent wrote. {_TEXT}",
        example="`ann@a.test`, which `docs/team.md` holds, with `trusted: [{file: docs/team.md}]`",
        counter_example="the same, once the agent has changed `docs/team.md`",
    ),
    Rule(
        name=names.NAMED_IN_NET,
        node="the answer",
        says=f"A host that the policy trusts names it, in the answer to a plain read with success. {_TEXT}",
        example="`https://b.test/x` in what `https://a.test/` answers, with `{host: a.test, trusted: true}`",
        counter_example="the same in an error page, or in the answer to a write, which may repeat what it was sent",
    ),
    Rule(
        name=names.NAMED_IN_POLICY,
        node="the task",
        says="An entry of `network` names the host of a request, or `sign` the namespace of a signature.",
        example="host `a.test`, with `hosts: [{host: a.test}]`",
        counter_example="host `b.a.test` with the same entry",
    ),
    Rule(
        name=names.PUBLISHED,
        node="the task",
        says="The policy shows this port to the run.",
        example="port 5432 with `publish: [{port: 5432, to: db:5432}]`",
        counter_example="port 5433",
    ),
    Rule(
        name=names.MODEL_PROVIDER,
        node="the task",
        says="An inference call to a provider of the model.",
        example="`POST /v1/messages` at the provider",
        counter_example="an upload to the same host",
    ),
    Rule(
        name=names.LENS_ACTION,
        node="the task",
        says="A lens of the policy recognises the request as an action of a service. Premises: what vouches for each "
        "value that steers it, as for a tool's call.",
        example='`POST https://api.github.com/repos/acme/lamp/issues`, task "open an issue in `acme/lamp`", with the '
        "lens `github`",
        counter_example="the same in `acme/other`; the same with a field of its body that the lens does not know",
    ),
    Rule(
        name=names.GRANTED,
        node="the oracle's answer",
        says="An oracle released the same operation with the same value before; of a call, with all that steers it.",
        example="a second message to a channel that you released",
        counter_example="a message to another channel",
    ),
    Rule(
        name=names.STRUCTURED_LEAF,
        node="the tool's answer",
        says="The whole leaf is the value, in an answer that is one record of your own state.",
        example='`ann@a.test` in `{"mail": "ann@a.test"}` of `whoami`, with `output: {trust: own}`',
        counter_example="the same of a tool with `output: {trust: none}`",
    ),
    Rule(
        name=names.OWN_OBJECT,
        node="the tool's answer",
        says="The id of what a released call of this run made: of its declared type, and not given to the call.",
        example='`26` in `{"id": "26"}` of `make_document`, with `fields: {id: id:document}`',
        counter_example="an id that the call itself was given, which the answer only repeats",
    ),
)
"""The rules that stand for themselves; those of choice stand in `choice_table`."""
