"""Cuts a release: artifacts, checksums, a bill of materials, provenance, notes, and the tag.

``make release`` runs it in a clean checkout, ``make release REPOSITORY=https://…`` for one that is
published there: its packages link to it. Nothing is published and nothing is signed: that takes
accounts and keys, and stands in the notes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.programs import ROOT
from webhook import __version__

IMAGE: Final = f"REGISTRY/waddle:{__version__}"
"""The placeholder of the image in install.yaml."""

BIN: Final = Path(sys.executable).parent

INSTALL_HEAD: Final = f"""\
# Waddle {__version__}. Put your registry's name in place of REGISTRY, and apply it:
#   sed 's|{IMAGE}|registry.example/waddle:{__version__}|' install.yaml | kubectl apply --server-side -f -
"""

PUBLICATION: Final = """
## To publish this

1. {links}
2. `git push origin v{version}`, with these files as the release's.
3. `twine upload waddle_admission-{version}*` puts the wheel and the sdist on the package index.
4. `make image IMAGE=…`, push it, and name it in `install.yaml` and the chart's values.
5. Sign what needs a signature: `cosign sign-blob SHA256SUMS`.

`waddle.pyz` is one file for {platform} with this Python's version; on others install the wheel.
"""


UNLINKED: Final = (
    "The packages have no links: nobody said where the repository is. "
    "Cut it again with `make release REPOSITORY=https://…`, in another folder."
)
LINKED: Final = "The packages link to {repository}: let people read it."

PIPELINES: Final = """
## In a pipeline, once this is published

Neither a submodule nor a wheel in the repository is needed any more:

- any pipeline: `pip install waddle-admission=={version}`
- GitLab: `WADDLE_PACKAGE: waddle-admission=={version}`
- pre-commit: `repo: {repository}` and `rev: v{version}`
"""

ACTION: Final = "- GitHub: `uses: {path}/manifests/pipelines/github@v{version}`\n"
"""GitHub takes an action from a repository of its own."""

LINKS: Final = """
[project.urls]
Homepage = "{repository}"
Documentation = "{repository}/blob/main/docs/README.md"
Source = "{repository}"
Issues = "{repository}/issues"
Changelog = "{repository}/blob/main/CHANGELOG.md"

# On an index links into the repository lead nowhere unless they are whole.
[[tool.hatch.metadata.hooks.fancy-pypi-readme.substitutions]]
pattern = '!\\[([^\\]]*)\\]\\((?![a-z]+:)([^)]+)\\)'
replacement = '![\\1]({repository}/raw/main/\\2)'
[[tool.hatch.metadata.hooks.fancy-pypi-readme.substitutions]]
pattern = '\\]\\((?![a-z]+:|#)([^)]+)\\)'
replacement = ']({repository}/blob/main/\\1)'
"""
"""An addition to ``pyproject.toml`` of a release."""

_REPOSITORY: Final = re.compile(r"https://[\w.-]+(?:/[\w.-]+)+")


class CannotRelease(Exception):
    """The reason why no release can be cut: the missing step."""


def cut(folder: Path, repository: str = "") -> None:
    """Make all files of a release in a folder, and the tag. Raises :class:`CannotRelease`.

    ``repository`` is where it will be published.
    """
    repository = repository.removesuffix(".git").rstrip("/")
    if repository and not _REPOSITORY.fullmatch(repository):
        raise CannotRelease(f"{repository} is no address of a repository: https://HOST/OWNER/NAME")
    tag = f"v{__version__}"
    commit = git("rev-parse", "HEAD")
    if git("status", "--porcelain"):
        raise CannotRelease("the checkout has changes: commit or remove them first")
    tagged = git("tag", "--list", tag) and git("rev-list", "-n", "1", tag)
    if tagged and tagged != commit:
        raise CannotRelease(f"{tag} is another commit: raise __version__ in webhook/__init__.py")
    notes = notes_of((ROOT / "CHANGELOG.md").read_text("utf-8"), __version__, repository)
    if folder.exists() and any(folder.iterdir()):
        raise CannotRelease(f"{folder} is not empty")
    folder.mkdir(parents=True, exist_ok=True)
    packages(folder, repository)
    one_file(folder)
    (folder / "install.yaml").write_text(installation(), "utf-8")
    chart(folder / f"waddle-{__version__}.tgz")
    bill(folder / "sbom.cdx.json")
    (folder / "notes.md").write_text(notes, "utf-8")
    sums = checksums(folder)
    listed = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    (folder / "SHA256SUMS").write_text(listed, "utf-8")
    statement = json.dumps(provenance(sums, commit, repository), indent=2)
    (folder / "provenance.intoto.json").write_text(f"{statement}\n", "utf-8")
    if not tagged:
        git("tag", "--annotate", tag, "--message", f"Waddle {__version__}")


def git(*arguments: str | Path) -> str:
    return run("git", *arguments)


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CannotRelease(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout.strip()


def notes_of(changelog: str, version: str, repository: str = "") -> str:
    """A version's section of the changelog, and what is left to do."""
    found = re.search(
        rf"^## \[?{re.escape(version)}\b.*?\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise CannotRelease(f"CHANGELOG.md has no section {version}: name what was unreleased so")
    links = LINKED.format(repository=repository) if repository else UNLINKED
    left = PUBLICATION.format(version=version, platform=sys.platform, links=links)
    pipelines = ""
    if repository:
        pipelines = PIPELINES.format(version=version, repository=repository)
        host, _, path = repository.removeprefix("https://").partition("/")
        if host == "github.com":
            pipelines += ACTION.format(path=path, version=version)
    return f"# Waddle {version}\n\n{found[1].strip()}\n{left}{pipelines}"


def packages(folder: Path, repository: str) -> None:
    """The sdist and the wheel, whose bytes depend on the commit and its repository alone."""
    when = git("log", "-1", "--format=%ct")
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        git("clone", "--quiet", "--no-hardlinks", ROOT, tree)
        if repository:
            with (tree / "pyproject.toml").open("a", encoding="utf-8") as project:
                project.write(LINKS.format(repository=repository))
        build = (BIN / "python", "-m", "hatchling", "build", "-d", folder)
        run(*build, cwd=tree, SOURCE_DATE_EPOCH=when)


def one_file(folder: Path) -> None:
    """The command line as one file that Python runs, with all that it needs, as it is pinned."""
    (wheel,) = folder.glob("*.whl")
    pins = (ROOT / "requirements" / "run.txt").read_text("utf-8")
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.]+", pins, re.MULTILINE)), "utf-8")
    options = ("--reproducible", "-c", "waddle", "-p", "/usr/bin/env python3")
    given = ("--constraint", constraints, "--disable-pip-version-check", wheel)
    run(BIN / "shiv", *options, "-o", folder / "waddle.pyz", *given)
    constraints.unlink()


