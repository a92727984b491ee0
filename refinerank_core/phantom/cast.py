"""Who moves in a scene: actors, their poses, and the schedule that gives each its deeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from refinerank_core.phantom.camera import apply
from refinerank_core.phantom.geometry import VIEW_WIDTH
from refinerank_core.phantom.motion import Phase, Sway, Track, phase_at, swell
from refinerank_core.phantom.shapes import Patch, light_across, placed

Drawer = Callable[[float, float], list[Patch]]  # (opening, light) -> patches, tip at the origin

LEAD_S = 9.0  # schedules begin before the clip, so that it opens in mid-action
STROKES = {  # action: (reach along the tool, reach across, Hz) of its rhythm
    "dissecting": (0.020, 0.014, 0.8),
    "cutting": (0.012, 0.004, 0.9),
    "coagulating": (0.004, 0.006, 1.3),
    "rinsing": (0.012, 0.034, 0.45),
    "suturing": (0.016, 0.022, 0.5),
    "wiping": (0.030, 0.040, 0.6),
    "marking": (0.008, 0.010, 0.9),
    "collecting": (0.010, 0.012, 0.3),
}
PULLING = ("grasping", "retracting")
CLOSING = ("grasping", "retracting", "coagulating", "clipping", "suturing")


@dataclass(frozen=True)
class Body:
    """One boxed thing of an actor: a tool, or a hand.

    Attributes:
        instance: its number in the truth.
        name: its class.
        kind: "tool", "hand" or "structure".
        draw: makes its patches.
        hand: "left" or "right" for a hand or a held tool, else None.
        softness: blur of its shading in view units; 0 for hard things.
    """

    instance: int
    name: str
    kind: str
    draw: Drawer
    hand: str | None = None
    softness: float = 0.0


@dataclass(frozen=True, eq=False)
class Actor:
    """Something that enters the view, acts on structures and leaves.

    Attributes:
        bodies: what it consists of, drawn in this order.
        pivot: (2,) where its shaft or arm passes the rim, field units.
        tip: (2,) track of the working point, field units.
        opening: (1,) track of its jaws, 0 shut to 1 wide.
        sway: small wander of the tip.
        depth: slow change of apparent size.
        phases: what it does, in time order.
        size: apparent size at rest.
        rest_opening: radians at opening 1.
        owner: "own" or "other" in open surgery, else None.
    """

    bodies: tuple[Body, ...]
    pivot: np.ndarray
    tip: Track
    opening: Track
    sway: Sway
    depth: Sway
    phases: tuple[Phase, ...]
    size: float
    rest_opening: float
    owner: str | None = None

    def tip_at(self, time_s: float) -> np.ndarray:
        """Return the (2,) working point in field units."""
        tip = self.tip.at(time_s) + self.sway.at(time_s)
        phase = phase_at(self.phases, time_s)
        if phase is None or phase.action not in STROKES:
            return np.asarray(tip)
        along, across, pace = STROKES[phase.action]
        grip = swell(time_s, phase.start_s, phase.end_s)
        beat = 2 * np.pi * pace * (time_s - phase.start_s)
        heading = tip - self.pivot
        heading = heading / max(float(np.hypot(*heading)), 1e-6)
        side = np.array([-heading[1], heading[0]])
        stroke = along * np.sin(beat) * heading + across * np.sin(0.63 * beat) * side
        return np.asarray(tip + grip * stroke)

    def pull_at(self, time_s: float) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (place, offset) of the tissue in its grip, or None when it holds none."""
        phase = phase_at(self.phases, time_s)
        if phase is None or phase.action not in PULLING:
            return None
        place = np.array(phase.place)
        return place, self.tip.at(time_s) - place

    def opening_at(self, time_s: float) -> float:
        """Return the angle of its jaws in radians."""
        share = float(self.opening.at(time_s)[0])
        phase = phase_at(self.phases, time_s)
        if phase is not None and phase.action == "cutting":
            grip = swell(time_s, phase.start_s, phase.end_s)
            share += grip * 0.35 * np.sin(2 * np.pi * 1.1 * (time_s - phase.start_s))
        return self.rest_opening * max(0.06, share)

    def drawn(self, time_s: float, to_view: np.ndarray) -> list[list[Patch]]:
        """Return the patches of each body in view units; none for an actor out of sight."""
        tip = apply(to_view, self.tip_at(time_s))
        if max(abs(tip[0] - VIEW_WIDTH / 2) - VIEW_WIDTH / 2, abs(tip[1] - 0.5) - 0.5) > 0.4:
            return [[] for _ in self.bodies]
        heading = tip - apply(to_view, self.pivot)
        angle = float(np.arctan2(heading[1], heading[0]))
        zoom = float(np.hypot(to_view[0, 0], to_view[1, 0]))
        size = self.size * zoom * (1.0 + float(self.depth.at(time_s)[0]))
        light, opening = light_across(angle), self.opening_at(time_s)
        return [placed(body.draw(opening, light), angle, tip, size) for body in self.bodies]


@dataclass(frozen=True)
class Role:
    """How one kind of actor behaves.

    Attributes:
        deeds: (action, structures) it may choose from.
        stays: chance that it stays in view between two deeds.
        hover: how far from the place it waits, view units.
        pull: how far it draws what it grasps, view units.
    """

    deeds: tuple[tuple[str, tuple[str, ...]], ...]
    stays: float = 0.72
    hover: float = 0.12
    pull: float = 0.06


@dataclass(frozen=True)
class Course:
    """What the schedule decides for one actor: tracks and phases."""

    tip: Track
    opening: Track
    phases: tuple[Phase, ...]


