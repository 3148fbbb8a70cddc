"""``/v1/admitlabel``: Gatekeeper's answers."""

from typing import Any

import pytest

from webhook.api.admission import read_request
from webhook.api.names import IGNORE
from webhook.server.namespace_label import Exemptions, decide

NOBODY = Exemptions()


def ask(
    obj: dict[str, Any] | None,
    *,
    kind: str = "Namespace",
    operation: str = "CREATE",
    exemptions: Exemptions = NOBODY,
) -> tuple[bool, int, str]:
    """Allowed, code and message for an object."""
    request = read_request(
        {
            "kind": {"group": "", "version": "v1", "kind": kind},
            "operation": operation,
            "object": obj,
        }
    )
    found = decide(request, exemptions)
    return found.allowed, found.code, found.message


def namespace(name: str, labels: Any) -> dict[str, Any]:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def test_without_the_label_a_namespace_is_admitted() -> None:
    message = f"Namespace is not setting the {IGNORE} label"
    assert ask(namespace("a", {"b": "c"})) == (True, 200, message)
    assert ask(namespace("a", None)) == (True, 200, message)


@pytest.mark.parametrize(
    "labels", [{IGNORE: ""}, {IGNORE: "no"}, {IGNORE: None}, {IGNORE: 1, "b": 2}]
)
def test_with_the_label_in_any_form_it_is_denied(labels: dict[str, Any]) -> None:
    message = f"Only exempt namespace can have the {IGNORE} label"
    assert ask(namespace("a", labels)) == (False, 403, message)


@pytest.mark.parametrize(
    "exemptions",
    [
        Exemptions(names=("kube-system",)),
        Exemptions(prefixes=("kube-",)),
        Exemptions(suffixes=("-system",)),
    ],
)
def test_an_exempt_namespace_may_carry_it(exemptions: Exemptions) -> None:
    obj = namespace("kube-system", {IGNORE: ""})
    message = f"Namespace kube-system is allowed to set {IGNORE}"
    assert ask(obj, exemptions=exemptions) == (True, 200, message)
    assert ask(namespace("other", {IGNORE: ""}), exemptions=exemptions)[0] is False


def test_other_kinds_and_deletions_are_admitted() -> None:
    obj = namespace("a", {IGNORE: ""})
    assert ask(obj, kind="Pod") == (True, 200, "Not a namespace")
    assert ask(obj, operation="DELETE") == (True, 200, "Delete is always allowed")


def test_no_object_is_an_error() -> None:
    message = "while deserializing resource: unexpected end of JSON input"
    assert ask(None) == (False, 500, message)
