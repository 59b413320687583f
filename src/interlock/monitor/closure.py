"""Which effects stand or fall together: a change cannot be merged without the changes that it needs."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from interlock.model.dependencies import requirements
from interlock.monitor.state import Decided


def needs_of(items: Sequence[Decided]) -> dict[str, tuple[str, ...]]:
    """Return, for each effect that needs others (a new parent folder, a move out of its way), their ids."""
    changes = [(item.effect.id, item.effect.change) for item in items]
    files = [(effect_id, change) for effect_id, change in changes if change is not None]
    needed = requirements([change for _id, change in files])
    return {
        effect_id: tuple(files[index][0] for index in needs)
        for (effect_id, _change), needs in zip(files, needed, strict=True)
        if needs
    }


def with_needed(chosen: AbstractSet[str], needs: dict[str, tuple[str, ...]]) -> frozenset[str]:
    """Return the chosen effects with everything that they need, at any depth."""
    found = set(chosen)
    waiting = list(chosen)
    while waiting:
        for effect_id in needs.get(waiting.pop(), ()):
            if effect_id not in found:
                found.add(effect_id)
                waiting.append(effect_id)
    return frozenset(found)


def unmet(released: AbstractSet[str], needs: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the released effects that fall, since one that they need is not released, with that one."""
    kept = set(released)
    fallen: dict[str, str] = {}
    changed = True
    while changed:
        changed = False
        for effect_id in sorted(kept & needs.keys()):
            missing = next((need for need in needs[effect_id] if need not in kept), None)
            if missing is not None:
                kept.discard(effect_id)
                fallen[effect_id] = missing
                changed = True
    return fallen
