"""Every figure in README comes from a results file that is in the repository, and names its command."""

import json
import re

import pytest

from loadtest import readme
from tests.programs import ROOT

TEXT = (ROOT / "README.md").read_text()
MEASURED = re.compile(r"\d\s?(?:ms|µs|s|MiB|MB|%|times|records|requests)\b|\d ?%")


def test_the_figures_are_those_of_the_results() -> None:
    """`python -m loadtest.readme` would change nothing."""
    shown = []
    for page in readme.PAGES:
        text = page.read_text()
        assert readme.rendered(text, page) == text
        shown += [match["name"] for match in readme.SECTION.finditer(text)]
    assert shown == list(readme.sections())


@pytest.mark.parametrize("name", [name for name, text in readme.sections().items() if text])
def test_each_section_names_its_command_and_its_results(name: str) -> None:
    text = readme.sections()[name]
    (link,) = re.findall(r"\]\((loadtest/results/[^)]+)\)", text)
    result = json.loads((ROOT / link).with_suffix(".json").read_text())
    page = (ROOT / link).read_text()
    (command,) = re.findall(r"`(make [a-z-]+)`", text)
    assert command in page
    assert result["machine"]["waddle"] in page


def test_no_figure_stands_outside_the_sections() -> None:
    """Code that a reader types is no claim; a paragraph with a figure links to its results."""
    left = re.sub(r"```.*?```", "", readme.SECTION.sub("", TEXT), flags=re.DOTALL)
    unfounded = [
        paragraph
        for paragraph in left.split("\n\n")
        if MEASURED.search(paragraph) and "loadtest/results/" not in paragraph
    ]
    assert unfounded == []
