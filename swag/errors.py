"""Every error swag raises on purpose: what was found, the rule, and a hint with what to write instead."""

# By the packages' own names: "swag" may be another's, where packages come from.
NEEDS_SPARK = 'needs PySpark. Hint: pip install "pyspark>=4.1" "pandas>=2.2,<3" "protobuf>=5.29"'


class SwagError(Exception):
    """The base of all of them; each is also the built-in error it is a kind of."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} Hint: {hint}" if hint else message)
        self.message, self.hint = message, hint

    def __str__(self) -> str:  # KeyError would show the repr
        return str(self.args[0])


class BadQuery(SwagError, ValueError):
    """A query, window, aggregate or option that means nothing."""


class BadSQL(BadQuery):
    """A statement that can not be read, or asks for what there is not; says where: line and column, both from 1."""

    line: int = 1
    column: int = 1


class BadType(SwagError, TypeError):
    """A column, timestamp or argument of a type that can not be used there."""


class BadEvents(SwagError, ValueError):
    """Events that can not be taken: a null timestamp or key, columns of unequal length."""


class UnknownColumn(SwagError, KeyError):
    """The events lack a column that a query, `ts` or `key` names."""


class UnknownQuery(SwagError, KeyError):
    """No query of that name is registered."""


class OutOfOrder(SwagError, ValueError):
    """An event is older than one of its key that was already taken."""


class TooFarBack(SwagError, ValueError):
    """A lookup needs events that are no longer kept."""


class SumOverflow(SwagError, OverflowError):
    """The integer sum of a window does not fit int64."""


class BadFunction(SwagError, ValueError):
    """A function of a user-defined aggregate raised, or gave what can not be kept; its own error is the cause."""


class BadSnapshot(SwagError, ValueError):
    """A file that is no snapshot of ours, or a damaged one."""


def nearest(name: str, known: list[str]) -> str:
    """A hint: the known name that a misspelt one is close to, in quotes; nothing where none is."""
    import difflib

    close = difflib.get_close_matches(name.lower(), [each.lower() for each in known], n=1, cutoff=0.5)
    return next((f'"{each}"' for each in known if close and each.lower() == close[0]), "")
