"""product: of factors that neither overflow nor vanish on the way, only where their product does."""

from typing import Any

import numpy as np

from swag.query.aggregates import Aggregate, of
from swag.query.kind import Kind, of_one, register

BEYOND = 1 << 12  # a power of two that no float comes back from


def product(column: str) -> Aggregate:
    """The product of the values, as a float.

    >>> import swag as sw
    >>> events = {"ts": [1, 2, 3], "x": [1e200, 1e200, 1e-300]}
    >>> sw.evaluate(sw.Query(sw.product("x"), sw.Rows(3), name="a"), events)["a"].to_pylist()
    [1e+200, inf, 1e+100]
    """
    return of("product", column)


def lower(aggregate: Aggregate, n: np.ndarray, partials: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    factor, power = partials[0]
    with np.errstate(all="ignore"):
        return np.ldexp(factor, np.clip(power, -BEYOND, BEYOND)), n > 0


register(Kind("product", lower, "product", scaled=True, statements=of_one(product, "PRODUCT")))
