"""python -m tests.fuzz: see tests/fuzz/__init__.py. Exit code 1 where anything was found."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from tests.fuzz.failure import ROOT
from tests.fuzz.overseer import Overseer, orders_for
from tests.fuzz.targets import TARGETS


def main(arguments: list[str] | None = None) -> int:
    asked = parser().parse_args(arguments)
    folder = Path(asked.folder)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {asked.seed}; failures are written to {folder / 'failures'}", flush=True)
    orders = orders_for(
        asked.only, asked.jobs, 60 * asked.minutes, asked.seed,
        module="tests.fuzz.targets", folder=folder, longest=asked.longest,
    )  # fmt: skip
    overseer = Overseer(orders, lambda text: print(text, flush=True), folder / "failures")
    try:
        overseer.run()
    except KeyboardInterrupt:
        print("interrupted")
    conclude(overseer)
    return 1 if overseer.found else 0


def conclude(overseer: Overseer) -> None:
    for failure in overseer.found.values():
        print(f"\n# --- {overseer.folder / failure.file_name}\n{failure.script}")
    print(f"\n{overseer.table()}")
    for (target, place), failure in sorted(overseer.found.items()):
        print(f"{target}: {place}\n    {overseer.folder / failure.file_name}")


def parser() -> argparse.ArgumentParser:
    what = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Drive everything at random.")
    what.add_argument("--minutes", type=float, default=10)
    what.add_argument("--only", type=names, default=list(TARGETS), metavar=",".join(TARGETS))
    what.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    what.add_argument("--jobs", type=int, default=1, help="processes")
    what.add_argument("--longest", type=int, default=120, help="seconds that one case may take")
    what.add_argument("--folder", default=ROOT / ".hypothesis" / "fuzz", help="for failures, and examples to replay")
    return what


def names(text: str) -> list[str]:
    asked = text.split(",")
    unknown = [name for name in asked if name not in TARGETS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no target {unknown[0]!r}; there are {', '.join(TARGETS)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
