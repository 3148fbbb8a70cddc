"""Generated pages: commands, flags, metrics, the API, and the manual page."""
