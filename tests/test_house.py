"""How the code is laid out: no circles, modules that fit in a head, tests where their subject is."""

from __future__ import annotations

import ast
import doctest
import re
import statistics
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("without_garbage_collection")

MEDIAN_MAX, P90_MAX = 150, 350
FUNCTION_LINES_MAX = 60
SHORT_LINES, SHORT_MODULES_MAX = 40, 20
GENERATED = {"decisions_pb2"}

UNMIRRORED = {Path("conftest")}
"""pytest keeps the name for itself: what is tested of it lies in ``tests/webhook/cli``."""


@cache
def modules() -> dict[str, Path]:
    """Every module of webhook by its dotted name; a package is its ``__init__``."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((ROOT / "webhook").rglob("*.py"))
        if path.stem not in GENERATED
    }


def imported(path: Path) -> set[str]:
    """The modules that a module imports anywhere; for annotations alone those of other folders."""
    known, names = modules(), set()
    tree = ast.parse(path.read_text())
    folder = ".".join(path.parent.relative_to(ROOT).parts)
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[0] == folder
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names} & known.keys()
            if any(f"{node.module}.{alias.name}" not in known for alias in node.names):
                names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names & known.keys()


def test_no_modules_form_a_circle():
    """Modules below can be read first; types of one folder may refer to each other."""
    sorter = TopologicalSorter({name: imported(path) for name, path in modules().items()})
    try:
        sorter.prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_most_modules_are_short():
    """The median module and the ninetieth in a hundred; a package's docstring is no module."""
    lengths = [
        path.read_text().count("\n") for path in modules().values() if path.stem != "__init__"
    ]
    percentiles = statistics.quantiles(lengths, n=100)
    assert percentiles[49] <= MEDIAN_MAX
    assert percentiles[89] <= P90_MAX


def test_a_function_fits_a_screen():
    """Signature and docstring count; longer functions have named parts."""
    long = [
        f"{name}.{node.name}: {lines} lines"
        for name, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_short_modules_are_terms_or_tables():
    """Few are terms or tables; any other belongs into who uses it: a reader opens one file, not three."""
    short = {
        name.removeprefix("webhook.")
        for name, path in modules().items()
        if path.stem != "__init__" and path.read_text().count("\n") < SHORT_LINES
    }
    assert len(short) <= SHORT_MODULES_MAX, sorted(short)


PACKAGE_WORDS_MIN = 25
EXAMPLES_MIN = 10
"""Packages that decide have one that runs; of those that do I/O the paragraph names the way in."""


def test_each_package_says_how_it_works_and_its_examples_hold():
    names = sorted(path.parent.name for path in (ROOT / "webhook").glob("*/__init__.py"))
    shown = []
    for name in names:
        package = import_module(f"webhook.{name}")
        assert len((package.__doc__ or "").split()) >= PACKAGE_WORDS_MIN, name
        failed, attempted = doctest.testmod(package)
        assert not failed, name
        shown += [name] if attempted else []
    assert len(shown) >= EXAMPLES_MIN


def test_tests_of_modules_lie_where_the_modules_do():
    """``tests/webhook`` mirrors ``webhook``: folder by folder, and each package has one."""
    tests, code = ROOT / "tests" / "webhook", ROOT / "webhook"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("*.py")} - {Path()}
    packages = {path.parent.relative_to(code) for path in code.rglob("*.py")} - {Path()}
    assert folders - packages == set(), "tests of a package that is not there"
    assert {path for path in packages if len(path.parts) == 1} - folders - UNMIRRORED == set()
    loose = {path.stem.removeprefix("test_") for path in tests.glob("test_*.py")}
    assert loose - {path.stem for path in code.glob("*.py")} == set()


def test_no_test_module_is_imported():
    """Helpers of several tests belong into a module beside them, which holds no tests."""
    importers = []
    for path in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "loadtest").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            named = [name for name in names if re.match(r"tests\.(\w+\.)*test_", name)]
            importers += [f"{path.relative_to(ROOT)}: {name}" for name in named]
    assert importers == []


