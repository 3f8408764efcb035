"""Who asks an endpoint does not turn the sessions of others into remote ones."""

from __future__ import annotations

import os
import threading
from typing import cast

from pyspark.sql import SparkSession

from towpath.spark.modes import _SWITCH, functions_of, own_spark


class Remote:
    __module__ = "pyspark.sql.connect.session"


def test_a_session_of_our_own_waits_for_an_endpoint_that_hangs() -> None:
    asked, answered, seen = threading.Event(), threading.Event(), []

    def ask() -> None:
        with functions_of(cast(SparkSession, Remote())):
            asked.set()
            answered.wait(10)

    def build() -> None:
        with own_spark():
            seen.append(_SWITCH in os.environ)

    asking = threading.Thread(target=ask)
    asking.start()
    assert asked.wait(10) and _SWITCH in os.environ
    building = threading.Thread(target=build)
    building.start()
    building.join(0.2)
    assert seen == []
    answered.set()
    for thread in (asking, building):
        thread.join(10)
    assert seen == [False]
