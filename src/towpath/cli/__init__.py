"""The command line: `towpath COMMAND`, one file per command."""

from __future__ import annotations

from towpath.cli.app import main

__all__ = ["main"]