def test_the_architecture_names_every_package():
    """In the tree of parts, by which a reader finds their way."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    parts = text[text.index("## The parts") : text.index("## Flows")]
    names = {
        path.stem if path.is_file() else path.name
        for path in (ROOT / "webhook").iterdir()
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py")
    }
    assert {
        name for name in names if not re.search(rf"^  .*\b{name}\b", parts, re.MULTILINE)
    } == set()


def test_what_decides_is_refused_a_door_to_the_outside(tmp_path):
    """The contract that says so is able to fail: of a copy with one more import it does."""
    config = (ROOT / "pyproject.toml").read_text()
    start = config.index("[tool.importlinter]")
    contract = config[config.index('id = "doors"') :].split("\n\n")[0]
    contract = "".join(
        line for line in contract.splitlines(keepends=True) if "code_cache" not in line
    )
    head = config[start:].split("\n\n")[0]
    path = tmp_path / "contracts.toml"
    path.write_text(f"{head}\n\n[[tool.importlinter.contracts]]\n{contract}\n")
    finished = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--config", path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert finished.returncode != 0
    assert "webhook.rego.code_cache -> os" in finished.stdout


_HARMLESS = """
__future__ abc base64 binascii bisect collections contextlib dataclasses datetime decimal difflib enum
fractions functools gc gzip hashlib hmac html importlib io ipaddress itertools json marshal math operator random re
reprlib sys threading time traceback types typing urllib.parse uuid weakref zlib zoneinfo
cryptography graphql orjson re2 unicodedata yaml
"""
HARMLESS = frozenset(_HARMLESS.split())
"""Functions that open no file, no connection and no process."""


def contract(name: str) -> dict[str, Any]:
    """Returns a contract on imports."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = config["tool"]["importlinter"]["contracts"]
    return next(one for one in contracts if one["id"] == name)


def of_others(path: Path) -> Iterator[str]:
    """The modules of the standard library and of other projects that a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_what_decides_imports_only_what_is_known_to_have_no_door():
    """A list of doors is never whole: what is on neither list is looked at before it is imported."""
    doors = contract("doors")
    assert not HARMLESS & set(doors["forbidden_modules"])
    excused = {tuple(one.split(" -> ")) for one in doors["ignore_imports"]}
    rooms = {importer for importer, imported_ in excused if imported_ == "*"}
    unknown = {
        f"{module} -> {name}"
        for module, path in modules().items()
        if any(f"{module}.".startswith(f"{one}.") for one in doors["source_modules"])
        and not any(fnmatchcase(module, one.replace(".*", "*")) for one in rooms)
        for name in of_others(path)
        if name.partition(".")[0] not in {*HARMLESS, "webhook"}
        and name not in HARMLESS
        and (module, name) not in excused
    }
    assert unknown == set()


LANGUAGES = (
    "webhook.rego.builtins.graphql",
    "webhook.rego.builtins.json_schema",
    "webhook.rego.builtins.keys",
    "webhook.rego.builtins.templates",
    "webhook.rego.builtins.x509",
    "webhook.rego.check.ir",
    "webhook.golang.templates",
    "webhook.rego",
    "webhook.cel",
    "webhook.parsers",
)
"""Each has words of its own for what any language has (``Call``, ``Token``): within it a class name
has one meaning, and in all the rest, too. ``ir`` is the terms of ``ast`` again, after the checks."""


def room_of(module: str) -> str:
    """The language that a module is about; empty for none."""
    return next((room for room in LANGUAGES if f"{module}.".startswith(f"{room}.")), "")


def statements() -> Iterator[tuple[str, ast.stmt]]:
    """Yields the top-level statements of all modules, with the modules' names."""
    for module, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            yield module, node


def meanings() -> Iterator[tuple[str, str, str]]:
    """Classes, and other names for types, with their modules and what says that two are the same."""
    for module, node in statements():
        within = node.body if isinstance(node, ast.If) else [node]  # `if TYPE_CHECKING`
        for one in within:
            if isinstance(one, ast.ClassDef):
                yield module, one.name, module
            elif isinstance(one, ast.Assign | ast.AnnAssign):
                target = one.target if isinstance(one, ast.AnnAssign) else one.targets[0]
                if isinstance(target, ast.Name) and one.value is not None:
                    yield module, target.id, ast.unparse(one.value)


def test_a_type_s_name_has_one_meaning():
    """A name such as ``Plan`` is unique, or says of which subject it is."""
    places: dict[tuple[str, str], dict[str, str]] = {}
    for module, name, meaning in meanings():
        if name[0].isupper() and not name.isupper():
            places.setdefault((room_of(module), name), {})[meaning] = module
    assert {key: list(found.values()) for key, found in places.items() if len(found) > 1} == {}


