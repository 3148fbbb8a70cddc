"""Templates, mutators and reviews that ask providers, by chance: what two servers answer is compared.

Each review is about one template or about a few mutators (`LABEL`), so that who of several asks first
does not matter: keys that one template has asked come from the cache for the next.
"""

import random
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests import policies
from tests.behaviour.serving import review
from tests.provider_process import ProviderProcess

Object = dict[str, Any]

LABEL: Final = "asks"
"""The label whose value names the template of a review."""

GOOD, FAULTY, CLOSED, UNKNOWN, DELETED = "good", "faulty", "closed", "unknown", "deleted"
"""Providers: one whose answers can be read, one whose cannot, one that nobody listens for, one that
is nowhere, and one that is deleted while its keys are cached."""


def provider_objects(good: ProviderProcess, closed_port: int) -> list[Object]:
    """The Provider objects; of what fails apart, so that what has failed is not held against the rest."""
    closed = f"https://127.0.0.1:{closed_port}/validate"
    return [
        *(good.manifest(name, timeout=10) for name in (GOOD, DELETED)),
        good.manifest(FAULTY, timeout=3),
        good.manifest(CLOSED, url=closed),
    ]


# --- questions -----------------------------------------------------------------------------------

ITEM_KINDS: Final = (
    *("error", "missing", "null", "explicit", "empty", "both", "number", "float", "integral"),
    *(
        "large",
        "huge",
        "negative",
        "true",
        "list",
        "object",
        "twice",
        "other",
        "extra",
        "keyless",
        "mixed",
        "strange",
    ),
    *("nothing", "chain2"),
)
ANSWER_KINDS: Final = (
    *("status500", "status404", "system", "partly", "blank", "unsteady", "upper"),
    *("folded", "version", "bare", "nulled"),
)
"""Answers that can be read, whatever they say."""
FAULT_KINDS: Final = (
    *("html", "drop", "cut", "plain", "none", "array", "trailing", "wrongitems", "wrongerror"),
    *("wrongresponse", "wrongflag", "kindless", "numbered", "typed", "text"),
)
"""Answers that cannot be read."""
HANGS: Final = "hang"

TEXTS: Final = (
    *("nginx", "nginx:1.27", "registry.example/team/app@sha256:ab", "Ä-ö", "<&>", "with space"),
    *("", 'a"quote', "back\\slash", "'single'", "日本", "emoji 🦆", "a" * 60),
)
CONTROLS: Final = (
    *("tab\there", "line\nend", "feed\x0c", "null\x00here", "bell\x07", "tall\x0b", "del\x7f"),
    *("\u2028", "\x85", "\xa0", "\u200b", "\ue000", "\U000e0001", "\ufeff", "\ufffd"),
)


def random_keys(source: random.Random, provider: str) -> list[str]:
    """A few keys that a provider answers, or fails at.

    The empty key stands beside none that is answered as if it were that: Gatekeeper's next call finds
    such an answer in the cache, and here both are asked at once.
    """
    keys = []
    for _ in range(source.choice([0, 1, 1, 2, 2, 3, 5])):
        text = source.choice(TEXTS)
        if source.random() < 0.55:
            text = f"{source.choice(ITEM_KINDS)}/{text or 'x'}"
        keys.append(f"{text} {source.randrange(4)}" if source.random() < 0.5 else text)
    if source.random() < 0.2 and keys:
        keys.insert(source.randrange(len(keys) + 1), source.choice(keys))
    if provider == FAULTY and source.random() < 0.6:  # or else it would not be asked any more
        kind = HANGS if source.random() < 0.02 else source.choice(FAULT_KINDS)
        keys.append(f"{kind}/{source.randrange(10**9)}")
    elif source.random() < 0.2:
        keys.append(f"{source.choice(ANSWER_KINDS)}/{source.randrange(20)}")
    if source.random() < 0.05:
        keys.append(source.choice(CONTROLS))
    if any(key.startswith(("nothing/", "keyless/")) for key in keys):
        return [key for key in keys if key]
    return keys


def random_provider(source: random.Random) -> str:
    """The good one mostly."""
    names = [GOOD, FAULTY, CLOSED, UNKNOWN, DELETED]
    return source.choices(names, weights=[70, 10, 4, 6, 10])[0]


