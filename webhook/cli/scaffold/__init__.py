"""Starter files: ``waddle init`` and ``waddle new``."""
