"""The built site in a real browser (``make docs`` runs this after the build): every page, the search, both colours."""

import os
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(os.environ["SKMARGIN_SITE"]).resolve()
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


class Page(HTMLParser):
    """Links and anchors of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        self.links += [values[name] for name in ("href", "src") if values.get(name)]


@pytest.fixture(scope="module")
def parsed():
    return {path: Page(path) for path in PAGES}


def test_all_parts_are_there():
    names = {str(path.relative_to(SITE)) for path in PAGES}
    for page in ("index", "guide", "getting_started", "which_machine", "migration", "benchmarks", "search", "genindex"):
        assert f"{page}.html" in names
    assert sum("auto_examples/" in name and "/plot_" in name for name in names) >= 15
    assert "api/generated/skmargin.CrammerSingerSVC.html" in names


def test_inner_links_lead_somewhere(parsed):
    lost = []
    for path, page in parsed.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                assert "$" not in link, f"{path.relative_to(SITE)}: {link}"  # a name that was not filled in
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.exists():
                lost.append(f"{path.relative_to(SITE)}: {link}")
            elif parts.fragment and target in parsed and unquote(parts.fragment) not in parsed[target].anchors:
                lost.append(f"{path.relative_to(SITE)}: {link} (no such anchor)")
    assert not lost


def test_nothing_is_loaded_from_the_network(parsed):
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for tag in ('<script src="http', '<link rel="stylesheet" href="http', '<img src="http'):
            assert tag not in text, path


def test_every_example_has_a_picture():
    examples = [path for path in PAGES if path.name.startswith("plot_")]
    examples = [path for path in examples if find_spec("torch") or path.stem != "plot_network"]
    assert not [path for path in examples if "images/sphx_glr_plot" not in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("width", [1300, 390], ids=["desktop", "phone"])
def test_every_page_loads_without_complaint(browser, width):
    wrong = {}
    for path in PAGES:
        browser.open(path, width=width, height=900)
        wide = browser.run("document.documentElement.scrollWidth - window.innerWidth")
        complaints = browser.complaints()
        outside = [url for url in browser.requests() if not url.startswith(("file:", "data:"))]
        if complaints or outside or wide > 1:
            wrong[str(path.relative_to(SITE))] = (complaints, outside, wide)
    assert not wrong


def test_search_finds_a_class(browser):
    browser.open(SITE / "search.html", query="?q=CrammerSingerSVC")
    assert browser.wait("document.querySelectorAll('#search-results li a').length > 0")
    links = browser.run("[...document.querySelectorAll('#search-results li a')].map(a => a.href).join(' ')")
    assert "api/generated/skmargin.CrammerSingerSVC.html" in links
    assert not browser.complaints()


def test_dark_pages_are_dark(browser):
    colours = {}
    for dark in (False, True):
        browser.open(SITE / "getting_started.html", dark=dark)
        colour = browser.run("getComputedStyle(document.body).backgroundColor")
        colours[dark] = sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])
    assert colours[True] < 200 < 600 < colours[False]


def test_formulas_are_drawn(browser):
    browser.open(SITE / "hinge_machines.html")
    assert browser.run("document.querySelector('.formula math').getBoundingClientRect().height") > 20
