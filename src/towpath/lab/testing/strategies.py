"""The same streams, queries and workloads as Hypothesis strategies, so that a failure shrinks.

Hypothesis comes with the `dev` extra. It is imported when a strategy is made: the rest of `towpath.lab.testing` works
without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from towpath.lab.testing.drawing import random_streams
from towpath.lab.testing.edits import with_edits
from towpath.lab.testing.late import first_late_phase
from towpath.lab.testing.queries import MOST_QUERIES, random_shape
from towpath.lab.testing.recording import Recording
from towpath.lab.testing.shapes import Shape
from towpath.lab.testing.workload import Workload, counting, named, random_submission, with_carriers
from towpath.schema import Catalog

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def streams() -> SearchStrategy[Recording]:
    """Recorded streams in chunks."""
    from hypothesis import strategies as st

    return st.randoms(use_true_random=False).map(random_streams)


def queries(catalog: Catalog) -> SearchStrategy[str]:
    """SQL texts over the streams of a catalog."""
    from hypothesis import strategies as st

    return st.builds(Shape.text, _shapes(catalog), st.integers(0, 7), st.integers(0, 3))


def workloads() -> SearchStrategy[Workload]:
    """Streams and 1 to 40 queries, many of them variations of each other."""
    from hypothesis import strategies as st

    @st.composite
    def workload(draw: Any) -> Workload:
        recording = draw(streams())
        shapes = draw(st.lists(_shapes(recording.catalog), min_size=1, max_size=MOST_QUERIES // 2))
        random = st.randoms(use_true_random=False)
        calm = first_late_phase(recording)
        submission = random.map(lambda rng: random_submission(rng, shapes, recording, calm))
        drawn = draw(st.lists(submission, min_size=1, max_size=MOST_QUERIES))
        workload = Workload(recording, named(drawn) | counting(recording))
        return draw(random.map(lambda rng: with_carriers(rng, with_edits(rng, workload))))

    return workload()


def _shapes(catalog: Catalog) -> SearchStrategy[Shape]:
    from hypothesis import strategies as st

    return st.randoms(use_true_random=False).map(lambda rng: random_shape(rng, catalog))
