"""The bench runs, says what it should, and measures right answers. Nothing here looks at times."""

import json

import numpy as np
import pytest

import bench
from bench import bare, cli, data, mix
from bench.competitors import COMPETITORS
from bench.report import Finding, Report, insert, markdown

FINDING = {"workload", "measured", "value", "unit", "reach", "at_most", "reached"}


@pytest.mark.parametrize("subject", ["peers", "first-use", "sql", "frequency", "late", "alerts", "distinct"])
def test_a_quick_run_writes_what_it_measured(subject, tmp_path, capsys):
    path = tmp_path / "results.json"
    assert bench.main([subject, "--quick", "--json", str(path)]) == 0
    written = json.loads(path.read_text())
    assert written["quick"] is True
    assert {"cpu", "cores", "versions"} <= set(written["machine"])
    assert list(written["subjects"]) == [subject]
    findings = [finding for report in written["subjects"][subject] for finding in report["findings"]]
    assert findings
    assert all(set(finding) == FINDING and finding["value"] > 0 for finding in findings)
    assert all(finding["workload"] in capsys.readouterr().out for finding in findings[:1])


def test_a_mistake_is_one_line(capsys):
    with pytest.raises(SystemExit, match="2"):
        bench.main(["figurs"])
    err = capsys.readouterr().err
    assert err.startswith("bench: ") and err.count("\n") == 1 and "'figures'" in err


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("range", "sum"),
        ("range", "mean"),
        ("range", "max"),
        ("range", "std"),
        ("rows", "sum"),
        ("rows", "max"),
        ("quantile", 0.9),
    ],
)
def test_competitors_answer_alike(question, kind):
    events, widths = data.stream(2000), [5_000, 60_000] if question != "rows" else [5, 60]
    made = [competitor(events) for competitor in COMPETITORS[question]]
    answers = [getattr(each, question)(kind, widths) for each in made]
    for i in range(len(widths)):
        expected = made[0].column(answers[0], i)
        for each, answer in zip(made[1:], answers[1:], strict=True):
            np.testing.assert_allclose(each.column(answer, i), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "fold"),
    [
        (bare.running_integers, np.sum),
        (bare.running_floats, np.sum),
        (bare.base, np.max),
        (lambda n: bare.landmarks(n, 1 << 5), np.max),
    ],
)
def test_what_is_measured_answers_right(make, fold):
    structure = make(300)
    structure.append(3000, batch=100)
    lo, hi = structure.windows(50, 32, 63)
    out = np.empty(lo.shape, structure.column.dtype)
    structure.ask(lo, hi, out)
    mask = structure.column.size - 1
    expected = [fold(structure.column[np.arange(a, b) & mask]) for a, b in zip(lo[0], hi[0], strict=True)]
    np.testing.assert_allclose(out[0], expected)


def test_a_mix_has_the_share_of_updates_asked_for():
    for share in (0, 30, 100):
        ops = mix.operations(1000, share)
        assert (ops == mix.UPDATE).sum() == share * 10
        assert (ops[ops != mix.UPDATE] >= 1).all()
        assert (ops <= mix.WINDOWS).all()


def test_a_verdict_follows_the_direction_of_its_reach():
    assert Finding("w", "m", 5.0, "x", reach=4).reached is True
    assert Finding("w", "m", 5.0, "s", reach=4, at_most=True).reached is False
    assert Finding("w", "m", 5.0, "x").reached is None


def test_results_replace_what_was_between_the_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench micro: begin -->\nold\n<!-- bench micro: end -->\nafter\n")
    insert(page, "micro", markdown(Report("title", [Finding("w", "m", 5.0, "x", reach=4)]), tmp_path))
    text = page.read_text()
    assert "old" not in text
    assert "| w | m | 5.00x | >= 4x | yes |" in text
    assert text.startswith("before")
    assert text.endswith("after\n")


def test_an_unknown_place_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(ValueError, match="micro"):
        insert(page, "micro", "text")


def test_of_all_subjects_those_with_a_place_on_the_page_are_written(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench micro: begin -->\nold\n<!-- bench micro: end -->\n")
    reports = {"micro": [Report("small", [])], "spark": [Report("large", [])]}
    cli.write_page(page, reports, "Measured.")
    assert "### small" in page.read_text() and "large" not in page.read_text()
    with pytest.raises(ValueError, match='no place for "spark"'):
        cli.write_page(page, {"spark": reports["spark"]}, "Measured.")
