"""Converts Kyverno's image verification rules to VerificationPolicies and a constraint.

The input is ``verifyImages`` of ClusterPolicies and Policies, or an ImageValidatingPolicy. An
attestor set becomes a VerificationPolicy: an image must satisfy every policy that applies to it.
The constraint's template is policies/supply-chain/signed-images. Fields without an equivalent
are named by :class:`Unwritable`. Sources in Kyverno 1.18: pkg/engine/internal/imageverifier.go,
pkg/image/verifiers, pkg/cel/policies/ivpol.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any, Final

from webhook.api.gvk import name_of, namespace_of
from webhook.api.shapes import Json, object_of, objects_of
from webhook.kyverno.autogen import CONTROLLERS
from webhook.kyverno.conversion import AUTOGEN, filters_of, kind_of, resources_of, rule_policy_name
from webhook.kyverno.image_attestors import (
    BY_HAND,
    KEY_PEM,
    authority_of_attestor,
    authority_of_entry,
    flat_sets,
    needs_root,
    objects_in,
    refuse,
    texts_in,
)
from webhook.kyverno.kinds import NAMESPACED_IMAGE_POLICY
from webhook.kyverno.patterns import Unwritable
from webhook.values import dataclass

CONSTRAINT: Final = "RequireSignedImages"
"""The constraint kind of the library's template."""

ATTESTORS_MAX: Final = 20
"""The number of authorities that a VerificationPolicy may have."""

_ACTIONS: Final = {"Deny": "deny", "Warn": "warn", "Audit": "dryrun"}
_MAKERS: Final = {
    **{controller.kind: controller.group for controller in CONTROLLERS.values()},
    "ReplicationController": "",
    "Pod": "",
}
"""The kinds that the template knows, and their groups."""

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
"""The predicate types by cosign's short names."""

_NAMESPACE: Final = re.compile(r"\*|\*?[a-z0-9-]+\*?")


@dataclass(slots=True)
class ConvertedImages:
    """The results of a rule: VerificationPolicies, the constraint, and notes for the user."""

    documents: list[Json] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Adds a note once."""
        if text not in self.notes:
            self.notes.append(text)

    @property
    def constraint(self) -> Json:
        """Returns the constraint, which is the last document."""
        return self.documents[-1]


def converted_rules(document: Json) -> Iterator[tuple[str, ConvertedImages | Unwritable]]:
    """Yields a policy's image rules by name, each with its conversion or the reason for none."""
    spec = object_of(document.get("spec"))
    for at, rule in enumerate(objects_of(spec.get("rules"))):
        if rule.get("verifyImages"):
            name = str(rule.get("name") or f"[{at}]")
            try:
                yield name, _of_rule(document, spec, rule, name)
            except Unwritable as why:
                yield name, why


def converted_policy(document: Json) -> ConvertedImages:
    """Converts an ImageValidatingPolicy; raises :class:`Unwritable`."""
    spec = object_of(document.get("spec"))
    validation = object_of(spec.get("validationConfigurations"))
    refuse(spec, "spec", "images", "matchConditions")
    evaluation = object_of(spec.get("evaluation"))
    if evaluation.get("mode") not in (None, "Kubernetes"):
        raise Unwritable(f"spec.evaluation.mode: {evaluation['mode']}")
    if object_of(evaluation.get("admission")).get("enabled") is False:
        raise Unwritable("spec.evaluation.admission: a constraint decides on admissions, too")
    converted, base = ConvertedImages(), _own_name(document, name_of(document))
    globs = _globs_of_policy(spec)
    attestors = {
        str(attestor.get("name")): attestor
        for attestor in objects_in(spec.get("attestors"), "spec.attestors")
    }
    types = {
        str(attestation.get("name")): attestation
        for attestation in objects_in(spec.get("attestations"), "spec.attestations")
    }
    for at, requirement in enumerate(_requirements_of_policy(spec, validation, converted)):
        where = f"spec.attestors of {requirement.shown}"
        authorities, roots = [], []
        for name in requirement.attestors:
            if name not in attestors:
                raise Unwritable(f"{where}: {name} is not there")
            authority, root = authority_of_attestor(attestors[name], converted.note)
            authorities.append(authority)
            roots.append(root)
        converted.documents.append(
            _policy(
                f"{base}-{at}" if at else base,
                globs,
                authorities,
                requirement.count,
                _predicate(types, requirement.attestation) if requirement.attestation else "",
                _one_root(roots),
            )
        )
    _digests(validation, converted)
    _credentials(spec, "credentials", converted)
    actions = texts_in(spec.get("validationActions"), "spec.validationActions") or ["Deny"]
    action = next(
        (made_of for candidate, made_of in _ACTIONS.items() if candidate in actions), "deny"
    )
    converted.documents.append(_constraint(base, globs, _matched_by_policy(document, spec), action))
    return converted


