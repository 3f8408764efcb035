"""The demonstration: a made-up auction market, many standing queries over it, and the check of every answer."""

from __future__ import annotations
