"""Kyverno's rules about signed images as VerificationPolicies, and a constraint that asks by them.

Read are ``verifyImages`` of ClusterPolicies and Policies, and ImageValidatingPolicies. An attestor
set becomes a VerificationPolicy: an image is verified if every policy about it is satisfied. The
constraint is of policies/supply-chain/signed-images. What cannot be expressed is named. Read in
Kyverno 1.18: pkg/engine/internal/imageverifier.go, pkg/image/verifiers, pkg/cel/policies/ivpol.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

import re2
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from webhook.api.gvk import name_of, namespace_of
from webhook.api.shapes import object_of, objects_of
from webhook.kyverno.autogen import CONTROLLERS
from webhook.kyverno.conversion import (
    AUTOGEN,
    filters_of,
    kind_of,
    resources_of,
    rule_policy_name,
)
from webhook.kyverno.kinds import NAMESPACED_IMAGE_POLICY
from webhook.kyverno.patterns import Unwritable
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.api.shapes import Json

CONSTRAINT: Final = "RequireSignedImages"
"""The kind of the library's template."""

AUTHORITIES_MAX: Final = 20
"""So many a VerificationPolicy may have."""

_ACTIONS: Final = {"Deny": "deny", "Warn": "warn", "Audit": "dryrun"}
_MAKERS: Final = {
    **{one.kind: one.group for one in CONTROLLERS.values()},
    "ReplicationController": "",
    "Pod": "",
}
"""The kinds that the template knows, and their groups."""

_REKOR: Final = "https://rekor.sigstore.dev"
_IMAGES_PAGE: Final = "(docs/images.md, The policy)"
_OWN_ROOT: Final = "write a trusted root that has it: cosign trusted-root create"
_BY_HAND: Final = {
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
"""What to do where a field cannot be expressed."""

_TRUSTED_ROOT: Final = (
    "put trusted_root.json beside the policy: cosign trusted-root create --with-default-services "
    "--out trusted_root.json; in a cluster name a Secret instead of the file"
)
_PREDICATES: Final = {
    "custom": "https://cosign.sigstore.dev/attestation/v1",
    "cyclonedx": "https://cyclonedx.org/bom",
    "link": "https://in-toto.io/Link/v1",
    "openvex": "https://openvex.dev/ns",
    "slsaprovenance": "https://slsa.dev/provenance/v0.2",
    "slsaprovenance02": "https://slsa.dev/provenance/v0.2",
    "slsaprovenance1": "https://slsa.dev/provenance/v1",
    "spdx": "https://spdx.dev/Document",
    "spdxjson": "https://spdx.dev/Document",
    "vuln": "https://cosign.sigstore.dev/attestation/vuln/v1",
}
"""The short names of predicate types that cosign knows."""

_KEY_PEM: Final = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)
_NAMESPACE: Final = re.compile(r"\*|\*?[a-z0-9-]+\*?")
_ANY_TEXT: Final = "(?s:.*)"


@dataclass(slots=True)
class ConvertedImages:
    """What a rule becomes: VerificationPolicies, and the constraint; what to know and to do."""

    documents: list[Json] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something, once."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def constraint(self) -> Json:
        """It is the last of the documents."""
        return self.documents[-1]


def converted_rules(document: Json) -> Iterator[tuple[str, ConvertedImages | Unwritable]]:
    """The names of a policy's rules about images, each with what it becomes or why it does not."""
    spec = object_of(document.get("spec"))
    for at, rule in enumerate(objects_of(spec.get("rules"))):
        if rule.get("verifyImages"):
            name = str(rule.get("name") or f"[{at}]")
            try:
                yield name, _of_rule(document, spec, rule, name)
            except Unwritable as why:
                yield name, why


