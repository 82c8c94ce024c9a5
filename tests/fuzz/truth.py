"""What an engine must say while anything is registered, taken back and appended: the oracle, kept up step by step."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from tests import oracle, oracle_ticks
from tests.fuzz.asking import WHERE, Ask, Expected, expected, simple

Tick = tuple[Any, ...]  # tick, ts, [key], value


@dataclass
class Told:
    """A query as it was registered. `before`: how many events had been applied then, `held`: which ones waited,
    `decided`: the ticks that were. `counted_from`: chosen events are counted since somebody first read them; None: some
    waited then, and nobody knows which of those were chosen."""

    ask: Ask
    before: int
    held: list[dict[str, Any]]
    counted_from: int | None = 0
    decided: set[Tick] = field(default_factory=set)
    ticks: list[Tick] = field(default_factory=list)  # that the engine gave


class Truth:
    """Every event that was taken, and every query that is registered."""

    def __init__(self, key: str | None, lateness: int | None, hold: bool = True) -> None:
        self.key = key
        self.stream = oracle_ticks.Stream(key, lateness, [], together=False, hold=hold)
        self.engine = oracle.Engine(key, lateness, hold)
        self.told: dict[str, Told] = {}

    # -- queries ------------------------------------------------------------------------------------------------------

    def register(self, name: str, ask: Ask) -> None:
        told = Told(ask, len(self.stream.applied), list(self.stream.held))
        if ask.source is not None:
            told.counted_from = None if told.held else told.before
            sharing = [other for other in self.told.values() if other.ask.source == ask.source]
            told.counted_from = sharing[0].counted_from if sharing else told.counted_from
        told.decided = {tick[:-1] for tick in self.ticks(told)} if ask.every else set()
        self.told[name] = told
        self._judge()

    def unregister(self, name: str) -> None:
        del self.told[name]
        self._judge()

    def _judge(self) -> None:
        """How events are judged depends on who counts them."""
        frequencies = [told.ask.every for told in self.told.values() if told.ask.every is not None]
        self.stream.slots = sorted({every.time for every in frequencies if every.time is not None})
        self.stream.together = self.key is None or any(not every.per_key for every in frequencies)

    # -- events -------------------------------------------------------------------------------------------------------

    def append(self, events: list[dict[str, Any]]) -> int | None:
        """How many of them are taken; None if all of them are refused."""
        before = copy.copy(self.stream)
        before.applied, before.held = list(self.stream.applied), list(self.stream.held)
        taken = []
        for event in events:
            if self.stream.arrive(event):
                taken.append(event)
            elif self.stream.lateness is None:
                self.stream = before
                return None
        self.engine.taken += taken
        self.engine.late += len(events) - len(taken)
        self.engine.now = max(self.engine.now, self.stream.now)
        return len(taken)

    def advance(self, time: int) -> None:
        self.stream.advance(time)
        self.engine.advance(time)

    # -- answers ------------------------------------------------------------------------------------------------------

    def answer(self, ask: Ask, key: Any = None, at: int | None = None) -> Expected:
        seen = copy.copy(self.engine)
        if ask.source is not None:  # which is decided at the watermark, whoever else waits
            seen.hold = True
            seen.taken = [event for event in seen.taken if WHERE[ask.source](event)]
        return expected(ask, lambda query: seen.window(query, key, at))

    def ticks(self, told: Told) -> list[Tick]:
        """All that are decided so far."""
        stream, ask = copy.copy(self.stream), told.ask
        if ask.source is not None:
            since = (told.counted_from or 0) if ask.every is not None and ask.every.rows is not None else 0
            stream.applied = [event for event in stream.applied[since:] if WHERE[ask.source](event)]
        assert ask.every is not None
        return oracle_ticks.ticks([simple(ask)], ask.every, stream.applied, self.key, stream.last(ask.every))

    def whole(self, told: Told, tick: Tick) -> bool:
        """Was every event of its window applied after the query was registered?"""
        if told.counted_from is None and told.ask.every is not None and told.ask.every.rows is not None:
            return False
        new = {id(event) for event in self.stream.applied[told.before :]}
        window = self._window(told, tick)
        return told.before == 0 or (isinstance(told.ask.window, oracle.Range) and all(id(e) in new for e in window))

    def saw_held(self, told: Told, tick: Tick) -> bool:
        """Is there an event in its window that waited when the query was registered? Nobody may have read it all."""
        held = {id(event) for event in told.held}
        return any(id(event) in held for event in self._window(told, tick))

    def _window(self, told: Told, tick: Tick) -> list[dict[str, Any]]:
        past = oracle.substream(self.stream.applied, self.key, tick[2] if self.key else None)
        past = [e for e in past if e["ts"] <= tick[1] and (told.ask.source is None or WHERE[told.ask.source](e))]
        return oracle.window_events(past, told.ask.window, tick[1])
