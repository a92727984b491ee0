"""What the Results tab may ask of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from demo.results_learning import Learning


@dataclass(frozen=True)
class ResultsSetup:
    """All that the tab gets.

    Attributes:
        files: result files, or folders of them; the first is shown first.
        learning: how reviews teach a new profile; None: not here.
    """

    files: tuple[Path, ...] = ()
    learning: Learning | None = None
