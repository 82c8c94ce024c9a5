"""How many examples a property is tried with: a share of the profile's (tests/conftest.py): all grow together."""

from hypothesis import settings


def share(percent: int) -> int:
    """Of the profile's examples so many per cent; one at least."""
    return max(1, settings.default.max_examples * percent // 100)
