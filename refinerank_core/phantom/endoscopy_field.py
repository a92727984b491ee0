"""What a flexible endoscope sees: mucosa in folds, a lesion, and the blue layer laid bare."""

from __future__ import annotations

import numpy as np

from refinerank_core.phantom.field import FieldPlan
from refinerank_core.phantom.geometry import MARGIN, VIEW_WIDTH, blob
from refinerank_core.phantom.noise import lobules, softened
from refinerank_core.phantom.tissue import Material, Tissue, TissueCanvas, branching

STRUCTURES = ("mucosa", "submucosa", "lesion")


def structures() -> tuple[str, ...]:
    """Return the named structures; the canvas labels each with 1 + its place here."""
    return STRUCTURES


def plan(rng: np.random.Generator) -> FieldPlan:
    """Place lumen, lesion and the cut that has been begun beside it."""
    centre = np.array([rng.uniform(0.72, 1.06), rng.uniform(0.44, 0.60)])
    cut_way = rng.uniform(0, 2 * np.pi)
    away = np.array([np.cos(cut_way), np.sin(cut_way) * 0.8])
    lesion_radii = (float(rng.uniform(0.19, 0.27)), float(rng.uniform(0.14, 0.20)))
    lesion_at = centre - away * 0.09
    bed_at = centre + away * 0.15
    lesion = blob(rng, (float(lesion_at[0]), float(lesion_at[1])), lesion_radii, 0.14)
    bed_radii = (float(rng.uniform(0.27, 0.36)), float(rng.uniform(0.20, 0.27)))
    bed = blob(rng, (float(bed_at[0]), float(bed_at[1])), bed_radii, 0.12, 14)
    rim = bed_at + (bed - bed_at) * 1.10
    lumen_way = rng.uniform(-np.pi, 0)
    lumen = np.array([VIEW_WIDTH / 2, 0.45]) + np.array(
        [np.cos(lumen_way) * 0.72, np.sin(lumen_way) * 0.42]
    )
    turns = np.linspace(0, 2 * np.pi, 7)[:-1] + rng.uniform(0, 1)
    ring = np.stack((np.cos(turns), np.sin(turns)), axis=1)
    anchors = {
        "lesion": [lesion_at + ring[i] * np.array(lesion_radii) * 0.66 for i in range(0, 6, 2)],
        "submucosa": [
            bed_at + away * reach + np.array([-away[1], away[0]]) * side
            for reach, side in ((0.12, 0.0), (0.07, 0.13), (0.07, -0.13))
        ],
        "mucosa": [
            centre + ring[i] * np.array([0.62, 0.38]) * rng.uniform(0.9, 1.1) for i in range(6)
        ],
    }
    anchors = {
        name: [np.clip(point, (0.2, 0.14), (VIEW_WIDTH - 0.2, 0.86)) for point in points]
        for name, points in anchors.items()
    }
    outlines = {
        "lesion": lesion,
        "bed": bed,
        "rim": rim,
        "lumen": lumen[None],
        "marks": centre + ring.repeat(2, axis=0) * rng.normal((0.45, 0.33), 0.03, (12, 2)),
    }
    return FieldPlan.of(outlines, anchors, flip=False)


def paint(canvas: TissueCanvas, plan_: FieldPlan, rng: np.random.Generator) -> Tissue:
    """Paint the planned stretch of gut."""
    looks = _palette(rng)
    broad, mid = canvas.noise(rng, 2.5, 4), canvas.noise(rng, 8, 4)
    fibres = canvas.noise(rng, 16, 3, stretch=3.5)
    nodules, nodule_tone = lobules(rng, canvas.size_wh, per_height=38)
    nodules = softened(nodules, 0.005 * canvas.y_scale)
    lumen = plan_.outlines["lumen"][0]
    distance, folds = _folds(canvas, rng, lumen, mid)

    canvas.base(broad * 0.8 + mid * 0.4 + nodules * 0.25, looks["mucosa"], mid + folds)
    canvas.labels[:] = 1
    _net(canvas, rng, 26, looks["mucosa"].dark)
    canvas.albedo *= np.clip((distance - 0.05) / 0.42, 0.04, 1.0)[..., None] ** 0.8
    canvas.gloss *= np.clip(distance * 2 - 0.2, 0.0, 1.0)
    canvas.albedo *= (1.0 - 0.16 * np.clip(-folds, 0, 1.5))[..., None]
    outline = plan_.outlines
    canvas.paint(outline["rim"], mid, looks["rim"], mid, softness=0.010, shade=0.25)
    bed_tone = fibres * 0.9 + broad * 0.5
    canvas.paint(
        outline["bed"],
        bed_tone,
        looks["bed"],
        fibres,
        label=2,
        sunk=True,
        softness=0.007,
        shade=0.3,
    )
    _strands(canvas, rng, outline["bed"])
    paths: list[np.ndarray] = []
    widths: list[float] = []
    middle = outline["bed"].mean(axis=0)
    for _ in range(5):
        start = middle + rng.normal(0, 0.06, 2)
        more = branching(rng, start, float(rng.uniform(0, 6.3)), 0.2, 0.007, 1)
        paths += more[0]
        widths += more[1]
    canvas.strokes(paths, widths, (168, 36, 52), strength=0.55, raised=0.001)
    tone = nodule_tone * 0.5 + mid * 0.7
    canvas.paint(
        outline["lesion"], softened(tone, 2), looks["lesion"], nodules * 1.6, label=3, shade=0.6
    )
    dots = [np.stack((spot, spot + 0.006)) for spot in outline["marks"]]
    canvas.strokes(dots, [0.016] * len(dots), (238, 226, 206), strength=0.8, raised=0.002)
    canvas.strokes(dots, [0.007] * len(dots), (92, 60, 44), strength=0.8)
    return canvas.lit(rng)


