"""Files that appear under their name when they are complete: what killed writers leave, modes, links, two at once."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from swag.durable.atomic_file import replacing, target_of


def write(path: Path, content: bytes) -> None:
    with replacing(path) as draft:
        draft.file.write(content)


def test_older_content_is_seen_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, b"one")
    with replacing(path) as draft:
        draft.file.write(b"two")
        draft.file.flush()
        assert path.read_bytes() == b"one"
    assert path.read_bytes() == b"two"
    assert os.listdir(tmp_path) == ["file"]


def test_what_fails_leaves_the_older_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, b"one")
    with pytest.raises(KeyboardInterrupt), replacing(path) as draft:
        draft.folder.mkdir()
        (draft.folder / "more").write_bytes(b"two")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["file"]


def test_two_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as first:
        first.file.write(b"first")
        write(path, b"second")
        assert first.path.exists()
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


KILLED = """
import sys, time
from pathlib import Path
from swag.durable.atomic_file import replacing
with replacing(Path(sys.argv[1])) as draft:
    draft.folder.mkdir()
    (draft.folder / "more").write_bytes(b"half of it")
    draft.file.write(b"half")
    draft.file.flush()
    print(draft.path, flush=True)
    time.sleep(600)
"""


def test_the_next_write_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "file.2"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        write(path, b"beside it")
        assert left.read_bytes() == b"half"  # it is still being written
        process.send_signal(signal.SIGKILL)
    assert left.name.startswith(".file.swag-") and left.suffix == ".part"
    write(other, b"another name")
    assert left.exists()
    write(path, b"after it")
    assert sorted(os.listdir(tmp_path)) == ["file", "file.2"]
    assert path.read_bytes() == b"after it"


def test_a_new_file_has_the_usual_mode_and_a_replaced_one_keeps_its_own(tmp_path: Path) -> None:
    path, usual = tmp_path / "file", tmp_path / "usual"
    usual.write_bytes(b"")
    write(path, b"one")
    assert path.stat().st_mode == usual.stat().st_mode
    path.chmod(0o640)
    write(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_long_names_have_room_for_a_draft(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)
    write(path, b"one")
    assert os.listdir(tmp_path) == [path.name]


def test_a_link_stays_and_what_it_points_at_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.symlink("folder/file", tmp_path / "link")
    os.symlink("link", tmp_path / "link to it")
    assert target_of(tmp_path / "link to it") == (tmp_path / "folder" / "file").resolve()
    write(tmp_path / "link to it", b"one")
    assert (tmp_path / "folder" / "file").read_bytes() == b"one"
    assert (tmp_path / "link").is_symlink() and (tmp_path / "link to it").is_symlink()
    assert os.listdir(tmp_path / "folder") == ["file"]


def test_a_protected_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "file", b"one")
    (tmp_path / "file").chmod(0o444)
    monkeypatch.setattr("os.access", lambda path, mode: False)  # nothing is protected from root, who may run this
    with pytest.raises(PermissionError, match="write-protected"):
        write(tmp_path / "file", b"two")
    assert (tmp_path / "file").read_bytes() == b"one"
