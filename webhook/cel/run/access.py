"""Selects fields and items of values: ``of.key``, ``of[key]``, ``of[?key]`` and ``has(of.key)``.

cel-go (interpreter/attributes.go) evaluates a path such as ``a.b[?c].d`` by qualifiers, and an item
that a path has found is treated in another way than a value of its own. So each selection exists
in up to three forms:

======================  =====================================  ===================================
                        must be there (raises if not)          may be absent (NOTHING if not)
======================  =====================================  ===================================
of a value              :func:`item`                           :func:`found_item`
within a path           :func:`item_on_the_way`                :func:`found_on_the_way`
behind a ``?``          :func:`further_item`                   :func:`optional_item`
======================  =====================================  ===================================

An item may be :class:`~webhook.cel.run.values.Lost`: a value of Go's that cel-go cannot convert. It
is an error only where it is used, so :func:`~webhook.cel.run.values.there` raises it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.cel.errors import EvaluationError
from webhook.cel.run.equality import KEYS
from webhook.cel.run.texts import go_shown, showing, shown
from webhook.cel.run.values import (
    INT_MAX,
    NONE,
    NOTHING,
    Lost,
    NativeFields,
    Opaque,
    Optional,
    TypeValue,
    Uint,
    entry_of,
    key_of,
    there,
    type_name,
)

if TYPE_CHECKING:
    from webhook.cel.run.values import Value


_JSON_TYPES: Final = {  # Go's types of an object's own JSON, in messages
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}

_GO_TYPES: Final = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
    "kubernetes.NamedFormat": "cel.Format",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "net.CIDR": "cel.CIDR",
    "net.IP": "cel.IP",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "error": "*types.Err",
}


def go_type(value: Value) -> str:
    """Returns the name of a value's type in cel-go's source, which messages show."""
    name = type_name(value)
    of = _GO_TYPES.get(name, name)
    return f"*{of}" if type(value) is Opaque and value.detached else of


def _missing(key: Value) -> EvaluationError:
    return EvaluationError(f"no such key: {shown(key)}")


def _position(key: Value) -> int:
    """Returns the position in a list that a key names; raises for a key that names none."""
    if type(key) is Uint and key > INT_MAX:
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    if type(key) is int or type(key) is Uint:
        return int(key)
    if type(key) is float:
        if key.is_integer() and abs(key) < INT_MAX:
            return int(key)
        raise EvaluationError(f"unsupported index value {shown(key)} in list")
    if type(key) in KEYS:
        raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
    raise _no_qualifier(key)


def checked_key(key: Value) -> Value:
    """Returns a map's key as a ``dict`` key; raises for a value that cannot be a key."""
    if type(key) not in KEYS:
        raise _no_qualifier(key)
    return key_of(key)


def _no_qualifier(key: Value) -> EvaluationError:
    """Returns the error for a key of a wrong type, which it names as Go does."""
    named = _JSON_TYPES.get(type(key)) or go_type(key)
    return EvaluationError(f"invalid qualifier type: {named}")


def computed_key(key: Value) -> Value:
    """Returns a key that an expression computed; raises where no map or list has such keys."""
    if type(key) in _JSON_TYPES:
        raise EvaluationError(f"invalid qualifier type: {go_type(key)}")
    return key


def go_value(value: Value) -> Value:
    """Returns the Go value of this value: of a type its name, of an optional its inner value."""
    while type(value) is Optional:
        value = value.value
    return value.name if type(value) is TypeValue else value


def item(of: Value, key: Value) -> Value:
    """Returns ``of[key]`` or ``of.key``; raises where there is none."""
    if type(of) is dict:
        entry = entry_of(of, checked_key(key))
        if entry is NOTHING:
            raise _missing(key)
        return there(entry)
    if type(of) is list:
        at = _position(key)
        if not 0 <= at < len(of):
            raise EvaluationError(f"index out of bounds: {shown(key)}")
        return there(of[at])
    if type(of) is Optional:
        return optional_item(of, key)
    checked_key(key)
    if type(of) is Opaque and type(of.value) is NativeFields:
        return of.value.field(key)
    raise _missing(key)


def found_item(of: Value, key: Value) -> Value:
    """Returns ``of[key]``, or NOTHING where there is none. An item of a list may be lost."""
    if type(of) is dict:
        return there(entry_of(of, checked_key(key)))
    if type(of) is list:
        at = _position(key)
        return of[at] if 0 <= at < len(of) else NOTHING
    if type(of) is Optional:
        opened = unnested(of).value
        return NOTHING if opened is NOTHING else found_on_the_way(opened, key)
    checked_key(key)
    if type(of) is Opaque and type(of.value) is dict:  # an object that the expression wrote
        return of.value.get(key, NOTHING)
    if type(of) is Opaque and type(of.value) is NativeFields:
        of.value.field(key)
        return of.value.set_fields().get(key, NOTHING)
    return NOTHING


