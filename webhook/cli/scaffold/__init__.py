"""Files to begin with: ``waddle init`` and ``waddle new``."""
