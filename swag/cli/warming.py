"""`swag warm`: everything is compiled, on all cores; and the same for the demo's own job."""

import os
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kernels.compile import ahead, notice
from kernels.compile.folder import cache_folder
from swag.cli.warm_jobs import everything


def show() -> None:
    """`swag warm` on a terminal: where compiled kernels are kept, how many were compiled, and how long that took."""
    console = Console(highlight=False)
    console.print(f"compiling all kernels into {cache_folder()}")
    started = time.perf_counter()
    count = compile_for(everything, console)
    if count:
        console.print(f"{count} kernels compiled in {time.perf_counter() - started:.0f} s.")
    else:
        console.print("Nothing was left to compile.")


def compile_for(rehearse: Callable[[], Any], console: Console) -> int:
    """Compile what a job needs, on all cores, with progress; returns how many kernels that were."""
    notice.quiet = True  # the bar says it
    helpers = ahead.start(rehearse, max(1, os.cpu_count() or 1))
    if not helpers:  # no processes can be started here: this one compiles what it runs
        rehearse()
        return 0
    done = 0
    columns = (TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("looking for kernels to compile", total=None)

        def compiled(total: int, name: str) -> None:
            nonlocal done
            done += bool(name)
            words = "compiling kernels (once for this machine)"
            progress.update(task, total=max(total, done), completed=done, description=words)

        try:
            ahead.wait(helpers, compiled)
        finally:
            ahead.stop(helpers)
    return done
