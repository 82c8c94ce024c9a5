"""Which keys a tick reports, against a look at all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swag.ticks import lookback
from swag.ticks.lookback import Recency

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30)  # time since the row before, key


@given(ROWS, st.lists(st.integers(0, 30), max_size=8), st.integers(0, 12), st.integers(0, 30))
def test_a_tick_reports_the_keys_seen_since(rows, cuts, back, before):
    ts = np.cumsum([gap for gap, _ in rows], dtype=np.int64)
    ids = np.array([key for _, key in rows], np.int64)
    before = min(before, ts.size)
    ends = np.sort(np.clip(np.array(cuts, np.int64), before, ts.size))
    now = np.array([ts[end - 1] if end else 0 for end in ends], np.int64)
    keys = Recency()
    keys.grow(6)
    keys.note(ts[:before], ids[:before])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookback, "KEYS_AT_ONCE", 1)  # as many as there are keys: it goes on where it stopped
        tick, key, seen = keys.reported(ts[before:], ids[before:], ends - before, now - back)
    expected = []
    for i, end in enumerate(ends):
        for k in range(6):
            own = ts[:end][ids[:end] == k]
            if own.size and own[-1] > now[i] - back:
                expected.append((i, k, own.size))
    assert sorted(zip(tick.tolist(), key.tolist(), seen.tolist(), strict=True)) == expected
