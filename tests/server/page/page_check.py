#!/usr/bin/env python3
"""Uses the server's page in Chromium, without a window, as a person would.

    page_check.py PROGRAM MODEL [--pictures FOLDER]

PROGRAM is weft, and MODEL any model for it. Answers of known texts come from a server of this script, which serves the
page of PROGRAM with the same fields. Prints "is skipped" and why if there is no Chromium.
"""

import argparse
import http.client
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from browser import Browser, wait_for

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
ANSWER = """# Cells

Some *markup* with `code`, <img src=x onerror="window.broken = 1"> and <script>window.broken = 2</script>, a
[link](javascript:window.broken=3) and [another](https://example.org/).

| a | b |
|---|---|
| 1 | **2** |

1. one
   - inner
2. two

```python
print("<b>" * 100)  # a line that is much wider than a small screen, so that its block scrolls and not the page
```
"""


class Scripted(http.server.BaseHTTPRequestHandler):
    """The page, and answers of the text ANSWER."""

    page, fields = b"", {}
    key = None
    asked = []

    def log_message(self, *_):
        pass

    def reply(self, status, body, fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self):
        if not self.key or self.headers.get("authorization") == "Bearer " + self.key:
            return False
        self.reply(401, b'{"error":{"message":"wanted a key"}}', {"content-type": "application/json"})
        return True

    def do_GET(self):
        if self.path == "/":
            self.reply(200, self.page, self.fields)
        elif not self.refuse():
            self.reply(200, b'{"data":[{"id":"scripted","max_model_len":4096}]}', {"content-type": "application/json"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.refuse():
            return
        Scripted.asked.append(body)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()

        def event(delta, finish=None, **more):
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
            self.wfile.write(f"data: {json.dumps({'choices': choices, **more})}\n\n".encode())
            self.wfile.flush()

        event({"role": "assistant", "content": ""})
        event({"reasoning": "I think of <b>cells</b>."})
        for piece in re.findall(r".{1,7}", ANSWER, re.DOTALL):
            event({"content": piece})
            time.sleep(0.002)
        event({"content": ""}, "stop")
        event(None, usage={"prompt_tokens": 5, "completion_tokens": 100, "total_tokens": 105})
        self.wfile.write(b"data: [DONE]\n\n")


class Weft:
    def __init__(self, program, model):
        self.folder = tempfile.mkdtemp()
        template = os.path.join(self.folder, "template.jinja")
        with open(template, "w") as file:
            file.write(TEMPLATE)
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", "--chat-template", template],
                                        stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r" on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        raise AssertionError(f"{program} serve {model} does not start")

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path)
        response = connection.getresponse()
        return response, response.read()

    def load(self):
        return json.loads(self.get("/load")[1])["server_load"]

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def is_idle(browser):
    return browser.run("document.querySelector('#stop').hidden")


def fits_the_width(browser):
    return browser.run("document.documentElement.scrollWidth <= innerWidth")


def check_scripted(browser, address, pictures):
    browser.size(1100, 800)
    browser.open(address)
    wait_for(lambda: browser.run("document.querySelector('#model').textContent") == "scripted", "the model's name")
    browser.write("What is a cell?")
    wait_for(lambda: browser.run("document.querySelectorAll('.assistant table').length"), "a table")
    wait_for(lambda: is_idle(browser), "the end of the answer")
    assert browser.run("window.broken") is None, "an answer ran a script"
    assert browser.run("document.querySelectorAll('#log img, #log script').length") == 0
    assert browser.run("[...document.querySelectorAll('#log a')].map(a => a.protocol).join()") == "https:"
    text = browser.run("document.querySelector('.assistant .body').innerText")
    assert '<img src=x onerror="window.broken = 1">' in text and "<script>" in text, text
    assert browser.run("document.querySelector('.assistant details').open") is False, "thoughts are folded"
    assert "100 tokens" in browser.run("document.querySelector('.stats').textContent")
    assert browser.run("document.querySelector('.assistant ol ul li').textContent") == "inner"
    for name, width, is_dark in (("light", 1100, False), ("dark", 1100, True), ("small", 360, False)):
        browser.size(width, 800)
        browser.dark(is_dark)
        assert fits_the_width(browser), f"the page is wider than {width} pixels"
        if pictures:
            time.sleep(0.5)  # the list moves out of a small window
            browser.picture(os.path.join(pictures, name + ".png"))
    check_branches(browser)
    check_settings(browser, pictures)


def check_branches(browser):
    press = "[...document.querySelectorAll('.tools button')].find(b => b.textContent === '{}').click()"
    browser.run(press.format("Again"))
    wait_for(lambda: is_idle(browser), "another answer")
    assert "2/2" in browser.run("document.querySelector('.assistant .tools').textContent")
    browser.run(press.format("Edit"))
    browser.run("const area = document.querySelector('.edit textarea'); area.value = 'Edited'; area.form.requestSubmit()")
    wait_for(lambda: is_idle(browser), "the answer to the edited message")
    assert browser.run("document.querySelector('.user .body').textContent") == "Edited"
    assert [m["content"] for m in Scripted.asked[-1]["messages"]] == ["Edited"]
    browser.run("document.querySelector('.user .tools button').click()")
    assert browser.run("document.querySelector('.user .body').textContent") == "What is a cell?"
    browser.reload()
    assert browser.run("document.querySelector('.user .body').textContent") == "What is a cell?"


def check_settings(browser, pictures):
    browser.run("document.querySelector('#settings').click()")
    browser.run("const f = document.querySelector('#options form').elements;"
                "f.system.value = 'Be kind.'; f.temperature.value = '0.5'; f.schema.value = '{'")
    browser.run("document.querySelector('#options button[value=ok]').click()")
    assert browser.run("!document.querySelector('#wrong').hidden"), "a schema that is not JSON is refused"
    if pictures:
        browser.picture(os.path.join(pictures, "settings.png"))
    assert fits_the_width(browser)
    browser.run("document.querySelector('#options form').elements.schema.value = '{\"type\":\"object\"}'")
    browser.run("document.querySelector('#options button[value=ok]').click()")
    browser.write("More")
    wait_for(lambda: len(Scripted.asked[-1]["messages"]) == 4, "a request")
    wait_for(lambda: is_idle(browser), "its answer")
    asked = Scripted.asked[-1]
    assert asked["temperature"] == 0.5 and asked["messages"][0] == {"role": "system", "content": "Be kind."}, asked
    assert asked["response_format"]["json_schema"]["schema"] == {"type": "object"}, asked
    browser.run("document.querySelector('#settings').click();"
                "document.querySelector('#options form').elements.schema.value = '';"
                "document.querySelector('#options button[value=ok]').click()")


def check_storage(browser):
    browser.run("{ const real = URL.createObjectURL; URL.createObjectURL = blob => { window.blob = blob; return real(blob); } }")
    browser.run("document.querySelector('#export').click()")
    exported = json.loads(browser.run("window.blob.text()"))
    assert exported["weft_conversations"][0]["title"] == "What is a cell?", exported
    browser.run("document.querySelector('#chats .small').click(); document.querySelector('#reply').value = 'Cells';"
                "document.querySelector('#accept').click()")
    wait_for(lambda: browser.run("document.querySelector('#title').textContent") == "Cells", "the new name")
    browser.run("document.querySelectorAll('#chats .small')[1].click(); document.querySelector('#accept').click()")
    wait_for(lambda: browser.run("document.querySelectorAll('#chats li').length") == 0, "the end of the conversation")
    for text in ('{"weft_conversations": [{"id": 3}]}', json.dumps(exported)):
        browser.run("{ const data = new DataTransfer(); data.items.add(new File([" + json.dumps(text) + "], 'a.json'));"
                    "document.querySelector('#file').files = data.files; document.querySelector('#file').onchange() }")
        is_whole = text == json.dumps(exported)
        wait_for(lambda: browser.run("document.querySelectorAll('#chats li').length") == is_whole, "what was imported")
        wait_for(lambda: browser.run("document.querySelector('#notice').hidden") == is_whole, "a word if it is none")
    assert browser.run("document.querySelector('.user .body').textContent") == "What is a cell?"


def check_key_and_end(browser, server):
    Scripted.key = "secret"
    browser.write("With a key?")
    wait_for(lambda: browser.run("document.querySelector('#ask').open"), "the question for the key")
    browser.run("document.querySelector('#reply').value = 'secret'; document.querySelector('#accept').click()")
    wait_for(lambda: is_idle(browser), "the answer with a key")
    assert browser.run("[...document.querySelectorAll('#log .error')].length") == 0
    server.shutdown()
    server.server_close()
    browser.write("Are you there?")
    wait_for(lambda: browser.run("!document.querySelector('#notice').hidden"), "the word that the server is gone")
    assert is_idle(browser)


def check_weft(browser, weft):
    browser.open(f"http://127.0.0.1:{weft.port}/")
    browser.run("localStorage.setItem('weft.settings', JSON.stringify({max_tokens: 30}))")
    browser.reload()
    browser.write("Hi")
    wait_for(lambda: browser.run("document.querySelector('.stats')?.textContent.includes('tokens')"), "an answer of weft")
    # Long enough to be stopped: many events at once are many sequences, but the page asks for one.
    browser.run("document.querySelector('#new').click()")
    browser.run("settings.max_tokens = undefined; settings.temperature = 2")
    for _ in range(20):
        browser.write("Count")
        browser.run("document.querySelector('#stop').click()")
        wait_for(lambda: is_idle(browser), "the end after a stop")
        if "stopped" in browser.run("[...document.querySelectorAll('.stats')].pop().textContent"):
            break
    else:
        raise AssertionError("no answer could be stopped")
    wait_for(lambda: weft.load() == 0, "the server to run nothing after a stop")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--pictures")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("page_check is skipped: there is no chromium")
        return 0
    weft = Weft(arguments.program, arguments.model)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    server.daemon_threads = True
    browser = None
    try:
        response, Scripted.page = weft.get("/")
        Scripted.fields = {k: v for k, v in response.getheaders() if k not in ("content-length", "connection")}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = Browser(chromium)
        check_scripted(browser, f"http://127.0.0.1:{server.server_port}/", arguments.pictures)
        check_storage(browser)
        check_key_and_end(browser, server)
        check_weft(browser, weft)
        assert not browser.problems(), browser.problems()
        own = (f"http://127.0.0.1:{server.server_port}/", f"http://127.0.0.1:{weft.port}/", "data:", "blob:", "about:")
        elsewhere = [address for address in browser.addresses() if not address.startswith(own)]
        assert not elsewhere, elsewhere
    finally:
        if browser:
            browser.end()
        weft.end()
    print("page_check: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
