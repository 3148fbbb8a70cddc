"""RFC 6902, as far as patches of objects go: the judge of patches, apart from what makes them."""

import copy
from typing import Any


def apply_patch(document: Any, operations: list[dict[str, Any]]) -> Any:
    """The document with the operations applied, in order; raises where one does not fit."""
    root = {"": copy.deepcopy(document)}
    for operation in operations:
        assert operation.keys() <= {"op", "path", "value"}
        steps = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")
        ]
        owner: Any = root
        for step in steps[:-1]:
            owner = owner[int(step)] if isinstance(owner, list) else owner[step]
        last = steps[-1]
        kind = operation["op"]
        if isinstance(owner, list):
            place = len(owner) if last == "-" else int(last)
            assert str(place) == last or last == "-"
            if kind == "add":
                assert place <= len(owner)
                owner.insert(place, copy.deepcopy(operation["value"]))
            elif kind == "remove":
                del owner[place]
            else:
                assert kind == "replace"
                owner[place] = copy.deepcopy(operation["value"])
        elif kind == "remove":
            del owner[last]
        else:
            assert kind == "add" or last in owner, operation
            owner[last] = copy.deepcopy(operation["value"])
    return root[""]
