"""The kinds of frames there are, by the names that they have in JSON. A new kind is listed here, and with its scan."""

from typing import Any

from frames.specs.aggregate import Aggregate
from frames.specs.between import Between
from frames.specs.boundary import Boundary
from frames.specs.custom import Custom
from frames.specs.delta import Delta
from frames.specs.pattern import Pattern
from frames.specs.session import Session
from frames.specs.spec import Spec
from frames.specs.state import State
from frames.specs.threshold import Threshold
from swag.errors import BadQuery

KINDS: tuple[type[Spec], ...] = (Threshold, Boundary, Delta, Aggregate, Session, State, Between, Custom, Pattern)


def _shown(value: Any) -> str:
    """On one line: a table is named by its type."""
    text = repr(value)
    return text if len(text.splitlines()) == 1 else f"a {type(value).__name__}"


def check_spec(spec: Any) -> None:
    """Refuse what is no spec of frames."""
    if not isinstance(spec, Spec):
        raise BadQuery(
            f"{_shown(spec)} says nothing about frames.",
            f'fr.Threshold("x", ">", 1), {", ".join(f"fr.{kind.__name__}(…)" for kind in KINDS[1:])}',
        )


def spec_from_json(entry: dict[str, Any]) -> Spec | None:
    """The spec that gave this entry by `to_json`. KeyError: it is of no kind that there is here.

    None: it was cut by functions that this process does not have.
    """
    for kind in KINDS:
        if kind.kind in entry:
            return kind.from_json(entry)
    raise KeyError(*entry)