def _strands(canvas: TissueCanvas, rng: np.random.Generator, bed: np.ndarray) -> None:
    """Stretch pale fibres over the bared layer and char its rim here and there."""
    middle, count = bed.mean(axis=0), len(bed)
    paths = []
    for _ in range(26):
        near, far = bed[int(rng.integers(count))], bed[int(rng.integers(count))]
        start = middle + (near - middle) * rng.uniform(0.2, 0.95)
        end = start + (far - start) * rng.uniform(0.2, 0.5)
        paths.append(np.stack((start, (start + end) / 2 + rng.normal(0, 0.02, 2), end)))
    widths = [float(width) for width in rng.uniform(0.003, 0.008, len(paths))]
    canvas.strokes(paths, widths, (244, 238, 236), strength=0.4, raised=0.0015)
    first = int(rng.integers(count))
    burnt = np.roll(bed, -first, axis=0)[: count // 3]
    canvas.strokes([burnt], [0.014], (96, 62, 40), strength=0.5, softness=0.006)


def _folds(
    canvas: TissueCanvas, rng: np.random.Generator, lumen: np.ndarray, unevenness: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return each pixel's distance from the lumen, and the relief of the folds around it."""
    width, height = canvas.size_wh
    x = (np.arange(width, dtype=np.float32) + 0.5) / canvas.x_scale - np.float32(MARGIN + lumen[0])
    y = (np.arange(height, dtype=np.float32) + 0.5) / canvas.y_scale - np.float32(MARGIN + lumen[1])
    distance = np.sqrt(x[None] ** 2 + (1.15 * y[:, None]) ** 2)
    pace = np.float32(rng.uniform(11.0, 17.0))
    wave = np.sin(pace * np.sqrt(distance + 0.02) * 1.6 + unevenness * 0.7)
    crest = np.abs(wave) ** 3 * np.sign(wave)
    return distance, crest * np.float32(rng.uniform(1.6, 2.6))


def _net(
    canvas: TissueCanvas, rng: np.random.Generator, count: int, colour: tuple[float, float, float]
) -> None:
    """Lay the fine net of vessels that shines through the mucosa."""
    paths: list[np.ndarray] = []
    widths: list[float] = []
    for _ in range(count):
        start = rng.uniform((-MARGIN, -MARGIN), (VIEW_WIDTH + MARGIN, 1 + MARGIN))
        more = branching(rng, start, float(rng.uniform(0, 6.3)), 0.22, 0.005, 1)
        paths += more[0]
        widths += more[1]
    red, green, blue = colour
    canvas.strokes(paths, widths, (red * 0.9, green * 0.55, blue * 0.6), strength=0.4)


def _palette(rng: np.random.Generator) -> dict[str, Material]:
    """Draw the colours of one patient and of the dye in the layer."""
    warm = rng.uniform(-16, 16)
    dye = rng.uniform(0.2, 1.0)
    red = float(rng.uniform(0, 1))
    return {
        "mucosa": Material(
            (168, 74 + warm, 58), (240, 158 + warm, 126 + warm), gloss=0.85, relief=0.007
        ),
        "rim": Material((214, 150, 130), (250, 218, 200), gloss=0.7, bulge=0.03, reach=0.03),
        "bed": Material(
            (150 - 66 * dye, 132 - 18 * dye, 150 + 22 * dye),
            (232 - 60 * dye, 220 - 20 * dye, 222 + 16 * dye),
            gloss=1.0,
            bulge=0.04,
            reach=0.14,
            relief=0.004,
        ),
        "lesion": Material(
            (150 + 30 * red, 58 + 20 * red, 56),
            (224 + 20 * red, 128 + 46 * (1 - red), 108 + 40 * (1 - red)),
            gloss=0.9,
            bulge=0.07,
            reach=0.09,
            relief=0.006,
        ),
    }
