"""The repository's own rules: what it holds, what it must not hold, and that its papers agree."""

import itertools
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from webhook import __version__

LINES_MAX = 800
BYTES_MAX = 1_000_000

# Written in parts, so that this file does not hold them.
REGISTRIES = ("pypi" + ".org", "python" + "hosted", "proxy.go" + "lang", "npm" + "js.org")
MACHINES = ("/wo" + "rk/", "/tmp/go" + "build", "/ro" + "ot/", "/home/" + "runner")
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "base", "core", "manager"}
TERMS = {"webhook/watch/manager.py"}  # the watch manager is Gatekeeper's own term
# Words for what is not in the repository (another project's issue is named as such).
ELSEWHERE = re.compile(r"(?<!'s )\bissues? #?\d|\bbuilder H\d", re.IGNORECASE)


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is committed or about to be."""
    finished = subprocess.run(
        ["git", "ls-files", "--cached"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        pytest.skip(f"not a git repository: {finished.stderr.strip()}")
    paths = (ROOT / name for name in finished.stdout.splitlines())
    return tuple(path for path in paths if path.is_file())


@cache
def texts() -> dict[Path, str]:
    """The text files among them, by path in the repository."""
    found = {}
    for path in tracked():
        try:
            found[path.relative_to(ROOT)] = path.read_text()
        except UnicodeDecodeError:
            continue
    return found


def holding(words: tuple[str, ...]) -> list[str]:
    """Files that hold one of these words."""
    return [f"{path}: {word}" for path, text in texts().items() for word in words if word in text]


def test_no_file_names_a_package_registry() -> None:
    """Packages come from wherever the reader's clients are set up for."""
    assert holding(REGISTRIES) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    """Paths of one machine would not exist elsewhere."""
    assert holding(MACHINES) == []


def test_no_file_speaks_of_what_is_written_elsewhere() -> None:
    """Numbers of tickets say nothing to a reader of the repository."""
    found = [
        f"{path}: {match[0]}"
        for path, text in texts().items()
        for match in ELSEWHERE.finditer(text)
    ]
    assert found == []


def test_modules_fit_in_a_head() -> None:
    """No module is longer than 800 lines."""
    long = {
        str(path): count
        for path, text in texts().items()
        if path.suffix == ".py" and (count := text.count("\n")) > LINES_MAX
    }
    assert long == {}


def test_names_say_what_is_in_a_module() -> None:
    """No module or folder has a name that fits everything."""
    assert [
        str(path)
        for path in texts()
        if path.suffix == ".py"
        and str(path) not in TERMS
        and VAGUE & {*path.parts[:-1], path.stem} - {"tests"}
    ] == []


def test_no_file_is_large() -> None:
    """Data that large is fetched or made, not committed."""
    assert [str(path) for path in tracked() if path.stat().st_size > BYTES_MAX] == []


def test_the_version_is_the_newest_of_the_changelog() -> None:
    """The built version is the published one."""
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == __version__


@pytest.mark.parametrize("name", ["run", "dev", "build", "load"])
def test_requirements_are_pinned_with_hashes(name: str) -> None:
    """Each package has one version and its hashes, and no file says where from."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if not line.startswith(" ")]
    assert starts
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        assert re.match(r"[\w.-]+==(\d+!)?[\w.]+( ; .+?)? \\$", lines[start]), lines[start]
        assert all(
            re.match(r" +--hash=sha256:[0-9a-f]{64}( \\)?$", x) for x in lines[start + 1 : end]
        )


def test_every_dependency_is_pinned() -> None:
    """`make lock` was run after the last change of a dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    dependencies = [*project["dependencies"], *itertools.chain.from_iterable(extras)]
    names = {re.split(r"[<>=!~\[; ]", one)[0].lower() for one in dependencies}
    lines = (ROOT / "requirements" / "run.txt").read_text().splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines}
    assert names - pinned - {project["name"]} == set(), "extras name others of the same package"


def test_imports_point_down() -> None:
    """The import contracts of pyproject.toml are kept."""
    finished = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout


def test_ci_runs_the_command_of_the_readme() -> None:
    """CI runs the command that README names."""
    assert "$ make test\n" in (ROOT / "README.md").read_text()
    assert "$ make test-all\n" in (ROOT / "README.md").read_text()
    assert " test test-programs;" in (ROOT / ".ci" / "run").read_text()
    assert "\ntest-all: test test-programs " in (ROOT / "Makefile").read_text()


def test_programs_come_from_the_fixture() -> None:
    """The fixture puts each test into its tier."""
    found = [
        str(path)
        for path, text in texts().items()
        if path.parts[0] == "tests"
        and path.name.startswith("test_")
        and re.search(r"from tests\.programs import .*\b(program|build)\b", text)
    ]
    assert found == [], "ask for the fixture `program`"


def test_documents_name_targets_that_exist() -> None:
    """Each `make TARGET` of a document is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for path, text in texts().items():
        if path.suffix == ".md":
            for target in re.findall(r"(?:`|\$ )make ([a-z-]+)", text):
                assert target in targets, f"{path}: make {target}"


def test_uv_installs_into_the_environment_that_make_made() -> None:
    """Without `--python` uv changes the reader's environment if he has activated one."""
    for path in ("Makefile", "Dockerfile"):
        for line in (ROOT / path).read_text().splitlines():
            if re.search(r"/uv pip (sync|install) ", line):
                assert " --python " in line, f"{path}: {line.strip()}"


def test_links_between_documents_lead_somewhere() -> None:
    """Each relative link of a document names a file or folder that is there."""
    for path, text in texts().items():
        if path.suffix == ".md":
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
                if "://" not in link:
                    assert (ROOT / path.parent / link).exists(), f"{path}: {link}"


def test_pages_that_code_and_documents_name_are_there() -> None:
    """A page of ``docs`` is there, wherever its name is said."""
    for path, text in texts().items():
        for page in set(re.findall(r"\bdocs/[\w/-]+\.md\b", text)):
            assert (ROOT / page).is_file(), f"{path}: {page}"


UNIMPORTED = {"tzdata"}  # read by zoneinfo where the image has no time zones
PACKAGES = {"google-re2": "re2", "graphql-core": "graphql", "pyyaml": "yaml"}


def test_what_is_shipped_is_imported_by_what_is_shipped() -> None:
    """A dependency that tests alone use belongs into their group."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[><=\[ ]", item)[0] for item in project["dependencies"]} - UNIMPORTED
    code = "\n".join(text for path, text in texts().items() if path.parts[0] == "webhook")
    for name in names:
        package = PACKAGES.get(name, name.replace("-", "_"))
        found = re.search(rf"^\s*(?:import|from) {re.escape(package)}\b", code, re.MULTILINE)
        assert found, f"{name}: nothing in webhook/ imports {package}"
