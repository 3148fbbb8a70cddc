"""The exit codes of every subcommand: the texts of ``--help`` and docs/commands.md have them.

0 is success, 1 a negative result, 2 no result; callers that only test for 0 never take an unchecked
input for valid. ``test`` and ``verify`` give 1 as gator does, also for unchecked inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

OK: Final = 0
NO: Final = 1
UNKNOWN: Final = 2
USAGE: Final = 64
"""sysexits' EX_USAGE."""
UNAVAILABLE: Final = 69
"""sysexits' EX_UNAVAILABLE."""
IO_ERROR: Final = 74
"""sysexits' EX_IOERR."""
INTERRUPTED: Final = 130
"""The exit code of shells for SIGINT."""

COMMON: Final[Mapping[int, str]] = {
    USAGE: "the command line cannot be understood",
    UNAVAILABLE: "an extra of the package is not installed: standard error says which",
    IO_ERROR: "what was found could not be written, for a full disk or a closed pipe for instance",
    INTERRUPTED: "interrupted",
}

_WRITTEN: Final = {
    OK: "written",
    NO: "nothing was written: a file is there already, or cannot be made",
}
_NOT_STARTED: Final = "it cannot start, or run on: standard error says why"

CODES: Final[Mapping[str, Mapping[int, str]]] = {
    "audit": {
        OK: "nothing would be denied",
        NO: "something would",
        UNKNOWN: "not everything could be audited: what was found is shown, standard error says "
        "what is missing",
    },
    "bench": {
        OK: "measured; with --compare: nothing got worse",
        NO: "something got worse",
        UNKNOWN: "nothing could be measured, or compared",
    },
    "cel check": {OK: "all can be used", NO: "one cannot"},
    "cel eval": {
        OK: "evaluated",
        NO: "the expression cannot be used",
        UNKNOWN: "it has no value: standard error says why",
    },
    "check": {
        OK: "the policies can be used, whatever their effect",
        NO: "they cannot",
        UNKNOWN: "the check could not be made",
    },
    "completion": {OK: "printed"},
    "conftest doc": {OK: "written", NO: "a page could not be made: standard error says why"},
    "conftest fmt": {
        OK: "laid out; with --check: nothing would change",
        NO: "a file cannot be read, laid out or written, or with --check would change",
    },
    "conftest parse": {
        OK: "shown",
        NO: "a file cannot be read: standard error names it and the line",
    },
    "conftest pull": {OK: "fetched", NO: "something could not be fetched: standard error says why"},
    "conftest push": {OK: "pushed", NO: "nothing was tagged: standard error says why"},
    "conftest reformat": {OK: "written", NO: "these are no results: standard error says why"},
    "conftest test": {
        OK: "no failures; warnings count only with --fail-on-warn",
        NO: "failures, with --fail-on-warn warnings; or, as with conftest, something could not be "
        "used: a flag, the policies, a file. Standard error names it; the other files' results "
        "are shown",
        UNKNOWN: "failures, with --fail-on-warn",
    },
    "conftest verify": {
        OK: "all passed",
        NO: "some failed; or, as with conftest, the tests could not be made",
    },
    "console": {OK: "stopped by a signal", NO: _NOT_STARTED},
    "decisions compare": {
        OK: "both decided the same",
        NO: "one decided what the other did not",
        UNKNOWN: "nothing was compared: a source that cannot be read, or no violation in either",
    },
    "decisions replay": {
        OK: "no verdict changed",
        NO: "one did",
        UNKNOWN: "nothing could be replayed: no record with its object, a source that cannot be "
        "read, policies that cannot be loaded, or no constraint among them",
    },
    "decisions stats": {OK: "counted", UNKNOWN: "the source cannot be read"},
    "decisions tail": {OK: "shown", UNKNOWN: "the source cannot be read"},
    "demo": {OK: "stopped by a signal, and ended", NO: _NOT_STARTED},
    "except": {
        OK: "written",
        NO: "there is no violation in it",
        UNKNOWN: "it cannot be read: standard error says why",
    },
    "expand": {OK: "printed", UNKNOWN: "a file or policy cannot be used, or a resource expanded"},
    "export": {
        OK: "each constraint is written",
        NO: "some are not: the reasons are listed; what can be written is",
        UNKNOWN: "the files cannot be read, hold a policy that cannot be used, or cannot be written",
    },
    "init": _WRITTEN,
    "krm": {
        OK: "nothing is denied",
        NO: "something is, or the check could not be made",
        UNKNOWN: "nothing was checked: no constraint, or nothing to review",
    },
    "man": {OK: "printed or written", NO: "a page cannot be written"},
    "migrate gatekeeper": {
        OK: "everything runs, as it is or as the printed rows say",
        NO: "something is missing",
        UNKNOWN: "nothing of Gatekeeper was found, or a file cannot be read",
    },
    "migrate kubewarden": {
        OK: "every group is written",
        NO: "a group is not written: standard error says which member has no equivalent",
        UNKNOWN: "no group was found, or a file cannot be read",
    },
    "migrate kyverno": {
        OK: "every policy runs, as it is or converted, and every case of their tests is equal",
        NO: "something is missing, or a case differs: its line says what",
        UNKNOWN: "no policy of Kyverno was found, or a file cannot be read",
    },
    "mutate": {OK: "printed", UNKNOWN: "a file or mutator cannot be used, or a resource mutated"},
    "new constraint": _WRITTEN,
    "new mutator": _WRITTEN,
    "new suite": _WRITTEN,
    "new template": _WRITTEN,
    "policy install": {
        OK: "installed, every constraint at dryrun",
        NO: "nothing was changed: the policies cannot be used, or are not this package's",
        UNKNOWN: "the registry or the cluster cannot be asked",
    },
    "policy list": {OK: "shown", NO: "the catalogue cannot be used: standard error says why"},
    "policy pull": {
        OK: "written",
        NO: "a file is there already and differs, or cannot be written",
        UNKNOWN: "the registry gave nothing that may be used: standard error says why",
    },
    "policy push": {
        OK: "pushed",
        NO: "nothing was pushed: the policies cannot be used",
        UNKNOWN: "the registry did not take it: standard error says why",
    },
    "policy upgrade": {
        OK: "upgraded; each constraint does what it did",
        NO: "nothing was changed: the policies cannot be used, or are not this package's",
        UNKNOWN: "the registry or the cluster cannot be asked",
    },
    "provider images": {OK: "stopped by a signal, and drained", NO: _NOT_STARTED},
    "rego fmt": {
        OK: "laid out; with --fail: nothing would change",
        NO: "there is no such file, or standard input cannot be laid out",
        UNKNOWN: "a file cannot be laid out or written, or with --fail would change: standard error "
        "says which; files behind it are not looked at",
    },
    "rego check": {OK: "all can be used", NO: "something cannot"},
    "rego parse": {OK: "printed", NO: "the source cannot be parsed"},
    "rego eval": {
        OK: "evaluated",
        NO: "what --fail or --fail-defined says",
        UNKNOWN: "the query could not be evaluated",
    },
    "rego test": {
        OK: "all passed",
        NO: "as with opa, the tests could not be made: a source that cannot be used",
        UNKNOWN: "as with opa, some failed, ended in an error or were skipped",
    },
    "report": {
        OK: "shown",
        UNKNOWN: "the cluster cannot be asked, or serves no policy reports",
    },
    "serve": {OK: "stopped by a signal, and drained", NO: _NOT_STARTED},
    "sidecar": {
        OK: "stopped by a signal, or --check found the configuration good",
        NO: f"{_NOT_STARTED}; or the configuration is not good",
    },
    "simulate": {OK: "computed", UNKNOWN: "what was measured cannot be read"},
    "size": {OK: "computed", NO: "no number of replicas does it"},
    "status": {OK: "shown", UNKNOWN: "the cluster cannot be asked"},
    "sync test": {
        OK: "all data that templates need is synced",
        NO: "some is not",
        UNKNOWN: "nothing was compared: no template, no GVKManifest, or a file that cannot be read",
    },
    "test": {
        OK: "nothing is denied",
        NO: "something is; or, as with gator, the check could not be made: a file that cannot be "
        "read, a policy that cannot be used, no input",
        UNKNOWN: "nothing was checked: no constraint, nothing to review, or all of it was left out",
    },
    "uninstall": {
        OK: "it is removed, or with nothing said of --yes shown",
        NO: "it must not be removed now: standard error says why; nothing was",
        UNKNOWN: "the cluster cannot be asked, or did not remove everything",
    },
    "verify": {
        OK: "all passed",
        NO: "some failed; or, as with gator, a suite cannot be read",
        UNKNOWN: "no case was found to run",
    },
    "verify-image": {
        OK: "all images are signed as every policy about them asks",
        NO: "one is not, or no policy is about it",
        UNKNOWN: "a policy cannot be used, or a registry did not answer: standard error says why",
    },
    "version": {OK: "printed"},
    "wait": {
        OK: "enforced",
        NO: "not in time",
        UNKNOWN: "no such object, or the cluster cannot be asked",
    },
}
"""Meanings of each subcommand's own codes; all have those of :data:`COMMON`, too."""


def paragraph(command: str) -> str:
    """Returns the paragraph of a subcommand's help."""
    codes = "; ".join(f"{code} {meaning}" for code, meaning in CODES[command].items())
    return f"\n\nExit codes: {codes}."
