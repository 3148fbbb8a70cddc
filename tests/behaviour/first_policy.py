"""The files of the page about a first policy."""

import re

from tests.programs import ROOT

PAGE = (ROOT / "docs" / "first-policy.md").read_text()
FILES = dict(re.findall(r"`(first/[\w.]+)`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL))
