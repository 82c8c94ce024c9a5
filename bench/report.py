"""What a question found: as a table to read, as markdown for the docs, as JSON."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One measured number against what it should reach. at_most: reach is an upper bound. unit "x": a ratio."""

    workload: str
    measured: str
    value: float
    unit: str
    reach: float | None = None
    at_most: bool = False

    @property
    def reached(self) -> bool | None:
        if self.reach is None:
            return None
        return self.value <= self.reach if self.at_most else self.value >= self.reach

    def cells(self) -> list[str]:
        limit = "" if self.reach is None else f"{'<=' if self.at_most else '>='} {quantity(self.reach, self.unit)}"
        verdict = {None: "", True: "yes", False: "NO"}[self.reached]
        return [self.workload, self.measured, quantity(self.value, self.unit), limit, verdict]

    def as_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload, "measured": self.measured, "value": self.value, "unit": self.unit,
            "reach": self.reach, "at_most": self.at_most, "reached": self.reached,
        }  # fmt: skip


@dataclass(frozen=True)
class Table:
    """Numbers without a verdict: a curve, a comparison. figure: the plot of it."""

    title: str
    header: list[str]
    rows: list[list[Any]]
    figure: Path | None = None


@dataclass
class Report:
    title: str
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "findings": [finding.as_json() for finding in self.findings],
            "tables": [
                {"title": t.title, "header": t.header, "rows": t.rows, "figure": t.figure and t.figure.name}
                for t in self.tables
            ],
            "notes": self.notes,
        }


FINDINGS = ["workload", "measured", "result", "reach", "reached"]


def quantity(value: float, unit: str) -> str:
    return f"{number(value)}{'' if unit in ('x', '%') else ' '}{unit}"


def number(value: Any) -> str:
    """Three digits that count."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if abs(value) < 0.1 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def plain(report: Report) -> str:
    parts = [f"== {report.title}"]
    if report.findings:
        parts.append(_aligned(FINDINGS, [finding.cells() for finding in report.findings]))
    for table in report.tables:
        parts.append(f"{table.title}\n{_aligned(table.header, [[number(c) for c in row] for row in table.rows])}")
        if table.figure is not None:
            parts[-1] += f"\nplotted: {table.figure}"
    parts += [f"* {note}" for note in report.notes]
    return "\n\n".join(parts) + "\n"


def markdown(report: Report, relative_to: Path) -> str:
    parts = [f"### {report.title}"]
    if report.findings:
        parts.append(_piped(FINDINGS, [finding.cells() for finding in report.findings]))
    for table in report.tables:
        if table.figure is not None:
            parts.append(f"![{table.title}]({table.figure.relative_to(relative_to)})")
        parts.append(f"{table.title}:\n\n{_piped(table.header, [[number(c) for c in row] for row in table.rows])}")
    if report.notes:
        parts.append("\n".join(f"- {note}" for note in report.notes))
    return "\n\n".join(parts) + "\n"


def has_place(page: Path, subject: str) -> bool:
    """Are the subject's markers on a page?"""
    content = page.read_text()
    return all(marker in content for marker in _markers(subject))


def insert(page: Path, subject: str, text: str) -> None:
    """Put a text between the subject's markers of a page, in place of what was there."""
    begin, end = _markers(subject)
    content = page.read_text()
    if not has_place(page, subject):
        raise ValueError(f'{page} has no place for "{subject}": it needs the lines {begin} and {end}.')
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", content))


def _markers(subject: str) -> tuple[str, str]:
    return f"<!-- bench {subject}: begin -->", f"<!-- bench {subject}: end -->"


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    right = [all(_numeric(row[i]) for row in rows) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)).rstrip()
        for line in lines
    )


def _piped(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _numeric(cell: str) -> bool:
    return cell[:1].isdigit() or cell in ("", "nan")
