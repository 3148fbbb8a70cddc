"""Pages that are made from code: commands, flags, metrics, the API, and the manual page."""
