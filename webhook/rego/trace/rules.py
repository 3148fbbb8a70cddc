"""Evaluation of rules: selection of definitions, values, and documents of partial rules."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, Any

from webhook.rego.check import ir
from webhook.rego.errors import EvaluationError
from webhook.rego.run.values import UNDEFINED, Value, equal, key, make_object
from webhook.rego.trace import index
from webhook.rego.trace.documents import PartialDocument, step_into
from webhook.rego.trace.steps import ABSENT, BodyQuery, Signal, Then
from webhook.rego.trace.terms import TermSteps
from webhook.rego.trace.text import written_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.rego.check.ir import Term
    from webhook.rego.check.tree import Node


class RuleSteps(TermSteps, ABC):
    """Evaluates rules."""

    def matched(
        self, query: BodyQuery, node: Node, path: Sequence[Value], operands: Sequence[Value] | None
    ) -> index.RuleMatch:
        """Returns the definitions of a rule that may hold by the index."""
        matched = index.matched(
            node.rules,
            None if not self.indexing else self.resolved,
            operands or (),
            early_exit=self.early_exit,
        )
        count = len(matched.rules)
        text = f"(matched {count} rule{'' if count == 1 else 's'}"
        early = ", early exit)" if matched.early_exit else ")"
        self.tell("Index", query, query.at, f"{written_path(path)} {text}{early}")
        return matched

    def rules(
        self,
        query: BodyQuery,
        matched: index.RuleMatch,
        at: Any,
        accept: Callable[[Value], Signal],
        operands: Sequence[Value] | None = None,
    ) -> Signal:
        """Evaluates complete rules and functions: their one value, with each definition checked."""
        previous: list[Value] = []
        deferred: Signal = None
        for first in matched.rules:
            for rule in (first, *matched.others.get(id(first), ())):
                held, signal = self.rule(query, matched, rule, at, previous, accept, operands)
                if signal is not None:
                    if signal.early:
                        return signal.before
                    deferred = deferred or signal
                if held:
                    break
        if matched.default is not None and not previous:
            _, signal = self.rule(query, matched, matched.default, at, previous, accept, operands)
            return None if signal is None else signal.before
        if not previous and operands is None:
            self.world.known[at] = UNDEFINED
        return None if deferred is None else deferred.before

    def rule(  # noqa: PLR0917  # state that a definition shares with those before it
        self,
        query: BodyQuery,
        matched: index.RuleMatch,
        rule: ir.Rule,
        at: Any,
        previous: list[Value],
        accept: Callable[[Value], Signal],
        operands: Sequence[Value] | None,
    ) -> tuple[bool, Signal]:
        """Evaluates one definition; returns whether it held, and the end of the search."""
        child = self.child(query, rule.body, rule=rule)
        child.find_one = matched.early_exit
        held = False
        self.tell("Enter", child, rule)

        def solved() -> Signal:
            nonlocal held
            held = True
            self.tell("Exit", child, rule)
            value = ir.Const(True) if rule.value is None else rule.value
            result = self.plug(child, value)
            self.world.known[at] = result
            if previous:
                if not equal(previous[0], result):
                    raise EvaluationError("eval_conflict_error", "conflict", rule.location)
                self.tell("Redo", child, rule)
                return None
            previous.append(result)
            signal = accept(result)
            if signal is None:
                self.tell("Redo", child, rule)
            return signal

        def body() -> Signal:
            return self.query(child, 0, solved)

        args = rule.args or [] if operands is not None else []
        signal = self.arguments(child, args, operands or [], body)
        return held, signal

    def arguments(
        self, child: BodyQuery, args: Sequence[Term], operands: Sequence[Value], then: Then
    ) -> Signal:
        """Unifies the operands with the parameters of a definition."""
        if not args:
            return then()
        return self.unify(
            child,
            ir.Const(operands[0]),
            args[0],
            lambda: self.arguments(child, args[1:], operands[1:], then),
        )

    def partial(
        self, query: BodyQuery, node: Node, path: tuple[Value, ...], rest: Sequence[Value]
    ) -> Value:
        """Evaluates partial rules: all members, or only members that constant steps may reach."""
        matched = self.matched(query, node, ("data", *path), None)
        whole = ("data", *map(key, path))
        steps = [*rest]
        for length in range(len(steps) + 1):
            known = self.world.known.get((*whole, *map(key, steps[:length])), ABSENT)
            if known is not ABSENT:
                return _within(known, steps[:length])
        result = PartialDocument(node)
        for rule in matched.rules:
            self.member(query, rule, result, steps)
        value = result.value()
        kept = min(len(steps), result.depth)
        inner = value
        for step in steps[:kept]:
            inner = step_into(inner, step)
        if inner is not UNDEFINED:
            self.world.known[*whole, *map(key, steps[:kept])] = inner
        return value

    def member(
        self, query: BodyQuery, rule: ir.Rule, result: PartialDocument, steps: Sequence[Value]
    ) -> None:
        """Evaluates one definition of a partial rule."""
        child = self.child(query, rule.body, rule=rule)
        self.tell("Enter", child, rule)
        head = [*rule.rest, *([] if rule.key is None else [rule.key])]

        def solved() -> Signal:
            self.tell("Exit", child, rule)
            twice = result.add(
                [self.plug(child, part) for part in head],
                UNDEFINED
                if rule.key is not None
                else self.plug(child, rule.value or ir.Const(True)),
                rule.location,
            )
            if twice and steps:
                self.tell("Duplicate", child, rule)
            self.tell("Redo", child, rule)
            return None

        def body() -> Signal:
            child.defined = True
            return self.query(child, 0, solved)

        self.arguments(child, head[: len(steps)], steps[: len(head)], body)
        if steps and not child.defined:
            self.tell("Fail", child, rule)

    def complete(
        self,
        query: BodyQuery,
        node: Node,
        path: tuple[Value, ...],
        accept: Callable[[Value], Signal],
    ) -> Signal:
        """Goes on with the value of complete rules."""
        matched = self.matched(query, node, ("data", *path), None)
        at = ("data", *map(key, path))
        known = self.world.known.get(at, ABSENT)
        if known is not ABSENT:
            return None if known is UNDEFINED else accept(known)
        return self.rules(query, matched, at, accept)


def _within(value: Value, steps: Sequence[Value]) -> Value:
    """Returns a value inside objects of one key each."""
    for step in reversed(steps):
        value = make_object([(step, value)])
    return value