def converted_policy(document: Json) -> ConvertedImages:
    """What an ImageValidatingPolicy becomes; raises :class:`Unwritable`."""
    spec = object_of(document.get("spec"))
    validation = object_of(spec.get("validationConfigurations"))
    _refuse(spec, "spec", "images", "matchConditions")
    evaluation = object_of(spec.get("evaluation"))
    if evaluation.get("mode") not in {None, "Kubernetes"}:
        raise Unwritable(f"spec.evaluation.mode: {evaluation['mode']}")
    if object_of(evaluation.get("admission")).get("enabled") is False:
        raise Unwritable("spec.evaluation.admission: a constraint decides on admissions, too")
    made, base = ConvertedImages(), _own_name(document, name_of(document))
    globs = _globs_of_policy(spec)
    attestors = {
        str(one.get("name")): one for one in _objects(spec.get("attestors"), "spec.attestors")
    }
    types = {
        str(one.get("name")): one for one in _objects(spec.get("attestations"), "spec.attestations")
    }
    for at, asked in enumerate(_asked_of_policy(spec, validation, made)):
        where = f"spec.attestors of {asked.shown}"
        authorities, roots = [], []
        for name in asked.attestors:
            if name not in attestors:
                raise Unwritable(f"{where}: {name} is not there")
            authority, root = _of_attestor(attestors[name], made)
            authorities.append(authority)
            roots.append(root)
        made.documents.append(
            _policy(
                f"{base}-{at}" if at else base,
                globs,
                authorities,
                asked.count,
                _predicate(types, asked.attestation) if asked.attestation else "",
                _one_root(roots),
            )
        )
    _digests(validation, made)
    _credentials(spec, "credentials", made)
    actions = _texts(spec.get("validationActions"), "spec.validationActions") or ["Deny"]
    action = next((made_of for one, made_of in _ACTIONS.items() if one in actions), "deny")
    made.documents.append(_constraint(base, globs, _matched_by_policy(document, spec), action))
    return made


def _of_rule(document: Json, spec: Json, rule: Json, name: str) -> ConvertedImages:
    _refuse(rule, "", "context", "preconditions", "celPreconditions", "imageExtractors")
    _refuse(spec, "spec", "validationFailureActionOverrides")
    made, base = ConvertedImages(), _own_name(document, rule_policy_name(document, name))
    every: list[str] = []
    skipped: list[str] = []
    actions = set()
    for at, entry in enumerate(_objects(rule["verifyImages"], "verifyImages")):
        where = f"verifyImages[{at}]"
        _refuse(
            entry,
            where,
            *("image", "key", "issuer", "subject", "roots", "additionalExtensions", "annotations"),
            *("repository", "validate"),
        )
        is_bundle = entry.get("type") == "SigstoreBundle"
        if entry.get("type") not in {None, "Cosign", "SigstoreBundle"}:
            raise Unwritable(f"{where}.type: {entry['type']}: {_BY_HAND['notary']}")
        globs = _globs(entry.get("imageReferences"), f"{where}.imageReferences")
        every += globs
        skipped += _exempt(entry.get("skipImageReferences"), f"{where}.skipImageReferences")
        wanted = list(_wanted(entry, where))
        if not wanted:
            raise Unwritable(f"{where}: neither attestors nor attestations: nobody has to sign")
        for set_, place, predicate in wanted:
            authorities = [
                _of_entry(one, f"{place}.entries[{number}]", number, made, is_bundle=is_bundle)
                for number, one in enumerate(set_["entries"])
            ]
            number = len(made.documents)
            named = f"{base}-{number}" if number else base
            root = {"file": "trusted_root.json"} if any(map(_needs_root, authorities)) else None
            made.documents.append(
                _policy(named, globs, authorities, set_["count"], predicate, root)
            )
        if is_bundle and entry.get("attestors"):
            made.note("a bundle of any predicate type no longer counts as a signature")
        actions.add(str(entry.get("failureAction") or spec.get("validationFailureAction")))
        _digests(entry, made)
        _credentials(entry, "imageRegistryCredentials", made)
    if len({one.lower() == "enforce" for one in actions}) > 1:
        raise Unwritable("verifyImages[].failureAction: they differ: write a rule for each")
    action = "deny" if actions.pop().lower() == "enforce" else "dryrun"
    match = _matched_by_rule(document, spec, rule)
    made.documents.append(_constraint(base, list(dict.fromkeys(every)), match, action, skipped))
    return made


def _refuse(fields: Json, where: str, *names: str) -> None:
    """Raise where one of these fields, which cannot be expressed, is there."""
    for name in names:
        if fields.get(name):
            hint = f": {_BY_HAND[name]}" if name in _BY_HAND else ""
            raise Unwritable(f"{where}.{name}{hint}".removeprefix("."))


def _texts(given: Any, where: str) -> list[str]:
    """A list of texts, empty where there is none; raises :class:`Unwritable`."""
    if given is None:
        return []
    if type(given) is not list or not all(type(one) is str for one in given):
        raise Unwritable(f"{where} is no list of texts")
    return given


def _objects(given: Any, where: str) -> list[Json]:
    """A list of objects, empty where there is none; raises :class:`Unwritable`."""
    if given is None:
        return []
    if type(given) is not list or not all(type(one) is dict for one in given):
        raise Unwritable(f"{where} is no list of objects")
    return given


