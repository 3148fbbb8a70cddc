"""Converts Kyverno's attestors to authorities of VerificationPolicies.

Sources in Kyverno 1.18: pkg/engine/internal/imageverifier.go and pkg/image/verifiers, which use
cosign and sigstore-go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import re2
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from webhook.api.shapes import Json, object_of
from webhook.kyverno.patterns import Unwritable

TakeNote: TypeAlias = "Callable[[str], None]"
"""Takes a note: a manual step, or a difference to Kyverno."""

_REKOR: Final = "https://rekor.sigstore.dev"
_IMAGES_PAGE: Final = "(docs/images.md, The policy)"
_OWN_ROOT: Final = "write a trusted root that has it: cosign trusted-root create"
BY_HAND: Final = {
    "additionalExtensions": "of certificates only issuer and subject are compared",
    "annotations": "annotations of signatures are not compared: sign with a key of its own",
    "celPreconditions": "a constraint matches by kinds, namespaces and labels",
    "context": "write its values into the rule",
    "conditions": f"write conditions in CEL or Rego {_IMAGES_PAGE}",
    "expression": "write its value",
    "excludeResourceRules": "a constraint matches by kinds, namespaces and labels",
    "image": "write imageReferences",
    "imageExtractors": "only a Pod's containers and volumes are asked about",
    "images": "only a Pod's containers and volumes are asked about",
    "issuer": "write attestors",
    "key": "write attestors",
    "kms": "export the public key, and write key: {data}",
    "matchConditions": "a constraint matches by kinds, namespaces and labels",
    "notary": "signatures of Notary are not read: sign with cosign",
    "preconditions": "a constraint matches by kinds, namespaces and labels",
    "pubkey": _OWN_ROOT,
    "repository": "signatures are read beside the image: copy them there",
    "roots": _OWN_ROOT,
    "source": "signatures are read beside the image: copy them there",
    "subject": "write attestors",
    "subjectExpression": "write subject or subjectRegExp",
    "tsaCertChain": _OWN_ROOT,
    "tuf": _OWN_ROOT,
    "validationFailureActionOverrides": "write a constraint for each action",
    "validate": f"write conditions in CEL or Rego {_IMAGES_PAGE}",
} | dict.fromkeys(("ctLogPubKey", "rekorPubKey"), _OWN_ROOT)
"""The advice for each field without an equivalent."""

_TRUSTED_ROOT: Final = (
    "put trusted_root.json beside the policy: cosign trusted-root create --with-default-services "
    "--out trusted_root.json; in a cluster name a Secret instead of the file"
)
KEY_PEM: Final = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)
_ANY_TEXT: Final = "(?s:.*)"


def refuse(fields: Json, where: str, *names: str) -> None:
    """Raises :class:`Unwritable` if one of these fields is set: they have no equivalent."""
    for name in names:
        if fields.get(name):
            hint = f": {BY_HAND[name]}" if name in BY_HAND else ""
            raise Unwritable(f"{where}.{name}{hint}".removeprefix("."))


def texts_in(given: Any, where: str) -> list[str]:
    """Returns a list of texts, empty if absent; raises :class:`Unwritable`."""
    return _items_of(str, given, f"{where} is not a list of strings")


def objects_in(given: Any, where: str) -> list[Json]:
    """Returns a list of objects, empty if absent; raises :class:`Unwritable`."""
    return _items_of(dict, given, f"{where} is not a list of objects")


def _items_of(kind: type, given: Any, fault: str) -> list[Any]:
    if given is None:
        return []
    if type(given) is not list or not all(type(item) is kind for item in given):
        raise Unwritable(fault)
    return given


# --- verifyImages ---------------------------------------------------------------------------------


def flat_sets(given: Json, where: str) -> Iterator[Json]:
    """Yields the required sets; nested attestors are sets of their own if all entries count."""
    entries: list[Json] = []
    for entry in objects_in(given.get("entries"), f"{where}.entries"):
        keys = KEY_PEM.findall(str(object_of(entry.get("keys")).get("publicKeys")))
        if len(keys) > 1:
            entries += [entry | {"keys": entry["keys"] | {"publicKeys": key}} for key in keys]
        else:
            entries.append(entry)
    if not entries:
        raise Unwritable(f"{where}.entries is empty")
    count = given.get("count") or len(entries)
    if type(count) is not int or not 1 <= count <= len(entries):
        raise Unwritable(f"{where}.count is {count}: there are {len(entries)} entries")
    nested = [item for item in entries if item.get("attestor")]
    if nested and count != len(entries):
        raise Unwritable(f"{where}: a nested attestor with count: write the sets one by one")
    for entry in nested:
        yield from flat_sets(object_of(entry["attestor"]), f"{where}.attestor")
    if plain_entries := [item for item in entries if not item.get("attestor")]:
        yield {"entries": plain_entries, "count": min(count, len(plain_entries))}


def authority_of_entry(
    entry: Json, where: str, number: int, note: TakeNote, *, is_bundle: bool
) -> Json:
    """Returns the authority of an attestor set's entry; ``is_bundle`` for type SigstoreBundle."""
    refuse(entry, where, "annotations", "repository")
    kinds = [kind for kind in ("keys", "certificates", "keyless") if entry.get(kind)]
    if len(kinds) != 1:
        raise Unwritable(f"{where} has one of keys, certificates and keyless, not {len(kinds)}")
    given = object_of(entry[kinds[0]])
    algorithm = given.get("signatureAlgorithm") or entry.get("signatureAlgorithm") or "sha256"
    where = f"{where}.{kinds[0]}"
    if algorithm != "sha256":
        raise Unwritable(f"{where}.signatureAlgorithm: {algorithm}")
    rekor, promises = object_of(given.get("rekor")), object_of(given.get("ctlog"))
    refuse(rekor, f"{where}.rekor", "pubkey")
    refuse(promises, f"{where}.ctlog", "pubkey", "tsaCertChain")
    refuse(given, where, "kms", "roots", "additionalExtensions")
    no_log, no_promise = bool(rekor.get("ignoreTlog")), bool(promises.get("ignoreSCT"))
    authority: Json = {"name": f"{kinds[0]}-{number}"}
    match kinds[0]:
        case "keys":
            if is_bundle and no_log and not no_promise:
                raise Unwritable(f"{where}.rekor.ignoreTlog: a key's signature needs no time here")
            authority["key"] = _key(given, where, note)
        case "certificates":
            chain, certificate = str(given.get("certChain") or ""), str(given.get("cert") or "")
            if is_bundle:
                raise Unwritable(f"{where}: bundles have no certificates of one's own in Kyverno")
            authority |= _certificate(certificate, chain, where, no_promise=no_promise)
        case _:
            identity = _identity(given, where, wildcards=not is_bundle)
            authority["keyless"] = {"identities": [identity]}
            if no_promise or is_bundle:
                authority["keyless"]["certificateLog"] = "Ignored"
    _logged(authority, str(rekor.get("url") or _REKOR), note, no_log=no_log)
    return authority


