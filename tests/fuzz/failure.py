"""A failure: how it is told from others, and the script that shows it again."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.target import Hung, Target, Wrong

ROOT = Path(__file__).parents[2]
LIBRARY = ("swag", "frames", "kernels")
VOCABULARY = """\
import os, sys
sys.path.insert(0, os.getcwd())
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from tests.fuzz.asking import Ask, Of
from tests.oracle import Range, Rows
from tests.oracle_ticks import Every
"""


@dataclass(frozen=True)
class Failure:
    """`place`: by which it is known. `script`: Python that fails while the fault is there."""

    target: str
    place: str
    message: str
    script: str
    is_slow: bool = False

    @property
    def size(self) -> tuple[int, str]:
        return len(self.script), self.script

    @property
    def file_name(self) -> str:
        return f"{self.target}_{re.sub(r'[^a-z0-9]+', '_', self.place.lower()).strip('_')[:80]}.py"


def failure_of(target: Target, why: BaseException, replay: str, calls: list[str]) -> Failure:
    message = f"{type(why).__name__}: {why}"
    text = script(target.name, message, replay, calls)
    return Failure(target.name, place_of(why), message, text, isinstance(why, Hung))


def crash_of(target: str, what: str, replay: str) -> Failure:
    """A process that died, or would not end, has no exception."""
    return Failure(target, f"{what} in {target}", what, script(target, what, replay, []))


def place_of(why: BaseException) -> str:
    """The topic of a wrong answer; of an error its type and the innermost line of the library, or else of the tests."""
    if isinstance(why, Wrong):
        return why.topic
    frames = [(_relative(f.filename), f.lineno) for f in traceback.extract_tb(why.__traceback__)]
    inside = [f for f in frames if f[0].split("/")[0] in LIBRARY]
    among = inside or [f for f in frames if f[0].startswith("tests/")] or frames or [("nowhere", 0)]
    return f"{type(why).__name__} at {among[-1][0]}:{among[-1][1]}"


def _relative(path: str) -> str:
    return Path(path).relative_to(ROOT).as_posix() if Path(path).is_relative_to(ROOT) else path


def script(target: str, message: str, replay: str, calls: list[str]) -> str:
    """`replay`: the statements that fail."""
    said = message.replace("\\", "\\\\").replace('"""', "'''")
    told = "".join(f"#     {line}\n" for call in calls for line in call.split("\n"))
    told = f"# In calls of the library:\n{told}\n" if calls else ""
    return (
        f'"""{said}\n\nFound by `python -m tests.fuzz --only {target}`. Fails while the fault is there; '
        f'run it from the root of the repository.\n"""\n\n{told}{VOCABULARY}\n{replay}\n'
    )


def replay_of(target: Target, drawn: dict[str, Any]) -> str:
    """The call that fails again."""
    if target.plain:
        module, name = target.check.__module__, target.check.__name__
        return f"from {module} import {name}\n\n{name}({drawn['case']!r})"
    from hypothesis import __version__
    from hypothesis.control import current_build_context
    from hypothesis.core import encode_failure

    choices = encode_failure(current_build_context().data.choices)
    return f"from tests.fuzz.hunt import replay\n\nreplay({target.name!r}, {__version__!r}, {choices!r})"
