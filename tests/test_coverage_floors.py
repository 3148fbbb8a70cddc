"""The floors of coverage: lines and branches together, package by package."""

from pathlib import Path

from tests.coverage_floors import FLOORS, below, packages, shares


def entry(lines: int, covered_lines: int, branches: int = 0, covered_branches: int = 0) -> dict:
    summary = {
        "num_statements": lines,
        "covered_lines": covered_lines,
        "num_branches": branches,
        "covered_branches": covered_branches,
    }
    return {"summary": summary}


def test_a_package_below_its_floor_is_named_and_one_that_was_not_measured_too() -> None:
    files = {f"{package}/a.py": entry(100, 100) for package in FLOORS}
    files["webhook/log.py"] = entry(100, 90)
    found = shares({"files": files})
    assert below(found, found.keys()) == []

    files["webhook/server/b.py"] = entry(100, 95, 100, 75)
    (fault,) = below(shares({"files": files}), found.keys())
    assert fault.startswith("webhook/server: 90.0 %")

    del files["webhook/server/a.py"], files["webhook/server/b.py"]
    assert below(shares({"files": files}), found.keys()) == ["webhook/server: not measured"]


def test_each_package_and_module_of_the_code_is_asked_for(tmp_path: Path) -> None:
    """A package without its own floor that was missing from the report counted as covered."""
    for name in ("rego/syntax/lexer.py", "log.py", "__main__.py", "__pycache__/log.pyc"):
        file = tmp_path / "webhook" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert packages(tmp_path) == {"webhook/rego", "webhook/log.py"}

    real = packages()
    assert real >= FLOORS.keys()
    found = shares({"files": {f"{package}/a.py": entry(1, 1) for package in FLOORS}})
    assert "webhook/rego: not measured" in below(found, real)
    assert len(below(found, real)) == len(real) - len(FLOORS)
