"""Built-ins that follow references: graphs, and every value within a value.

Documented in OPA's reference under "Graph"; behaviour from
v1/topdown/reachable.go and walk.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.builtins.registry import builtin, wrong_operand
from webhook.rego.run.runtime import index
from webhook.rego.run.values import UNDEFINED, RegoObject, RegoSet, ordered, sort_key, type_name
from webhook.rego.run.weight import WALKED_STEPS, afford_tree
from webhook.rego.types import ANY, ARRAY, SET, any_of, array_of, object_of, set_of, static_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.rego.builtins.registry import Context
    from webhook.rego.run.values import Value

GRAPH = object_of(ANY, any_of(SET, ARRAY))
VERTICES = any_of(SET, ARRAY)

_EXTENDED_STEPS: Final = 40
_NEIGHBOUR_STEPS: Final = 5
"""Steps for each neighbour of a vertex, of 50 ns each. As measured, a path that grows by one vertex
takes 2 µs, and each of the vertex's neighbours a quarter of 1 µs."""


def _vertices(collection: Value) -> list[Value]:
    if type(collection) is list:
        return collection
    return ordered(collection) if type(collection) is RegoSet else []


def _initial(collection: Value) -> list[Value]:
    if type(collection) is not list and type(collection) is not RegoSet:
        wrong_operand(2, collection, "{array, set}")
    return _vertices(collection)


@builtin("graph.reachable", GRAPH, VERTICES, result=SET, context=True)
def reachable(context: Context, graph: Value, initial: Value) -> RegoSet:
    """Returns the vertices of the graph that can be reached from the initial ones."""
    queue = list(_initial(initial))
    reached = RegoSet()
    while queue:
        node = queue.pop()
        edges = index(graph, node)
        if edges is UNDEFINED or node in reached:
            continue
        reached.add(node)
        neighbours = _vertices(edges)
        context.charge(1 + len(neighbours))
        queue.extend(item for item in neighbours if item not in reached)
    return reached


@builtin("graph.reachable_paths", GRAPH, VERTICES, result=set_of(array_of(ANY)), context=True)
def reachable_paths(context: Context, graph: Value, initial: Value) -> RegoSet:
    """Returns all paths from an initial vertex to a vertex without further unvisited neighbours."""
    paths = RegoSet()
    for node in _initial(initial):
        edges = index(graph, node)
        if edges is UNDEFINED:
            continue
        neighbours = _vertices(edges)
        if not neighbours:
            paths.add([node])
        for neighbour in neighbours:
            _extend(context, graph, neighbour, [node], paths)
    return paths


def _extend(
    context: Context, graph: Value, start: Value, begun: list[Value], paths: RegoSet
) -> None:
    """Extends the paths from ``start`` after ``begun``, depth first without recursion."""
    stack: list[tuple[Value, list[Value], RegoSet]] = [(start, begun, RegoSet(begun))]
    while stack:
        root, path, passed = stack.pop()
        context.charge(_EXTENDED_STEPS + 2 * len(path))
        edges = index(graph, root)
        if edges is UNDEFINED:
            paths.add(path)
            continue
        path = [*path, root]
        neighbours = _vertices(edges)
        if not neighbours:
            paths.add(path)
            continue
        context.charge(_NEIGHBOUR_STEPS * len(neighbours))
        passed = passed.union(RegoSet([root]))
        beyond = [neighbour for neighbour in neighbours if neighbour not in passed]
        if len(beyond) < len(neighbours):
            paths.add(path)
        stack.extend([(neighbour, path, passed) for neighbour in beyond])


@builtin("walk", ANY, result=static_array(ARRAY, ANY), context=True, relation=True)
def walk(context: Context, x: Value) -> Iterator[list[Value]]:
    """Returns ``[path, value]`` for the value and each within it, outer before inner."""
    if type_name(x) in {"array", "object", "set"}:
        afford_tree(x, WALKED_STEPS)
    stack: list[tuple[list[Value], Value]] = [([], x)]
    while stack:
        path, value = stack.pop()
        context.charge(2 + len(path))
        yield [path, value]
        stack.extend(([*path, name], item) for name, item in reversed(_children(value)))


def _children(value: Value) -> list[tuple[Value, Value]]:
    kind = type(value)
    if kind is list:
        return list(enumerate(value))
    if kind is dict:
        return sorted(value.items(), key=lambda pair: pair[0])
    if kind is RegoObject:
        return sorted(value.items(), key=lambda pair: sort_key(pair[0]))
    if kind is RegoSet:
        return [(item, item) for item in ordered(value)]
    return []
