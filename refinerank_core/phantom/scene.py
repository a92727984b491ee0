"""A phantom scene: made from a seed, rendered at any time and size, with its truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import cv2
import numpy as np

from refinerank_core.phantom import (
    endoscopy_cast,
    endoscopy_field,
    laparoscopy_cast,
    laparoscopy_field,
    open_cast,
    open_field,
)
from refinerank_core.phantom.camera import Camera, Lens, apply, field_maps
from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.effects import (
    Sensor,
    Weather,
    bleed,
    cast_shadow,
    smear,
    spread_smoke,
    water,
)
from refinerank_core.phantom.field import FieldPlan
from refinerank_core.phantom.geometry import VIEW_CENTRE, Colour, stream
from refinerank_core.phantom.motion import Phase
from refinerank_core.phantom.raster import Raster
from refinerank_core.phantom.shapes import Patch, paint_patches, paint_soft
from refinerank_core.phantom.tissue import Tissue, TissueCanvas
from refinerank_core.phantom.truth import FrameTruth, ObjectTruth, side_of
from refinerank_core.phantom.vocabulary import PROCEDURES

FAST = 0.010  # view units per shutter time from which a tool is smeared
SHUTTER_S = 1 / 60
STRUCTURE_INSTANCES = 100  # structures are numbered from here


class FieldPainter(Protocol):
    """A module that plans and paints the field of one procedure."""

    def structures(self) -> tuple[str, ...]: ...

    def plan(self, rng: np.random.Generator) -> FieldPlan: ...

    def paint(self, canvas: TissueCanvas, plan_: FieldPlan, rng: np.random.Generator) -> Tissue: ...


class CastMaker(Protocol):
    """A module that casts the actors of one procedure."""

    def draw_cast(
        self, rng: np.random.Generator, anchors: dict[str, list[np.ndarray]], duration_s: float
    ) -> list[Actor]: ...


@dataclass(frozen=True)
class Procedure:
    """What sets one kind of surgery apart."""

    field: FieldPainter
    cast: CastMaker
    circle_chance: float
    smoky: float
    bloody: float
    smoke_tint: Colour


KINDS = MappingProxyType(
    {
        PROCEDURES[0]: Procedure(
            laparoscopy_field, laparoscopy_cast, 0.7, 1.0, 1.0, (206.0, 200.0, 200.0)
        ),
        PROCEDURES[1]: Procedure(
            endoscopy_field, endoscopy_cast, 0.5, 0.8, 0.7, (222.0, 216.0, 206.0)
        ),
        PROCEDURES[2]: Procedure(open_field, open_cast, 0.0, 0.15, 0.5, (214.0, 214.0, 214.0)),
    }
)


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
    """

    seed: int
    procedure: str
    duration_s: float
    fps: int
    plan: FieldPlan
    actors: list[Actor]
    camera: Camera
    lens: Lens
    weather: Weather
    phases: list[Phase]
    _sheets: dict[tuple[int, int], _Sheets] = field(default_factory=dict)

    @staticmethod
    def from_seed(seed: int, procedure: str, *, duration_s: float = 20.0, fps: int = 25) -> Scene:
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
        actors = kind.cast.draw_cast(stream(seed, which, 2), plan.anchors, duration_s)
        rng = stream(seed, which, 3)
        return Scene(
            seed=seed,
            procedure=procedure,
            duration_s=duration_s,
            fps=fps,
            plan=plan,
            actors=actors,
            camera=Camera.draw(rng),
            lens=Lens.draw(rng, duration_s, circle_chance=kind.circle_chance),
            weather=Weather.draw(rng, smoky=kind.smoky, bloody=kind.bloody),
            phases=[phase for actor in actors for phase in actor.phases],
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
        sheets = self._sheets_for(size_wh)
        to_view = self.camera.to_view(time_s)
        pulls = [pull for actor in self.actors if (pull := actor.pull_at(time_s)) is not None]
        map_x, map_y = field_maps(to_view, size_wh, pulls)
        image = self._field(sheets, map_x, map_y, time_s)
        drawn = [actor.drawn(time_s, to_view) for actor in self.actors]
        self._instruments(image, drawn, time_s, to_view)
        image = self._through_lens(image, sheets, time_s)
        if sensor is not None:
            image = sensor.record(image, stream(self.seed, round(time_s * 1000), 9))
        labels = cv2.remap(sheets.tissue.labels, map_x, map_y, cv2.INTER_NEAREST)
        return image, self._truth(time_s, size_wh, drawn, labels, sheets, to_view, with_masks)

    def _sheets_for(self, size_wh: tuple[int, int]) -> _Sheets:
        if size_wh not in self._sheets:
            kind, which = KINDS[self.procedure], PROCEDURES.index(self.procedure)
            canvas = TissueCanvas(size_wh)
            tissue = kind.field.paint(canvas, self.plan, stream(self.seed, which, 4))
            self._sheets.clear()
            self._sheets[size_wh] = _Sheets(
                tissue, self.lens.gains(size_wh), self.lens.hidden(size_wh)
            )
        return self._sheets[size_wh]

    def _field(
        self, sheets: _Sheets, map_x: np.ndarray, map_y: np.ndarray, time_s: float
    ) -> np.ndarray:
        """Return the tissue as the camera sees it, wet and bloody."""
        edge = cv2.BORDER_REFLECT_101
        layers = cv2.remap(sheets.tissue.picture, map_x, map_y, cv2.INTER_LINEAR, borderMode=edge)
        image = np.ascontiguousarray(layers[..., :3])
        bleed(image, layers[..., 3], self.weather.blood_level(self.phases, time_s))
        slide = self.camera.drift.at(time_s)[:2] * image.shape[0] * 0.5
        glint = cv2.remap(
            sheets.tissue.glint,
            map_x + np.float32(slide[0]),
            map_y + np.float32(slide[1]),
            cv2.INTER_LINEAR,
            borderMode=edge,
        )
        return np.asarray(cv2.add(image, cv2.merge([glint] * 3)))

    def _instruments(
        self, image: np.ndarray, drawn: list[list[list[Patch]]], time_s: float, to_view: np.ndarray
    ) -> None:
        """Draw shadows and actors, in place; fast ones smeared over the shutter time."""
        cast_shadow(image, [p for bodies in drawn for body in bodies for p in body], 0.55)
        before = self.camera.to_view(time_s - SHUTTER_S)
        for actor, bodies in zip(self.actors, drawn, strict=True):
            if not any(bodies):
                continue
            tip = apply(to_view, actor.tip_at(time_s))
            moved = tip - apply(before, actor.tip_at(time_s - SHUTTER_S))
            heading = tip - apply(to_view, actor.pivot)
            jets = water(actor, time_s, tip, float(np.arctan2(heading[1], heading[0])))
            if float(np.hypot(*moved)) < FAST:
                _paint_actor(image, actor, bodies, jets)
                continue
            blend = np.zeros(image.shape, np.float32)
            for share in (-0.5, -0.17, 0.17, 0.5):
                copy = image.copy()
                shifted = [_moved(body, moved * share) for body in bodies]
                _paint_actor(copy, actor, shifted, jets)
                cv2.accumulate(copy, blend)
            cv2.convertScaleAbs(blend, image, 0.25)

    def _through_lens(self, image: np.ndarray, sheets: _Sheets, time_s: float) -> np.ndarray:
        """Return the picture after smoke, blur, exposure and the circle."""
        height = image.shape[0]
        density = self.weather.density(self.phases, time_s)
        spread_smoke(image, self.weather, density, time_s, KINDS[self.procedure].smoke_tint)
        drift = self.camera.drift
        step = (drift.at(time_s)[:2] - drift.at(time_s - SHUTTER_S)[:2]) * height
        image = smear(image, step)
        sigma = self.lens.defocus(time_s) * height
        if sigma > 0.3:
            image = cv2.GaussianBlur(image, (0, 0), sigma)
        exposure = self.lens.exposure(time_s)
        return np.asarray(cv2.multiply(image, sheets.gains, scale=exposure, dtype=cv2.CV_8U))

    def _truth(
        self,
        time_s: float,
        size_wh: tuple[int, int],
        drawn: list[list[list[Patch]]],
        labels: np.ndarray,
        sheets: _Sheets,
        to_view: np.ndarray,
        with_masks: bool,
    ) -> FrameTruth:
        raster = Raster(size_wh, sheets.hidden)
        for bodies in drawn:
            for patches in bodies:
                raster.add(patches)
        raster.close()
        things: list[ObjectTruth] = []
        number = 0
        for actor in self.actors:
            for body in actor.bodies:
                seen = raster.seen(number, with_mask=with_masks)
                number += 1
                if seen is None:
                    continue
                inside = apply(to_view, actor.tip_at(time_s)) - VIEW_CENTRE
                outside = apply(to_view, actor.pivot) - VIEW_CENTRE
                side, clear = side_of(inside, outside, self.lens.half_wh())
                phase = next((p for p in actor.phases if p.start_s <= time_s < p.end_s), None)
                things.append(
                    ObjectTruth(
                        instance=body.instance,
                        name=body.name,
                        kind=body.kind,
                        box=seen.box,
                        mask=seen.mask,
                        visible_share=seen.share,
                        side=side,
                        side_is_clear=clear,
                        owner=actor.owner,
                        hand=body.hand,
                        action=phase.action if phase else None,
                        target=phase.target if phase else None,
                    )
                )
        names = KINDS[self.procedure].field.structures()
        for place, name in enumerate(names):
            seen = raster.seen_structure(labels, place + 1, with_mask=with_masks)
            if seen is not None:
                things.append(
                    ObjectTruth(
                        STRUCTURE_INSTANCES + place,
                        name,
                        "structure",
                        seen.box,
                        seen.mask,
                        seen.share,
                    )
                )
        return FrameTruth(time_s, size_wh, tuple(things))


@dataclass(frozen=True, eq=False)
class _Sheets:
    """What a scene keeps for one frame size."""

    tissue: Tissue
    gains: np.ndarray
    hidden: np.ndarray | None


def _paint_actor(
    image: np.ndarray, actor: Actor, bodies: Sequence[list[Patch]], jets: list[Patch]
) -> None:
    for body, patches in zip(actor.bodies, bodies, strict=True):
        if body.softness:
            paint_soft(image, patches, body.softness)
        else:
            paint_patches(image, patches)
    paint_patches(image, jets)


def _moved(patches: Sequence[Patch], offset: np.ndarray) -> list[Patch]:
    return [Patch(p.points + offset, p.colour, p.part, p.opacity) for p in patches]
