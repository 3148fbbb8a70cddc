"""A registry of each test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.oci_registry import OciRegistry, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def registry() -> Iterator[OciRegistry]:
    with serving() as served:
        yield served
