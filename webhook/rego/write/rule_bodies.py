"""Stage 10: the bodies of one path's rules in one Python function.

Bodies that begin alike share their beginning: rules over the same containers iterate over them
once.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.rego.check.ir import Call, Rule, Term
from webhook.rego.write import alike
from webhook.rego.write.bodies import new_function
from webhook.rego.write.common_reads import CommonReads
from webhook.rego.write.constants import NeverHolds
from webhook.rego.write.uses import Uses
from webhook.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.rego.write.expression import Expression
    from webhook.rego.write.function import FunctionBuilder, Saved
    from webhook.rego.write.unit import Unit

NEIGHBOURS: Final = 8
"""Groups that a rule is compared with: with all it would take time by the square of the rules."""


def function_of(unit: Unit, rules: list[Rule]) -> FunctionBuilder:
    """A function of these rules' bodies, to be written."""
    uses = Uses()
    for rule in rules:
        uses.rule(rule)
    function = new_function(unit, uses)
    function.location = rules[0].location
    return function


def begin(function: FunctionBuilder, rule: Rule, collecting: str = "") -> Saved:
    """Begins the next body in a function; returns the state to restore after it."""
    saved = function.save()
    function.uses.variables = function.uses.of(rule)
    function.location = rule.location
    function.repeats = True
    function.loops = []
    function.looping = False
    function.flat = False
    function.collecting = collecting
    return saved


@dataclass(frozen=True, slots=True)
class Member:
    """A rule in a group of rules whose bodies begin alike."""

    rule: Rule
    names: alike.Names
    """The variables of the group's first rule that its own variables stand for."""


Group = list[Member]


@dataclass(frozen=True, slots=True)
class RuleBodies:
    """Writes the bodies of a path, with their beginnings and ends."""

    function: FunctionBuilder
    matches: Callable[[Rule], list[tuple[Term, Expression]]]
    """Terms of the head and the values that they must have, before the body."""
    end: Callable[[Rule], None]
    """Writes the effect of a solution."""
    collecting: str = ""
    in_order: bool = False
    """Whether rules are written in their order: only neighbours share a beginning."""
    _heads: dict[int, list[Term]] = field(default_factory=dict)

    def write(self, rules: Iterable[Rule]) -> None:
        """Writes all bodies; bodies that begin alike share one nest."""
        members = [Member(rule, {}) for rule in rules]
        if len(members) > 1:
            for member in members:
                terms = [term for term, _ in self.matches(member.rule)]
                self._heads[id(member.rule)] = terms
        for _, group in self._groups(members, 0):
            saved = begin(self.function, group[0].rule, self.collecting)
            self.function.attempt(partial(self._group, group))
            self.function.restore(saved)

    def _group(self, group: Group) -> None:
        for term, value in self.matches(group[0].rule):
            self.function.patterns.match(term, value)
        self._rest(group, 0)

    def _rest(self, group: Group, at: int) -> None:
        """Writes bodies from the literal ``at`` on; the literals before it have been written."""
        first = group[0].rule
        if len(group) > 1:
            self._together(group, at)
            return
        self.function.nest.body(first.body[at:])
        self.function.location = first.location
        self.end(first)

    def _together(self, group: Group, at: int) -> None:
        function, first = self.function, group[0].rule
        members, length = _common(group, at + 1)
        function.uses.variables = _most_uses(function.uses, members)
        function.bodies = len(members)
        try:
            function.nest.body(first.body[at:length])
            function.flush()
        finally:
            function.bodies = 1
        with self._common_reads():
            self._each(members, length)

    @contextmanager
    def _common_reads(self) -> Iterator[None]:
        """Lets fields of locals from the common beginning be read before the bodies."""
        function = self.function
        place = CommonReads(function.lines, function.indent)
        bound = {value.source for value in function.env.values()} - function.common.keys()
        function.common.update(dict.fromkeys(bound, place))
        try:
            yield
        finally:
            place.close()
            for source in bound:
                del function.common[source]

    def _each(self, members: Group, length: int) -> None:
        """Writes the rest of each member after the common beginning."""
        function = self.function
        before, bound = len(function.lines), function.env
        for names, part in self._groups(members, length):
            saved = function.save()
            # Loops of the beginning end with it; that there are some must still be seen.
            function.loops = [loop for loop in function.loops if loop.inner is None]
            function.flat = False  # the exit from a flat loop would skip the rules after it, too
            function.env = {name: bound[of] for name, of in names.items() if of in bound}
            function.uses.variables = function.uses.of(part[0].rule)
            function.attempt(partial(self._rest, part, length))
            function.restore(saved)
        if len(function.lines) == before:
            raise NeverHolds

    def _groups(self, members: Group, at: int) -> list[tuple[alike.Names, Group]]:
        """Groups members whose next literal is alike, with the names before that literal."""
        groups: list[tuple[alike.Names, Group]] = []
        for member in members:
            for known, group in groups[-1 if self.in_order else -NEIGHBOURS :]:
                if not _comparable(group[0].rule, member.rule, at):
                    continue
                names = _renamed(member.names, known)
                if self._alike(group[0].rule, member.rule, at, names):
                    group.append(Member(member.rule, names))
                    break
            else:
                groups.append((member.names, [Member(member.rule, {})]))
        return groups

    def _alike(self, first: Rule, other: Rule, at: int, names: alike.Names) -> bool:
        """Whether the writing of the next literal can be shared; ``names`` learns from it."""
        if at == 0:
            heads = zip(self._heads[id(first)], self._heads[id(other)], strict=True)
            if not all(alike.terms(term, given, names) for term, given in heads):
                return False
        return alike.literals(first.body[at], other.body[at], names)


def _comparable(first: Rule, other: Rule, at: int) -> bool:
    """Whether the next literals may be alike: most are seen to differ without a look inside."""
    if len(first.body) <= at or len(other.body) <= at:
        return False
    mine, theirs = first.body[at], other.body[at]
    if isinstance(mine, Call) and isinstance(theirs, Call):
        return mine.name == theirs.name
    return type(mine) is type(theirs)


def _common(group: Group, at: int) -> tuple[Group, int]:
    """How far all bodies are alike, at least up to ``at``, and the members with all their names."""
    first = group[0].rule
    while True:
        further = [Member(member.rule, dict(member.names)) for member in group]
        for member in further[1:]:
            body = member.rule.body
            if not (
                len(first.body) > at < len(body)
                and alike.literals(first.body[at], body[at], member.names)
            ):
                identity = {name: name for name in group[1].names.values()}
                return [Member(first, identity), *group[1:]], at
        group, at = further, at + 1


def _renamed(names: alike.Names, known: alike.Names) -> alike.Names:
    """Returns a member's names by another member's; both are given by a third member's."""
    others = {of: name for name, of in known.items()}
    return {name: others[of] for name, of in names.items() if of in others}


def _most_uses(uses: Uses, group: Group) -> dict[str, int]:
    """How often variables of the beginning are used, by the rule that uses them most."""
    counted = dict(uses.of(group[0].rule))
    for member in group[1:]:
        counts = uses.of(member.rule)
        for name, of in member.names.items():
            counted[of] = max(counted.get(of, 0), counts.get(name, 0))
    return counted
