"""The figures of the Failures tab, for plotly. Each bar carries what a click on it filters by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from demo.plots import bare_figure
from refinerank_core.failures import CATEGORIES

# Okabe and Ito's colours, told apart by the colour-blind; the right answers are quiet.
COLOURS: Mapping[str, str] = {
    "correct": "#009E73",
    "ranking miss": "#56B4E9",
    "refinement harm": "#CC79A7",
    "filter miss": "#E69F00",
    "candidate miss": "#D55E00",
    "format": "#8A93A0",
}


def counts(found: Mapping[str, Any], by: str) -> go.Figure:
    """Stacked bars: how many times in each category, for each value of a dimension."""
    figure = bare_figure(f"Times in each category, by {by}", "times", "")
    names: Sequence[str] = found["names"]
    for category in sorted(CATEGORIES, key=list(COLOURS).index):
        figure.add_trace(
            go.Bar(
                y=list(names),
                x=found["counts"][category],
                name=category,
                orientation="h",
                marker={"color": COLOURS[category]},
                customdata=[[by, name, category] for name in names],
                hovertemplate=f"%{{y}}: %{{x}} {category}<extra></extra>",
            )
        )
    return _stacked(figure, len(names))


def losses(rows: Sequence[Mapping[str, Any]]) -> go.Figure:
    """Where IoU goes on each data set: kept by the answer, lost to ranking, filter, candidates."""
    figure = bare_figure("Where IoU is lost (adds up to 1)", "share of IoU", "")
    rows = [row for row in rows if row["times"]]
    names = [row["dataset"] for row in rows]
    for field, words, colour in (
        ("selected", "answer", "#009E73"),
        ("ranking", "ranking loss", "#56B4E9"),
        ("filter", "filter loss", "#E69F00"),
        ("candidate", "candidate loss", "#D55E00"),
    ):
        figure.add_trace(
            go.Bar(
                y=names,
                x=[row[field] for row in rows],
                name=words,
                orientation="h",
                marker={"color": colour},
                customdata=[["dataset", name, ""] for name in names],
                hovertemplate=f"%{{y}}: {words} %{{x:.3f}}<extra></extra>",
            )
        )
    return _stacked(figure, len(names))


def _stacked(figure: go.Figure, bars: int) -> go.Figure:
    """Bars of one height, the legend in two lines between title and bars."""
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure.update_layout(
        barmode="stack",
        height=max(250, 140 + 34 * bars),
        margin={"t": 78},
        legend={"y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left", "traceorder": "normal"},
    )
