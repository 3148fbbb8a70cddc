"""Reads VerificationPolicies from files and folders, with the keys and roots that they name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from webhook.images.conditions import InvalidCondition, compiled
from webhook.images.policy import (
    KIND,
    InvalidVerificationPolicy,
    ReadSecret,
    VerificationPolicy,
    is_verification_policy,
    no_secrets,
    read_policy,
)
from webhook.policies.manifests import UnreadableFile, find_files, read_file

_FILE_BYTES_MAX: Final = 1024 * 1024
"""The size of a file of keys, certificates or a trusted root at most; a Secret holds as much."""


def load_policies(paths: Sequence[Path], secrets: Path | None = None) -> list[VerificationPolicy]:
    """Returns the policies of files and folders; other kinds are ignored.

    ``secrets`` is a folder with a subfolder for each mounted Secret.

    Raises :class:`~webhook.images.policy.InvalidVerificationPolicy` with the name of the file. An
    unusable policy is not skipped: its images would be left to weaker policies.
    """
    policies: list[VerificationPolicy] = []
    for path in paths:
        try:
            files = find_files(path)
        except OSError as error:
            raise InvalidVerificationPolicy(f"{path}: {error.strerror or error}") from None
        for file in files:
            policies += _read(file, secrets)
    if not policies:
        raise InvalidVerificationPolicy(
            f"there is no {KIND} in {', '.join(map(str, paths)) or 'what is given'}"
        )
    names = [policy.name for policy in policies]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidVerificationPolicy(f"{KIND} {twice[0]} is there twice: rename one")
    return policies


def _read(file: Path, secrets: Path | None) -> list[VerificationPolicy]:
    try:
        manifests = read_file(file)
    except UnreadableFile as error:
        raise InvalidVerificationPolicy(str(error)) from None
    policies = []
    for manifest in manifests:
        if not is_verification_policy(manifest.document):
            continue
        try:
            policy = read_policy(
                manifest.document, lambda name: _bytes(file.parent / name), secrets_in(secrets)
            )
            check_conditions(policy)
        except InvalidVerificationPolicy as error:
            raise InvalidVerificationPolicy(f"{file}: line {manifest.line}: {error}") from None
        policies.append(policy)
    return policies


def secrets_in(folder: Path | None) -> ReadSecret:
    """Returns the reader of Secrets that are mounted in a folder."""
    if folder is None:
        return no_secrets
    return lambda name, key: _bytes(folder / name / key)


def _bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        content = stream.read(_FILE_BYTES_MAX + 1)
    if len(content) > _FILE_BYTES_MAX:
        raise OSError(f"it is larger than {_FILE_BYTES_MAX} bytes")
    return content


def check_conditions(policy: VerificationPolicy) -> None:
    """Compiles the conditions; raises :class:`~webhook.images.policy.InvalidVerificationPolicy`."""
    for required in policy.attestations:
        for condition in required.conditions:
            try:
                compiled(condition)
            except InvalidCondition as error:
                raise InvalidVerificationPolicy(
                    f"{KIND} {policy.name}: the attestation {required.name}: {error}"
                ) from None
