"""What a surgeon sees from above: a drape, a window of skin, and the wound in it."""

from __future__ import annotations

import numpy as np

from refinerank_core.phantom.field import FieldPlan
from refinerank_core.phantom.geometry import MARGIN, blob, smooth_closed
from refinerank_core.phantom.noise import Field, lobules, softened
from refinerank_core.phantom.tissue import Material, Tissue, TissueCanvas, branching

STRUCTURES = ("drape", "skin", "wound edge", "wound")


def structures() -> tuple[str, ...]:
    """Return the named structures; the canvas labels each with 1 + its place here."""
    return STRUCTURES


def plan(rng: np.random.Generator) -> FieldPlan:
    """Place the window in the drape and the wound."""
    centre = np.array([rng.uniform(0.78, 1.0), rng.uniform(0.42, 0.54)])
    turn = rng.uniform(-0.5, 0.5)
    along = np.array([np.cos(turn), np.sin(turn)])
    across = np.array([-along[1], along[0]])
    length, width = rng.uniform(0.24, 0.34), rng.uniform(0.085, 0.13)
    angles = np.linspace(0, 2 * np.pi, 14, endpoint=False)
    reach = 1 + rng.uniform(-0.06, 0.06, 14)

    def lens_shape(grow: float) -> np.ndarray:
        x = np.cos(angles) * (length + grow) * reach
        y = np.sign(np.sin(angles)) * np.abs(np.sin(angles)) ** 1.3 * (width + grow) * reach
        return smooth_closed(centre + x[:, None] * along + y[:, None] * across, 6)

    corner = np.array([[-1, -1], [-0.2, -1.05], [1, -1], [1.08, 0], [1, 1], [0, 1.05], [-1, 1]])
    window = corner * (rng.uniform(0.42, 0.54), rng.uniform(0.28, 0.37))
    window = window + rng.normal(0, 0.02, window.shape)
    window = centre + window[:, :1] * along + window[:, 1:] * across
    anchors = {
        "wound edge": [
            centre + along * x * length + across * side * width * 1.02
            for x in (-0.5, 0.05, 0.5)
            for side in (-1, 1)
        ],
        "wound": [centre + along * x * length for x in (-0.42, 0.0, 0.42)],
        "skin": [
            centre + along * x + across * side * (width + 0.13)
            for x in (-0.3, 0.28)
            for side in (-1, 1)
        ],
    }
    outlines = {
        "hem": smooth_closed(centre + (window - centre) * 1.13, 6),
        "window": smooth_closed(window, 6),
        "rim": lens_shape(0.045),
        "edge": lens_shape(0.028),
        "fat": lens_shape(0.0),
        "deep": lens_shape(-0.035),
        "swab": blob(rng, _beside(rng, centre), (0.13, 0.10), 0.14),
        "axis": np.stack((centre, along)),
    }
    return FieldPlan.of(outlines, anchors, flip=False)


def _beside(rng: np.random.Generator, centre: np.ndarray) -> tuple[float, float]:
    """Return a spot on the drape, well away from the wound."""
    side = -1.0 if rng.random() < 0.5 else 1.0
    return float(centre[0] + side * rng.uniform(0.66, 0.8)), float(rng.uniform(0.1, 0.75))