def installation() -> str:
    """Returns install.yaml for one ``kubectl apply``: the base with an image to fill in."""
    text = run("kubectl", "kustomize", ROOT / "manifests" / "base")
    made, count = re.subn(r"(\bimage: )\S*waddle:\S+", rf"\g<1>{IMAGE}", text)
    if not count:
        raise CannotRelease("manifests/base names no image of waddle")
    return f"{INSTALL_HEAD}{made}\n"


def chart(archive: Path) -> None:
    """The chart as Helm packs it: its links are files in there."""
    source = ROOT / "manifests" / "helm" / "waddle"

    def plain(item: tarfile.TarInfo) -> tarfile.TarInfo:
        item.uid = item.gid = item.mtime = 0
        item.uname = item.gname = ""
        return item

    with tarfile.open(archive, "w:gz", dereference=True) as packed:
        for file in sorted(source.rglob("*")):
            if file.is_file():
                packed.add(file, f"waddle/{file.relative_to(source)}", filter=plain)


def bill(file: Path) -> None:
    """Writes the bill of materials of the pinned environment, as CycloneDX."""
    cyclonedx = ROOT / ".venv-sbom" / "bin" / "cyclonedx-py"
    pins = ROOT / "requirements" / "run.txt"
    run(cyclonedx, "requirements", "--output-reproducible", "--output-file", file, pins)


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of each file by its name."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


def provenance(sums: dict[str, str], commit: str, repository: str) -> dict[str, Any]:
    """Of what and how the files were made: an in-toto statement of SLSA 1.0, not signed."""
    source: dict[str, Any] = {"digest": {"gitCommit": commit}}
    made_by = "urn:waddle:make-release"
    if repository:
        source["uri"] = f"git+{repository}"
        made_by = f"{repository}/blob/main/tests/release.py"
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": sums[name]}} for name in sums],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": made_by,
                "externalParameters": {"version": __version__},
                "resolvedDependencies": [source],
            },
            "runDetails": {"builder": {"id": "make release"}},
        },
    }


if __name__ == "__main__":
    try:
        cut(Path(sys.argv[1]).absolute(), *sys.argv[2:])
    except CannotRelease as error:
        sys.exit(f"no release: {error}")
    for made in sorted(Path(sys.argv[1]).iterdir()):
        print(f"{made.stat().st_size:>10,}  {made}")
