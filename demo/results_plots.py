"""The figures of the Results tab, for plotly."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from demo.plots import GREEN, GREY, SKY, YELLOW, bare_figure
from demo.results_read import AVERAGE, Bins, Card, Cell, Document, Ends, Evaluation, Options, Study
from demo.results_tables import method

ORANGE, PURPLE = "#E69F00", "#CC79A7"
_LINES = {
    "medvlm": (YELLOW, "diamond"),
    "medvlm_groundingdino": (GREEN, "square"),
    "refinerank": (SKY, "circle"),
    "joint": (GREY, "line-ew-open"),
}
_RUNS = (SKY, ORANGE, PURPLE, GREEN, GREY)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
_HEIGHT = 320


def figures(one: Document) -> dict[str, go.Figure]:
    """Every figure that a file can fill, by its name on the page."""
    content = one.content
    if isinstance(content, Study):
        found = {"methods": methods(content)}
        if content.videos:
            found["videos"] = videos(
                {
                    dataset: {video: cells.get("refinerank") for video, cells in mine.items()}
                    for dataset, mine in content.videos.items()
                },
                content.methods["refinerank"],
                content.intervals.get("methods", {}).get("refinerank", {}),
            )
        if content.reliability:
            found["reliability"] = reliability(content.reliability)
        if content.curves:
            found["curves"] = curves(
                {
                    f"seed {seed}" if run == "refinenet" else f"seed {seed}, {run}": losses
                    for seed, runs in content.curves.items()
                    for run, losses in runs.items()
                }
            )
        return found
    if isinstance(content, Evaluation):
        means = {
            name: Cell(mean=value)
            for name, value in (
                *content.strict.datasets.items(),
                (AVERAGE, content.strict.average),
            )
            if value is not None
        }
        return {
            "methods": scores(content),
            "videos": videos(content.videos, means, content.strict.intervals),
        }
    if isinstance(content, Options):
        return _of_options(content)
    return _of_card(content)


def _of_options(found: Options) -> dict[str, go.Figure]:
    figure = bare_figure("Mean IoU of each option", "", "mIoU")
    names = list(dict.fromkeys(name for cells in found.options.values() for name in cells))
    lines = dict(zip(found.options, _LINES, strict=False))
    for option, cells in found.options.items():
        _dots(figure, method(option), names, cells, None, lines.get(option, option))
    figures = {"methods": _categories(figure, names)}
    if found.calibration is not None:
        plot = bare_figure("Calibrated scores", "predicted IoU", "IoU reached")
        _diagonal(plot)
        styles = ((GREY, "dash"), (SKY, "solid"))
        for (words, bins), style in zip(found.calibration.bins.items(), styles, strict=False):
            add_bins(plot, bins, words, *style)
        figures["reliability"] = _below(plot)
    return figures


def _of_card(card: Card) -> dict[str, go.Figure]:
    return {"curves": curves({"RefineNet": card.losses})} if card.losses else {}


def methods(study: Study) -> go.Figure:
    """Mean IoU of each method on each data set with its 95 % interval, and the oracle."""
    figure = bare_figure("Mean IoU with 95 % intervals over videos", "", "mIoU")
    names = [*study.procedures, AVERAGE]
    for line, cells in study.methods.items():
        _dots(
            figure, method(line), names, cells, study.intervals.get("methods", {}).get(line), line
        )
    ends = study.intervals.get("oracle", {}).get("joint")
    _dots(figure, "Oracle", names, study.oracle["joint"], ends, "joint")
    return _categories(figure, names)


def scores(found: Evaluation) -> go.Figure:
    """One method under both ways of scoring."""
    figure = bare_figure("Mean IoU with 95 % intervals over videos", "", "mIoU")
    names = [*found.strict.datasets, AVERAGE]
    for words, side, line in (
        ("strict", found.strict, "refinerank"),
        ("leaderboard", found.leaderboard, "medvlm_groundingdino"),
    ):
        known = {**side.datasets, AVERAGE: side.average}
        cells = {name: Cell(mean=value) for name, value in known.items() if value is not None}
        _dots(figure, words, names, cells, side.intervals, line)
    return _categories(figure, names)


def _dots(
    figure: go.Figure,
    words: str,
    names: Sequence[str],
    cells: Mapping[str, Cell],
    ends: Mapping[str, Ends] | None,
    line: str,
) -> None:
    colour, symbol = _LINES.get(line, (GREY, "x"))
    shown = [name for name in names if name in cells]
    means = [cells[name].mean for name in shown]
    trace = go.Scatter(
        x=[names.index(name) + _shift(line) for name in shown],
        y=means,
        name=words,
        mode="markers",
        marker={
            "color": colour,
            "symbol": symbol,
            "size": 16 if line == "joint" else 9,
            "line": {"width": 2 if line == "joint" else 0, "color": colour},
        },
        hovertemplate="%{y:.3f}<extra>" + words + "</extra>",
    )
    if ends is not None:
        known = [ends.get(name) for name in shown]
        trace.update(
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [e.high - m if e else 0.0 for e, m in zip(known, means, strict=True)],
                "arrayminus": [m - e.low if e else 0.0 for e, m in zip(known, means, strict=True)],
                "color": colour,
                "thickness": 1.5,
                "width": 4,
            }
        )
    figure.add_trace(trace)


def _shift(line: str) -> float:
    """Where in its column a line stands, so that intervals do not lie on one another."""
    order = list(_LINES)
    return 0.16 * (order.index(line) - 1.5) if line in order else 0.0


def _categories(figure: go.Figure, names: Sequence[str]) -> go.Figure:
    figure.update_xaxes(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=[name.replace(" ", "<br>") for name in names],  # narrow screens would turn them
        tickangle=0,
        range=[-0.5, len(names) - 0.5],
    )
    figure.update_yaxes(range=[-0.02, 1.02])
    return _below(figure)


def videos(
    found: Mapping[str, Mapping[str, float | None]],
    means: Mapping[str, Cell],
    ends: Mapping[str, Ends],
) -> go.Figure:
    """Every video's mean IoU by data set, with the data set's mean and interval beside them."""
    figure = bare_figure("Each video; mean and 95 % interval beside", "", "mIoU of the video")
    names = list(found)
    for place, name in enumerate(names):
        known = {video: value for video, value in found[name].items() if value is not None}
        figure.add_trace(
            go.Scatter(
                x=[place - 0.06 + 0.28 * _spread(video) for video in known],
                y=list(known.values()),
                customdata=[[name, video] for video in known],
                mode="markers",
                marker={"color": SKY, "size": 8, "opacity": 0.75},
                hovertemplate="%{customdata[1]}: %{y:.3f}<extra></extra>",
                showlegend=False,
            )
        )
    known_ends = {name: ends.get(name) for name in names}
    shown = [name for name in names if name in means]
    figure.add_trace(
        go.Scatter(
            x=[names.index(name) - 0.38 for name in shown],
            y=[means[name].mean for name in shown],
            mode="markers",
            marker={"color": ORANGE, "symbol": "line-ew-open", "size": 16, "line": {"width": 3}},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [e.high - means[n].mean if (e := known_ends[n]) else 0.0 for n in shown],
                "arrayminus": [
                    means[n].mean - e.low if (e := known_ends[n]) else 0.0 for n in shown
                ],
                "color": ORANGE,
                "thickness": 1.5,
                "width": 4,
            },
            hovertemplate="mean %{y:.3f}<extra></extra>",
            showlegend=False,
        )
    )
    return _categories(figure, names)


def _spread(video: str) -> float:
    """A place between -1 and 1 that follows from the name, so that dots do not hide each other."""
    return zlib.crc32(video.encode()) % 1000 / 500 - 1


def reliability(found: Mapping[str, Mapping[str, Bins]]) -> go.Figure:
    """What the scores promise against what the boxes reach."""
    figure = bare_figure(
        "Do the scores mean what they say?", "predicted IoU (score)", "IoU reached"
    )
    _diagonal(figure)
    every = found.get("all", {})
    for name, words, colour, dash in (
        ("answers", "answers", SKY, "solid"),
        ("pool", "whole pool", GREY, "dash"),
    ):
        if name in every:
            add_bins(figure, every[name], words, colour, dash)
    return _below(figure)


def add_bins(figure: go.Figure, bins: Bins, words: str, colour: str, dash: str) -> None:
    """One line of a reliability plot; dots grow with the boxes in their bin."""
    rows = [
        (predicted, reached, count)
        for predicted, reached, count in zip(
            bins.predicted, bins.reached, bins.counts, strict=False
        )
        if predicted is not None and reached is not None
    ]
    most = max((count for _, _, count in rows), default=1)
    figure.add_trace(
        go.Scatter(
            x=[row[0] for row in rows],
            y=[row[1] for row in rows],
            customdata=[row[2] for row in rows],
            name=f"{words} (off by {bins.error:.3f})",
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"size": [6 + 10 * (row[2] / most) ** 0.5 for row in rows], "color": colour},
            hovertemplate="predicted %{x:.3f}, reached %{y:.3f}, %{customdata} boxes"
            "<extra></extra>",
        )
    )


def _diagonal(figure: go.Figure) -> None:
    figure.add_trace(
        go.Scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            line={"color": GREY, "dash": "dot", "width": 1},
            hoverinfo="skip",
            showlegend=False,
        )
    )
    figure.update_xaxes(range=[0, 1])
    figure.update_yaxes(range=[0, 1.02])


def curves(runs: Mapping[str, Sequence[float]]) -> go.Figure:
    """Mean training loss of each epoch."""
    figure = bare_figure("Training of RefineNet", "epoch", "mean loss")
    for place, (words, losses) in enumerate(runs.items()):
        figure.add_trace(
            go.Scatter(
                x=list(range(1, len(losses) + 1)),
                y=list(losses),
                name=words,
                mode="lines",
                line={
                    "color": _RUNS[place % len(_RUNS)],
                    "dash": _DASHES[place % len(_DASHES)],
                    "width": 2,
                },
                hovertemplate="epoch %{x}: %{y:.4f}<extra>" + words + "</extra>",
            )
        )
    return _below(figure)


def _below(figure: go.Figure) -> go.Figure:
    """The legend under the plot and its axis's title, where it has the whole width."""
    titled = bool(figure.layout.xaxis.title.text)
    legend: dict[str, Any] = {"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "top"}
    return figure.update_layout(
        height=_HEIGHT,
        legend=legend | {"y": -0.34 if titled else -0.26},
        margin={"b": 96 if titled else 88},
    )
