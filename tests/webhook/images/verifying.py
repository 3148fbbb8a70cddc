"""Policies and answers for tests: an instance, an image in a folder, and what is said of it."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

from tests.webhook.images.signing import (
    ISSUER,
    NOW,
    SUBJECT,
    Layout,
    Sigstore,
    bundle,
    dsse_spec,
    envelope,
    new_key,
    pem,
    public_pem,
    statement,
)
from webhook.images.answer import answer_about
from webhook.images.layout import ImageLayout
from webhook.images.policy import read_policy
from webhook.registry.reference import parse_reference

IMAGE = "registry.example/app:1.0"
IDENTITY = {"issuer": ISSUER, "subject": SUBJECT}
PROVENANCE = "https://slsa.dev/provenance/v1"


def policy(authorities, root=None, name="ours", read=None, **spec):
    """A policy about every image of the registry."""
    document = {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "VerificationPolicy",
        "metadata": {"name": name},
        "spec": {"images": ["registry.example/*"], "authorities": authorities, **spec},
    }
    if root is not None:
        document["spec"]["trustedRoot"] = {"data": json.dumps(root)}
    return read_policy(document, read or (lambda name: Path(name).read_bytes()))


def by_key(key, name="release", log="Ignored"):
    """An authority that holds a key."""
    return {"name": name, "key": {"data": public_pem(key).decode()}, "transparencyLog": log}


def keyless(*identities, name="ci", **fields):
    return {"name": name, "keyless": {"identities": list(identities or [IDENTITY])}, **fields}


@dataclass
class World:
    """An image in a folder, and an instance that signs it."""

    directory: Path
    sigstore: Sigstore = field(default_factory=Sigstore)

    def __post_init__(self):
        self.layout = Layout(self.directory)
        self.image = self.layout.image()

    def sign_keyless(
        self,
        of=None,
        *,
        content=None,
        key=None,
        certificate=None,
        entry=None,
        stamps=(),
        logged=True,
    ):
        """Attach a bundle; whatever is not said is as it should be. ``entry`` changes the log's."""
        signer = key or new_key()
        certificate = certificate or self.sigstore.authority.issue(
            signer, ct_key=self.sigstore.ct_key
        )
        sealed, payload, signature = envelope(signer, content or statement(of or self.image))
        entries = []
        if logged:
            spec = dsse_spec(payload, signature, pem(certificate))
            made = self.sigstore.log.entry("dsse", "0.0.1", spec)
            entries = [made if entry is None else entry(made, spec)]
        document = bundle(
            sealed,
            certificate=certificate,
            entries=entries,
            timestamps=[stamp(signature) for stamp in stamps],
        )
        self.layout.attach(self.image, document)
        return document

    def answer(self, *policies, image=IMAGE, now=NOW):
        """Returns the policies' answer about an image of the folder."""
        registry = ImageLayout(self.directory)
        return asyncio.run(
            answer_about(registry, parse_reference(image), policies, now.timestamp())
        )

    def reasons(self, *policies, **options):
        """Returns all authorities' reasons in one text; the image must not be verified."""
        answer = self.answer(*policies, **options)
        assert not answer.is_verified
        return "\n".join(
            text
            for one in answer.judgements
            for authority in one.authorities
            for text in authority.why
        )
