"""`python -m loadtest.curves [--quick]`: measure what is missing, draw, and fit `waddle size`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loadtest.bench.measurement import make_certificates, say
from loadtest.bench.servers import Cores
from loadtest.curves import admission, cluster, fit, page
from loadtest.curves.points import FULL, QUICK, Stand, Store
from tests.programs import ProgramUnavailableError

RESULTS = Path(__file__).resolve().parent.parent / "results"

# The places of a curve are numbers of its own kind, which only the curve reads.
Places = tuple[Any, ...]

CURVES: dict[str, tuple[Callable[[Stand, Places], None], Places]] = {
    "matching": (admission.matching, admission.MATCHING),
    "idle": (admission.idle, admission.IDLE),
    "size": (admission.size, admission.SIZES_KIB),
    "load": (admission.load, admission.LOADS),
    "replicas": (cluster.replicas, cluster.REPLICAS),
    "synced": (cluster.synced, cluster.SYNCED),
    "changes": (cluster.changes, cluster.CHANGES_PER_MINUTE),
}


def main() -> int:
    """Measure the curves; 1 when they cannot be measured here."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.curves", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="shorter points")
    parser.add_argument("--again", action="store_true", help="also points that are there already")
    parser.add_argument("--draw", action="store_true", help="only draw what is there, and fit")
    parser.add_argument("--only", action="append", choices=list(CURVES), help="one curve")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder")
    options = parser.parse_args()
    store = Store(options.output / "curves", QUICK if options.quick else FULL, options.again)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="waddle-curves-") as scratch:
        folder = Path(scratch)
        certificates = make_certificates(folder / "certificates")
        stand = Stand(store, folder, certificates, Cores.of_this_machine(), say)
        for name in () if options.draw else options.only or CURVES:
            measure, places = CURVES[name]
            try:
                measure(stand, places)
            except ProgramUnavailableError as unavailable:
                print(f"the peer cannot be built here: {unavailable}", file=sys.stderr)
                return 1
    for name, text in page.plots(store).items():
        (options.output / name).write_text(text)
    (options.output / "curves.md").write_text(page.markdown(store))
    fit.write(store)
    minutes = (time.monotonic() - began) / 60
    summary = (
        f"{len(store.measured)} points in {minutes:.1f} minutes, {datetime.now(UTC):%H:%M} UTC"
    )
    print(f"{summary}: {options.output / 'curves.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
