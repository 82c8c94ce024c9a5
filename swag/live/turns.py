"""Who may use an engine at the same time: those that only look may do so beside each other, who changes it is alone.

looking      |--------|   |-----|      |-------|          whoever waits while another changes something
  looking       |-----------|          |-----|            is let in before the next one may change anything,
changing                     |--------|        |----|     and the other way round: nobody waits for two
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class NotAlone(Exception):
    """Something has to be changed before an answer can be given: it is asked for again, alone."""


_here = threading.local()  # .looking: how many engines this thread looks at


def require_alone() -> None:
    """To be called before anything is changed on the way to an answer."""
    if getattr(_here, "looking", 0):
        raise NotAlone


class Turns:
    """It owns who is inside. Asked of it: to be let in, `beside` others or `alone`.

    Who is alone may come in again, as either; who is beside others may come in again beside them.
    """

    def __init__(self, shared: bool = True) -> None:
        """shared: False, where nobody may look beside others."""
        self._shared = shared
        self._guard = threading.Condition(threading.Lock())
        self._own = threading.local()  # .looking: does this thread look?
        self._inside = 0  # how many look
        self._owner: int | None = None  # the thread that is alone
        self._to_look, self._to_change = 0, 0  # how many wait
        self._let_in = 0  # of those that wait to look: how many come before anybody changes anything
        self._changes = 0

    @contextmanager
    def alone(self) -> Iterator[None]:
        """May change anything."""
        me = threading.get_ident()
        if self._owner == me:
            yield
            return
        with self._guard:
            if self._owner is not None or self._inside or self._let_in:
                self._wait_to_change()
            self._owner = me
        try:
            yield
        finally:
            with self._guard:
                self._owner, self._let_in = None, self._to_look
                self._changes += 1
                if self._to_look or self._to_change:
                    self._guard.notify_all()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """May look; what has to be changed for that raises NotAlone (`require_alone`)."""
        if self._owner == threading.get_ident() or getattr(self._own, "looking", False):
            yield
            return
        if not self._shared:
            raise NotAlone
        with self._guard:
            if self._owner is not None or self._to_change:
                self._wait_to_look()
            self._inside += 1
        self._own.looking, _here.looking = True, getattr(_here, "looking", 0) + 1
        try:
            yield
        finally:
            self._own.looking, _here.looking = False, _here.looking - 1
            with self._guard:
                self._inside -= 1
                if not self._inside and self._to_change:
                    self._guard.notify_all()

    def _wait_to_change(self) -> None:
        self._to_change += 1
        try:
            while self._owner is not None or self._inside or self._let_in:
                self._guard.wait()
        finally:  # also where somebody has lost patience
            self._to_change -= 1
            self._guard.notify_all()

    def _wait_to_look(self) -> None:
        """Until nobody is alone inside; who waits to change something goes first, but only one of them."""
        before = self._changes
        self._to_look += 1
        try:
            while self._owner is not None or (self._to_change and self._changes == before):
                self._guard.wait()
        finally:
            self._to_look -= 1
            if self._changes != before and self._let_in:
                self._let_in -= 1
                if not self._let_in:
                    self._guard.notify_all()


def alone(method: Callable[P, R]) -> Callable[P, R]:
    """A method of what has `turns`, for one thread at a time: nobody sees half of a batch, and no batch is taken
    between the halves of another."""

    @wraps(method)
    def locked(*args: P.args, **options: P.kwargs) -> R:
        owner: Any = args[0]
        with owner.turns.alone():
            return method(*args, **options)

    return locked


def beside(method: Callable[P, R]) -> Callable[P, R]:
    """The same, for threads that only look: beside each other, unless something has to be made ready for the answer.

    It may then run twice, with the same arguments, so none of these may be something that can be read once only."""

    @wraps(method)
    def shared(*args: P.args, **options: P.kwargs) -> R:
        """The method beside others that look; alone, from its start, if something has to be changed first."""
        owner: Any = args[0]
        try:
            with owner.turns.beside():
                return method(*args, **options)
        except NotAlone:
            pass
        with owner.turns.alone():
            return method(*args, **options)

    return shared
