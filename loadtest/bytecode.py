"""What an installation has and a checkout may not: modules that are compiled."""

import compileall
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "webhook"


def compile_package() -> None:
    """Compile our package as pip does when it installs the wheel, in the image too.

    A checkout's modules are compiled when they are first imported, and at each start where
    PYTHONDONTWRITEBYTECODE is set: that took half a second of CPU.
    """
    compileall.compile_dir(PACKAGE, quiet=1)
