"""All stages in order: modules to a compiled program, and queries over it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from webhook.rego.builtins.registry import GATEKEEPER, available
from webhook.rego.check import ir
from webhook.rego.check.checker import Checker
from webhook.rego.check.checks import (
    Dependencies,
    check_calls,
    check_conflicts,
    check_recursion,
    check_with,
    dependencies_first,
    dependents,
    each_literal,
    path_text,
)
from webhook.rego.check.lower import Lowering
from webhook.rego.check.names import globals_of, head_name, module_globals, package_path
from webhook.rego.check.safety import Safety
from webhook.rego.check.scope import declared_in
from webhook.rego.check.strict import check_imports, check_strict
from webhook.rego.check.tree import Node, Tree
from webhook.rego.check.unused import check_unused, check_unused_strictly
from webhook.rego.check.variables import add_variables, terms_of
from webhook.rego.errors import RegoErrors, RegoLoadError
from webhook.rego.sharing import Sharing
from webhook.rego.syntax.metadata import Metadata
from webhook.rego.write.ahead import Ahead
from webhook.rego.write.bodies import new_function
from webhook.rego.write.constants import bind_parameters
from webhook.rego.write.documents import NONE, OUT, Documents
from webhook.rego.write.expression import dict_of, method
from webhook.rego.write.generate import ENTRY, Generated, Loaded, generate
from webhook.rego.write.statement import PAYS, WrittenFunction
from webhook.rego.write.unit import Unit
from webhook.rego.write.uses import Uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.rego.check.ir import Function, Rule
    from webhook.rego.engine import CompileOptions
    from webhook.rego.location import Location
    from webhook.rego.run.values import Value
    from webhook.rego.syntax import ast

DocumentPath: TypeAlias = tuple[str, ...]
"""Where a document stands below ``data``."""


class Compiled:
    """A program after its checks; documents are generated at their first use."""

    def __init__(self, options: CompileOptions) -> None:
        self.options = options
        self.builtins = available(options.builtins, options.disabled_builtins, options.level)
        self.tree = Tree()
        self.rules: list[Rule] = []
        self.exports: dict[tuple[str, ...], set[str]] = {}
        self.functions: set[tuple[str, ...]] = set()
        self.checker = Checker(self.builtins, options.level)
        self.places: list[Location] = []
        self.mocked: frozenset[Function] = frozenset()
        self.replaced: frozenset[tuple[str, ...]] = frozenset()
        self.generated: Generated | None = None
        """The code that was generated last, to be stored."""
        self.for_constraint = False
        """Whether parameters were written into the rules in place of ``input.parameters``."""
        self.modifies = False
        """Whether a rule has a modifier: its documents may have other values for it."""
        self._sharing: Sharing | None = None
        self._documents: dict[DocumentPath, Loaded] = {}

    def arity(self, name: Function) -> int:
        """Returns how many operands a function takes; -1 if there is none of this name."""
        if isinstance(name, str):
            builtin = self.builtins.get(name)
            return -1 if builtin is None else len(builtin.operands)
        node = self.tree.function(name)
        if node is None:
            return -1
        args = node.rules[0].args
        return 0 if args is None else len(args)

    def is_function(self, name: Function) -> bool:
        """Whether a function or built-in has this name, before the tree is complete."""
        if isinstance(name, str):
            return name in self.builtins
        return name[1:] in self.functions

    def node(self, path: DocumentPath) -> Node | None:
        """Returns the node at a path below ``data``."""
        return self.tree.find(path)

    def unit(self) -> Unit:
        """Returns a unit to write functions into."""
        unit = Unit(self.tree, self.builtins, self.mocked, self.replaced, self.options.level)
        unit.places = self.places
        unit.lenient = self.for_constraint
        return unit

    @property
    def sharing(self) -> Sharing:
        """Returns the finder of documents that other programs have, too."""
        if self._sharing is None:
            self._sharing = Sharing(self.unit().facts)
        return self._sharing

    def documents(self) -> Documents:
        """Returns a writer of the functions of a new unit."""
        documents = Documents(self.unit())
        if self.for_constraint:
            documents.unit.ahead = Ahead(documents.unit, self.unit)
            documents.unit.eager = documents.write
        return documents

    def document(self, path: DocumentPath) -> Loaded:
        """Returns the code that evaluates the document at a path; ``KeyError`` if there is none."""
        return self.documents_at([path])[0]

    def documents_at(self, paths: Sequence[DocumentPath]) -> list[Loaded]:
        """Loads several documents; a function used by more than one of them is compiled once."""
        missing = {path: self.node(path) for path in paths if path not in self._documents}
        for path, node in missing.items():
            if node is None:
                raise KeyError(path_text(("data", *path)))
        if missing:
            self._write(missing)
        return [self._documents[path] for path in paths]

    def _write(self, requested: Mapping[DocumentPath, Node | None]) -> None:
        documents = self.documents()
        if not self.modifies:
            modules = {
                id(rule.module) for node in requested.values() if node for rule in node.rules
            }
            documents.unit.sharing = lambda node, kind: self.sharing.named(node, kind, modules)
        entries = [ENTRY] if len(requested) == 1 else [f"{ENTRY}{i}" for i in range(len(requested))]
        for entry, node in zip(entries, requested.values(), strict=True):
            assert node is not None
            if not node.rules or not self._entry(documents, entry, node):
                self._reader(documents.unit, entry, node)
        generated = self._generated(documents)
        loaded = generated.load_all(self.builtins, entries)
        self._documents.update(zip(requested, loaded, strict=True))

    def _entry(self, documents: Documents, entry: str, node: Node) -> bool:
        """Writes the document's function itself, where it needs no guard."""
        unit = documents.unit
        if node.dynamic or unit.replaceable(node.path) or node.rules[0].args is not None:
            return False
        documents.entry(entry, node)
        return True

    def _reader(self, unit: Unit, entry: str, node: Node) -> None:
        """Writes a function that reads the document as any rule would."""
        writer = new_function(unit, Uses())
        var = ir.Ref(ir.Var("data"), [ir.Const(name) for name in node.path])
        writer.attempt(lambda: writer.result(writer.terms.operand(var)))
        writer.end(NONE)
        unit.functions.append(WrittenFunction(entry, ("S",), writer.lines, settled=True))

    def _generated(self, documents: Documents) -> Generated:
        """Writes the functions requested from the unit and compiles them."""
        documents.run()
        self.generated = generate(documents.unit, self.options.compile_parts)
        documents.unit.close()
        return self.generated

    def finish(self, documents: Documents) -> Loaded:
        """Returns the code of the only entry."""
        return self._generated(documents).load(self.builtins)


