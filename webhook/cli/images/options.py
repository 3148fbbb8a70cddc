"""The source of images: options shared by commands about images."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.policy_options import InputPath
from webhook.cli.registry_access import registry_options
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from webhook.images.collection import ImageRegistry
    from webhook.registry.transport import RegistryOptions


@dataclass(frozen=True, slots=True)
class ImagePlace:
    """A folder of images, or the options for registries."""

    layout: Path | None
    registries: Callable[[], RegistryOptions]

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[ImageRegistry]:
        """Opens the registry client until it is no longer needed; raises RegistryError."""
        if self.layout is not None:
            from webhook.images.layout import ImageLayout  # noqa: PLC0415  # only for a layout

            yield ImageLayout(self.layout)
            return
        from webhook.registry.client import RegistryClient  # noqa: PLC0415  # it brings aiohttp

        async with RegistryClient(self.registries()) as client:
            yield client


_POLICIES = click.option(
    "-f",
    "--policies",
    "policies",
    metavar="PATH",
    multiple=True,
    type=InputPath(),
    help="A file or folder of VerificationPolicies. Repeatable.",
)
_SECRETS = click.option(
    "--secrets",
    metavar="DIR",
    type=InputPath(file_okay=False),
    help="A folder with the Secrets that policies name, as DIR/NAME/KEY.",
)
_LAYOUT = click.option(
    "--layout",
    metavar="DIR",
    type=InputPath(file_okay=False),
    help="A folder of images (OCI image layout) to read instead of registries.",
)


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds options of policies and places.

    The command gets ``policies``, ``secrets`` and ``place``.
    """

    @functools.wraps(command)
    def placed(*, layout: Path | None, registries: Any, **options: Any) -> Any:
        return command(place=ImagePlace(layout, registries), **options)

    return _POLICIES(_SECRETS(_LAYOUT(registry_options(placed))))
