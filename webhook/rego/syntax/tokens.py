"""The kinds of tokens, as small integers, and the names that OPA's messages give them.

Keywords and punctuation that the parser compares as ranges stand side by side:
every keyword lies between :data:`PACKAGE` and :data:`LOGICAL_OR`, and the three
kinds from :data:`DOT_ATTACHED` on are punctuation written without a space before
it, the only kind that continues a reference.
"""

from __future__ import annotations

from typing import Final

ILLEGAL: Final = 0
EOF: Final = 1
IDENT: Final = 2
STRING: Final = 3
RAW_STRING: Final = 4
NUMBER: Final = 5
TEMPLATE_PART: Final = 6
TEMPLATE_END: Final = 7
RAW_TEMPLATE_PART: Final = 8
RAW_TEMPLATE_END: Final = 9

PACKAGE: Final = 10
IMPORT: Final = 11
AS: Final = 12
DEFAULT: Final = 13
ELSE: Final = 14
NOT: Final = 15
SOME: Final = 16
WITH: Final = 17
NULL: Final = 18
TRUE: Final = 19
FALSE: Final = 20
IN: Final = 21
EVERY: Final = 22
CONTAINS: Final = 23
IF: Final = 24
LOGICAL_AND: Final = 25
LOGICAL_OR: Final = 26

RBRACK: Final = 27
LBRACE: Final = 28
RBRACE: Final = 29
RPAREN: Final = 30
COMMA: Final = 31
COLON: Final = 32
SEMICOLON: Final = 33
ASSIGN: Final = 34
UNIFY: Final = 35

ADD: Final = 36
SUB: Final = 37
MUL: Final = 38
QUO: Final = 39
REM: Final = 40
AND: Final = 41
OR: Final = 42
EQUAL: Final = 43
NEQ: Final = 44
GT: Final = 45
LT: Final = 46
GTE: Final = 47
LTE: Final = 48

DOT: Final = 49
LBRACK: Final = 50
LPAREN: Final = 51
DOT_ATTACHED: Final = 52
LBRACK_ATTACHED: Final = 53
LPAREN_ATTACHED: Final = 54

PUNCTUATION: Final = {
    "]": RBRACK,
    "{": LBRACE,
    "}": RBRACE,
    ")": RPAREN,
    ",": COMMA,
    ":": COLON,
    ";": SEMICOLON,
    ":=": ASSIGN,
    "=": UNIFY,
    "+": ADD,
    "-": SUB,
    "*": MUL,
    "/": QUO,
    "%": REM,
    "&": AND,
    "|": OR,
    "==": EQUAL,
    "!=": NEQ,
    ">": GT,
    "<": LT,
    ">=": GTE,
    "<=": LTE,
    ".": DOT,
    "[": LBRACK,
    "(": LPAREN,
}

ATTACHED: Final = {".": DOT_ATTACHED, "[": LBRACK_ATTACHED, "(": LPAREN_ATTACHED}

KEYWORDS: Final = {
    "package": PACKAGE,
    "import": IMPORT,
    "as": AS,
    "default": DEFAULT,
    "else": ELSE,
    "not": NOT,
    "some": SOME,
    "with": WITH,
    "null": NULL,
    "true": TRUE,
    "false": FALSE,
}
"""Keywords of every version, imports or not."""

FUTURE_V0: Final = {"in": IN, "every": EVERY, "contains": CONTAINS, "if": IF}
"""Keywords of v1, which v0 imports from ``future.keywords`` or with ``rego.v1``."""

FUTURE_V1: Final = {"not": NOT, "and": LOGICAL_AND, "or": LOGICAL_OR}
"""Keywords of v2, which v1 imports; ``not`` is a keyword of v1, too: its import allows bodies."""

_NAMES: Final = {
    **{
        kind: text
        for texts in (PUNCTUATION, ATTACHED, KEYWORDS, FUTURE_V0, FUTURE_V1)
        for text, kind in texts.items()
    },
    ILLEGAL: "illegal",
    EOF: "eof",
    IDENT: "identifier",
    STRING: "string",
    RAW_STRING: "string",
    NUMBER: "number",
    TEMPLATE_PART: "template-string-part",
    TEMPLATE_END: "template-string-end",
    RAW_TEMPLATE_PART: "raw-template-string-part",
    RAW_TEMPLATE_END: "raw-template-string-end",
    ASSIGN: "assign",
    UNIFY: "eq",
    ADD: "plus",
    SUB: "minus",
    MUL: "mul",
    QUO: "div",
    REM: "rem",
    AND: "and",
    OR: "or",
    EQUAL: "equal",
    NEQ: "neq",
    GT: "gt",
    LT: "lt",
    GTE: "gte",
    LTE: "lte",
}
NAMES: Final = tuple(_NAMES[kind] for kind in range(len(_NAMES)))
"""OPA's name of each kind: for an operator, that of its built-in."""

BRACES: Final = frozenset({LBRACE, RBRACE})
PARENTHESES: Final = frozenset({LPAREN, LPAREN_ATTACHED})
PATHS: Final = frozenset({PACKAGE, IMPORT})
ITERATIONS: Final = frozenset({SOME, EVERY})
EQUATIONS: Final = frozenset({ASSIGN, UNIFY})
LOGICAL: Final = frozenset({LOGICAL_AND, LOGICAL_OR})
VARIABLES: Final = frozenset({IDENT, CONTAINS})
STRINGS: Final = frozenset({STRING, RAW_STRING})
NUMBERS: Final = frozenset({NUMBER, DOT, DOT_ATTACHED})
COLLECTIONS: Final = frozenset({LBRACE, LBRACK, LBRACK_ATTACHED})
BOOLEANS: Final = frozenset({TRUE, FALSE})
TEMPLATE_ENDS: Final = frozenset({TEMPLATE_END, RAW_TEMPLATE_END})
BODY_OPENERS: Final = frozenset({IF, LBRACE})
BRACES_END_OR_COMMA: Final = frozenset({RBRACE, COMMA})
SET_CONTINUES: Final = frozenset({COMMA, OR, COLON, RBRACE})

# Binary operators bind in this order, all to the left (OPA: parseTermRelation and below).
PRECEDENCE: Final = tuple(
    {
        EQUAL: 1,
        NEQ: 1,
        GT: 1,
        LT: 1,
        GTE: 1,
        LTE: 1,
        OR: 2,
        AND: 3,
        ADD: 4,
        SUB: 4,
        MUL: 5,
        QUO: 5,
        REM: 5,
    }.get(kind, 0)
    for kind in range(len(NAMES))
)
"""The precedence of each kind as a binary operator; 0 for other kinds."""
