"""`python -m loadtest.readme`: README's figures, each from a results file that it names.

What stands between two marks of README is written here and nowhere else; a test compares.
"""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadtest.bench.goals import CPU, SETS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "measured.md")
RESULTS = ROOT / "loadtest" / "results"

SECTION = re.compile(
    r"(?P<begin><!-- figures of (?P<name>[a-z]+): python -m loadtest\.readme -->\n)"
    r"(?P<text>.*?)(?P<end><!-- end of figures -->\n)",
    re.DOTALL,
)


def sections() -> dict[str, str]:
    """Returns the texts between the marks, by name."""
    # A whole run is quoted where there is one.
    whole = (RESULTS / "serving.json").exists()
    name = "serving" if whole else "serving-quick"
    result = json.loads((RESULTS / f"{name}.json").read_text())
    return {
        "headline": headline(result, f"{name}.md"),
        "serving": serving(result, f"{name}.md"),
        "decisions": decisions(json.loads((RESULTS / "decisions.json").read_text())),
        "audit": audit(),
        "external": external_data(),
        "exceptions": exceptions(),
        "expiry": expiry(),
        "kyverno": kyverno(),
    }


def rendered(text: str, page: Path = README) -> str:
    """A page with the figures of the results; its links lead from where it is."""
    found = sections()

    def section(match: re.Match[str]) -> str:
        made = found[match["name"]]
        if page.parent != ROOT:
            made = made.replace("](docs/", "](").replace("](loadtest/", "](../loadtest/")
        return match["begin"] + made + match["end"]

    return SECTION.sub(section, text)


def headline(result: Mapping[str, Any], page: str) -> str:
    """Returns a single figure for hurried readers."""
    point = next(
        one
        for one in result["points"]
        if (one["set"], one["body"], one["connections"]) == ("p100", "pod", 8)
    )
    ours, theirs = point["waddle"][CPU], point["gatekeeper"][CPU]
    return (
        f"With 100 constraints a request takes **{_ms(ours)} of CPU**; Gatekeeper "
        f"{result['machine']['gatekeeper']} takes {_ms(theirs)} for it on the same machine "
        f"([figures](loadtest/results/{page}), `{result['command']}`).\n"
    )


def serving(result: Mapping[str, Any], page: str) -> str:
    """CPU, latency and memory of both, side by side."""
    points = {
        point["set"]: point
        for point in result["points"]
        if (point["body"], point["connections"]) == ("pod", 8)
    }
    latency = {one["set"]: one for one in result["schedule"]}
    rows = [
        _row(SETS[name], point, latency[name], result["memory"][name])
        for name, point in points.items()
    ]
    link = f"[all figures, the machine and each goal's verdict](loadtest/results/{page})"
    return (
        f"Gatekeeper {result['machine']['gatekeeper']} and Waddle on one core of the same machine, "
        "in turn, over TLS with keep-alive, 8 connections, the same policies and the same pod "
        f"(`{result['command']}`, {link}):\n\n"
        "| | CPU for each request | | ratio | p99 at the same load | | resident memory | |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| | Waddle | Gatekeeper | | Waddle | Gatekeeper | Waddle | Gatekeeper |\n"
        + "".join(rows)
        + ("\nOf the 1,000 constraints 12 match.\n" if "p1000" in points else "")
        + "\nThe load is half of what Gatekeeper can do; memory is that after "
        f"{result['memory']['p12']['requests']:,} requests to each.\n"
    )


def _row(
    name: str, point: Mapping[str, Any], load: Mapping[str, Any], memory: Mapping[str, float]
) -> str:
    ours, theirs = point["waddle"], point["gatekeeper"]
    return (
        f"| {name} | {_ms(ours[CPU])} | {_ms(theirs[CPU])} | {ours[CPU] / theirs[CPU]:.2g} "
        f"| {_ms(load['waddle']['p99_ms'])} | {_ms(load['gatekeeper']['p99_ms'])} "
        f"| {memory['waddle']:.0f} MiB | {memory['gatekeeper']:.0f} MiB |\n"
    )


def _ms(value: float) -> str:
    """Three digits that count."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f} ms"


def decisions(result: Mapping[str, Any]) -> str:
    """Returns the promises of the decision log and its measured cost."""
    more = {
        log: sorted(
            (one["cpu_ratio"] - 1) * 100 for one in result["admission"] if one["log"] == log
        )
        for log in ("on", "hung")
    }
    cost = (
        f"{more['on'][0]:.1f} to {more['on'][-1]:.1f} % more CPU at 12 policies, "
        f"{more['hung'][0]:.1f} to {more['hung'][-1]:.1f} % with a hung sidecar"
    )
    rate = ", ".join(
        f"{one['durable_per_second']:,.0f}{' records a second' if number == 0 else ''} over "
        f"`{one['transport']}://`"
        for number, one in enumerate(result["stream"])
    )
    return f"""\
The decision log, off unless chosen ([what is promised](docs/decisions.md), [figures](loadtest/results/decisions.md), `make bench-decisions`):