def compile_rules(modules: Sequence[ast.Module], options: CompileOptions) -> Compiled:
    """Checks the modules together; raises :class:`RegoErrors`."""
    _raise([fault for module in modules for fault in check_imports(module, options.level)])
    recoverable = [
        fault for module in modules for fault in check_strict(module, strict=options.strict)
    ]
    if options.strict:
        recoverable += [fault for module in modules for fault in check_unused_strictly(module)]
    try:
        compiled = _compile_rules(modules, options)
    except RegoErrors as errors:
        _raise([*recoverable, *errors.errors])
        raise
    _raise(recoverable)
    return compiled


def _compile_rules(modules: Sequence[ast.Module], options: CompileOptions) -> Compiled:
    compiled = Compiled(options)
    faults: list[RegoLoadError] = []
    packages: dict[tuple[str, ...], ast.Module] = {}
    for module in modules:
        path = package_path(module.package)
        packages.setdefault(path, module)
        names = compiled.exports.setdefault(path, set())
        for rule in module.rules:
            names.add(head_name(rule.head))
            if rule.head.args:
                compiled.functions.add(_function_path(path, rule))
    metadata = _metadata(modules, faults, checked=options.annotations)
    compiled.checker.schemas = options.schemas
    for module in modules:
        path = package_path(module.package)
        if not module.rules:
            compiled.tree.add_package(path)
        lowering = Lowering(
            module_globals(module, compiled.exports),
            module.source,
            faults,
            compiled.is_function,
            path,
        )
        for rule in module.rules:
            if metadata is not None:
                lowering.metadata = partial(_metadata_of, metadata, module, rule)
            lowered = lowering.rule(module, rule)
            if metadata is not None and options.annotations:
                compiled.checker.annotate(lowered, metadata.schemas(module, rule))
            compiled.rules.append(lowered)
            compiled.tree.add(lowered)
    _raise(faults)
    _raise([fault for module in modules for fault in check_unused(module)])
    _check(compiled, faults, packages)
    _raise(faults)
    return compiled


