"""docs/first-policy.md: what a reader writes and types gives what the page says."""

import re
from pathlib import Path

import pytest

from tests.behaviour.first_policy import FILES, PAGE
from tests.behaviour.serving import Server
from tests.conformance.gatekeeper import waddle
from tests.programs import ROOT
from webhook.cli.pages.documents import PAGES

FENCE = r"^ *```(\w*)\n(.*?)^ *```"
TYPED = re.findall(r"^\$ waddle (.*)$", PAGE, re.MULTILINE)


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "first").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "first"


def test_each_command_on_files_gives_what_the_page_says(first: Path) -> None:
    assert len(FILES) == 4
    check, test, verify, serve = (line.split() for line in TYPED)
    checked, tested, verified = waddle(*check), waddle(*test), waddle(*verify)

    assert (checked.returncode, tested.returncode, verified.returncode) == (0, 1, 0)
    assert "the label owner is missing" in tested.stdout
    assert serve[:2] == ["serve", "--policies"]
    with Server(first) as server:
        server.ready()
        thing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
        assert "the label owner is missing" in str(server.admit(thing))


def test_the_server_answers_the_review_of_the_page_as_the_page_shows(first: Path) -> None:
    (review,) = re.findall(r"`review.json`:\n\n```json\n(.*?)```", PAGE, re.DOTALL)
    (answer,) = re.findall(r"^\$ curl .* -d @review\.json\n(.*)$", PAGE, re.MULTILINE)
    with Server(first) as server:
        server.ready()
        assert server.post(review.encode(), "/v1/admit").body.decode().strip() == answer


def test_a_broken_rule_is_named_with_its_line(first: Path) -> None:
    template = first / "template.yaml"
    template.write_text(template.read_text().replace('[{"msg": msg}]', '[{"msg": mgs}]'))
    checked = waddle(*TYPED[0].split())
    assert checked.returncode == 1
    assert "ConstraintTemplate/requiredowner" in checked.stdout
    assert "template:2: rego_unsafe_var_error: var mgs is unsafe" in checked.stdout


def test_every_waddle_command_of_a_page_is_a_command_with_those_flags() -> None:
    """In all pages: what a reader copies must not be refused for its words."""
    known = PAGES["command-line.md"]() + PAGES["flags.md"]()
    headings = set(re.findall(r"^## waddle ([\w -]+)$", known, re.MULTILINE)) | {"serve"}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "policies/README.md"]
    wrong, tried = [], 0
    for page in pages:
        for language, block in re.findall(FENCE, page.read_text(), re.DOTALL | re.MULTILINE):
            if language not in ("", "console", "sh", "bash"):
                continue
            for line in re.findall(
                r"^(?:\$ )?(?:\.venv/bin/)?waddle ([^|>#\n]*)", block, re.MULTILINE
            ):
                tried += 1
                words = line.split()
                name = next(
                    (" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in headings), ""
                )
                flags = [word.partition("=")[0] for word in words if word.startswith("--")]
                if not name or [flag for flag in flags if f"{flag}" not in known]:
                    wrong.append(f"{page.name}: waddle {line}")
    assert wrong == []
    assert tried > 30
