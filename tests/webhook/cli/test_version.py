"""`waddle version` says what a report of a fault needs."""

import json
import platform
from importlib import metadata

from tests.conformance.gatekeeper import waddle
from webhook import __version__
from webhook.cli import version

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_version_engines_and_python_are_reported():
    shown = waddle("version").stdout
    for text in (__version__, "OPA 1.22.4", "Kubernetes 1.37", platform.python_version()):
        assert text in shown
    found = json.loads(waddle("version", "-o", "json").stdout)
    assert found.keys() - {"commit"} == {"waddle", "rego", "cel", "python", "platform"}


def test_the_commit_of_a_checkout_is_read_without_git(tmp_path):
    git = tmp_path / ".git"
    git.mkdir()
    assert version._of_checkout(tmp_path) == ""
    (git / "HEAD").write_text(f"{COMMIT}\n")
    assert version._of_checkout(tmp_path) == COMMIT
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert version._of_checkout(tmp_path) == ""
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n")
    assert version._of_checkout(tmp_path) == COMMIT
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "refs" / "heads" / "main").write_text(f"{COMMIT[::-1]}\n")
    assert version._of_checkout(tmp_path) == COMMIT[::-1]


def test_the_commit_of_a_work_tree_is_that_of_its_own_branch(tmp_path):
    git = tmp_path / "main" / ".git" / "worktrees" / "other"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/other\n")
    (git / "commondir").write_text("../..\n")
    (tmp_path / "main" / ".git" / "packed-refs").write_text(f"{COMMIT} refs/heads/other\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").write_text(f"gitdir: {git}\n")
    assert version._of_checkout(tmp_path / "other") == COMMIT


def test_what_is_no_commit_is_not_reported(tmp_path):
    (tmp_path / ".git").mkdir()
    for text in ("", "\x1b[31m", "g" * 40, COMMIT[1:]):
        (tmp_path / ".git" / "HEAD").write_text(text)
        assert version._of_checkout(tmp_path) == ""


def test_the_distribution_has_the_name_that_the_index_has_free():
    assert metadata.distribution("waddle-admission").version == __version__