def names_in(path: Path) -> Iterator[tuple[str, int]]:
    """Yields the names that a module defines or uses, with the lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name, node.lineno
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name, node.lineno


RIDDLES = frozenset(
    ["asked", "heard", "meant", "said", "spoiled", "told", "wanted", "what", "who", "whose"]
)
"""Names that fit any value: a message, an answer, a type or a user has a name of its own."""


def test_a_result_is_named_by_what_it_is():
    """``found`` is said of everything that a function comes to, and says nothing of it."""
    assert [
        f"{module}:{line}"
        for module, path in modules().items()
        for name, line in names_in(path)
        if name == "found"
    ] == []


def test_names_are_no_riddles():
    code = [*(ROOT / "webhook").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    code += (ROOT / "loadtest").rglob("*.py")
    assert [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(code)
        if path.stem not in GENERATED
        for name, line in names_in(path)
        if name.strip("_").lower() in RIDDLES
    ] == []


PLACEHOLDERS = frozenset(["asked", "made", "one", "own", "stuff", "thing", "told", "wanted"])
"""Words that stand for any value. ``left`` is the partner of ``right``, an operand's side."""


def placeholders(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yields variables, parameters and fields that are named by such a word; a number may be ``one``."""
    numbers = {
        id(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in numbers:
                pass
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                pass
            case _:
                continue
        if name in PLACEHOLDERS:
            yield name, node.lineno


def test_variables_are_named_by_their_value():
    made_up = ast.parse("one = 1\nfor one, thing in a: pass\ndef f(made): x = one\n")
    assert sorted(name for name, _ in placeholders(made_up)) == ["made", "one", "thing"]
    assert [
        f"{module}:{line}: {name}"
        for module, path in modules().items()
        for name, line in placeholders(ast.parse(path.read_text()))
    ] == []


HELPER_RIDDLES = frozenset(["asked", "heard", "made", "meant", "said", "spoiled", "told"])
"""Words of the names of helpers in tests. A test's name is a sentence: it has all but ``told``."""

NAMED_BY_OTHERS = {"connection_made", "is_asked", "made_up"}
"""A method of asyncio's, the question whether a webhook is called, and a kind that tests make up."""


def test_functions_of_tests_are_named_by_what_they_do():
    """``made`` says nothing of what is made: ``policy_event`` does."""
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, Function) and node.name not in NAMED_BY_OTHERS
        if {*node.name.split("_")} & ({"told"} if node.name.startswith("test_") else HELPER_RIDDLES)
    ] == []


BEGINNINGS = re.compile(r"(Whether what|What|Who|Whom|Whose|Which|Those|The same|That of)\b")


