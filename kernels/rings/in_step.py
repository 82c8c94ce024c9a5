"""Where the windows that end now begin, for many keys: searches that go in step.

      key 0   |....:....|      A search waits for memory a dozen times. LANES searches, of different rings, wait
      key 1   |..:......|      together, and their loop ends once for all of them: with 5,000 keys 26 ns a key in
      key 2   |......:..|      place of 47 one by one (kernels/rings/timeline.py: first_after).

needs   rows of all keys up to now, and nothing after it
costs   O(log rows) per key, of the longest ring among the LANES

Tried: any windows, those of one key in step too. What it takes to tell them apart cost what was won (45 ns).
"""

import numpy as np

from kernels.compile.jit import kernel
from kernels.rings.timeline import CAPACITY, HEAD, OFFSET, TAIL

LANES = 8  # with 4 they wait more; 16 take as long


@kernel
def starts_after(rings, ts, keys, x, starts):
    """starts[i] = the first position of keys[i] whose timestamp is > x, or its tail."""
    offsets, masks = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    at, left = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for first in range(0, keys.size, LANES):
        used, most = min(LANES, keys.size - first), 0
        for j in range(LANES):
            k = keys[first + min(j, used - 1)]
            rows = rings[k, TAIL] - rings[k, HEAD]
            offsets[j], masks[j] = (rings[k, OFFSET], rings[k, CAPACITY] - 1) if rows > 0 else (0, 0)
            at[j], left[j], most = rings[k, HEAD], rows, max(most, rows)
        while most > 0:
            for j in range(LANES):
                half = (left[j] + 1) >> 1
                at[j] += half * (ts[offsets[j] + ((at[j] + half - 1) & masks[j])] <= x)
                left[j] -= half
            most >>= 1
        for j in range(used):
            starts[first + j] = at[j]
