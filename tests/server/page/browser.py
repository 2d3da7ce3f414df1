"""Chromium for checks of a page."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time


def wait_for(holds, what, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = holds()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s for: {what}")


class Browser:
    """Chromium and one page in it, by the DevTools protocol over a pipe."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp()
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def place_pipes():
            # Through high numbers, as one of the pipes may be 3 or 4 already.
            os.dup2(to_browser, 63)
            os.dup2(from_browser, 64)
            os.dup2(63, 3)
            os.dup2(64, 4)
            for number in (3, 4):
                os.set_inheritable(number, True)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", f"--user-data-dir={self.folder}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.next_id = 0
        self.answers = {}
        self.events = []
        self.changed = threading.Condition()
        self.session = None
        threading.Thread(target=self.read, daemon=True).start()
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def read(self):
        held = b""
        while part := os.read(self.read_end, 1 << 16):
            held += part
            *messages, held = held.split(b"\0")
            with self.changed:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.changed.notify_all()

    def call(self, method, **parameters):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        with self.changed:
            assert self.changed.wait_for(lambda: message["id"] in self.answers, 60), f"{method} has no answer"
            answer = self.answers.pop(message["id"])
        assert "error" not in answer, f"{method}: {answer}"
        return answer["result"]

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, f"{script}: {result['exceptionDetails']}"
        return result["result"].get("value")

    def holds(self, script):
        try:
            return self.run(script)
        except AssertionError as error:  # the page was left while the question was on its way
            if "navigated" in str(error):
                return False
            raise

    def open(self, address):
        self.call("Page.navigate", url=address)
        wait_for(lambda: self.holds("document.readyState === 'complete' && location.href !== 'about:blank'"), address)

    def reload(self):
        self.run("window.isOld = true; location.reload()")
        wait_for(lambda: self.holds("!window.isOld && document.readyState === 'complete'"), "a reload")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, is_dark):
        value = "dark" if is_dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def press(self, key, code=0):
        text = {"Enter": "\r"}.get(key)
        extra = {"text": text} if text else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra)

    def write(self, text):
        self.run("document.querySelector('#text').focus()")
        self.call("Input.insertText", text=text)
        self.press("Enter", 13)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def problems(self):
        """What the console says, but for answers that are errors, which the browser reports itself."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"].get("exception", {}).get("description"))
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["source"] != "network":
                found.append(event["params"]["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(str(event["params"]["args"]))
        return found

    def addresses(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