# --- what is written ------------------------------------------------------------------------------


def _own_name(document: Json, name: str) -> str:
    """A name that the policies of other namespaces do not have."""
    return "-".join(filter(None, [namespace_of(document), name]))


def _policy(
    name: str,
    globs: list[str],
    authorities: list[Json],
    count: int,
    predicate: str,
    root: Json | None,
) -> Json:
    if len(authorities) > AUTHORITIES_MAX:
        raise Unwritable(f"{len(authorities)} attestors in one set: at most {AUTHORITIES_MAX}")
    spec: Json = {"images": globs, "authorities": authorities}
    if count != len(authorities):
        spec["count"] = count
    if predicate:
        spec |= {"signatures": "Ignored", "attestations": [{"predicateType": predicate}]}
    if root is not None:
        spec["trustedRoot"] = root
    return {
        "apiVersion": "waddle.dev/v1alpha1",
        "kind": "VerificationPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def _constraint(
    name: str, globs: list[str], match: Json, action: str, exempt: list[str] | None = None
) -> Json:
    parameters: Json = {"images": globs}
    if exempt:
        parameters["exemptImages"] = exempt
    return {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": CONSTRAINT,
        "metadata": {"name": name},
        "spec": {"enforcementAction": action, "match": match, "parameters": parameters},
    }


def _digests(given: Json, made: ConvertedImages) -> None:
    if given.get("mutateDigest", True):
        made.note("mutateDigest: add policies/supply-chain/digests, it writes digests")
    elif given.get("verifyDigest", True):
        made.note("verifyDigest: add policies/general/image-digests, it refuses tags")


def _credentials(given: Json, name: str, made: ConvertedImages) -> None:
    if given.get(name):
        made.note(f"{name}: give the provider credentials: imageProvider.registrySecrets")


def _needs_root(authority: Json) -> bool:
    return "keyless" in authority or authority.get("transparencyLog") != "Ignored"


# --- images ---------------------------------------------------------------------------------------


def _globs(given: Any, where: str) -> list[str]:
    """Kyverno's patterns as globs of a VerificationPolicy."""
    patterns = _texts(given, where)
    if not patterns:
        raise Unwritable(f"{where} is empty")
    return [made for one in patterns for made in _glob(one, where)]


def _glob(pattern: str, where: str) -> Iterator[str]:
    if "{{" in pattern or any(mark in pattern for mark in "?[]{}\\"):
        raise Unwritable(f"{where}: {pattern}: only * stands for other texts")
    first, _, rest = pattern.partition("/")
    if pattern.startswith("*"):
        yield pattern
        return
    if not rest or not (first == "localhost" or any(mark in first for mark in ".:")):
        raise Unwritable(f"{where}: {pattern} has no registry: write docker.io/library/{pattern}")
    if first == "docker.io" and "/" not in rest:
        # Kyverno knows an image of Docker's own as docker.io/nginx.
        yield f"docker.io/library/{rest}"
        if "*" not in rest:
            return
    yield pattern


def _exempt(given: Any, where: str) -> list[str]:
    """Patterns as the template's exemptImages has them: a text, or a prefix that ends in ``*``."""
    if not given:
        return []
    patterns = _globs(given, where)
    for one in patterns:
        if one.startswith(("docker.io/", "*")) or "*" in one[:-1]:
            raise Unwritable(f"{where}: {one}: write images without it in imageReferences")
    return patterns


def _globs_of_policy(spec: Json) -> list[str]:
    references = _objects(spec.get("matchImageReferences"), "spec.matchImageReferences")
    for one in references:
        _refuse(one, "spec.matchImageReferences", "expression")
    if not references:
        return ["*"]
    return _globs([one.get("glob") for one in references], "spec.matchImageReferences.glob")


# --- who has to have signed, in verifyImages ------------------------------------------------------