def _of_rule(document: Json, spec: Json, rule: Json, name: str) -> ConvertedImages:
    refuse(rule, "", "context", "preconditions", "celPreconditions", "imageExtractors")
    refuse(spec, "spec", "validationFailureActionOverrides")
    converted, base = ConvertedImages(), _own_name(document, rule_policy_name(document, name))
    every: list[str] = []
    skipped: list[str] = []
    actions = set()
    for at, entry in enumerate(objects_in(rule["verifyImages"], "verifyImages")):
        where = f"verifyImages[{at}]"
        refuse(
            entry,
            where,
            *("image", "key", "issuer", "subject", "roots", "additionalExtensions", "annotations"),
            *("repository", "validate"),
        )
        is_bundle = entry.get("type") == "SigstoreBundle"
        if entry.get("type") not in (None, "Cosign", "SigstoreBundle"):
            raise Unwritable(f"{where}.type: {entry['type']}: {BY_HAND['notary']}")
        globs = _globs(entry.get("imageReferences"), f"{where}.imageReferences")
        every += globs
        skipped += _exempt(entry.get("skipImageReferences"), f"{where}.skipImageReferences")
        requirements = list(_requirements(entry, where))
        if not requirements:
            raise Unwritable(f"{where}: neither attestors nor attestations: nobody has to sign")
        for set_, place, predicate in requirements:
            authorities = [
                authority_of_entry(
                    item, f"{place}.entries[{number}]", number, converted.note, is_bundle=is_bundle
                )
                for number, item in enumerate(set_["entries"])
            ]
            number = len(converted.documents)
            named = f"{base}-{number}" if number else base
            root = {"file": "trusted_root.json"} if any(map(needs_root, authorities)) else None
            converted.documents.append(
                _policy(named, globs, authorities, set_["count"], predicate, root)
            )
        if is_bundle and entry.get("attestors"):
            converted.note("a bundle of any predicate type no longer counts as a signature")
        actions.add(str(entry.get("failureAction") or spec.get("validationFailureAction")))
        _digests(entry, converted)
        _credentials(entry, "imageRegistryCredentials", converted)
    if len({text.lower() == "enforce" for text in actions}) > 1:
        raise Unwritable("verifyImages[].failureAction: they differ: write a rule for each")
    if skipped and len(rule["verifyImages"]) > 1:
        raise Unwritable("verifyImages[].skipImageReferences: write a rule for each entry")
    action = "deny" if actions.pop().lower() == "enforce" else "dryrun"
    match = _matched_by_rule(document, spec, rule)
    converted.documents.append(
        _constraint(base, list(dict.fromkeys(every)), match, action, skipped)
    )
    return converted


# --- output ---------------------------------------------------------------------------------------


def _own_name(document: Json, name: str) -> str:
    """Returns a cluster-wide name: the namespace of a Policy and the name."""
    return "-".join(filter(None, [namespace_of(document), name]))


def _policy(
    name: str,
    globs: list[str],
    authorities: list[Json],
    count: int,
    predicate: str,
    root: Json | None,
) -> Json:
    if len(authorities) > ATTESTORS_MAX:
        raise Unwritable(f"{len(authorities)} attestors in one set: at most {ATTESTORS_MAX}")
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


