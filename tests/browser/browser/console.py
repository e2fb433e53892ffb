"""Uses the console of `bedplate dev` as a person does, in Debian's Chromium."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

CONSOLE = os.environ["CONSOLE"]
PICTURES = os.environ.get("BEDPLATE_SCREENSHOTS")
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)
PAGES = {
    "overview": "/",
    "racks": "/racks",
    "rack": "/racks/dev",
    "nodes": "/nodes",
    "node-confirm": "/nodes/dev-1/confirm?target=rebuild",
    "rack-delete": "/racks/dev/delete",
    "node": "/nodes/dev-1",
    "sensors": "/nodes/dev-1/sensors",
    "serial": "/nodes/dev-4/console",
    "discoveries": "/discoveries",
    "bring-up": "/bring-up",
    "profiles": "/profiles",
    "profile": "/profiles/kvm",
    "profile-new": "/profiles/new",
    "hosts": "/hosts",
    "host": "/hosts/dev-1",
    "where": "/where?resource=tenant",
    "clusters": "/clusters",
    "cluster": "/clusters/tenant",
    "cluster-new": "/clusters/new",
    "vms": "/vms",
    "vm": "/vms/lab-1",
    "vm-new": "/vms/new",
    "images": "/images",
    "quotas": "/quotas",
    "audit": "/audit",
}
KINDS = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 800}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 800}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}, "has_touch": True},
    "phone-dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
}
# Lists the texts whose contrast with their background is too low (WCAG 2.2, 1.4.3).
CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b); };
  const behind = (element) => { for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor); if (colour[3] > 250) return colour; } return [255, 255, 255, 255]; };
  const low = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.checkVisibility() || element.closest('.hidden-text, .skip, option, title')) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(rgb(style.color)), light(behind(element))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) low.push(`${ratio.toFixed(2)} ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  return low;
}"""


def ask(port, method, path, body=None):
    """Sends a request of another user to a service."""
    headers = {"X-OpenStack-Ironic-API-Version": "1.95", "OpenStack-API-Version": "container-infra latest"}
    data = None if body is None else json.dumps(body).encode()
    if data:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def status(port, path):
    """The status of a service's answer, such as 404 if the object does not exist."""
    try:
        ask(port, "GET", path)
        return 200
    except urllib.error.HTTPError as refused:
        return refused.code


def answered(port, path):
    """The JSON answer of a service."""
    return json.loads(ask(port, "GET", path))


