"""Plots as SVG or PNG. Without pyplot, so nothing is shared between two plots and no display is needed."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from towpath.lab.reproduce.report import Bars, Lines, Plot, Topologies, TopologyPicture

SIZE = (7.0, 4.0)  # inches
PICTURE = 2.4  # of each side of a topology


def figure(plot: Plot) -> Figure:
    return _topologies(plot) if isinstance(plot, Topologies) else _chart(plot)


def _chart(plot: Lines | Bars) -> Figure:
    drawn = Figure(figsize=SIZE, layout="constrained")
    axes = drawn.add_subplot()
    axes.set_title(plot.title)
    axes.set_ylabel(plot.y_label)
    if isinstance(plot, Lines):
        _lines(axes, plot)
    else:
        _bars(axes, plot)
    if len(plot.series) > 1:
        axes.legend()
    axes.grid(alpha=0.3)
    return drawn


def svg(plot: Plot) -> str:
    """As an element to put into a page; the same plot gives the same text."""
    text = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": plot.title}):
        figure(plot).savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def save(plot: Plot, file: Path) -> None:
    """In the format that the file's name ends with."""
    if file.suffix == ".svg":
        file.write_text(svg(plot), encoding="utf-8")
    else:
        figure(plot).savefig(file, metadata={"Software": None})


def _lines(axes: Axes, plot: Lines) -> None:
    axes.set_xlabel(plot.x_label)
    marker = "o" if all(len(series.x) <= 12 for series in plot.series) else None
    for series in plot.series:
        if series.spread:
            axes.errorbar(series.x, series.y, yerr=series.spread, label=series.name, marker=marker, capsize=3)
        else:
            axes.plot(series.x, series.y, label=series.name, marker=marker)
    if plot.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _bars(axes: Axes, plot: Bars) -> None:
    places = np.arange(len(plot.groups))
    width = 0.8 / len(plot.series)
    for n, series in enumerate(plot.series):
        offset = (n - (len(plot.series) - 1) / 2) * width
        axes.bar(places + offset, series.y, width, yerr=series.spread or None, label=series.name, capsize=3)
    axes.set_xticks(places, plot.groups)


def _topologies(plot: Topologies) -> Figure:
    rows = -(-len(plot.pictures) // plot.columns)
    drawn = Figure(figsize=(PICTURE * plot.columns, PICTURE * rows), layout="constrained")
    drawn.suptitle(plot.title)
    for number, picture in enumerate(plot.pictures, start=1):
        _topology(drawn.add_subplot(rows, plot.columns, number), picture)
    return drawn


def _topology(axes: Axes, picture: TopologyPicture) -> None:
    """Sources as circles around the nodes, which are triangles: green, yellow or red by their stress."""
    at = {**_ring([s[0] for s in picture.sources], 1.0), **_ring([n[0] for n in picture.nodes], 0.5)}
    axes.set_title(picture.title, fontsize="small")
    axes.set_axis_off()
    axes.set_aspect("equal")
    for one, other, width in picture.links:
        (x1, y1), (x2, y2) = at[one], at[other]
        between = one in {node[0] for node in picture.nodes}
        axes.plot([x1, x2], [y1, y2], color="C3" if between else "0.6", linewidth=0.3 + 2.5 * width, zorder=1)
    for name, size in picture.sources:
        axes.scatter(*at[name], s=10 + 80 * size, color="C0", zorder=2)
    for name, size, stress in picture.nodes:
        colour = mpl.colormaps["RdYlGn_r"](stress)
        axes.scatter(*at[name], s=10 + 140 * size, marker="^", color=[colour], edgecolors="0.3", zorder=3)


def _ring(names: Sequence[str], radius: float) -> dict[str, tuple[float, float]]:
    angles = 2 * np.pi * np.arange(len(names)) / max(len(names), 1)
    return {name: (radius * float(np.cos(a)), radius * float(np.sin(a))) for name, a in zip(names, angles, strict=True)}