# --- ImageValidatingPolicy ------------------------------------------------------------------------


def authority_of_attestor(given: Json, note: TakeNote) -> tuple[Json, Json | None]:
    """Returns the authority of an attestor, and the trusted root that it needs."""
    name = str(given.get("name"))
    where = f"spec.attestors.{name}"
    refuse(given, where, "notary")
    cosign = object_of(given.get("cosign"))
    where = f"{where}.cosign"
    refuse(cosign, where, "annotations", "source", "tuf")
    log = object_of(cosign.get("ctlog"))
    refuse(log, f"{where}.ctlog", "ctLogPubKey", "rekorPubKey", "tsaCertChain")
    no_log, no_promise = bool(log.get("insecureIgnoreTlog")), bool(log.get("insecureIgnoreSCT"))
    authority: Json = {"name": name}
    kinds = [kind for kind in ("key", "keyless", "certificate") if cosign.get(kind)]
    if len(kinds) != 1:
        raise Unwritable(f"{where} has one of key, keyless and certificate, not {len(kinds)}")
    fields = object_of(cosign[kinds[0]])
    place = f"{where}.{kinds[0]}"
    refuse(fields, place, "expression", "roots", "additionalExtensions")
    match kinds[0]:
        case "key":
            if fields.get("hashAlgorithm") not in (None, "", "sha256"):
                raise Unwritable(f"{place}.hashAlgorithm: {fields['hashAlgorithm']}")
            kms = str(fields.get("kms") or "")
            if kms and not kms.startswith("k8s://"):
                refuse(fields, place, "kms")
            key = {"publicKeys": fields.get("data") or kms}
            authority["key"] = _key(key, place, note)
        case "certificate":
            held = [object_of(fields.get(field)) for field in ("cert", "certChain")]
            for identity in held:
                refuse(identity, place, "expression")
            certificate, chain = (str(item.get("value") or "") for item in held)
            authority |= _certificate(certificate, chain, place, no_promise=no_log and no_promise)
        case _:
            identities = objects_in(fields.get("identities"), f"{place}.identities")
            for identity in identities:
                refuse(identity, f"{place}.identities", "subjectExpression")
            if not identities:
                raise Unwritable(f"{place}.identities is empty: anybody could have signed")
            authority["keyless"] = {
                "identities": [
                    _identity(_exact(item), place, wildcards=True) for item in identities
                ]
            }
            if no_promise:
                authority["keyless"]["certificateLog"] = "Ignored"
    return _rooted(authority, cosign, log, where, note, no_log=no_log)


def _rooted(
    authority: Json, cosign: Json, log: Json, where: str, note: TakeNote, *, no_log: bool
) -> tuple[Json, Json | None]:
    """Returns the authority with its log settings, and the trusted root: its own or the file."""
    root = object_of(cosign.get("trustedRoot"))
    refuse(root, f"{where}.trustedRoot", "expression")
    if no_log:
        authority["transparencyLog"] = "Ignored"
    if not needs_root(authority):
        return authority, None
    if root.get("value"):
        return authority, {"data": str(root["value"])}
    _logged(authority, str(log.get("url") or _REKOR), note, no_log=no_log)
    return authority, {"file": "trusted_root.json"}


