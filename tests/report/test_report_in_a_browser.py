"""The page in a real browser: no complaints, nothing wider than a phone, every figure has a size.

Needs Chromium (``chromium``, ``chromium-browser`` or ``google-chrome`` on the path); skipped without.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from coreset_mcmc.report import render
from tests.helpers.report_fits import hostile_content, made_content, made_fit, normal_draws

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium, which is not installed")

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
)
PHONE = 360
PROBE = """
<iframe id="phone" style="width: %dpx; height: 800px; border: 0"></iframe>
<script>
window.addEventListener("load", () => {
  const frame = document.getElementById("phone");
  frame.addEventListener("load", () => {
    const root = frame.contentDocument.documentElement;
    const boxes = name => [...root.querySelectorAll(name)].map(each => each.getBoundingClientRect());
    document.title = JSON.stringify({
      width: root.clientWidth,
      scrollWidth: root.scrollWidth,
      figures: boxes("svg").map(box => [box.width, box.height]),
      rightmost: Math.max(0, ...boxes(".scroll").map(box => box.right)),
    });
  });
  frame.srcdoc = JSON.parse(document.getElementById("page").textContent);
});
</script>
"""


def browse(path: Path, profile: Path, *options: str) -> tuple[str, list[str]]:
    """What the browser prints, and its messages about the page."""
    assert BROWSER is not None
    command = [BROWSER, *FLAGS, f"--user-data-dir={profile}", *options, path.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return result.stdout, [line for line in result.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module", params=["usual", "hostile"])
def page(request) -> str:
    if request.param == "hostile":
        return render(hostile_content())
    return render(made_content(fit=made_fit({"a_rather_long_name_of_a_parameter": normal_draws(8)})))


def messages_about(page: str, folder: Path) -> tuple[str, list[str]]:
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return browse(path, folder / "profile", "--dump-dom")


def measured(page: str, folder: Path) -> dict[str, Any]:
    """The page without its policy, inside a frame as wide as a phone whose measures a script writes into the title."""
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    source = json.dumps(without_policy).replace("<", "\\u003c")
    path = folder / "probe.html"
    path.write_text(
        f'<!DOCTYPE html><meta charset="utf-8"><script type="application/json" id="page">{source}</script>'
        f"{PROBE % PHONE}",
        encoding="utf-8",
    )
    text, _ = browse(path, folder / "profile", "--virtual-time-budget=5000", "--dump-dom")
    title = re.search(r"<title>(.*?)</title>", text)
    assert title is not None, "the page did not load"
    return json.loads(title[1])


def test_the_browser_has_nothing_to_complain_about(page, tmp_path):
    text, messages = messages_about(page, tmp_path)
    assert messages == []
    assert text.count("<svg") == page.count("<svg")
    assert "<script" not in text


def test_nothing_is_wider_than_a_phone(page, tmp_path):
    found = measured(page, tmp_path)
    assert found["width"] <= PHONE
    assert found["scrollWidth"] <= found["width"]
    assert found["rightmost"] <= found["width"]
    assert len(found["figures"]) == page.count("<svg") > 0
    assert all(width > 100 and height > 50 for width, height in found["figures"])


def test_a_page_with_faults_is_found_out(tmp_path):
    """The two tests above can fail: a script and an image from elsewhere are refused aloud, a wide table is seen."""
    good = render(made_content())
    _, messages = messages_about(
        good.replace("</main>", '<script>alert(1)</script><img src="https://example.org/x.png"></main>'), tmp_path
    )
    assert len(messages) == 2
    wide = good.replace("</main>", '<table style="width: 900px"><tr><td>wide</td></tr></table></main>')
    found = measured(wide, tmp_path)
    assert found["scrollWidth"] > found["width"]