def random_argument(source: random.Random) -> Any:
    """Returns a random argument of `external_data`: mostly valid, otherwise of any wrong shape."""
    provider = random_provider(source)
    keys: Any = random_keys(source, provider)
    argument: Object = {"provider": provider, "keys": keys}
    chance = source.random()
    if chance < 0.6:
        return argument
    shapes: tuple[Callable[[], Any], ...] = (
        lambda: {"provider": provider},
        lambda: {"keys": keys},
        dict,
        lambda: {"provider": provider, "keys": None},
        lambda: {"provider": None, "keys": keys},
        lambda: {"provider": 5, "keys": keys},
        lambda: {"provider": provider, "keys": "nginx"},
        lambda: {"provider": provider, "keys": {"a": "b"}},
        lambda: {"provider": provider, "keys": [*keys, 1]},
        lambda: {"provider": provider, "keys": [*keys, None]},
        lambda: {"provider": provider, "keys": [*keys, ["nested"]]},
        lambda: {"Provider": provider, "KEYS": keys},
        lambda: {"pRoViDeR": provider, "keyS": keys, "more": [1, {}]},
        lambda: {"KEYS": ["upper"], "keys": keys, "provider": provider},
        lambda: {"KEYS": keys, "keys": None, "provider": provider},
        lambda: {"KEYS": [None, "upper"], "keys": [*keys, None], "provider": provider},
        lambda: {"PROVIDER": UNKNOWN, "provider": provider, "keys": keys},
        lambda: {"provider": provider, "\u212aeys": keys},  # the sign of Kelvin folds to a k
        lambda: {"provider": provider, "Keys\u017f": keys, "key\u017f": keys},  # the long s to an s
        lambda: None,
        list,
        lambda: "text",
        lambda: 7,
        lambda: [provider, keys],
        lambda: {"provider": provider, "keys": []},
        lambda: {"provider": UNKNOWN, "keys": []},
        lambda: {"provider": "", "keys": keys},
        lambda: {"provider": GOOD.upper(), "keys": keys},
    )
    return source.choice(shapes)()


# --- templates -----------------------------------------------------------------------------------

_KEYS: Final = (
    "input.review.object.words",
    "[word | word := input.review.object.words[_]]",
    "input.review.object.words",
    '[sprintf("%v of this", [word]) | word := input.review.object.words[_]]',
    "{word | word := input.review.object.words[_]}",
    "[word | word := {one | one := input.review.object.words[_]}[_]]",
    "array.concat(input.review.object.words, [null])",
    "input.parameters.words",
    "array.concat(input.review.object.words, input.parameters.words)",
    '[sprintf("%v", [word]) | word := input.review.object.words[_]]',
    "sort(input.review.object.words)",
    'object.get(input.review.object, "words", [])',
    'object.get(input.review.object, "absent", null)',
    "{one | one := input.review.object.none[_]}",
    "[]",
    "set()",
    "null",
    "array.slice(input.review.object.words, 0, 1)",
)
_PROVIDERS: Final = (
    "input.review.object.provider",
    "input.review.object.provider",
    "input.review.object.provider",
    "input.parameters.provider",
    f'"{GOOD}"',
    f'"{UNKNOWN}"',
)
_ARGUMENTS: Final = (
    '{"provider": PROVIDER, "keys": KEYS}',
    '{"provider": PROVIDER, "keys": KEYS}',
    '{"provider": PROVIDER, "keys": KEYS}',
    '{"provider": PROVIDER, "keys": KEYS}',
    '{"provider": PROVIDER, "keys": KEYS}',
    '{"provider": PROVIDER, "keys": KEYS, "more": {"fields": 1}}',
    '{"Provider": PROVIDER, "Keys": KEYS}',
    '{"provider": PROVIDER, "keys": KEYS, "more": {1, 2}}',
    '{"provider": PROVIDER, "keys": KEYS, 1: "a key that is a number"}',
    '{"provider": PROVIDER, "keys": KEYS, "Keys": input.review.object.words}',
    '{"provider": PROVIDER}',
)
_BODIES: Final = (
    'violation[{"msg": msg}] { response := external_data(ARG); msg := sprintf("%v", [response]) }',
    """
    violation[{"msg": msg, "details": response}] {
      response := external_data(ARG)
      msg := json.marshal(response)
    }
    """,
    """
    violation[{"msg": msg}] {
      response := external_data(ARG)
      count(response.errors) > 0
      msg := sprintf("errors %v", [response.errors])
    }
    violation[{"msg": msg}] {
      response := external_data(ARG)
      pair := response.responses[_]
      msg := sprintf("%v is %v", [pair[0], pair[1]])
    }
    """,
    'violation[{"msg": "nothing came"}] { not external_data(ARG) }',
    """
    violation[{"msg": msg}] {
      not clean
      msg := sprintf("not clean %v", [count(input.review.object.words)])
    }
    clean { response := external_data(ARG); response.system_error == ""; count(response.errors) == 0 }
    """,
    """
    violation[{"msg": msg}] { msg := sprintf("%v", [said(input.review.object.words[_])]) }
    said(word) = value {
      response := external_data({"provider": PROVIDER, "keys": [word]})
      value := {pair[1] | pair := response.responses[_]}
    }
    """,
    """
    violation[{"msg": msg}] {
      all := [response | word := input.review.object.words[_]
        response := external_data({"provider": PROVIDER, "keys": [word]})]
      msg := sprintf("%v", [[[one.responses, one.errors, one.system_error] | one := all[_]]])
    }
    """,
    """
    violation[{"msg": msg}] {
      first := external_data(ARG)
      next := [pair[1] | pair := first.responses[_]; is_string(pair[1])]
      second := external_data({"provider": PROVIDER, "keys": next})
      msg := sprintf("%v then %v", [first.responses, second.responses])
    }
    """,
    """
    violation[{"msg": msg}] {
      first := external_data(ARG)
      words := array.concat(input.review.object.words, ["and more"])
      second := external_data({"provider": PROVIDER, "keys": words})
      third := external_data({"provider": PROVIDER, "keys": array.slice(words, 0, 1)})
      msg := sprintf("%v", [[first, second, third]])
    }
    """,
    """
    violation[{"msg": msg}] {
      response := external_data(ARG)
      counts := [count(response.responses), count(response.errors), count(response.system_error)]
      msg := sprintf("%v %v", [response.status_code, counts])
    }
    """,
    """
    violation[{"msg": msg}] { msg := verdict }
    default verdict = "nobody said"
    verdict = "bad" { external_data(ARG).errors[_] } else = "good" { external_data(ARG).responses[_] }
    """,
    """
    violation[{"msg": msg}] {
      response := external_data(ARG) with input.review.object.words as ["inside"]
      msg := sprintf("%v", [response.responses])
    }
    """,
    """
    violation[{"msg": msg}] {
      response := external_data(ARG)
      msg := sprintf("by %v: %v", [input.parameters.name, response.responses])
    }
    """,
)
DYNAMIC: Final = "Dynamic"
_DYNAMIC: Final = """
package dynamic
violation[{"msg": msg, "details": response}] {
  response := external_data(input.review.object.ask)
  msg := sprintf("%v", [response])
}
violation[{"msg": "nothing came"}] { not external_data(input.review.object.ask) }
"""


