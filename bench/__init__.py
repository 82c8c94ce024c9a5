"""How fast it is: one file per question, run by `python -m bench`; numbers are generated, never typed."""

from bench.cli import main

__all__ = ["main"]
