"""Statements that differ from others in constants and names alone are not read again: they are made from a template.

Rules of users come by the thousands, and are of few shapes (shapes.py). A template is learnt by trying: a statement of
the shape is read as it is, and once more for each of its constants with another one in its place. Whatever differs in
the queries has to be that constant, as it is or within a text: then it is a hole, to be filled (filling.py). A constant
that does anything else (2 * 3 is 6, 1 WEEK is 7 days, DATE '2024-03-01' is no text) has no hole, and a template is for
statements with that very constant.

Queries are made by calling their classes, all the way down, so that all is checked and brought into its normal form as
ever. Constants that are equal are one hole, as equal windows mean something that different ones do not. Any doubt, and
anything that raises, is for the parser: it knows what to say, and where.
"""

from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

from sqlglot.dialects.duckdb import DuckDB

from swag.errors import SwagError
from swag.sql.filling import Change, Fill, Holes, differences, filling, holes
from swag.sql.shapes import StatementShape, shaped

Read = Callable[[str], list[Any]]
SHAPES, VARIANTS = 512, 16  # that are kept; of one shape, by what its constants without a hole are
OFTEN = 8  # so often a shape is met before it is learnt, which takes as long as reading about as many statements
KEYWORDS = frozenset(word.lower() for word in DuckDB.tokenizer_class.KEYWORDS)
VALUE: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "text": str, "name": str}


class Templates:
    """It owns the shapes that were met, and what was learnt of each; those that were met first go first."""

    def __init__(self) -> None:
        self._forms: dict[tuple[StatementShape, Any], Form] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def queries(self, text: str, read: Read, taken: Container[str], about: Any) -> list[Any] | None:
        """The queries of a statement, if they are to be had without reading it. taken: names that mean a query in FROM.
        about: whatever else `read` goes by."""
        found = shaped(text)
        if found is None:
            return None
        shape, constants = found
        form = self._forms.get((shape, about))
        if form is None:
            form = self._forms[shape, about] = Form(shape)
            for oldest in list(self._forms)[:-SHAPES]:
                self._forms.pop(oldest, None)
        return form.queries(constants, read, taken)


class Template(NamedTuple):
    """What makes queries of constants; None: nothing does. closed: the places of those that it has no hole for, and
    what these have to be."""

    fill: Fill | None
    closed: tuple[int, ...]
    constants: tuple[str, ...]


class Form:
    """All statements of one shape. It owns their templates, by which of the constants are equal."""

    def __init__(self, shape: StatementShape) -> None:
        self._shape, self._words = shape, shape.words()
        self._values = [VALUE[kind] for kind in shape.kinds]
        self._reserved = KEYWORDS | {word.lower() for word in self._words}
        self._met = self._learnt = 0
        self._templates: dict[tuple[int, ...], list[Template]] = {}

    def queries(self, constants: list[str], read: Read, taken: Container[str]) -> list[Any] | None:
        """Those of the statement with such constants, if there is a template."""
        self._met += 1
        if self._met < OFTEN or not constants or any(word in taken for word in self._words):
            return None
        values = self._as_values(constants)
        alike = tuple(map(values.index, values))
        try:
            template = self._known(constants, alike) or self._learn(constants, alike, read)
            if template is None or template.fill is None:
                return None
            if any(self._is_reserved(constants, i) for i in range(len(constants)) if i not in template.closed):
                return None
            queries: list[Any] = template.fill(self._written(constants), values)
        except SwagError:  # the parser will say it, with its place
            return None
        return queries

    def _known(self, constants: list[str], alike: tuple[int, ...]) -> Template | None:
        for template in self._templates.get(alike, ()):
            if all(constants[i] == each for i, each in zip(template.closed, template.constants, strict=True)):
                return template
        return None

    def _is_reserved(self, constants: list[str], place: int) -> bool:
        """Is it a name that is also a word of the statement, or of SQL?"""
        return self._shape.kinds[place] == "name" and constants[place].lower() in self._reserved

    def _as_values(self, constants: list[str]) -> list[Any]:
        return [value(constant) for value, constant in zip(self._values, constants, strict=True)]

    def _written(self, constants: list[str]) -> list[str]:
        """As they stand in SQL."""
        kinds = self._shape.kinds
        return [f"'{each}'" if kind == "text" else each for each, kind in zip(constants, kinds, strict=True)]

    # -- learning -----------------------------------------------------------------------------------------------------

    def _learn(self, constants: list[str], alike: tuple[int, ...], read: Read) -> Template | None:
        """A template of the statement. It is tried with all of its constants changed at once before it is believed."""
        if self._learnt >= VARIANTS:
            return None
        base = read(self._shape.text(constants))
        self._learnt += 1
        others, found, closed = list(constants), Holes(), []
        for first in sorted(set(alike)):
            places = [i for i, each in enumerate(alike) if each == first]
            changed, some = self._tried(base, constants, places, read)
            if some is None:
                closed += places
                continue
            for i in places:
                others[i] = changed
            for path, here in some.items():
                found.setdefault(path, []).extend(here)
        fill = filling(base, found)
        if fill is not None and not self._is_right(fill, others, read):
            fill = None
        template = Template(fill, tuple(closed), tuple(constants[i] for i in closed))
        self._templates.setdefault(alike, []).append(template)
        return template

    def _tried(self, base: list[Any], constants: list[str], places: list[int], read: Read) -> tuple[str, Holes | None]:
        """Another constant at some places, and the holes which that shows to be there; None: it has none."""
        first = places[0]
        if self._is_reserved(constants, first):
            return "", None
        for other in alternatives(constants[first], self._shape.kinds[first], constants):
            changed = [other if i in places else each for i, each in enumerate(constants)]
            pairs = [(of(constants)[first], of(changed)[first]) for of in (self._written, self._as_values)]
            try:
                read_again = read(self._shape.text(changed))
            except SwagError:
                continue
            return other, holes(base, read_again, Change(first, *pairs))
        return "", None

    def _is_right(self, fill: Fill, constants: list[str], read: Read) -> bool:
        try:
            expected = read(self._shape.text(constants))
            return not any(differences(expected, fill(self._written(constants), self._as_values(constants))))
        except SwagError:
            return False


def alternatives(constant: str, kind: str, beside: list[str]) -> Iterator[str]:
    """Constants of the same kind, other than those beside it: more, and less, as bounds may have an order."""
    if kind in ("text", "name"):
        some = [f"{constant}_{i}" for i in range(len(beside) + 1)]
    elif kind == "int":
        some = [str(int(constant) + i) for i in (1, -1, 2, -2, 3, -3) if int(constant) + i > 0]
    else:
        whole, _, digits = constant.partition(".")
        last = int(digits[-1])
        some = [f"{whole}.{digits[:-1]}{digit}" for digit in (last + 1, last - 1, last + 2, last - 2) if 0 < digit < 10]
    return (each for each in some if each not in beside)