def templates(seed: int, count: int) -> list[Object]:
    """Returns a template that requests the object's keys, and random others."""
    source = random.Random(f"templates {seed}")
    found = [policies.template(DYNAMIC, _DYNAMIC, schema=policies.FREE)]
    for number in range(count):
        body = _BODIES[number % len(_BODIES)]
        body = body.replace("ARG", source.choice(_ARGUMENTS))
        body = body.replace("KEYS", source.choice(_KEYS))
        body = body.replace("PROVIDER", source.choice(_PROVIDERS))
        kind = f"Asks{number}"
        rego = f"package {kind.lower()}\n{body}"
        found.append(policies.template(kind, rego, schema=policies.FREE))
    return found


def constraints(seed: int, count: int) -> list[Object]:
    """Returns one or two constraints of each template, for objects that name it.

    What two constraints ask of a provider is the same, or shares no key. Keys that are shared come
    from the cache to Gatekeeper's second, and here both are asked at once.
    """
    source = random.Random(f"constraints {seed}")
    found = []
    for document in templates(seed, count):
        kind = document["spec"]["crd"]["spec"]["names"]["kind"]
        rego = document["spec"]["targets"][0]["rego"]
        may_share = "input.parameters.words" in rego and "input.review.object.words" in rego
        for number in range(1 if may_share or kind == DYNAMIC else source.choice([1, 2])):
            name = f"{kind.lower()}-{number}"
            parameters = {
                "name": name,
                # An API server takes no constraint with control characters from a YAML document.
                "words": [
                    f"{key} of {name}" for key in random_keys(source, GOOD) if key.isprintable()
                ],
                "provider": random_provider(source),
            }
            match = {"labelSelector": {"matchLabels": {LABEL: kind}}}
            # Not `warn`: a warning is cut where an API server would, which Gatekeeper leaves to it.
            found.append(policies.constraint(kind, name, match=match, parameters=parameters))
    return found


def reviews(seed: int, count: int) -> Iterator[Object]:
    """Reviews without end about one of so many templates each, the same for the same seed."""
    source = random.Random(f"reviews {seed}")
    number = 0
    while True:
        number += 1
        kind = DYNAMIC if source.random() < 0.3 else f"Asks{source.randrange(count)}"
        provider = random_provider(source)
        obj: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"asks-{number}", "namespace": "team-a", "labels": {LABEL: kind}},
            "provider": provider,
            "words": random_keys(source, provider),
        }
        if kind == DYNAMIC:
            obj["ask"] = random_argument(source)
        yield of_object(obj, number)


