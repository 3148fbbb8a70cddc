"""Stage 6: conflicts between rules, unknown and misused functions, recursion.

Messages are OPA's (v1/ast/compile.go: checkRuleConflicts, checkUndefinedFuncs,
checkRecursion, validateWith).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.rego.builtins.registry import GATEKEEPER, lacking
from webhook.rego.check.ir import Call, Comprehension, Const, Ref, Var
from webhook.rego.check.variables import LEAVES, bodies_of, composites_of, parts_of, terms_of
from webhook.rego.errors import RegoLoadError
from webhook.rego.syntax.builtin_names import OPERAND_NAMES
from webhook.rego.syntax.tokens import FUTURE_V0, KEYWORDS
from webhook.rego.types import type_of, type_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.rego.builtins.registry import Builtin
    from webhook.rego.check import ir
    from webhook.rego.check.ir import Body, Function, Lit, Rule, Term, With
    from webhook.rego.check.tree import Node, Tree
    from webhook.rego.run.values import Value
    from webhook.rego.types import Type


def expected_texts(
    name: ir.Function, expected: Sequence[Type | None], variadic: Type | None = None
) -> str:
    """Name the operands and the result of a function, a built-in's operands by name."""
    names = OPERAND_NAMES.get(name, "").split() if isinstance(name, str) else []
    shown = [
        f"{label}: {type_text(type_)}" if label != "-" else type_text(type_)
        for type_, label in zip(expected, [*names, *("-" for _ in expected)], strict=False)
    ]
    if variadic is not None:
        shown.append(f"{type_text(variadic)}...")
    return ", ".join(shown)


_KEYWORDS: Final = frozenset({**KEYWORDS, **FUTURE_V0})


def path_text(path: Iterable[object]) -> str:
    """Returns a path of constants as OPA prints a reference."""
    from webhook.rego.run.text import json_text  # noqa: PLC0415  # only for messages

    text = ""
    for name in path:
        plain = isinstance(name, str) and name.isidentifier() and name.isascii()
        if plain and name not in _KEYWORDS:
            text += f".{name}" if text else str(name)
        else:
            text += f"[{json_text(name)}]"
    return text


def rule_text(rule: Rule) -> str:
    """Returns a rule's reference as OPA prints it."""
    text = path_text(("data", *rule.path))
    for part in rule.rest:
        if isinstance(part, Var):
            name = rule.names.get(part.name, part.name).rsplit(" ", 1)[-1]
            text += f"[{name}]"
        elif isinstance(part, Const):
            text += path_text(("data", part.value)).removeprefix("data")
    return text


# --- conflicts -------------------------------------------------------------------------------


def check_conflicts(
    tree: Tree, packages: Mapping[tuple[str, ...], object], level: str
) -> list[RegoLoadError]:
    """Rules that cannot be at the same path."""
    faults: list[RegoLoadError] = []
    for node in tree.root.walk():
        if node.rules:
            fault = _conflict(node, level)
            if fault is not None:
                faults.append(fault)
    for node in tree.root.walk():
        for rule in node.rules:
            named = all(isinstance(name, str) for name in rule.path)
            if named and not rule.rest and rule.path in packages:
                other = path_text(rule.path)
                if packages[rule.path] is rule.module:
                    continue
                head = path_text(rule.path[len(rule.path) - 1 :])
                faults.append(
                    _type_error(
                        f"package {other} conflicts with rule {head} defined at {rule.location}",
                        rule.module.package.location,
                    )
                )
    return faults


def _type_error(message: str, location: object) -> RegoLoadError:
    return RegoLoadError("rego_type_error", message, location)  # type: ignore[arg-type]


