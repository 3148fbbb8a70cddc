"""Explains the fault of a kubeconfig that could not be used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which
from typing import Any, Final

from webhook.printable import reason_of

VARIABLE: Final = "KUBECONFIG"
_NEXT: Final = "say which by --kubeconfig FILE"


def kubeconfigs(named: str | Path | None) -> list[Path]:
    """Returns the kubeconfig files: the given one, else the user's own."""
    if named is not None:
        return [Path(named)]
    listed = os.environ.get(VARIABLE)
    if listed:
        return [Path(name).expanduser() for name in listed.split(os.pathsep) if name]
    return [Path("~/.kube/config").expanduser()]


def faults_of(named: str | Path | None, context: str | None) -> Iterator[str]:
    """Yields why these files give no usable cluster; the first reason is the one to fix.

    A pipe has already been read, so it yields nothing.
    """
    # Imported here: replicas in a cluster read no YAML.
    from webhook.api.yaml_reader import KUBERNETES, InvalidYaml, read_first  # noqa: PLC0415

    files = kubeconfigs(named)
    there = [file for file in files if file.exists()]
    if not there:
        names = ", ".join(map(str, files))
        source = (
            ""
            if named is not None
            else f" ({'$' + VARIABLE if VARIABLE in os.environ else 'the default'})"
        )
        yield f"there is no kubeconfig {names}{source}: {_NEXT}"
        return
    documents = []
    for file in there:
        if file.is_dir():
            yield f"{file} is a folder, and no kubeconfig: {_NEXT}"
        elif file.is_file():
            try:
                document = read_first(file.read_text("utf-8"), KUBERNETES)
            except InvalidYaml as error:
                line = error.line or 1
                yield f"{file}:{line}: this is not a kubeconfig, because it is not YAML: {error.message}"
            except (OSError, ValueError) as error:
                yield f"{file}: no kubeconfig: {reason_of(error)}"
            else:
                if not isinstance(document, dict) or not document:
                    yield f"{file}: no kubeconfig: it holds no clusters, users and contexts"
                else:
                    documents.append(document)
    if documents:
        yield from _faults(there, documents, context)


def _faults(
    files: Sequence[Path], documents: Sequence[dict[str, Any]], context: str | None
) -> Iterator[str]:
    place = ", ".join(map(str, files))
    current = next(
        (document["current-context"] for document in documents if document.get("current-context")),
        "",
    )
    contexts = _named(documents, "contexts", "context")
    known = ", ".join(contexts) or "none"
    name = context or current
    if not name:
        yield f"{place}: it has no current-context, so give --context NAME; its contexts: {known}"
        return
    if name not in contexts:
        which_one = "context" if context else "current-context"
        yield f"{place}: {which_one} {name} is not in it; its contexts: {known}"
        return
    for field, kind in (("cluster", "clusters"), ("user", "users")):
        other = contexts[name].get(field)
        there = _named(documents, kind, field)
        if other not in there:
            yield (
                f"{place}: context {name} names the {field} {other!r}, which is not in it; its {kind}: "
                f"{', '.join(there) or 'none'}"
            )
    cluster = _named(documents, "clusters", "cluster").get(contexts[name].get("cluster"), {})
    server = str(cluster.get("server", ""))
    if cluster and not server.startswith(("https://", "http://")):
        yield f"{place}: cluster {contexts[name]['cluster']}: its server {server!r} is not an https:// address"
    user = _named(documents, "users", "user").get(contexts[name].get("user"), {})
    command = (user.get("exec") or {}).get("command")
    if command and which(str(command)) is None:
        yield (
            f"{place}: user {contexts[name]['user']} signs in by the program {command}, "
            "which is not installed or not in $PATH"
        )
    if isinstance(token_file := user.get("tokenFile"), str) and token_file:
        token = files[0].parent / token_file  # relative to its kubeconfig, as in client-go
        if token.is_file() and not token.read_text("utf-8", "replace").strip():
            yield f"{place}: user {contexts[name]['user']}: its tokenFile {token} is empty"


def _named(
    documents: Sequence[dict[str, Any]], plural: str, field: str
) -> dict[Any, dict[str, Any]]:
    """Returns the entries of a list by name; the first entry of a name counts."""
    entries: dict[Any, dict[str, Any]] = {}
    for document in documents:
        listed = document.get(plural)
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and isinstance(entry.get(field), dict):
                entries.setdefault(entry.get("name"), entry[field])
    return entries
