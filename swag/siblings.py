"""The packages that come with swag, `kernels` and `frames`, are ours, or the import says which one was found instead.

Another distribution that is named `kernels` exists, and is installed where models are trained.
"""

import importlib.util
import sys

OURS = {"kernels": "behind swag's windows", "frames": "a part of swag"}  # what their docstrings begin with says so


def check() -> None:
    """Raise an ImportError if one of them is another's. Nothing is imported for that; done once, when swag is."""
    for name in OURS:
        found = _found(name)
        if found is not None:
            raise ImportError(
                f'swag comes with a package "{name}", but in its place Python finds {found}. Hint: install swag in an '
                f"environment of its own (python -m venv …, then pip install swag-windows), or remove what is in its "
                f"way: a folder or file named {name}, or pip uninstall {name} and then "
                f"pip install --force-reinstall swag-windows",
                name=name,
            )


def _found(name: str) -> str | None:
    """Where something else of this name lies, if there is."""
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # it is imported already, as something that says nothing of where it is from
        return f"{sys.modules[name]!r}"
    if spec is None:
        return "none"
    origin = spec.origin or next(iter(spec.submodule_search_locations or []), "something without a file")
    if spec.submodule_search_locations is None:  # a single file
        return origin
    get_source = getattr(spec.loader, "get_source", None)
    if spec.origin is None or get_source is None:
        return origin
    source = get_source(name)
    if source is None:  # compiled code alone, without a source: nothing to read the mark in
        return None
    return None if OURS[name] in source[:300] else origin


check()
