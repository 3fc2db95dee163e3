"""A page taken apart, without a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple
from xml.etree import ElementTree

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Element(NamedTuple):
    tag: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """Elements in their order and the text between them; tags that do not match raise an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]

    def ids(self) -> list[str]:
        return [str(element.attributes["id"]) for element in self.elements if "id" in element.attributes]


def drawings(text: str) -> list[ElementTree.Element]:
    """Every figure of a page, as XML."""
    return [ElementTree.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>") for part in text.split("<svg")[1:]]
