"""From a tree of sqlglot to a function of rows. Nothing is ever evaluated as Python.

What operators and functions do is said elsewhere (functions.py); here is how they are put together, and the few forms
that are no functions: columns, constants, CASE, CAST.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from swag.errors import BadQuery
from swag.tables.conjuncts import as_computed, constant, is_node, written
from swag.tables.expressions import casting, logic, texts, times
from swag.tables.expressions.functions import CALLS, OPERATIONS, THERE_ARE, Operation
from swag.tables.expressions.rows import Part, Unfit, applied

DEEPEST = 100
HARMLESS = {"typed", "safe", "ignore_nulls", "coalesce", "table", "date_part_boundary"}  # that change no answer
TYPES: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINT": pa.uint32(), "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "TEXT": pa.string(), "VARCHAR": pa.string(), "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"), "TIMESTAMPNTZ": pa.timestamp("us"), "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMP_S": pa.timestamp("s"), "TIMESTAMP_MS": pa.timestamp("ms"), "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIME": pa.time64("us"),
}  # fmt: skip
BESIDE_TEXT = "a comma between them: IN ('a', 'b'); 'a' || 'b' joins texts"
COMPARED = {"EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ", "NullSafeNEQ", "Nullif", "In"}
IN_INT64 = {"Add", "Sub", "Mul", "Mod", "IntDiv", "Greatest", "Least"}  # of whole numbers
AGGREGATES = {"Sum", "Avg", "Count", "Min", "Max", "First", "Last", "Median", "Quantile", "Stddev", "Variance"}


class Compiler:
    """Compiles one expression. It owns the names of the columns that it has come across."""

    def __init__(self) -> None:
        self.columns: set[str] = set()
        self._depth = 0

    def part(self, node: Any) -> Part:
        self._depth += 1
        if self._depth > DEEPEST:
            raise RecursionError
        try:
            return self._part(node)
        finally:
            self._depth -= 1

    def _part(self, node: Any) -> Part:
        """What computes a node of the tree, its operands compiled first; what is no operation of ours is refused."""
        kind = type(node).__name__
        if node.args.get("negate"):  # NOT LIKE
            plain = node.copy()
            plain.set("negate", None)
            return self._called(OPERATIONS["Not"], node, [self.part(plain)])
        if kind == "Concat" and "safe" not in node.args:  # of no call
            raise BadQuery("a text right after another is not supported.", BESIDE_TEXT)
        if kind in SPECIAL:
            return SPECIAL[kind](self, node)
        operation = CALLS.get(node.name.upper()) if kind == "Anonymous" else OPERATIONS.get(kind)
        if operation is None:
            raise unsupported(node)
        operands = _operands(operation, node)
        if kind in IN_INT64:
            operation = _within_int64(operation, operands)
        part = self.compared if kind in COMPARED else self.part
        return self._called(operation, node, [part(each) for each in operands])

    def _called(self, operation: Operation, node: Any, parts: list[Part]) -> Part:
        kernel, what = operation.kernel, written(node)
        return lambda rows: applied(kernel, what, rows, [part(rows) for part in parts])

    def with_kernel(self, kernel: Callable[..., Any], node: Any, *operands: Any) -> Part:
        return self._called(Operation(kernel, ()), node, [self.part(each) for each in operands])

    # -- forms that are no functions ----------------------------------------------------------------------------------

    def column(self, node: Any) -> Part:
        if not is_node(node.this, "Identifier") or node.args.get("db"):
            raise unsupported(node)
        name = node.name
        self.columns.add(name)
        return lambda rows: rows.column(name)

    def constant(self, node: Any) -> Part:
        value = as_computed(constant(node))
        return lambda rows: value

    def compared(self, node: Any) -> Part:
        """What is compared with something: a constant as exactly as it is written."""
        if not is_node(node.unnest(), "Literal"):
            return self.part(node)
        value = constant(node)
        return lambda rows: value

    def negated(self, node: Any) -> Part:
        """Minus a number is a constant, also where the number alone would be too large: -9223372036854775808."""
        literal = is_node(node.this, "Literal") and not node.this.is_string
        if not literal:
            return self.with_kernel(OPERATIONS["Neg"].kernel, node, node.this)
        value = pa.scalar(-(2**63)) if node.this.this == str(2**63) else constant(node)
        return lambda rows: value

    def joined(self, join: Callable[[list[Part]], Part], node: Any) -> Part:
        """A long chain of AND is no deep tree."""
        return join([self.part(each) for each in node.flatten()])

    def case(self, node: Any) -> Part:
        _understood(node, {"this", "ifs", "default"})
        conditions = [self._condition(node.this, each.this) for each in node.args["ifs"]]
        values = [self.part(each.args["true"]) for each in node.args["ifs"]]
        default = node.args.get("default")
        return logic.case(list(zip(conditions, values, strict=True)), default and self.part(default), written(node))

    def _condition(self, subject: Any, value: Any) -> Part:
        """CASE x WHEN value is CASE WHEN x = value."""
        if subject is None:
            return self.part(value)
        return self._called(OPERATIONS["EQ"], value, [self.compared(subject), self.compared(value)])

    def choice(self, node: Any) -> Part:
        _understood(node, {"this", "true", "false"})
        default = node.args.get("false")
        branches = [(self.part(node.this), self.part(node.args["true"]))]
        return logic.case(branches, default and self.part(default), written(node))

    def coalesce(self, node: Any) -> Part:
        _understood(node, {"this", "expressions"})
        return logic.coalesce([self.part(each) for each in (node.this, *node.expressions)], written(node))

    def between(self, node: Any) -> Part:
        _understood(node, {"this", "low", "high", "symmetric"})
        kernel = logic.between_either if node.args.get("symmetric") else logic.between
        parts = [self.compared(each) for each in (node.this, node.args["low"], node.args["high"])]
        return self._called(Operation(kernel, ()), node, parts)

    def test(self, node: Any) -> Part:
        """IS NULL, IS TRUE, IS FALSE."""
        if is_node(node.expression, "Null"):
            return self.with_kernel(lambda a: pc.is_null(a), node, node.this)
        if is_node(node.expression, "Boolean"):
            kernel = logic.is_true if node.expression.this else logic.is_false
            return self.with_kernel(kernel, node, node.this)
        raise unsupported(node)

    def cast(self, node: Any) -> Part:
        _understood(node, {"this", "to"})
        convert = casting.try_cast if is_node(node, "TryCast") else casting.cast
        to = type_of(node.args["to"], node)
        if is_node(node.this, "Literal") and node.this.is_string:  # DATE '2024-03-01'
            value = _converted(node, convert, to)
            return lambda rows: value
        return self.with_kernel(partial(_cast, convert, to), node, node.this)

    def interval(self, node: Any) -> Part:
        literal = is_node(node.this, "Literal") and node.args.get("unit") is not None
        if not literal:
            raise BadQuery(f"{written(node)} is no interval.", "INTERVAL '5' MINUTES")
        value = times.interval(str(node.this.this), str(node.args["unit"].this))
        return lambda rows: value

    def extract(self, node: Any) -> Part:
        _understood(node, {"this", "expression"})
        return self.with_kernel(times.part(node.this.name), node, node.expression)

    def truncate(self, node: Any) -> Part:
        _understood(node, {"this", "unit"})
        return self.with_kernel(times.truncated(node.args["unit"].name), node, node.this)

    def difference(self, node: Any) -> Part:
        _understood(node, {"this", "expression", "unit"})
        unit = node.args.get("unit")
        return self.with_kernel(
            times.difference("DAY" if unit is None else unit.name), node, node.expression, node.this
        )

    def zone(self, node: Any) -> Part:
        zone = node.args["zone"]
        if not is_node(zone, "Literal"):
            raise unsupported(node)
        return self.with_kernel(times.at_zone(str(zone.this)), node, node.this)

    def trim(self, node: Any) -> Part:
        _understood(node, {"this", "expression", "position"})
        operands = [node.this, *([node.expression] if node.args.get("expression") else [])]
        return self.with_kernel(texts.trimmed(str(node.args.get("position") or "").upper()), node, *operands)

    def escaped(self, node: Any) -> Part:
        """s LIKE 'a!%' ESCAPE '!'."""
        _understood(node, {"this", "expression"})
        if not is_node(node.this, "Like") and not is_node(node.this, "ILike"):
            raise unsupported(node)
        if node.this.args.get("negate"):
            plain = node.copy()
            plain.this.set("negate", None)
            return self._called(OPERATIONS["Not"], node, [self.part(plain)])
        operation = OPERATIONS[type(node.this).__name__]
        operands = [*_operands(operation, node.this), node.expression]
        return self._called(operation, node, [self.part(each) for each in operands])

    def date(self, node: Any) -> Part:
        _understood(node, {"this"})
        return self.with_kernel(partial(_cast, casting.cast, pa.date32()), node, node.this)

    def called(self, node: Any) -> Part:
        """A function that sqlglot has no class for."""
        name = node.name.upper()
        if name == "DATE_PART" and len(node.expressions) == 2 and is_node(node.expressions[0], "Literal"):
            return self.with_kernel(times.part(node.expressions[0].this), node, node.expressions[1])
        if name not in CALLS:
            raise unsupported(node)
        return self.with_kernel(CALLS[name].kernel, node, *node.expressions)

    def inside(self, node: Any) -> Part:
        return self.part(node.this)


SPECIAL: dict[str, Callable[[Compiler, Any], Part]] = {
    "Paren": Compiler.inside, "Column": Compiler.column, "Literal": Compiler.constant, "Boolean": Compiler.constant,
    "Null": Compiler.constant, "Neg": Compiler.negated, "Case": Compiler.case, "If": Compiler.choice,
    "Coalesce": Compiler.coalesce, "Between": Compiler.between, "Is": Compiler.test, "Cast": Compiler.cast,
    "TryCast": Compiler.cast, "Interval": Compiler.interval, "Extract": Compiler.extract,
    "TimestampTrunc": Compiler.truncate, "DateTrunc": Compiler.truncate, "DateDiff": Compiler.difference,
    "AtTimeZone": Compiler.zone, "Trim": Compiler.trim, "Date": Compiler.date, "Anonymous": Compiler.called,
    "Escape": Compiler.escaped,
    "And": lambda self, node: self.joined(logic.every, node), "Or": lambda self, node: self.joined(logic.either, node),
}  # fmt: skip


def type_of(node: Any, of: Any) -> pa.DataType:
    """The Arrow type that SQL names."""
    name, given = str(getattr(node.this, "value", node.this)), node.expressions
    if name == "DECIMAL":
        numbers = [int(each.name) for each in given] or [18, 3]
        return pa.decimal128(numbers[0], numbers[1] if len(numbers) > 1 else 0)
    if name not in TYPES or given:
        raise BadQuery(f"{written(of)}: there is no type {written(node)} here.", "BIGINT, DOUBLE, TEXT, DATE, …")
    return TYPES[name]


def _cast(convert: Callable[[Any, pa.DataType], Any], to: pa.DataType, values: Any) -> Any:
    return convert(values, to)


def _converted(node: Any, convert: Callable[[Any, pa.DataType], Any], to: pa.DataType) -> Any:
    try:
        return convert(pa.scalar(str(node.this.this)), to)
    except pa.ArrowInvalid as why:
        timely = "DATE '2024-03-01', TIMESTAMP '2024-03-01 09:30:00'"
        instead = timely if pa.types.is_temporal(to) else "TRUE" if pa.types.is_boolean(to) else "12.5, a number"
        raise BadQuery(f"{written(node)}: {why}.", instead) from None


def _operands(operation: Operation, node: Any) -> list[Any]:
    """In the order in which the function takes them; whatever else is said of it would be passed over, so it is not."""
    names = [name.removeprefix("*") for name in operation.takes]
    _understood(node, set(names))
    for name in operation.constant:
        operand = node.args.get(name)
        if operand is not None and any(is_node(each, "Column") for each in operand.walk()):
            rule = f"{written(operand)} has to be a constant, the same for all rows"
            quoted = is_node(operand, "Column") and operand.this.args.get("quoted")
            hint = f"'{operand.name}' in single quotes, which is text" if quoted else THERE_ARE
            raise BadQuery(f"{written(node)} is not supported: {rule}.", hint)
    found = [node.args.get(name) for name in names]
    given: list[Any] = []
    for name, operand in zip(operation.takes, found, strict=True):
        given += operand or [] if name.startswith("*") else [operand] if operand is not None else []
    return given


def _within_int64(operation: Operation, operands: list[Any]) -> Operation:
    """A whole number that int64 has no room for is a float, which beside whole numbers would be silently inexact."""
    large = [_is_too_large(each.unnest()) for each in operands]
    if not any(large):
        return operation
    number = written(operands[large.index(True)].unnest())

    def refused(*values: Any) -> Any:
        if all(is_large or pa.types.is_integer(each.type) for is_large, each in zip(large, values, strict=True)):
            rule = f"Whole numbers are computed in int64, which has no room for {number}"
            raise Unfit(rule, f"{number}.0, to compute in floats")
        return operation.kernel(*values)

    return Operation(refused, operation.takes, operation.constant)


def _is_too_large(node: Any) -> bool:
    negative = is_node(node, "Neg")
    literal = node.this.unnest() if negative else node
    return is_node(literal, "Literal") and str(literal.this).isdigit() and int(literal.this) >= 2**63 + negative


def _understood(node: Any, names: set[str]) -> None:
    if any(given for name, given in node.args.items() if name not in names | HARMLESS):
        raise unsupported(node)


def unsupported(node: Any) -> BadQuery:
    kind = type(node).__name__
    if kind in AGGREGATES:
        return BadQuery(
            f"{written(node)} is an aggregate; an expression is about single events.", "SUM(price * volume)"
        )
    return BadQuery(f"{written(node) or kind} is not supported.", THERE_ARE)
