"""Which seeds belong to whom: no scene is ever on two sides of a split."""

from __future__ import annotations

from types import MappingProxyType

SEED_RANGES = MappingProxyType(
    {
        "training": range(1_000_000, 2_000_000),
        "validation": range(2_000_000, 2_100_000),
        "evaluation": range(3_000_000, 3_100_000),
        "samples": range(4_000_000, 4_001_000),
        "shifted": range(5_000_000, 5_100_000),
        "tests": range(1_000),
    }
)


def seed_for(purpose: str, index: int) -> int:
    """Return the index-th seed of a purpose.

    Raises:
        ValueError: no such purpose, or its range holds no such index.
    """
    if purpose not in SEED_RANGES:
        raise ValueError(f"purpose must be one of {', '.join(SEED_RANGES)}, got {purpose!r}")
    seeds = SEED_RANGES[purpose]
    if not 0 <= index < len(seeds):
        raise ValueError(f"{purpose} has seeds 0 to {len(seeds) - 1}, got index {index}")
    return seeds[index]


def purpose_of(seed: int) -> str:
    """Return the one purpose that owns this seed.

    Raises:
        ValueError: the seed belongs to none.
    """
    for purpose, seeds in SEED_RANGES.items():
        if seed in seeds:
            return purpose
    raise ValueError(f"seed {seed} lies in no registered range ({', '.join(SEED_RANGES)})")


def overlapping_purposes() -> list[tuple[str, str]]:
    """Return every pair of purposes that share a seed: empty when the split is sound."""
    names = list(SEED_RANGES)
    return [
        (first, second)
        for place, first in enumerate(names)
        for second in names[place + 1 :]
        if max(SEED_RANGES[first].start, SEED_RANGES[second].start)
        < min(SEED_RANGES[first].stop, SEED_RANGES[second].stop)
    ]