def specialise(compiled: Compiled, parameters: Value) -> bool:
    """Writes these parameters into the rules; False if they may not replace the input's."""
    compiled.sharing.bind(parameters)
    compiled.for_constraint = bind_parameters(compiled.rules, parameters)
    return compiled.for_constraint


def _metadata(
    modules: Sequence[ast.Module], faults: list[RegoLoadError], *, checked: bool
) -> Metadata | None:
    """Returns the annotations, if a module reads them or the options check them."""
    if not (checked or any("rego.metadata" in module.source for module in modules)):
        return None
    metadata = Metadata(modules)
    faults.extend(metadata.errors)
    return metadata


def _metadata_of(metadata: Metadata, module: ast.Module, rule: ast.Rule, name: str) -> Value:
    """Returns the result of a call of ``rego.metadata`` in this rule."""
    return metadata.rule(rule) if name == "rego.metadata.rule" else metadata.chain(module, rule)


def _function_path(package: tuple[str, ...], rule: ast.Rule) -> tuple[str, ...]:
    names = [head_name(rule.head)]
    names.extend(getattr(part, "value", "") for part in rule.head.ref.path)
    return (*package, *names)


def _raise(faults: list[RegoLoadError]) -> None:
    if faults:
        unique = {(str(fault)): fault for fault in faults}
        # As in OPA: by place, then by message.
        ordered = sorted(unique.items(), key=lambda item: (item[1].location.position(), item[0]))
        raise RegoErrors([fault for _, fault in ordered])


def _check(
    compiled: Compiled, faults: list[RegoLoadError], packages: Mapping[tuple[str, ...], ast.Module]
) -> None:
    faults.extend(check_conflicts(compiled.tree, packages, compiled.options.level))
    _raise(faults)
    everything = [branch for rule in compiled.rules for branch in rule.branches()]
    literals = {id(rule): each_literal(rule.body) for rule in everything}
    for of_name in literals.values():
        _check_modifiers(compiled, of_name, faults)
    _raise(faults)
    for of_name in literals.values():
        faults.extend(check_calls(of_name, compiled.arity, compiled.builtins))
    _raise(faults)
    safety = Safety(compiled.arity, faults)
    for rule in compiled.rules:
        safety.rule(rule)
    if faults:
        _raise(_unsafe(compiled, faults))
    dependencies = Dependencies(compiled.tree)
    edges = {at: dependencies.of(of_name) for at, of_name in literals.items()}
    faults.extend(check_recursion(everything, edges))
    _raise(faults)
    compiled.checker.dependents = dependents(compiled.rules, compiled.tree, edges)
    compiled.checker.replaced = frozenset(
        rule.path
        for of_name in literals.values()
        for lit in of_name
        for modifier in lit.withs
        if modifier.target[0] == "data"
        for rule in compiled.tree.reached([ir.Const(name) for name in modifier.target[1:]])
    )
    faults.extend(compiled.checker.rules(dependencies_first(everything, edges)))
    for query in compiled.options.queries:
        try:
            checked_query(compiled, query, "", ())
        except RegoErrors as errors:
            faults.extend(errors.errors)
    _raise(faults)


def _check_modifiers(
    compiled: Compiled, literals: list[ir.Lit], faults: list[RegoLoadError]
) -> None:
    disabled = compiled.options.disabled_builtins
    faults.extend(check_with(literals, compiled.tree, compiled.builtins, disabled))
    _replacements(compiled, literals)


