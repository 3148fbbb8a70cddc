"""Bundles: a folder or a ``.tar.gz`` of Rego modules and data, as ``opa -b`` reads them.

Only ``data.json``, ``data.yaml`` and ``data.yml`` are read as data; their folder's path is their
place. ``.manifest`` has the bundle's roots below ``data``, and the Rego version of its modules.
Signatures are not verified, as in OPA's commands. (OPA v1/bundle/bundle.go.)
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from webhook.policies.rego_files import (
    BYTES_MAX,
    YAML,
    RegoFiles,
    conflict,
    ignored,
    merge_into,
    system_words,
    yaml_value,
)
from webhook.rego.builtins import go_json
from webhook.rego.builtins.globs import compiled
from webhook.rego.errors import BuiltinError, RegoErrors, RegoLoadError
from webhook.rego.syntax.ast import Module, RegoVersion, String
from webhook.rego.syntax.metadata import block_faults
from webhook.rego.syntax.parser import parse_module
from webhook.rego.syntax.unparse import unparse
from webhook.values import dataclass

_SIGNATURES: Final = ".signatures.json"
_PATCH: Final = "patch.json"
_WASM: Final = "policy.wasm"
_VERSIONS: Final[dict[Any, RegoVersion]] = {0: "v0", 1: "v1"}


class BundleError(Exception):
    """A bundle cannot be used: its path, and the faults of its sources, if any."""

    def __init__(self, message: str, path: str = "", faults: Sequence[RegoLoadError] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.faults = tuple(faults)


class ActivationError(BundleError):
    """Bundles that are valid alone cannot be used together."""


@dataclass(slots=True)
class _Manifest:
    roots: list[str] = field(default_factory=lambda: [""])
    version: RegoVersion | None = None
    versions: dict[str, RegoVersion] = field(default_factory=dict)
    wasm_modules: list[str] = field(default_factory=list)


def load_bundles(
    paths: Sequence[str], files: RegoFiles, *, version: RegoVersion, ignore: Sequence[str]
) -> None:
    """Adds the content of bundles; raises :class:`BundleError`.

    ``ignore`` has patterns of names of files and folders to skip.
    """
    roots: dict[str, list[str]] = {}
    loaded: list[tuple[str, RegoFiles]] = []
    for path in paths:
        place = path.removeprefix("file://")
        try:
            bundle = RegoFiles()
            roots[path] = _load(place, version, ignore, bundle)
            loaded.append((place, bundle))
        except OSError as error:
            message = f'error reading "{place}": stat {place}: {system_words(error)}'
            raise BundleError(message, place) from None
        except _Refused as refused:
            raise BundleError(f"bundle {place}: {refused}", place) from None
        except RegoErrors as errors:
            raise BundleError(f"bundle {place}: {errors}", place, errors.errors) from None
    _check_roots(roots)
    for place, bundle in loaded:
        if conflict(files.data, bundle.data) is not None:
            raise BundleError(f"bundle {place}: its data is in another file, too", place)
        merge_into(files.data, bundle.data)
        files.modules.extend(bundle.modules)


class _Refused(Exception):
    """The fault of a bundle."""


def _load(place: str, version: RegoVersion, ignore: Sequence[str], files: RegoFiles) -> list[str]:
    """Adds a bundle to the files; returns its roots."""
    path = Path(place)
    folder = path.is_dir()
    if not folder:
        path.stat()
    # A folder's modules are named by their path, an archive's by their name in it.
    base = place if folder else ""
    contents = _in_folder(path, ignore) if folder else _in_archive(path, ignore)
    manifest, data, sources, wasm = _Manifest(), dict[str, Any](), [], set[str]()
    for name, text in contents:
        shown = os.path.join(base, name.lstrip("/")) if folder else name  # noqa: PTH118
        kind = PurePosixPath(name).name
        if name.endswith(".rego"):
            sources.append((name, shown, text))
        elif kind == "data.json" or kind in {f"data{suffix}" for suffix in YAML}:
            try:
                value = go_json.decode(text) if kind == "data.json" else yaml_value(text)
            except BuiltinError as error:
                raise _Refused(f"bundle load failed on {shown}: {error.message}") from None
            _insert(data, name, value)
        elif kind == ".manifest":
            manifest = _manifest(text)
        elif kind == _WASM:
            wasm.add(name)
        elif kind == _PATCH:
            raise _Refused("delta bundles cannot be evaluated: build a bundle of all data")
    for module in manifest.wasm_modules:
        if module not in wasm:
            raise _Refused(
                f"manifest references wasm module '{module}' but the module file does not exist"
            )
    modules = [
        parse_module(text, shown, _version_of(manifest, name, version))
        for name, shown, text in sources
    ]
    if faults := [fault for module in modules for fault in block_faults(module)]:
        raise RegoErrors(faults)
    _check_contents(manifest.roots, modules, data)
    merge_into(files.data, data)
    files.modules.extend(modules)
    return manifest.roots


def _in_folder(folder: Path, ignore: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not ignored(name, ignore))
        for name in sorted(names):
            file = Path(at, name)
            # Links are not followed: their targets may be outside.
            if (
                ignored(name, ignore)
                or name == _SIGNATURES
                or file.is_symlink()
                or not file.is_file()
            ):
                continue
            relative = f"/{file.relative_to(folder).as_posix()}"
            _check_size(relative, file.stat().st_size)
            yield relative, file.read_text("utf-8", "surrogateescape")


def _in_archive(path: Path, ignore: Sequence[str]) -> Iterator[tuple[str, str]]:
    total = 0
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                if (
                    not member.isreg()
                    or parts[-1] == _SIGNATURES
                    or any(ignored(part, ignore) for part in parts)
                ):
                    continue
                total += member.size  # of all together: an archive may unpack to anything
                _check_size(member.name, total)
                file = archive.extractfile(member)
                assert file is not None
                yield member.name, file.read().decode("utf-8", "surrogateescape")
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        reason = "gzip: invalid header" if isinstance(error, tarfile.ReadError) else str(error)
        raise _Refused(f"bundle read failed: archive read failed: {reason}") from None


def _check_size(name: str, size: int) -> None:
    if size > BYTES_MAX:
        raise _Refused(f"{name}: over {BYTES_MAX} bytes")


def _insert(data: dict[str, Any], name: str, value: Any) -> None:
    at = str(PurePosixPath(name).parent).lstrip("/.")
    for step in reversed(at.split("/") if at else []):
        value = {step: value}
    if not isinstance(value, dict):
        raise _Refused(f"bundle load failed on {name}: root value must be object")
    if conflict(data, value) is not None:
        raise _Refused(f"bundle load failed on {name}: failed to insert data file from path {at}")
    merge_into(data, value)


def _manifest(text: str) -> _Manifest:
    try:
        written = go_json.decode(text)
    except BuiltinError as error:
        raise _Refused(f"bundle load failed on manifest decode: {error.message}") from None
    manifest = _Manifest()
    if not isinstance(written, dict):
        raise _Refused("bundle load failed on manifest decode: it is not an object")
    roots = written.get("roots")
    if roots is not None:
        if not isinstance(roots, list) or not all(isinstance(root, str) for root in roots):
            raise _Refused("bundle load failed on manifest decode: roots are not a list of strings")
        manifest.roots = [root.strip("/") for root in roots]
    for number, root in enumerate(manifest.roots):
        for other in manifest.roots[number + 1 :]:
            if _contains(root, other) or _contains(other, root):
                raise _Refused(f"manifest has overlapped roots: '{root}' and '{other}'")
    version = written.get("rego_version")
    if version is not None:
        manifest.version = _known(version, "")
    for pattern, version in sorted((written.get("file_rego_versions") or {}).items()):
        manifest.versions[pattern] = _known(version, f" for file '{pattern}'")
    listed = written.get("wasm")
    resolvers = listed if isinstance(listed, list) else []
    manifest.wasm_modules = [
        str(resolver.get("module")) for resolver in resolvers if isinstance(resolver, dict)
    ]
    return manifest


def _known(version: Any, where: str) -> RegoVersion:
    if version not in _VERSIONS:
        raise _Refused(f"manifest has unknown rego-version {version}{where}")
    return _VERSIONS[version]


def _version_of(manifest: _Manifest, name: str, default: RegoVersion) -> RegoVersion:
    for pattern, version in manifest.versions.items():
        if compiled(pattern, "").found_in(name):
            return version
    return manifest.version or default


def _contains(root: str, path: str) -> bool:
    return not root or path == root or path.startswith(f"{root}/")


def _check_contents(roots: list[str], modules: list[Module], data: dict[str, Any]) -> None:
    shown = f"[{' '.join(roots)}]"
    for module in modules:
        steps = [part.value for part in module.package.path if isinstance(part, String)]
        if not any(_contains(root, "/".join(steps)) for root in roots):
            package = unparse(module.package).removeprefix("data.")
            raise _Refused(
                f"manifest roots {shown} do not permit 'package {package}' in module "
                f"'{module.file}'"
            )
    for path in _outside(data, "", roots):
        raise _Refused(
            f"manifest roots {shown} do not permit data at path '/{path}' "
            "(hint: check bundle directory structure)"
        )


def _outside(node: Any, path: str, roots: list[str]) -> Iterator[str]:
    """Yields the places of data that no root contains."""
    if any(_contains(root, path) for root in roots):
        return
    if not isinstance(node, dict) or not any(_contains(path, root) for root in roots):
        yield path
        return
    for key, inner in sorted(node.items()):
        yield from _outside(inner, f"{path}/{key}".lstrip("/"), roots)


def _check_roots(bundles: dict[str, list[str]]) -> None:
    """Raises for bundles with overlapping roots, which cannot be activated together."""
    entries = sorted((root, name) for name, roots in bundles.items() for root in roots)
    colliding: set[str] = set()
    conflicts: set[str] = set()
    for number, (root, name) in enumerate(entries):
        for other_root, other in entries[number + 1 :]:
            if other == name or not _contains(root, other_root):
                continue
            colliding |= {name, other}
            conflicts.add(
                f"root {root} is in multiple bundles"
                if root == other_root
                else f"{root} overlaps {other_root}"
            )
    if not colliding:
        return
    listed = ", ".join(sorted(colliding))
    if empty := sorted(name for name, roots in bundles.items() if "" in roots):
        raise ActivationError(
            f"bundles [{listed}] have overlapping roots and cannot be "
            f"activated simultaneously because bundle(s) [{', '.join(empty)}] specify empty root "
            "paths ('') which overlap with any other bundle root"
        )
    raise ActivationError(
        "detected overlapping roots in manifests for these bundles: "
        f"[{listed}] ({', '.join(sorted(conflicts))})"
    )
