"""The reference pages are what the declarations say."""

from pathlib import Path

import pytest

from webhook.cli.documents import PAGES

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    """Otherwise run ``python -m webhook.cli.documents``."""
    assert (DOCS / name).read_text() == PAGES[name]()