def _wanted(entry: Json, where: str) -> Iterator[tuple[Json, str, str]]:
    """Attestor sets, each with its place and the predicate type that it has to have attested."""
    for number, one in enumerate(_objects(entry.get("attestors"), f"{where}.attestors")):
        for set_ in _flat(one, f"{where}.attestors[{number}]"):
            yield set_, f"{where}.attestors[{number}]", ""
    for number, one in enumerate(_objects(entry.get("attestations"), f"{where}.attestations")):
        place = f"{where}.attestations[{number}]"
        _refuse(one, place, "conditions")
        predicate = str(one.get("type") or one.get("predicateType") or "")
        if not predicate:
            raise Unwritable(f"{place}.type is missing")
        if not one.get("attestors"):
            raise Unwritable(f"{place} has no attestors: anybody could have attested it")
        for at, given in enumerate(_objects(one["attestors"], f"{place}.attestors")):
            for each in _objects(given.get("entries"), f"{place}.attestors[{at}].entries"):
                _refuse(each, f"{place}.attestors[{at}].entries", "attestor")
                if len(_KEY_PEM.findall(str(object_of(each.get("keys")).get("publicKeys")))) > 1:
                    raise Unwritable(f"{place}.attestors[{at}]: several keys in one entry")
            for set_ in _flat(given, f"{place}.attestors[{at}]"):
                yield set_, f"{place}.attestors[{at}]", predicate


def _flat(given: Json, where: str) -> Iterator[Json]:
    """The sets that have to hold: nested ones are sets of their own where all entries count."""
    entries: list[Json] = []
    for one in _objects(given.get("entries"), f"{where}.entries"):
        keys = _KEY_PEM.findall(str(object_of(one.get("keys")).get("publicKeys")))
        if len(keys) > 1:
            entries += [one | {"keys": one["keys"] | {"publicKeys": key}} for key in keys]
        else:
            entries.append(one)
    if not entries:
        raise Unwritable(f"{where}.entries is empty")
    count = given.get("count") or len(entries)
    if type(count) is not int or not 1 <= count <= len(entries):
        raise Unwritable(f"{where}.count is {count}: there are {len(entries)} entries")
    nested = [one for one in entries if one.get("attestor")]
    if nested and count != len(entries):
        raise Unwritable(f"{where}: a nested attestor with count: write the sets one by one")
    for one in nested:
        yield from _flat(object_of(one["attestor"]), f"{where}.attestor")
    if own := [one for one in entries if not one.get("attestor")]:
        yield {"entries": own, "count": min(count, len(own))}


def _of_entry(
    entry: Json, where: str, number: int, made: ConvertedImages, *, is_bundle: bool
) -> Json:
    _refuse(entry, where, "annotations", "repository")
    kinds = [one for one in ("keys", "certificates", "keyless") if entry.get(one)]
    if len(kinds) != 1:
        raise Unwritable(f"{where} has one of keys, certificates and keyless, not {len(kinds)}")
    given = object_of(entry[kinds[0]])
    algorithm = given.get("signatureAlgorithm") or entry.get("signatureAlgorithm") or "sha256"
    where = f"{where}.{kinds[0]}"
    if algorithm != "sha256":
        raise Unwritable(f"{where}.signatureAlgorithm: {algorithm}")
    rekor, promises = object_of(given.get("rekor")), object_of(given.get("ctlog"))
    _refuse(rekor, f"{where}.rekor", "pubkey")
    _refuse(promises, f"{where}.ctlog", "pubkey", "tsaCertChain")
    _refuse(given, where, "kms", "roots", "additionalExtensions")
    no_log, no_promise = bool(rekor.get("ignoreTlog")), bool(promises.get("ignoreSCT"))
    authority: Json = {"name": f"{kinds[0]}-{number}"}
    match kinds[0]:
        case "keys":
            if is_bundle and no_log and not no_promise:
                raise Unwritable(f"{where}.rekor.ignoreTlog: a key's signature needs no time here")
            authority["key"] = _key(given, where, made)
        case "certificates":
            chain, own = str(given.get("certChain") or ""), str(given.get("cert") or "")
            if is_bundle:
                raise Unwritable(f"{where}: bundles have no certificates of one's own in Kyverno")
            authority |= _certificate(own, chain, where, no_promise=no_promise)
        case _:
            identity = _identity(given, where, wildcards=not is_bundle)
            authority["keyless"] = {"identities": [identity]}
            if no_promise or is_bundle:
                authority["keyless"]["certificateLog"] = "Ignored"
    _logged(authority, str(rekor.get("url") or _REKOR), made, no_log=no_log)
    return authority


def _logged(authority: Json, url: str, made: ConvertedImages, *, no_log: bool) -> None:
    """Say whether a log has to know a signature, and what is needed for it."""
    if no_log:
        authority["transparencyLog"] = "Ignored"
    elif url.rstrip("/") != _REKOR:
        made.note(f"the log {url}: trusted_root.json has to have its key: {_OWN_ROOT}")
    if _needs_root(authority):
        made.note(_TRUSTED_ROOT)


