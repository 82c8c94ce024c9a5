"""How far a long evaluation is: a line, on a terminal or in a notebook, once it has taken two seconds.

A terminal writes over a line of stderr. A notebook keeps all that was ever written there, and a minute would fill pages
of what is saved or exported; so it is shown an output of the cell instead, which the next one takes the place of.
"""

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kernels.compile.notice import is_watched
from swag.errors import BadQuery

SILENT_SECONDS = 2.0  # seconds without a word
LINE_SECONDS = 0.2  # seconds from one line to the next

_shown = threading.Lock()  # one line at a time: what runs inside another evaluation says nothing


@dataclass
class Progress:
    """Owns how much there is to do, once that is known, and how much is done; any thread may count."""

    total: int = 0
    done: int = 0

    def line(self, seconds: float) -> str:
        share = f"{100 * min(self.done, self.total) // self.total} %, " if self.total else ""
        return f"swag: evaluating, {share}{seconds:.0f} s"


@contextmanager
def shown(wanted: bool | None) -> Iterator[Progress]:
    """The progress of what is done inside. wanted: None, where somebody watches."""
    if wanted is not None and not isinstance(wanted, bool):
        raise BadQuery(f"progress={wanted!r} is neither True nor False nor None.", "progress=False")
    progress = Progress()
    if not (is_watched() if wanted is None else wanted) or not _shown.acquire(blocking=False):
        yield progress
        return
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(progress, over), daemon=True)
    teller.start()
    try:
        yield progress
    finally:
        over.set()
        teller.join()
        _shown.release()


def _tell(progress: Progress, over: threading.Event) -> None:
    """In a thread: after some patience, keep the line of progress up to date, until it is over."""
    started = time.monotonic()
    if over.wait(SILENT_SECONDS):
        return
    line = NotebookLine() if in_notebook() else TerminalLine()
    while True:
        line.say(progress.line(time.monotonic() - started))
        if over.wait(LINE_SECONDS):
            line.end(time.monotonic() - started)
            return


def in_notebook() -> bool:
    """Is this the kernel of a notebook? A prompt of IPython's on a terminal is none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class TerminalLine:
    """A line on stderr that is written over, and wiped out at the end. Owns what it says."""

    def __init__(self) -> None:
        self.said = ""

    def say(self, said: str) -> None:
        self._write(f"\r{said}{' ' * (len(self.said) - len(said))}")
        self.said = said

    def end(self, seconds: float) -> None:
        self._write(f"\r{' ' * len(self.said)}\r")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError, AttributeError):  # closed meanwhile, or none at all
            sys.stderr.write(text)
            sys.stderr.flush()


class NotebookLine:
    """An output of a cell that changes, and says at the end how long it was. Owns the handle by which it does so."""

    def __init__(self) -> None:
        self.handle: Any = importlib.import_module("IPython.display").DisplayHandle()
        self.show = self.handle.display

    def say(self, said: str) -> None:
        with suppress(Exception):  # whoever shows it has gone: that is no reason to stop
            self.show({"text/plain": said}, raw=True)
        self.show = self.handle.update

    def end(self, seconds: float) -> None:
        self.say(f"swag: evaluated in {seconds:.0f} s")
