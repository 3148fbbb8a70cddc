"""A template compiled by a process of its own, that ends however the policy's text behaves.

``python -m webhook.app.trial`` reads one source as JSON from its input, and writes a line when it
has begun and one with the outcome. It takes the bounds that its first line names: what is over them
is killed by the system.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from webhook.constraint.containment import of_template
from webhook.constraint.drivers.rego import NAME, RegoDriver
from webhook.constraint.errors import (
    CompileError,
    InvalidTemplate,
    OutOfMemory,
    PassingFault,
)
from webhook.constraint.template import Code, Template

BEGUN = "begun"


def _bound(cpu_seconds: int, memory_bytes: int) -> None:
    """From here on: what the interpreter took to begin does not count."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(usage.ru_utime + usage.ru_stime) + 1 + cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    memory = pages * resource.getpagesize() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _outcome(disabled_builtins: list[str], source: object) -> dict[str, str]:
    driver = RegoDriver(disabled_builtins=disabled_builtins)
    compile_ = of_template(driver.compile)
    try:
        compile_(Template("trial", "Trial", "", ()), Code(NAME, source))
    except OutOfMemory as error:
        # What it may take is bounded here: to need more than the bound is the text's fault.
        return {"error": str(error), "stage": "compile"}
    except (CompileError, PassingFault) as error:
        return {"error": str(error), "stage": error.stage}
    except InvalidTemplate as error:
        return {"error": str(error), "code": error.code}
    return {}


def main() -> None:
    """One source, one outcome. Any other exception ends the process, and so tells itself."""
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(f"{BEGUN}\n")
    sys.stdout.flush()
    _bound(asked["cpuSeconds"], asked["memoryBytes"])
    sys.stdout.write(json.dumps(_outcome(asked["disabledBuiltins"], asked["source"])))


if __name__ == "__main__":
    main()
