"""Pages of an API server's list, with faulty ones."""

import json
from random import Random
from typing import Any

import orjson
import pytest

from webhook.cluster.errors import ApiUnreachable
from webhook.cluster.pages import read_page, without_managed_fields


def test_a_list_that_is_made_when_it_is_asked_for_has_no_version() -> None:
    """As ComponentStatus, which every cluster has, and metrics."""
    items = [{"metadata": {"name": "scheduler"}}]
    page = {"kind": "ComponentStatusList", "metadata": {}, "items": items}
    assert read_page(page, "/api/v1/componentstatuses") == (items, "", "")
    assert read_page({"metadata": {}, "items": []}, "/x") == ([], "", "")


def test_a_list_of_nothing_may_have_null_for_its_items() -> None:
    assert read_page({"metadata": {"resourceVersion": "7"}, "items": None}, "/x") == ([], "7", "")


@pytest.mark.parametrize("page", [None, [], "x", {}, {"items": {}}, {"metadata": {}}])
def test_what_is_no_list_is_an_error(page: object) -> None:
    with pytest.raises(ApiUnreachable, match="/x: the answer is not a list"):
        read_page(page, "/x")


def metadata_list(*metadata: dict[str, Any], kind: str = "PartialObjectMetadataList") -> bytes:
    """The bytes of a list, as the API server's encoder writes them."""
    items = [{"kind": "PartialObjectMetadata", "metadata": one} for one in metadata]
    content = {"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": items}
    return json.dumps(content, separators=(",", ":")).encode()


FIELDS = [
    {"manager": "kubectl", "fieldsV1": {"f:spec": {'k:{"name":"app"}': {".": {}}}}},
    {"manager": "kubelet", "fieldsV1": {}},
]


def test_a_list_of_metadata_is_decoded_without_managed_fields() -> None:
    content = metadata_list(
        {"name": "last", "managedFields": FIELDS},
        {"managedFields": FIELDS, "name": "first"},
        {"managedFields": FIELDS},
        {"name": "none", "annotations": {"a": '"managedFields":[{}]'}},
    )
    items = json.loads(without_managed_fields(content))["items"]
    assert [one["metadata"] for one in items] == [
        {"name": "last"},
        {"name": "first"},
        {},
        {"name": "none", "annotations": {"a": '"managedFields":[{}]'}},
    ]


def test_of_another_list_nothing_is_taken() -> None:
    content = metadata_list({"name": "a", "managedFields": FIELDS}, kind="PodList")
    assert without_managed_fields(content) == content


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [1],
        [{}, 1],
        [{"a": [{}]}],
        [{"a": "}]"}],
        [{"a": '"}]'}],
        [{"a": "\\"}, {"b": "}]"}],
        [{"v:[1]": {}}],
    ],
)
def test_managed_fields_whose_end_is_in_doubt_stay(fields: list[Any]) -> None:
    content = metadata_list(
        {"name": "a", "managedFields": fields}, {"name": "b", "managedFields": FIELDS}
    )
    items = json.loads(without_managed_fields(content))["items"]
    assert [one["metadata"] for one in items] == [
        {"name": "a", "managedFields": fields},
        {"name": "b"},
    ]


@pytest.mark.parametrize("seed", range(20))
def test_whatever_managed_fields_hold_all_else_of_a_list_stays(seed: int) -> None:
    random = Random(seed)

    def text() -> str:
        return "".join(random.choices('{}[]",:\\a', k=random.randrange(6)))

    def value(depth: int) -> Any:
        many = range(random.randrange(3) if depth else 0)
        return random.choice(
            [text(), {text(): value(depth - 1) for _ in many}, [value(depth - 1) for _ in many]]
        )

    for _ in range(200):
        metadata: list[dict[str, Any]] = []
        for number in range(3):
            one = {"name": f"{number}", "labels": {text(): text()}, "managedFields": [value(3)]}
            metadata.append(dict(random.sample(list(one.items()), random.randrange(1, 4))))
        items = json.loads(without_managed_fields(metadata_list(*metadata)))["items"]
        for before, item in zip(metadata, items, strict=True):
            after = item["metadata"]
            before.pop("managedFields", None)
            after.pop("managedFields", None)
            assert after == before


def test_a_list_that_is_torn_is_not_read_beyond_its_end() -> None:
    content = metadata_list({"name": "a", "managedFields": FIELDS})
    for length in range(len(content)):
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(without_managed_fields(content[:length]))
