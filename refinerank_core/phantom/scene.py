"""A phantom scene: made from a seed, rendered at any time and size, with its truth."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np

from refinerank_core.phantom.annotate import annotate
from refinerank_core.phantom.camera import Camera, Lens, field_maps
from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.effects import Sensor, Weather
from refinerank_core.phantom.field import FieldPlan
from refinerank_core.phantom.fixtures import Fixture, clips_of
from refinerank_core.phantom.geometry import stream
from refinerank_core.phantom.moment import Moment, Sheets
from refinerank_core.phantom.motion import Phase
from refinerank_core.phantom.picture import paint_picture
from refinerank_core.phantom.procedures import KINDS
from refinerank_core.phantom.shift import Shift
from refinerank_core.phantom.tissue import TissueCanvas
from refinerank_core.phantom.truth import FrameTruth
from refinerank_core.phantom.vocabulary import PROCEDURES


@dataclass(eq=False)
class Scene:
    """One phantom video that exists as a formula; frames are drawn when asked for.

    Coordinates inside are view units (16/9 by 1), so a scene looks the same at every frame size.
    The painted tissue of the last frame size is kept.

    Attributes:
        seed: it is made from.
        procedure: one of PROCEDURES.
        duration_s: of the video.
        fps: of the video.
        plan: where structures lie.
        actors: tools and hands, in the order they are drawn.
        fixtures: what tools leave behind.
        camera, lens, weather: how it is seen.
        phases: what all actors do.
        shift: other looks than those that models are trained on; None: the usual ones.
    """

    seed: int
    procedure: str
    duration_s: float
    fps: int
    plan: FieldPlan
    actors: list[Actor]
    fixtures: list[Fixture]
    camera: Camera
    lens: Lens
    weather: Weather
    phases: list[Phase]
    shift: Shift | None = None
    _sheets: dict[tuple[int, int], Sheets] = field(default_factory=dict)

    @staticmethod
    def from_seed(
        seed: int,
        procedure: str,
        *,
        duration_s: float = 20.0,
        fps: int = 25,
        shift: Shift | None = None,
    ) -> Scene:
        """Make the scene of a seed; nothing is painted yet.

        Raises:
            ValueError: no such procedure, or no time.
        """
        if procedure not in KINDS:
            raise ValueError(f"procedure must be one of {', '.join(KINDS)}, got {procedure!r}")
        if duration_s <= 0 or fps <= 0:
            raise ValueError(f"duration_s and fps must be above 0, got {duration_s} and {fps}")
        kind, which = KINDS[procedure], PROCEDURES.index(procedure)
        plan = kind.field.plan(stream(seed, which, 1))
        rng = stream(seed, which, 3)
        lens = Lens.draw(rng, duration_s, circle_chance=kind.circle_chance)
        anchors = lens.within(plan.anchors)
        actors = kind.cast.draw_cast(stream(seed, which, 2), anchors, duration_s)
        if shift is not None:
            actors = shift.dressed(actors)
        return Scene(
            seed=seed,
            procedure=procedure,
            duration_s=duration_s,
            fps=fps,
            plan=plan,
            actors=actors,
            fixtures=clips_of(stream(seed, which, 5), actors),
            camera=Camera.draw(rng),
            lens=lens,
            weather=Weather.draw(rng, smoky=kind.smoky, bloody=kind.bloody),
            phases=[phase for actor in actors for phase in actor.phases],
            shift=shift,
        )

    @property
    def frame_count(self) -> int:
        return round(self.duration_s * self.fps)

    def render(
        self,
        time_s: float,
        size_wh: tuple[int, int],
        *,
        with_masks: bool = False,
        sensor: Sensor | None = None,
    ) -> tuple[np.ndarray, FrameTruth]:
        """Draw one frame.

        Args:
            time_s: any time; the clip runs from 0 to duration_s.
            size_wh: of the frame, about 16 to 9.
            with_masks: put masks into the truth (boxes are there anyway).
            sensor: grain and compression for a still; None for neither.

        Returns:
            The (H, W, 3) uint8 RGB picture and its truth.
        """
        moment = self._moment(time_s, size_wh)
        kind = KINDS[self.procedure]
        image = paint_picture(moment, self.camera, self.lens, self.weather, self.phases, kind)
        if sensor is not None:
            image = sensor.record(image, stream(self.seed, round(time_s * 1000), 9))
        return image, annotate(moment, self.lens, kind.field.structures(), with_masks=with_masks)

    def truth_at(
        self, time_s: float, size_wh: tuple[int, int], *, with_masks: bool = False
    ) -> FrameTruth:
        """Return the truth of a frame without drawing its picture."""
        names = KINDS[self.procedure].field.structures()
        return annotate(self._moment(time_s, size_wh), self.lens, names, with_masks=with_masks)

    def _moment(self, time_s: float, size_wh: tuple[int, int]) -> Moment:
        to_view = self.camera.to_view(time_s)
        pulls = [pull for actor in self.actors if (pull := actor.pull_at(time_s)) is not None]
        map_x, map_y = field_maps(to_view, size_wh, pulls)
        sheets = self._sheets_for(size_wh)
        shown = [fixture for fixture in self.fixtures if fixture.appears_s <= time_s]
        return Moment(
            time_s=time_s,
            size_wh=size_wh,
            to_view=to_view,
            map_x=map_x,
            map_y=map_y,
            labels=cv2.remap(sheets.tissue.labels, map_x, map_y, cv2.INTER_NEAREST),
            sheets=sheets,
            actors=self.actors,
            drawn=[actor.drawn(time_s, to_view) for actor in self.actors],
            fixtures=shown,
            laid=[fixture.drawn(to_view, pulls) for fixture in shown],
        )

    def _sheets_for(self, size_wh: tuple[int, int]) -> Sheets:
        if size_wh not in self._sheets:
            kind, which = KINDS[self.procedure], PROCEDURES.index(self.procedure)
            canvas = TissueCanvas(size_wh)
            tissue = kind.field.paint(canvas, self.plan, stream(self.seed, which, 4))
            if self.shift is not None:
                tissue = self.shift.stained(tissue)
            self._sheets.clear()
            self._sheets[size_wh] = Sheets(
                tissue, self.lens.gains(size_wh), self.lens.hidden(size_wh)
            )
        return self._sheets[size_wh]