class Console(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.playwright = sync_playwright().start()
        # The sandbox of the browser needs namespaces, which a container may forbid. The browser loads only our own pages.
        cls.browser = cls.playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()

    def open(self, kind="light", **more):
        context = self.browser.new_context(base_url=CONSOLE, **KINDS[kind], **more)
        context.set_default_timeout(PATIENCE)
        self.addCleanup(context.close)
        page = context.new_page()
        self.problems = []
        page.on("console", lambda said: self.problems.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda asked: self.problems.append(asked.url) if not asked.url.startswith(CONSOLE) else None)
        return page

    def gone(self, port, path):
        """Waits until a service answers 404 for a path."""
        end = time.monotonic() + PATIENCE / 1000
        while status(port, path) != 404:
            self.assertLess(time.monotonic(), end, f"{path} is there still")
            time.sleep(0.1)

    def confirm(self, page, name, verb):
        """Types a name to confirm an action, and continues."""
        page.get_by_label(re.compile("^Type .* to confirm")).fill(name)
        page.get_by_role("button", name=verb).click()

    def test_every_page_is_readable_in_both_schemes_and_widths(self):
        for kind in KINDS:
            page = self.open(kind)
            for name, path in PAGES.items():
                with self.subTest(kind=kind, page=name):
                    answer = page.goto(path, wait_until="load")
                    self.assertEqual(answer.status, 200)
                    self.assertEqual(page.locator("h1").count(), 1)
                    low = page.evaluate(CONTRAST)
                    self.assertEqual(low, [], "texts with too little contrast")
                    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    self.assertLessEqual(wide, 0, "the page is wider than the window")
                    if PICTURES:
                        page.screenshot(path=f"{PICTURES}/{name}-{kind}.png", full_page=True)
            self.assertEqual(self.problems, [], "what the browser complained of, or asked of others")

    def test_every_field_has_a_label_and_every_picture_a_meaning(self):
        page = self.open()
        for name, path in PAGES.items():
            with self.subTest(page=name):
                page.goto(path)
                bare = page.evaluate(
                    "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
                    ".filter((it) => !it.labels.length && !it.ariaLabel).map((it) => it.name)"
                )
                self.assertEqual(bare, [])
                ids = page.evaluate("[...document.querySelectorAll('[id]')].map((it) => it.id)")
                self.assertEqual(sorted(set(ids)), sorted(ids), "an id is there twice")

    def test_everything_is_read_without_scripts(self):
        page = self.open(java_script_enabled=False)
        for path in PAGES.values():
            self.assertEqual(page.goto(path).status, 200)
        page.goto("/racks/dev")
        expect(page.locator(".slot")).to_have_count(4)

    def test_the_keyboard_leads_everywhere(self):
        page = self.open()
        page.goto("/racks")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.locator(".rack h2 a").first).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/racks/.+"))

    def test_what_changes_is_seen_without_a_reload(self):
        page = self.open()
        # This node carries at most one cluster member, in any order of the tests. The other nodes may carry two.
        page.goto("/nodes/dev-3")
        page.evaluate("window.loadedOnce = true")
        expect(page.locator("#live .chip", has_text="maintenance")).to_have_count(0)
        ask(6385, "PUT", "/v1/nodes/dev-3/maintenance", {"reason": "a test"})
        expect(page.locator("#live .chip", has_text="maintenance")).to_be_visible()
        page.get_by_role("button", name="Disable maintenance").click()
        expect(page.locator("#live .chip", has_text="maintenance")).to_have_count(0)
        self.assertEqual(self.problems, [])

    def test_a_hypervisor_is_emptied_given_back_and_watched_until_it_is_available(self):
        page = self.open()
        # While the rack has a goal, the node would be installed again.
        page.goto("/racks/dev")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        page.goto("/nodes/dev-3")
        page.locator("#live").get_by_role("link", name="dev-3").click()
        expect(page).to_have_url(re.compile("/hosts/dev-3$"))
        page.wait_for_load_state()
        page.get_by_role("button", name="Drain host").click()
        expect(page.get_by_role("button", name="Drain host")).to_have_count(0)
        expect(page.locator("#live .notice strong")).to_have_text("drained")
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/host-drained-light.png", full_page=True)
        self.assertEqual(answered(9511, "/bedplate/v1/drains/dev-3")["state"], "drained")
        page.goto("/hosts")
        row = page.locator("tr", has_text="dev-3")
        expect(row.get_by_role("button", name="Undrain")).to_be_visible()
        expect(page.locator("tr", has_text="dev-4").get_by_role("button")).to_have_count(0)
        page.goto("/nodes/dev-3")
        expect(page.get_by_role("button", name="Undrain")).to_be_visible()
        page.get_by_role("link", name="Undeploy").click()
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/node-confirm-light.png", full_page=True)
        self.confirm(page, "dev-4", "Undeploy")
        expect(page.get_by_role("alert")).to_contain_text("nothing was changed")
        self.assertEqual(answered(6385, "/v1/nodes/dev-3")["provision_state"], "active")
        self.confirm(page, "dev-3", "Undeploy")
        expect(page.locator("#live .chip").first).to_have_text("available")
        self.assertEqual(answered(6385, "/v1/nodes/dev-3")["provision_state"], "available")
        expect(page.locator(".timeline li").first).to_be_visible()

    def test_a_serial_console_is_enabled_followed_and_typed_at(self):
        page = self.open()
        page.goto("/nodes/dev-4")
        page.get_by_role("link", name="Serial console").click()
        # The console stays enabled for the test that looks at every page.
        if page.get_by_role("button", name="Enable").count():
            page.get_by_role("button", name="Enable").click()
        screen, line = page.get_by_role("log"), page.get_by_label("Console input")
        expect(screen).to_contain_text("the console is open")
        line.press("Enter")
        expect(screen).to_contain_text("login:")
        line.fill("root")
        line.press("Enter")
        expect(screen).to_contain_text(re.compile("login: root.*Password:", re.S))
        expect(line).to_have_value("")
        expect(line).to_be_focused()
        page.get_by_role("button", name="Ctrl-C").click()
        expect(screen).to_contain_text(re.compile("Password:.*login:", re.S))
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/serial-typed-light.png", full_page=True)
        self.assertEqual(self.problems, [])

    def test_a_manifest_with_three_bad_rows_is_mended_and_sent(self):
        page = self.open()
        bad = (
            "name,position,mac,bmc_type,bmc_address\nb1,1,52:54:00:99:00:01,fake,\nb 2,2,52:54:00:99:00:02,fake,\n"
            "b1,3,52:54:00:99:00:03,fake,\nb4,3,52:54:00:99:00:04,fake,\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "browser.csv")
            file.write_text(bad)
            page.goto("/bring-up")
            page.get_by_label("Manifest file").set_input_files(file)
            page.get_by_role("button", name="Check").click()
        expect(page.locator("tbody .chip.bad")).to_have_count(3)
        expect(page.get_by_role("button", name=re.compile("^Enroll"))).to_have_count(0)
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/bring-up-bad-light.png", full_page=True)
        good = bad.replace("b 2", "b2").replace("b1,3,", "b3,3,").replace("b4,3,", "b4,4,")
        page.get_by_label("Manifest").fill(good)
        page.get_by_role("button", name="Check again").click()
        expect(page.locator("tbody .chip.good")).to_have_count(4)
        page.get_by_role("button", name="Enroll 4 machines").click()
        expect(page.get_by_role("alert")).to_contain_text("the name of the rack")
        self.assertEqual(status(6385, "/bedplate/v1/racks/browser"), 404)
        page.get_by_label("to confirm").fill("browser")
        page.get_by_role("button", name="Enroll 4 machines").click()
        expect(page).to_have_url(re.compile("/racks/browser$"))
        expect(page.locator(".units .chip", has_text="available")).to_have_count(4)
        for name in ("b1", "b2", "b3", "b4"):
            page.goto(f"/nodes/{name}")
            page.get_by_role("link", name="Delete").click()
            self.confirm(page, name, "Delete")
            expect(page).to_have_url(re.compile("/nodes$"))
            self.assertEqual(status(6385, f"/v1/nodes/{name}"), 404)
        page.goto("/racks/browser")
        page.get_by_role("link", name="Delete").click()
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/rack-delete-light.png", full_page=True)
        self.confirm(page, "browser", "Delete")
        expect(page).to_have_url(re.compile("/racks$"))
        self.assertEqual(status(6385, "/bedplate/v1/racks/browser"), 404)

    def test_a_stuck_node_is_explained_mended_and_goes_on(self):
        page = self.open()
        page.goto("/bring-up")
        page.get_by_label("Or enter the manifest").fill(
            "name,mac,bmc_type,bmc_address,user,password_env\ns1,52:54:00:98:00:01,redfish,https://localhost:18001,admin,BMC\n"
        )
        page.get_by_label("Format").select_option("csv")
        page.get_by_label("Rack name").fill("stuck")
        page.get_by_role("button", name="Check").click()
        page.get_by_label("Password BMC").fill("another one")
        page.get_by_label("to confirm").fill("stuck")
        page.get_by_role("button", name="Enroll 1 machine").click()
        # The new machine has the BMC of another node, by another name of its host, and that machine must not be switched.
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        page.goto("/")
        stuck = page.locator("#live tr", has_text="s1")
        expect(stuck).to_contain_text("rejected our credentials")
        stuck.get_by_role("link", name="s1").click()
        expect(page.locator("#live")).to_contain_text("correct user, password or certificate in driver_info; then repeat the request")
        expect(page.locator("#live dd", has_text="rejected our credentials")).to_be_visible()
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/node-stuck-light.png", full_page=True)
        mended = [{"op": "replace", "path": "/driver_info/redfish_password", "value": "emulated-only"}]
        ask(6385, "PATCH", "/v1/nodes/s1", mended)
        page.get_by_role("button", name="Manage").click()
        expect(page.locator("#live .chip").first).to_have_text("manageable")
        expect(page.locator("#live")).not_to_contain_text("rejected our credentials,")
        page.goto("/")
        expect(page.locator("#live")).to_contain_text("No node needs attention")
        ask(6385, "DELETE", "/v1/nodes/s1")
        ask(6385, "DELETE", "/bedplate/v1/racks/stuck")
        self.assertEqual(status(6385, "/v1/nodes/s1"), 404)
        self.assertEqual(self.problems, [])

    def test_a_cluster_is_planned_made_watched_and_reached(self):
        page = self.open()
        page.goto("/clusters/new")
        page.get_by_label("Name", exact=True).fill("browser")
        page.get_by_label("Control plane", exact=True).select_option("1")
        page.get_by_label("Workers", exact=True).fill("1")
        page.get_by_role("button", name="Show plan").click()
        expect(page.get_by_role("heading", name="Plan")).to_be_visible()
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/cluster-plan-light.png", full_page=True)
        page.get_by_role("button", name="Create", exact=True).click()
        expect(page.get_by_role("heading", name="browser", level=1)).to_be_visible()
        expect(page.locator("#live .chip").first).to_have_text("CREATE_COMPLETE")
        with page.expect_download() as loading:
            page.get_by_role("button", name="Download kubeconfig").click()
        file = loading.value.path()
        shown = subprocess.run(
            ["kubectl", "--kubeconfig", str(file), "get", "nodes", "--no-headers"],
            capture_output=True, text=True, check=True, timeout=60,
        )
        self.assertEqual(len(shown.stdout.splitlines()), 2, shown.stdout)
        cluster = page.url
        # The only etcd member of the cluster is on that host.
        page.get_by_role("link", name="Show location").click()
        member = page.locator("tr", has_text="etcd member")
        member.locator("a[href^='/hosts/']").click()
        page.get_by_role("button", name="Drain host").click()
        expect(page.get_by_role("alert")).to_contain_text(re.compile("cluster browser .* would have 0 of its 1 etcd members"))
        if PICTURES:
            page.screenshot(path=f"{PICTURES}/host-refused-light.png", full_page=True)
        page.goto(cluster)
        page.locator("form[action$='/delete']").get_by_label("to confirm").fill("browser")
        page.get_by_role("button", name="Delete cluster").click()
        expect(page).to_have_url(re.compile("/clusters$"))
        self.gone(9511, "/v1/clusters/browser")

    def test_a_chain_leads_from_a_machine_to_its_rack_and_back(self):
        page = self.open()
        page.goto("/vms/lab-1")
        page.get_by_role("link", name="Show location").click()
        page.locator("tr", has_text="lab-1").locator("a[href^='/hosts/']").click()
        expect(page.locator("#live").get_by_role("link", name="lab-1")).to_be_visible()
        page.locator(".path").get_by_role("link", name="dev", exact=True).click()
        expect(page).to_have_url(re.compile("/racks/dev$"))
        expect(page.locator("[aria-label='Hypervisors by state']")).to_contain_text("joined")

    def test_a_hypervisor_profile_is_made_and_deleted(self):
        page = self.open()
        page.goto("/profiles/new")
        page.get_by_label("Name", exact=True).fill("browser")
        page.get_by_label("Image", exact=True).fill("http://images.example/host.raw")
        page.get_by_label("Checksum").fill("sha256:" + "a" * 64)
        page.get_by_label("Keystone").fill("http://keystone.example:5000/v3")
        page.get_by_label("Service user").fill("nova")
        page.get_by_label("Password", exact=True).fill("browser-secret")
        page.get_by_label("Message bus").fill("rabbit://nova:browser-secret@bus/")
        page.get_by_label("Availability zone", exact=True).select_option("rack")
        page.get_by_role("button", name="Create profile").click()
        expect(page).to_have_url(re.compile("/profiles/browser$"))
        self.assertNotIn("browser-secret", page.content())
        page.locator("form[action$='/delete']").get_by_label("to confirm").fill("browser")
        page.get_by_role("button", name="Delete profile").click()
        expect(page).to_have_url(re.compile("/profiles$"))
        expect(page.get_by_role("link", name="browser", exact=True)).to_have_count(0)
        self.assertEqual(status(6385, "/bedplate/v1/hypervisor-profiles/browser"), 404)

    def test_a_virtual_machine_is_asked_for_and_extended(self):
        page = self.open()
        page.goto("/vms/new")
        page.get_by_label("Name", exact=True).fill("browser")
        page.get_by_label("Flavor").fill("m1.tiny")
        page.get_by_label("Lease duration").fill("1d")
        page.get_by_role("button", name="Create VM").click()
        expect(page.locator("#live .chip").first).to_have_text("ACTIVE")
        expect(page.locator("#live")).to_contain_text("23 h")
        page.get_by_label("Lease duration from now").fill("5d")
        page.get_by_role("button", name="Extend").click()
        expect(page.locator("#live")).to_contain_text("4 d 23 h")
        page.locator("form[action$='/delete']").get_by_label("to confirm").fill("browser")
        page.get_by_role("button", name="Delete VM").click()
        expect(page).to_have_url(re.compile("/vms$"))
        self.gone(9511, "/bedplate/v1/machines/browser")


if __name__ == "__main__":
    unittest.main()
