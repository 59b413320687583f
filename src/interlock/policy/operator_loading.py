"""What a policy file says of the operator's role (`operator`), and of how often a refused action may be mended."""

from interlock.policy.document import Document, Path
from interlock.policy.globs import GlobError, check_glob, matcher
from interlock.policy.operator import ONE_CORRECTION, Operator
from interlock.policy.reading import near, section, text_at, texts_at, wrong
from interlock.policy.vocabulary import ACTIONS

MAX_CORRECTIONS = 3
MAX_INSTRUCTION = 20_000
_EXAMPLE = 'operator: {instruction: "You answer questions about orders.", tools: [find_order]}'


def read_operator(document: Document, base: Operator) -> Operator:
    """Return the operator's role, the base's where the file says nothing. Raises: PolicyError."""
    if document.values.get("operator") is None:
        return base
    given = section(document, ("operator",), ("instruction", "tools", "operations"), _EXAMPLE)
    if not given:
        raise document.mistake(("operator",), "the operator says nothing", hint=f"write `{_EXAMPLE}`")
    instruction = ""
    if "instruction" in given:
        instruction = text_at(document, ("operator", "instruction"), _EXAMPLE)
        if len(instruction) > MAX_INSTRUCTION:
            raise document.mistake(
                ("operator", "instruction"),
                f"the instruction is longer than {MAX_INSTRUCTION} characters",
                hint="keep what bounds the role, and leave out how it is done",
            )
    tools = operations = None
    if given.get("tools") is not None:
        tools = texts_at(document, ("operator", "tools"), given["tools"], _glob, "tools: [find_order]")
    if given.get("operations") is not None:
        operations = texts_at(
            document, ("operator", "operations"), given["operations"], _operation, 'operations: ["file.*"]'
        )
    return Operator(instruction=instruction, tools=tools, operations=operations)


def read_corrections(document: Document, base: int) -> int:
    """Return how often a refused action may be mended. Raises: PolicyError."""
    given = document.values.get("corrections")
    if given is None:
        return base
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= MAX_CORRECTIONS:
        wrong(
            document,
            ("corrections",),
            f"a whole number from 0 to {MAX_CORRECTIONS}",
            f"write `corrections: {ONE_CORRECTION}`; 0 refuses and lets nothing be mended",
        )
    return int(given)


def _glob(document: Document, path: Path, example: str) -> str:
    glob = text_at(document, path, example)
    try:
        check_glob(glob)
    except GlobError as failure:
        raise document.mistake(path, str(failure), hint=f"write it as in `{example}`") from None
    return glob


def _operation(document: Document, path: Path, example: str) -> str:
    glob = _glob(document, path, example)
    if not any(matcher((glob,), wide=False).fullmatch(action) for action in ACTIONS):
        raise document.mistake(path, f"no operation is named `{glob}`", hint=near(glob, ACTIONS))
    return glob
