"""Reads expressions of HCL, as far as their ends and JSON's shapes require."""

from __future__ import annotations

import re
from typing import Final

from webhook.parsers.errors import RECURSIVE_DEPTH_MAX
from webhook.parsers.hcl import tree
from webhook.parsers.hcl.cursor import Cursor
from webhook.parsers.hcl.templates import heredoc, quoted

_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OPERATORS: Final = (
    ("||",),
    ("&&",),
    ("==", "!="),
    ("<=", ">=", "<", ">"),
    ("+", "-"),
    ("*", "/", "%"),
)
_WORDS: Final = {"true": True, "false": False, "null": None}


class Reader(Cursor):
    """Reads expressions."""

    # --- operators ---------------------------------------------------------------------------

    def expression(self) -> tree.Expression:
        """Reads operators by their precedence, and ``? :`` last."""
        self._depth += 1
        if self._depth > RECURSIVE_DEPTH_MAX:
            raise self.fault("Nested too deeply")
        condition = self._binary(0)
        if self.take("?"):
            self.skip()
            then = self.expression()
            self.expect(":", "conditional expression")
            self.skip()
            otherwise = self.expression()
            condition = tree.Conditional(condition.start, otherwise.end, condition, then, otherwise)
        self._depth -= 1
        return condition

    def _binary(self, level: int) -> tree.Expression:
        if level == len(_OPERATORS):
            return self._unary()
        left = self._binary(level + 1)
        while True:
            self.skip()
            operator = next((symbol for symbol in _OPERATORS[level] if self.sees(symbol)), "")
            # `//` and `/*` begin a comment, no division.
            if not operator or self.sees("=>") or self.sees("//") or self.sees("/*"):
                return left
            self.at += len(operator)
            self.skip()
            right = self._binary(level + 1)
            left = tree.Expression(left.start, right.end)

    def _unary(self) -> tree.Expression:
        self.skip()
        start = self.at
        for operator in "-!":
            if self.sees(operator):
                self.at += 1
                operand = self._unary()
                return tree.Negation(start, operand.end, operator, operand)
        return self._postfix(self._primary())

    def _postfix(self, expression: tree.Expression) -> tree.Expression:
        while True:
            before = self.at
            self.skip()
            if self.sees("...") or not (self.sees(".") or self.sees("[")):
                self.at = before
                return expression
            # A traversal stays one with a constant index; any other makes it a general expression.
            simple = isinstance(expression, tree.Traversal)
            if self.take("."):
                self.skip()
                match = re.compile(r"\*|[0-9]+").match(self.text, self.at)
                if match:
                    self.at = match.end()
                    if match[0] != "*" and re.compile(r"\.[0-9]").match(self.text, self.at):
                        raise self.fault("Invalid legacy index syntax: write [0][1] for .0.1")
                    simple = simple and match[0] != "*"
                elif not self.identifier():
                    raise self.fault("Invalid attribute name")
            else:
                self.at += 1
                simple = self._index() and simple
            kind = tree.Traversal if simple else tree.Expression
            expression = kind(expression.start, self.at)

    def _index(self) -> bool:
        """Reads ``x]``; returns whether the index is constant."""
        self._within += 1
        if self.take("*"):
            constant = False
        else:
            self.skip()
            index = self.expression()
            constant = isinstance(index, tree.Literal) or (
                isinstance(index, tree.Template)
                and all(isinstance(part, str) for part in index.parts)
            )
        self._within -= 1
        self.skip_lines()
        if not self.sees("]"):
            raise self.fault("Missing close bracket on index")
        self.at += 1
        return constant

    # --- terms -------------------------------------------------------------------------------

    def _primary(self) -> tree.Expression:
        start = self.at
        if self.sees("("):
            return self._parenthesis()
        if self.sees("["):
            return self._tuple()
        if self.sees("{"):
            return self._object()
        if self.sees('"'):
            return self._quoted()
        if self.sees("<<"):
            return self._heredoc()
        match = _NUMBER.match(self.text, start)
        if match:
            self.at = match.end()
            return tree.Literal(start, self.at, float(match[0]))
        name = self.identifier()
        if not name:
            raise self.fault("Invalid expression: expected the start of an expression")
        if name in _WORDS and not self.sees("::"):
            return tree.Literal(start, self.at, _WORDS[name])
        while self.sees("::"):
            self.at += 2
            if not self.identifier():
                raise self.fault("Missing function name")
        end = self.at
        if self.take("("):
            self._arguments()
            return tree.Expression(start, self.at)
        self.at = end
        return tree.Traversal(start, end)

    def _parenthesis(self) -> tree.Expression:
        start = self.at
        self.at += 1
        self._within += 1
        self.skip()
        self.expression()
        self.skip()
        self._within -= 1
        if not self.sees(")"):
            raise self.fault("Unbalanced parentheses")
        self.at += 1
        return tree.Expression(start, self.at)

    def _arguments(self) -> None:
        self._within += 1
        while not self.take(")"):
            self.skip()
            self.expression()
            self.take("...")
            if not self.take(","):
                self.skip()
                if not self.sees(")"):
                    raise self.fault("Missing argument separator")
        self._within -= 1

    def _tuple(self) -> tree.Expression:
        start = self.at
        self.at += 1
        self._within += 1
        self.skip()
        if self._begins_for():
            self._for("]")
            self._within -= 1
            return tree.Expression(start, self.at)
        items = []
        while not self.take("]"):
            self.skip()
            items.append(self.expression())
            if not self.take(","):
                self.skip()
                if not self.sees("]"):
                    raise self.fault("Missing item separator")
        self._within -= 1
        return tree.Tuple(start, self.at, tuple(items))

    def _begins_for(self) -> bool:
        return re.compile(r"for\b(?!\s*[-=:])").match(self.text, self.at) is not None

    def _for(self, close: str) -> None:
        """Reads ``for x in y : z`` up to the bracket."""
        self.at += len("for")
        self.skip()
        self.names("'for' expression")
        self.skip()
        self.expression()
        self.expect(":", "'for' expression")
        self.skip()
        self.expression()
        if self.take("=>"):
            self.skip()
            self.expression()
            self.take("...")
        self.skip()
        word = self.identifier()
        if word == "if":
            self.skip()
            self.expression()
        elif word:
            raise self.fault("Extra characters after the end of the 'for' expression")
        self.expect(close, "'for' expression")

    def _object(self) -> tree.Expression:
        start = self.at
        self.at += 1
        around, self._within = self._within, 0
        self.skip_lines()
        if self._begins_for():
            self._within = around + 1
            self._for("}")
            self._within = around
            return tree.Expression(start, self.at)
        items = []
        while not self.sees("}"):
            key = self.expression()
            self.skip()
            if not (self.take("=") or self.take(":")):
                raise self.fault("Missing attribute value: expected an equals sign")
            self.skip_lines()
            items.append((key, self.expression()))
            self.skip()
            comment = re.compile(r"(?:#|//)[^\n]*").match(self.text, self.at)
            if comment:
                self.at = comment.end()
            if not (self.take(",") or self.sees("\n") or self.sees("}")):
                raise self.fault("Missing attribute separator: expected a newline or comma")
            self.skip_lines()
        self.at += 1
        self._within = around
        return tree.Object(start, self.at, tuple(items))

    def _quoted(self) -> tree.Expression:
        return quoted(self)

    def _heredoc(self) -> tree.Expression:
        return heredoc(self)
