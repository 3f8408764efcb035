"""The steps of moving a fragment from one node to another while data flows. A table: nothing here decides or does.

    warming --ready--> fenced --passed--> draining --drained--> done
       |                |  ^ \\
       |                |  +--missed (a later fence)
       +----abandon-----+--------------> abandoned

- *Warming*: the target is in its carrier's table, beside the source. It is ready when a micro-batch has confirmed it
  and it has read about as far as the source.
- *Fenced*: a fence T is written down, ahead of everything both have read. Whoever follows the results holds back what
  the source emits from T on. Then the source's table gets a new version, which changes nothing: the first micro-batch
  that reports it shows how far the batches before had come.
    - *Passed*: below T. Nobody has been given a result of T or later, so from T on the results are the target's.
    - *Missed*: not below T. Nothing was changed, so what was held back is released and a later fence is tried.
- *Draining*: the source stays in its table until it has seen everything that its results before T are made of.

State is never copied, the source never stops emitting, and up to the fence everything can be abandoned. Results before
T are the source's, the others the target's, whichever of the two emitted both: a reader picks by event time.
"""

from __future__ import annotations

from enum import StrEnum

from towpath.errors import TowpathError


class MoveStep(StrEnum):
    WARMING = "warming"
    FENCED = "fenced"
    DRAINING = "draining"
    DONE = "done"
    ABANDONED = "abandoned"


class MoveEvent(StrEnum):
    READY = "ready"
    PASSED = "passed"
    MISSED = "missed"
    DRAINED = "drained"
    ABANDON = "abandon"


TRANSITIONS: dict[tuple[MoveStep, MoveEvent], MoveStep] = {
    (MoveStep.WARMING, MoveEvent.READY): MoveStep.FENCED,
    (MoveStep.FENCED, MoveEvent.PASSED): MoveStep.DRAINING,
    (MoveStep.FENCED, MoveEvent.MISSED): MoveStep.FENCED,
    (MoveStep.DRAINING, MoveEvent.DRAINED): MoveStep.DONE,
    (MoveStep.WARMING, MoveEvent.ABANDON): MoveStep.ABANDONED,
    (MoveStep.FENCED, MoveEvent.ABANDON): MoveStep.ABANDONED,
}

OPEN = frozenset({MoveStep.WARMING, MoveStep.FENCED, MoveStep.DRAINING})
UNDECIDED = frozenset({MoveStep.WARMING, MoveStep.FENCED})


def after(step: MoveStep, event: MoveEvent) -> MoveStep:
    try:
        return TRANSITIONS[step, event]
    except KeyError:
        raise TowpathError(f"a move that is {step} cannot be {event}") from None
