"""SQL without the parentheses that mean nothing: who writes (x) * (y) means x * y, and shares what is computed of it.

A pair goes where what is inside binds more tightly than what is around. Then all is read once more: if that is not the
same tree, the text stays as it was. (x + y) + z is x + y + z, but x + (y + z) is not: floats are rounded differently.
"""

from typing import Any

from swag.tables.conjuncts import is_node, written

_LEVELS: tuple[tuple[str, ...], ...] = (  # operators by how tightly they bind, the loosest first
    ("Or",),
    ("And",),
    ("Not",),
    ("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ", "NullSafeNEQ", "Is", "In", "Between", "Like", "ILike"),
    ("DPipe",),
    ("Add", "Sub"),
    ("Mul", "Div", "IntDiv", "Mod"),
    ("Neg",),
)
_BINDS = {name: level for level, names in enumerate(_LEVELS) for name in names}
_FROM_THE_LEFT = ("Add", "Sub", "Mul", "Div", "IntDiv", "Mod")  # x - y - z is (x - y) - z
_WITHOUT = ("Column", "Literal", "Boolean", "Null", "Case", "Cast", "TryCast", "Paren")  # that nothing comes between
_READ_BY_TYPE = ("DateTrunc", "TimestampTrunc")  # one or the other, as what it is of is a cast to a date or not


def bare(tree: Any, text: str) -> str:
    """A tree of sqlglot as it is written, once without needless parentheses. text: as it is written with them."""
    from sqlglot import exp

    if tree.find(exp.Paren) is None:
        return text
    stripped = tree.copy()
    for each in list(stripped.find_all(exp.Paren)):
        if each.parent is not None and _is_needless(each):
            each.replace(each.this)
    found = written(stripped)
    return found if found == text or _read_alike(found, text) else text


def _is_needless(pair: Any) -> bool:
    inner, outer = type(pair.this).__name__, type(pair.parent).__name__
    if outer in _READ_BY_TYPE and inner in ("Cast", "TryCast"):
        return False
    if inner in _WITHOUT or _is_call(pair.this):
        return True
    if inner not in _BINDS or (outer not in _BINDS and not _encloses(pair.parent)):
        return False
    if outer not in _BINDS or _BINDS[inner] > _BINDS[outer]:
        return True
    left = pair.arg_key == "this" and inner in _FROM_THE_LEFT
    return left and _BINDS[inner] == _BINDS[outer]


def _encloses(node: Any) -> bool:
    """Do its own words keep apart what is in it: a call, CASE, CAST?"""
    return is_node(node, "If") or type(node).__name__ in _WITHOUT or _is_call(node)


def _is_call(node: Any) -> bool:
    from sqlglot import exp

    kind = type(node).__name__
    return isinstance(node, exp.Func) and not isinstance(node, exp.Binary) and kind not in ("AtTimeZone", *_BINDS)


def _read_alike(one: str, other: str) -> bool:
    from sqlglot.errors import SqlglotError

    try:
        return bool(_put_together(one) == _put_together(other))
    except (SqlglotError, RecursionError):
        return False


def _put_together(text: str) -> Any:
    """Its tree with no parentheses at all: how the parts belong together stays."""
    import sqlglot
    from sqlglot import exp

    holder = exp.Paren(this=sqlglot.parse_one(text, into=exp.Condition, dialect="duckdb"))
    for each in list(holder.this.find_all(exp.Paren)):
        each.replace(each.this)
    return holder.this
