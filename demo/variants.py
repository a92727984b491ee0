"""The RefineNets that reviews have taught: the same frozen models, another last step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from demo.services import Ground, ProfileCard
from refinerank_core.errors import RefineRankError
from refinerank_core.profiles import Profile, variants

if TYPE_CHECKING:
    from refinerank_core.pipeline import RefineRank


class Variants:
    """The variants in a folder. They are read anew each time, so a new one is there at once."""

    def __init__(
        self,
        rank: RefineRank,
        folder: Path | None,
        ground_with: Callable[[RefineRank], Ground],
    ) -> None:
        """rank: the loaded models. ground_with: makes the screen's `ground` of some."""
        self._rank = rank
        self._folder = folder
        self._ground_with = ground_with
        self._loaded: dict[str, tuple[float, RefineRank]] = {}
        self._lock = Lock()

    def cards(self) -> Sequence[ProfileCard]:
        """What the badge says of each that can be loaded; one that cannot is left out."""
        found = []
        for profile in variants(self._folder):
            try:
                found.append(card_of(self._ranked(profile)))
            except RefineRankError:
                continue  # of another profile, or its RefineNet is gone
        return found

    def ground_as(self, name: str) -> Ground:
        """What `ground` is for the variant of this name.

        Raises:
            RefineRankError: there is none any more.
        """
        for profile in variants(self._folder):
            if profile.name == name:
                return self._ground_with(self._ranked(profile))
        raise RefineRankError(f"The RefineNet {name!r} is no longer there. Choose another.")

    def _ranked(self, profile: Profile) -> RefineRank:
        """The variant, loaded once for each writing of its file."""
        path = profile.folder / f"{profile.name}.json"
        written = path.stat().st_mtime if path.is_file() else 0.0
        with self._lock:
            kept = self._loaded.get(profile.name)
            if kept is None or kept[0] != written:
                kept = (written, self._rank.with_variant(profile))
                self._loaded[profile.name] = kept
            return kept[1]


def card_of(rank: RefineRank) -> ProfileCard:
    """What the badge says of loaded models."""
    profile, facts = rank.profile, rank.facts
    return ProfileCard(
        name=profile.name,
        label=profile.label,
        phantom=profile.phantom,
        untrained=profile.untrained,
        medvlm=facts.medvlm,
        detector=facts.detector,
        refinenet=facts.refinenet,
        device=facts.device,
    )
