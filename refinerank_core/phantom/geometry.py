"""The phantom's plane: a view 16/9 wide and 1 high, and how it meets pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Point = tuple[float, float]
Colour = tuple[float, float, float]

VIEW_WIDTH = 16.0 / 9.0  # view units; the height is 1
VIEW_CENTRE: Point = (VIEW_WIDTH / 2.0, 0.5)
MARGIN = 0.2  # painted tissue around the view, so that the camera may drift
LIGHT: Point = (-0.5, -0.86)  # where highlights sit, on the screen: up and a little left


def stream(seed: int, *salt: int) -> np.random.Generator:
    """Return a random stream of its own for one part of a scene."""
    return np.random.default_rng([seed, *salt])


def rotation(angle: float) -> np.ndarray:
    """Return the (2, 2) matrix that turns columns by angle (radians, clockwise on screen)."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def unit(vector: np.ndarray) -> np.ndarray:
    """Return vector at length 1 (a zero vector stays zero)."""
    length = float(np.hypot(vector[0], vector[1]))
    return vector / length if length > 0 else vector


def smooth_closed(points: np.ndarray, per_segment: int = 8) -> np.ndarray:
    """Round a closed (N, 2) polygon with a Catmull-Rom spline: (N * per_segment, 2)."""
    before, after = np.roll(points, 1, axis=0), np.roll(points, -1, axis=0)
    beyond = np.roll(points, -2, axis=0)
    return _catmull_rom(before, points, after, beyond, per_segment)


def smooth_open(points: np.ndarray, per_segment: int = 8) -> np.ndarray:
    """Round an open (N, 2) polyline with a Catmull-Rom spline that keeps both ends."""
    padded = np.concatenate((points[:1], points, points[-1:]))
    curve = _catmull_rom(padded[:-3], padded[1:-2], padded[2:-1], padded[3:], per_segment)
    return np.concatenate((curve, points[-1:]))


def _catmull_rom(
    p0: np.ndarray, p1: np.ndarray, p2: np.ndarray, p3: np.ndarray, per_segment: int
) -> np.ndarray:
    t = np.linspace(0.0, 1.0, per_segment, endpoint=False)[None, :, None]
    a, b, c, d = (p[:, None, :] for p in (p0, p1, p2, p3))
    curve = 0.5 * (
        2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3
    )
    return np.asarray(curve.reshape(-1, 2))


def blob(
    rng: np.random.Generator, centre: Point, radii: Point, wobble: float, corners: int = 12
) -> np.ndarray:
    """Return a rounded closed outline (N, 2) about centre, its radius uneven by wobble."""
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    reach = 1.0 + wobble * rng.uniform(-1.0, 1.0, corners)
    ring = np.stack((np.cos(angles) * radii[0], np.sin(angles) * radii[1]), axis=1)
    return smooth_closed(np.asarray(centre) + ring * reach[:, None])


def ribbon(path: np.ndarray, half_widths: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the outline of a stroke along an open (N, 2) path, round at its end."""
    path = np.asarray(path, dtype=np.float64)
    return stroke_outline(path, slopes(path), np.asarray(half_widths, dtype=np.float64))


def slopes(path: np.ndarray) -> np.ndarray:
    """Return the (N, 2) unit direction of an open path at each of its points."""
    step = np.empty_like(path)
    step[1:-1] = path[2:] - path[:-2]
    step[0], step[-1] = path[1] - path[0], path[-1] - path[-2]
    step /= np.sqrt((step * step).sum(axis=1))[:, None] + 1e-12
    return step


def stroke_outline(path: np.ndarray, slope: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return the outline of a stroke whose slopes are known already: (2 N + 5, 2)."""
    count = len(path)
    outline = np.empty((2 * count + 5, 2))
    side = np.empty_like(path)
    side[:, 0], side[:, 1] = -slope[:, 1] * half, slope[:, 0] * half
    outline[:count] = path + side
    outline[count : count + 5] = (
        path[-1] + CAP_ALONG * (slope[-1] * half[-1]) + CAP_ACROSS * side[-1]
    )
    outline[count + 5 :] = (path - side)[::-1]
    return outline


CAP_TURN = np.linspace(np.pi / 2, -np.pi / 2, 7)[1:-1, None]
CAP_ALONG, CAP_ACROSS = np.cos(CAP_TURN), np.sin(CAP_TURN)
