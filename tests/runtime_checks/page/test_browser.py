"""The page of a real run in a real browser."""

import pytest

from tests.runtime_checks.page.test_document import HOSTILE, hostile_page

WIDTHS = (1400, 400)

# What is drawn right under the middle of each text, and how far the two are apart, by WCAG 2.
CONTRAST = """() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = color => {
    const [r, g, b] = color.slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    if (element.tagName === 'text' || element.tagName === 'tspan') {
      const box = element.getBoundingClientRect();
      const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
      const middle = element.closest('svg').querySelectorAll('rect');
      for (const rect of [...middle].reverse()) {
        const r = rect.getBoundingClientRect(), fill = getComputedStyle(rect).fill;
        if (x > r.left && x < r.right && y > r.top && y < r.bottom && fill !== 'none')
          return rgb(fill);
      }
    }
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.body.querySelectorAll('*')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || element.tagName === 'title') continue;
    const style = getComputedStyle(element);
    const ink = rgb(element.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) found.push([contrast.toFixed(2), element.textContent.slice(0, 40)]);
  }
  return found;
}"""

OVERLAPPING = """() => {
  const found = [];
  for (const svg of document.querySelectorAll('svg')) {
    const boxes = [...svg.querySelectorAll('text')].map(t => [t, t.getBoundingClientRect()])
      .filter(([, b]) => b.width);
    boxes.forEach(([one, a], at) => boxes.slice(at + 1).forEach(([two, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 4) found.push([one.textContent, two.textContent]);
    }));
  }
  return found;
}"""


@pytest.fixture
def opened(chromium):
    """Opens a file: `opened(path, width, scheme)`. What the browser says or asks for is kept at
    the page as `said` and `asked`."""
    contexts = []

    def opened(path, width=1400, scheme="light"):
        size = {"width": width, "height": 900}
        context = chromium.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("dialog", lambda dialog: (page.said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: page.asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")


def test_it_asks_for_nothing_and_nothing_goes_wrong(opened, reported):
    page = opened(reported.page)
    unfold(page)
    assert page.asked == [reported.page.as_uri()]
    assert page.said == []
    assert page.title() == "kvlint report: run"


def test_what_is_refuted_is_in_sight_with_the_region_the_slot_and_both_values(opened, reported):
    page = opened(reported.page)
    assert page.locator("h1").inner_text().startswith("3 of 4 hypotheses are refuted, 1 is confirm")
    card = page.locator("article.card", has_text="KV103 constant-stride-index").first
    assert card.is_visible()
    table = card.locator("table").first
    text = table.inner_text()
    assert "4 'layer 1 index key'" in text
    assert "653 descriptors before region 4" in text
    assert "656 4 * 164" in text
    assert "it is local region 4 'layer 1 index key' slot" in text
    strips = card.locator("svg.strip")
    assert strips.nth(0).locator(".pointed").all_text_contents() == [
        "taken: index 4, beyond the list of 4",
        "meant: index 3, region 2 slot 0",
    ]
    assert all(strips.nth(number).is_visible() for number in range(2))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window_and_no_text_lies_on_another(opened, reported, width):
    page = opened(reported.page, width)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OVERLAPPING) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_by_day_and_by_night(opened, reported, scheme):
    page = opened(reported.page, scheme=scheme)
    unfold(page)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(253, 253, 252)", "dark": "rgb(20, 23, 27)"}[scheme]
    assert page.evaluate(CONTRAST) == []


def test_details_open_by_keyboard_and_a_mark_leads_to_its_violation(opened, reported):
    page = opened(reported.page)
    summary = page.locator("summary", has_text="Violation 1: column").first
    message = page.locator("#violation-1 .message")
    assert not message.is_visible()
    for _ in range(200):
        page.keyboard.press("Tab")
        if summary.evaluate("one => one === document.activeElement"):
            break
    page.keyboard.press("Enter")
    assert message.is_visible()
    page.locator("svg.timeline a").first.focus()
    page.keyboard.press("Enter")
    assert page.url.endswith("#violation-1")


def test_on_paper_nothing_scrolls(opened, reported):
    page = opened(reported.page)
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == (
        "visible"
    )
    assert not page.locator("nav").is_visible()


def test_nothing_that_a_record_holds_becomes_part_of_the_page(opened, tmp_path):
    path = tmp_path / "hostile.html"
    path.write_text(hostile_page(), encoding="utf-8")
    page = opened(path, 400)
    unfold(page)
    assert page.said == []
    assert page.asked == [path.as_uri()]
    tags = page.evaluate("[...new Set([...document.querySelectorAll('*')].map(e => e.tagName))]")
    assert {"SCRIPT", "IMG", "script", "img"}.isdisjoint(tags)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert HOSTILE in page.locator("body").inner_text()
