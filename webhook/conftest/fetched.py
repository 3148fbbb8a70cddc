"""Fetches policies for ``pull``, and before a run (downloader/, hashicorp/go-getter).

Sources have go-getter's syntax: ``git::URL//FOLDER?ref=TAG``, ``oci://…``, addresses of known
registries, ``github.com/OWNER/NAME``, paths, and URLs of the web.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from webhook.conftest.policies import ConftestPolicyError
from webhook.conftest.registry import registry_options
from webhook.printable import reason_of
from webhook.proxies import proxy_for
from webhook.values import dataclass

BYTES_MAX: Final = 64 << 20
"""The largest file; a larger one is no policy."""

_SECONDS_MAX: Final = 60
_GIT_SECONDS_MAX: Final = 300
_WEB: Final = ("http", "https")
_ARCHIVES: Final = (
    ".tar.gz",
    ".tgz",
    ".zip",
    ".tar.bz2",
    ".tbz2",
    ".tar.xz",
    ".txz",
    ".tar",
    ".gz",
)
_REGISTRIES: Final = re.compile(
    r"azurecr\.io|gcr\.io|registry\.gitlab\.com|pkg\.dev|^quay\.io"
    r"|[0-9]{12}\.dkr\.ecr\.[a-z0-9-]*\.amazonaws\.com"
    r"|(?:::1|127\.0\.0\.1|(?i:localhost)):\d{1,5}"
)
_GIT_SSH: Final = re.compile(r"(?:[A-Za-z0-9_.-]+@)?[A-Za-z0-9.-]+:(?!//)[^\\]+")
_FORCED: Final = re.compile(r"([A-Za-z0-9]+)::(.+)")


@dataclass(frozen=True, slots=True)
class FetchSource:
    """The source of policies: protocol, address, folder in it, and query."""

    kind: str
    address: str
    folder: str = ""
    query: str = ""


def update(folder: str, urls: Sequence[str], *, tls: bool | None = None) -> None:
    """Fetches the URLs into the folder; raises :class:`ConftestPolicyError`."""
    _fetch_all(folder, urls, tls=tls, overwrites=True, doing="update policies")


def pull(folder: str, urls: Sequence[str], *, tls: bool | None = None) -> None:
    """Fetches like :func:`update`, but refuses to overwrite an existing file of the same name."""
    _fetch_all(folder, urls, tls=tls, overwrites=False, doing="download policies")


def _fetch_all(
    folder: str, urls: Sequence[str], *, tls: bool | None, overwrites: bool, doing: str
) -> None:
    for url in urls:
        try:
            _fetch(Path(folder), detect(url), tls=tls, overwrites=overwrites)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise ConftestPolicyError(f"{doing}: {url}: {reason_of(error)}") from None


def detect(text: str) -> FetchSource:
    """Reads a source's text; raises ``ValueError`` for unsupported sources."""
    text = text.replace("localhost", "127.0.0.1")
    forced = _FORCED.fullmatch(text)
    kind, plain = (forced[1].lower(), forced[2]) if forced else ("", text)
    plain, folder, query = _parts(plain)
    scheme = urlsplit(plain).scheme if "://" in plain else ""
    if not scheme and not kind:
        if _REGISTRIES.search(plain):
            kind = "oci"
        elif plain.startswith("github.com/"):
            owner, _, rest = plain.removeprefix("github.com/").partition("/")
            name, _, below = rest.partition("/")
            if not owner or not name:
                raise ValueError("a repository of GitHub is github.com/OWNER/NAME")
            kind = "git"
            plain = f"https://github.com/{owner}/{name.removesuffix('.git')}.git"
            folder = folder or below
        elif _GIT_SSH.fullmatch(plain) and "@" in plain:
            kind = "git"
    kind = kind or ("file" if scheme in {"", "file"} else scheme)
    if kind not in {"file", "git", "oci", *_WEB}:
        raise ValueError(
            f"{kind} is not supported: policies come by git, oci, http, https and from files"
        )
    return FetchSource(kind, plain, folder, query)


def _parts(plain: str) -> tuple[str, str, str]:
    """Returns a source's address, its folder after ``//``, and its query."""
    plain, _, query = plain.partition("?")
    begin = plain.index("://") + 3 if "://" in plain else 0
    cut = plain.find("//", begin)
    if cut < 0:
        return plain, "", query
    return plain[:cut], plain[cut + 2 :].strip("/"), query


def _fetch(folder: Path, source: FetchSource, *, tls: bool | None, overwrites: bool) -> None:
    if source.kind == "git":
        _fetch_git(folder, source)
        return
    target = folder / Path(source.address).name
    if not overwrites and target.exists():
        raise ValueError(f"policy file already exists at {target}, refusing to overwrite")
    if source.kind == "oci":
        _fetch_oci(folder, source, tls=tls)
    elif source.kind in _WEB:
        _fetch_web(folder, source)
    else:
        _fetch_path(folder, source)


