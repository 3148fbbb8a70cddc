"""The bounds of an admission port as they are where no flag says otherwise."""

from typing import Final

from webhook.app.admission_port import connection_limits
from webhook.settings.serve import ServeSettings

ADMISSION_LIMITS: Final = connection_limits(ServeSettings())
"""Tests that are about one of them replace it."""
