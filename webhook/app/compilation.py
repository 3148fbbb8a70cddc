"""Templates that are being admitted, compiled on a thread beside admission's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from webhook.constraint.errors import ConstraintFrameworkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from webhook.constraint.client import Client


class CompileThread:
    """One thread: templates are admitted seldom, and the requests that wait are bounded already."""

    def __init__(self, make_client: Callable[[], Client]) -> None:
        """``make_client`` gives an empty client, which is thrown away after one template."""
        self._make_client = make_client
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compile")

    def compile(self, document: Mapping[str, Any]) -> Future[str]:
        """What is wrong with a template, or an empty text."""
        return self._executor.submit(self._check, document)

    def stop(self) -> None:
        """Compile nothing more; what is being compiled is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _check(self, document: Mapping[str, Any]) -> str:
        try:
            self._make_client().add_template(document)
        except ConstraintFrameworkError as error:
            return str(error)
        return ""
