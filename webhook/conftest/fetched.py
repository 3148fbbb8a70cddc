"""Policies fetched before a run: files, folders, and single files from the web."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from webhook.conftest.policies import ConftestPolicyError
from webhook.proxies import proxy_for

if TYPE_CHECKING:
    from collections.abc import Sequence

BYTES_MAX: Final = 64 << 20
"""A larger file is no policy."""

_SECONDS_MAX: Final = 60
_WEB: Final = ("http", "https")


def update(folder: str, urls: Sequence[str]) -> None:
    """Bring what the URLs name into the folder; raises :class:`ConftestPolicyError`."""
    for url in urls:
        try:
            _fetch(Path(folder), url)
        except (OSError, ValueError) as error:
            raise ConftestPolicyError(f"update policies: {url}: {error}") from None


def _fetch(folder: Path, url: str) -> None:
    plain = url.removeprefix("file::")
    parts = urlsplit(plain)
    if parts.scheme in _WEB:
        name = Path(unquote(parts.path)).name
        if not name:
            raise ValueError("the address names no file")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(_download(plain))
        return
    if parts.scheme not in {"", "file"}:
        raise ValueError(f"{parts.scheme} is not supported: fetch the policies before the run")
    source = Path(unquote(parts.path) if parts.scheme else plain)
    if source.is_dir():
        shutil.copytree(source, folder, dirs_exist_ok=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / source.name)


class _Proxies(urllib.request.ProxyHandler):
    """Proxies as Go's programs find them: the library's own way knows no networks in NO_PROXY."""

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Send a request, or one that it is redirected to, by its proxy."""
        proxy = proxy_for(request.full_url)
        if proxy is not None:
            parts = urlsplit(proxy.url)
            for name, value in proxy.headers.items():
                request.add_header(name, value)
            request.set_proxy(parts.netloc, parts.scheme)
        return request

    https_request = http_request


def _download(url: str) -> bytes:
    # Only what begins with http:// or https:// comes here.
    opener = urllib.request.build_opener(_Proxies({}))
    with opener.open(url, timeout=_SECONDS_MAX) as response:
        content: bytes = response.read(BYTES_MAX + 1)
    if len(content) > BYTES_MAX:
        raise ValueError(f"larger than {BYTES_MAX} bytes")
    return content
