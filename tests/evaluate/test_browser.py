"""The report in a real browser: tables and pictures are there, nothing complains, a phone need not scroll sideways."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from clickbridge.evaluate.report import render
from clickbridge.evaluate.results import Comparison
from clickbridge.evaluate.similar import PairedPreference
from conftest import skip_or_fail

pytestmark = pytest.mark.browser
PROBE = """<script>
addEventListener("error", e => console.error(e.message));
addEventListener("load", () => {
  const visible = e => { const b = e.getBoundingClientRect(); return b.width > 50 && b.height > 10; };
  const all = s => [...document.querySelectorAll(s)];
  const wide = document.documentElement.clientWidth;
  const labels = all("svg text").map(t => t.getBoundingClientRect());
  const probe = {
    width: wide, scroll: document.documentElement.scrollWidth,
    tables: all("table").filter(visible).map(t => t.id), rows: all("#table-results tbody tr").length,
    figures: all("figure svg").filter(visible).length, svgs: all("svg").length,
    smallest: Math.min(...labels.map(b => b.height)),
    outside: all("svg").filter(s => { const o = s.getBoundingClientRect();
      return [...s.querySelectorAll("text")].some(t => { const b = t.getBoundingClientRect();
        return b.left < o.left - 2 || b.right > o.right + 2; }); }).map(s => s.getAttribute("aria-label")),
    page: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
    drawn: [...new Set(all("svg text").map(t => getComputedStyle(t).fill))],
  };
  const text = JSON.stringify(probe);
  document.body.appendChild(Object.assign(document.createElement("pre"), {id: "probe", textContent: text}));
});
</script>"""
Look = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def look(made: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Look:
    """Opens the report in a window of some width and returns what the probe saw, and what the console said."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        skip_or_fail("no Chromium on the PATH: install the package chromium")
    home = tmp_path_factory.mktemp("report")
    similar = [PairedPreference("pls", "cos-word", 40, 50, 10, 0.0001)]
    (home / "report.html").write_text(render(made, similar).replace("</head>", PROBE + "</head>"))
    # A window of the browser cannot be as narrow as a phone; a frame can.
    frame = "<body style='margin:0'><iframe id='f' style='border:0;width:{}px;height:900px' src='report.html'></iframe>"
    copy = "<script>onload = () => setTimeout(() => document.body.appendChild(document.getElementById('f')"
    copy += ".contentDocument.getElementById('probe').cloneNode(true)), 100)</script>"

    def open_at(width: int, *flags: str) -> dict[str, Any]:
        page = home / f"frame{width}.html"
        page.write_text(frame.format(width) + copy)
        line = [str(chromium), "--headless", "--hide-scrollbars", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--allow-file-access-from-files", "--enable-logging=stderr",
                "--virtual-time-budget=5000", f"--user-data-dir={home / 'profile'}", *flags,
                "--dump-dom", page.as_uri()]  # fmt: skip
        done = subprocess.run(line, capture_output=True, text=True, timeout=600)
        match = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
        assert match is not None, done.stdout[-2000:] + done.stderr[-2000:]
        seen: dict[str, Any] = json.loads(match[1].replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
        return {**seen, "console": [own for own in done.stderr.splitlines() if "CONSOLE" in own]}

    return open_at


def test_tables_and_pictures_are_there_and_nothing_complains(look: Look) -> None:
    seen = look(1200)
    assert seen["console"] == []
    assert {"table-results", "table-tests", "table-pairs", "table-clicks", "table-words", "table-seen", "table-tail",
            "table-dims", "table-similar", "table-learned", "table-made"} == set(seen["tables"])  # fmt: skip
    assert seen["rows"] == 5
    assert seen["figures"] == seen["svgs"] == 8
    assert seen["outside"] == []


def test_a_phone_does_not_scroll_sideways(look: Look) -> None:
    seen = look(390)
    assert (seen["width"], seen["scroll"]) == (390, 390)
    assert seen["figures"] == 8
    assert seen["smallest"] >= 9
    assert seen["outside"] == []
    assert seen["console"] == []


def test_light_and_dark(look: Look) -> None:
    light = look(1200, "--blink-settings=preferredColorScheme=1")
    dark = look(1200, "--blink-settings=preferredColorScheme=0")
    for seen in (light, dark):
        assert seen["drawn"] == [seen["ink"]]
    assert brightness(light["page"]) > 200 > 60 > brightness(light["ink"])
    assert brightness(dark["page"]) < 60 < 200 < brightness(dark["ink"])


def brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in re.findall(r"[\d.]+", colour)[:3])
    return (red + green + blue) / 3