def _key(given: Json, where: str, made: ConvertedImages) -> Json:
    text, secret = str(given.get("publicKeys") or "").strip(), object_of(given.get("secret"))
    if text.startswith("k8s://"):
        namespace, _, name = text.removeprefix("k8s://").partition("/")
        secret, text = {"namespace": namespace, "name": name}, ""
    if text:
        return {"data": _public_key(text, f"{where}.publicKeys")}
    name = str(secret.get("name") or "")
    if not name:
        raise Unwritable(f"{where} has neither publicKeys nor secret")
    made.note(
        f"copy Secret {secret.get('namespace') or 'kyverno'}/{name} to the provider's namespace, "
        "and name it in imageProvider.keySecrets"
    )
    return {"secret": {"name": name, "key": "cosign.pub"}}


def _public_key(text: str, where: str) -> str:
    if "{{" in text:
        raise Unwritable(f"{where}: a variable: write the key itself")
    found = _KEY_PEM.findall(text)
    if not found:
        raise Unwritable(f"{where} is no public key in PEM: {_BY_HAND['kms']}")
    if len(found) > 1:
        raise Unwritable(f"{where} has several keys")
    plain = "\n".join(line.strip() for line in found[0].splitlines()) + "\n"
    try:
        serialization.load_pem_public_key(plain.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise Unwritable(f"{where} is no public key that can be read") from None
    return plain


def _certificate(own: str, chain: str, where: str, *, no_promise: bool) -> Json:
    """A certificate counts by its key; a chain alone by whom it gives certificates."""
    if "{{" in own + chain:
        raise Unwritable(f"{where}: a variable: write the certificate itself")
    try:
        parsed = x509.load_pem_x509_certificates((own or chain).encode())
    except ValueError:
        raise Unwritable(f"{where} is no certificate in PEM") from None
    if own:
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


# --- identities -----------------------------------------------------------------------------------


def _identity(given: Json, where: str, *, wildcards: bool) -> Json:
    """Issuer and subject; ``wildcards`` where ``*`` and ``?`` stand for other texts in them."""
    if not any(given.get(one) for one in ("subject", "subjectRegExp", "issuer", "issuerRegExp")):
        raise Unwritable(f"{where} has neither issuer nor subject: anybody could have signed")
    made: Json = {}
    for name in ("issuer", "subject"):
        text, regex = str(given.get(name) or ""), str(given.get(f"{name}RegExp") or "")
        if "{{" in text + regex:
            raise Unwritable(f"{where}.{name}: a variable: write its value")
        if text and regex:
            raise Unwritable(f"{where}.{name} and {name}RegExp: keep one of them")
        if not text and not regex and not wildcards:
            raise Unwritable(f"{where}.{name} is missing: anybody could have signed")
        if regex:
            made[f"{name}Pattern"] = _whole(regex, f"{where}.{name}RegExp")
        elif not text:
            made[f"{name}Pattern"] = _ANY_TEXT
        elif wildcards and any(mark in text for mark in "*?"):
            made[f"{name}Pattern"] = "".join(
                {"*": ".*", "?": "."}.get(mark, re.escape(mark)) for mark in text
            )
        else:
            made[name] = text
    return made


def _whole(regex: str, where: str) -> str:
    """A pattern that matches all of a text, of one that matches anywhere in it."""
    quiet = re2.Options()
    quiet.log_errors = False
    try:
        re2.compile(regex, quiet)
    except re2.error:
        raise Unwritable(f"{where}: {regex} is no RE2 pattern") from None
    plain = re.fullmatch(r"\^((?:[^|\\]|\\.)*)\$", regex)
    if plain and "(?" not in regex:
        return plain[1]
    return f"{_ANY_TEXT}(?:{regex}){_ANY_TEXT}"


# --- ImageValidatingPolicy ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """How many of some attestors have to have signed the images, or attested something of them."""

    attestors: tuple[str, ...]
    count: int
    attestation: str
    shown: str


_MEMBER: Final = r"(?:\.\w+|\[(?:'[^']+'|\"[^\"]+\")\])"
_CALL: Final = (
    rf"verify(?P<what>Image|Attestation)Signatures\(\s*(?P=image)\s*,"
    rf"(?:\s*attestations(?P<attestation>{_MEMBER})\s*,)?"
    rf"\s*\[\s*(?P<attestors>attestors{_MEMBER}(?:\s*,\s*attestors{_MEMBER})*)\s*\]\s*\)"
)
_TEST: Final = r"(?P<operator>>=|>|==)\s*(?P<number>\d+)\s*"
_EACH: Final = r"all\(\s*(?P<each>\w+)\s*,\s*(?P=each)\s*"
_FORMS: Final = tuple(
    re.compile(rf"images\.(?P<group>\w+)\s*\.\s*{form}\)", re.DOTALL)
    for form in (
        rf"map\(\s*(?P<image>\w+)\s*,\s*{_CALL}\s*\)\s*\.\s*{_EACH}{_TEST}",
        rf"all\(\s*(?P<image>\w+)\s*,\s*{_CALL}\s*{_TEST}",
    )
)
_GROUPS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})


