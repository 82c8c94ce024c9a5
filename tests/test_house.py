"""The house: rooms depend on the rooms below, also where an import waits; nobody reads what others keep private.

These read the sources, and run none of them.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
FLOORS = [  # from the ground up; rooms of one floor do not know each other
    ["kernels.compile"],
    ["kernels.operators"],
    ["kernels.rings", "kernels.keys", "kernels.key_filters"],
    ["kernels.windows", "kernels.baselines"],
    ["kernels.stored", "kernels.frames"],
    ["kernels.ticks"],
    ["kernels"],
    ["swag.errors", "swag.siblings"],
    ["swag.arguments", "swag.durable", "swag.progress"],
    ["swag.files"],
    ["swag.tables"],
    ["swag.query"],
    ["swag.sql", "swag.stored", "swag.live", "swag.first_use"],
    ["swag.ticks", "swag.over"],
    ["swag.explain", "swag.features"],
    ["swag.engine", "swag.evaluate"],
    ["swag"],
    ["swag.spark"],
    ["swag.cli"],
    ["frames.patterns", "frames.state"],
    ["frames.specs"],
    ["frames.scans", "frames.tables"],
    ["frames.finding"],
    ["frames.owning.origin", "frames.theory"],
    ["frames.detection"],
    ["frames.owning"],
    ["frames.detector", "frames.filling"],
    ["frames.continuous", "frames.space", "frames.pictures", "frames.filler", "frames.chunks", "frames.metrics"],
    ["frames.query"],
    ["frames.match_query"],
    ["frames.for_swag", "frames"],
    ["frames.spark"],
]
LOADS_FRAMES = "swag.query.over_frames"  # the one module that reaches up, when it is asked to
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


@cache
def sources() -> dict[str, ast.Module]:
    found = {}
    for top in ("swag", "frames", "kernels"):
        for path in (ROOT / top).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            found[name] = ast.parse(path.read_text())
    return found


@cache
def imports(name: str) -> set[str]:
    """The modules of ours that a module imports, at once or later; not those that only its types are of."""
    tree = sources()[name]
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    found = set()
    for node in (node for node in ast.walk(tree) if id(node) not in for_types):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                inside = f"{node.module}.{each.name}"
                found.add(inside if inside in sources() else node.module)
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.Call) and name != LOADS_FRAMES:
            found |= imported_by_name(node, tree)
    return {each for each in found if each in sources() and each != name}


def imported_by_name(call: ast.Call, tree: ast.Module) -> set[str]:
    """import_module("swag.engine"), wherever it comes from; where the name is computed, all that the file has."""
    if not call.args or ast.unparse(call.func).split(".")[-1] not in ("import_module", "__import__"):
        return set()
    among = ast.walk(call.args[0] if isinstance(call.args[0], ast.Constant) else tree)
    return {each.value for each in among if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def room_of(module: str) -> str:
    return next(name for name in prefixes(module) if name in FLOOR)


def prefixes(module: str) -> Iterator[str]:
    """a.b.c, a.b, a."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        yield ".".join(parts[:length])


def test_rooms_know_only_the_rooms_below():
    upward = []
    for module in sources():
        own = room_of(module)
        for other in imports(module):
            room = room_of(other)
            if room != own and FLOOR[room] >= FLOOR[own]:
                upward.append(f"{module} imports {other}")
    assert upward == []


def test_no_module_imports_itself_by_way_of_others():
    graph = {name: imports(name) for name in sources()}
    waiting = set(graph)
    while waiting:  # take away who needs nobody that is left; who stays is in a circle, or needs one
        free = {name for name in waiting if not graph[name] & waiting}
        assert free, f"these import each other: {sorted(circle(graph, waiting))}"
        waiting -= free


def circle(graph: dict[str, set[str]], among: set[str]) -> list[str]:
    """One of them, to show."""
    path = [min(among)]
    while True:
        following = min(graph[path[-1]] & among)
        if following in path:
            return path[path.index(following) :]
        path.append(following)


