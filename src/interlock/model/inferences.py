"""What a question cost and whom it was put to: one record for each call of a model that an oracle made.

What the model was shown and what it said stand here as digests: a prompt may hold what a file contains.
"""

from interlock.model.disclosures import Flow
from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge of regulation was shown and said of one flow, whichever way it went.

    Takes: `effects`, whose flow it is; `texts`, the regulations with the digest of each one's text (SHA-256 in hex);
    `shown`, the provisions in the prompt, `ID:PROVISION`; `template`, the digest of the fixed part of the prompt;
    `label`, of `judge.answering.LABELS`, `""` where the answer was none; `provision`, one of `shown` or `""`;
    `thought`, the reasoning that came before the label, bounded; `nonsense`, why the answer was none.
    Holds: a prompt is made of the flow, the texts and the template alone, so nothing that was read stands in a thought.
    Source: KNOX, attestation 4; the model, its weights and both digests stand in the inference around it.
    """

    effects: tuple[str, ...]
    flow: Flow
    texts: tuple[tuple[str, str], ...]
    shown: tuple[str, ...]
    template: str
    label: str = ""
    provision: str = ""
    thought: str = ""
    nonsense: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """One call of a model by an oracle, whether it came to an answer or not.

    Takes: `oracle`, the name of the one who asked; `provider` and `model`, as the user named them; `weights_hash`,
    `sha256:…` of a local file of weights, `""` where the provider keeps them; `engine`, what computed the answer, with
    its version and digest where they are known; `sampling`, how the answer was drawn; `request` and `answer`, SHA-256
    in hex of the canonical request and of the answer's bytes, `""` where none came; `calls`, how often it was sent,
    repetitions after a failure counted; `fault`, the kind of failure, `""` where there was none; `trimmed`, what was
    left out of the prompt since it did not fit, in the order in which it was left out; `judged`, what a judge
    of regulation was asked and said.
    """

    oracle: str
    provider: str
    model: str
    weights_hash: str = ""
    engine: str = ""
    sampling: str = ""
    request: str = ""
    answer: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    elapsed_ms: int = 0
    fault: str = ""
    trimmed: tuple[str, ...] = ()
    judged: Judgement | None = None
