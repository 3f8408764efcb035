"""The experiments of Zhou et al., section 4, on the simulator."""

from __future__ import annotations

from towpath.lab.reproduce.report import Experiment
from towpath.lab.reproduce.zhou.fig4 import fig4
from towpath.lab.reproduce.zhou.fig5 import fig5
from towpath.lab.reproduce.zhou.fig6 import fig6

EXPERIMENTS: dict[str, Experiment] = {"zhou-fig4": fig4, "zhou-fig5": fig5, "zhou-fig6": fig6}
