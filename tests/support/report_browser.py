"""A real browser -> a report in it: what it shows, and whether anything went wrong."""

from __future__ import annotations

import base64
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.load import PATIENCE

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def browser_programs() -> tuple[str, str] | None:
    """Where Chromium and its driver are; None where one of them is not installed."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    service = shutil.which("chromedriver")
    return None if program is None or service is None else (program, service)


@contextmanager
def started_browser() -> Iterator[Any]:
    """A Chromium without a window, with a profile of its own."""
    from selenium import webdriver

    programs = browser_programs()
    assert programs is not None
    with tempfile.TemporaryDirectory(
        prefix="mixedgm-browser-", ignore_cleanup_errors=True
    ) as folder:
        options = webdriver.ChromeOptions()
        options.binary_location = programs[0]
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(programs[1])
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_script_timeout(PATIENCE)
        try:
            yield driver
        finally:
            driver.quit()


class Page:
    """A report that is open in the browser."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, file: Path) -> None:
        self.driver.get_log("performance")
        self.driver.get_log("browser")
        self.driver.get(file.as_uri())
        self.settle()

    def run(self, script: str, *given: object) -> Any:
        """What a script returns: `arguments[0]` and so on are what is given."""
        return self.driver.execute_script(script, *given)

    def settle(self) -> None:
        """Wait for two frames: what was asked for is drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "requestAnimationFrame(() => requestAnimationFrame(() => done()));"
        )

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"
        return list(self.run(script, selector))

    def click(self, selector: str, at: int = 0) -> None:
        self.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, at)
        self.settle()

    def type_into(self, selector: str, text: str) -> None:
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}))",
            selector,
            text,
        )
        self.settle()

    def press(self, selector: str, *keys: str, **more: bool) -> None:
        for key in keys:
            self.run(
                "const e = document.querySelector(arguments[0]); e.focus();"
                "e.dispatchEvent(new KeyboardEvent('keydown',"
                " {key: arguments[1], bubbles: true, cancelable: true, ...arguments[2]}))",
                selector,
                key,
                more,
            )
        self.settle()

    def colours(self) -> dict[str, int]:
        """How many pixels of the graph have each colour."""
        return dict(
            self.run(
                "const c = document.getElementById('graph');"
                "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                "const n = {};"
                "for (let k = 0; k < d.length; k += 4) {"
                "  const key = d[k] + ',' + d[k + 1] + ',' + d[k + 2] + ',' + d[k + 3];"
                "  n[key] = (n[key] || 0) + 1; }"
                "return n"
            )
        )

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, theme: str) -> None:
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.settle()

    def picture(self) -> bytes:
        return base64.b64decode(self.driver.get_screenshot_as_base64())

    def requests(self) -> list[str]:
        """The addresses that were asked for since the page was opened."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def expect_no_trouble(self) -> None:
        """No error, no warning and no violation of the policy in the console.

        Chromium remarks on pixels that are read back often: that is `colours`, not the page.
        """
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        assert [message for message in said if "willReadFrequently" not in message] == []
