"""What tools leave behind: metal clips on the duct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from refinerank_core.phantom.camera import apply
from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.looks import steel
from refinerank_core.phantom.shapes import Metal, Part, Patch, light_across, placed, tube

FIXTURE_INSTANCES = 200  # fixtures are numbered from here
CLOSED_SHARE = 0.8  # of a clipping phase, after which the clip is on


@dataclass(frozen=True, eq=False)
class Fixture:
    """A clip that stays where it was set.

    Attributes:
        instance: its number in the truth.
        name: its class.
        appears_s: from when on it is there.
        place: (2,) on the field.
        angle: across the duct, radians.
        length: view units.
        metal: its ramp.
    """

    instance: int
    name: str
    appears_s: float
    place: np.ndarray
    angle: float
    length: float
    metal: Metal

    def drawn(
        self, to_view: np.ndarray, pulls: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> list[Patch]:
        """Return its patches in view units; it goes along with tissue that is pulled."""
        place = self.place.copy()
        for held, offset in pulls:
            apart = self.place - held
            place += offset * np.exp(-float(apart @ apart) / (2 * 0.11**2))
        turn = self.angle + float(np.arctan2(to_view[1, 0], to_view[0, 0]))
        half, light = self.length / 2, light_across(turn)
        bar = tube((-half, half), (0.008, 0.010), self.metal, light, Part.WORKING, levels=4)
        return placed(bar, turn, apply(to_view, place), 1.0)


def clips_of(rng: np.random.Generator, actors: Sequence[Actor]) -> list[Fixture]:
    """Return the clips that the actors set, in time order."""
    phases = [p for actor in actors for p in actor.phases if p.action == "clipping"]
    metal = (
        Metal((96, 70, 20), (204, 164, 76), (255, 246, 206)) if rng.random() < 0.5 else steel(rng)
    )
    clips: list[Fixture] = []
    for phase in sorted(phases, key=lambda p: p.start_s):
        clips.append(
            Fixture(
                instance=FIXTURE_INSTANCES + len(clips),
                name="clip",
                appears_s=phase.start_s + CLOSED_SHARE * (phase.end_s - phase.start_s),
                place=np.array(phase.place),
                angle=float(rng.uniform(-0.5, 0.5)),
                length=float(rng.uniform(0.055, 0.075)),
                metal=metal,
            )
        )
    return clips
