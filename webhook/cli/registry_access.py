"""Access of commands to registries: options, credentials, and pulled folders."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from webhook.cli.policy_options import InputPath, together
from webhook.cli.terminal import NoResult
from webhook.printable import quantity, reason_of
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from webhook.images.policy import VerificationPolicy
    from webhook.registry.client import RegistryClient
    from webhook.registry.reference import Reference
    from webhook.registry.session import Pulled
    from webhook.registry.transport import RegistryOptions


def _read_mirrors(
    _context: click.Context, _parameter: click.Parameter, value: Sequence[str]
) -> Mapping[str, tuple[str, ...]]:
    mirrors: dict[str, tuple[str, ...]] = {}
    for mirror in value:
        registry, separator, host = mirror.partition("=")
        if not (registry and separator and host) or "/" in host:
            raise click.BadParameter(f"{mirror!r} must be REGISTRY=HOST")
        mirrors[registry] = (*mirrors.get(registry, ()), host)
    return mirrors


_OPTIONS = together(
    click.option(
        "--registry-config",
        "configs",
        metavar="FILE",
        multiple=True,
        type=InputPath(exists=False),
        help=(
            "Credentials: a config.json of Docker's, or a Secret for imagePullSecrets. The "
            "default is the user's own. Repeatable."
        ),
    ),
    click.option(
        "--registry-ca",
        "authorities",
        metavar="FILE",
        multiple=True,
        type=InputPath(exists=False),
        help="Certificate authorities to trust besides the system's. Repeatable.",
    ),
    click.option(
        "--registry-mirror",
        "mirrors",
        metavar="REGISTRY=HOST",
        multiple=True,
        callback=_read_mirrors,
        help="A mirror: the host to use before the registry. Repeatable.",
    ),
    click.option(
        "--registry-insecure",
        "insecure",
        metavar="HOST[:PORT]",
        multiple=True,
        help="A registry to use without TLS. Repeatable.",
    ),
)
_OPTION_NAMES = ("configs", "authorities", "mirrors", "insecure")


def registry_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of registry access; the command gets a function ``registries``."""

    @functools.wraps(command)
    def bound(**options: Any) -> Any:
        values = {name: options.pop(name) for name in _OPTION_NAMES}
        return command(registries=functools.partial(_read_options, **values), **options)

    return _OPTIONS(bound)


_ARTIFACT_OPTIONS = together(
    click.option(
        "--verification-policy",
        "verification",
        metavar="PATH",
        multiple=True,
        type=InputPath(),
        help=(
            "A file or folder of VerificationPolicies. An artifact is read only if it is signed "
            "as they require. Repeatable."
        ),
    ),
    click.option(
        "--catalogue",
        metavar="FILE",
        type=InputPath(),
        help="A catalogue file; the names of its sources then stand for their references.",
    ),
)


@dataclass(frozen=True, slots=True)
class ArtifactSource:
    """The reference of policies, and their required signers."""

    registries: Callable[[], RegistryOptions]
    verification: tuple[Path, ...]
    catalogue: Path | None

    def pull(self, image: str) -> Pulled:
        """Returns the files of an artifact; raises :class:`PullError`."""
        import time  # noqa: PLC0415  # few commands are given an image

        from webhook.policies.catalogue import InvalidCatalogue, source_of  # noqa: PLC0415
        from webhook.registry.errors import RegistryError  # noqa: PLC0415  # they bring aiohttp
        from webhook.registry.reference import parse_reference  # noqa: PLC0415
        from webhook.registry.session import pull  # noqa: PLC0415

        reference, verification = image, self.verification
        try:
            if self.catalogue is not None:
                source = source_of(self.catalogue, image)
                reference, verification = source.image, (*verification, *source.verification)
            policies = _verification_policies(verification)
            artifact = pull(
                self.registries(),
                parse_reference(reference),
                archives=True,
                verify=_verifying(policies, time.time) if policies else None,
            )
        except (RegistryError, InvalidCatalogue) as error:
            raise PullError(f"{image}: {error}") from None
        if not artifact.files:
            raise PullError(f"{image}: {artifact.reference.digest} has no policy files")
        return artifact


