"""The phantom's plane: a view 16/9 wide and 1 high, and how it meets pixels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

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
    return np.asarray(_spline_basis(len(points), per_segment, True) @ points)


def smooth_open(points: np.ndarray, per_segment: int = 8) -> np.ndarray:
    """Round an open (N, 2) polyline with a Catmull-Rom spline that keeps both ends."""
    return np.asarray(_spline_basis(len(points), per_segment, False) @ points)


@lru_cache(maxsize=64)
def _spline_basis(count: int, per_segment: int, closed: bool) -> np.ndarray:
    """Return the matrix that takes count control points to the points of their spline."""
    t = np.linspace(0.0, 1.0, per_segment, endpoint=False)
    weights = 0.5 * np.stack(
        (
            -t + 2 * t**2 - t**3,
            2 - 5 * t**2 + 3 * t**3,
            t + 4 * t**2 - 3 * t**3,
            -(t**2) + t**3,
        ),
        axis=1,
    )
    segments = count if closed else count - 1
    basis = np.zeros((segments * per_segment + (not closed), count))
    for segment in range(segments):
        rows = slice(segment * per_segment, (segment + 1) * per_segment)
        for step in range(4):
            control = segment + step - 1
            column = control % count if closed else min(max(control, 0), count - 1)
            basis[rows, column] += weights[:, step]
    if not closed:
        basis[-1, -1] = 1.0
    return basis


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
    half = np.asarray(half_widths, dtype=np.float64)
    return np.asarray(stroke_outlines(path, half, np.ones(1), np.zeros((1, 2)))[0])


def stroke_outlines(
    path: np.ndarray, half: np.ndarray, reaches: np.ndarray, shifts: np.ndarray
) -> np.ndarray:
    """Return nested outlines of a stroke, round at its end: (L, 2 N + 5, 2).

    Args:
        path: (N, 2) open path.
        half: (N,) half widths.
        reaches: (L,) share of the half width that each outline keeps.
        shifts: (L, 2) by how much each is moved.
    """
    count = len(path)
    slope = np.empty_like(path)
    slope[1:-1] = path[2:] - path[:-2]
    slope[0], slope[-1] = path[1] - path[0], path[-1] - path[-2]
    slope /= np.sqrt(slope[:, :1] ** 2 + slope[:, 1:] ** 2) + 1e-12
    side = slope[:, ::-1] * half[:, None]
    side[:, 0] *= -1.0
    spokes = np.empty((2 * count + 5, 2))
    spokes[:count] = side
    spokes[count : count + 5] = CAP_ALONG * (slope[-1] * half[-1]) + CAP_ACROSS * side[-1]
    spokes[count + 5 :] = -side[::-1]
    spine = np.concatenate((path, path[-1:].repeat(5, axis=0), path[::-1]))
    return np.asarray(spine + shifts[:, None] + reaches[:, None, None] * spokes)


CAP_TURN = np.linspace(np.pi / 2, -np.pi / 2, 7)[1:-1, None]
CAP_ALONG, CAP_ACROSS = np.cos(CAP_TURN), np.sin(CAP_TURN)
