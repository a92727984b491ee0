"""The three kinds of surgery and what sets them apart."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np

from refinerank_core.phantom import (
    endoscopy_cast,
    endoscopy_field,
    laparoscopy_cast,
    laparoscopy_field,
    open_cast,
    open_field,
)
from refinerank_core.phantom.cast import Actor
from refinerank_core.phantom.field import FieldPlan
from refinerank_core.phantom.geometry import Colour
from refinerank_core.phantom.tissue import Tissue, TissueCanvas
from refinerank_core.phantom.vocabulary import PROCEDURES


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
    """One kind of surgery.

    Attributes:
        field: paints what lies there.
        cast: chooses who works there.
        circle_chance: how often the scope's round rim shows.
        smoky, bloody: how strong smoke and blood may get, 0..1.
        smoke_tint: RGB of the smoke.
    """

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
