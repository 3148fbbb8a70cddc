"""Large functions are compiled by another interpreter, and come to the same."""

import pytest

from webhook.app import compilation
from webhook.app.compilation import LARGE_CHARACTERS, CodeProcess
from webhook.constraint.client import Client
from webhook.constraint.drivers.rego import RegoDriver
from webhook.constraint.targets.admission import AdmissionTarget
from webhook.log import Log
from webhook.rego.write.generate import compile_parts

SMALL = "def small():\n    return 1\n"
LARGE = "def large():\n" + "    x = 1\n" * (LARGE_CHARACTERS // 8)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Returns the list of compilations in another process."""
    calls: list[list[str]] = []
    real = compilation._compile_elsewhere  # watched, and called through

    def watched(parts: list[str]) -> object:
        codes = real(parts)
        calls.append(list(parts))
        return codes

    monkeypatch.setattr(compilation, "_compile_elsewhere", watched)
    return calls


def make(*, is_busy: bool = True) -> CodeProcess:
    """A process for large functions, where reviews wait or none do."""
    return CodeProcess(lambda: is_busy, Log(lambda _line: None).logger("test"))


def test_only_large_functions_go_elsewhere_and_the_code_is_the_same(
    elsewhere: list[list[str]],
) -> None:
    """Instruction for instruction, in the order of the parts."""
    parts = [SMALL, LARGE, SMALL, LARGE]
    assert make()(parts) == compile_parts(parts)
    assert elsewhere == [[LARGE, LARGE]]


def test_nothing_goes_elsewhere_while_nobody_waits(elsewhere: list[list[str]]) -> None:
    """At start, a process for each template would only delay readiness."""
    make(is_busy=False)([LARGE])
    make()([SMALL])
    assert elsewhere == []


def test_what_cpython_refuses_is_refused_in_its_own_words() -> None:
    """Nesting beyond its bounds, found in the other process, is the same error here."""
    nested = (
        LARGE + "".join(f"{' ' * (4 + n)}for a{n} in ():\n" for n in range(30)) + " " * 40 + "0"
    )
    with pytest.raises(SyntaxError, match="too many statically nested blocks"):
        make()([nested])


def test_a_machine_that_starts_no_process_compiles_all_the_same(
    monkeypatch: pytest.MonkeyPatch, elsewhere: list[list[str]]
) -> None:
    """This happens in a container at its limit of processes."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert make()([LARGE]) == compile_parts([LARGE])
    assert elsewhere == []


def test_the_driver_compiles_through_it(elsewhere: list[list[str]]) -> None:
    """A template with a long rule is one call, whatever it defines."""
    lines = "\n".join(f'  not input.review.object.absent{n} == "{n}"' for n in range(60))
    rego = f'package long\nviolation[{{"msg": "found"}}] {{\n{lines}\n}}'
    target = {"target": "admission.k8s.gatekeeper.sh", "rego": rego}
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "long"},
        "spec": {"crd": {"spec": {"names": {"kind": "Long"}}}, "targets": [target]},
    }
    client = Client(targets=[AdmissionTarget()], drivers=[RegoDriver(compile_parts=make())])
    client.add_template(template)
    assert len(elsewhere) == 1
