"""Takes the pictures of the search page, and of the documentation, from the real pages, in Chromium.

    clickbridge demo --no-serve
    clickbridge serve online=demo-out/models/online auto=demo-out/models/auto bm25=demo-out/models/bm25 --min-users 1
    python docs/make_screenshots.py http://127.0.0.1:8765

The one of dark colours teaches the service a click, so give it a fresh store. Those of the documentation are taken from
what `make docs` built:

    python docs/make_screenshots.py build/site
"""

from __future__ import annotations

import io
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

FOLDER = Path(__file__).parent / "screenshots"
DESK, PHONE, WIDE = {"width": 1040, "height": 760}, {"width": 360, "height": 740}, {"width": 1280, "height": 860}
WHY = "make+blocking+call+awaitable"
TAUGHT = "decode+json"
ANSWER = "json.JSONDecoder.decode"
expect.set_options(timeout=60_000)


def open_page(browser: Browser, address: str, **options: object) -> Page:
    context = browser.new_context(**{"viewport": DESK, "reduced_motion": "reduce", **options})  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(address)
    expect(page.locator("#left option").first).to_be_attached()
    return page


def searched(browser: Browser, url: str, query: str, left: str, right: str = "", **options: object) -> Page:
    page = open_page(browser, f"{url}/?q={query}&left={left}{right and f'&right={right}'}", **options)
    expect(page.locator(".result").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    return page


def keep(page: Page, name: str) -> None:
    """Saved with 256 colours: a third of the size, and the sdist carries them."""
    page.wait_for_load_state("networkidle")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(FOLDER / f"{name}.png", optimize=True)
    page.context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


def documentation(folder: Path) -> None:
    """Two pages of the site, in light and dark colours."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with chromium() as browser:
        for name, path, colours in (("site-front", "", "light"), ("site-model", "models/pls/", "dark")):
            page = browser.new_page(viewport=WIDE, reduced_motion="reduce", color_scheme=colours)  # type: ignore[arg-type]
            page.goto(f"http://127.0.0.1:{server.server_port}/{path}")
            keep(page, name)
    server.shutdown()


def search_page(url: str) -> None:
    with chromium() as browser:
        for name, options in (("light", {}), ("phone", {"viewport": PHONE})):
            page = searched(
                browser, url, WHY, "bm25" if name == "light" else "auto", "auto" * (name == "light"), **options
            )
            page.locator(".column").last.locator(".why-button").first.click()
            expect(page.locator(".why")).to_be_visible()
            keep(page, f"page-{name}")
        page = searched(browser, url, TAUGHT, "online", "auto", color_scheme="dark")
        page.get_by_role("button", name=ANSWER, exact=True).first.click()
        expect(page.get_by_role("button", name="Undo")).to_be_visible()
        page.mouse.move(0, 0)
        keep(page, "page-dark")
        page = open_page(browser, f"{url}/?left=auto#learned")
        expect(page.locator("#learned table").first).to_be_visible()
        keep(page, "page-learned")


if __name__ == "__main__":
    if sys.argv[1].startswith("http"):
        search_page(sys.argv[1].rstrip("/"))
    else:
        documentation(Path(sys.argv[1]))
