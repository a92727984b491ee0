"""What a laparoscope sees: liver, gallbladder, its duct, fat and the wall behind."""

from __future__ import annotations

import numpy as np

from refinerank_core.phantom.field import FieldPlan, shifted
from refinerank_core.phantom.geometry import MARGIN, VIEW_WIDTH, blob, ribbon, smooth_open
from refinerank_core.phantom.noise import lobules, softened
from refinerank_core.phantom.tissue import Material, Tissue, TissueCanvas, branching

STRUCTURES = ("liver", "gallbladder", "cystic duct", "omentum", "abdominal wall")


def structures() -> tuple[str, ...]:
    """Return the named structures; the canvas labels each with 1 + its place here."""
    return STRUCTURES


def plan(rng: np.random.Generator) -> FieldPlan:
    """Place the organs of one belly; half of the scenes are mirrored."""
    flip = bool(rng.random() < 0.5)
    left, right = -MARGIN, VIEW_WIDTH + MARGIN
    tilt, level = rng.uniform(-0.22, 0.28), rng.uniform(0.40, 0.52)
    edge_x = np.linspace(left - 0.05, right + 0.05, 11)
    edge = level - tilt * (edge_x - VIEW_WIDTH / 2) + rng.normal(0, 0.022, 11)
    notch = rng.uniform(0.8, 1.0)
    edge -= rng.uniform(0.06, 0.14) * np.exp(-((edge_x - notch) ** 2) / 0.03)
    edge += rng.uniform(0.0, 0.08) * np.exp(-((edge_x - 0.45) ** 2) / 0.05)
    liver = _above(edge_x, edge)
    lobe_x = float(rng.uniform(1.25, 1.6))
    lobe_y = float(np.interp(lobe_x, edge_x, edge)) - rng.uniform(0.22, 0.3)
    lobe = blob(rng, (lobe_x, lobe_y), (float(rng.uniform(0.4, 0.6)), 0.24), 0.06, 9)
    roof = rng.uniform(-0.12, 0.18)
    xs = np.linspace(left - 0.05, right + 0.05, 7)
    wall = _above(xs, roof + rng.normal(0, 0.03, 7))
    neck = np.array([rng.uniform(0.78, 0.98), level + rng.uniform(0.10, 0.18)])
    lean = rng.uniform(-2.7, -1.9)
    length = rng.uniform(0.36, 0.5)
    heading = np.array([np.cos(lean), np.sin(lean)])
    across = np.array([-heading[1], heading[0]])
    bend = rng.uniform(-0.04, 0.04)
    spine = neck + np.linspace(0, 1, 6)[:, None] * heading * length
    spine = smooth_open(spine + np.sin(np.linspace(0, np.pi, 6))[:, None] * across * bend, 4)
    fat = rng.uniform(0.095, 0.145)
    swell = np.interp(
        np.linspace(0, 1, len(spine)), [0, 0.25, 0.7, 0.92, 1], [0.3, 0.55, 1.0, 0.92, 0.7]
    )
    gallbladder = ribbon(spine, swell * fat)
    foot = neck + np.array([rng.uniform(0.16, 0.34), rng.uniform(0.15, 0.24)])
    duct_path = smooth_open(
        np.stack((neck + heading * 0.03, neck * 0.5 + foot * 0.5 + across * 0.03, foot))
    )
    duct = ribbon(duct_path, np.linspace(0.044, 0.034, len(duct_path)))
    lie = rng.uniform(0.70, 0.80)
    xs = np.linspace(left - 0.05, right + 0.05, 8)
    low = lie + rng.normal(0, 0.035, 8) + 0.05 * np.exp(-((xs - 1.0) ** 2) / 0.08)
    omentum = np.concatenate(
        (smooth_open(np.stack((xs, low), axis=1)), [[right + 0.1, 1.4], [left - 0.1, 1.4]])
    )
    bowel = blob(rng, (rng.uniform(0.1, 0.5), rng.uniform(0.98, 1.1)), (0.36, 0.2), 0.08)
    outlines = {
        "abdominal wall": wall,
        "liver": liver,
        "lobe": lobe,
        "gallbladder": gallbladder,
        "cystic duct": duct,
        "omentum": omentum,
        "bowel": bowel,
        "bed": blob(rng, (float(neck[0]), float(neck[1])), (0.26, 0.17), 0.2),
    }
    count = len(spine)
    anchors = {
        "gallbladder": [spine[count - 4], spine[count // 2], spine[count // 4]],
        "cystic duct": [duct_path[3], duct_path[len(duct_path) // 2], duct_path[-4]],
        "liver": [
            np.array([x, max(0.1, np.interp(x, edge_x, edge) - 0.13)])
            for x in (0.3, 0.55, 1.25, 1.5)
        ],
        "omentum": [np.array([x, np.interp(x, xs, low) + 0.08]) for x in (0.4, 0.75, 1.15, 1.45)],
    }
    return FieldPlan.of(outlines, anchors, flip=flip)


def _above(xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Return the outline of all that lies above a curve."""
    curve = smooth_open(np.stack((xs, ys), axis=1))
    return np.concatenate((curve, [[xs[-1] + 0.1, -0.5], [xs[0] - 0.05, -0.5]]))


def paint(canvas: TissueCanvas, plan_: FieldPlan, rng: np.random.Generator) -> Tissue:
    """Paint the planned belly."""
    looks = _palette(rng)
    broad, mid = canvas.noise(rng, 3, 4), canvas.noise(rng, 9, 4)
    speckle = softened(canvas.noise(rng, 70, 2), 0.002 * canvas.y_scale)
    lobes, lobe_tone = lobules(rng, canvas.size_wh, per_height=float(rng.integers(16, 28)))
    lobes = softened(lobes, 0.005 * canvas.y_scale)
    fat_tone = softened(lobe_tone, 0.006 * canvas.y_scale) * 0.8 + broad * 0.5

    outline = plan_.outlines
    canvas.base(broad, looks["deep"], mid)
    canvas.paint(outline["abdominal wall"], mid, looks["wall"], mid, label=5)
    _vessels(canvas, rng, looks["wall"].dark, 5, (0.2, -0.05, 1.6, 0.1))
    canvas.paint(outline["liver"], broad * 0.7 + speckle * 0.3, looks["liver"], mid, label=1)
    canvas.paint(outline["lobe"], broad * 0.7 + speckle * 0.3, looks["liver"], mid, label=1)
    strands = canvas.noise(rng, 12, 3, stretch=0.4)
    bed_tone = mid * 0.7 + strands * 0.6
    canvas.paint(outline["bed"], bed_tone, looks["bed"], lobes + strands, softness=0.014, shade=0.3)
    canvas.paint(outline["bowel"], mid * 0.6 + broad * 0.4, looks["bowel"], mid)
    canvas.paint(outline["omentum"], fat_tone, looks["fat"], lobes * 2.4 + mid * 0.4, label=4)
    _vessels(canvas, rng, (150, 40, 30), 9, (0.1, 0.75, 1.7, 1.1))
    canvas.paint(outline["cystic duct"], mid * 0.5 + 0.2, looks["duct"], mid, label=3)
    canvas.paint(outline["gallbladder"], broad * 0.6 + mid * 0.5, looks["bile"], mid, label=2)
    for anchor in plan_.anchors["gallbladder"]:
        heading = float(rng.uniform(0, 2 * np.pi))
        paths, widths = branching(rng, anchor - 0.05, heading, 0.16, 0.006, 2)
        canvas.strokes(paths, widths, (140, 40, 40), strength=0.45, raised=0.0015)
    return canvas.lit(rng)


def _vessels(
    canvas: TissueCanvas,
    rng: np.random.Generator,
    colour: tuple[float, float, float],
    count: int,
    within: tuple[float, float, float, float],
) -> None:
    paths: list[np.ndarray] = []
    widths: list[float] = []
    for _ in range(count):
        start = rng.uniform(within[:2], within[2:])
        more = branching(rng, start, float(rng.uniform(0, 6.3)), 0.25, 0.006, 2)
        paths += more[0]
        widths += more[1]
    canvas.strokes(paths, widths, colour, strength=0.4, raised=0.001)


def _palette(rng: np.random.Generator) -> dict[str, Material]:
    """Draw the colours of one patient."""
    warm = rng.uniform(-14, 14)
    liver_light = (rng.uniform(150, 198), 62 + warm * 0.6 + rng.uniform(-10, 16), 50)
    bile = [
        ((120, 128, 96), (186, 190, 150)),  # green grey
        ((150, 104, 96), (216, 170, 156)),  # pink, inflamed
        ((104, 112, 118), (176, 182, 186)),  # blue grey
        ((160, 126, 82), (222, 188, 132)),  # fatty
    ][int(rng.integers(4))]
    return {
        "deep": Material((74, 22, 18), (138, 56, 46), gloss=0.35, relief=0.006),
        "wall": Material(
            (160, 74 + warm, 66), (226, 142 + warm, 122), gloss=0.5, bulge=0.05, relief=0.006
        ),
        "liver": Material(
            shifted(liver_light, 0.6), liver_light, gloss=0.95, bulge=0.09, reach=0.3, relief=0.0026
        ),
        "bed": Material((128, 36, 30), (206, 128, 92), gloss=1.0, bulge=0.02, relief=0.005),
        "bowel": Material(
            (186, 104, 92), (232, 164, 148), gloss=0.9, bulge=0.09, reach=0.2, relief=0.003
        ),
        "fat": Material(
            (176, 96 + warm, 36), (242, 192 + warm, 96), gloss=0.7, bulge=0.06, relief=0.005
        ),
        "duct": Material(
            (176, 118, 92), (238, 196, 160), gloss=1.0, bulge=0.02, reach=0.03, relief=0.002
        ),
        "bile": Material(*bile, gloss=1.0, bulge=0.085, reach=0.11, relief=0.003),
    }
