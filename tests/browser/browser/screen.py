"""Shows the screen of a QEMU machine, whose VNC server has a password, in the console and in noVNC, in Debian's Chromium."""

import functools
import http.server
import json
import os
import threading
import time
import unittest
import urllib.request

from playwright.sync_api import expect, sync_playwright

API, CONSOLE, VNC_PORT = os.environ["API"], os.environ["CONSOLE"], os.environ["VNC_PORT"]
NOVNC, NOVNC_PORT = os.environ["NOVNC"], int(os.environ["NOVNC_PORT"])
PASSWORD = os.environ["VNC_PASSWORD"]
PATIENCE = 120_000
expect.set_options(timeout=PATIENCE)
# The number of bright pixels: the text of the firmware.
LIT = """(name) => { const c = document.querySelector(name); if (!c || !c.width) return 0;
  const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let lit = 0;
  for (let at = 0; at < d.length; at += 4) if (d[at] + d[at + 1] + d[at + 2] > 200) lit++; return lit; }"""


def ask(method, path, body=None):
    """Sends a request to baremetald; returns its JSON answer."""
    headers = {"X-OpenStack-Ironic-API-Version": "1.95", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{API}{path}", data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or "null")


class Screen(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        info = {"redfish_address": "http://127.0.0.1:9", "vnc_address": f"127.0.0.1:{VNC_PORT}", "vnc_password": PASSWORD}
        node = {"driver": "redfish", "name": "n1", "console_interface": "bmc-vnc", "driver_info": info}
        ask("POST", "/v1/nodes", node)
        cls.playwright = sync_playwright().start()
        # The sandbox of the browser needs namespaces, which a container may forbid. The browser loads only our own pages.
        cls.browser = cls.playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def open(self):
        page = self.browser.new_page()
        page.set_default_timeout(PATIENCE)
        self.problems = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.addCleanup(page.close)
        return page

    def until(self, holds):
        """Waits for a state. The page forbids scripts that are not its own, so the browser cannot wait for it."""
        end = time.monotonic() + PATIENCE / 1000
        while not holds():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.1)

    def shows_text_and_takes_keys(self, page, canvas):
        """The firmware shows its text; a key changes the screen."""
        shown = "(name) => document.querySelector(name).toDataURL()"
        self.until(lambda: page.evaluate(LIT, canvas) > 100)
        before = page.evaluate(shown, canvas)
        page.locator(canvas).click()
        page.keyboard.press("Escape")
        self.until(lambda: page.evaluate(shown, canvas) != before)
        self.assertEqual(self.problems, [])

    def test_1_the_console_shows_the_screen_until_it_is_disabled(self):
        page = self.open()
        page.goto(f"{CONSOLE}/nodes/n1")
        page.get_by_role("link", name="Graphical console").click()
        page.get_by_role("button", name="Enable").click()
        expect(page.locator("#screen-state")).to_have_text("Connected.")
        self.shows_text_and_takes_keys(page, "#screen")
        self.assertNotIn(PASSWORD, page.content())
        # A keyboard alone leaves the screen too.
        page.locator("#screen").focus()
        page.keyboard.press("Shift+Escape")
        expect(page.get_by_role("button", name="Ctrl-Alt-Del")).to_be_focused()
        ask("PUT", "/v1/nodes/n1/states/console", {"enabled": False})
        expect(page.locator("#screen-state")).to_contain_text("Disconnected: the console was disabled")
        page.get_by_role("button", name="Disable").click()
        expect(page.locator("#content")).to_contain_text("The console is disabled")

    def test_2_novnc_shows_the_screen_without_a_password(self):
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=NOVNC)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", NOVNC_PORT), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        ask("PUT", "/v1/nodes/n1/states/console", {"enabled": True})
        shown = ask("GET", "/v1/nodes/n1/states/console")["console_info"]
        self.assertEqual(shown["type"], "vnc")
        page = self.open()
        page.goto(shown["url"])
        self.shows_text_and_takes_keys(page, "#noVNC_container canvas")
        # The URL is good for one connection.
        again = self.open()
        again.goto(shown["url"])
        expect(again.locator("#noVNC_status")).to_contain_text("Failed to connect")


if __name__ == "__main__":
    unittest.main()
