"""The search page in a real browser: everything that it offers, by mouse and by keyboard alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from clickbridge.serve.app import PAGE
from conftest import skip_or_fail
from running import Running

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)  # a busy machine is slow, not wrong
PHONE = {"width": 360, "height": 740}
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        skip_or_fail("no Chromium on the PATH: install the package chromium")
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@pytest.fixture
def at(browser: Browser) -> Iterator[Open]:
    """`at(service, "?q=pizza")` is the page there. Whatever it complains about fails the test, unless expected."""
    complaints: list[str] = []
    contexts = []

    def open_page(service: Running, where: str = "", *, expects_errors: bool = False, **options: object) -> Page:
        context = browser.new_context(reduced_motion="reduce", **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        if not expects_errors:
            page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{service.url}/{where}")
        expect(page.locator("#left option").first).to_be_attached()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def titles(page: Page, column: int = 0) -> list[str]:
    return page.locator(".column").nth(column).locator(".title").all_inner_texts()


def test_a_search_shows_results_and_its_address_leads_back(serve: Callable[..., Running], at: Open) -> None:
    service = serve("bm25")
    page = at(service)
    page.fill("#query", "pizza")
    page.click("button.main")
    expect(page.locator(".result").first).to_be_visible()
    shown = [hit["title"] or hit["doc_id"] for hit in service.get("/search", q="pizza", k=10).json()["results"]]
    assert titles(page) == shown
    assert page.get_by_role("status").inner_text() == f"bm25: {len(shown)} results"
    again = at(service, page.url.partition("/?")[2].join(["?", ""]))
    expect(again.locator(".result")).to_have_count(len(shown))


def test_two_models_side_by_side_with_moves(serve: Callable[..., Running], at: Open) -> None:
    service = serve("bm25", "cos-click")
    page = at(service, "?q=ny+pizza&left=bm25&right=cos-click")
    expect(page.locator(".column")).to_have_count(2)
    expect(page.locator(".column").nth(1).locator(".result").first).to_be_visible()
    left, right = titles(page), titles(page, 1)
    for place, item in enumerate(page.locator(".column").nth(1).locator(".result").all()):
        title, badges = right[place], item.locator(".moved").all_inner_texts()
        if title not in left:
            assert "new" in badges[0]
        elif left.index(title) == place:
            assert badges == []
        else:
            up = left.index(title) > place
            assert badges[0].startswith("▲" if up else "▼")
            assert ("higher" if up else "lower") in item.locator(".moved").inner_text()


def test_why_in_words(serve: Callable[..., Running], at: Open) -> None:
    page = at(serve("bm25+pls", min_users=1), "?q=ny+slice")
    button = page.locator(".why-button").first
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    panel = page.locator(".why").first
    expect(panel).to_contain_text(re.compile("in this document|clicked this document|because people who typed"))
    assert "word" not in panel.inner_text().lower().split()  # features have no place here
    button.click()
    expect(page.locator(".why")).to_have_count(0)


def test_a_click_teaches_the_next_search_moves_and_undo_takes_it_back(serve: Callable[..., Running], at: Open) -> None:
    service = serve("online:bm25")
    page = at(service, "?q=pizza")
    expect(page.locator(".result").first).to_be_visible()
    before = titles(page)
    last = before[-1]
    for _ in range(6):
        page.get_by_role("button", name=last, exact=True).click()
        expect(page.get_by_role("status")).to_contain_text(f"Taught: pizza → {last}")
        page.wait_for_load_state("networkidle")
        if titles(page)[0] == last:
            break
    assert titles(page).index(last) < before.index(last)
    assert service.get("/health").json()["models"][0]["events"] >= 1
    taught = page.locator("#undo")
    expect(taught).to_be_visible()
    page.goto(f"{service.url}/#learned")  # a new page forgets what this one taught, the service does not
    expect(page.locator("#learned")).to_contain_text("of this service")


def test_moves_after_teaching_are_marked_and_undone(serve: Callable[..., Running], at: Open) -> None:
    service = serve("online:bm25")
    page = at(service, "?q=pizza")
    expect(page.locator(".result").first).to_be_visible()
    before = titles(page)
    page.get_by_role("button", name=before[-1], exact=True).click()
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    after = titles(page)
    assert after != before
    expect(page.locator(f'.result:has-text("{before[-1]}") .moved.up')).to_contain_text("higher than before")
    undo.click()
    expect(page.get_by_role("status")).to_contain_text("Undone")
    assert titles(page) == before


def test_suggestions_by_keyboard_alone(serve: Callable[..., Running], at: Open) -> None:
    page = at(serve("bm25", min_users=1))
    page.keyboard.press("/")
    expect(page.locator("#query")).to_be_focused()
    page.keyboard.type("piz", delay=20)
    option = page.get_by_role("option", name="pizza by the slice")
    expect(option).to_be_visible()
    expect(page.locator("#query")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(page.locator("#query")).to_have_attribute("aria-activedescendant", "suggestion-0")
    page.keyboard.press("Enter")
    expect(page.locator("#query")).to_have_value("pizza by the slice")
    expect(page.locator(".result").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".title").first).to_be_focused()
    page.keyboard.press("w")
    expect(page.locator(".why")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".title").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Taught")
    page.keyboard.press("u")
    expect(page.get_by_role("status")).to_contain_text("Undone")


def test_similar_queries_are_chips(serve: Callable[..., Running], at: Open) -> None:
    page = at(serve("bm25+pls", min_users=1), "?q=ny+pizza")
    chip = page.get_by_role("group", name="Similar queries").get_by_role("button").first
    text = chip.inner_text()
    chip.click()
    expect(page.locator("#query")).to_have_value(text)
    expect(page.locator(".result").first).to_be_visible()


def test_errors_are_shown_and_can_be_put_away(serve: Callable[..., Running], at: Open) -> None:
    page = at(serve("bm25"), expects_errors=True)
    page.route("**/search?*", lambda route: route.abort())
    page.fill("#query", "pizza")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("does not answer")
    alert.get_by_role("button").click()
    expect(alert).to_be_empty()
    page.evaluate("setTimeout(() => { throw new Error('a slip of the page'); })")
    expect(alert).to_contain_text("Error in this page: a slip of the page")


def test_a_service_with_keys_asks_for_one(
    serve: Callable[..., Running], at: Open, tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "keys").write_text("secret-of-the-page-1234567890 rank,feedback\n")
    service = serve("bm25", key_file=str(tmp_path / "keys"))
    context = browser.new_context()
    page = context.new_page()
    page.goto(service.url)
    expect(page.locator("#key-form")).to_be_visible()
    page.fill("#key", "secret-of-the-page-1234567890")
    page.keyboard.press("Enter")
    expect(page.locator("#left option")).to_have_count(1)
    expect(page.locator("#key-form")).to_be_hidden()
    context.close()


def test_what_was_learned_and_experiments(serve: Callable[..., Running], at: Open) -> None:
    service = serve("bm25+pls", "bm25", min_users=2, experiment=("bm25-pls", "bm25"))
    page_of = {"query": "pizza pie", "results": ["pizza", "rome"], "clicks": ["pizza"]}
    service.feedback(*({**page_of, "event_id": f"e{i}", "user": f"u{i}"} for i in range(3)))
    service.feedback({**page_of, "query": "only one person", "event_id": "alone", "user": "u1"})
    page = at(service, "#learned")
    expect(page.locator("#learned")).to_contain_text("pizza pie")
    expect(page.locator("#learned")).not_to_contain_text("only one person")
    page.get_by_role("link", name="Experiments").click()
    expect(page.locator("#experiments")).to_contain_text("No page is decided yet")


def test_a_phone_need_not_scroll_sideways(serve: Callable[..., Running], at: Open) -> None:
    page = at(serve("bm25", "cos-click"), "?q=ny+pizza&left=bm25&right=cos-click", viewport=PHONE)
    expect(page.locator(".result").first).to_be_visible()
    page.locator(".why-button").first.click()
    expect(page.locator(".why")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    first, second = (page.locator(".column").nth(i).bounding_box() for i in (0, 1))
    assert first is not None
    assert second is not None
    assert second["y"] >= first["y"] + first["height"]  # one below the other


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["", "#learned", "#experiments"])
def test_no_serious_findings_of_axe(serve: Callable[..., Running], at: Open, scheme: str, view: str) -> None:
    page = at(
        serve("bm25+pls", "bm25", min_users=1), f"?q=ny+pizza&left=bm25-pls&right=bm25{view}", color_scheme=scheme
    )
    if view:
        expect(page.locator(view).locator("p").first).to_be_visible()
    else:
        page.locator(".why-button").first.click()
        expect(page.locator(".why")).to_be_visible()
        page.fill("#query", "")
        page.locator("#query").press_sequentially("piz", delay=20)
        expect(page.get_by_role("option").first).to_be_visible()
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run()")
    serious = [(v["id"], v["nodes"][0]["html"]) for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert serious == []
    assert len(found["passes"]) > 10


def test_nothing_comes_from_outside() -> None:
    for path in PAGE.iterdir():
        text = path.read_text().replace("http://www.w3.org", "")
        assert re.findall("https?://", text) == [], path
