"""``python -m webhook.cli.pages.documents``: writes the reference pages generated from code.

``docs/flags.md``, ``docs/metrics.md``, ``docs/commands.md``, ``docs/command-line.md``,
``docs/resources.md`` and ``docs/api.md`` are generated from the declarations of flags, metrics and
exit codes, from help, CRDs and docstrings, so that they cannot differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from webhook.cli.exit_codes import CODES, COMMON
from webhook.cli.formats.words import MEANINGS
from webhook.cli.pages.api import api_page
from webhook.cli.pages.reference import command_line_page, resources_page
from webhook.metrics.exposition import METRICS
from webhook.settings.flags import Flag, flags_of, show_default
from webhook.settings.gatekeeper import FLAGS, ForeignFlag
from webhook.settings.serve import ServeSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.metrics.registry import Metric

_MADE_BY: Final = "<!-- Made by `python -m webhook.cli.pages.documents`; a test compares. -->"


def flags_page() -> str:
    """Returns every flag of ``waddle serve``, and the fate of Gatekeeper's others."""
    lines = [
        "# Flags of `waddle serve`",
        "",
        _MADE_BY,
        "",
        "`-flag`, `--flag`, `--flag=value` and `--flag value` are accepted; a boolean stands alone",
        "or has `=true|false`; a list is repeated, separated by commas, or both. A flag marked *G*",
        "is Gatekeeper's, by name and meaning.",
    ]
    group = None
    for flag in flags_of(ServeSettings):
        if flag.group != group:
            group = flag.group
            lines += ["", f"## {group}", "", *_head("flag", "default", "", "meaning")]
        lines.append(_row(_flag_cells(flag)))
    lines += [
        "",
        "## Gatekeeper's other flags",
        "",
        "A value that asks for what happens anyway is accepted, so that Gatekeeper's manifests",
        "start unchanged; any other is an error with this text.",
        "",
        *_head("flag", "accepted", "instead"),
    ]
    lines += [_row(_foreign_cells(name, flag)) for name, flag in sorted(FLAGS.items())]
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Returns docs/metrics.md: a row for each declaration, with its labels and meaning."""
    lines = [
        "# Metrics",
        "",
        _MADE_BY,
        "",
        "`/metrics` is on `--prometheus-port`. A metric marked *G* is Gatekeeper's, by name and",
        "labels. Labels never hold free text.",
        "",
        *_head("metric", "kind", "", "labels", "meaning"),
    ]
    lines += [_row(_metric_cells(metric)) for metric in METRICS]
    return "\n".join(lines) + "\n"


def commands_page() -> str:
    """Returns the page of every subcommand's exit codes, and of the words of ``-o``."""
    lines = [
        "# Commands",
        "",
        _MADE_BY,
        "",
        "`waddle COMMAND --help` explains each.",
        "",
        "## Exit codes",
        "",
        "0 is good, 1 that the answer is no, 2 that there is no answer. `test` and `verify` give 1",
        "where gator does, for what cannot be checked, too.",
        "",
        *_head("command", "code", "meaning"),
    ]
    lines += [
        _row((f"`waddle {command}`", str(code), meaning))
        for command, codes in CODES.items()
        for code, meaning in codes.items()
    ]
    lines += [_row(("all", str(code), meaning)) for code, meaning in COMMON.items()]
    lines += [
        "",
        "## Formats",
        "",
        "The words of `-o`; a command has those that make sense for it.",
    ]
    lines += ["", *_head("word", "gives")]
    lines += [_row((f"`{word}`", meaning)) for word, meaning in MEANINGS.items()]
    lines += [
        "",
        "## What is kept",
        "",
        "Policies that were compiled are kept in `$XDG_CACHE_HOME/waddle/policies`, else in",
        "`~/.cache/waddle/policies`, so that the next run need not: 10,000 files at most, which must",
        "belong to the user and be closed to all others. `WADDLE_CACHE=DIR` keeps them elsewhere,",
        "`WADDLE_CACHE=` keeps none.",
        "",
        "## What policies see of the environment",
        "",
        "`opa.runtime()` shows all variables to policies of `waddle rego` and `waddle conftest`, as",
        "OPA and conftest do. `WADDLE_RUNTIME_ENV=` shows none, `WADDLE_RUNTIME_ENV=HOME,CI` these. Set",
        "it where a pipeline has secrets and a bundle is not yours.",
    ]
    return "\n".join(lines) + "\n"


def _flag_cells(flag: Flag) -> Sequence[str]:
    default = show_default(flag)
    meaning = flag.help + (f" One of {', '.join(flag.choices)}." if flag.choices else "")
    return f"`--{flag.name}`", f"`{default}`" if default else "", _mark(flag.gatekeeper), meaning


def _foreign_cells(name: str, flag: ForeignFlag) -> Sequence[str]:
    if flag.notice:
        accepted = "any, with a warning"
    elif {"true", "false"} <= flag.harmless:
        accepted = "any"
    else:
        accepted = ", ".join(f"`{value or '(empty)'}`" for value in _shown(flag.harmless))
    return f"`--{name}`", accepted, flag.replacement


def _shown(values: Iterable[str]) -> list[str]:
    """Values without the other spellings of true and false."""
    words = sorted(values)
    return next(([word] for word in ("true", "false") if word in words), words)


def _metric_cells(metric: Metric) -> Sequence[str]:
    name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"`{name}`", metric.kind, _mark(metric.gatekeeper), labels, metric.help


def _mark(gatekeeper: bool) -> str:
    return "*G*" if gatekeeper else ""


def _head(*titles: str) -> tuple[str, str]:
    return _row(titles), _row(["---"] * len(titles))


def _row(cells: Sequence[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _api_page() -> str:
    return api_page(_MADE_BY)


def _command_line_page() -> str:
    return command_line_page(_MADE_BY)


def _resources_page() -> str:
    return resources_page(_MADE_BY)


PAGES: Final = {
    "api.md": _api_page,
    "command-line.md": _command_line_page,
    "commands.md": commands_page,
    "flags.md": flags_page,
    "metrics.md": metrics_page,
    "resources.md": _resources_page,
}


def main() -> None:
    """Writes the pages into ``docs``."""
    folder = Path(__file__).parents[3] / "docs"
    folder.mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
