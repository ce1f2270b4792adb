"""Drives a real Firefox over Marionette, the protocol that Firefox itself speaks.

A message is its length in bytes, a colon and JSON: `[0, ID, COMMAND, PARAMETERS]` to Firefox, and
`[1, ID, ERROR, RESULT]` from it. No other program is needed: geckodriver only translates WebDriver
into the same messages.
"""

import json
import socket
import subprocess
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from testing.browsers.chromium import SCRIPT_TIMEOUT_MS, Tab
from testing.servers.ports import free_port
from testing.service import STOP_TIMEOUT_S, wait_until

FIREFOX = "/usr/bin/firefox-esr"
_REPLY_TIMEOUT_S = 120
_PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.disable-localhost-when-offline": True,
    "network.proxy.type": 0,
    "services.settings.server": "",
    "toolkit.telemetry.enabled": False,
}


class _Firefox:
    """A session of Marionette."""

    def __init__(self, port: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), _REPLY_TIMEOUT_S)
        self._stream = self._connection.makefile("rb")
        self._calls = 0
        self._receive()  # the greeting
        self.call("WebDriver:NewSession")
        self.call("WebDriver:SetTimeouts", script=SCRIPT_TIMEOUT_MS)

    def call(self, command: str, **parameters: Any) -> Any:
        """Run a command and return its result."""
        self._calls += 1
        message = json.dumps([0, self._calls, command, parameters]).encode()
        self._connection.sendall(b"%d:%b" % (len(message), message))
        _, call, error, result = self._receive()
        assert call == self._calls, (call, self._calls)
        assert error is None, error
        return _value_of(result)

    def set_offline(self, *, is_offline: bool) -> None:
        """Take the network away from all tabs, or give it back."""
        self.call("Marionette:SetContext", value="chrome")
        script = "Services.io.offline = arguments[0]"
        self.call("WebDriver:ExecuteScript", script=script, args=[is_offline])
        self.call("Marionette:SetContext", value="content")

    def quit(self) -> None:
        """End the browser without its questions."""
        self.call("Marionette:Quit", flags=["eForceQuit"])

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._connection.close()

    def _receive(self) -> Any:
        length = b""
        while (byte := self._stream.read(1)) != b":":
            assert byte, "Firefox closed the connection"
            length += byte
        return json.loads(self._stream.read(int(length)))


def _value_of(result: Any) -> Any:
    """Return the result itself, or what it wraps, as WebDriver does."""
    wrapper = cast("Mapping[str, Any] | None", result)
    return wrapper["value"] if wrapper and list(wrapper) == ["value"] else wrapper


@contextmanager
def opened_firefox(profile: Path) -> Generator[Tab]:
    """Start a headless Firefox with a new profile; stop it afterwards."""
    port = free_port()
    _write_profile(profile, port)
    flags = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
    with profile.with_suffix(".log").open("wb") as output:
        process = subprocess.Popen(
            [FIREFOX, *flags, "--profile", profile], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_until(lambda: _is_up(port), "Firefox answers")
        with closing(_Firefox(port)) as browser:
            yield Tab(browser)
            browser.quit()
        process.wait(STOP_TIMEOUT_S)
    finally:
        process.kill()
        process.wait(STOP_TIMEOUT_S)


def _write_profile(profile: Path, port: int) -> None:
    profile.mkdir()
    values = {**_PREFERENCES, "marionette.port": port}
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(values[name])});\n" for name in values]
    (profile / "user.js").write_text("".join(lines))


def _is_up(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
