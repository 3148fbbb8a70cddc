"""Operations of JSON Patches that do not apply: the texts are those of the API server's library."""

import pytest

from webhook.admission_policies.json_patch import patched
from webhook.cel.errors import EvaluationError

DOCUMENT = {"a": "x", "list": ["x"]}
MISSING = "missing value"
INVALID = "Unable to access invalid index: 5: invalid index referenced"
TEXTS = [
    ("add", {"path": "/none/a"}, f'add operation does not apply: doc is missing path: "/none/a": {MISSING}'),
    ("remove", {"path": "/none/a"}, f'remove operation does not apply: doc is missing path: "/none/a": {MISSING}'),
    ("replace", {"path": "/none/a"}, f"replace operation does not apply: doc is missing path: /none/a: {MISSING}"),
    ("test", {"path": "/none/a"}, f"test operation does not apply: is missing path: /none/a: {MISSING}"),
    ("copy", {"path": "/none/a", "from": "/a"}, f"copy operation does not apply: doc is missing destination path: /none/a: {MISSING}"),
    ("move", {"path": "/none/a", "from": "/a"}, f"move operation does not apply: doc is missing destination path: /none/a: {MISSING}"),
    ("copy", {"path": "/b", "from": "/list/5"}, f"error in copy for from: '/list/5': {INVALID}"),
    ("move", {"path": "/b", "from": "/list/5"}, f"error in move for path: '5': {INVALID}"),
    ("copy", {"path": "/list/5", "from": "/a"}, f"error while adding value during copy: {INVALID}"),
    ("move", {"path": "/list/5", "from": "/a"}, f"error in move for path: '/list/5': {INVALID}"),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "fields", "text"), TEXTS)
def test_what_does_not_apply_is_reported_as_by_the_api_server(operation, fields, text):
    with pytest.raises(EvaluationError) as raised:
        patched(DOCUMENT, [{"op": operation, **fields}])
    assert raised.value.text == f"JSON Patch: {text}"
