"""Sessions of both kinds in one process: those of its own Spark, and those of endpoints.

PySpark asks the environment, not the session, which kind is meant. So whoever needs an answer sets it, one at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_SWITCH = "SPARK_CONNECT_MODE_ENABLED"
_switching = threading.Lock()


@contextmanager
def own_spark() -> Iterator[None]:
    """Within this, PySpark's builder makes a session of this process's Spark, whatever endpoints are asked for."""
    with _switching:
        yield


@contextmanager
def functions_of(session: SparkSession) -> Iterator[None]:
    """Within this, pyspark.sql.functions makes expressions for this kind of session."""
    with _switching:
        if is_remote(session):
            os.environ[_SWITCH] = "1"
        try:
            yield
        finally:
            os.environ.pop(_SWITCH, None)


def is_remote(session: SparkSession) -> bool:
    return type(session).__module__.startswith("pyspark.sql.connect.")
