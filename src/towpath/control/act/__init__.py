"""Carries decisions out: the engine and what goes on beside it."""
