"""The exit codes of every subcommand: the texts of ``--help`` and docs/commands.md have them.

0 is success, 1 a negative result, 2 no result; callers that only test for 0 never take an unchecked
input for valid. ``test`` and ``verify`` give 1 as gator does, also for unchecked inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
    USAGE: "the command line is invalid",
    UNAVAILABLE: "an extra of the package is not installed: standard error names it",
    IO_ERROR: "the result could not be written, for example to a full disk or a closed pipe",
    INTERRUPTED: "interrupted",
}

_WRITTEN: Final = {
    OK: "written",
    NO: "nothing was written: a file exists already, or cannot be created",
}
_NOT_STARTED: Final = "it cannot start, or cannot continue: standard error says why"
_NO_ANSWER: Final = "the API server did not answer"
_DRAINED: Final = "a signal stopped it after its requests were answered"

CODES: Final[Mapping[str, Mapping[int, str]]] = {
    "audit": {
        OK: "nothing would be denied",
        NO: "something would be denied",
        UNKNOWN: "the audit is incomplete: it shows what it found, standard error says what is missing",
    },
    "bench": {
        OK: "measured (with --compare: nothing got worse)",
        NO: "something got worse",
        UNKNOWN: "nothing could be measured or compared",
    },
    "cel check": {OK: "every expression is valid", NO: "an expression is invalid"},
    "cel eval": {
        OK: "evaluated",
        NO: "the expression is invalid",
        UNKNOWN: "the evaluation failed: standard error says why",
    },
    "check": {
        OK: "the policies are valid, whatever their effect",
        NO: "a policy is invalid",
        UNKNOWN: "the check could not run",
    },
    "completion": {OK: "printed"},
    "conftest doc": {OK: "written", NO: "a page could not be written: standard error says why"},
    "conftest fmt": {
        OK: "every file is formatted (with --check: nothing would change)",
        NO: "a file cannot be read, formatted or written, or with --check would change",
    },
    "conftest parse": {
        OK: "shown",
        NO: "a file cannot be read: standard error names it and the line",
    },
    "conftest pull": {OK: "downloaded", NO: "a download failed: standard error says why"},
    "conftest push": {OK: "pushed", NO: "nothing was pushed: standard error says why"},
    "conftest reformat": {OK: "written", NO: "the file has no results: standard error says why"},
    "conftest test": {
        OK: "no failures (warnings count only with --fail-on-warn)",
        NO: "failures, with --fail-on-warn also warnings. Or, as with conftest, a flag, policy or file "
        "is invalid: standard error names it, and the results of other files are shown",
        UNKNOWN: "failures, with --fail-on-warn",
    },
    "conftest verify": {
        OK: "every test passed",
        NO: "a test failed, or, as with conftest, the tests could not run",
    },
    "console": {OK: "stopped by a signal", NO: _NOT_STARTED},
    "decisions compare": {
        OK: "both logs have the same violations",
        NO: "a violation is in one log only",
        UNKNOWN: "nothing was compared: a source cannot be read, or neither log has a violation",
    },
    "decisions replay": {
        OK: "no verdict changed",
        NO: "a verdict changed",
        UNKNOWN: "nothing was replayed: no record has its object, a source cannot be read, or the "
        "policies are invalid or have no constraint",
    },
    "decisions stats": {OK: "counted", UNKNOWN: "the source cannot be read"},
    "decisions tail": {OK: "shown", UNKNOWN: "the source cannot be read"},
    "demo": {OK: "stopped by a signal", NO: _NOT_STARTED},
    "except": {
        OK: "written",
        NO: "the source has no violation",
        UNKNOWN: "the source cannot be read: standard error says why",
    },
    "expand": {
        OK: "printed",
        UNKNOWN: "a file or policy is invalid, or an expansion failed: nothing is printed",
    },
    "export": {
        OK: "every constraint is written",
        NO: "some constraints are not written: their reasons are listed",
        UNKNOWN: "the files cannot be read or written, or a policy is invalid",
    },
    "init": _WRITTEN,
    "krm": {
        OK: "no object is denied",
        NO: "an object is denied, or the check could not run",
        UNKNOWN: "nothing was checked: there is no constraint, or no object",
    },
    "man": {OK: "printed or written", NO: "a page cannot be written"},
    "migrate gatekeeper": {
        OK: "everything runs, either unchanged or as the printed rows say",
        NO: "something has no equivalent",
        UNKNOWN: "nothing of Gatekeeper was found, or a file cannot be read",
    },
    "migrate kubewarden": {
        OK: "every policy and group is written",
        NO: "a policy or group is not written: standard error names what has no equivalent",
        UNKNOWN: "no policy was found, or a file cannot be read: nothing is written",
    },
    "migrate kyverno": {
        OK: "every policy runs, unchanged or converted, and every test case has the same result",
        NO: "something has no equivalent, or a case has another result: its line says what",
        UNKNOWN: "no policy of Kyverno was found, or a file cannot be read: nothing is written",
    },
    "mutate": {
        OK: "printed",
        UNKNOWN: "a file or mutator is invalid, or a mutation failed: nothing is printed",
    },
    "new constraint": _WRITTEN,
    "new mutator": _WRITTEN,
    "new suite": _WRITTEN,
    "new template": _WRITTEN,
    "policy install": {
        OK: "installed, with every constraint at dryrun",
        NO: "nothing was changed: the policies are invalid, or belong to another package",
        UNKNOWN: "the registry or the API server did not answer",
    },
    "policy list": {OK: "shown", NO: "the catalogue is invalid: standard error says why"},
    "policy pull": {
        OK: "written",
        NO: "a file exists already and differs, or cannot be written",
        UNKNOWN: "the registry's answer is missing or invalid: standard error says why",
    },
    "policy push": {
        OK: "pushed",
        NO: "nothing was pushed: the policies are invalid",
        UNKNOWN: "the registry refused the push: standard error says why",
    },
    "policy upgrade": {
        OK: "upgraded: each constraint keeps its enforcementAction",
        NO: "nothing was changed: the policies are invalid, or belong to another package",
        UNKNOWN: "the registry or the API server did not answer",
    },
    "provider images": {OK: _DRAINED, NO: _NOT_STARTED},
    "rego fmt": {
        OK: "every file is formatted (with --fail: nothing would change)",
        NO: "there is no such file, or standard input cannot be formatted",
        UNKNOWN: "a file cannot be formatted or written, or with --fail would change: standard error "
        "names it, and later files are not formatted",
    },
    "rego check": {OK: "every source is valid", NO: "a source is invalid"},
    "rego parse": {OK: "printed", NO: "the source cannot be parsed"},
    "rego eval": {
        OK: "evaluated",
        NO: "the condition of --fail or --fail-defined holds",
        UNKNOWN: "the evaluation failed",
    },
    "rego test": {
        OK: "every test passed",
        NO: "as with opa, the tests could not run: a source is invalid",
        UNKNOWN: "as with opa, a test failed, ended in an error or was skipped",
    },
    "report": {
        OK: "shown",
        UNKNOWN: "the API server did not answer, or serves no policy reports",
    },
    "serve": {OK: _DRAINED, NO: _NOT_STARTED},
    "sidecar": {
        OK: "a signal stopped it, or --check found the configuration valid",
        NO: f"{_NOT_STARTED}; or the configuration is invalid",
    },
    "simulate": {OK: "computed", UNKNOWN: "the measured values cannot be read"},
    "size": {OK: "computed", NO: "no number of replicas is enough"},
    "status": {OK: "shown", UNKNOWN: _NO_ANSWER},
    "sync test": {
        OK: "all data that templates need is synced",
        NO: "some data is not synced",
        UNKNOWN: "nothing was compared: no template or no GVKManifest, or a file cannot be read",
    },
    "test": {
        OK: "no object is denied",
        NO: "an object is denied. Or, as with gator, the check could not run: a file cannot be read, a "
        "policy is invalid, or there is no input",
        UNKNOWN: "nothing was checked: no constraint or no object, or all objects were left out",
    },
    "uninstall": {
        OK: "removed (without --yes: shown)",
        NO: "nothing was removed, since it is in use: standard error says why",
        UNKNOWN: "the API server did not answer, or did not remove everything",
    },
    "verify": {
        OK: "every case passed",
        NO: "a case failed, or, as with gator, a suite cannot be read",
        UNKNOWN: "no case was found to run",
    },
    "verify-image": {
        OK: "every image is signed as its policies require",
        NO: "an image is not signed as required, or no policy names it",
        UNKNOWN: "a policy is invalid, or a registry did not answer: standard error says why",
    },
    "version": {OK: "printed"},
    "wait": {
        OK: "enforced",
        NO: "not enforced before the timeout",
        UNKNOWN: "no such object, or the API server did not answer",
    },
}
"""Meanings of each subcommand's own codes; all have those of :data:`COMMON`, too."""


def paragraph(command: str) -> str:
    """Returns the paragraph of a subcommand's help."""
    codes = "; ".join(f"{code} {meaning}" for code, meaning in CODES[command].items())
    return f"\n\nExit codes: {codes}."
