"""Compiles modules, as an installation does and a checkout may not."""

import compileall
import sysconfig
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "webhook"


def compile_modules() -> None:
    """Compile our package and every other as pip does when it installs them, in the image too.

    A checkout's modules, and those of an environment that uv made, are compiled when they are first
    imported, and at each start where PYTHONDONTWRITEBYTECODE is set: ours took half a second of CPU,
    those of others a quarter more.
    """
    compileall.compile_dir(PACKAGE, quiet=1)
    # Files that Python cannot compile, such as templates of programs, are never imported.
    compileall.compile_dir(sysconfig.get_path("purelib"), quiet=2, workers=0)