def docstrings(tree: ast.Module) -> Iterator[str]:
    """The docstrings of a module, of its classes and functions, and those below fields and constants."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        body = getattr(node, "body", None)
        for named, below in pairwise(body if isinstance(body, list) else ()):
            match named, below:
                case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                    yield text


def test_a_docstring_begins_with_what_a_thing_is_or_does():
    """Such a beginning leaves the noun or the verb to the reader: "Returns …", "The rules of …"."""
    tree = ast.parse('"""A."""\nclass C:\n    "Those."\n    a: int = 0\n    """What it is."""\n')
    assert [text for text in docstrings(tree) if BEGINNINGS.match(text)] == [
        "Those.",
        "What it is.",
    ]
    assert [
        f"{module}: {text.splitlines()[0]}"
        for module, path in modules().items()
        for text in docstrings(ast.parse(path.read_text()))
        if BEGINNINGS.match(text)
    ] == []


ASKS_A_SNAPSHOT = {"webhook.review.walk"}  # by webhook.review.evaluation


def test_a_snapshot_is_asked_in_one_place():
    """A door that asks it itself decides by a part of the policies: mutators and the like are apart."""
    asking = {
        module
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "review"
        and any(
            word in ast.unparse(node.func.value).rpartition(".")[2]
            for word in ("snapshot", "before", "after", "reviewing")
        )
    }
    assert asking <= ASKS_A_SNAPSHOT


ALIKE_BY_CHANCE = {
    "T": "a type variable stands for anything",
    "_INT64": "a bound of 64 bits needs no home",
    "_WORDS": "the constants of JSON, in two languages that have them",
    "STRING": "tokens are numbered in each language",
}


def test_a_constant_is_said_once():
    """Two of one name and one value are one number that somebody will change in one place."""
    places: dict[tuple[str, str], list[str]] = {}
    for module, node in statements():
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if isinstance(target, ast.Name) and target.id.isupper() and node.value is not None:
            value = ast.unparse(node.value)
            if value not in {"{}", "[]", "set()"}:  # to be filled, each for itself
                places.setdefault((target.id, value), []).append(module)
    twice = {key: found for key, found in places.items() if len(found) > 1}
    assert {key: found for key, found in twice.items() if key[0] not in ALIKE_BY_CHANCE} == {}
    assert ALIKE_BY_CHANCE.keys() == {key[0] for key in twice if key[0] in ALIKE_BY_CHANCE}


NAME_CHARACTERS_MIN = 14
"""Shorter texts are words, which two may need for reasons of their own."""


def test_a_name_that_others_gave_is_said_once():
    """A group, a label or an annotation, whatever the constants that hold it are called."""
    places: dict[str, list[str]] = {}
    for module, node in statements():
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            places.setdefault(value.value, []).append(module)
    long = {text: found for text, found in places.items() if len(text) >= NAME_CHARACTERS_MIN}
    assert {text: found for text, found in long.items() if len(found) > 1} == {}


MADE_UP = {Path("tests/test_coverage_floors.py")}
REFERENCE = re.compile(r":(?:mod|class|func|meth|data|attr|exc):`[~!]?(webhook\.[\w.]+)`")
FILE = re.compile(r"(?<![\w/.-])((?:webhook|tests|loadtest)/[\w/]+\.py)\b")


def is_there(dotted: str) -> bool:
    """Whether a module of this name is there, or one that has this name in it."""
    known, parts = modules(), dotted.split(".")
    for end in range(len(parts), 0, -1):
        path = known.get(".".join(parts[:end]))
        if path is not None:
            rest = parts[end:]
            return not rest or re.search(rf"\b{rest[0]}\b", path.read_text()) is not None
    return False


_SMALL = """
a all an and any are as at be been by each every for from has have if in is it its no not of on one or
other than that the their there this to was were what where whether which who with
"""
"""Words that add nothing to a name in a docstring."""


def _words(text: str) -> set[str]:
    """The words of a name or a sentence, without the endings of plurals and of verbs."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", text)
    return {re.sub(r"(ies|es|s|ed|ing|d)$", "", part.lower()) for part in parts}


@dataclass
class _Defined:
    """A class or function with the names of the classes around it."""

    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    name: str


def _defined(node: ast.AST, within: str = "") -> Iterator[_Defined]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{within} {child.name}"
            yield _Defined(child, name)
            yield from _defined(child, name if isinstance(child, ast.ClassDef) else within)


def _repeats(name: str, docstring: str) -> bool:
    """Whether a docstring has no word that the name does not have."""
    return bool(words := _words(docstring) - _words(_SMALL)) and words <= _words(name)


def test_a_docstring_says_more_than_the_name():
    assert _repeats("Disk remove_directory", "Remove a directory.")
    assert not _repeats("Disk remove_directory", "Remove what was delivered.")
    repeating = [
        f"{module}: {one.name}: {text}"
        for module, path in modules().items()
        for one in _defined(ast.parse(path.read_text()))
        if (text := ast.get_docstring(one.node)) and _repeats(one.name, text)
    ]
    assert repeating == []


def test_what_docstrings_and_documents_refer_to_is_there():
    """A module that moves takes along what is said of it."""
    code = (
        path for name in ("webhook", "tests", "loadtest") for path in (ROOT / name).rglob("*.py")
    )
    missing = []
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *code):
        relative, text = path.relative_to(ROOT), path.read_text()
        missing += [f"{relative}: {name}" for name in REFERENCE.findall(text) if not is_there(name)]
        if relative not in MADE_UP and relative.name != "CHANGELOG.md":
            files = set(FILE.findall(text))
            missing += [f"{relative}: {one}" for one in files if not (ROOT / one).is_file()]
    assert missing == []


