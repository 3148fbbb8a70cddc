"""`make results`: which results are older than the code that they measure."""

import subprocess
from pathlib import Path

import pytest

from loadtest import freshness
from loadtest.freshness import MEASURED, RESULTS, main, results


def test_each_result_is_of_a_bench_that_says_what_it_measures() -> None:
    assert results().keys() <= MEASURED.keys()
    missing = [path for paths in MEASURED.values() for path in paths if not _is_there(path)]
    assert not missing


def _is_there(path: str) -> bool:
    return (freshness.ROOT / path).exists()


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path, file: str, text: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--message", f"{file}: {text}")


def test_a_result_is_stale_once_what_it_measures_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "--initial-branch=main")
    commit(tmp_path, "webhook/audit/sweep.py", "1")
    commit(tmp_path, f"{RESULTS}/audit.md", "1")
    commit(tmp_path, f"{RESULTS}/soak.json", "1")
    assert main(tmp_path) == 0
    assert "audit: up to date" in capsys.readouterr().out
    commit(tmp_path, "README.md", "1")
    assert main(tmp_path) == 0
    capsys.readouterr()
    commit(tmp_path, "webhook/audit/sweep.py", "2")
    assert main(tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("audit: older than 1 changes of what it measures")
    assert lines[1].startswith("soak: up to date")


def test_without_a_history_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / RESULTS).mkdir(parents=True)
    (tmp_path / RESULTS / "audit.md").write_text("1")
    assert main(tmp_path) == 2
    assert "the age of results is not known" in capsys.readouterr().err