def of_object(obj: Object, number: int, *, user: str = "alice") -> Object:
    """A review of it, as an API server sends it."""
    body = review(obj)
    body["request"]["uid"] = f"00000000-0000-0000-0000-{number:012d}"
    body["request"]["userInfo"] = {"username": user}
    return body


# --- mutators --------------------------------------------------------------------------------------

_PODS: Final = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}]
_LOCATIONS: Final = (
    "spec.containers[name: *].image",
    "spec.containers[name: *].image",
    "spec.containers[name: first].image",
    "spec.containers[name: added].image",
    "spec.nodeName",
    "spec.priorityClassName",
    "spec.securityContext.absent.field",
)


def mutators(seed: int, count: int) -> list[Object]:
    """Each about Pods that name its group by their label: four in a group."""
    source = random.Random(f"mutators {seed}")
    found = []
    for number in range(count):
        match = {"labelSelector": {"matchLabels": {LABEL: f"group-{number // 4}"}}}
        provider = random_provider(source)
        external: Object = {"provider": provider, "dataSource": "ValueAtLocation"}
        policies_of_failure = [None, "Fail", "Ignore", "UseDefault"]
        # Policies that always fail would hide the others.
        policy = source.choice(
            policies_of_failure if provider == GOOD else ["Ignore", "UseDefault"]
        )
        if policy:
            external["failurePolicy"] = policy
        if policy == "UseDefault":
            external["default"] = f"default-{number}"
        kind, location = "Assign", source.choice(_LOCATIONS)
        spec: Object = {"match": match, "parameters": {"assign": {"externalData": external}}}
        if source.random() < 0.2:
            kind, location = "AssignMetadata", f"metadata.annotations.asked-{number}"
            external["dataSource"] = "Username"
        else:
            spec["applyTo"] = _PODS
            if source.random() < 0.2:
                external["dataSource"] = "Username"
        found.append(
            {
                "apiVersion": "mutations.gatekeeper.sh/v1",
                "kind": kind,
                "metadata": {"name": f"asks-{number:03d}"},
                "spec": {**spec, "location": location},
            }
        )
    return found


def mutated_reviews(seed: int, count: int) -> Iterator[Object]:
    """Reviews of Pods without end for so many mutators."""
    source = random.Random(f"mutations {seed}")
    number = 0
    while True:
        number += 1
        # Items without a key answer the key "", which is asked in any order.
        kinds = [*(kind for kind in ITEM_KINDS if kind not in ("keyless", "nothing")), *[""] * 20]
        names = ["first", "second", "third"][: source.choice([0, 1, 1, 2, 3])]
        images = [f"{source.choice(kinds)}/{source.choice(TEXTS[:6])}".lstrip("/") for _ in names]
        if images and source.random() < 0.2:
            images[0] = f"{source.choice(ANSWER_KINDS + FAULT_KINDS[:4])}/{source.randrange(9)}"
        spec: Object = {
            "containers": [
                {"name": name, "image": image} for name, image in zip(names, images, strict=True)
            ]
        }
        if source.random() < 0.3:
            spec["nodeName"] = source.choice(["node", "error/node", "number/node", ""])
        labels = {LABEL: f"group-{source.randrange(count // 4)}"}
        obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"asks-{number}", "namespace": "team-a", "labels": labels},
            "spec": spec,
        }
        yield of_object(obj, number, user=source.choice(["alice", "error/bob", "null/eve"]))


# --- what is compared ------------------------------------------------------------------------------

_REQUEST_FAILURE: Final = re.compile(
    r"(failed to \w+ external data (?:request|response)): (?:[^\"\\]|\\.)*"
)
_MUTATED: Final = "failed to resolve external data placeholders: "
_PARTS: Final = re.compile(r", (?=failed to )")
_SENT: Final = re.compile(r"(failed to send external data request to provider [a-z]+): .*")


def without_faults(message: str) -> str:
    """A template's message without what each client says of a fault of transport in its own words.

    It stands in a string of Rego, behind the first colon.
    """
    return _REQUEST_FAILURE.sub(r"\1", message)


def errors_of_mutation(message: str) -> list[str]:
    """Returns the errors of a mutation in a fixed order.

    A value that is put in the place of the same is a mutation to Gatekeeper, and none here.
    """
    if message == "Resource was not mutated":
        return [""]
    if not message.startswith(_MUTATED):
        return [message]
    parts = _PARTS.split(message.removeprefix(_MUTATED).removeprefix("[").removesuffix("]"))
    return sorted(_SENT.sub(r"\1", part) for part in parts)
