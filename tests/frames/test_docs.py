"""The code in the docs runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"


def test_every_block_of_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_every_picture_of_the_page_is_there():
    for name in re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text()):
        assert (PAGE.parent / name).exists(), name
