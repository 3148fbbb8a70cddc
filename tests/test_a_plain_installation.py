"""The wheel without extras, in an environment of its own: small, and whole but for what it names."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.behaviour.serving import unverified
from tests.patience import PATIENCE_SECONDS
from tests.programs import ROOT
from webhook import __version__

INSTALLED_BYTES_MAX = 60 << 20
"""The size of an installation with the command line, the library and files, in bytes."""

HELP_MODULES_MAX = 12
"""The modules of ours that `waddle --help` loads at most: it needs nine."""

SLOW_MODULES = {
    "asyncio",
    "concurrent",
    "email",
    "http",
    "json",
    "logging",
    "socket",
    "ssl",
    "yaml",
}
"""Modules of Python and of others that help has no use for; each takes as long as all of its own."""

WHEEL = f"waddle_admission-{__version__}-py3-none-any.whl"

NO_NETWORK = re.compile(r"error sending request|dns error|Failed to fetch")

LACKING = {
    "audit --once": "cluster",
    "console --port 0 --kubernetes": "cluster",
    "demo": "cluster",
    "migrate gatekeeper": "cluster",
    "policy pull registry.example/a:1": "registry",
    "policy push registry.example/a:1 -f policy.rego": "registry",
    "verify-image registry.example/a:1 -f signed.yaml": "registry",
    "report": "cluster",
    "status": "cluster",
    "uninstall --policies": "cluster",
    "wait --for=enforced RequiredOwner/x": "cluster",
}

SIGNED = """\
apiVersion: waddle.dev/v1alpha1
kind: VerificationPolicy
metadata: {name: signed}
spec:
  images: ["registry.example/*"]
  authorities:
  - name: team
    transparencyLog: Ignored
    key:
      data: |
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6/4vGzwqLcmiAzmlps89Zg9PSUDN
        KWAW6fuVbaeDhhCVNC7n1PCMqMYhb5gTUpEEZyNKSskMzURTc5UjA1Amrw==
        -----END PUBLIC KEY-----
"""

WINDOWS = """
import importlib.abc, os, select, signal, socket, sys

