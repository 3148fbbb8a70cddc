"""Kubernetes' rules for names and labels, with apimachinery's messages."""

from __future__ import annotations

import re
from typing import Final

from webhook.api.names import LABEL_1035, LABEL_VALUE, QUALIFIED, SUBDOMAIN

SUBDOMAIN_MAX: Final = 253
LABEL_MAX: Final = 63

POLICY_NAME_MAX: Final = LABEL_MAX
"""The longest name of a policy with a status, in bytes: it becomes a label of the status object."""

_SUBDOMAIN_MESSAGE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{SUBDOMAIN}')"
)
_QUALIFIED_MESSAGE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)

_DNS_1035_MESSAGE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{LABEL_1035}')"
)


def dns_label_faults(name: str) -> list[str]:
    """Returns why a name is no DNS-1035 label; empty if it is one."""
    faults = []
    if len(name) > LABEL_MAX:
        faults.append(f"must be no more than {LABEL_MAX} characters")
    if not re.fullmatch(LABEL_1035, name):
        faults.append(_DNS_1035_MESSAGE)
    return faults


def subdomain_faults(name: str) -> list[str]:
    """Returns why a name is no DNS-1123 subdomain; empty if it is one."""
    faults = []
    if len(name.encode()) > SUBDOMAIN_MAX:
        faults.append(f"must be no more than {SUBDOMAIN_MAX} bytes")
    if not re.fullmatch(SUBDOMAIN, name):
        faults.append(_SUBDOMAIN_MESSAGE)
    return faults


def qualified_name_faults(name: str) -> list[str]:
    """Returns why a name cannot be the key of a label; empty if it can."""
    prefix, slash, rest = name.partition("/")
    faults = []
    if not slash:
        rest = name
    elif "/" in rest:
        return [
            (
                f"a qualified name {_QUALIFIED_MESSAGE} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
                f"regex used for validation is '{QUALIFIED}') with an optional DNS subdomain prefix "
                "and '/' (e.g. 'example.com/MyName')"
            )
        ]
    elif not prefix:
        faults.append("prefix part must be non-empty")
    else:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not rest:
        faults.append("name part must be non-empty")
    elif len(rest.encode()) > LABEL_MAX:
        faults.append(f"name part must be no more than {LABEL_MAX} bytes")
    if not re.fullmatch(QUALIFIED, rest):
        faults.append(
            f"name part {_QUALIFIED_MESSAGE} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
            f"regex used for validation is '{QUALIFIED}')"
        )
    return faults


def label_value_faults(value: str) -> list[str]:
    """Returns why a text cannot be the value of a label; empty if it can."""
    faults = []
    if len(value.encode()) > LABEL_MAX:
        faults.append(f"must be no more than {LABEL_MAX} bytes")
    if not re.fullmatch(LABEL_VALUE, value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', "
            "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue', "
            f" or 'my_value',  or '12345', regex used for validation is '{LABEL_VALUE}')"
        )
    return faults
