"""What the Review and Failures tabs may ask of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from demo.identity import Identity
from refinerank_core.reviews.pictures import Pictures
from refinerank_core.reviews.store import Store


@dataclass(frozen=True, eq=False)
class Reviews:
    """All that the two tabs get.

    Attributes:
        store: the record.
        identity: who may decide.
        ephemeral: the record is lost when this machine is restarted; the page says so.
        videos: folder with the videos of imported cases; None: the bundled clips alone.
        pictures: frames of uploads that people asked to keep; None: nothing is ever kept.
    """

    store: Store
    identity: Identity
    ephemeral: bool
    videos: Path | None
    pictures: Pictures | None = None
