"""Jobs that one process has another try, their answers, and digests of sources."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint.template import CEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.constraint.template import Code

Job = dict[str, Any]
"""Bounds (``cpuSeconds``, ``memoryBytes``, ``patienceSeconds``), ``disabledBuiltins``, and what to
try: ``text`` of a source, or ``documents`` with ``seconds`` for each evaluation and the code that is
``known`` of their sources. ``of`` is the template in force that a constraint belongs to, which is in
force there, too, for all that are tried one after the other. Answers to jobs that are ``together``
are all told at the end: who asked is busy, and each would interrupt it."""

JobAnswer = tuple[int | str, bytes, tuple[float, int]]
"""How the process of a trial ended (as ``waitstatus_to_exitcode`` has it, or one of the words below),
and what it wrote; seconds of a processor that it took, and the process's bytes of memory."""

JobOutcome = dict[str, Any]
"""An ``error`` with its ``stage`` or ``code``, or the ``codes`` of what compiled by their sources;
of documents the ``problems`` (kind, name, code, message). ``took`` is processor time, bytes and time."""

NO_MEMORY: Final[JobOutcome] = {"ended": True}
"""The outcome of a trial that wanted more memory than its bound; who asked says how much that
is."""

LATE: Final = "late"
"""How a trial ended that took longer than it was waited for; otherwise it is the process's code."""

WITHOUT_MEMORY: Final = "without memory"
"""The reason of a process that spent its time on asking the system for memory in vain."""

NO_PROCESS: Final = "no process"
"""How one ended for which no process could be begun."""


ATTEMPTS: Final = 2
"""A worker that the system ended is begun anew once before a policy is told of it."""

READS_CEL: Final = b"c"
READS_REGO: Final = b"r"
"""The request for a process, one byte: one that has imported CEL, or the Rego compiler, already."""

ANY_CEL: Final[Job] = {"text": f'["{CEL}"'}
"""A job that needs what CEL does."""


class NoWorker(Exception):
    """No process could be begun, or the one there was is gone: nothing is said of any policy."""


def has_cel(job: Job) -> bool:
    """Whether there is an expression in it."""
    if "documents" in job:
        return job["cel"] and CEL.encode() in job["documents"]
    return CEL in job["text"][: len(CEL) + 2]


def text_of(code: Code) -> str | None:
    """A source as text; None for what no driver could read."""
    try:
        return json.dumps([code.engine, code.source])
    except (TypeError, ValueError, RecursionError):
        return None


def digest_of(text: str) -> bytes:
    """Returns the digest of a source's text."""
    return hashlib.sha256(text.encode()).digest()


def digest_of_all(documents: Iterable[Mapping[str, Any]]) -> bytes:
    """Returns one digest of several policies: of their specs, whenever they were sent."""
    identities = [[gvk_of(one).kind, name_of(one), one.get("spec")] for one in documents]
    return hashlib.sha256(encode(identities)).digest()
