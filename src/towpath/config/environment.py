"""`${NAME}` in a text of a job file: what the environment has by that name, looked up where it is used.

So neither the job file, nor the journal, nor a message has it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def unset(texts: Iterable[str]) -> list[str]:
    """The names that the environment does not have."""
    return sorted({name for text in texts for name in _VARIABLE.findall(text) if name not in os.environ})


def revealed(text: str) -> str:
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)
