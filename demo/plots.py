"""The figures of an answer, for plotly. Neutral greys read on light and on dark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from demo.present import overlap
from demo.sessions import Answer
from refinerank_core.grounding import TimeGrounding

SKY, YELLOW, GREEN, GREY = "#56B4E9", "#C9BC12", "#009E73", "#8A93A0"
_INK = "#7B8592"
_GRID = "rgba(123,133,146,0.22)"
_TAGS = {"refinerank": "R1", "medvlm": "V", "medvlm_groundingdino": "D"}


def scores(time: TimeGrounding) -> go.Figure:
    """How the kept and the filtered boxes' scores are spread, with the answer marked."""
    kept: list[float] = []
    dropped: list[float] = []
    for row in time.candidates:
        (kept if row.kept_original else dropped).append(row.score_original)
        if row.refined_box is not None:
            (kept if row.kept_refined else dropped).append(row.score_refined)
    figure = bare_figure("Scores of the joint pool", "score (logit)", "boxes")
    for name, values, colour in (("kept", kept, SKY), ("filtered", dropped, GREY)):
        figure.add_trace(
            go.Histogram(x=values, name=name, marker_color=colour, nbinsx=36, opacity=0.85)
        )
    best = time.answers.refinerank
    figure.add_vline(x=best.score, line_color=SKY, line_width=2)
    figure.add_annotation(
        x=best.score, y=1, yref="paper", text="R1", showarrow=False, xshift=14, font_color=_INK
    )
    return figure.update_layout(barmode="stack")


def refinement(time: TimeGrounding) -> go.Figure:
    """Each candidate's original against its refined score; above the line refining pays."""
    rows = [row for row in time.candidates if row.refined_box is not None]
    figure = bare_figure("Original against refined", "original score s", "refined score s-hat")
    ends = [row.score_original for row in rows] + [row.score_refined for row in rows] or [0.0]
    line = [min(ends), max(ends)]
    figure.add_trace(
        go.Scatter(
            x=line,
            y=line,
            mode="lines",
            line={"color": _INK, "dash": "dot", "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    chosen = time.answers.refinerank.candidate_id
    for name, part, colour, size in (
        ("candidates", [row for row in rows if row.id != chosen], GREY, 6),
        ("answer", [row for row in rows if row.id == chosen], SKY, 11),
    ):
        figure.add_trace(
            go.Scatter(
                x=[row.score_original for row in part],
                y=[row.score_refined for row in part],
                customdata=[row.id + 1 for row in part],
                hovertemplate="#%{customdata}: %{x:.3f} to %{y:.3f}<extra></extra>",
                mode="markers",
                name=name,
                marker={"color": colour, "size": size, "line": {"width": 0}},
            )
        )
    return figure


def over_time(answer: Answer) -> go.Figure:
    """Score and margin of the answer over the requested times; IoU of each method with truth."""
    times = answer.grounding.times
    seconds = [time.frame_s for time in times]
    figure = bare_figure("Over time", "seconds", "score (logit)")
    best = [time.answers.refinerank for time in times]
    figure.add_trace(_line(seconds, [one.score for one in best], "score", SKY, "solid"))
    figure.add_trace(_line(seconds, [one.margin for one in best], "margin", GREY, "dot"))
    facts = [_overlaps(answer, k) for k in range(len(times))]
    if any(facts):
        for (name, tag), colour, dash in zip(
            _TAGS.items(), (SKY, YELLOW, GREEN), ("dash", "longdash", "dashdot"), strict=True
        ):
            values = [one.get(name) if one else None for one in facts]
            trace = _line(seconds, values, f"IoU {tag}", colour, dash)
            figure.add_trace(trace.update(yaxis="y2"))
        figure.update_layout(
            yaxis2={
                "overlaying": "y",
                "side": "right",
                "range": [-0.03, 1.03],
                "title": "IoU",
                "showgrid": False,
                "zeroline": False,
            }
        )
    return figure.update_layout(height=230)


def _overlaps(answer: Answer, k: int) -> dict[str, float | None]:
    time = answer.grounding.times[k]
    truth = answer.truth.get(time.frame_index)
    if truth is None:
        return {}
    return {name: overlap(getattr(time.answers, name).box, truth) for name in _TAGS}


def _line(x: Sequence[float], y: Sequence[float | None], name: str, colour: str, dash: str) -> Any:
    return go.Scatter(
        x=list(x),
        y=list(y),
        name=name,
        mode="lines+markers",
        line={"color": colour, "dash": dash, "width": 2},
        hovertemplate=f"%{{x:.3f}} s: %{{y:.3f}}<extra>{name}</extra>",
    )


def bare_figure(title: str, x: str, y: str) -> go.Figure:
    """A figure with a title and axes, nothing in it yet."""
    figure = go.Figure()
    figure.update_layout(
        title={"text": title, "font": {"size": 13}, "x": 0, "xref": "paper", "y": 0.97},
        template="none",
        font={"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 52, "r": 44, "t": 36, "b": 40},
        height=260,
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 1, "xanchor": "right"},
    )
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "linecolor": _GRID}
    figure.update_xaxes(title=x, **axis)
    figure.update_yaxes(title=y, **axis)
    return figure
