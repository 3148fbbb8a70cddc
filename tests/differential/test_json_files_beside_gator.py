"""Files named ``.json`` are read as gator reads them, or reported, and never skipped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import policies
from tests.patience import PATIENCE_SECONDS
from tests.programs import Programs

POD = '"apiVersion":"v1","kind":"Pod","metadata":{"name":"q","namespace":"default"}'
OTHER = POD.replace('"q"', '"r"')
REGO = """package denyall
violation[{"msg": msg}] { msg := sprintf("no Pod %v", [input.review.object.metadata.name]) }
"""
FILES = {
    "a trailing comma": f"{{{POD},}}",
    "a comment": f"# c\n{{{POD}}}",
    "a comment of another language": f"// c\n{{{POD}}}",
    "tabs": "{\n\t" + POD.replace(",", ",\n\t") + "\n}",
    "no quotes": "{apiVersion: v1, kind: Pod, metadata: {name: q, namespace: default}}",
    "single quotes": f"{{{POD}}}".replace('"', "'"),
    "no number": f'{{{POD},"x":NaN}}',
    "infinity": f'{{{POD},"x":-Infinity}}',
    "half a pair": f'{{{POD},"x":"\\ud800"}}',
    "the other half": f'{{{POD},"x":"\\udc00 \\\\ud800"}}',
    "a pair": f'{{{POD},"x":"\\ud83d\\ude00"}}',
    "a slash": f'{{{POD},"x":"a\\/b"}}',
    "a large number": f'{{{POD},"x":123456789012345678901234567890}}',
    "beyond floats": f'{{{POD},"x":1e999}}',
    "a key twice": f'{{{POD},"kind":"Pod"}}',
    "a control": f'{{{POD},"x":"a\x01b"}}',
    "a line within a text": f'{{{POD},"x":"a\nb"}}',
    "one after the other": f"{{{POD}}}{{{OTHER}}}",
    "as YAML separates": f"{{{POD}}}\n---\n{{{OTHER}}}",
    "a leading zero": f'{{{POD},"x":01}}',
    "a plus": f'{{{POD},"x":+1}}',
    "a leading dot": f'{{{POD},"x":.5}}',
    "a hexadecimal": f'{{{POD},"x":0x1f}}',
    "an array": f"[{{{POD}}}]",
    "a text": '"x"',
    "half": f"{{{POD}",
    "something behind": f"{{{POD}}} x",
    "an empty key": f'{{{POD},"":1}}',
    "an escape in a key": f'{{{POD},"\\u0078":1}}',
}


def output_of(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    return done.stdout + done.stderr


def names(text: str) -> set[str]:
    return {name for name in ("q", "r") if f"no Pod {name}" in text}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_file_is_read_as_gator_reads_it_or_named(
    content: str, tmp_path: Path, program: Programs
) -> None:
    template = policies.template("DenyAll", REGO)
    constraint = policies.constraint("DenyAll", "c", kinds=["Pod"])
    (tmp_path / "policy.yaml").write_text(f"{json.dumps(template)}\n---\n{json.dumps(constraint)}")
    (tmp_path / "x.json").write_text(content)
    options = ["test", "-f", "policy.yaml", "-f", "x.json"]
    theirs = output_of([str(program("gator")), *options], tmp_path)
    ours = output_of([sys.executable, "-m", "webhook", *options], tmp_path)
    assert "Traceback" not in ours
    if found := names(theirs):
        assert names(ours) == found
    else:
        assert names(ours) or "x.json" in ours
