"""The floors of coverage: lines and branches together, package by package."""

from tests.coverage_floors import FLOORS, below, shares


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
    assert below(found) == []

    files["webhook/server/b.py"] = entry(100, 95, 100, 75)
    (fault,) = below(shares({"files": files}))
    assert fault.startswith("webhook/server: 90.0 %")

    del files["webhook/server/a.py"], files["webhook/server/b.py"]
    assert below(shares({"files": files})) == ["webhook/server: not measured"]
