"""The page in a real browser, offline: it draws, turns dark, can be walked by keyboard, fits a phone."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pictures
import pytest
import report_data
from chromium import chromium
from test_render import HOSTILE, hostile
from test_together_report import result as together

from wiretwin.report import render
from wiretwin.report.writer import html

BUILD = Path(__file__).resolve().parents[3] / "build"
LIMIT_MS = 60_000


@dataclass
class Opened:
    """A page and what went wrong on it."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render(**report_data.everything(), out=tmp_path_factory.mktemp("report") / "report.html")


def open_page(browser: Any, path: Path, width: int = 1280, scheme: str = "light", **options: Any) -> Opened:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True, **options
    )
    context.set_default_timeout(LIMIT_MS)
    opened = Opened(context.new_page())
    page = opened.page
    page.on("console", lambda message: opened.console.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: opened.console.append(f"error: {error}"))
    page.on("request", lambda request: opened.requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_function("document.documentElement.dataset.ready === 'yes'")
    return opened


@pytest.fixture
def laptop(browser: Any, report: Path) -> Iterator[Opened]:
    opened = open_page(browser, report)
    yield opened
    opened.page.context.close()


def unfold(page: Any) -> None:
    """Open every folded part and wait until its figures are drawn."""
    page.evaluate("document.querySelectorAll('details.more').forEach((part) => { part.open = true; })")
    page.wait_for_function("[...document.querySelectorAll('.plot')].every((p) => p.matches('.drawn'))")


def keep(page: Any, name: str) -> None:
    BUILD.mkdir(exist_ok=True)
    page.screenshot(path=BUILD / f"report-{name}.png", full_page=True)


def test_it_opens_offline_without_a_complaint(laptop: Opened) -> None:
    unfold(laptop.page)
    assert laptop.console == []
    assert [url for url in laptop.requests if not url.startswith(("file:", "data:"))] == []
    assert laptop.page.locator("#trouble").is_hidden()
    keep(laptop.page, "light")


DRAWN = r"""() => Object.fromEntries([...document.querySelectorAll('.plot')].map((plot) => [
  plot.dataset.figure,
  {
    svgs: plot.querySelectorAll('svg.main-svg').length,
    traces: (plot._fullData || []).length,
    visible: (plot._fullData || []).filter((trace) => trace.visible === true).length,
    data: (plot._fullData || []).reduce((sum, trace) => sum + (trace.x ? trace.x.length : 0), 0),
    points: plot.querySelectorAll('.points path, .point path').length,
    lines: [...plot.querySelectorAll('path.js-line, path.js-fill')].filter((p) => p.getAttribute('d')).length,
    few: Object.entries(plot._fullLayout || {}).filter(([name, axis]) => /^[xy]axis\d*$/.test(name)
      && axis.showticklabels && axis.type !== 'category')
      .map(([name, axis]) => [name, [...plot.querySelectorAll(`.${axis._id}tick text`)]
        .map((text) => text.textContent.trim()).filter((text) => text)])
      .filter(([name, ticks]) => ticks.length < 3 && !ticks.every((tick) => tick.startsWith('rank ')))
      .map(([name]) => name),
    width: plot.querySelector('svg.main-svg').getBoundingClientRect().width,
  },
]))"""


def test_each_figure_draws_its_data(laptop: Opened, report: Path) -> None:
    unfold(laptop.page)
    drawn = laptop.page.evaluate(DRAWN)
    assert len(drawn) == 15
    for name, seen in drawn.items():
        assert seen["svgs"] >= 1, name
        assert seen["traces"] == seen["visible"] > 0, (name, seen)
        assert seen["data"] > 0, (name, seen)
        assert seen["points"] + seen["lines"] > 0, (name, seen)
        assert seen["few"] == [], (name, seen)
        assert seen["width"] > 300, (name, seen)
    layers, sizes = len(report_data.LAYERS), len(report_data.SIZES)
    assert drawn["throughput"]["points"] >= layers * sizes
    assert drawn["predicted"]["points"] == len(report_data.PROGRAMS)
    assert drawn["breakdown-1"]["points"] == 4 * 5
    assert drawn["timeline-1"]["lines"] >= 4


def test_dark_follows_the_system_and_the_button(browser: Any, report: Path) -> None:
    opened = open_page(browser, report, scheme="dark")
    page = opened.page
    look = """() => ({
      theme: document.documentElement.dataset.theme,
      page: getComputedStyle(document.body).backgroundColor,
      line: document.querySelector('#throughput-plot path.js-line').style.stroke,
      tick: document.querySelector('#throughput-plot .xtick text').style.fill,
      range: document.querySelector('#throughput-plot')._fullLayout.xaxis.range.join(),
      pressed: document.getElementById('theme').getAttribute('aria-pressed'),
    })"""
    dark = page.evaluate(look)
    assert (dark["theme"], dark["pressed"]) == ("dark", "true")
    keep(page, "dark")
    page.locator("#theme").click()
    page.wait_for_function(
        "(old) => document.querySelector('#throughput-plot path.js-line').style.stroke !== old",
        arg=dark["line"],
    )
    light = page.evaluate(look)
    assert (light["theme"], light["pressed"]) == ("light", "false")
    for key in ("page", "line", "tick"):
        assert light[key] != dark[key], key
    assert light["range"] == dark["range"]
    page.emulate_media(color_scheme="light")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(look)["theme"] == "light", "the button's choice outlasts the system's"
    assert opened.console == []
    page.context.close()


PLOTS = "[...document.querySelectorAll('.plot')]"
WIDTHS = f"{PLOTS}.map((plot) => plot.querySelector('svg.main-svg').getBoundingClientRect().width)"


def _focused(page: Any) -> dict[str, str]:
    return dict(
        page.evaluate(
            """() => { const at = document.activeElement; return {
              id: at.id, tag: at.tagName, text: at.textContent.trim().slice(0, 30),
              href: at.getAttribute('href') || '',
            }; }"""
        )
    )


def test_the_keyboard_reaches_everything_in_reading_order(laptop: Opened) -> None:
    page = laptop.page
    order = []
    for _step in range(200):
        page.keyboard.press("Tab")
        focused = _focused(page)
        if focused["tag"] == "BODY":
            break
        order.append(focused)
    assert order[0]["href"] == "#main", "the skip link comes first"
    ids = [item["id"] for item in order]
    assert "theme" in ids
    plots = page.evaluate(
        f"{PLOTS}.filter((plot) => !plot.closest('details:not([open])')).map((plot) => plot.id)"
    )
    assert [name for name in ids if name.endswith("-plot")] == plots
    assert len(plots) >= 9
    assert ids.index("theme") < ids.index(plots[0])
    assert sum(item["text"].startswith("Data table") for item in order) == len(plots)


def test_the_skip_link_moves_to_the_report(laptop: Opened) -> None:
    laptop.page.keyboard.press("Tab")
    laptop.page.keyboard.press("Enter")
    laptop.page.wait_for_function("document.activeElement.id === 'main'")


def test_arrow_keys_walk_along_a_curve_and_say_where(laptop: Opened) -> None:
    page = laptop.page
    page.locator("#throughput-plot").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#live").text_content()
    page.keyboard.press("ArrowRight")
    second = page.locator("#live").text_content()
    assert first.startswith("shm: ")
    assert "4\u00a0B" in first
    assert "8\u00a0B" in second
    page.keyboard.press("ArrowDown")
    assert page.locator("#live").text_content().startswith("socket/unix: ")
    assert laptop.console == []


def test_layer_buttons_hide_a_layer_in_each_figure_of_the_section(laptop: Opened) -> None:
    page = laptop.page
    chip = page.locator("#curves .chip", has_text="socket/unix")
    chip.focus()
    page.keyboard.press("Enter")
    assert chip.get_attribute("aria-pressed") == "false"
    for name in ("throughput", "latency", "signature", "saturation"):
        page.wait_for_function(
            """(id) => document.getElementById(id)._fullData
              .filter((trace) => trace.meta && trace.meta.layer === 'socket/unix')
              .every((trace) => trace.visible === false)""",
            arg=f"{name}-plot",
        )
    chip.click()
    page.wait_for_function(
        "document.getElementById('throughput-plot')._fullData.every((trace) => trace.visible === true)"
    )


def test_the_scale_turns_linear_and_back(laptop: Opened) -> None:
    page = laptop.page
    button = page.locator("[data-scale=throughput]")
    for kind in ("linear", "log"):
        button.click()
        page.wait_for_function(
            "(kind) => document.getElementById('throughput-plot')._fullLayout.yaxis.type === kind", arg=kind
        )


def test_figures_and_tables_are_saved_as_files(laptop: Opened, tmp_path: Path) -> None:
    page = laptop.page
    page.locator("#throughput details.data summary").click()
    saved = {}
    for form in ("svg", "png", "csv"):
        with page.expect_download() as download:
            page.locator(f"[data-save={form}][data-of=throughput]").click()
        assert download.value.suggested_filename == f"throughput.{form}"
        download.value.save_as(tmp_path / form)
        saved[form] = (tmp_path / form).read_bytes()
    assert ElementTree.fromstring(saved["svg"]).tag == "{http://www.w3.org/2000/svg}svg"
    assert saved["png"].startswith(b"\x89PNG\r\n")
    rows = list(csv.reader(io.StringIO(saved["csv"].decode())))
    shown = page.locator("#throughput details.data tr")
    assert len(rows) == shown.count() > 1
    assert rows[1] == shown.nth(1).locator("th, td").all_inner_texts()


def test_the_timeline_zooms_by_buttons_and_keys(laptop: Opened) -> None:
    page = laptop.page
    axis = "document.getElementById('timeline-1-plot')._fullLayout.xaxis"
    span = f"({axis}.range[1] - {axis}.range[0])"
    whole = page.evaluate(span)
    page.locator("[data-zoom=in][data-for=timeline-1]").click()
    page.wait_for_function(f"(whole) => {span} < whole * 0.6", arg=whole)
    page.locator("#timeline-1-plot").focus()
    page.keyboard.press("+")
    page.wait_for_function(f"(whole) => {span} < whole * 0.3", arg=whole)
    page.keyboard.press("0")
    page.wait_for_function(f"(whole) => Math.abs({span} - whole) < whole * 1e-6", arg=whole)


def test_headings_step_by_one_and_figures_are_described(laptop: Opened) -> None:
    page = laptop.page
    levels = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].map((h) => Number(h.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    faults = page.evaluate(
        """() => [...document.querySelectorAll('figure')].flatMap((figure) => {
          const plot = figure.querySelector('.plot');
          const named = (key) => (plot.getAttribute(key) || '').split(' ')
            .every((id) => (document.getElementById(id)?.textContent || '').trim());
          const table = figure.querySelector('details table');
          const faults = [];
          if (plot.getAttribute('role') !== 'img' || plot.tabIndex !== 0) faults.push('role');
          if (!named('aria-labelledby') || !named('aria-describedby')) faults.push('name');
          if (!table?.querySelector('caption') || !table.querySelector('tbody tr')) faults.push('table');
          return faults.map((fault) => figure.id + ': ' + fault);
        })"""
    )
    assert faults == []
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, a, summary, [role=region], nav')].filter((item) =>
          !(item.getAttribute('aria-label') || item.textContent).trim()).length"""
    )
    assert nameless == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((item) => item.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_scrolls_sideways(browser: Any, report: Path, width: int) -> None:
    opened = open_page(browser, report, width=width, has_touch=True, is_mobile=width < 500)
    page = opened.page
    unfold(page)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """(width) => [...document.querySelectorAll('main *')].filter((item) =>
          !item.closest('.scroll, pre, svg, .plot, .hidden')
          && item.getBoundingClientRect().right > width + 0.5
        ).map((item) => item.tagName + '.' + item.className)""",
        width,
    )
    assert outside == []
    widths = page.evaluate(f"{WIDTHS}.map((width, at) => width - {PLOTS}[at].clientWidth)")
    assert len(widths) == 15
    assert max(widths) <= 1
    assert min(widths) > -1
    assert opened.console == []
    page.evaluate("document.querySelectorAll('details.data').forEach((part) => { part.open = false; })")
    keep(page, f"{width}")
    page.context.close()


def test_printing_shows_light_figures_that_fit(browser: Any, report: Path) -> None:
    opened = open_page(browser, report, scheme="dark")
    page = opened.page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("[...document.querySelectorAll('.plot')].every((p) => p.matches('.drawn'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    widths = page.evaluate(WIDTHS)
    assert len(widths) == 15
    assert 600 < min(widths) <= max(widths) <= 700
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert opened.console == []
    page.context.close()


def test_a_browser_that_cannot_unpack_says_so(browser: Any, report: Path) -> None:
    context = browser.new_context(offline=True)
    context.add_init_script("delete window.DecompressionStream")
    page = context.new_page()
    page.goto(report.as_uri())
    page.wait_for_function("!document.getElementById('trouble').hidden")
    assert "table beneath it" in page.locator("#trouble").text_content()
    context.close()


def test_hostile_names_do_nothing_in_a_browser(browser: Any, tmp_path: Path) -> None:
    opened = open_page(browser, render(**hostile(), out=tmp_path / "report.html"))
    page = opened.page
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    unfold(page)
    page.locator("#throughput-plot").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#live").text_content().startswith(HOSTILE)
    assert page.locator(".plot img, .plot script, main img").count() == 0
    chip = page.locator("#curves .chip").first
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    assert dialogs == []
    assert opened.console == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
    page.context.close()


def test_a_paper_rebuilt_draws_every_figure_on_a_desk_and_on_a_phone(browser: Any, tmp_path: Path) -> None:
    from wiretwin.papers import lin1995
    from wiretwin.papers import report as papers

    names = ("table3", "figure8", "under-load")
    records = [record for name in names for record in lin1995.experiment(name, quick=True)[0]]
    path = papers.render("lin1995", records, tmp_path / "lin1995.html")
    for width, name in ((1280, "paper"), (390, "paper-phone")):
        opened = open_page(browser, path, width=width)
        page = opened.page
        unfold(page)
        assert opened.console == []
        assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []
        drawn = page.evaluate(DRAWN)
        figures = {"table3-errors", "figure8-latency-0", "figure8-latency-1", "under-load-latency-0"}
        assert set(drawn) == figures
        for figure, seen in drawn.items():
            assert seen["traces"] == seen["visible"] > 0, (figure, seen)
            assert seen["points"] == seen["data"] > 0, (figure, seen)
            assert seen["few"] == [], (figure, seen)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "it fits"
        shown = page.locator("#figure8 .chip").all_text_contents()
        assert "socket/tcp/fddi 32 KiB nagle" in shown
        keep(page, name)
        page.context.close()


def test_every_other_picture_has_three_ticks_an_axis(browser: Any, tmp_path: Path) -> None:
    figures = pictures.pictures(tmp_path, together(tmp_path / "together"))
    path = tmp_path / "pictures.html"
    path.write_text(html(pictures.page(figures)))
    opened = open_page(browser, path)
    unfold(opened.page)
    drawn = opened.page.evaluate(DRAWN)
    assert set(drawn) == set(figures)
    assert {name: seen["few"] for name, seen in drawn.items() if seen["few"]} == {}
    assert opened.console == []
    opened.page.context.close()


def test_a_message_taken_apart_draws_its_waterfall(browser: Any, tmp_path: Path) -> None:
    from wiretwin.model.anatomy import anatomy
    from wiretwin.model.profiles import Network
    from wiretwin.report.anatomy import render_anatomy

    found = anatomy(Network("fore/aal5", "sparc2", "series-200", switch="asx100"), 4096)
    opened = open_page(browser, render_anatomy(found, tmp_path / "message.html"))
    unfold(opened.page)
    assert opened.console == []
    [seen] = opened.page.evaluate(DRAWN).values()
    assert seen["points"] == seen["data"] == len(found.path)
    keep(opened.page, "message")
    opened.page.context.close()