def test_nobody_reads_what_another_class_keeps_private():
    """`self._x`, `cls._x` and what a module or a class of this file made private are one's own."""
    foreign = []
    for module, tree in sources().items():
        own = private_names(tree)
        for value, name, node in reads(tree):
            of = value.id if isinstance(value, ast.Name) else None
            if not is_private(name) or of in ("self", "cls", *LIBRARIES) or name in own or is_theirs(value, module):
                continue
            foreign.append(f"{module}, line {node.lineno}: {ast.unparse(node)}")
        foreign += [f"{module} imports {name}" for name in private_imports(tree)]
    assert foreign == []


def reads(tree: ast.Module) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """What attributes are read of: w.x, getattr(w, "x"), attrgetter("x"), vars(w)["x"], w.__dict__.get("x")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.value, node.attr, node
        elif isinstance(node, ast.Call) and node.args:
            yield from read_by_calling(node)
        elif isinstance(node, ast.Subscript):
            yield from in_dict(node.value, node.slice, node)


def read_by_calling(node: ast.Call) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    called = ast.unparse(node.func)
    if called in BY_NAME and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        yield node.args[0], str(node.args[1].value), node
    elif called.split(".")[-1] in ("attrgetter", "methodcaller"):
        texts = (each.value for each in node.args if isinstance(each, ast.Constant))
        yield from ((node, name, node) for text in texts for name in str(text).split("."))
    elif isinstance(node.func, ast.Attribute):
        yield from in_dict(node.func.value, node.args[0], node)


def in_dict(value: ast.expr, key: ast.expr, node: ast.expr) -> Iterator[tuple[ast.expr, str, ast.expr]]:
    """What is read of a dictionary of attributes."""
    if isinstance(key, ast.Constant):
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "vars" and value.args:
            yield value.args[0], str(key.value), node
        elif isinstance(value, ast.Attribute) and value.attr == "__dict__":
            yield value.value, str(key.value), node


BY_NAME = ("getattr", "hasattr", "setattr", "delattr", "object.__getattribute__", "object.__setattr__")
LIBRARIES = ("parser",)  # swag/sql drives sqlglot's own parser, whose methods begin so


def is_private(name: str) -> bool:
    public = ("_asdict", "_replace", "_fields", "_make")  # of named tuples
    return name.startswith("_") and not name.startswith("__") and name not in public


def is_theirs(value: ast.expr, module: str) -> bool:
    """Of Spark (`rows.sparkSession._jvm`, say), or of Numba, whose insides kernels.compile is made of."""
    of_spark = any(isinstance(each, ast.Attribute) and each.attr == "sparkSession" for each in ast.walk(value))
    return of_spark or module.startswith("kernels.compile.")


def private_names(tree: ast.Module) -> set[str]:
    """What functions, classes and attributes of this file are called that begin with one underscore."""
    found = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef) and is_private(n.name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            found |= {node.attr} if is_private(node.attr) else set()
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_private(node.target.id):
            found.add(node.target.id)
    return found


def private_imports(tree: ast.Module) -> list[str]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in nodes if (node.module or "").split(".")[0] in ("swag", "frames", "kernels")]
    return [each.name for node in ours for each in node.names if is_private(each.name)]


def test_the_page_of_the_architecture_names_every_room_and_module():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = page.partition("## The rooms")[2].partition("```\n")[2].partition("```")[0].split("\n")
    listed, room = set(), ""
    for line in filter(None, rooms):
        if not line.startswith(" "):
            room = line.split()[0]
        else:
            listed.add(room + line.split()[0])
    there = {f"{path.parent.relative_to(ROOT)}/{path.name}" for top in ("swag", "frames", "kernels")
             for path in (ROOT / top).rglob("*.py") if path.name != "__init__.py"}  # fmt: skip
    assert listed == there


LONGEST = 450  # lines of a file
FULLEST = 22  # modules and rooms of a room


def test_files_are_short_and_rooms_are_small() -> None:
    lines = {each: len((ROOT / each).read_text().splitlines()) for top in ("swag", "frames", "kernels")
             for each in (path.relative_to(ROOT) for path in (ROOT / top).rglob("*.py"))}  # fmt: skip
    assert [f"{path}: {count}" for path, count in lines.items() if count > LONGEST] == []
    within = Counter(name.rpartition(".")[0] for name in sources())
    assert {room: count for room, count in within.items() if count > FULLEST} == {}


def is_kernel(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(each).partition("(")[0] in ("kernel", "helper") for each in function.decorator_list)


WIDEST = 7  # parameters of a kernel: more of them are a structure that is missing


def test_kernels_take_few_parameters() -> None:
    wide = []
    for module, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and is_kernel(node):
                taken = node.args
                count = len(taken.posonlyargs + taken.args + taken.kwonlyargs) + (taken.vararg is not None)
                wide += [f"{module}.{node.name}: {count}"] * (count > WIDEST)
    assert wide == []


def test_no_two_classes_have_one_name() -> None:
    """But for the two that users meet as sw.Aggregate and fr.Aggregate."""
    where: dict[str, list[str]] = {}
    for module, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(module)
    twice = {name: modules for name, modules in where.items() if len(modules) > 1}
    assert twice == {"Aggregate": ["swag.query.aggregates", "frames.specs.aggregate"]}


def numbers_of(tree: ast.Module) -> dict[str, float]:
    """The constants of a module that are numbers, by name. Those that count the fields of a record are none."""
    found: dict[str, float] = {}
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            names, values = (target.elts, node.value.elts) if both else ([target], [node.value])
            for name, value in zip(names, values, strict=True):
                if isinstance(name, ast.Name) and name.id.isupper():
                    try:
                        number = eval(ast.unparse(value), {"np": np}, found)  # nothing but numbers, and what has a name
                    except (NameError, AttributeError, TypeError):
                        continue
                    if isinstance(number, int | float | np.number) and not isinstance(number, bool):
                        found[name.id] = number
    return found


def test_a_name_of_a_number_has_one_value() -> None:
    """Who has seen BLOCK, or FEW, in one file knows what it is in the next."""
    values: dict[str, dict[float, list[str]]] = {}
    for module, tree in sources().items():
        for name, number in numbers_of(tree).items():
            values.setdefault(name, {}).setdefault(number, []).append(module)
    assert len(values) > 200
    assert {name: where for name, where in values.items() if len(where) > 1} == {}


@pytest.mark.parametrize(
    "text",
    [
        "w._x",
        'getattr(w, "_x")',
        'getattr(w, "_x", None)',
        'vars(w)["_x"]',
        'vars(w).get("_x")',
        'w.__dict__["_x"]',
        'w.__dict__.pop("_x")',
        'setattr(w, "_x", 1)',
    ],
)
def test_however_it_is_read_it_is_seen(text: str) -> None:
    assert ("w", "_x") in {(ast.unparse(value), name) for value, name, _ in reads(ast.parse(text))}


def test_who_makes_a_function_that_reads_it_is_seen() -> None:
    assert {name for _, name, _ in reads(ast.parse('operator.attrgetter("a._x")(w)'))} >= {"a", "_x"}


@pytest.mark.parametrize("text", ['importlib.import_module("swag.engine")', 'import_module("swag.engine")'])
def test_however_it_is_imported_it_is_seen(text: str) -> None:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    assert imported_by_name(statement.value, ast.parse(text)) == {"swag.engine"}


def test_of_an_import_by_a_computed_name_all_names_count() -> None:
    tree = ast.parse('WHERE = {"Engine": "swag.engine"}\nimport_module(WHERE[name])')
    (call,) = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    assert imported_by_name(call, tree) >= {"swag.engine"}