def _conflict(node: Node, level: str) -> RegoLoadError | None:
    rules = node.rules
    first = rules[0]
    below = [rule for child in node.children.values() for n in child.walk() for rule in n.rules]
    ground = any(not rule.rest for rule in rules)
    conflicts = below if ground else [rule for rule in below if rule.args is not None]
    name = rule_text(rules[-1])
    if conflicts:
        kept: list[Rule] = []
        for rule in sorted(conflicts, key=lambda r: len(r.path)):
            if not any(rule.path[: len(k.path)] == k.path for k in kept):
                kept.append(rule)
        kept.sort(key=lambda r: tuple(map(str, r.path)))
        if level == GATEKEEPER:
            others = f" [{' '.join(map(rule_text, kept))}]"
        else:
            others = ":" + "".join(f"\n  rule {rule_text(r)} at {r.location}" for r in kept)
        return _type_error(f"rule {rule_text(first)} conflicts with{others}", first.location)
    multi = {rule.key is not None and rule.value is None for rule in rules}
    arities = {0 if rule.args is None else len(rule.args) for rule in rules}
    complete = any(r.value is not None and not r.rest for r in rules)
    partial = any(r.value is None or r.rest for r in rules)
    kinds = {bool(r.rest) for r in rules if r.key is not None and r.value is None}
    if len(multi) > 1 or len(arities) > 1 or (complete and partial) or len(kinds) > 1:
        return _type_error(f"conflicting rules {name} found", first.location)
    defaults = [rule for rule in rules if rule.default]
    if len(defaults) > 1:
        places = ", ".join(str(rule.location) for rule in defaults)
        return _type_error(
            f"multiple default rules {name} found at {places}",
            defaults[0].module.package.location,
        )
    return None


# --- functions -------------------------------------------------------------------------------


def each_literal(body: Body) -> list[Lit]:
    """Returns every literal of a body at any depth, in order."""
    literals: list[Lit] = []
    _each(body, literals)
    return literals


def _each(body: Body, literals: list[Lit]) -> None:
    for lit in body:
        literals.append(lit)
        for term in composites_of(lit):
            _in_term(term, literals)
        for modifier in lit.withs:
            _in_term(modifier.value, literals)
        for inner in bodies_of(lit):
            _each(inner, literals)


def _in_term(term: Term, literals: list[Lit]) -> None:
    if isinstance(term, Comprehension):
        _each(term.body, literals)
        if term.key is not None:
            _in_term(term.key, literals)
        _in_term(term.value, literals)
    for part in parts_of(term):
        if type(part) not in LEAVES:
            _in_term(part, literals)


def function_text(name: Function) -> str:
    """Returns a function as messages print it."""
    return name if isinstance(name, str) else path_text(name)


def check_calls(
    literals: Iterable[Lit], arity: Callable[[Function], int], builtins: Mapping[str, Builtin]
) -> list[RegoLoadError]:
    """Calls of functions that do not exist, or with the wrong number of operands."""
    faults = []
    for lit in literals:
        if not isinstance(lit, Call):
            continue
        if lacks := lacking(lit.name):
            faults.append(_type_error(lacks, lit.location))
            continue
        expected = arity(lit.name)
        given = len(lit.args)
        if expected < 0:
            faults.append(
                _type_error(f"undefined function {function_text(lit.name)}", lit.location)
            )
            continue
        allowed = (expected,) if lit.generated else (expected, expected + 1)
        builtin = builtins.get(lit.name) if isinstance(lit.name, str) else None
        if builtin is not None and builtin.variadic is not None:
            continue
        if given not in allowed and builtin is not None:
            faults.append(arity_mismatch(lit, builtin))
        elif given not in allowed:
            plural = "argument" if given == 1 else "arguments"
            faults.append(
                _type_error(
                    f"function {function_text(lit.name)} has arity {expected}, got {given} {plural}",
                    lit.location,
                )
            )
        elif given == expected + 1:
            lit.out = lit.args.pop()
        if builtin is not None and builtin.result is None and lit.generated:
            faults.append(_type_error(f"{function_text(lit.name)} used as value", lit.location))
    return faults


def arity_mismatch(lit: Call, builtin: Builtin) -> RegoLoadError:
    """Returns the complaint about a built-in called with too few or too many operands."""
    given = [type_text(type_of(a.value) if isinstance(a, Const) else None) for a in lit.args]
    if lit.generated:
        given.append(type_text(None))
    have = f"have: ({', '.join(given)})"
    want = f"want: ({expected_texts(lit.name, builtin.operands)})"
    message = f"{function_text(lit.name)}: arity mismatch"
    return RegoLoadError("rego_type_error", message, lit.location, details=(have, want))


