"""A console with a login, for tests of what people see who sign in."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.webhook.console.identity import CLIENT, SECRET, RunningProvider
from tests.webhook.console.running import RunningConsole


@contextmanager
def signing(
    folder: Path, provider: RunningProvider, flags: Sequence[str]
) -> Iterator[RunningConsole]:
    """A console whose people sign in at this provider; ``flags`` say what it is over."""
    (folder / "key").write_text("k" * 48)
    (folder / "secret").write_text(f"{SECRET}\n")
    port = free_port()
    with RunningConsole(
        f"--port={port}",
        f"--oidc-issuer-url={provider.issuer}",
        f"--oidc-client-id={CLIENT}",
        f"--oidc-client-secret-file={folder / 'secret'}",
        f"--oidc-redirect-url=http://localhost:{port}/oidc/callback",
        f"--cookie-key-file={folder / 'key'}",
        *flags,
    ) as running:
        yield running.ready()
