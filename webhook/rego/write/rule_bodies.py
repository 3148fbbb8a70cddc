"""Stage 5b: the bodies of one path's rules in one Python function.

Bodies that begin alike share their beginning: rules that go through the same
containers go through them once.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from webhook.rego.check.ir import Call
from webhook.rego.write import alike
from webhook.rego.write.common_reads import CommonReads
from webhook.rego.write.constants import UnreachableError
from webhook.rego.write.literals import BodyWriter
from webhook.rego.write.uses import Uses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from webhook.rego.check.ir import Rule, Term
    from webhook.rego.write.unit import Unit
    from webhook.rego.write.writer import Operand

NEIGHBOURS: Final = 8
"""Groups that a rule is compared with: with all it would take time by the square of the rules."""


def writer_of(unit: Unit, rules: list[Rule]) -> BodyWriter:
    """A writer for a function of these rules' bodies."""
    uses = Uses()
    for rule in rules:
        uses.rule(rule)
    writer = BodyWriter(unit, uses)
    writer.location = rules[0].location
    return writer


def begin(writer: BodyWriter, rule: Rule, collecting: str = "") -> tuple[Any, ...]:
    """Begin the next body in a function; what the writer must be given back after it."""
    saved = writer.snapshot()
    writer.uses.variables = writer.uses.of(rule)
    writer.location = rule.location
    writer.repeats = True
    writer.loops = []
    writer.looping = False
    writer.flat = False
    writer.collecting = collecting
    return saved


@dataclass(frozen=True, slots=True)
class Member:
    """A rule of a group whose bodies begin alike."""

    rule: Rule
    names: alike.Names
    """Which variables of the group's first rule its own are."""


Group = list[Member]


@dataclass(frozen=True, slots=True)
class Bodies:
    """How the bodies of a path are written: what they begin and what they end with."""

    writer: BodyWriter
    matches: Callable[[Rule], list[tuple[Term, Operand]]]
    """Terms of the head and the values that they must have, before the body."""
    end: Callable[[Rule], None]
    """Writes what each solution does."""
    collecting: str = ""
    in_order: bool = False
    """Whether rules are written in their order: only neighbours share a beginning."""
    _heads: dict[int, list[Term]] = field(default_factory=dict)

    def write(self, rules: Iterable[Rule]) -> None:
        """Write all; those that begin alike in one nest."""
        members = [Member(rule, {}) for rule in rules]
        if len(members) > 1:
            for member in members:
                terms = [term for term, _ in self.matches(member.rule)]
                self._heads[id(member.rule)] = terms
        for _, group in self._groups(members, 0):
            saved = begin(self.writer, group[0].rule, self.collecting)
            self.writer.attempt(partial(self._group, group))
            self.writer.restore(saved)

    def _group(self, group: Group) -> None:
        for term, value in self.matches(group[0].rule):
            self.writer.match(term, value)
        self._rest(group, 0)

    def _rest(self, group: Group, at: int) -> None:
        """Bodies from the literal ``at`` on; what is before it has been written."""
        first = group[0].rule
        if len(group) > 1:
            self._together(group, at)
            return
        self.writer.body(first.body[at:])
        self.writer.location = first.location
        self.end(first)

    def _together(self, group: Group, at: int) -> None:
        writer, first = self.writer, group[0].rule
        members, length = _common(group, at + 1)
        writer.uses.variables = _most_uses(writer.uses, members)
        writer.bodies = len(members)
        try:
            writer.body(first.body[at:length])
            writer.flush()
        finally:
            writer.bodies = 1
        with self._common_reads():
            self._each(members, length)

    @contextmanager
    def _common_reads(self) -> Iterator[None]:
        """Let what the beginning has bound be read before the bodies."""
        writer = self.writer
        place = CommonReads(writer.lines, writer.indent)
        bound = {source for source, _ in writer.env.values() if source not in writer.common}
        writer.common.update(dict.fromkeys(bound, place))
        try:
            yield
        finally:
            place.close()
            for source in bound:
                del writer.common[source]

    def _each(self, members: Group, length: int) -> None:
        """What members do after their common beginning."""
        writer = self.writer
        before, bound = len(writer.lines), writer.env
        for names, part in self._groups(members, length):
            saved = writer.snapshot()
            # Loops of the beginning end with it; that there are some must still be seen.
            writer.loops = [loop for loop in writer.loops if isinstance(loop, int)]
            writer.flat = False  # what leaves a flat loop would leave out the rules after it
            writer.env = {name: bound[of] for name, of in names.items() if of in bound}
            writer.uses.variables = writer.uses.of(part[0].rule)
            writer.attempt(partial(self._rest, part, length))
            writer.restore(saved)
        if len(writer.lines) == before:
            raise UnreachableError

    def _groups(self, members: Group, at: int) -> list[tuple[alike.Names, Group]]:
        """Members whose next literal is alike, and the first one's names as they were before."""
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

    def _alike(self, one: Rule, other: Rule, at: int, names: alike.Names) -> bool:
        """Whether the writing of the next literal can be shared; ``names`` learns from it."""
        if at == 0:
            heads = zip(self._heads[id(one)], self._heads[id(other)], strict=True)
            if not all(alike.terms(term, given, names) for term, given in heads):
                return False
        return alike.literals(one.body[at], other.body[at], names)


def _comparable(one: Rule, other: Rule, at: int) -> bool:
    """Whether the next literals may be alike: most are seen to differ without a look inside."""
    if len(one.body) <= at or len(other.body) <= at:
        return False
    mine, theirs = one.body[at], other.body[at]
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
    """A member's names by those of another one; both are given by a third one's."""
    others = {of: name for name, of in known.items()}
    return {name: others[of] for name, of in names.items() if of in others}


def _most_uses(uses: Uses, group: Group) -> dict[str, int]:
    """How often variables of the beginning are used, by the rule that uses them most."""
    counted = dict(uses.of(group[0].rule))
    for member in group[1:]:
        own = uses.of(member.rule)
        for name, of in member.names.items():
            counted[of] = max(counted.get(of, 0), own.get(name, 0))
    return counted
