"""One trial, in a process of its own, within the limits of its job."""

from __future__ import annotations

import json
import marshal
import resource
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.api.encoding import decode
from webhook.api.gvk import gvk_of, name_of
from webhook.constraint.client import Client
from webhook.constraint.constraint import GROUP
from webhook.constraint.containment import of_template
from webhook.constraint.drivers.cel import CelDriver
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.errors import CompileError, InvalidTemplate, OutOfMemory, PassingFault
from webhook.constraint.targets.known import TARGETS
from webhook.constraint.template import CEL, Code, Template
from webhook.policies.validation import validate
from webhook.rego.code_cache import to_bytes
from webhook.trials.job import NO_MEMORY, Job, JobOutcome, digest_of, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.constraint.driver import Driver, Evaluator
    from webhook.rego.write.generate import Generated


def used_bytes() -> int:
    """Returns the size of this process's address space; raises OSError if unknown."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


def bound(cpu_seconds: int, bytes_in_all: int) -> None:
    """Sets limits of this process: more seconds of a processor, and memory in all.

    They replace the previous limits: each trial in this process has its own.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(usage.ru_utime + usage.ru_stime) + cpu_seconds
    for kind, most in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, bytes_in_all),
    ):
        _, hard = resource.getrlimit(kind)
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (soft, hard))


class _Kept:
    """Takes the code of a rule when it is compiled."""

    def __init__(self) -> None:
        self.taken: tuple[str, bytes] | None = None

    def load(self, key: str) -> None:
        """Returns no code, so that the rule is compiled."""
        del key
        self.taken = None

    def store(self, key: str, generated: Generated) -> None:
        """Keeps the code."""
        self.taken = key, to_bytes(generated)


class _Recorded:
    """The driver for Rego, which keeps the code that it compiled."""

    def __init__(
        self, disabled_builtins: list[str], known: Mapping[bytes, tuple[str, bytes]]
    ) -> None:
        """``known`` is code that was compiled before."""
        self._known = known
        self._kept = _Kept()
        self._driver = RegoDriver(disabled_builtins=disabled_builtins, cache=self._kept)
        self.codes: dict[bytes, tuple[str, bytes]] = {}

    @property
    def name(self) -> str:
        """The name of the driver."""
        return self._driver.name

    def compile(self, template: Template, code: Code) -> Evaluator:
        """Compile, and keep the code by the digest of its source."""
        text = text_of(code)
        if text is not None and (known := self._known.get(digest_of(text))) is not None:
            return self._driver.load(template, code, *known)
        evaluator = self._driver.compile(template, code)
        if text is not None and self._kept.taken is not None:
            self.codes[digest_of(text)] = self._kept.taken
        return evaluator


class Clients:
    """Clients with one template in force each, for consecutive trials with that template."""

    def __init__(self) -> None:
        self._of: dict[bytes, Client] = {}

    def client(self, job: Job, rego: _Recorded) -> tuple[Client, bool]:
        """Returns a client for a job, and whether it has been used before."""
        # Removed meanwhile: a trial that did not finish may leave remains in it.
        client = self._of.pop(job.get("of", b""), None)
        if client is not None:
            return client, True
        drivers: list[Driver] = [CelDriver(), rego] if job["cel"] else [rego]
        return Client(targets=TARGETS, drivers=drivers), False

    def keep(self, job: Job, client: Client) -> None:
        """Keeps the client for the next trial with the same template."""
        if job.get("of"):
            self._of[job["of"]] = client


def carry_out(job: Job, clients: Clients | None = None) -> JobOutcome:
    """Compiles a source, or puts policies into a client of their own and tries them on samples.

    The outcome has an ``error`` with its ``stage`` or ``code``, or the ``codes`` of compiled
    sources.
    """
    rego = _Recorded(job["disabledBuiltins"], job.get("known", {}))
    try:
        if "documents" in job:
            return _tried(job, rego, clients or Clients()) | {"codes": rego.codes}
        code = Code(*json.loads(job["text"]))
        driver: Driver = CelDriver() if code.engine == CEL else rego
        compile_ = of_template(driver.compile)
        compile_(Template("trial", "Trial", "", ()), code)
    except (MemoryError, OutOfMemory):
        # Memory is limited here: to exceed the limit is the policy's fault.
        return NO_MEMORY
    except (CompileError, PassingFault) as error:
        return {"error": str(error), "stage": error.stage}
    except InvalidTemplate as error:
        return {"error": str(error), "code": error.code}
    except Exception as bug:  # noqa: BLE001  # ours: the policy must not be enforced
        fault = f"policy cannot be used for a fault of Waddle: {type(bug).__name__}"
        return {"error": fault, "stage": "compile"}
    return {"codes": rego.codes}


def _tried(job: Job, rego: _Recorded, clients: Clients) -> JobOutcome:
    """Tries policies for faults that need a process with limits, and finds their other faults.

    The process that admits policies finds the latter again, together with the policies in force.
    """
    documents = decode(job["documents"])
    client, is_used = clients.client(job, rego)
    try:
        if job.get("of") and not is_used:
            documents = [decode(job["of"]), *documents]
        problems = validate(client, documents, job["seconds"])
        for document in documents:
            if gvk_of(document).group == GROUP:
                client.remove_constraint(gvk_of(document).kind, name_of(document))
        clients.keep(job, client)
    except RecursionError:
        return {}
    if any(problem.code == PassingFault.CODE for problem in problems):
        return NO_MEMORY
    errors = [problem for problem in problems if problem.severity == "error"]
    return {"problems": [(error.kind, error.name, error.code, error.message) for error in errors]}


def written(outcome: JobOutcome) -> bytes:
    """Encodes an outcome for another process."""
    return marshal.dumps(outcome)