def check_with(
    literals: Iterable[Lit], tree: Tree, builtins: Mapping[str, Builtin], disabled: frozenset[str]
) -> list[RegoLoadError]:
    """Checks the targets of modifiers, and finds the kind of each target and value."""
    faults: list[RegoLoadError] = []
    for lit in literals:
        for modifier in lit.withs:
            message = _check_modifier(modifier, tree, builtins, disabled)
            if message is not None:
                code, text = message
                faults.append(RegoLoadError(code, text, modifier.location))  # type: ignore[arg-type]
    return faults


def is_function(name: Function, tree: Tree, builtins: Mapping[str, Builtin]) -> bool:
    """Whether this names a function or built-in."""
    if isinstance(name, str):
        return name in builtins
    node = tree.function(name)
    return node is not None and any(rule.args is not None for rule in node.rules)


def _check_modifier(
    modifier: With, tree: Tree, builtins: Mapping[str, Builtin], disabled: frozenset[str]
) -> tuple[str, str] | None:
    target = modifier.target
    if modifier.kind == "input" or (modifier.kind == "function" and target[0] == "data"):
        return None
    if modifier.kind == "data":
        node: Node | None = tree.root
        for name in target[1:-1]:
            node = node.child(name) if node is not None else None
            if node is None:
                break
            if node.rules:
                return (
                    "rego_compile_error",
                    "with keyword cannot partially replace virtual document(s)",
                )
        if is_function(target, tree, builtins):
            modifier.kind = "function"
        return None
    name = target[0]
    if name in disabled:
        return (
            "rego_compile_error",
            f'with keyword replacing built-in function: target must not be unsafe: "{name}"',
        )
    if name not in builtins:
        return (
            "rego_type_error",
            "with keyword target must reference existing input, data, or a function",
        )
    prefix = "with keyword replacing built-in function: "
    if name in ("eq", "rego.metadata.chain", "rego.metadata.rule"):
        return "rego_compile_error", f'{prefix}replacement of "{name}" invalid'
    if name.startswith("internal."):
        return (
            "rego_compile_error",
            f'{prefix}replacement of internal function "{name}" invalid',
        )
    if builtins[name].relation:
        return "rego_compile_error", f"{prefix}target must not be a relation"
    if builtins[name].result is None:
        return "rego_compile_error", f"{prefix}target must not be a void function"
    return None


# --- recursion -------------------------------------------------------------------------------


