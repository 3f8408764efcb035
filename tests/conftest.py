"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# No test asserts a time: on a busy machine an example that usually takes a millisecond takes a second now and then.
settings.register_profile("towpath", deadline=None)
settings.load_profile("towpath")
