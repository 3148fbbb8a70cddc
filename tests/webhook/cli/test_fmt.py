"""`waddle rego fmt` and `waddle conftest fmt`, beside the programs whose they are."""

import subprocess

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs
from tests.webhook.cli.in_process import waddle

UGLY = 'package a\np  if   input.foo   == 1\nq = {"a":1,"b":[1,\n2]} # x\n'
PRETTY = 'package a\n\np if input.foo == 1\nq := {"a": 1, "b": [\n\t1,\n\t2, # x\n]}\n'
LOSES = """package a

p := x if {
	x := f([
		# of the first
		1,
	]) with input as 2
}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub").mkdir()
    for name, text in {
        "sub/ugly.rego": UGLY,
        "b.rego": "package b\n",
        "other.txt": "package  c",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_file_is_written_in_its_place(folder):
    run = waddle("rego", "fmt", "-w", ".", cwd=folder)

    assert (run.returncode, run.stdout) == (0, "")
    assert (folder / "sub/ugly.rego").read_text() == PRETTY
    assert waddle("rego", "fmt", "-l", "--fail", ".", cwd=folder).returncode == 0


def test_a_file_is_not_written_where_something_would_be_lost(folder):
    (folder / "b.rego").write_text(LOSES)

    run = waddle("rego", "fmt", "-w", "b.rego", cwd=folder)

    assert run.returncode == 2
    assert (
        "b.rego is not changed, since its formatted text would lose 1 `with` modifier" in run.stderr
    )
    assert (folder / "b.rego").read_text() == LOSES
    assert waddle("conftest", "fmt", "b.rego", cwd=folder).returncode == 1
    forced = waddle("rego", "fmt", "-w", "--check-result=false", "b.rego", cwd=folder)
    assert forced.returncode == 0
    assert "with" not in (folder / "b.rego").read_text()


LINES = (
    "fmt",
    "fmt sub/ugly.rego",
    "fmt .",
    "fmt -l .",
    "fmt -d sub",
    "fmt --fail .",
    "fmt -l --fail .",
    "fmt -d --fail .",
    "fmt -w .",
    "fmt other.txt",
    "fmt none",
    "fmt --v0-compatible .",
    "fmt --rego-v1 b.rego",
    "fmt --v0-v1 --v1-compatible sub",
    "fmt --drop-v0-imports sub",
)


@pytest.mark.parametrize("line", LINES)
def test_a_line_does_what_it_does_in_opa(folder, line, program: Programs):
    real = run([str(program("opa")), *line.split()], folder)
    files = texts(folder)
    (folder / "sub/ugly.rego").write_text(UGLY)

    mine = waddle("rego", *line.split(), cwd=folder)

    assert (mine.returncode, mine.stdout, mine.stderr) == real
    assert texts(folder) == files


CONFTEST = (
    "fmt",
    "fmt .",
    "fmt sub b.rego",
    "fmt none",
    "fmt other.txt",
    "fmt --check sub",
    "fmt --check b.rego",
    "fmt --rego-version v0 .",
    "fmt --rego-version v3 .",
)


@pytest.mark.parametrize("line", CONFTEST)
def test_a_line_does_what_it_does_in_conftest(folder, line, program: Programs):
    real = run([str(program("conftest")), *line.split()], folder)
    files = texts(folder)
    (folder / "sub/ugly.rego").write_text(UGLY)

    mine = waddle("conftest", *line.split(), cwd=folder)

    assert (mine.returncode, mine.stdout, mine.stderr) == real
    assert texts(folder) == files


def run(command, folder):
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def texts(folder):
    return {path: path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}
