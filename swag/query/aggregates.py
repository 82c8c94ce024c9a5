"""What: aggregates as frozen values. `sw.sum("volume")` says what is wanted; its kind says how it is answered."""

from dataclasses import dataclass, field, replace
from typing import Any

from swag.arguments import LARGEST, check_name, is_number, is_option, is_whole
from swag.errors import BadQuery, nearest
from swag.query.as_call import shown
from swag.query.expression import Operators
from swag.query.kind import KINDS, Kind, UserDefined
from swag.tables.expressions.derived import column_name
from swag.tables.times.durations import canonical, length


@dataclass(frozen=True)
class Aggregate(Operators):
    """An aggregate of no, one or two columns, each by its name or as SQL over columns ("price * volume"). Equal
    aggregates are one aggregate, whoever asks.

    `.over(window)` and `.filter(predicate)` give it its own; arithmetic and comparisons make expressions of several.
    They are made by functions: sw.sum, sw.mean, …

    >>> import swag as sw
    >>> sw.sum("volume")
    sw.sum("volume")
    >>> sw.sum("volume") == sw.Aggregate("sum", ("volume",))
    True
    >>> str(sw.mean("price").alias("average"))
    'average'
    """

    kind: str
    columns: tuple[str, ...] = ()
    ddof: int | None = None
    phi: float | None = None
    method: str | None = None
    user: UserDefined | None = None
    half_life: int | str | None = None
    n: int | None = None
    name: str | None = field(default=None, compare=False)
    written: tuple[str, ...] = field(default=(), compare=False)  # the columns as they were named, if some may be SQL
    called: tuple[str, ...] = field(default=(), compare=False)  # the columns in states that know them by other names

    def __post_init__(self) -> None:
        kind = KINDS.get(self.kind) if isinstance(self.kind, str) else None
        if kind is None:
            close = nearest(self.kind, list(KINDS)) if isinstance(self.kind, str) else ""
            raise BadQuery(f"{self.kind!r} is no aggregate.", close or f"one of {', '.join(KINDS)}")
        least, most = kind.columns
        names = isinstance(self.columns, tuple) and all(isinstance(each, str) and each for each in self.columns)
        if not names or not least <= len(self.columns) <= most:
            raise BadQuery(f"{self.kind} is not an aggregate of the columns {self.columns!r}.", f"sw.{self.kind}(…)")
        self._check_options(kind)
        columns = self.called or tuple(map(column_name, self.columns))
        if columns != self.columns:
            if not (self.called and self.written):
                object.__setattr__(self, "written", self.columns)
            object.__setattr__(self, "columns", columns)

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns as they were named."""
        return self.written or self.columns

    def _check_options(self, kind: Kind) -> None:
        """An option is there exactly where the kind has it, and is what the functions for users would have made it."""
        for option in ("ddof", "phi", "method", "user", "half_life", "n"):
            if (getattr(self, option) is not None) != (option in kind.options):
                wrong = "needs" if option in kind.options else "has no"
                raise BadQuery(f"{self.kind} {wrong} {option}.", f"sw.{self.kind}(…)")
        if self.ddof is not None:
            checked_ddof(self.ddof)
        if self.method is not None:
            check_quantile(self.phi, self.method)
        if self.half_life is not None:
            object.__setattr__(self, "half_life", checked_half_life(self.half_life))
        if self.n is not None:
            object.__setattr__(self, "n", checked_length(self.kind, self.n))
        if self.user is not None and not isinstance(self.user, UserDefined):
            raise BadQuery(f"user={self.user!r} are no functions.", "sw.aggregate(…)")
        if self.name is not None:
            check_name(self.name, "name", 'sw.sum("volume").alias("traded")')

    def alias(self, name: str) -> "Aggregate":
        """The same aggregate under another name."""
        check_name(name, "alias", 'sw.sum("volume").alias("traded")')
        return replace(self, name=name)

    @property
    def _is_median(self) -> bool:
        return self.kind == "quantile" and self.name == f"median({self.texts[0]})"

    def unnamed(self) -> "Aggregate":
        """The same aggregate under its own name."""
        return self if self.name is None or self._is_median else replace(self, name=None)

    def __repr__(self) -> str:
        if self._is_median:
            return f"sw.median({shown(self.texts[0])})"
        given, kind = [shown(name) for name in self.texts], self.kind
        if self.kind == "quantile":
            given += [shown(self.phi)] + [f"method={shown(self.method)}"] * (self.method != "floor")
        given += [f"ddof={self.ddof}"] * (self.ddof not in (None, 1))
        given += [f"half_life={shown(self.half_life)}"] * (self.half_life is not None)
        given += [str(self.n)] * (self.n is not None)
        given += ["…"] * (self.user is not None)
        if self.kind == "approx_count_distinct":
            given, kind = [*given, "approx=True"], "count_distinct"
        alias = "" if self.name is None or self.user is not None else f".alias({shown(self.name)})"
        return f"sw.{kind}({', '.join(given)}){alias}"

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        options = list(self.texts)
        if self.kind == "quantile":
            options += [f"{self.phi:g}"] + ([f"method={self.method}"] if self.method != "floor" else [])
        if self.ddof not in (None, 1):
            options.append(f"ddof={self.ddof}")
        options += [str(each) for each in (self.half_life, self.n) if each is not None]
        return f"{self.kind}({', '.join(options)})"


def of(kind: str, *columns: Any, **options: Any) -> Aggregate:
    """An aggregate of columns that a user named."""
    for column in columns:
        if not isinstance(column, str) or not column:
            raise BadQuery(f"{kind} is given {column!r}, not the name of a column.", f'sw.{kind}("price")')
    return Aggregate(kind, tuple(columns), **options)


def check_quantile(phi: Any, method: Any) -> None:
    if not is_option(method, ("floor", "linear")):
        raise BadQuery(f'method={method!r} is neither "floor" nor "linear".', 'sw.quantile("x", 0.5, method="linear")')
    if not is_number(phi) or not 0 <= phi <= 1 or (phi == 0 and method == "floor"):
        fractions = "(0, 1]" if method == "floor" else "[0, 1]"
        raise BadQuery(f"quantile takes a fraction in {fractions}, not {phi!r}.", 'sw.quantile("x", 0.99)')


def checked_half_life(half_life: Any) -> int | str:
    hint = 'sw.decayed_sum("x", half_life="10m"), or a whole number in the unit of ts'
    try:
        if length(half_life, "half_life") > 0:
            return canonical(half_life)
    except BadQuery as why:
        raise BadQuery(why.message, hint) from None
    raise BadQuery(f"half_life={half_life!r} is not longer than nothing.", hint)


def checked_length(kind: str, n: Any) -> int:
    if not is_whole(n) or not 1 <= n <= LARGEST:
        raise BadQuery(f"{kind} takes a whole number of values, at least 1, not {n!r}.", f'sw.{kind}("x", 5)')
    return int(n)


def checked_ddof(ddof: Any) -> int:
    if not is_whole(ddof) or not 0 <= ddof <= LARGEST:
        raise BadQuery(f"ddof={ddof!r} is not a whole number >= 0.", "ddof=1 (sample) or ddof=0 (population)")
    return int(ddof)
