"""What an engine says, compared with the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

import swag as sw
from tests.fuzz import clocks
from tests.fuzz.asking import Ask, Expected, Of, aggregates_of, is_same
from tests.fuzz.target import wrong
from tests.fuzz.truth import Truth
from tests.oracle import Rows


class Compared:
    """An engine and the truth. An answer is compared wherever the engine says that it is complete."""

    def __init__(self, engine: sw.Engine, truth: Truth, clock: str) -> None:
        self.engine, self.truth, self.clock = engine, truth, clock

    @property
    def key(self) -> str | None:
        return self.truth.key

    def same_value(self, name: str, key: Any, at: int | None, found: Any, by: str = "lookup") -> None:
        ask, found = self.truth.told[name].ask, clocks.number(found, self.clock)
        if not self._is_complete(name, at):
            return
        want = self.truth.answer(ask, key, at)
        if ask.having is not None:
            if want.passes is None:
                return
            if not (want.present and want.passes):
                want = Expected(None, 0.0, want.present, False)
        if by == "filters" and isinstance(want.value, int) and isinstance(found, float):
            want = replace(want, value=float(want.value))  # beside floats, as long as nothing is lost by it
        if not is_same(want, found):
            raise wrong(f"{by}: {self._about(name)}", f"{name} of {key!r} at {at}: {found!r}, expected {want.value!r}")

    def same_table(self, name: str, at: int | None, table: pa.Table, by: str = "lookup") -> None:
        """Of every key that is in the answer."""
        if not self._is_complete(name, at):
            return
        keys = table[self.key].to_pylist()
        for key, value in zip(keys, table["value"].to_pylist(), strict=True):
            self.same_value(name, key, at, value, by)
        self._same_keys(by, {name: self.truth.told[name].ask}, at, keys)

    def _same_keys(self, by: str, asked: dict[str, Ask], at: int | None, found: list[Any]) -> None:
        if self.key is None or not all(self._is_complete(name, at) for name in asked):
            return
        if len(set(found)) != len(found):
            raise wrong(f"{by}: a key comes twice", str(found))
        for key in "abcd":
            answers = [(ask, self.truth.answer(ask, key, at)) for ask in asked.values()]
            there = [want.present and (ask.having is None or want.passes) for ask, want in answers]
            if None not in there and any(there) != (key in found):
                about = " and ".join(self._about(name) for name in asked) if len(asked) == 1 else "several"
                raise wrong(f"{by}: keys of {about}", f"{asked} at {at}: {found}, {key!r} expected: {any(there)}")

    def same_ticks(self, name: str) -> None:
        told = self.truth.told[name]
        expected = {t[:-1]: t[-1] for t in self.truth.ticks(told) if t[:-1] not in told.decided}
        found = {t[:-1]: t[-1] for t in told.ticks}
        about = f"ticks: {self._about(name)}"
        if len(found) != len(told.ticks):
            raise wrong(f"{about}, twice", f"{name}: {told.ticks}")
        for tick, value in found.items():
            if tick not in expected and (told.before == 0 or self._whole(name, tick)):
                raise wrong(f"{about}, one too many", f"{name}: {tick}, expected {expected}")
            value = clocks.number(value, self.clock)
            if tick in expected and self._whole(name, tick) and not _same(expected[tick], value):
                raise wrong(about, f"{name}: {tick} is {value}, expected {expected[tick]}")
        for tick in expected:
            if tick not in found and self._whole(name, tick):
                raise wrong(f"{about}, missing", f"{name}: {tick}, found {found}")

    def _whole(self, name: str, tick: tuple[Any, ...]) -> bool:
        """Does a tick see all of its window? Of events that waited when its query came the engine has to say so."""
        told, known = self.truth.told[name], (*tick, None)
        return self.truth.whole(told, known) and (
            not self.truth.saw_held(told, known) or self._is_complete(name, tick[1])
        )

    def counted(self) -> None:
        stats, truth = self.engine.stats(), self.truth.engine
        if (stats["events"], stats["late"]) != (len(truth.taken), truth.late):
            raise wrong("stats", f"{stats}, expected {len(truth.taken)} events, {truth.late} late")

    def unchanged(self, before: dict[str, Any]) -> None:
        now = self.engine.stats()
        if now | {"bytes": 0} != before | {"bytes": 0}:
            raise wrong("the engine is not as it was", f"{now}, before {before}")

    # -- inside -------------------------------------------------------------------------------------------------------

    def _is_complete(self, name: str, at: int | None) -> bool:
        """Does the engine say so?"""
        since = self.engine.stats()["complete_since"][name]
        if since is None:
            return True
        ask, now = self.truth.told[name].ask, self.truth.engine.watermark
        if ask.source is not None and not self.truth.engine.hold:
            now -= self.truth.engine.lateness or 0
        time = now if at is None else at
        if any(isinstance(of.window or ask.window, Rows) for of in aggregates_of(ask)):
            time = min(time, now)  # those are filled by events, not by time that passes
        column = pa.array([since], clocks.TYPES[self.clock])
        return time >= clocks.integers(pa.chunked_array([column]))[0]

    def _about(self, name: str) -> str:
        """What sort of query: failures of different sorts are different ones. Of those that came later it is of no
        interest what they compute: what they lack is events."""
        ask, midway = self.truth.told[name].ask, self.truth.told[name].before > 0
        window = ask.window or (ask.term.window if isinstance(ask.term, Of) else None)
        kind = ask.term.kind if isinstance(ask.term, Of) else "expression"
        computed = [kind] + ["where"] * (ask.where is not None) + ["having"] * (ask.having is not None)
        parts = [type(window).__name__.lower(), *(["midway"] if midway else computed)]
        parts += ["index"] * (ask.having is not None and ask.index) + ["every"] * (ask.every is not None)
        parts += ["chosen"] * (ask.source is not None) + ["lateness"] * (self.truth.stream.lateness is not None)
        return " ".join(parts)


def _same(want: Any, got: Any) -> bool:
    """Of ticks whose queries are exact: as floats, where others are."""
    return want == got or (want is not None and got is not None and want != want and got != got)
