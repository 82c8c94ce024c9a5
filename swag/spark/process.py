"""The Python process that Spark runs tasks in, one after the other."""

import gc
import os

_tasks = 0  # that this process has begun


def begin() -> None:
    """To be called where a task begins."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None:  # else: not in a worker
        os.environ.setdefault("SWAG_THREADS", str(context.cpus()))  # one per core that the task was given
        set_apart()


def set_apart() -> None:
    """What is there for good is no longer looked at when garbage is collected.

    Spark collects after every task: with Numba and kernels loaded that took 50-100 ms of a core each time, as long as
    the task itself where a stream's triggers are short. A collection has just been, so what is set apart is in use,
    but for what this task has brought along; hence not with every one: the 1st, 2nd, 4th, 8th …
    """
    global _tasks
    _tasks += 1
    if _tasks & (_tasks - 1) == 0:
        gc.freeze()