def found_on_the_way(of: Value, key: Value) -> Value:
    """Returns ``of[key]``, or NOTHING, within a path; an optional has no items, a lost value raises."""
    if type(of) is Optional or type(of) is Lost:
        checked_key(key)
        there(of)
        return NOTHING
    return found_item(of, key)


def item_on_the_way(of: Value, key: Value) -> Value:
    """Returns ``of[key]`` within a path, which may be lost; raises where there is none."""
    if type(of) is dict:
        return item(of, key)
    on_the_way = found_on_the_way(of, key)
    return item(None if type(of) is Optional else of, key) if on_the_way is NOTHING else on_the_way


def further_item(of: Value, key: Value) -> Value:
    """Returns ``of[key]`` behind a question mark; ``of`` is the value of the path so far.

    There are three cases:

    1. ``of`` is no optional: the item is selected as usual.

    2. ``of`` is an empty optional, or an optional of an optional: the result is empty.

    3. Otherwise the item of its value is optional.
    """
    if type(of) is not Optional:
        return item(of, key)
    if of.value is NOTHING:
        return NONE
    value = there(of.value)
    if type(value) is Optional:
        checked_key(key)
        return NONE
    return optional_item(value, key)


_NATIVE: Final = {
    "kubernetes.Quantity": "*resource.Quantity",
    "kubernetes.Semver": "semver.Version",
    "kubernetes.URL": "*url.URL",
    "net.CIDR": "netip.Prefix",
    "net.IP": "netip.Addr",
}
"""Types of Go that cel-go cannot convert into a value."""


def _lost(native: str, shown: str) -> Lost:
    return Lost(f"unsupported conversion to ref.Val: ({native}){shown}")


def unnested(value: Value) -> Value:
    """Returns an optional as a conditional gives it: cel-go takes Go's value out, and converts it back.

    So an optional within an optional is opened, a type becomes its name, and most values of libraries
    are lost. The result is another optional: a map that has the first as a key does not find it.
    """
    if type(value) is not Optional or value.value is NOTHING:
        return value
    inner = value.value
    while type(inner) is Optional:
        inner = inner.value
    if inner is NOTHING:
        return Optional(None)
    if type(inner) is Opaque and inner.type_name in _NATIVE:
        return Optional(_lost(_NATIVE[inner.type_name], inner.shown))
    if type(inner) is Lost:
        return Optional(_lost("*errors.errorString", inner.text))
    return Optional(inner.name if type(inner) is TypeValue else inner)


def optional_item(of: Value, key: Value) -> Optional:
    """Returns ``of[?key]`` or ``of.?key``."""
    entry = found_item(of, key)
    return NONE if entry is NOTHING else Optional(entry)


def items_of(of: Value) -> list[Value]:
    """Returns the values that a macro of one variable iterates: list items or map keys."""
    if type(of) is list:
        return of
    if type(of) is dict:
        return list(of)
    raise EvaluationError(f"got '{go_type(of)}', expected iterable type")


def pairs_of(of: Value) -> list[tuple[Value, Value]]:
    """Returns the pairs that a macro of two variables iterates: positions or keys, with items."""
    if type(of) is list:
        return list(enumerate(of))
    if type(of) is dict:
        return list(of.items())
    raise EvaluationError(f"unsupported comprehension range type: {go_type(of)}")


def condition(value: Value) -> bool:
    """Returns a condition; raises for anything but a boolean."""
    if type(value) is not bool:
        raise EvaluationError("no such overload")
    return value


def optional_part(value: Value, key: Value = NOTHING) -> Value:
    """Returns the value in ``[?item]`` or ``{?key: value}``, even a lost one, or NOTHING."""
    if type(value) is Optional:
        return value.value
    of = "list element" if key is NOTHING else f"entry '{go_shown(key)}'"
    raise showing(f"cannot initialize optional {of} from non-optional value ", value)


def inserted(into: dict[Value, Value], key: Value, value: Value) -> None:
    """Insert an entry into a map; raises where the map has the key."""
    at = key_of(key)
    if entry_of(into, at) is not NOTHING:
        raise showing("insert failed: key ", key, " already exists")
    into[at] = value
