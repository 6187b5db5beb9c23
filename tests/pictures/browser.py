"""A browser without a window, which tests ask what a page shows: Chromium, by its DevTools protocol over two pipes."""

import json
import os
import shutil
import subprocess
import tempfile


def chromium():
    """The program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """A page in Chromium; a context manager."""

    def __init__(self, width=1400, height=20000):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()

        def connect():  # Chromium reads 3 and writes 4.
            high = [os.dup2(descriptor, 100 + i) for i, descriptor in enumerate((to_read, to_write))]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
             f"--window-size={width},{height}", f"--user-data-dir={self._folder.name}", "about:blank"],
            close_fds=False, preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._rest, self._number, self._session, self.errors = b"", 0, None, []
        target = next(one for one in self.ask("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.ask("Page.enable")
        self.ask("Runtime.enable")

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        os.close(self._to)
        self._process.terminate()
        self._process.wait()
        os.close(self._from)
        self._folder.cleanup()

    def _message(self):
        while b"\0" not in self._rest:
            read = os.read(self._from, 1 << 20)
            if not read:
                raise EOFError("the browser has ended")
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(message)
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        return message

    def ask(self, method, **parameters):
        """What a method of the protocol returns."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(answer["error"]["message"])
                return answer["result"]

    def open(self, file):
        """Opens a file, and waits until it is loaded."""
        self.ask("Page.navigate", url=file.resolve().as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def value(self, script):
        """What a script comes to, as JSON; a promise is waited for."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", script))
        return result["result"].get("value")