def _asked_of_policy(spec: Json, configured: Json, made: ConvertedImages) -> list[_Asked]:
    """What the validations ask; each once, however many groups of containers it names."""
    found: dict[_Asked, set[str]] = {}
    for at, one in enumerate(_objects(spec.get("validations"), "spec.validations")):
        where = f"spec.validations[{at}].expression"
        for term in str(one.get("expression") or "").split("&&"):
            group, asked = _term(term.strip(), where)
            found.setdefault(asked, set()).add(group)
    if not found:
        raise Unwritable("spec.validations is empty: nobody has to sign")
    if configured.get("required") is False and any(one != _GROUPS for one in found.values()):
        made.note("the images of every kind of container are asked about")
    return list(found)


def _term(term: str, where: str) -> tuple[str, _Asked]:
    bare = term[1:-1].strip() if re.fullmatch(r"\(\s*images\..*\)\s*\)", term, re.DOTALL) else term
    matched = next((one for form in _FORMS if (one := form.fullmatch(bare))), None)
    if matched is None or (matched["what"] == "Attestation") != bool(matched["attestation"]):
        shown = " ".join(term.split())
        raise Unwritable(f"{where}: {shown}: {_BY_HAND['validate']}")
    if matched["group"] not in _GROUPS:
        raise Unwritable(f"{where}: images.{matched['group']}: only a Pod's containers are asked")
    attestors = tuple(
        dict.fromkeys(
            _member(one) for one in re.findall(rf"attestors({_MEMBER})", matched["attestors"])
        )
    )
    number = int(matched["number"]) + (matched["operator"] == ">")
    if not 1 <= number <= len(attestors):
        raise Unwritable(f"{where}: {number} of {len(attestors)} attestors")
    if matched["operator"] == "==" and number != len(attestors):
        raise Unwritable(f"{where}: exactly {number} of {len(attestors)} attestors: write >=")
    attestation = _member(matched["attestation"] or "")
    return matched["group"], _Asked(attestors, number, attestation, ", ".join(attestors))


def _member(text: str) -> str:
    return text.strip(".[]'\"")


def _predicate(types: dict[str, Json], name: str) -> str:
    given = types.get(name, {})
    found = str(object_of(given.get("intoto")).get("type") or "")
    if not found:
        raise Unwritable(f"spec.attestations.{name}: only intoto.type is read")
    return _PREDICATES.get(found, found)


def _of_attestor(given: Json, made: ConvertedImages) -> tuple[Json, Json | None]:
    """The authority, and the trusted root that it needs."""
    name = str(given.get("name"))
    where = f"spec.attestors.{name}"
    _refuse(given, where, "notary")
    cosign = object_of(given.get("cosign"))
    where = f"{where}.cosign"
    _refuse(cosign, where, "annotations", "source", "tuf")
    log = object_of(cosign.get("ctlog"))
    _refuse(log, f"{where}.ctlog", "ctLogPubKey", "rekorPubKey", "tsaCertChain")
    no_log, no_promise = bool(log.get("insecureIgnoreTlog")), bool(log.get("insecureIgnoreSCT"))
    authority: Json = {"name": name}
    kinds = [one for one in ("key", "keyless", "certificate") if cosign.get(one)]
    if len(kinds) != 1:
        raise Unwritable(f"{where} has one of key, keyless and certificate, not {len(kinds)}")
    fields = object_of(cosign[kinds[0]])
    place = f"{where}.{kinds[0]}"
    _refuse(fields, place, "expression", "roots", "additionalExtensions")
    match kinds[0]:
        case "key":
            if fields.get("hashAlgorithm") not in {None, "", "sha256"}:
                raise Unwritable(f"{place}.hashAlgorithm: {fields['hashAlgorithm']}")
            kms = str(fields.get("kms") or "")
            if kms and not kms.startswith("k8s://"):
                _refuse(fields, place, "kms")
            key = {"publicKeys": fields.get("data") or kms}
            authority["key"] = _key(key, place, made)
        case "certificate":
            held = [object_of(fields.get(one)) for one in ("cert", "certChain")]
            for one in held:
                _refuse(one, place, "expression")
            own, chain = (str(one.get("value") or "") for one in held)
            authority |= _certificate(own, chain, place, no_promise=no_log and no_promise)
        case _:
            identities = _objects(fields.get("identities"), f"{place}.identities")
            for one in identities:
                _refuse(one, f"{place}.identities", "subjectExpression")
            if not identities:
                raise Unwritable(f"{place}.identities is empty: anybody could have signed")
            authority["keyless"] = {
                "identities": [_identity(_exact(one), place, wildcards=True) for one in identities]
            }
            if no_promise:
                authority["keyless"]["certificateLog"] = "Ignored"
    return _rooted(authority, cosign, log, where, made, no_log=no_log)


