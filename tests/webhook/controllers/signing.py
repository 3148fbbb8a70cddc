"""Revisions as a replica signs them, and what others make of such."""

import base64

from webhook.api.revision import digest_of, read_revision, revision_object
from webhook.controllers.revisions.keys import KeyRing, RevisionKey, RevisionKeys
from webhook.controllers.revisions.rollout_records import RolloutRecords
from webhook.log import Log

SECRET = "waddle-revision-keys"
KEY = RevisionKey("key-1700000000", 1_700_000_000, b"k" * 32)
FOREIGN = RevisionKey("key-1700000000", 1_700_000_000, b"f" * 32)
"""The key of a forger without the Secret."""


def keys_of(client, *keys):
    """Returns the keys of a replica: these, or else the key of these tests."""
    known = RevisionKeys(
        client, "waddle-system", SECRET, Log(lambda _: None).logger("keys"), writes=False
    )
    known.ring = KeyRing(keys or (KEY,))
    known.is_settled = True
    return known


def rollouts_of(keys):
    """The records of roll-outs that count by these keys."""
    return RolloutRecords(keys, Log(lambda _: None).logger("rollouts"))


def signed(made, key=KEY):
    """A revision with the signature of a key."""
    status = made.get("status", {})
    return {
        **made,
        "status": {**status, "signature": key.signature(read_revision(made).signed_bytes)},
    }


def signed_revision(document, outcome=None, key=KEY, digest=""):
    """The revision of an object as it is, with the signature of a key."""
    return signed(revision_object(document, digest or digest_of(document), outcome), key)


def entry(key=KEY):
    """A key as the Secret's data has it."""
    return {key.name: base64.b64encode(key.secret).decode()}