def _digests(given: Json, converted: ConvertedImages) -> None:
    if given.get("mutateDigest", True):
        converted.note("mutateDigest: add policies/supply-chain/digests, it writes digests")
    elif given.get("verifyDigest", True):
        converted.note("verifyDigest: add policies/general/image-digests, it refuses tags")


def _credentials(given: Json, name: str, converted: ConvertedImages) -> None:
    if given.get(name):
        converted.note(f"{name}: give the provider credentials: imageProvider.registrySecrets")


# --- images ---------------------------------------------------------------------------------------


def _globs(given: Any, where: str) -> list[str]:
    """Returns Kyverno's patterns as globs of a VerificationPolicy."""
    patterns = texts_in(given, where)
    if not patterns:
        raise Unwritable(f"{where} is empty")
    return [glob for pattern in patterns for glob in _glob(pattern, where)]


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
        # Kyverno names an official image of Docker Hub docker.io/nginx.
        yield f"docker.io/library/{rest}"
        if "*" not in rest:
            return
    yield pattern


def _exempt(given: Any, where: str) -> list[str]:
    """Returns patterns for the template's exemptImages: a text, or a prefix that ends in ``*``."""
    if not given:
        return []
    patterns = _globs(given, where)
    for pattern in patterns:
        if pattern.startswith(("docker.io/", "*")) or "*" in pattern[:-1]:
            raise Unwritable(f"{where}: {pattern}: write images without it in imageReferences")
    return patterns


def _globs_of_policy(spec: Json) -> list[str]:
    references = objects_in(spec.get("matchImageReferences"), "spec.matchImageReferences")
    for reference in references:
        refuse(reference, "spec.matchImageReferences", "expression")
    if not references:
        return ["*"]
    return _globs([item.get("glob") for item in references], "spec.matchImageReferences.glob")


# --- requirements in verifyImages -----------------------------------------------------------------


def _requirements(entry: Json, where: str) -> Iterator[tuple[Json, str, str]]:
    """Yields attestor sets, each with its place and the required predicate type."""
    for number, attestor in enumerate(objects_in(entry.get("attestors"), f"{where}.attestors")):
        for set_ in flat_sets(attestor, f"{where}.attestors[{number}]"):
            yield set_, f"{where}.attestors[{number}]", ""
    for number, attestor in enumerate(
        objects_in(entry.get("attestations"), f"{where}.attestations")
    ):
        place = f"{where}.attestations[{number}]"
        refuse(attestor, place, "conditions")
        predicate = str(attestor.get("type") or attestor.get("predicateType") or "")
        if not predicate:
            raise Unwritable(f"{place}.type is missing")
        if not attestor.get("attestors"):
            raise Unwritable(f"{place} has no attestors: anybody could have attested it")
        for at, given in enumerate(objects_in(attestor["attestors"], f"{place}.attestors")):
            for each in objects_in(given.get("entries"), f"{place}.attestors[{at}].entries"):
                refuse(each, f"{place}.attestors[{at}].entries", "attestor")
                if len(KEY_PEM.findall(str(object_of(each.get("keys")).get("publicKeys")))) > 1:
                    raise Unwritable(f"{place}.attestors[{at}]: several keys in one entry")
            for set_ in flat_sets(given, f"{place}.attestors[{at}]"):
                yield set_, f"{place}.attestors[{at}]", predicate


# --- ImageValidatingPolicy ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Requirement:
    """The number of attestors that must have signed the images, or an attestation of them."""

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


def _requirements_of_policy(
    spec: Json, configured: Json, converted: ConvertedImages
) -> list[_Requirement]:
    """Returns the requirements of the validations, each once for all groups of containers."""
    groups: dict[_Requirement, set[str]] = {}
    for at, validation in enumerate(objects_in(spec.get("validations"), "spec.validations")):
        where = f"spec.validations[{at}].expression"
        for term in str(validation.get("expression") or "").split("&&"):
            group, term_value = _term(term.strip(), where)
            groups.setdefault(term_value, set()).add(group)
    if not groups:
        raise Unwritable("spec.validations is empty: nobody has to sign")
    if configured.get("required") is False and any(names != _GROUPS for names in groups.values()):
        converted.note("the images of every kind of container are asked about")
    return list(groups)