def _unsafe(compiled: Compiled, faults: list[RegoLoadError]) -> list[RegoLoadError]:
    """Returns the faults of safety as OPA reports them.

    Undeclared variables in ``print`` come first, and then alone. Since 1.22 OPA names rules that
    share their line with others.
    """
    undeclared = [fault for fault in faults if fault.code == "rego_compile_error"]
    if undeclared or compiled.options.level == GATEKEEPER:
        return undeclared or faults
    lines: dict[tuple[str, int], set[tuple[Value, ...]]] = {}
    for rule in compiled.rules:
        for branch in rule.branches():
            line = (branch.location.file, branch.location.row)
            lines.setdefault(line, set()).add(tuple(map(str, branch.path)))
    named: list[RegoLoadError] = []
    safety = Safety(compiled.arity, named)
    for rule in compiled.rules:
        shared = len(lines[rule.location.file, rule.location.row]) > 1
        package = len(package_path(rule.module.package))
        safety.rule(rule, f" in rule {path_text(rule.path[package:])}" if shared else "")
    return named


def _replacements(compiled: Compiled, literals: Iterable[ir.Lit]) -> None:
    """Records the paths that modifiers replace: only these are looked up at run time."""
    mocked: set[Function] = set()
    replaced: set[tuple[str, ...]] = set()
    for lit in literals:
        compiled.modifies |= bool(lit.withs)
        for modifier in lit.withs:
            if modifier.kind == "function":
                target = modifier.target
                mocked.add(target if target[0] == "data" else target[0])
            elif modifier.kind == "data":
                replaced.add(modifier.target[1:])
    compiled.mocked |= mocked
    compiled.replaced |= replaced


def compile_query(
    compiled: Compiled, body: ast.Body, package: str, imports: Sequence[ast.Import]
) -> Loaded:
    """Code that gives the bindings of every solution; raises :class:`RegoErrors`."""
    inner, lowered, names = checked_query(compiled, body, package, imports)
    documents = inner.documents()
    unit = documents.unit
    variables: set[str] = set()
    for lit in lowered:
        for term in terms_of(lit):
            add_variables(term, variables)
    shown = {
        name: names.get(name, name)
        for name in sorted(variables)
        if not ir.is_generated(name) and not ir.is_wildcard(name) and name not in ("input", "data")
    }
    uses = Uses()
    uses.body([ir.Var(name) for name in shown], lowered)
    writer = new_function(unit, uses)
    writer.repeats = False

    def solve() -> None:
        writer.nest.body(lowered)
        bindings = [
            (unit.constant(written), writer.terms.operand(ir.Var(name)))
            for name, written in shown.items()
        ]
        writer.line(method(OUT, "append", dict_of(bindings)).source)

    writer.attempt(solve)
    writer.close()
    writer.end(OUT)
    lines = [*writer.prologue, *writer.lines]
    first = ("out = []", f"P = {PAYS} = True")
    unit.functions.append(WrittenFunction(ENTRY, ("S",), lines, first, settled=True))
    return inner.finish(documents)


def checked_query(
    compiled: Compiled, body: ast.Body, package: str, imports: Sequence[ast.Import]
) -> tuple[Compiled, ir.Body, dict[str, str]]:
    """Returns a query in a safe order, its compiled rules, and the names in its text.

    Raises :class:`RegoErrors`.
    """
    faults: list[RegoLoadError] = []
    path = tuple(package.split(".")[1:]) if package else ()
    globals_ = globals_of(path, imports, compiled.exports if package else {})
    lowering = Lowering(globals_, "", faults, compiled.is_function)
    lowering.scopes.hidden.append(declared_in(body))
    lowered = lowering.body(body)
    _raise(faults)
    inner = _copy_for_query(compiled)
    literals = each_literal(lowered)
    _check_modifiers(inner, literals, faults)
    _raise(faults)
    faults.extend(check_calls(literals, inner.arity, inner.builtins))
    _raise(faults)
    names = lowering.scopes.names
    lowered = Safety(compiled.arity, faults).body(lowered, {"input", "data"}, names)
    _raise(faults)
    faults.extend(compiled.checker.query(lowered, names))
    _raise(faults)
    return inner, lowered, names


def _copy_for_query(compiled: Compiled) -> Compiled:
    inner = Compiled(compiled.options)
    inner.tree = compiled.tree
    inner.rules = compiled.rules
    inner.exports = compiled.exports
    inner.functions = compiled.functions
    inner.checker = compiled.checker
    inner.mocked = compiled.mocked
    inner.replaced = compiled.replaced
    inner.for_constraint = compiled.for_constraint
    return inner