class Schedule:
    """Deals places and times so that no two actors work on one spot at once."""

    def __init__(
        self, anchors: dict[str, list[np.ndarray]], duration_s: float, *, room: float = 0.2
    ) -> None:
        self.anchors = anchors
        self.duration_s = duration_s
        self.room = room  # view units between two places of work
        self.taken: list[tuple[float, float, np.ndarray]] = []

    def course(
        self,
        rng: np.random.Generator,
        role: Role,
        pivot: np.ndarray,
        *,
        late: bool,
        home: np.ndarray | None = None,
    ) -> Course:
        """Fill the clip with deeds for one actor.

        Args:
            rng: its own stream.
            role: what it may do.
            pivot: (2,) where it comes from.
            late: it enters only after the clip has begun.
            home: (2,) it rather works near here, or None.
        """
        now = float(rng.uniform(0.03, 0.4)) * self.duration_s if late else -LEAD_S
        now += float(rng.uniform(0, 2.0))
        tips: list[tuple[float, np.ndarray]] = []
        jaws: list[tuple[float, np.ndarray]] = []
        phases: list[Phase] = []
        here: np.ndarray | None = None
        while now < self.duration_s + 2.0:
            deed = self._choose(rng, role, now, home)
            if deed is None:
                break
            action, target, place = deed
            if here is None:
                here = _outside(pivot, place)
                tips.append((now, here))
                jaws.append((now, np.array([0.2])))
            travel = 0.55 + float(np.hypot(*(place - here))) * 1.5
            start, end = now + travel, now + travel + float(rng.uniform(2.4, 6.0))
            self.taken.append((now, end + 1.0, place))
            tips.append((start, place))
            jaws.append((start - 0.2, np.array([1.0])))
            if action in PULLING:
                lift = _lift(rng, place, pivot) * role.pull * rng.uniform(0.5, 1.0)
                tips += [(start + 1.1, place + lift), (end - 0.7, place + lift)]
            tips.append((end, place))
            shut = 0.12 if action in CLOSING else 0.6
            jaws += [(start + 0.5, np.array([shut])), (end - 0.1, np.array([shut]))]
            phases.append(Phase(start, end, action, target, (float(place[0]), float(place[1]))))
            back = pivot - place
            back = back / np.hypot(*back)
            if rng.random() < role.stays:
                here = place + back * role.hover * rng.uniform(0.5, 1.2)
                now = end + float(rng.uniform(0.9, 1.6))
                tips.append((now, here))
                now += float(rng.uniform(0.1, 0.8))
                tips.append((now, here))
            else:
                gone = _outside(pivot, place)
                now = end + 0.6 + float(np.hypot(*(gone - place))) * 1.4
                tips.append((now, gone))
                here = None
                now += float(rng.uniform(1.5, 5.0))
        if not tips:
            nowhere = _outside(pivot, np.array([VIEW_WIDTH / 2, 0.5]))
            tips, jaws = [(0.0, nowhere)], [(0.0, np.array([0.2]))]
        return Course(Track.of(tips), Track.of(jaws), tuple(phases))

    def _choose(
        self, rng: np.random.Generator, role: Role, now: float, home: np.ndarray | None
    ) -> tuple[str, str, np.ndarray] | None:
        """Draw a deed whose place stays free, or the freest of some draws."""
        best: tuple[float, tuple[str, str, np.ndarray]] | None = None
        for _ in range(8):
            action, structures = role.deeds[int(rng.integers(len(role.deeds)))]
            target = structures[int(rng.integers(len(structures)))]
            places = self.anchors[target]
            place = places[int(rng.integers(len(places)))] + rng.normal(0, 0.02, 2)
            room = min(
                (
                    float(np.hypot(*(place - other)))
                    for start, end, other in self.taken
                    if start < now + 8.0 and end > now
                ),
                default=9.0,
            )
            away = 0.0 if home is None else float(np.hypot(*(place - home)))
            worth = min(room, self.room + 0.05) - 0.5 * away
            if best is None or worth > best[0]:
                best = (worth, (action, target, place))
            if home is None and room > self.room:
                break
        return None if best is None else best[1]


def _outside(pivot: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return a point between place and pivot, a tool's length beyond the view."""
    away = pivot - place
    away = away / np.hypot(*away)
    low, high = np.array([-0.45, -0.45]), np.array([VIEW_WIDTH + 0.45, 1.45])
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(away > 0, (high - place) / away, (low - place) / away)
    steps = steps[np.isfinite(steps)]
    return np.asarray(place + away * float(steps.min()))


def _lift(rng: np.random.Generator, place: np.ndarray, pivot: np.ndarray) -> np.ndarray:
    """Return the unit direction in which grasped tissue is drawn: to the trocar, or up."""
    away = (pivot - place) / np.hypot(*(pivot - place))
    lift = away * 0.6 + np.array([rng.normal(0, 0.4), -0.6])
    return np.asarray(lift / np.hypot(*lift))


def draw_pivot(rng: np.random.Generator, side: str) -> np.ndarray:
    """Draw where on a side of the view a shaft comes from."""
    if side in ("left", "right"):
        x = -rng.uniform(0.35, 0.8)
        return np.array([x if side == "left" else VIEW_WIDTH - x, rng.uniform(0.1, 0.95)])
    y = -rng.uniform(0.35, 0.7)
    return np.array([rng.uniform(0.35, VIEW_WIDTH - 0.35), y if side == "top" else 1.0 - y])