def _term(term: str, where: str) -> tuple[str, _Requirement]:
    bare = term[1:-1].strip() if re.fullmatch(r"\(\s*images\..*\)\s*\)", term, re.DOTALL) else term
    matched = next((match for form in _FORMS if (match := form.fullmatch(bare))), None)
    if matched is None or (matched["what"] == "Attestation") != bool(matched["attestation"]):
        shown = " ".join(term.split())
        raise Unwritable(f"{where}: {shown}: {BY_HAND['validate']}")
    if matched["group"] not in _GROUPS:
        raise Unwritable(f"{where}: images.{matched['group']}: only a Pod's containers are asked")
    attestors = tuple(
        dict.fromkeys(
            _member(member) for member in re.findall(rf"attestors({_MEMBER})", matched["attestors"])
        )
    )
    number = int(matched["number"]) + (matched["operator"] == ">")
    if not 1 <= number <= len(attestors):
        raise Unwritable(f"{where}: {number} of {len(attestors)} attestors")
    if matched["operator"] == "==" and number != len(attestors):
        raise Unwritable(f"{where}: exactly {number} of {len(attestors)} attestors: write >=")
    attestation = _member(matched["attestation"] or "")
    return matched["group"], _Requirement(attestors, number, attestation, ", ".join(attestors))


def _member(text: str) -> str:
    return text.strip(".[]'\"")


def _predicate(types: dict[str, Json], name: str) -> str:
    given = types.get(name, {})
    predicate_type = str(object_of(given.get("intoto")).get("type") or "")
    if not predicate_type:
        raise Unwritable(f"spec.attestations.{name}: only intoto.type is read")
    return _PREDICATES.get(predicate_type, predicate_type)


def _one_root(roots: list[Json | None]) -> Json | None:
    needed: list[Json] = []
    needed += [root for root in roots if root is not None and root not in needed]
    if any(root != needed[0] for root in needed):
        raise Unwritable("spec.attestors: two trusted roots in one validation")
    return needed[0] if needed else None


# --- match ----------------------------------------------------------------------------------------


def _kinds(names: list[str]) -> list[Json]:
    by_group: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        by_group.setdefault(_MAKERS[name], []).append(name)
    return [{"apiGroups": [group], "kinds": kinds} for group, kinds in by_group.items()]


def _refuse_subjects(filters: list[Json], where: str) -> None:
    if any(filter_.get("subjects") for filter_ in filters):
        raise Unwritable(f"{where}.subjects: a constraint cannot match by user")


def _matched_by_rule(document: Json, spec: Json, rule: Json) -> Json:
    """Returns the constraint's match, made of the rule's match and exclude."""
    given_filters = filters_of(object_of(rule.get("match")), "match")
    _refuse_subjects(given_filters, "match")
    filters = [resources_of(filter_, "match") for filter_ in given_filters]
    rest = [{name: value for name, value in each.items() if name != "kinds"} for each in filters]
    if any(filter_ != rest[0] for filter_ in rest):
        raise Unwritable("match.any: filters that differ in more than kinds")
    kinds = [texts_in(each["kinds"], "match.resources.kinds") for each in filters]
    names = [kind_of(kind)[2] for each in kinds for kind in each]
    if more := [kind for kind in names if kind not in _MAKERS]:
        raise Unwritable(f"match.resources.kinds: {more[0]}: only Pods and what makes them")
    match: Json = {"kinds": _kinds([*names, *_generated(document, spec, names)])}
    given = rest[0]
    _check_operations(given.get("operations"), "match.resources.operations")
    texts = [*texts_in(given.get("names"), "match.resources.names")]
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
    if namespace := namespace_of(document):
        match["namespaces"] = [namespace]
    return match


def _check_operations(given: Any, where: str) -> None:
    named = set(texts_in(given, where))
    if named and "*" not in named and not {"CREATE", "UPDATE"} <= named:
        raise Unwritable(f"{where}: a constraint is asked about both CREATE and UPDATE")


