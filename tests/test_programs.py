"""Building and keeping the Go programs that tests run."""

import subprocess
from pathlib import Path

import pytest

from tests import programs
from tests.programs import Programs

MAIN = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("TEXT") }\n'


@pytest.fixture
def module(program: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go module's folder in a repository of its own, with a cache of its own."""
    program("loadgen")  # skips where there is no Go; and Go's own cache stays in place
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GOCACHE", str(Path.home() / ".cache" / "go-build"))
    folder = tmp_path / "tools" / "say"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module say\n\ngo 1.26\n")
    return folder


def built_from(module: Path, text: str) -> Path:
    """The program of a source that says something, as a new process would get it."""
    (module / "main.go").write_text(MAIN.replace("TEXT", text))
    programs._built.cache_clear()
    return programs.build("tools/say")


def output_of(program: Path) -> str:
    """Returns the program's output."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()


def test_a_changed_source_makes_another_program_and_the_same_source_none(module: Path) -> None:
    """A program is kept by the digest of its sources."""
    first = built_from(module, "one")
    assert output_of(first) == "one"
    made = first.stat().st_mtime_ns
    second = built_from(module, "two")
    assert (output_of(first), output_of(second)) == ("one", "two")
    assert built_from(module, "one") == first
    assert first.stat().st_mtime_ns == made


def test_what_does_not_compile_is_unavailable_with_the_compilers_words(module: Path) -> None:
    """The reason says what to mend."""
    (module / "main.go").write_text("package main\n\nfunc main() { fmt.Println() }\n")
    programs._built.cache_clear()
    with pytest.raises(programs.ProgramUnavailableError, match="undefined: fmt"):
        programs.build("tools/say")


def test_an_unknown_program_is_unavailable_and_the_known_ones_are_named() -> None:
    """A misspelt name is told from a build that fails."""
    with pytest.raises(programs.ProgramUnavailableError, match="gatekeeper, gator, opa"):
        programs.build("gatr")
