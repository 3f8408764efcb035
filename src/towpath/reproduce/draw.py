"""Plots as SVG or PNG. Without pyplot, so nothing is shared between two plots and no display is needed."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from towpath.reproduce.report import Bars, Lines, Plot

SIZE = (7.0, 4.0)  # inches


def figure(plot: Plot) -> Figure:
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
