"""Problems from files and from generators, and back to files."""

from __future__ import annotations

from towpath.problems.dump import dump, write
from towpath.problems.file import load

__all__ = ["dump", "load", "write"]
