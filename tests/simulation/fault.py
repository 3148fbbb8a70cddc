"""A fault: the text of one function of the product's, before and after."""

import importlib
import inspect
import sys
import textwrap
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` in a function; ``found_by`` is a seed that finds it."""

    world: str
    module: str
    function: str
    old: str
    new: str
    found_by: int = 0

    def put_in(self) -> None:
        """Replace the function by the faulty one."""
        module = importlib.import_module(self.module)
        owner: Any = module
        *path, name = self.function.split(".")
        for part in path:
            owner = getattr(owner, part)
        function = inspect.getattr_static(owner, name)
        source = textwrap.dedent(inspect.getsource(getattr(function, "fget", function)))
        assert source.count(self.old) == 1, f"{self.function} no longer has {self.old!r} once"
        faulty: dict[str, Any] = {}
        text = "from __future__ import annotations\n" + source.replace(self.old, self.new)
        exec(compile(text, self.module, "exec"), vars(module), faulty)
        setattr(owner, name, faulty[name])
        for other in list(sys.modules.values()):  # who has imported it by its name
            if getattr(other, name, None) is function:
                setattr(other, name, faulty[name])
