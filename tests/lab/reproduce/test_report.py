from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from towpath.errors import UnknownNameError
from towpath.lab.reproduce import Bars, ExperimentReport, Lines, Plot, Series, Statement, Table, available, get, help_of
from towpath.lab.reproduce.draw import save, svg
from towpath.lab.reproduce.page import ExperimentRun, number, page, verdict
from towpath.lab.reproduce.report import confidence_interval

PLOTS: tuple[Plot, ...] = (
    Lines(
        "lines & more", "x", "y", (Series("a", (1.0, 2.0), (0.0, 1.0)), Series("b", (2.0, 1.0), (0.0, 1.0), (0.1, 0.2)))
    ),
    Bars("bars", "y", ("one", "two"), (Series("a", (1.0, 2.0)), Series("b", (2.0, 1.0), spread=(0.1, 0.1)))),
)
REPORT = ExperimentReport(
    statements=(Statement.over("a < b", "2", [1.0, 3.0], lambda mean: abs(mean) < 100),),
    tables=(Table("a table", ("name", "value"), (("<x>", 1234.5), ("y", 0.125))),),
    plots=PLOTS,
    scaled_down=("Less of it.",),
)


def test_every_experiment_says_what_it_is_about() -> None:
    names = available()
    assert {"dcape-connections", "dcape-fig5", "dcape-fig6", "dcape-manager"} <= set(names)
    assert all(help_of(experiment) for experiment in names.values())


def test_a_wrong_name_is_answered_with_the_right_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"no experiment 'dcape'; .*dcape-fig5"):
        get("dcape")


def test_a_statement_has_mean_spread_and_verdict() -> None:
    (statement,) = REPORT.statements
    assert (statement.ours, statement.spread, statement.holds) == (2.0, pytest.approx(2**0.5), True)
    assert Statement.exact("", "", 1.0, lambda value: value > 1) == Statement("", "", 1.0, 0.0, False)


def test_what_noise_could_have_given_is_undecided() -> None:
    """By hand: 1.1, 1.2, 1.3 have the mean 1.2, the deviation 0.1 and t = 4.303, so the interval is 1.2 +- 0.248."""
    values = [1.1, 1.2, 1.3]
    assert confidence_interval(values) == pytest.approx((0.9516, 1.4484), abs=1e-4)

    def decided(holds: Callable[[float], bool]) -> bool | None:
        return Statement.over("", "", values, holds).holds

    assert decided(lambda ratio: ratio > 0.95) is True
    assert decided(lambda ratio: ratio > 0.96) is None
    assert decided(lambda ratio: ratio > 1.44) is None
    assert decided(lambda ratio: ratio > 1.45) is False
    assert decided(lambda ratio: abs(ratio - 1.2) < 0.2) is None, "only the middle is inside"
    assert decided(lambda ratio: abs(ratio - 1.0) < 0.01) is None, "neither the mean nor the ends are inside"
    assert decided(lambda ratio: abs(ratio - 0.5) < 0.3) is False


def test_one_seed_decides_nothing() -> None:
    assert Statement.over("", "", [5.0], lambda ratio: ratio > 1).holds is None


@pytest.mark.parametrize(
    ("holds", "words"), [(True, "holds"), (False, "does not hold"), (None, "undecided")], ids=["yes", "no", "open"]
)
def test_verdicts_in_words(holds: bool | None, words: str) -> None:
    assert verdict(Statement("", "", 1.0, 0.0, holds)) == words


def test_seeds_that_agree_decide() -> None:
    assert Statement.over("", "", [5.0, 5.0], lambda ratio: ratio > 5).holds is False


def test_the_summary_is_one_line_of_json() -> None:
    summary = REPORT.summary("x", "default", 2, 1.26)
    assert json.loads(json.dumps(summary)) == {
        "experiment": "x",
        "scale": "default",
        "seeds": 2,
        "seconds": 1.3,
        "statements": [{"claim": "a < b", "paper": "2", "ours": 2.0, "spread": 2**0.5, "holds": True}],
    }


@pytest.mark.parametrize("plot", PLOTS, ids=["lines", "bars"])
def test_plots_are_the_same_every_time(plot: Plot, tmp_path: Path) -> None:
    assert ElementTree.fromstring(svg(plot)).tag.endswith("svg")
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        save(plot, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_the_page_needs_nothing_else() -> None:
    text = page([ExperimentRun("x", "about <it>", "default", 2, 3.0, REPORT)])
    assert text.count("<svg") == 2
    assert "about &lt;it&gt;" in text and "&lt;x&gt;" in text and "<x>" not in text
    assert "1 of 1" in text and "Less of it." in text
    assert not any(word in text for word in ("<script", "<link", "<img", "@import"))


@pytest.mark.parametrize(
    ("cell", "text"), [(0.12345, "0.1235"), (1234.5, "1,234"), (12, "12"), ("a", "a"), (2e6, "2,000,000")]
)
def test_numbers_for_people(cell: float | str, text: str) -> None:
    assert number(cell) == text
