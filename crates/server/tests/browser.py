"""Drives a headless Chromium through a page, over its DevTools pipe.

    python3 browser.py CHROMIUM URL < steps

A step is a JSON array in a line:

    ["fill", SELECTOR, TEXT]    replaces the content with the text, as typing does
    ["type", TEXT]              types it where the focus is
    ["press", KEYS]             such as "Tab", "Control+Enter", "Shift+Tab"
    ["click", SELECTOR]
    ["choose", SELECTOR, VALUE] in a select
    ["wait", SELECTOR, TEXT]    until the element's text, or its value, contains the text
    ["print", SELECTOR]         prints it: a line of JSON
    ["eval", EXPRESSION]        prints its value: a line of JSON
    ["expect", TEXT]            from here on, a browser error with this text is not a failure

It exits with 0 if every step succeeded and the browser reported nothing: no error in the console, no exception,
no violation of the page's policy. Otherwise it prints the errors to stderr and exits with 1.
"""

import fcntl
import json
import os
import select
import subprocess
import sys
import tempfile
import time

LIMIT = 30.0  # seconds, for each step
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--remote-debugging-pipe",
]
CODES = {"Enter": 13, "Tab": 9, "Escape": 27, "Backspace": 8, "ArrowUp": 38, "ArrowDown": 40}
TEXTS = {"Enter": "\r", "Tab": "\t"}
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}


class Failure(Exception):
    pass


class Browser:
    """One browser with one page."""

    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.inside, from_browser = os.pipe()

        def place_pipe():
            """The browser expects it at the descriptors 3 and 4."""
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            for end, place in zip(ends, (3, 4)):
                os.dup2(end, place)
                os.close(end)

        self.process = subprocess.Popen(
            [program, *OPTIONS, f"--user-data-dir={profile}"],
            preexec_fn=place_pipe,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.loaded = False
        self.complaints = []

    def begin(self):
        """Opens a page and subscribes to its events."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ["Page", "Runtime", "Log"]:
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failure(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.note(answer)

    def next_message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.inside], [], [], LIMIT)[0]:
                raise Failure("the browser does not answer")
            read = os.read(self.inside, 1 << 16)
            if not read:
                raise Failure(f"the browser ended ({self.process.wait()})")
            self.buffer += read
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def note(self, event):
        parameters = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self.loaded = True
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.complaints.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "assert"):
                said = [str(one.get("value", one.get("description"))) for one in parameters["args"]]
                self.complaints.append(" ".join(said))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                entry = parameters["entry"]
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}".strip())

    def open(self, url):
        self.loaded = False
        if failed := self.call("Page.navigate", url=url).get("errorText"):
            raise Failure(f"{url}: {failed}")
        until(lambda: self.evaluate("document.readyState") == "complete" and self.loaded, f"{url} to be loaded")

    def evaluate(self, expression):
        said = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in said:
            details = said["exceptionDetails"]
            raise Failure(details.get("exception", {}).get("description", details["text"]))
        return said["result"].get("value")

    def text(self, selector):
        found = f"document.querySelector({json.dumps(selector)})"
        return self.evaluate(f"(e => e && (e.value ?? e.innerText))({found})")

    def on(self, selector, action):
        """Runs an action on an element `e`."""
        found = f"document.querySelector({json.dumps(selector)})"
        check = "if (!e || !e.checkVisibility()) throw Error('no such visible element: ' + s)"
        self.evaluate(f"((e, s) => {{ {check}; {action} }})({found}, {json.dumps(selector)})")

    def press(self, keys):
        *held, key = keys.split("+")
        modifiers = sum(MODIFIERS[one] for one in held)
        event = {"key": key, "code": key, "modifiers": modifiers, "windowsVirtualKeyCode": CODES.get(key, 0)}
        typed = TEXTS.get(key, "") if modifiers in (0, MODIFIERS["Shift"]) else ""
        self.call("Input.dispatchKeyEvent", type="keyDown" if typed else "rawKeyDown", text=typed, **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def step(self, name, *arguments):
        match name, *arguments:
            case "fill", selector, text:
                self.on(selector, "e.focus(); e.select()")
                self.call("Input.insertText", text=text)
            case "type", text:
                self.call("Input.insertText", text=text)
            case "press", keys:
                self.press(keys)
            case "click", selector:
                self.on(selector, "e.focus(); e.click()")
            case "choose", selector, value:
                change = "e.dispatchEvent(new Event('change', { bubbles: true }))"
                self.on(selector, f"e.value = {json.dumps(value)}; {change}")
            case "wait", selector, text:
                until(lambda: text in (self.text(selector) or ""), lambda: f"{selector}: {self.text(selector)!r}")
            case "print", selector:
                print(json.dumps(self.text(selector), ensure_ascii=False), flush=True)
            case "eval", expression:
                print(json.dumps(self.evaluate(expression), ensure_ascii=False), flush=True)
            case _:
                raise Failure("unknown step")

    def close(self):
        os.close(self.out)  # the browser ends when its pipe does
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def until(holds, what):
    end = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > end:
            raise Failure(f"timed out waiting for {what() if callable(what) else what}")
        time.sleep(0.02)


def drive(browser, url, steps):
    """The errors: unexpected browser errors, and the step that failed."""
    expected, failed = [], []
    try:
        browser.begin()
        browser.open(url)
        for step in steps:
            if step[0] == "expect":
                expected.append(step[1])
                continue
            try:
                browser.step(*step)
            except Failure as failure:
                raise Failure(f"{json.dumps(step)}: {failure}") from None
        browser.evaluate("new Promise(setTimeout)")
    except (Failure, BrokenPipeError) as failure:
        failed.append(str(failure))
    return [one for one in browser.complaints if not any(text in one for text in expected)] + failed


def main():
    program, url = sys.argv[1:]
    steps = [json.loads(line) for line in sys.stdin if line.strip()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            wrong = drive(browser, url, steps)
        finally:
            browser.close()
    for one in wrong:
        print(one, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
