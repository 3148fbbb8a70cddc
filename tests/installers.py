"""Checks of package installers for tests."""

import re

NO_NETWORK = re.compile(
    r"name resolution|NewConnectionError|ConnectTimeout|ProxyError"  # as pip has it
    r"|error sending request|dns error|Failed to fetch"  # as uv has it
)