def _exact(identity: Json) -> Json:
    """An identity whose texts hold no wildcards: as patterns where they look like some."""
    made = dict(identity)
    for name in ("issuer", "subject"):
        text = str(identity.get(name) or "")
        if any(mark in text for mark in "*?") and not identity.get(f"{name}RegExp"):
            made |= {name: "", f"{name}RegExp": f"^{re.escape(text)}$"}
    return made


def _rooted(
    authority: Json, cosign: Json, log: Json, where: str, made: ConvertedImages, *, no_log: bool
) -> tuple[Json, Json | None]:
    """The authority with what it says of logs, and the root: its own, or the file's."""
    own = object_of(cosign.get("trustedRoot"))
    _refuse(own, f"{where}.trustedRoot", "expression")
    if no_log:
        authority["transparencyLog"] = "Ignored"
    if not _needs_root(authority):
        return authority, None
    if own.get("value"):
        return authority, {"data": str(own["value"])}
    _logged(authority, str(log.get("url") or _REKOR), made, no_log=no_log)
    return authority, {"file": "trusted_root.json"}


def _one_root(roots: list[Json | None]) -> Json | None:
    found: list[Json] = []
    found += [one for one in roots if one is not None and one not in found]
    if any(one != found[0] for one in found):
        raise Unwritable("spec.attestors: two trusted roots in one validation")
    return found[0] if found else None


# --- what is matched ------------------------------------------------------------------------------


def _kinds(names: list[str]) -> list[Json]:
    by_group: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        by_group.setdefault(_MAKERS[name], []).append(name)
    return [{"apiGroups": [group], "kinds": kinds} for group, kinds in by_group.items()]


def _matched_by_rule(document: Json, spec: Json, rule: Json) -> Json:
    """The constraint's match, of the rule's match and exclude."""
    filters = [
        resources_of(one, "match") for one in filters_of(object_of(rule.get("match")), "match")
    ]
    rest = [{name: one for name, one in each.items() if name != "kinds"} for each in filters]
    if any(one != rest[0] for one in rest):
        raise Unwritable("match.any: filters that differ in more than kinds")
    kinds = [_texts(each["kinds"], "match.resources.kinds") for each in filters]
    names = [kind_of(kind)[2] for each in kinds for kind in each]
    if more := [one for one in names if one not in _MAKERS]:
        raise Unwritable(f"match.resources.kinds: {more[0]}: only Pods and what makes them")
    match: Json = {"kinds": _kinds([*names, *_generated(document, spec, names)])}
    given = rest[0]
    _check_operations(given.get("operations"), "match.resources.operations")
    texts = [*_texts(given.get("names"), "match.resources.names")]
    texts += [str(given["name"])] if given.get("name") else []
    if len(texts) > 1:
        raise Unwritable("match.resources.names: a constraint has one name")
    if texts:
        if "?" in texts[0] or "*" in texts[0][:-1]:
            raise Unwritable(f"match.resources.names: {texts[0]}")
        match["name"] = texts[0]
    if given.get("namespaces"):
        match["namespaces"] = _namespaces(given["namespaces"], "match.resources.namespaces")
    for name, label in (("selector", "labelSelector"), ("namespaceSelector", "namespaceSelector")):
        if given.get(name):
            match[label] = _selector(given[name], f"match.resources.{name}")
    if excluded := _excluded(rule, names):
        match["excludedNamespaces"] = excluded
    if own := namespace_of(document):
        match["namespaces"] = [own]
    return match