class Dependencies:
    """The rules that each rule may read or call: many ask for the same few."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._reached: dict[tuple[str, ...], list[Rule]] = {}

    def of(self, literals: list[Lit]) -> list[Rule]:
        """Returns the branches of rules used by a body, given its literals at any depth."""
        rules: dict[int, Rule] = {}
        paths: list[list[Term]] = []
        for lit in literals:
            for term in terms_of(lit):
                if type(term) is not Const:
                    _data_paths(term, paths.append)
            for modifier in lit.withs:
                _data_paths(modifier.value, paths.append)
        for path in paths:
            for branch in self._branches(path):
                rules[id(branch)] = branch
        for lit in literals:
            names = [modifier.function for modifier in lit.withs]
            names += [modifier.target for modifier in lit.withs if modifier.target[0] == "data"]
            if type(lit) is Call:
                names.append(lit.name)
            for name in names:
                if name is not None and not isinstance(name, str):
                    for branch in self._named(name[1:]):
                        rules[id(branch)] = branch
        return list(rules.values())

    def _named(self, path: tuple[str, ...]) -> list[Rule]:
        known = self._reached.get(path)
        if known is None:
            known = self._reached[path] = self._branches([Const(step) for step in path])
        return known

    def _branches(self, path: list[Term]) -> list[Rule]:
        return [branch for rule in self._tree.reached(path) for branch in rule.branches()]


def _data_paths(term: Term, add: Callable[[list[Term]], None]) -> None:
    """Passes each reference below ``data`` in a term to ``add``, except in nested bodies."""
    if isinstance(term, Var):
        if term.name == "data":
            add([])
        return
    if type(term) in LEAVES:
        return
    if isinstance(term, Ref):
        if isinstance(term.head, Var) and term.head.name == "data":
            add(term.path)
        elif not isinstance(term.head, Var):
            _data_paths(term.head, add)
    elif isinstance(term, Comprehension):
        if term.key is not None:
            _data_paths(term.key, add)
        _data_paths(term.value, add)
    for part in parts_of(term):
        if type(part) is not Const:
            _data_paths(part, add)


def dependents(
    rules: list[Rule], tree: Tree, edges: dict[int, list[Rule]]
) -> Callable[[list[Term]], list[tuple[Value, ...]]]:
    """Returns a look-up of rules that depend, directly or not, on a reference's targets."""
    users: dict[int, list[Rule]] = {}
    for rule in rules:
        for branch in rule.branches():
            for used in edges[id(branch)]:
                users.setdefault(id(used), []).append(rule)

    def dependents(path: list[Term]) -> list[tuple[Value, ...]]:
        waiting = tree.reached(path)
        seen = {id(rule): rule for rule in waiting}
        while waiting:
            for user in users.get(id(waiting.pop()), ()):
                if id(user) not in seen:
                    seen[id(user)] = user
                    waiting.append(user)
        return [rule.path for rule in seen.values()]

    return dependents


def check_recursion(everything: list[Rule], edges: dict[int, list[Rule]]) -> list[RegoLoadError]:
    """Returns an error for each recursive rule; ``edges`` has the dependencies of each rule."""
    faults = []
    cyclic = _cyclic(everything, edges)
    for rule in everything:
        if id(rule) not in cyclic:
            continue
        path = _cycle(rule, edges)
        if path:
            names = " -> ".join(rule_text(step) for step in path)
            faults.append(
                RegoLoadError(
                    "rego_recursion_error",
                    f"rule {rule_text(rule)} is recursive: {names}",
                    rule.location,
                )
            )
    return faults


def dependencies_first(rules: list[Rule], edges: dict[int, list[Rule]]) -> list[Rule]:
    """Returns the rules ordered so that each follows its dependencies; they are acyclic."""
    done: set[int] = set()
    ordered: list[Rule] = []
    for start in rules:
        stack = [(start, iter(edges[id(start)]))]
        while stack:
            rule, waiting = stack[-1]
            if id(rule) in done:
                stack.pop()
                continue
            step = next((candidate for candidate in waiting if id(candidate) not in done), None)
            if step is not None:
                stack.append((step, iter(edges[id(step)])))
            else:
                done.add(id(rule))
                ordered.append(rule)
                stack.pop()
    return ordered


def _cyclic(rules: list[Rule], edges: dict[int, list[Rule]]) -> set[int]:
    """Returns the rules on or behind a cycle: no order puts their dependencies first."""
    waiting = {id(rule): {id(dep) for dep in edges[id(rule)]} for rule in rules}
    users: dict[int, list[int]] = {}
    for mine, needed in waiting.items():
        for other in needed:
            users.setdefault(other, []).append(mine)
    ready = [mine for mine, needed in waiting.items() if not needed]
    while ready:
        done = ready.pop()
        del waiting[done]
        for user in users.get(done, ()):
            needed = waiting.get(user, set())
            needed.discard(done)
            if user in waiting and not needed and user not in ready:
                ready.append(user)
    return set(waiting)


def _cycle(start: Rule, edges: dict[int, list[Rule]]) -> list[Rule]:
    """Returns a path from the rule back to itself, depth first."""
    path = [start]
    seen = {id(start)}
    stack = [iter(edges[id(start)])]
    while stack:
        for step in stack[-1]:
            if step is start:
                return [*path, step]
            if id(step) not in seen:
                seen.add(id(step))
                path.append(step)
                stack.append(iter(edges[id(step)]))
                break
        else:
            stack.pop()
            path.pop()
    return []
