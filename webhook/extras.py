"""Extras of the package: which of them brings what, and the sentence that says which to install."""

from __future__ import annotations

from typing import Final

OF_MODULES: Final = {
    "aiohttp": "cluster",
    "authlib": "oidc",
    "confluent_kafka": "kafka",
    "google": "grpc",
    "grpc": "grpc",
    "joserfc": "oidc",
    "kubernetes": "cluster",
    "_jsonnet": "jsonnet",
    "opentelemetry": "grpc",
}
"""Modules that a plain installation does not have; pyproject.toml has the packages."""


def extra_of(error: ImportError) -> str:
    """The extra that brings the module which is missing; nothing where none does."""
    return OF_MODULES.get((error.name or "").partition(".")[0], "")


def how_to_install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'waddle-admission[{extra}]'"
