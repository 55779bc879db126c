"""A headless Chromium, driven over its own debugging port: real key events, no further package."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

from auditlib.notebook_export import BROWSERS

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def find_browser() -> str | None:
    return next(
        (p for name in (os.environ.get("AUDITLIB_CHROMIUM"), *BROWSERS) if name and (p := shutil.which(name))), None
    )


class Page:
    """One tab; every wait has an end."""

    def __init__(self, browser: str, downloads: Path | None = None):
        self.loop = asyncio.new_event_loop()
        self.profile = Path(tempfile.mkdtemp(prefix="au"))
        self.number = 0
        self.events: list[dict[str, Any]] = []  # of what was enabled: console, network
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--remote-debugging-port=0", "--window-size=1200,1400",
                   f"--user-data-dir={self.profile}", "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._connect(downloads)
        except BaseException:
            self.close()
            raise

    def _connect(self, downloads: Path | None) -> None:
        port = self.profile / "DevToolsActivePort"
        until(lambda: port.exists() and len(port.read_text().split()) == 2, "the browser's port", 60)
        number, path = port.read_text().split()

        async def connect() -> Any:  # within the loop that it belongs to
            return await websocket_connect(f"ws://127.0.0.1:{number}{path}", max_message_size=2**30)

        self.socket = self.loop.run_until_complete(connect())
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")
        if downloads is not None:
            self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.loop.run_until_complete(asyncio.wait_for(self._call(method, params), 60))

    async def _call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        await self.socket.write_message(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while True:
            said = json.loads(await self.socket.read_message())
            if "method" in said:
                self.events.append(said)
            if said.get("method") == "Page.javascriptDialogOpening":  # leaving a page with unsaved decisions: yes
                self.number += 1
                await self.socket.write_message(json.dumps({"id": self.number, "method": "Page.handleJavaScriptDialog",
                                                            "params": {"accept": True},
                                                            "sessionId": self.session}))  # fmt: skip
            if said.get("id") == message["id"]:
                assert "error" not in said, said
                return said["result"]

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str, seconds: float = 90) -> None:
        until(lambda: self._settled(expression), expression, seconds)

    def _settled(self, expression: str) -> Any:
        try:
            return self.value(expression)
        except AssertionError:  # the page is on its way to another
            return False

    def press(self, key: str) -> None:
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        more = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.loop.close()
        shutil.rmtree(self.profile, ignore_errors=True)


def until(test: Any, what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, f"waited {seconds:g} s for {what}"
        time.sleep(0.1)
