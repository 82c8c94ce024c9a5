"""python -m bench [micro|distinct|peers|figures|first-use|groupings|filters|many-filters|alerts|frames|frequency|late|
                 sql|spark|spark-features|spark-one-key|spark-stream|all] [--quick] [--json PATH] [--markdown PATH]

A subject is a module (or several) of bench with `run(quick) -> Report, or several`. Results are printed, written
as JSON, and put between the subject's markers of a markdown page on request. Exit code 0, reached or not: noise is no
error.
"""

import argparse
import datetime
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from bench import machine
from bench.report import Report, has_place, insert, markdown, plain

HERE = Path(__file__).parent
SUBJECTS: dict[str, list[str]] = {
    "micro": ["micro", "growth", "keyed"],
    "distinct": ["distinct"],
    "peers": ["peers", "features", "further_aggregates"],
    "figures": ["figures"],
    "first-use": ["first_use"],
    "groupings": ["groupings"],
    "filters": ["filters_figure12", "filters_growth", "filters_updates", "filters_extrema", "filters_engine"],
    "alerts": ["alerts"],
    "many-filters": ["many_filters"],
    "frames": ["frames_*"],
    "frequency": ["frequency"],
    "late": ["late"],
    "sql": ["sql", "over"],
    "spark": ["spark_batch"],
    "spark-features": ["spark_features"],
    "spark-one-key": ["spark_one_key", "spark_frames"],
    "spark-stream": ["spark_stream"],
}


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    subjects = list(SUBJECTS) if options.subject == "all" else [options.subject]
    found = {subject: _modules(subject) for subject in subjects}
    if options.subject != "all" and not found[options.subject]:
        print(f'bench: there is nothing to measure for "{options.subject}" here.', file=sys.stderr)
        return 2
    here = machine.describe()
    print(machine.line(here) + "\n", flush=True)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    reports = {subject: _run(names, options.quick) for subject, names in found.items() if names}
    path = options.json or HERE / "results" / f"{options.subject}{'-quick' if options.quick else ''}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    subjects_json = {subject: [report.as_json() for report in each] for subject, each in reports.items()}
    path.write_text(
        json.dumps({"machine": here, "quick": options.quick, "started": started, "subjects": subjects_json}, indent=1)
    )
    print(f"written: {path}")
    if options.markdown:
        write_page(
            options.markdown,
            reports,
            f"Measured {started} on {machine.line(here)}{', quick' if options.quick else ''}.",
        )
    return 0


def _run(modules: list[str], quick: bool) -> list[Report]:
    """Reports are printed as they come: a full run takes a while."""
    reports: list[Report] = []
    for name in modules:
        answer = _measure(importlib.import_module(f"bench.{name}"), quick)
        for report in [answer] if isinstance(answer, Report) else answer:
            print(plain(report), flush=True)
            reports.append(report)
    return reports


def _measure(module: Any, quick: bool) -> Any:
    """Modules with options of their own have `measure(arguments(argv))`; the others `run(quick)`."""
    if hasattr(module, "measure") and hasattr(module, "arguments"):
        return module.measure(module.arguments(["--quick"] if quick else []))
    return module.run(quick)


def _modules(subject: str) -> list[str]:
    """Those that give reports; modules of data, or studies with results of their own kind, are not run from here."""
    paths = [path for pattern in SUBJECTS[subject] for path in sorted(HERE.glob(f"{pattern}.py"))]
    return [path.stem for path in paths if re.search(r"^def (run\(quick|measure\()", path.read_text(), re.MULTILINE)]


def write_page(page: Path, reports: dict[str, list[Report]], measured: str) -> None:
    for subject, each in reports.items():
        if len(reports) > 1 and not has_place(page, subject):  # it is on another page
            continue
        text = "\n".join([f"{measured}\n", *(markdown(report, page.parent.resolve()) for report in each)])
        insert(page, subject, text)
    print(f"written: {page}")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """A mistake is one line."""
        self.exit(2, f"bench: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m bench", description="How fast swag is, against what, on this machine.")
    parser.add_argument("subject", nargs="?", default="all", choices=[*SUBJECTS, "all"])
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything still run?")
    parser.add_argument("--json", type=Path, help="where to write the numbers (default: bench/results/)")
    parser.add_argument(
        "--markdown", type=Path, help="a page with markers to put the tables in, e.g. docs/benchmarks.md"
    )
    return parser
