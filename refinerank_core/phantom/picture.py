"""The picture of a moment: tissue, instruments, and what the lens makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from refinerank_core.phantom.camera import Camera, Lens, apply
from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.effects import Weather, bleed, cast_shadow, smear, spread_smoke, water
from refinerank_core.phantom.moment import Moment
from refinerank_core.phantom.motion import Phase
from refinerank_core.phantom.procedures import Procedure
from refinerank_core.phantom.shapes import Patch, paint_patches, paint_soft

FAST = 0.010  # view units per shutter time from which a tool is smeared
SHUTTER_S = 1 / 60
SHADOW = 0.55


def paint_picture(
    moment: Moment,
    camera: Camera,
    lens: Lens,
    weather: Weather,
    phases: Sequence[Phase],
    procedure: Procedure,
) -> np.ndarray:
    """Return the (H, W, 3) uint8 RGB picture of a moment."""
    image = _tissue(moment, camera, weather.blood_level(phases, moment.time_s))
    for patches in moment.laid:
        paint_patches(image, patches)
    _instruments(image, moment, camera)
    density = weather.density(phases, moment.time_s)
    spread_smoke(image, weather, density, moment.time_s, procedure.smoke_tint)
    return _through_lens(image, moment, camera, lens)


def _tissue(moment: Moment, camera: Camera, blood_level: float) -> np.ndarray:
    """Return the tissue as the camera sees it, wet and bloody."""
    edge, tissue = cv2.BORDER_REFLECT_101, moment.sheets.tissue
    map_x, map_y = moment.map_x, moment.map_y
    layers = cv2.remap(tissue.picture, map_x, map_y, cv2.INTER_LINEAR, borderMode=edge)
    image = np.ascontiguousarray(layers[..., :3])
    bleed(image, layers[..., 3], blood_level)
    slide = (camera.drift.at(moment.time_s)[:2] * image.shape[0] * 0.5).astype(np.float32)
    glint = cv2.remap(
        tissue.glint, map_x + slide[0], map_y + slide[1], cv2.INTER_LINEAR, borderMode=edge
    )
    return np.asarray(cv2.add(image, cv2.merge([glint] * 3)))


def _instruments(image: np.ndarray, moment: Moment, camera: Camera) -> None:
    """Draw shadows and actors, in place; fast ones smeared over the shutter time."""
    cast_shadow(image, [p for bodies in moment.drawn for body in bodies for p in body], SHADOW)
    time_s, to_view = moment.time_s, moment.to_view
    before = camera.to_view(time_s - SHUTTER_S)
    for actor, bodies in zip(moment.actors, moment.drawn, strict=True):
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


def _through_lens(image: np.ndarray, moment: Moment, camera: Camera, lens: Lens) -> np.ndarray:
    """Return the picture after blur, exposure and the circle."""
    height, time_s = image.shape[0], moment.time_s
    step = (camera.drift.at(time_s)[:2] - camera.drift.at(time_s - SHUTTER_S)[:2]) * height
    image = smear(image, step)
    sigma = lens.defocus(time_s) * height
    if sigma > 0.3:
        image = np.asarray(cv2.GaussianBlur(image, (0, 0), sigma))
    exposure = lens.exposure(time_s)
    return np.asarray(cv2.multiply(image, moment.sheets.gains, scale=exposure, dtype=cv2.CV_8U))
