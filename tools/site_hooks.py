"""Hooks of the site: pages that are made while it is built, and links that lead out of the folder of pages.

Files of the root (changes, contributing, security) become pages; the reference of the command line is made from the
code; pages of benchmarks that nobody has put into the menu are put there. A link to a file of the repository that is
no page leads to the repository. The script that lets search work in pages opened from a file is our own, beside them.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import command_line_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
ROOT_PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
COMMAND_LINE = "reference/command_line.md"
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")
SHIM, OWN_SHIM = "https://unpkg.com/iframe-worker/shim", "javascripts/worker_in_a_frame.js"
CODE_IN_TABLE = re.compile(r"`[^`\n]*\\\|[^`\n]*`")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The menu of benchmarks holds every page of theirs."""
    benchmarks = next(section["Benchmarks"] for section in config.nav or [] if "Benchmarks" in section)
    named = {page if isinstance(page, str) else next(iter(page.values())) for page in benchmarks}
    found = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs/benchmarks").glob("*.md"))
    benchmarks += [page for page in found if page not in named]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere or are made."""
    for source, name in ROOT_PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, COMMAND_LINE, content=command_line_page.page()))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, config: MkDocsConfig, **_: Any) -> str:
    """Send links out of the folder to the repository, and let a bar in a code span of a table be a bar."""
    source = page.file.src_uri
    root_name = next((root for root, name in ROOT_PAGES.items() if name == source), None)
    place = "." if root_name else posixpath.join("docs", posixpath.dirname(source))

    def mended(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(place, match.group(1)))
        return f"]({target(path, source, config.extra['repository'])}{match.group(2) or ''})"

    return CODE_IN_TABLE.sub(lambda found: found.group().replace("\\|", "|"), LINK.sub(mended, markdown))


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Nothing is loaded from another host."""
    return output.replace(SHIM, get_relative_url(OWN_SHIM, page.url))


def on_post_template(output_content: str, **_: Any) -> str:
    """The page for addresses that do not exist, which is shown at any depth."""
    return output_content.replace(SHIM, f"/{OWN_SHIM}")


def target(path: str, source: str, repository: str) -> str:
    """Where a path of the repository is found from a page."""
    if path in ROOT_PAGES:
        path = posixpath.join("docs", ROOT_PAGES[path])
    if path.startswith("docs/"):
        return posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(source) or ".")
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository}/{kind}/main/{path}" if (ROOT / path).exists() else path
