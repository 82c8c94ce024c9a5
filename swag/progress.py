"""How far a long evaluation is: a line on stderr, on a terminal or in a notebook, once it has taken two seconds."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
    """In a thread: after some patience, keep the line of progress on stderr up to date, and wipe it out once over."""
    started, line = time.monotonic(), ""
    if over.wait(SILENT_SECONDS):
        return
    while True:
        said = progress.line(time.monotonic() - started)
        _write(f"\r{said}{' ' * (len(line) - len(said))}")
        line = said
        if over.wait(LINE_SECONDS):
            _write(f"\r{' ' * len(line)}\r")
            return


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # closed meanwhile, or none at all
        pass
