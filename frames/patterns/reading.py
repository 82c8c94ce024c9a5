"""The text of a pattern as a tree, and back: symbols in order, `|`, parentheses, `?`, `*`, `+`, `{n,m}`.

    A B+ C             one row, then one or more, then one
    (A | B){2,} C?     two or more rows, each of one kind or the other, then perhaps one more

Whatever else SQL's row patterns have (anchors, PERMUTE, exclusions, reluctant quantifiers) is refused by name.
"""

import re
from typing import NamedTuple, Union

from swag.errors import BadQuery

EXAMPLE = 'fr.Pattern("A B+ C", define={"B": "price < PREV(price)", "C": "price > PREV(price)"})'
MOST_REPEATS, MOST_PARENTHESES = 1000, 60
_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}|(\S))")
REFUSED = {
    "^": ("the anchor ^", "leave it out, and drop matches that begin later"),
    "$": ("the anchor $", "leave it out, and drop matches that end earlier"),
    "-": ("the exclusion {- … -}", "leave it out: a match is one row of the answer, whatever it is made of"),
}


class Symbol(NamedTuple):
    """One row, for which the condition of the symbol holds."""

    name: str


class Sequence(NamedTuple):
    """One part after the other."""

    parts: tuple["Node", ...]


class Either(NamedTuple):
    """One of several, the first that leads to a match."""

    parts: tuple["Node", ...]


class Repeat(NamedTuple):
    """From `least` to `most` times (None: any number), rather more than fewer."""

    part: "Node"
    least: int
    most: int | None


Node = Union[Symbol, Sequence, Either, Repeat]  # noqa: UP007 - of classes that name each other


def read(text: str) -> Node:
    """The tree of a pattern; a mistake is said with the character it is at."""
    return _Reader(text).whole()


def symbols_of(node: Node) -> list[str]:
    """Its symbols, each once, in the order in which they first appear."""
    if isinstance(node, Symbol):
        return [node.name]
    parts = (node.part,) if isinstance(node, Repeat) else node.parts
    return list(dict.fromkeys(name for part in parts for name in symbols_of(part)))


def written(node: Node) -> str:
    """The one way to write a tree; `read` gives it back."""
    if isinstance(node, Symbol):
        return node.name
    if isinstance(node, Either):
        return " | ".join(map(written, node.parts))
    if isinstance(node, Sequence):
        return " ".join(_inside(part, (Either,)) for part in node.parts)
    return _inside(node.part, (Either, Sequence, Repeat)) + _times(node.least, node.most)


def _inside(node: Node, loose: tuple[type, ...]) -> str:
    return f"({written(node)})" if isinstance(node, loose) else written(node)


def _times(least: int, most: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+", (least, least): f"{{{least}}}"}
    return short.get((least, most), f"{{{least},{'' if most is None else most}}}")


def _flat(parts: list[Node], kind: type) -> tuple[Node, ...]:
    """(A B) C is A B C."""
    return tuple(one for part in parts for one in (part.parts if isinstance(part, kind) else (part,)))  # type: ignore


class _Reader:
    """Reads one pattern from left to right. Owns the text, its tokens, and where it is among them."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens = [match for match in _TOKEN.finditer(text) if match[0].strip()]
        self.names: dict[str, str] = {}  # symbols are the same in any case, and written as they first are
        self.depth = 0

    def whole(self) -> Node:
        found = self.choice()
        if self.at < len(self.tokens):
            raise self.wrong("a symbol, |, or the end", "one ( for every )" if self.sign == ")" else "A B+ C")
        return found

    @property
    def sign(self) -> str:
        """The next character that is no part of a symbol; nothing, if there is none."""
        return (self.tokens[self.at][5] or "") if self.at < len(self.tokens) else ""

    def choice(self) -> Node:
        parts = [self.sequence()]
        while self.sign == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Either(_flat(parts, Either))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.at < len(self.tokens) and self.sign not in ("|", ")"):
            parts.append(self.repeated())
        if not parts:
            raise self.wrong("a symbol", "A | B, with a symbol on either side of |, and none in ( )")
        return parts[0] if len(parts) == 1 else Sequence(_flat(parts, Sequence))

    def repeated(self) -> Node:
        """A symbol or a parenthesis, and how often."""
        part, times = self.one(), self.times()
        if times is None:
            return part
        if self.sign == "?":
            raise self.wrong("the next symbol", "leave the second ? out: a pattern takes as many rows as it can", True)
        if self.times() is not None:
            raise self.wrong("one of ? * + {n,m} behind a symbol", "(A+)*, in parentheses")
        return Repeat(part, *times)

    def one(self) -> Node:
        token = self.tokens[self.at]
        if token[1]:
            self.at += 1
            if token[1].upper() == "PERMUTE":
                raise BadQuery(f"PATTERN ({self.text}): PERMUTE is not supported.", "(A B | B A), written out")
            return Symbol(self.names.setdefault(token[1].upper(), token[1]))
        if token[5] != "(":
            raise self.wrong("a symbol or (", "A B+ C")
        return self.parenthesis()

    def parenthesis(self) -> Node:
        self.depth += 1
        if self.depth > MOST_PARENTHESES:
            raise BadQuery(f"more than {MOST_PARENTHESES} parentheses of a pattern are open.", "fewer of them")
        self.at += 1
        inner = self.choice()
        if self.sign != ")":
            raise self.wrong(")", "one ) for every (")
        self.at += 1
        self.depth -= 1
        return inner

    def times(self) -> tuple[int, int | None] | None:
        """What is said of how often: ? * + {n} {n,} {,m} {n,m}. None: nothing."""
        if self.at == len(self.tokens):
            return None
        token = self.tokens[self.at]
        if token[3] is None:
            found = {"?": (0, 1), "*": (0, None), "+": (1, None)}.get(token[5] or "")
            self.at += found is not None
            return found
        least, most = int(token[2] or 0), int(token[4]) if token[4] else None
        most = most if token[3] else least
        if not (token[2] or token[4]) or (most is not None and (most < least or most == 0)):
            raise self.wrong("{n}, {n,}, {,m} or {n,m} with n <= m and 1 <= m", "A{2,5}")
        if max(least, most or 0) > MOST_REPEATS:
            raise self.wrong(f"at most {MOST_REPEATS} repetitions", "max_rows=…, min_rows=… of the pattern")
        self.at += 1
        return least, most

    def wrong(self, what: str, hint: str, reluctant: bool = False) -> BadQuery:
        """expected what, found the next token, or the end; what is known from elsewhere, by its name."""
        if self.at == len(self.tokens):
            return BadQuery(f"PATTERN ({self.text}): expected {what}, found the end.", hint)
        if reluctant:
            return BadQuery(f"PATTERN ({self.text}): a reluctant quantifier is not supported.", hint)
        known = "-" if self.text[self.tokens[self.at].start() :].lstrip().startswith("{-") else self.sign
        if known in REFUSED:
            name, instead = REFUSED[known]
            return BadQuery(f"PATTERN ({self.text}): {name} is not supported.", instead)
        token = self.tokens[self.at]
        place = len(self.text[: token.end()]) - len(token[0].strip()) + 1
        found = f'"{token[0].strip()}" at character {place}'
        return BadQuery(f"PATTERN ({self.text}): expected {what}, found {found}.", hint)
