"""Every Python block of the README and the docs runs, and shows what really comes out.

The blocks of a file run in order, in one namespace. What is checked:

    1 + 1  # -> 2                        the repr of an expression
    {}["a"]  # -> KeyError: 'a'          or the error that a statement raises; "…" stands for anything
                                         a line below that begins with "#    " goes on with it
    ```text                              the output of the block right before it
"""

import ast
import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"#\s*->\s*(.*)$")


@dataclass(frozen=True)
class Block:
    code: str
    line: int
    output: str | None


def blocks(text: str) -> list[Block]:
    found = list(FENCE.finditer(text))
    result = []
    for fence, after in zip(found, [*found[1:], None], strict=True):
        if fence[1] == "python":
            follows = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
            result.append(Block(fence[2], text[: fence.start(2)].count("\n"), after[2] if follows and after else None))
    return result


def expectation(lines: list[str], end: int) -> str | None:
    """What a statement that ends at line `end` (from 1) says it gives."""
    match = SHOWN.search(lines[end - 1])
    if match is None:
        return None
    more = [match[1]]
    for line in lines[end:]:
        if not line.startswith("#    "):
            break
        more.append(line[1:].strip())
    return " ".join(more).strip()


def agrees(expected: str, actual: str) -> bool:
    pattern = ".*".join(re.escape(piece) for piece in " ".join(expected.split()).split("…"))
    return re.fullmatch(pattern, " ".join(actual.split()), re.DOTALL) is not None


def outcome(statement: ast.stmt, namespace: dict[str, Any], expected: str | None, name: str) -> str | None:
    """Run a statement; what it gave, if that was announced."""
    if expected is None:
        exec(compile(ast.Module([statement], []), name, "exec"), namespace)
        return None
    try:
        if isinstance(statement, ast.Expr):
            return repr(eval(compile(ast.Expression(statement.value), name, "eval"), namespace))
        exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    except Exception as error:
        kind = type(error)
        module = "" if kind.__module__ == "builtins" else kind.__module__.split(".")[0] + "."
        return f"{module}{kind.__name__}: {error}"
    return "nothing"


def run(block: Block, namespace: dict[str, Any], name: str) -> None:
    tree = ast.parse("\n" * block.line + block.code, name)
    lines = ("\n" * block.line + block.code).splitlines()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for statement in tree.body:
            expected = expectation(lines, statement.end_lineno or 1)
            actual = outcome(statement, namespace, expected, name)
            if expected is not None and actual is not None:
                assert agrees(expected, actual), f"{name}:{statement.lineno} shows\n  {expected}\nbut gives\n  {actual}"
    if block.output is not None:
        assert agrees(block.output, printed.getvalue()), f"{name}:{block.line} prints\n{printed.getvalue()}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_run_and_show_what_comes_out(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)  # examples may write files
    if "SparkSession" in path.read_text(encoding="utf-8"):
        request.getfixturevalue("spark")  # theirs is then that of all tests
    namespace: dict[str, Any] = {}
    for block in blocks(path.read_text(encoding="utf-8")):
        run(block, namespace, str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if "://" not in target and not (path.parent / target).exists()]
    assert missing == []


def test_a_wrong_example_is_noticed() -> None:
    with pytest.raises(AssertionError, match="shows"):
        run(Block("1 + 1  # -> 3\n", 0, None), {}, "here")
    with pytest.raises(AssertionError, match="prints"):
        run(Block("print('a')\n", 0, "b\n"), {}, "here")
    run(Block("{}['a']  # -> KeyError: …\nint('x')  # -> ValueError: invalid …\n#    'x'\n", 0, None), {}, "here")