def _verification_policies(paths: Sequence[Path]) -> list[VerificationPolicy]:
    """Raises :class:`PullError`."""
    if not paths:
        return []
    from webhook.images.policy import InvalidVerificationPolicy  # noqa: PLC0415  # see pull
    from webhook.images.policy_files import load_policies  # noqa: PLC0415

    try:
        return load_policies(paths)
    except InvalidVerificationPolicy as error:
        raise PullError(str(error)) from None


def _verifying(
    policies: Sequence[VerificationPolicy], clock: Callable[[], float]
) -> Callable[[RegistryClient, Reference], Awaitable[Reference]]:
    from webhook.images.answer import require_verified  # noqa: PLC0415  # see pull

    return lambda client, reference: require_verified(client, reference, policies, clock())


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of an artifact to pull; the command gets them as ``source``."""

    @functools.wraps(command)
    def bound(
        *, registries: Any, verification: tuple[Path, ...], catalogue: Path | None, **options: Any
    ) -> Any:
        return command(source=ArtifactSource(registries, verification, catalogue), **options)

    return _ARTIFACT_OPTIONS(registry_options(bound))


def image_option(argument: str, code: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--image REF``: the command gets pulled files as folders among its ``argument``.

    It ends with ``code`` where they cannot be pulled.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def pulled_first(*, images: tuple[str, ...], source: ArtifactSource, **options: Any) -> Any:
            if not images:
                return command(**options)
            with contextlib.ExitStack() as stack:
                try:
                    folders = stack.enter_context(pulled_folders(images, source))
                except PullError as error:
                    raise error.exiting(code) from None
                options[argument] = (*options[argument], *folders)
                return command(**options)

        option = click.option(
            "--image",
            "images",
            metavar="REF",
            multiple=True,
            help=(
                "Policies in a registry, pushed by waddle policy push, conftest push, oras or opa: "
                "HOST/REPOSITORY[:TAG][@DIGEST]. Repeatable."
            ),
        )
        return option(source_options(pulled_first))

    return decorate


class PullError(NoResult):
    """An artifact could not be pulled; the text names it and the reason."""


@contextlib.contextmanager
def pulled_folders(images: Sequence[str], source: ArtifactSource) -> Iterator[list[str]]:
    """Yields artifacts as temporary folders; raises :class:`PullError`."""
    import tempfile  # noqa: PLC0415  # few commands are given an image

    from webhook.registry.errors import RegistryError  # noqa: PLC0415  # they bring aiohttp
    from webhook.registry.package import write_files  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="waddle-") as temporary:
        folders = []
        for number, image in enumerate(images):
            artifact = source.pull(image)
            folder = (
                Path(temporary) / str(number) / artifact.reference.repository.rpartition("/")[2]
            )
            try:
                write_files(artifact.files, folder)
            except (OSError, RegistryError) as error:
                raise PullError(f"{image}: {reason_of(error)}") from None
            folders.append(str(folder))
        yield folders


def _read_options(
    *,
    configs: tuple[Path, ...],
    authorities: tuple[Path, ...],
    mirrors: Mapping[str, tuple[str, ...]],
    insecure: tuple[str, ...],
) -> RegistryOptions:
    """Returns the options for registries; raises ``RegistryError``."""
    from webhook.registry.credentials import read_docker_config  # noqa: PLC0415  # see above
    from webhook.registry.transport import RegistryOptions  # noqa: PLC0415

    credentials = tuple(map(_read_config, configs)) if configs else (read_docker_config(),)
    return RegistryOptions(credentials, mirrors, frozenset(insecure), authorities)


def _read_config(path: Path) -> Any:
    """Reads Docker's configuration or a Secret; raises ``RegistryError``."""
    from webhook.policies.manifests import UnreadableFile, read_values  # noqa: PLC0415  # see above
    from webhook.registry.credentials import pull_secret, read_docker_config  # noqa: PLC0415
    from webhook.registry.errors import InvalidCredentials  # noqa: PLC0415

    if path.suffix not in {".yaml", ".yml"}:
        return read_docker_config(path)
    try:
        secrets = [
            document.value for document in read_values(path) if isinstance(document.value, dict)
        ]
    except (OSError, UnreadableFile) as error:
        raise InvalidCredentials(f"{path}: {reason_of(error)}") from None
    if len(secrets) != 1:
        count = quantity(len(secrets), "object")
        raise InvalidCredentials(f"{path} has {count}: it must have exactly one Secret")
    return pull_secret(secrets[0], str(path))