def paint(canvas: TissueCanvas, plan_: FieldPlan, rng: np.random.Generator) -> Tissue:
    """Paint the planned table."""
    looks = _palette(rng)
    broad, mid = canvas.noise(rng, 2.2, 3), canvas.noise(rng, 9, 4)
    weave = _weave(canvas)
    crumple = canvas.noise(rng, 2.0, 3, stretch=2.2)
    ridges = -np.abs(crumple) * 6.0 + broad * 2.5
    pores, pore_tone = lobules(rng, canvas.size_wh, per_height=75)
    grains, grain_tone = lobules(rng, canvas.size_wh, per_height=34)
    grains = softened(grains, 0.004 * canvas.y_scale)
    fibres = canvas.noise(rng, 14, 3, stretch=5.0)

    canvas.base(weave * 0.12 + crumple * 0.2 + broad * 0.3, looks["drape"], ridges)
    canvas.labels[:] = 1
    outline = plan_.outlines
    skin_tone = mid * 0.5 + broad * 0.5 + pore_tone * 0.12
    canvas.paint(
        outline["window"],
        skin_tone,
        looks["skin"],
        mid + pores * 0.4,
        label=2,
        shade=0.6,
        sunk=True,
    )
    _iodine(canvas, outline["window"], broad)
    canvas.paint(outline["rim"], mid, looks["inflamed"], mid, shade=0.2, softness=0.02)
    canvas.paint(outline["edge"], mid, looks["cut"], mid, label=3, shade=0.2)
    canvas.paint(outline["fat"], grain_tone * 0.8 + mid * 0.4, looks["fat"], grains * 2, label=4)
    canvas.paint(outline["deep"], fibres, looks["muscle"], fibres, label=4, sunk=True, shade=0.75)
    paths: list[np.ndarray] = []
    widths: list[float] = []
    centre, along = outline["axis"]
    for step in (-0.12, 0.06):
        heading = float(np.arctan2(along[1], along[0]) + rng.normal(0, 0.4))
        more = branching(rng, centre + along * step, heading, 0.16, 0.008, 1)
        paths += more[0]
        widths += more[1]
    canvas.strokes(paths, widths, (90, 14, 30), strength=0.7, raised=0.003)
    if looks["swab"].gloss > 0:
        canvas.paint(outline["swab"], weave * 0.15 + crumple, looks["swab"], ridges + crumple)
    return canvas.lit(rng, lamp_height=1.0)


def _weave(canvas: TissueCanvas) -> Field:
    """Return the threads of a cloth; coarser than real ones, so that a pixel can hold them."""
    width, height = canvas.size_wh
    x = (np.arange(width, dtype=np.float32) / canvas.x_scale)[None]
    y = (np.arange(height, dtype=np.float32) / canvas.y_scale)[:, None]
    return np.asarray(np.sin(x * 420 + np.sin(y * 9) * 1.5) * np.sin(y * 420), dtype=np.float32)


def _iodine(canvas: TissueCanvas, window: np.ndarray, broad: Field) -> None:
    """Stain the skin where it was painted with disinfectant."""
    middle = window.mean(axis=0) + MARGIN
    width, height = canvas.size_wh
    x = (np.arange(width, dtype=np.float32) / canvas.x_scale - middle[0]) / 0.5
    y = (np.arange(height, dtype=np.float32) / canvas.y_scale - middle[1]) / 0.33
    share = np.clip(1.25 - (x[None] ** 2 + y[:, None] ** 2) - broad * 0.15, 0, 1)
    share = np.where(canvas.labels == 2, share, 0).astype(np.float32) * 0.4
    stain = np.array([0.96, 0.72, 0.42], np.float32)
    canvas.albedo *= 1 - share[..., None] * (1 - stain)


def _palette(rng: np.random.Generator) -> dict[str, Material]:
    """Draw the cloth and the skin of one table."""
    cloth = [(24, 78, 120), (20, 96, 92), (36, 104, 74), (58, 96, 150)][int(rng.integers(4))]
    light = tuple(min(255.0, channel * 1.25 + 14) for channel in cloth)
    dark = tuple(channel * 0.72 for channel in cloth)
    skin = [
        ((186, 122, 92), (238, 186, 156)),
        ((150, 94, 66), (204, 148, 112)),
        ((98, 60, 44), (150, 100, 76)),
        ((206, 146, 120), (248, 208, 186)),
    ][int(rng.integers(4))]
    has_swab = rng.random() < 0.45
    return {
        "drape": Material(dark, light, gloss=0.0, relief=0.013),  # type: ignore[arg-type]
        "hem": Material(dark, light, gloss=0.0, bulge=0.012, reach=0.02, relief=0.004),  # type: ignore[arg-type]
        "skin": Material(*skin, gloss=0.22, bulge=0.015, reach=0.04, relief=0.0016),
        "inflamed": Material((176, 84, 70), (224, 140, 118), gloss=0.3, bulge=0.02, relief=0.002),
        "cut": Material((190, 60, 54), (244, 170, 150), gloss=0.9, bulge=0.02, reach=0.02),
        "fat": Material((206, 134, 46), (252, 214, 120), gloss=0.9, bulge=0.0, relief=0.004),
        "muscle": Material(
            (92, 14, 18), (184, 52, 46), gloss=1.0, bulge=0.06, reach=0.07, relief=0.005
        ),
        "swab": Material(
            (206, 206, 200),
            (252, 252, 250),
            gloss=0.01 if has_swab else 0.0,
            bulge=0.02,
            relief=0.004,
        ),
    }
