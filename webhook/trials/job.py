"""Jobs for the process of trials, their answers, and digests of sources."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.api.encoding import encode
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint.template import CEL, Code

Job = dict[str, Any]
"""Bounds (``cpuSeconds``, ``memoryBytes``, ``patienceSeconds``), ``disabledBuiltins``, and the
subject: ``text`` of a source, or ``documents`` with ``seconds`` for each evaluation and the
``known`` code of their sources. ``of`` is the template in force of a constraint. It is put in force
there, too, for all consecutive trials. The answers to jobs with ``together`` are all sent at the
end: the requesting process is busy, and each answer would interrupt it."""

JobAnswer = tuple[int | str, bytes, tuple[float, int]]
"""How the process of a trial ended (as in ``waitstatus_to_exitcode``, or one of the words below),
and its output; its seconds of a processor, and its bytes of memory."""

JobOutcome = dict[str, Any]
"""An ``error`` with its ``stage`` or ``code``, or the ``codes`` of compiled sources; for documents
the ``problems`` (kind, name, code, message). ``took`` is processor time, bytes and elapsed time."""

NO_MEMORY: Final[JobOutcome] = {"ended": True}
"""The outcome of a trial that exceeded its memory limit; the requesting side adds the limit."""

LATE: Final = "late"
"""The ending of a trial that took too long; otherwise it is the process's code."""

WITHOUT_MEMORY: Final = "without memory"
"""The ending of a process that spent its time in refused memory requests."""

NO_PROCESS: Final = "no process"
"""The ending of a trial for which no process could be started."""


ATTEMPTS: Final = 2
"""A worker that the system killed is started once more before the policy is blamed."""

READS_CEL: Final = b"c"
READS_REGO: Final = b"r"
"""The request for a process, one byte: with CEL, or with the Rego compiler, already imported."""

ANY_CEL: Final[Job] = {"text": f'["{CEL}"'}
"""A job that needs the modules for CEL."""


class NoWorker(Exception):
    """No process could be started, or it has died: nothing is known about the policies."""


def has_cel(job: Job) -> bool:
    """Whether a job contains a CEL expression."""
    if "documents" in job:
        return job["cel"] and CEL.encode() in job["documents"]
    return CEL in job["text"][: len(CEL) + 2]


def text_of(code: Code) -> str | None:
    """Returns a source as text; None if no driver could read it."""
    try:
        return json.dumps([code.engine, code.source])
    except (TypeError, ValueError, RecursionError):
        return None


def digest_of(text: str) -> bytes:
    """Returns the digest of a source's text."""
    return hashlib.sha256(text.encode()).digest()


def digest_of_all(documents: Iterable[Mapping[str, Any]]) -> bytes:
    """Returns a digest of several policies, from their specs alone."""
    identities = [
        [gvk_of(document).kind, name_of(document), document.get("spec")] for document in documents
    ]
    return hashlib.sha256(encode(identities)).digest()
