"""What papers published, to stand beside our figures. Theirs: with real models, their own policies, one run each.

Source: KAIROS, Tables I and II; AgentVisor, introduction.
"""

from __future__ import annotations

from interlock.model.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One row. Takes: in per cent, the attack success and benign utility without and with the defence."""

    paper: str
    suite: str
    model: str
    open_success: float
    open_utility: float
    success: float
    utility: float


KAIROS = (
    Published(
        paper="KAIROS, Table I",
        suite="AgentDojo",
        model="GPT-4.1",
        open_success=47.0,
        open_utility=82.7,
        success=2.7,
        utility=85.1,
    ),
    Published(
        paper="KAIROS, Table I",
        suite="AgentDojo",
        model="Qwen3.6-35B",
        open_success=28.3,
        open_utility=87.0,
        success=1.3,
        utility=84.6,
    ),
    Published(
        paper="KAIROS, Table I",
        suite="AgentDojo",
        model="Llama-3.3-70B",
        open_success=32.3,
        open_utility=29.8,
        success=2.4,
        utility=32.3,
    ),
    Published(
        paper="KAIROS, Table II",
        suite="AgentDyn",
        model="GPT-4o",
        open_success=37.8,
        open_utility=53.3,
        success=1.7,
        utility=51.7,
    ),
)
AGENTVISOR_SUCCESS = 0.65
"""Average attack success, in per cent. The paper gives no benign utility with it, but a loss against no defence."""
AGENTVISOR_LOSS = 1.45
