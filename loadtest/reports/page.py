"""The figures as a page."""

from typing import Any

DESIGN_KB_A_REPORT = 6.28
DESIGN_MB = 25.0
"""Of the design that Kyverno's reports began with: 19 rules of the Pod Security Standards in one
report take 6.28 KB, and 1,000 Pods with the intermediate objects of 17 policies 25 MB."""


def markdown(result: dict[str, Any]) -> str:
    """Storage, the rolling update, and the aims."""
    pods = result["pods"]
    lines = [
        "# Policy reports",
        "",
        (
            f"{pods} Pods without a security context, 19 rules of the Pod Security Standards (12 baseline, "
            "7 restricted), real API server and etcd. Bytes are the sum of the values that etcd holds under "
            "the reports' keys."
        ),
        "",
        (
            "| reports | objects | results | MB for 1,000 Pods | of the design's 25 MB | KB a Pod "
            "| of the design's 6.28 KB | largest KB |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for item in result["storage"]:
        megabytes = item["bytes"] / pods / 1000
        lines.append(
            f"| {item['case']} | {item['objects']} | {item['results']} | {megabytes:.2f} | "
            f"{megabytes / DESIGN_MB:.0%} | {megabytes:.2f} | {megabytes / DESIGN_KB_A_REPORT:.0%} | "
            f"{item['largest_bytes'] / 1000:.2f} |"
        )
    rolling = result["rolling"]
    writes = ", ".join(f"{number} {verb}" for verb, number in sorted(rolling["writes"].items()))
    lines += [
        "",
        (
            f"The design's figures: {DESIGN_KB_A_REPORT} KB for a report of 19 rules, {DESIGN_MB:.0f} MB for "
            "1,000 Pods with what it kept in between. Here nothing is kept in between."
        ),
        "",
        (
            f"Rolling update: {rolling['pods']} Pods replaced and each changed {rolling['changes_of_each']} "
            f"times within {rolling['seconds']} s, {rolling['admissions']} admissions; writes of reports: "
            f"{writes} (deletes are the garbage collector's)."
        ),
        "",
        "| aim | bound | measured | |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {aim['aim']} | {aim['bound']:g} | {aim['measured']:.3g} | {'met' if aim['met'] else 'missed'} |"
        for aim in result["aims"]
    ]
    machine = result["machine"]
    lines += [
        "",
        (
            f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python "
            f"{machine['python']}, Waddle {machine['waddle']}; {result['minutes']} minutes. "
            "`python -m loadtest.reports --save`"
        ),
    ]
    return "\n".join(lines) + "\n"
