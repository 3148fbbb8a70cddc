"""A prepared JSON schema: one node for each subschema."""

from __future__ import annotations

from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from webhook.values import dataclass

if TYPE_CHECKING:
    from fractions import Fraction


class Draft(IntEnum):
    """Versions of the language; ``HYBRID`` has the keywords of all, as without ``$schema``."""

    DRAFT4 = 4
    DRAFT6 = 6
    DRAFT7 = 7
    HYBRID = 2**31 - 1


@dataclass(slots=True)
class Schema:
    """A prepared schema; absent keywords are ``None`` or empty."""

    name: str
    draft: Draft
    base: str
    accepts: bool | None = None  # the schemas true and false
    reference: Schema | None = None
    types: list[str] = field(default_factory=list)
    properties: dict[str, Schema] = field(default_factory=dict)
    pattern_properties: list[tuple[Any, Schema]] = field(default_factory=list)
    additional_properties: bool | Schema | None = None
    property_names: Schema | None = None
    dependencies: dict[str, list[str] | Schema] = field(default_factory=dict)
    items: list[Schema] = field(default_factory=list)
    items_is_single: bool = False
    additional_items: bool | Schema | None = None
    contains: Schema | None = None
    unique_items: bool = False
    required: list[str] = field(default_factory=list)
    numbers: dict[str, Fraction] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    pattern: Any = None
    pattern_text: str = ""
    format: str = ""
    const: str | None = None
    enum: list[str] | None = None
    one_of: list[Schema] = field(default_factory=list)
    any_of: list[Schema] = field(default_factory=list)
    all_of: list[Schema] = field(default_factory=list)
    not_: Schema | None = None
    if_: Schema | None = None
    then: Schema | None = None
    else_: Schema | None = None
