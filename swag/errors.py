"""Every error swag raises on purpose: what was found, the rule, and a hint with what to write instead."""

NEEDS_SPARK = 'needs PySpark. Hint: pip install "swag-windows[spark]"'


class SwagError(Exception):
    """The base of all of them; each is also the built-in error it is a kind of.

    >>> import swag as sw
    >>> try:
    ...     sw.Range("5 parsecs")
    ... except sw.SwagError as error:
    ...     print(error.hint)
    "5m", "90 seconds", "PT5M"
    """

    def __init__(self, message: str, hint: str = "", name: str = "", about: str = "") -> None:
        """name: of the column, or of the queries that share it, where that is why; about: so the SQL that can not be
        computed, or the duration that can not be taken."""
        super().__init__(f"{message} Hint: {hint}" if hint else message)
        self.message, self.hint, self.name, self.about = message, hint, name, about

    def __str__(self) -> str:  # KeyError would show the repr
        return str(self.args[0])


class BadQuery(SwagError, ValueError):
    """A query, window, aggregate or option that means nothing.

    >>> import swag as sw
    >>> sw.Rows(0)
    Traceback (most recent call last):
    swag.errors.BadQuery: Rows(0, until=0) is no window: n > until. Hint: sw.Rows(1000, until=200)
    """


class BadSQL(BadQuery):
    """A statement that can not be read, or asks for what there is not; says where: line and column, both from 1.

    >>> import swag as sw
    >>> try:
    ...     sw.sql("SELECT SUM(x) FORM trades")
    ... except sw.BadSQL as error:
    ...     print(error.line, error.column)
    1 15
    """

    line: int = 1
    column: int = 1


class BadType(SwagError, TypeError):
    """A column, timestamp or argument of a type that can not be used there.

    >>> import swag as sw
    >>> sw.evaluate(sw.Query(sw.sum("x"), sw.Rows(2)), {"ts": [1], "x": ["text"]})
    Traceback (most recent call last):
    swag.errors.BadType: ...
    """


class BadEvents(SwagError, ValueError):
    """Events that can not be taken: a null timestamp or key, columns of unequal length.

    >>> import swag as sw
    >>> sw.evaluate(sw.Query(sw.count(), sw.Rows(2)), {"ts": [1, None]})
    Traceback (most recent call last):
    swag.errors.BadEvents: ...
    """


class UnknownColumn(SwagError, KeyError):
    """The events lack a column that a query, `ts` or `key` names.

    >>> import swag as sw
    >>> sw.evaluate(sw.Query(sw.sum("volum"), sw.Rows(2), name="v"), {"ts": [1], "volume": [5]})
    Traceback (most recent call last):
    swag.errors.UnknownColumn: query "v" sums "volum", but the events have: ts, volume. ...
    """


class UnknownQuery(SwagError, KeyError):
    """No query of that name is registered.

    >>> import swag as sw
    >>> sw.Engine().lookup("vol")
    Traceback (most recent call last):
    swag.errors.UnknownQuery: no query is named "vol"; registered: none. Hint: engine.register(…)
    """


class OutOfOrder(SwagError, ValueError):
    """An event is older than one of its key that was already taken.

    >>> import swag as sw
    >>> engine = sw.Engine()
    >>> engine.append({"ts": [1, 5]})
    2
    >>> engine.append({"ts": [3]})
    Traceback (most recent call last):
    swag.errors.OutOfOrder: ...
    """


class TooFarBack(SwagError, ValueError):
    """A lookup needs events that are no longer kept.

    >>> import swag as sw
    >>> engine = sw.Engine()
    >>> engine.register(sw.Query(sw.count(), sw.Range(5), name="n"))
    'n'
    >>> engine.append({"ts": range(10_000)})
    10000
    >>> engine.lookup("n", at=9000)
    Traceback (most recent call last):
    swag.errors.TooFarBack: ...
    """


class SumOverflow(SwagError, OverflowError):
    """The integer sum of a window does not fit int64.

    >>> import swag as sw
    >>> sw.evaluate(sw.Query(sw.sum("x"), sw.Rows(2)), {"ts": [1, 2], "x": [2**62, 2**62]})
    Traceback (most recent call last):
    swag.errors.SumOverflow: ...
    """


class BadFunction(SwagError, ValueError):
    """A function of a user-defined aggregate raised, or gave what can not be kept; its own error is the cause.

    >>> import swag as sw
    >>> def root(x):
    ...     if x < 0:
    ...         raise ValueError("a root of what is negative")
    ...     return x**0.5
    >>> roots = sw.aggregate("x", lift=root, combine=lambda a, b: a + b, lower=lambda a: a, identity=0.0)
    >>> sw.evaluate(sw.Query(roots, sw.Rows(2)), {"ts": [1], "x": [-1.0]})
    Traceback (most recent call last):
    swag.errors.BadFunction: ...
    """


class BadSnapshot(SwagError, ValueError):
    """A file that is no snapshot of ours, or a damaged one.

    >>> import swag as sw, tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     sw.Engine.load(file.name)
    Traceback (most recent call last):
    swag.errors.BadSnapshot: ...
    """


def nearest(name: str, known: list[str], alike: float = 0.5) -> str:
    """A hint: the known name that a misspelt one is close to, in quotes; nothing where none is, or it is no text.

    alike: how much of them, from 0 to 1."""
    import difflib

    if not isinstance(name, str):
        return ""
    close = difflib.get_close_matches(name.lower(), [each.lower() for each in known], n=1, cutoff=alike)
    return next((f'"{each}"' for each in known if close and each.lower() == close[0]), "")