GONE = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in GONE:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Refuse())
for module, names in {
    os: "chown fchown fork forkpty getegid geteuid getgid getgroups getloadavg getpgid getpriority"
    " getsid getuid initgroups killpg lchown mkfifo mknod nice openpty pipe2 posix_fallocate"
    " posix_spawn pread preadv pwrite pwritev register_at_fork sched_getaffinity sched_yield"
    " setpriority setsid statvfs sync sysconf uname wait wait3 wait4"
    " O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC",
    select: "devpoll epoll kqueue poll",
    signal: "SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2"
    " SIGXCPU alarm pause pthread_kill pthread_sigmask setitimer sigwait",
    socket: "AF_UNIX CMSG_LEN SO_PEERCRED SO_REUSEPORT",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
from webhook.cli.main import main
main()
"""
"""Removes the modules that Python lacks on Windows; other differences cannot be tested here."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    """The wheel and what it needs, as they are pinned."""
    folder = tmp_path_factory.mktemp("plain")
    uv = Path(sys.executable).with_name("uv")
    pins = folder / "pins.txt"
    locked = (ROOT / "requirements" / "run.txt").read_text()
    pins.write_text("\n".join(re.findall(r"^[\w.-]+==[\w.]+", locked, re.MULTILINE)))
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
    (wheel,) = folder.glob("*.whl")
    python = folder / "venv" / "bin" / "python"
    installed = subprocess.run(
        [uv, "pip", "install", "--compile-bytecode", "--python", python, "-c", pins, wheel],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if NO_NETWORK.search(installed.stderr):
        pytest.skip(f"no package registry can be reached: {installed.stderr[-300:]}")
    assert installed.returncode == 0, installed.stderr
    return folder / "venv"


def run(*command, cwd=None, check=True, text="") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(one) for one in command],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=check,
    )


def test_it_is_small(environment):
    """Each file as the disk has it, compiled code included."""
    blocks = [file.lstat().st_blocks for file in environment.rglob("*")]

    assert 512 * sum(blocks) <= INSTALLED_BYTES_MAX


@pytest.mark.parametrize("command", LACKING)
def test_a_command_that_lacks_an_extra_says_which(environment, command, tmp_path):
    (tmp_path / "policy.rego").write_text("package p\n")
    (tmp_path / "signed.yaml").write_text(SIGNED)
    done = run(environment / "bin" / "waddle", *command.split(), cwd=tmp_path, check=False)

    assert re.fullmatch(
        r"this command needs \w+, which is not installed: "
        rf"pip install '/\S+/{re.escape(WHEEL)}\[{LACKING[command]}\]'\n",
        done.stderr,
    )
    assert done.returncode == 69


def test_a_built_in_that_lacks_an_extra_says_which(environment, tmp_path):
    query = 'graphql.is_valid("{ a }", "type Query { a: Int }")'
    done = run(environment / "bin" / "waddle", "rego", "eval", query, cwd=tmp_path, check=False)

    assert done.returncode == 2
    assert (
        "graphql-core is not installed, which this needs: install the extra graphql" in done.stdout
    )


def test_a_cluster_s_replica_says_it_too(environment, tmp_path):
    pod = {"POD_NAME": "a", "POD_NAMESPACE": "b", "KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    serve = ["serve", "--kubernetes", "--port=0", "--health-addr=:0", "--prometheus-port=0"]
    done = subprocess.run(
        [environment / "bin" / "waddle", *serve],
        env={**os.environ, **pod},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert done.stderr.endswith(f"/{WHEEL}[cluster]'\n")
    assert done.returncode == 69


def test_files_are_served_without_uvloop(environment, tmp_path):
    serve = ["serve", f"--policies={ROOT / 'policies'}", "--host=127.0.0.1", "--port=0"]
    serve += ["--health-addr=127.0.0.1:0", "--prometheus-port=0", "--log-format=json"]
    with subprocess.Popen(
        [environment / "bin" / "waddle", *serve], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            lines = (json.loads(line) for line in process.stderr)
            address = next(line["admission"] for line in lines if line["msg"] == "serving")
            next(line for line in lines if line["msg"] == "policies in force")
            request = urllib.request.Request(
                f"https://{address}/v1/admit",
                (ROOT / "docs" / "examples" / "bad-pod.json").read_bytes(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(
                request, timeout=PATIENCE_SECONDS, context=unverified()
            ) as answer:
                assert not json.load(answer)["response"]["allowed"]
        finally:
            process.kill()


def test_the_library_is_imported_by_its_name(environment, tmp_path):
    script = (
        "import waddle\n"
        "labels = waddle.POLICIES / 'general' / 'required-labels' / 'template.yaml'\n"
        "constraint = {'apiVersion': 'constraints.gatekeeper.sh/v1beta1', 'kind': 'RequireLabels',\n"
        " 'metadata': {'name': 'x'}, 'spec': {'parameters': {'labels': [{'key': 'owner'}]}}}\n"
        "policies = waddle.Policies.load(labels, values=[constraint])\n"
        "pod = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'a'}}\n"
        "print(policies.review(pod)[0].message)\n"
    )
    done = run(environment / "bin" / "python", "-W", "ignore", "-c", script, cwd=tmp_path)

    assert done.stdout == 'label "owner" is required\n'


@pytest.mark.parametrize(
    ("command", "code", "shown"),
    [
        ("--help", 0, "Commands:"),
        ("version", 0, "waddle"),
        ("test -f policies -f docs/examples/bad-pod.json", 1, "privileged must not be true"),
        ("verify policies/general/required-labels", 0, "PASS"),
        ("check -f policies", 0, "policies can be used"),
        ("mutate -f docs/examples/good-pod.json", 0, "kind: Pod"),
        ("migrate gatekeeper -f policies/general", 0, "run unchanged"),
        ("decisions stats -", 0, "policy, action"),
        ("rego eval -f pretty 1+1", 0, "2"),
        ("cel eval 1+1", 0, "2"),
        ("conftest parse docs/examples/good-pod.json", 0, "uid"),
        ("serve --policies policies", 69, "needs Linux or macOS"),
        ("console --port 0 --policies policies", 69, "needs Linux or macOS"),
    ],
)
def test_the_command_line_does_without_what_windows_lacks(environment, command, code, shown):
    python = environment / "bin" / "python"
    done = run(python, "-P", "-c", WINDOWS, *command.split(), cwd=ROOT, check=False)

    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert shown in done.stdout + done.stderr


NO_ZONES = "import sys; sys.modules['tzdata'] = None; from webhook.cli.main import main; main()"


@pytest.mark.parametrize(
    "command",
    [
        ("rego", "eval", 'time.clock([0, "Europe/Paris"])'),
        ("cel", "eval", "timestamp('2000-01-01T00:00:00Z').getHours('Europe/Paris')"),
    ],
)
def test_a_machine_without_time_zones_says_so(environment, command):
    """A policy would find nothing, and look right; what other systems have is not installed."""
    done = subprocess.run(
        [environment / "bin" / "python", "-P", "-c", NO_ZONES, *command],
        env={**os.environ, "PYTHONTZPATH": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "no time zones: install its tzdata" in done.stdout + done.stderr
    assert done.returncode == 2


HELP = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from webhook.cli.main import main
main()
"""


def test_help_loads_next_to_nothing(environment):
    """Loading is nearly all that it does; `make bench-command-line` measures the time."""
    done = run(environment / "bin" / "python", "-P", "-c", HELP, "--help")

    assert done.stdout.startswith("Usage: ")
    loaded = set(done.stderr.split())
    packages = {name.partition(".")[0] for name in loaded}
    assert packages - sys.stdlib_module_names <= {"__main__", "click", "webhook"}
    assert not packages & SLOW_MODULES
    assert len([name for name in loaded if name.startswith("webhook")]) <= HELP_MODULES_MAX
