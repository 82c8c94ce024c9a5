"""The line that fits best, read off the co-moments of two columns in one pass."""

import numpy as np

from kernels.compile.jit import kernel


@kernel
def slopes(mean_y, mean_x, yy, xx, xy, out):
    """NaN where x is a constant, or a moment is beyond floats."""
    for i in range(out.size):
        finite = np.isfinite(mean_x[i]) & np.isfinite(mean_y[i]) & np.isfinite(xx[i]) & np.isfinite(yy[i])
        out[i] = xy[i] / xx[i] if finite else np.nan
