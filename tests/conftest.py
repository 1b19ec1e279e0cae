"""A real browser for the tests: Chromium, driven over a pipe in its DevTools protocol with the standard library."""

import base64
import json
import os
import shutil
import subprocess
import time

import pytest

CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome", "chrome") if (p := shutil.which(n))), None
)
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe"
)


class Browser:
    """One headless Chromium with one page."""

    def __init__(self, profile):
        import fcntl

        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (theirs_in, theirs_out)]  # away from 3 and 4

        def wire():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(
            command, preexec_fn=wire, close_fds=False, stdin=quiet, stdout=quiet, stderr=quiet
        )
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.reader, self.writer = os.fdopen(ours_in, "rb", buffering=0), os.fdopen(ours_out, "wb", buffering=0)
        self.pending, self.events, self.number, self.session = b"", [], 0, None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def receive(self):
        while b"\0" not in self.pending:
            block = self.reader.read(1 << 16)
            if not block:
                raise RuntimeError("the browser has gone")
            self.pending += block
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1200, height=900, dark=False, query=""):
        """Show a file and wait until its script has drawn everything."""
        self.events.clear()
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=path.as_uri() + query)
        limit = time.monotonic() + 30
        while self.run("document.readyState + location.href") != "complete" + path.as_uri() + query:
            assert time.monotonic() < limit, "the page was not loaded"
            time.sleep(0.05)

    def wait(self, expression, seconds=20):
        """Whether an expression becomes true in the page."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            if self.run(expression):
                return True
            time.sleep(0.05)
        return False

    def run(self, expression):
        """Value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def key(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code or key, windowsVirtualKeyCode=KEYS[key], **text
            )

    def point(self, selector, across=0.5, down=0.5):
        """Move the pointer over an element."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({selector!r});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        x, y = box[0] + across * box[2], box[1] + down * box[3]
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector):
        x, y = self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self):
        return base64.b64decode(self.send("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"])

    def requests(self):
        """Addresses that the page asked for."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """Exceptions and error messages of the page."""
        wrong = [e for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        logs = [e["params"]["entry"] for e in self.events if e.get("method") == "Log.entryAdded"]
        return wrong + [entry for entry in logs if entry["level"] == "error"]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.close()
        self.writer.close()


KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if os.name != "posix":
        pytest.skip("the pipe to the browser is made the POSIX way")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the page is not tried in a browser")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
