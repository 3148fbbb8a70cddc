"""Patterns of Kubernetes' names (apimachinery, ``util/validation``) and of texts, for all who ask."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A DNS label (RFC 1123)."""

LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
"""One that begins with a letter (RFC 1035)."""

SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
"""The part of a label's key after its prefix."""

LABEL_VALUE: Final = f"({QUALIFIED})?"

UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
"""As schemas and CEL have it: hyphens may be left out."""

LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What a text of Python's can hold and UTF-8 cannot."""