def _exact(identity: Json) -> Json:
    """Returns an identity with literal ``*`` and ``?`` as regular expressions."""
    exact = dict(identity)
    for name in ("issuer", "subject"):
        text = str(identity.get(name) or "")
        if any(mark in text for mark in "*?") and not identity.get(f"{name}RegExp"):
            exact |= {name: "", f"{name}RegExp": f"^{re.escape(text)}$"}
    return exact


# --- keys, certificates and identities ------------------------------------------------------------


def needs_root(authority: Json) -> bool:
    """Whether an authority needs a trusted root."""
    return "keyless" in authority or authority.get("transparencyLog") != "Ignored"


def _logged(authority: Json, url: str, note: TakeNote, *, no_log: bool) -> None:
    """Sets whether a signature needs a log entry, and notes what the user must provide."""
    if no_log:
        authority["transparencyLog"] = "Ignored"
    elif url.rstrip("/") != _REKOR:
        note(f"the log {url}: trusted_root.json has to have its key: {_OWN_ROOT}")
    if needs_root(authority):
        note(_TRUSTED_ROOT)


def _key(given: Json, where: str, note: TakeNote) -> Json:
    text, secret = str(given.get("publicKeys") or "").strip(), object_of(given.get("secret"))
    if text.startswith("k8s://"):
        namespace, _, name = text.removeprefix("k8s://").partition("/")
        secret, text = {"namespace": namespace, "name": name}, ""
    if text:
        return {"data": _public_key(text, f"{where}.publicKeys")}
    name = str(secret.get("name") or "")
    if not name:
        raise Unwritable(f"{where} has neither publicKeys nor secret")
    note(
        f"copy Secret {secret.get('namespace') or 'kyverno'}/{name} to the provider's namespace, "
        "and name it in imageProvider.keySecrets"
    )
    return {"secret": {"name": name, "key": "cosign.pub"}}


def _public_key(text: str, where: str) -> str:
    if "{{" in text:
        raise Unwritable(f"{where}: a variable: write the key itself")
    keys = KEY_PEM.findall(text)
    if not keys:
        raise Unwritable(f"{where} is not a public key in PEM: {BY_HAND['kms']}")
    if len(keys) > 1:
        raise Unwritable(f"{where} has several keys")
    plain = "\n".join(line.strip() for line in keys[0].splitlines()) + "\n"
    try:
        serialization.load_pem_public_key(plain.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise Unwritable(f"{where} is not a public key that can be read") from None
    return plain


def _certificate(certificate: str, chain: str, where: str, *, no_promise: bool) -> Json:
    """Returns a certificate as its key, a chain without certificate as authorities."""
    if "{{" in certificate + chain:
        raise Unwritable(f"{where}: a variable: write the certificate itself")
    try:
        parsed = x509.load_pem_x509_certificates((certificate or chain).encode())
    except ValueError:
        raise Unwritable(f"{where} is not a certificate in PEM") from None
    if certificate:
        key = (
            parsed[0]
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        return {"key": {"data": key.decode()}}
    if not no_promise:
        raise Unwritable(f"{where}.certChain with logs of certificates: {_OWN_ROOT}")
    return {"certificate": {"authorities": {"data": chain}}}


def _identity(given: Json, where: str, *, wildcards: bool) -> Json:
    """Returns issuer and subject; ``wildcards`` if ``*`` and ``?`` are wildcards in them."""
    if not any(
        given.get(field) for field in ("subject", "subjectRegExp", "issuer", "issuerRegExp")
    ):
        raise Unwritable(f"{where} has neither issuer nor subject: anybody could have signed")
    identity_fields: Json = {}
    for name in ("issuer", "subject"):
        text, regex = str(given.get(name) or ""), str(given.get(f"{name}RegExp") or "")
        if "{{" in text + regex:
            raise Unwritable(f"{where}.{name}: a variable: write its value")
        if text and regex:
            raise Unwritable(f"{where}.{name} and {name}RegExp: keep one of them")
        if not text and not regex and not wildcards:
            raise Unwritable(f"{where}.{name} is missing: anybody could have signed")
        if regex:
            identity_fields[f"{name}Pattern"] = _whole(regex, f"{where}.{name}RegExp")
        elif not text:
            identity_fields[f"{name}Pattern"] = _ANY_TEXT
        elif wildcards and any(mark in text for mark in "*?"):
            identity_fields[f"{name}Pattern"] = "".join(
                {"*": ".*", "?": "."}.get(mark, re.escape(mark)) for mark in text
            )
        else:
            identity_fields[name] = text
    return identity_fields


def _whole(regex: str, where: str) -> str:
    """Returns a pattern of the whole text from a pattern that matches anywhere."""
    quiet = re2.Options()
    quiet.log_errors = False
    try:
        re2.compile(regex, quiet)
    except re2.error:
        raise Unwritable(f"{where}: {regex} is not an RE2 pattern") from None
    plain = re.fullmatch(r"\^((?:[^|\\]|\\.)*)\$", regex)
    if plain and "(?" not in regex:
        return plain[1]
    return f"{_ANY_TEXT}(?:{regex}){_ANY_TEXT}"
