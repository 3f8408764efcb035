"""Faults on purpose: real processes killed, paused and starved while queries run."""
