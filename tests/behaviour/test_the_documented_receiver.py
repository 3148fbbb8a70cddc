"""The receiver that docs/protocol.md writes out, as a process, and a replica that sends to it."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.decisions.process import AMPLE, ROOT
from tests.patience import PATIENCE_SECONDS


def test_the_documented_receiver_of_thirty_lines_does_as_it_says(tmp_path: Path) -> None:
    """The program of docs/protocol.md, as it stands there, takes decisions and acknowledges them."""
    text = (ROOT / "docs" / "protocol.md").read_text()
    program = text.partition("```python\n")[2].partition("```")[0]
    assert len(program.splitlines()) <= 30
    path = tmp_path / "s"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    reader = threading.Thread(target=process.stdout.read)
    try:
        while not path.exists():
            assert process.poll() is None
        config = tmp_path / "exporter.yaml"
        settings = {"sidecarURL": f"unix://{path}", "connectSeconds": 20, "queue": AMPLE}
        config.write_text(json.dumps(settings))
        replica = subprocess.Popen(
            [sys.executable, "-m", "tests.decisions.replica", str(config), "pod", str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert replica.stdout is not None
        assert replica.stdout.readline() == "ready\n"
        lines = [json.loads(process.stdout.readline()) for _ in range(20)]
        assert [line["sequence"] for line in lines] == list(range(1, 21))
        # It prints what it gets, and must not wait for a reader.
        reader.start()
        replica.send_signal(signal.SIGTERM)
        counters = json.loads(replica.communicate(timeout=PATIENCE_SECONDS)[0])
        assert counters["acknowledged"] == counters["offered"] > 20
    finally:
        process.kill()
        process.wait()
        if reader.is_alive():
            reader.join()
        process.stdout.close()
