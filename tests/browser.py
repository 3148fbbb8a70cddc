"""A real browser for tests of pages: Chromium by its driver, in the W3C's WebDriver protocol.

Debian has both (`apt install chromium chromium-driver`), and ``python -m tests.browser`` installs
them where it may. The protocol is JSON by HTTP, and of it a few commands are needed.
"""

import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import pytest

from tests import programs
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

PACKAGES = ("chromium", "chromium-driver")
DOWNLOAD_SECONDS = 240
"""Some 100 MB. What is ended then is a download, which harms nothing."""

INSTALL_SECONDS = 600
MISSING = f"no Chromium with its driver: apt install {' '.join(PACKAGES)}"

ARGUMENTS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # a container's has 64 MiB
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)


class BrowserError(Exception):
    """The driver could not do what it was told."""


def required() -> tuple[str, str]:
    """Chromium and its driver; skips the test, with the reason, where they are not there."""
    for name in ("chromium", "google-chrome"):
        if found := programs.of_the_system(name, "chromedriver"):
            return str(found[0]), str(found[1])
    pytest.skip(MISSING)


def install() -> str:
    """Have them where root may install Debian's packages; otherwise why they are not there."""
    if shutil.which("chromium") and shutil.which("chromedriver"):
        return ""
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        return f"{MISSING} (by root, on Debian)"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = [apt, "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=30", "install"]
    for command, seconds in (
        ([apt, "update"], DOWNLOAD_SECONDS),
        ([*get, "--download-only", *PACKAGES], DOWNLOAD_SECONDS),
        ([*get, "--no-download", *PACKAGES], INSTALL_SECONDS),
    ):
        try:
            ended = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{MISSING} ({' '.join(command[:2])} took more than {seconds} s)"
        if ended.returncode:
            last = (ended.stdout.strip() or "no reason").splitlines()[-1]
            return f"{MISSING} ({last})"
    return ""


class Browser:
    """A browser with one window."""

    def __init__(self, browser: str, driver: str, profile: Path) -> None:
        # Not a port that the system chooses: the driver takes one that is free of IPv6, and ends
        # where the same is taken of IPv4.
        self._driver = subprocess.Popen(
            [driver, f"--port={free_port()}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._browser = browser
        self._profile = profile
        self._port = 0
        self._session = ""

    def __enter__(self) -> Self:
        assert self._driver.stdout is not None
        line = ""
        for line in self._driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self._port = int(found[1])
                break
        assert self._port, f"the driver did not start: {line}"
        arguments = [*ARGUMENTS, f"--user-data-dir={self._profile}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # it does not start as root with it
        patience = int(PATIENCE_SECONDS * 1000)
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": self._browser, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"pageLoad": patience, "script": patience},
        }
        try:
            made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        except BrowserError as error:
            self.__exit__()
            pytest.skip(f"Chromium does not start on this machine: {error}")
        self._session = f"/session/{made['sessionId']}"
        return self

    def __exit__(self, *_: object) -> None:
        if self._session:
            self._ask("DELETE", self._session)
        self._driver.terminate()
        self._driver.wait(PATIENCE_SECONDS)
        assert self._driver.stdout is not None
        self._driver.stdout.close()

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_SECONDS)
        try:
            text = None if method != "POST" else json.dumps(body or {})
            connection.request(method, path, text, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise BrowserError(f"{value['error']}: {value['message']}")
        return value

    def notify(self, command: str, **body: Any) -> Any:
        """A command of the session."""
        return self._ask("POST", f"{self._session}/{command}", body)

    def go(self, address: str) -> None:
        """Open a page, and wait until it is there."""
        self.notify("url", url=address)

    def run(self, script: str, *arguments: Any) -> Any:
        """Returns the result of a JavaScript function with this body."""
        return self.notify("execute/sync", script=script, args=list(arguments))

    def texts(self, selector: str) -> list[str]:
        """The texts of elements, as a reader sees them."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map(one => one.innerText)",
            selector,
        )
        return found

    def click(self, selector: str) -> None:
        """Click on the first such element."""
        self.notify(f"element/{self._element(selector)}/click")

    def write(self, selector: str, text: str) -> None:
        """Write into a field, key by key."""
        self.notify(f"element/{self._element(selector)}/value", text=text)

    def _element(self, selector: str) -> str:
        found = self.notify("element", using="css selector", value=selector)
        return str(next(iter(found.values())))

    def press(self, key: str, times: int = 1) -> None:
        """Press a key, and let it go."""
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.notify("actions", actions=[{"type": "key", "id": "keyboard", "actions": keys * times}])

    def resize(self, width: int, height: int) -> None:
        """Show pages as on a screen of this size."""
        self.chrome(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def chrome(self, command: str, **parameters: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self.notify("goog/cdp/execute", cmd=command, params=parameters)

    def picture(self) -> bytes:
        """Returns a screenshot as PNG."""
        return base64.b64decode(self._ask("GET", f"{self._session}/screenshot"))

    def complaints(self, address: str) -> list[str]:
        """Returns the browser's complaints about these pages since the last call.

        Scripts and requests that were refused, above all. A page that was open when its server
        ended complains, too, and is not meant.
        """
        return [
            item["message"]
            for item in self.notify("se/log", type="browser")
            if item["level"] in ("SEVERE", "WARNING") and address in item["message"]
        ]

    def until(self, script: str, *arguments: Any) -> None:
        """Wait until a function of this body returns something true."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not self.run(script, *arguments):
            assert time.monotonic() < end, f"never so: {script}; {self.texts('main')}"
            time.sleep(0.05)


if __name__ == "__main__":
    if missing := install():
        print(f"tests of pages in a browser will be skipped: {missing}", file=sys.stderr)
    sys.exit(1 if missing else 0)
