"""Extras of the package: the extra of a missing module, and the command that installs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

DISTRIBUTION: Final = "waddle-admission"

OF_MODULES: Final = {
    "aiohttp": "cluster",
    "authlib": "oidc",
    "confluent_kafka": "kafka",
    "google": "grpc",
    "graphql": "graphql",
    "grpc": "grpc",
    "joserfc": "oidc",
    "kubernetes": "cluster",
    "_jsonnet": "jsonnet",
    "opentelemetry": "grpc",
}
"""Modules that a plain installation lacks, by extra; pyproject.toml lists the packages."""


OF_IMPORTERS: Final = {("webhook.registry", "aiohttp"): "registry"}
"""Packages that get a module from a smaller extra than others do."""


def extra_of(error: ImportError) -> str:
    """Returns the extra of the missing module; empty if no extra contains it."""
    module = (error.name or "").partition(".")[0]
    importer = ".".join(_importer(error).split(".")[:2])
    return OF_IMPORTERS.get((importer, module)) or OF_MODULES.get(module, "")


def _importer(error: ImportError) -> str:
    """Returns Waddle's module that imported the missing one."""
    name, trace = "", error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        name = module if module.startswith("webhook.") else name
        trace = trace.tb_next
    return name


def install_command(extra: str) -> str:
    """Returns the command that installs an extra.

    It uses the source of this installation: an index, a wheel or a checkout.
    """
    return f"pip install '{requirement(extra)}'"


def requirement(extra: str = "") -> str:
    """Returns this package with an extra as a pip requirement."""
    noted = installed_from()
    url = str(noted.get("url", ""))
    suffix = f"[{extra}]" if extra else ""
    if not url:
        return f"{DISTRIBUTION}{suffix}"
    if path := local_source(noted):
        # A folder or wheel that is gone was moved; the reader recognises it by its name.
        return f"{path if path.exists() else path.name}{suffix}"
    if "vcs_info" in noted:
        source = noted["vcs_info"]
        url = f"{source.get('vcs')}+{url}@{source.get('commit_id')}"
    return f"{DISTRIBUTION}{suffix} @ {url}"


def local_source(noted: dict[str, Any]) -> Path | None:
    """Returns the checkout or the wheel on this machine from which this was installed."""
    from urllib.parse import urlsplit  # noqa: PLC0415  # as below
    from urllib.request import url2pathname  # noqa: PLC0415

    address = urlsplit(str(noted.get("url", "")))
    is_local = address.scheme == "file" and "vcs_info" not in noted
    return Path(url2pathname(address.path)) if is_local else None


def installed_from() -> dict[str, Any]:
    """Returns the source of this installation by the installer's note (PEP 610).

    Empty for an index.
    """
    import json  # noqa: PLC0415  # such imports take a third of a start without them
    from importlib import metadata  # noqa: PLC0415

    try:
        text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        noted = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}