ASSERTED_BY_ENDING = {
    "test_rego_syntax.test_any_text_is_read_or_refused": "any text at all: no error but the language's own",
    "test_broken_files.test_bytes_of_no_format_end_in_a_value_or_an_error": "any bytes: no error but the parsers' own",
    "test_plan.test_openssl_accepts_the_pair": "OpenSSL refuses a certificate and a key of another by an error",
    "test_alerts_fire.test_promtool_takes_the_rules": "promtool ends with 1, and `check=True` raises",
    "test_verified_code.test_sound_code_passes": "`verify` raises; its other tests hold that it does",
}
"""Tests whose assertion is that nothing raises."""

HELPERS_DEEP = 3
"""The depth to which helpers of helpers are searched for assertions."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Helpers:
    """The functions of a module of tests, methods included, and what it has of other such modules."""

    functions: dict[str, list[Function]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


@cache
def helpers(path: Path) -> Helpers:
    """Returns the helpers of a module, at any depth; none if the file is missing."""
    found = Helpers()
    for node in ast.walk(ast.parse(path.read_text())) if path.is_file() else ():
        if isinstance(node, Function):
            found.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
            for alias in node.names:
                found.imported[alias.asname or alias.name] = (node.module or "", alias.name)
    return found


def defined(path: Path, holder: str, name: str, hops: int = 3) -> list[tuple[Path, Function]]:
    """Returns the possible functions for ``name()`` or ``holder.name()``, judged by text."""
    here = helpers(path)
    found = [(path, function) for function in here.functions.get(name, ())]
    for bound, sought in ((holder, name), (name, "")):
        if bound in here.imported and hops:
            module, original = here.imported[bound]
            folder = ROOT.joinpath(*module.split("."))
            there = folder / f"{original}.py" if sought else folder.with_suffix(".py")
            found += defined(there, "", sought or original, hops - 1)
    return found


def says_so_itself(node: ast.AST) -> bool:
    """Whether it is an assertion."""
    if isinstance(node, ast.Raise) and node.exc is not None:
        return "AssertionError" in ast.unparse(node.exc)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        of = node.func.value
        pytests = isinstance(of, ast.Name) and of.id == "pytest"
        return pytests and node.func.attr in {"raises", "fail", "warns"}
    return isinstance(node, ast.Assert)


def asserts(path: Path, function: Function, deep: int = HELPERS_DEEP) -> bool:
    """Whether a function of a module asserts something, by itself or by a helper of tests."""
    nodes = list(ast.walk(function))
    if any(map(says_so_itself, nodes)):
        return True
    called = {
        ("", node.func.id)
        if isinstance(node.func, ast.Name)
        else (getattr(node.func.value, "id", ""), node.func.attr)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }
    return deep > 0 and any(
        asserts(where, helper, deep - 1)
        for holder, name in called
        for where, helper in defined(path, holder, name)
        if helper is not function
    )


def silent(paths: Iterator[Path]) -> set[str]:
    """The tests in files that assert nothing."""
    return {
        f"{path.stem}.{name}"
        for path in paths
        for name, functions in helpers(path).functions.items()
        if name.startswith("test_") and not all(map(partial(asserts, path), functions))
    }


def test_every_test_asserts_something():
    """A test that cannot fail is a defect."""
    try:
        found = silent((ROOT / "tests").rglob("test_*.py"))
    finally:
        helpers.cache_clear()
    assert found - ASSERTED_BY_ENDING.keys() == set()
    assert ASSERTED_BY_ENDING.keys() - found == set(), "asserts something, or is gone"


def test_a_test_that_only_calls_is_found(tmp_path):
    path = tmp_path / "test_made_up.py"
    path.write_text(
        "import pytest\n"
        "from tests import patience\n"
        "from tests.patience import until\n"
        "def sink(): return 1\n"
        "def holds(): assert sink()\n"
        "def through(): again(); holds()\n"
        "def again(): again()\n"
        "def test_send_is_acknowledged(): sink().send(again(), open)\n"
        "class TestSink:\n"
        "    async def test_in_a_class(self): await sink()\n"
        "def test_by_itself(): assert sink()\n"
        "def test_by_pytest():\n    with pytest.raises(ValueError): sink()\n"
        "def test_by_a_helper_of_a_helper(): through()\n"
        "def test_by_a_helper_elsewhere(): until(sink, '')\n"
        "def test_by_a_module_elsewhere(): patience.until(sink, '')\n"
    )
    assert silent(iter([path])) == {
        "test_made_up.test_send_is_acknowledged",
        "test_made_up.test_in_a_class",
    }