| | Gatekeeper 3.24's disk export promises | Waddle promises | measured |
|---|---|---|---|
| on record | violations | every decision, allowed ones too | |
| delivery | best effort, one attempt | at least once from acknowledgement on, in order for each replica; what was dropped before is counted by reason | kills of either side at random moments on a disk that forgets what was not synced: no acknowledged record lost |
| cost to an admission | a bounded queue | never waits, a bounded queue | {cost} |
| throughput | | durable before acknowledged | {rate} |
"""


def audit() -> str:
    """A sweep beside Gatekeeper's; nothing where it has not been measured."""
    file = RESULTS / "audit.json"
    if not file.exists():
        return ""
    small, large = json.loads(file.read_text())["points"]
    ours, theirs = large["waddle"], large["gatekeeper"]
    pods = large["pods"] / 1000
    columns = [
        (
            f"{one['cpu_seconds']:.1f} s",
            _ms(one["cpu_seconds"] / pods),
            f"{one['peak_mib']:.0f} MiB",
            f"{few['peak_mib']:.0f} MiB",
        )
        for one, few in ((ours, small["waddle"]), (theirs, small["gatekeeper"]))
    ]
    names = ("CPU of a sweep", "of a Pod", "peak memory", f"with {small['pods']:,} Pods")
    rows = "".join(
        f"| {name} | {mine} | {other} |\n"
        for name, mine, other in zip(names, *columns, strict=True)
    )
    return (
        f"The audit of {large['pods']:,} Pods by 12 constraints, on one cluster and with the same "
        "totals and violations ([figures](loadtest/results/audit.md), `make bench-audit`):\n\n"
        f"| | Waddle | Gatekeeper |\n|---|---|---|\n{rows}"
    )


def external_data() -> str:
    """Returns the cost of provider calls, beside Gatekeeper; empty if it has not been measured."""
    file = RESULTS / "external_data.json"
    if not file.exists():
        return ""
    result = json.loads(file.read_text())
    rows = "".join(
        f"| {row['title']} | {row['ours']} | {row['theirs']} | {row['ratio']:.3g} |\n"
        for row in result["rows"]
    )
    return (
        "Policies that ask a provider of 20 ms: 12 templates, of which four ask for three keys each "
        "([figures](loadtest/results/external_data.md), `make bench-external-data`):\n\n"
        f"| | Waddle | Gatekeeper | ratio |\n|---|---|---|---|\n{rows}"
    )


def exceptions() -> str:
    """Returns the cost of exceptions and groups in a review; empty if it has not been measured."""
    file = RESULTS / "exceptions.json"
    if not file.exists():
        return ""
    result = json.loads(file.read_text())
    rows = "".join(
        f"| {row['title']} | {row['before_us']:.0f} µs | {row['more_us']:+.1f} µs "
        f"| {row['more_us'] / row['before_us']:+.1%} |\n"
        for row in result["rows"]
    )
    return (
        f"What {result['exceptions']:,} exceptions from 12 constraints add to the CPU of a review, "
        "without TLS and HTTP ([figures](loadtest/results/exceptions.md), `make bench-exceptions`):"
        f"\n\n| | without | more | of it |\n|---|---|---|---|\n{rows}"
    )


def expiry() -> str:
    """Returns how soon an expiry is in force; empty if it has not been measured."""
    file = RESULTS / "expiry.json"
    if not file.exists():
        return ""
    result = json.loads(file.read_text())
    return (
        f"From the expiry of an exception until the last of {result['replicas']} replicas denies: "
        f"median {result['median_seconds'] * 1000:.0f} ms, at most "
        f"{result['latest_seconds'] * 1000:.0f} ms "
        "([figures](loadtest/results/expiry.md), `make bench-exceptions`).\n"
    )


def kyverno() -> str:
    """A review beside Kyverno's; nothing where it has not been measured."""
    file = RESULTS / "kyverno.json"
    if not file.exists():
        return ""
    result = json.loads(file.read_text())
    kinds = {"cel": "ValidatingPolicy", "patterns": "ClusterPolicy"}
    rows = "".join(
        f"| {row['count']} {kinds[row['policies']]} | {_ms(row['cpu_ms']['waddle'])} "
        f"| {_ms(row['cpu_ms']['kyverno'])} "
        f"| {row['cpu_ms']['waddle'] / row['cpu_ms']['kyverno']:.2g} "
        f"| {_ms(row['p99_ms']['waddle'])} | {_ms(row['p99_ms']['kyverno'])} "
        f"| {row['rss_mib']['waddle']:.0f} MiB | {row['rss_mib']['kyverno']:.0f} MiB |\n"
        for row in result["rows"]
        if row["body"] == "pod"
    )
    return (
        f"The admission controller of Kyverno {result['machine']['kyverno']} and Waddle with the same "
        "ValidatingPolicies, and with ClusterPolicies and what `waddle migrate kyverno` makes of them "
        "([figures](loadtest/results/kyverno.md), `make bench-kyverno`):\n\n"
        "| | CPU for each request | | ratio | p99 at the same load | | resident memory | |\n"
        "|---|---|---|---|---|---|---|---|\n"
        "| | Waddle | Kyverno | | Waddle | Kyverno | Waddle | Kyverno |\n"
        f"{rows}\nThe load is half of what Kyverno can do.\n"
    )


def write() -> None:
    """Bring the pages up to date."""
    for page in PAGES:
        page.write_text(rendered(page.read_text(), page))


if __name__ == "__main__":
    write()
