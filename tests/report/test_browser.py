"""The report in a real browser: headless Chromium, driven over the WebDriver protocol without further packages."""

import base64
import io
import json
import shutil
import socket
import subprocess
import time
import unicodedata
import urllib.request
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pypdf
import pytest

import cvstats as cs
from cvstats.report import render_html, write_text
from cvstats.report.analysis import Analysis
from cvstats.report.page import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: apt install chromium chromium-driver)"
)

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
HOSTILE = "<script>window.pwned=1</script>"


class Browser:
    """The few WebDriver commands that the tests need."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([DRIVER, f"--port={port}"], **quiet)
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            self._wait()
            options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={folder}"]}
            logs = {"browser": "ALL", "performance": "ALL"}
            wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
            session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.session = f"/session/{session['sessionId']}"

    def _wait(self):
        for _ in range(200):
            try:
                if self.call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("chromedriver did not start")

    def call(self, verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=verb)
        with self.opener.open(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, path, width, height):
        settings = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.cdp("Emulation.setDeviceMetricsOverride", settings)
        self.logs("browser")
        self.logs("performance")
        self.call("POST", f"{self.session}/url", {"url": path.as_uri()})

    def js(self, script, *arguments):
        return self.call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command, parameters):
        return self.call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def logs(self, kind):
        return self.call("POST", f"{self.session}/se/log", {"type": kind})

    def close(self):
        try:
            self.call("DELETE", self.session)
        finally:
            self.process.terminate()
            self.process.wait(timeout=20)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    names = [
        HOSTILE,
        "<img src=x onerror=window.pwned=1>",
        *(f"model {i} " + "long name " * 5 for i in range(10, 1, -1)),
    ]
    cube = cs.simulate_cube(80, len(names), repeats=2, rng=4).assign_coords(configuration=np.array(names))
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_text(path, render_html(Page(Analysis(cube, "accuracy", times=60))))
    return path


@pytest.fixture(params=SIZES)
def opened(request, browser, page):
    browser.open(page, *SIZES[request.param])
    return browser


def test_no_errors_and_no_network(opened, page):
    assert [entry for entry in opened.logs("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    events = [json.loads(entry["message"])["message"] for entry in opened.logs("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]


def test_user_text_is_shown_and_not_run(opened):
    assert opened.js("return window.pwned === undefined")
    assert opened.js("return document.querySelectorAll('script:not([type])').length") == 1
    assert HOSTILE in opened.js("return document.getElementById('table-configurations').innerText")


def test_figures_are_visible_and_have_words(opened):
    shown = opened.js(
        "return [...document.querySelectorAll('figure')].map(f => [...f.querySelectorAll('[role=img]')]"
        ".filter(e => e.offsetParent !== null).map(e => { const box = e.querySelector('svg').getBoundingClientRect();"
        "return [e.getAttribute('aria-label').length, box.width, box.height]; }))"
    )
    assert len(shown) == 3
    for figure in shown:
        assert len(figure) == 1, "one of the two widths"
        words, width, height = figure[0]
        assert words > 40
        assert width > 250
        assert height > 100


def test_text_of_figures_stays_inside_and_is_large_enough(opened):
    found = opened.js(
        "return [...document.querySelectorAll('figure [role=img]')].filter(e => e.offsetParent !== null).flatMap(e => {"
        "const box = e.querySelector('svg').getBoundingClientRect(); return [...e.querySelectorAll('text')].map(t => {"
        "const b = t.getBoundingClientRect();"
        "return [t.textContent, b.left - box.left, box.right - b.right, b.height]; }); })"
    )
    assert found
    for text, left, right, height in found:
        assert left > -1, text
        assert right > -1, text
        assert height > 9, text


def test_nothing_is_wider_than_the_screen(opened):
    assert opened.js("return document.documentElement.scrollWidth <= window.innerWidth")


def cells(browser, table, column):
    script = (
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].map(r => r.cells[arguments[1]].innerText)"
    )
    return browser.js(script, table, column)


def sort(browser, table, column):
    head = "const head = document.getElementById(arguments[0]).tHead.rows[0].cells[arguments[1]];"
    return browser.js(f"{head} head.querySelector('button').click(); return head.ariaSort", table, column)


def test_tables_sort_by_number_and_by_name(opened):
    table = "table-configurations"
    before = cells(opened, table, 0)
    assert sort(opened, table, 2) == "descending"
    wins = [float(text.rstrip("%")) for text in cells(opened, table, 2)]
    assert wins == sorted(wins, reverse=True)
    assert sort(opened, table, 2) == "ascending"
    assert [float(text.rstrip("%")) for text in cells(opened, table, 2)] == sorted(wins)
    assert sort(opened, table, 0) == "ascending"
    names = cells(opened, table, 0)
    assert sorted(names) == sorted(before), "no row is lost"
    numbered = [name for name in names if name.startswith("model")]
    assert [int(name.split()[1]) for name in numbered] == list(range(2, 11)), "10 comes after 9"
    assert sort(opened, "table-methods", 1) == "descending"
    estimates = [float(text) for text in cells(opened, "table-methods", 1)]
    assert estimates == sorted(estimates, reverse=True)


def test_tables_and_text_can_be_copied(opened):
    opened.js(
        "window.copied = null; Object.defineProperty(navigator, 'clipboard', {configurable: true,"
        "value: {writeText: async text => { window.copied = text; }}});"
        "document.querySelector('[data-copy=table-methods]').click()"
    )
    lines = opened.js("return window.copied").split("\n")
    assert lines[0].split("\t")[:2] == ["Method", "Accuracy"]
    assert len({len(line.split("\t")) for line in lines}) == 1
    assert len(lines) == 6
    opened.js("document.querySelector('[data-copy=text-latex]').click()")
    assert r"\%" in opened.js("return window.copied")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A report of more configurations than are shown at first, with tuning values."""
    cube = cs.simulate_cube(60, 70, rng=5)
    cube = cube.assign_coords(
        configuration=[f"model-{i:03d}" for i in range(70)],
        family=("configuration", ["tree" if i % 7 == 0 else "svm" for i in range(70)]),
        C=("configuration", np.where(np.arange(70) % 7 == 0, np.nan, np.arange(70) / 8)),
    )
    path = tmp_path_factory.mktemp("many") / "report.html"
    write_text(path, render_html(Page(Analysis(cube, "accuracy", times=60))))
    return path