def _check_operations(given: Any, where: str) -> None:
    named = set(_texts(given, where))
    if named and "*" not in named and not {"CREATE", "UPDATE"} <= named:
        raise Unwritable(f"{where}: a constraint is asked about both CREATE and UPDATE")


def _namespaces(given: Any, where: str) -> list[str]:
    patterns = _texts(given, where)
    for one in patterns:
        if not _NAMESPACE.fullmatch(one):
            raise Unwritable(f"{where}: {one}: * stands at an end")
    return patterns


def _selector(given: Any, where: str) -> Json:
    if type(given) is not dict:
        raise Unwritable(f"{where} is no object")
    for key, value in object_of(given.get("matchLabels")).items():
        if any(mark in f"{key}{value}" for mark in "*?"):
            raise Unwritable(f"{where}: a pattern: {key}={value}")
    return given


def _excluded(rule: Json, names: list[str]) -> list[str]:
    found: list[str] = []
    for one in filters_of(object_of(rule["exclude"]), "exclude") if rule.get("exclude") else ():
        resources = resources_of(one, "exclude")
        given = _texts(resources.get("kinds"), "exclude.resources.kinds")
        kinds = {kind.rpartition("/")[2] for kind in given}
        is_about_all = not kinds or "*" in kinds or set(names) <= kinds
        if set(resources) - {"kinds", "namespaces"} or not is_about_all:
            raise Unwritable("exclude: only namespaces can be left out")
        found += _namespaces(resources.get("namespaces"), "exclude.resources.namespaces")
        if not resources.get("namespaces"):
            raise Unwritable("exclude: only namespaces can be left out")
    return found


def _generated(document: Json, spec: Json, names: list[str]) -> list[str]:
    """The kinds for which Kyverno writes a rule about Pods again."""
    for rule in objects_of(spec.get("rules")):
        for block in (object_of(rule.get("match")), object_of(rule.get("exclude"))):
            for one in (block, *objects_of(block.get("any")), *objects_of(block.get("all"))):
                resources = object_of(one.get("resources"))
                kinds = _texts(resources.get("kinds"), "resources.kinds")
                if len(kinds) > 1 and "Pod" in kinds:
                    return []
                if any(resources.get(of) for of in ("name", "names", "selector", "annotations")):
                    return []
    if set(names) != {"Pod"}:
        return []
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    if (named := annotations.get(AUTOGEN)) is None or named == "all":
        return [one for one in _MAKERS if one != "Pod"]
    wanted = {one.strip() for one in str(named).split(",")}
    return [one for one in _MAKERS if one in wanted]


def _matched_by_policy(document: Json, spec: Json) -> Json:
    """The constraint's match, of matchConstraints."""
    given = object_of(spec.get("matchConstraints"))
    where = "spec.matchConstraints"
    _refuse(given, where, "excludeResourceRules")
    plural = {"pods": "Pod", "replicationcontrollers": "ReplicationController"}
    plural |= {name: one.kind for name, one in CONTROLLERS.items()}
    names: list[str] = []
    for one in _objects(given.get("resourceRules"), f"{where}.resourceRules"):
        _refuse(one, f"{where}.resourceRules", "resourceNames")
        _check_operations(one.get("operations"), f"{where}.resourceRules.operations")
        for resource in _texts(one.get("resources"), f"{where}.resourceRules.resources"):
            if resource not in plural:
                raise Unwritable(
                    f"{where}.resourceRules: {resource}: only Pods and what makes them"
                )
            names.append(plural[resource])
    if not names:
        raise Unwritable(f"{where}.resourceRules is empty")
    if set(names) == {"Pod"} and not given.get("objectSelector"):
        configured = object_of(object_of(spec.get("autogen")).get("podControllers"))
        wanted = configured.get("controllers")
        chosen = _texts(wanted, "spec.autogen.podControllers.controllers")
        names += [one.kind for name, one in CONTROLLERS.items() if wanted is None or name in chosen]
    match: Json = {"kinds": _kinds(names)}
    for name, label in (
        ("objectSelector", "labelSelector"),
        ("namespaceSelector", "namespaceSelector"),
    ):
        if given.get(name):
            match[label] = _selector(given[name], f"{where}.{name}")
    if document.get("kind") == NAMESPACED_IMAGE_POLICY:
        match["namespaces"] = [namespace_of(document) or "default"]
    return match
