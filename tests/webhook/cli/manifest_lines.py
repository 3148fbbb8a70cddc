"""Manifests, and what gator says of them."""

from __future__ import annotations

import yaml

from tests.webhook.cli.in_process import waddle


def gators_lines(*arguments, **options):
    """The command with a line for each violation and nothing else."""
    return waddle("test", "-o", "text", *arguments, **options)


def manifest(folder, *documents, name="m.yaml"):
    path = folder / name
    path.write_text(yaml.safe_dump_all(documents, allow_unicode=True))
    return path
