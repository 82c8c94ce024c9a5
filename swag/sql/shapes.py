"""Shapes: a statement without its constants and the names that it gives, and these by themselves.

    text        SELECT k, SUM(x) AS a FROM t [RANGE 300] GROUP BY k HAVING SUM(x) > 9
    shape       SELECT k, SUM(x) AS …, FROM t [RANGE …] GROUP BY k HAVING SUM(x) > …
    constants   a, 300, 9

Found by one regular expression, which knows much less of SQL than the tokenizer does. So it takes for a constant only
what is one beyond doubt, and leaves the rest to the shape; and a text with comments or odd quotes has no shape at all.
"""

import re
from typing import NamedTuple

KINDS = ("int", "float", "text", "name")
LONGEST_SHAPED = 5_000  # characters: a longer text is hardly one of thousands
_HOLES = re.compile(
    r"""['"aA0-9;$`\\/-](?:            # one set in front: whatever is not in it is passed over fast
      (?<=')(?<!\w')(?:(?P<text>[^'\\]+)'|')(?!')
    | (?<=")[^"]*"                    # a quoted name is part of the shape
    | (?<=[aA])(?<!\w.)[sS]\s+(?P<name>[^\W\d]\w*)(?!\s*[(.])
    | (?<=[0-9])(?<![\w.].)(?:
          (?:(?<=[1-9])[0-9]{0,9}\.|(?<=0)\.(?=0*[1-9]))(?P<float>[0-9]{1,9})
        | (?<=[1-9])(?P<int>[0-9]{0,14})
      )(?![\w.])
    | (?<=['";$`\\])(?P<unclear>)     # quotes of other kinds, several statements
    | (?<=-)(?P<comment>-) | (?<=/)(?P<remark>\*) )""",
    re.VERBOSE,
)  # zero and '' are no constants here: they may mean that something is not there
_WORD = re.compile(r'"[^"]*"|[^\W\d]\w*')


class StatementShape(NamedTuple):
    """What a text is between its constants, and of which kind each of these is."""

    pieces: tuple[str, ...]
    kinds: tuple[str, ...]

    def text(self, constants: "list[str]") -> str:
        """The statement with such constants."""
        return self.pieces[0] + "".join(
            constant + piece for constant, piece in zip(constants, self.pieces[1:], strict=True)
        )

    def words(self) -> frozenset[str]:
        """All that may be a name; of what stands in quotes, all of it."""
        return frozenset(word.strip('"') for piece in self.pieces for word in _WORD.findall(piece))


def shaped(text: str) -> tuple[StatementShape, list[str]] | None:
    """A statement as its shape and its constants, as they are written; None: it is not to be had that simply."""
    if len(text) > LONGEST_SHAPED:
        return None
    pieces, kinds, constants, end = [], [], [], 0
    for found in _HOLES.finditer(text):
        kind = found.lastgroup
        if kind is None:
            continue
        if kind not in KINDS:
            return None
        start, stop = found.span() if kind in ("int", "float") else found.span(kind)
        pieces.append(text[end:start])
        kinds.append(kind)
        constants.append(text[start:stop])
        end = stop
    pieces.append(text[end:])
    return StatementShape(tuple(pieces), tuple(kinds)), constants