def visible_rows(browser, table="table-configurations"):
    script = (
        "return [...document.getElementById(arguments[0]).tBodies[0].rows].filter(r => r.offsetParent !== null)"
        ".map(r => r.cells[0].innerText)"
    )
    return browser.js(script, table)


def saved_text(browser, button):
    """Return the name and the text of the file that a click on a button would save."""
    return browser.js(
        "let blob, name; URL.createObjectURL = b => { blob = b; return 'data:,'; };"
        "HTMLAnchorElement.prototype.click = function () { name = this.download; };"
        "document.querySelector(arguments[0]).click(); return blob.text().then(text => [name, text]);",
        button,
    )


@pytest.mark.parametrize("size", SIZES)
def test_long_tables_fold_filter_and_lead_somewhere(browser, many, size):
    browser.open(many, *SIZES[size])
    assert len(visible_rows(browser)) == 25
    box = "const box = document.querySelector('[data-filter=table-configurations]'); box.value = arguments[0];"
    browser.js(box + "box.dispatchEvent(new Event('input', {bubbles: true}))", "TREE model-0")
    assert sorted(visible_rows(browser)) == [f"model-{i:03d}" for i in range(0, 70, 7)]
    browser.js(box + "box.dispatchEvent(new Event('input', {bubbles: true}))", "")
    assert len(visible_rows(browser)) == 25
    assert sort(browser, "table-configurations", 0) == "ascending"
    assert visible_rows(browser) == [f"model-{i:03d}" for i in range(25)], "the first rows of the new order"
    browser.js("document.querySelector('[data-more=table-configurations]').click()")
    assert len(visible_rows(browser)) == 70
    links = browser.js("return [...document.querySelectorAll('nav a')].map(a => a.getAttribute('href').slice(1))")
    assert len(links) > 5
    assert all(browser.js("return document.getElementById(arguments[0]) !== null", link) for link in links)
    assert browser.js("return document.documentElement.scrollWidth <= window.innerWidth")
    heights = browser.js("return [...document.querySelectorAll('.scroll')].map(e => e.scrollHeight - e.clientHeight)")
    assert max(heights) <= 1, "no table inside a box of few rows"


def test_tables_and_figures_can_be_saved(browser, many):
    browser.open(many, *SIZES["desktop"])
    name, text = saved_text(browser, "[data-csv=table-configurations]")
    assert name == "table-configurations.csv"
    table = pd.read_csv(io.StringIO(text))
    assert len(table) == 70
    assert {"family", "C"} <= set(table.columns), "all tuning values"
    assert table["C"].isna().sum() == 10
    assert table["Wins"].between(0, 1).all()
    assert table["Wins"].sum() == pytest.approx(1)
    name, text = saved_text(browser, "[data-svg=figure-intervals]")
    assert name == "figure-intervals.svg"
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("script", ["with", "without"])
def test_printing_gives_every_row_and_scripts_are_not_needed(browser, many, script):
    browser.cdp("Emulation.setScriptExecutionDisabled", {"value": script == "without"})
    try:
        browser.open(many, *SIZES["desktop"])
        printed = base64.b64decode(browser.cdp("Page.printToPDF", {})["data"])
    finally:
        browser.cdp("Emulation.setScriptExecutionDisabled", {"value": False})
    pages = [unicodedata.normalize("NFKC", page.extract_text()) for page in pypdf.PdfReader(io.BytesIO(printed)).pages]
    text = "\n".join(pages)
    assert all(f"model-{i:03d}" in text for i in range(70))
    assert "Filter rows" not in text
    assert "Download" not in text
    assert "To reproduce" in text
    own = [page for page in pages if page.count("model-") > 8]
    assert len(own) > 1
    assert all("Configuration" in page for page in own), "the header is repeated on every page of the table"


def test_dark_and_print(browser, page):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.cdp("Emulation.setEmulatedMedia", dark)
    browser.open(page, *SIZES["desktop"])
    background = browser.js("return getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in background.strip("rgb()").split(",")) < 60
    browser.cdp("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    assert browser.js("return getComputedStyle(document.querySelector('button.copy')).display") == "none"
    assert browser.js("return getComputedStyle(document.querySelector('.scroll')).overflow") == "visible"
    browser.cdp("Emulation.setEmulatedMedia", {"media": "", "features": []})