def _fetch_path(folder: Path, source: FetchSource) -> None:
    plain = source.address
    place = Path(unquote(urlsplit(plain).path) if plain.startswith("file://") else plain)
    place = place / source.folder if source.folder else place
    if place.is_dir():
        shutil.copytree(place, folder, dirs_exist_ok=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, folder / place.name)


def _fetch_web(folder: Path, source: FetchSource) -> None:
    name = Path(unquote(urlsplit(source.address).path)).name
    if not name:
        raise ValueError("the address names no file")
    if name.endswith(_ARCHIVES) or source.folder:
        raise ValueError("archives from the web are not opened: name a file, git:: or oci://")
    query = f"?{source.query}" if source.query else ""
    content = _download(f"{source.address}{query}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def _fetch_oci(folder: Path, source: FetchSource, *, tls: bool | None) -> None:
    from webhook.registry.errors import RegistryError  # noqa: PLC0415  # loads aiohttp
    from webhook.registry.package import write_files  # noqa: PLC0415
    from webhook.registry.reference import parse_reference  # noqa: PLC0415
    from webhook.registry.session import pull as pull_artifact  # noqa: PLC0415

    try:
        reference = parse_reference(source.address)
        options = registry_options(reference, tls=tls)
        pulled = pull_artifact(options, reference, archives=False)
        if not pulled.files:
            raise ValueError("the artifact has no files: none of its layers has a name")
        write_files(pulled.files, folder)
    except RegistryError as error:
        raise ValueError(str(error)) from None


# --- git ------------------------------------------------------------------------------------------


def _fetch_git(folder: Path, source: FetchSource) -> None:
    """Clones a repository into the folder, or copies one folder of it there."""
    query = parse_qs(source.query)
    if unknown := sorted(set(query) - {"ref", "depth"}):
        raise ValueError(f"{unknown[0]} is not supported of git: ref and depth are")
    ref = query.get("ref", [""])[0]
    if source.folder:
        if ".." in Path(source.folder).parts:
            raise ValueError(f"{source.folder} leads out of the repository")
        with tempfile.TemporaryDirectory(prefix="waddle-") as temporary:
            checkout = Path(temporary) / "checkout"
            _clone(source.address, ref, query, checkout)
            inner = checkout / source.folder
            if not inner.resolve().is_relative_to(checkout.resolve()) or not inner.is_dir():
                raise ValueError(f"the repository has no folder {source.folder}")
            shutil.copytree(inner, folder, dirs_exist_ok=True, symlinks=True)
        return
    if (folder / ".git").exists():
        _git("-C", str(folder), "fetch", "--quiet", "origin", ref or "HEAD")
        _git("-C", str(folder), "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not a checkout, and not empty: name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _clone(source.address, ref, query, folder)


def _clone(address: str, ref: str, query: dict[str, list[str]], folder: Path) -> None:
    if ref.startswith("-"):
        raise ValueError(f"{ref!r} is not the name of a commit, branch or tag")
    depth = query.get("depth", [""])[0]
    if depth and not (depth.isascii() and depth.isdigit()):
        raise ValueError(f"depth={depth} is not a number")
    shallow = ["--depth", depth or "1"] if depth or not ref else []
    _git("clone", "--quiet", *shallow, "--", address, str(folder))
    if ref:
        if depth:
            _git("-C", str(folder), "fetch", "--quiet", "--depth", depth, "origin", ref)
            ref = "FETCH_HEAD"
        _git("-C", str(folder), "checkout", "--quiet", ref)


def _git(*arguments: str) -> None:
    """Runs git without prompts, and only with protocols that run no programs."""
    program = shutil.which("git")
    if program is None:
        raise ValueError("git is not installed, by which git:: sources are fetched")
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    }
    try:
        subprocess.run(  # noqa: S603  # the address follows --
            [program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS_MAX,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        raise ValueError(f"git: {lines[-1] if lines else error.returncode}") from None


# --- the web --------------------------------------------------------------------------------------


class _Proxies(urllib.request.ProxyHandler):
    """Proxies as Go's programs find them: urllib's own handler ignores networks in NO_PROXY."""

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Sets the proxy of a request, also of a redirected one."""
        proxy = proxy_for(request.full_url)
        if proxy is not None:
            parts = urlsplit(proxy.url)
            for name, value in proxy.headers.items():
                request.add_header(name, value)
            request.set_proxy(parts.netloc, parts.scheme)
        return request

    https_request = http_request


def _download(url: str) -> bytes:
    # The address always begins with http:// or https:// here.
    opener = urllib.request.build_opener(_Proxies({}))
    end = time.monotonic() + _SECONDS_MAX
    parts: list[bytes] = []
    size = 0
    with opener.open(url, timeout=_SECONDS_MAX) as response:
        while part := response.read1(1 << 20):
            parts.append(part)
            size += len(part)
            if size > BYTES_MAX:
                raise ValueError(f"larger than {BYTES_MAX} bytes")
            if time.monotonic() > end:
                raise ValueError(f"not whole within {_SECONDS_MAX} s")
    return b"".join(parts)