def _namespaces(given: Any, where: str) -> list[str]:
    patterns = texts_in(given, where)
    for pattern in patterns:
        if not _NAMESPACE.fullmatch(pattern):
            raise Unwritable(f"{where}: {pattern}: * stands at an end")
    return patterns


def _selector(given: Any, where: str) -> Json:
    if type(given) is not dict:
        raise Unwritable(f"{where} is not an object")
    for key, value in object_of(given.get("matchLabels")).items():
        if any(mark in f"{key}{value}" for mark in "*?"):
            raise Unwritable(f"{where}: a pattern: {key}={value}")
    return given


def _excluded(rule: Json, names: list[str]) -> list[str]:
    namespaces: list[str] = []
    left_out = filters_of(object_of(rule["exclude"]), "exclude") if rule.get("exclude") else []
    _refuse_subjects(left_out, "exclude")
    for name in left_out:
        resources = resources_of(name, "exclude")
        given = texts_in(resources.get("kinds"), "exclude.resources.kinds")
        kinds = {kind.rpartition("/")[2] for kind in given}
        is_about_all = not kinds or "*" in kinds or set(names) <= kinds
        if set(resources) - {"kinds", "namespaces"} or not is_about_all:
            raise Unwritable("exclude: only namespaces can be left out")
        namespaces += _namespaces(resources.get("namespaces"), "exclude.resources.namespaces")
        if not resources.get("namespaces"):
            raise Unwritable("exclude: only namespaces can be left out")
    return namespaces


def _generated(document: Json, spec: Json, names: list[str]) -> list[str]:
    """Returns the pod controllers for which Kyverno generates the rule, too."""
    for rule in objects_of(spec.get("rules")):
        for block in (object_of(rule.get("match")), object_of(rule.get("exclude"))):
            for filter_ in (block, *objects_of(block.get("any")), *objects_of(block.get("all"))):
                resources = object_of(filter_.get("resources"))
                kinds = texts_in(resources.get("kinds"), "resources.kinds")
                if len(kinds) > 1 and "Pod" in kinds:
                    return []
                if any(resources.get(of) for of in ("name", "names", "selector", "annotations")):
                    return []
    if set(names) != {"Pod"}:
        return []
    annotations = object_of(object_of(document.get("metadata")).get("annotations"))
    if (named := annotations.get(AUTOGEN)) is None or named == "all":
        return [maker for maker in _MAKERS if maker != "Pod"]
    controllers = {name.strip() for name in str(named).split(",")}
    return [maker for maker in _MAKERS if maker in controllers]


def _matched_by_policy(document: Json, spec: Json) -> Json:
    """Returns the constraint's match, made of matchConstraints."""
    given = object_of(spec.get("matchConstraints"))
    where = "spec.matchConstraints"
    refuse(given, where, "excludeResourceRules")
    plural = {"pods": "Pod", "replicationcontrollers": "ReplicationController"}
    plural |= {name: controller.kind for name, controller in CONTROLLERS.items()}
    names: list[str] = []
    for rule in objects_in(given.get("resourceRules"), f"{where}.resourceRules"):
        refuse(rule, f"{where}.resourceRules", "resourceNames")
        _check_operations(rule.get("operations"), f"{where}.resourceRules.operations")
        for resource in texts_in(rule.get("resources"), f"{where}.resourceRules.resources"):
            if resource not in plural:
                raise Unwritable(
                    f"{where}.resourceRules: {resource}: only Pods and what makes them"
                )
            names.append(plural[resource])
    if not names:
        raise Unwritable(f"{where}.resourceRules is empty")
    if set(names) == {"Pod"} and not given.get("objectSelector"):
        configured = object_of(object_of(spec.get("autogen")).get("podControllers"))
        controllers = configured.get("controllers")
        chosen = texts_in(controllers, "spec.autogen.podControllers.controllers")
        names += [
            controller.kind
            for name, controller in CONTROLLERS.items()
            if controllers is None or name in chosen
        ]
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
