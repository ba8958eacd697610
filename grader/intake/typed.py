"""Reads what students type into a learning system: a text, or the address of a link.

The system packs either as an HTML page. A text that holds code counts as a source file. This room
does not parse Python, so code is recognised by the form of its lines. Reading takes time in
proportion to a page's length.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from functools import partial

from grader.intake.files import (
    MAX_FILE,
    OTHER_TYPE,
    FileItem,
    FoundFile,
    Listed,
    Other,
    Problem,
    Unreadable,
    decoded,
    reason,
    too_large,
)
from grader.intake.names import shown

NO_CODE = f"{OTHER_TYPE}; the typed text holds no code"
NOT_FOLLOWED = f"{OTHER_TYPE}, not a link to {{}}"
NO_ADDRESS = f"{OTHER_TYPE}, not a link"


def typed_text(item: FileItem, page: str) -> FileItem:
    """The typed text as a source file, to list under a name that ends in ``.py``.

    `page` is the page's name in messages. Without code, the text is no source file.
    """
    return replace(item, found=partial(_text, item, page))


def typed_link(item: FileItem, page: str) -> FileItem:
    """The link, which is no source file; the message shows its address."""
    return replace(item, found=partial(_link, item, page))


def _text(item: FileItem, page: str, name: str) -> FoundFile:
    content = _content(item, page)
    if isinstance(content, Problem):
        return content
    code = code_in(content)
    if not code:
        return Other(shown(page), NO_CODE)
    data = code.encode("utf-8-sig", "replace")  # marked, since a line may declare an encoding
    return Listed(name, len(data), lambda: data)


def _link(item: FileItem, page: str, _name: str) -> FoundFile:
    content = _content(item, page)
    if isinstance(content, Problem):
        return content
    address = address_in(content)
    why = NOT_FOLLOWED.format(shown(address)) if address else NO_ADDRESS
    return Other(shown(page), why)


def _content(item: FileItem, page: str) -> str | Problem:
    """The text of a page, or the reason why it cannot be read."""
    listed = item.found(shown(page))
    if isinstance(listed, Problem):
        return listed
    if listed.size > MAX_FILE:
        return Problem(listed.name, too_large(listed.name))
    try:
        return decoded(listed.read())
    except Unreadable as error:
        return Problem(listed.name, str(error))
    except OSError as error:
        return Problem(listed.name, reason(error))


# --- a page --------------------------------------------------------------------------------------

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*+)[^<>]*+>|<![^<>]*+>")
# Elements whose content is not the student's text, and elements that begin or end a line.
_ASIDE = ("head", "title", "style", "script")
_BLOCKS = ("p", "div", "pre", "li", "ul", "ol", "tr", "table", "h1", "h2", "h3", "h4", "body")
_ADDRESS = re.compile(r"(?i)\b(?:https?|ftp)://[^\s\"'<>]+")


def address_in(page: str) -> str:
    """The first address in a page; empty if there is none."""
    # The address of the document type (`http://www.w3.org/…`) is in a tag of its own.
    text = re.sub(r"<![^<>]*>|(?i:xmlns)\s*=\s*\"[^\"<>]*\"", "", page)
    found = _ADDRESS.search(html.unescape(text))
    return found[0] if found else ""


def lines_of(page: str) -> list[str]:
    """The lines of a page's text; none if it is no HTML page."""
    parts: list[str] = []
    aside = ""  # the element that is skipped
    at = 0
    for tag in _TAG.finditer(page):
        if not aside:
            parts.append(_unescaped(page[at : tag.start()], after_break=bool(parts)))
        at = tag.end()
        closing, name = bool(tag[1]), (tag[2] or "").lower()
        if name in _ASIDE:
            aside = "" if closing and name == aside else aside or ("" if closing else name)
        elif not aside and (name == "br" or name in _BLOCKS):
            parts.append("\n")
    if not at:
        return []
    if not aside:
        parts.append(_unescaped(page[at:], after_break=True))
    return [line.rstrip() for line in "".join(parts).split("\n")]


def _unescaped(text: str, *, after_break: bool) -> str:
    """The text between two tags, without the line end that follows a tag."""
    plain = html.unescape(text.replace("\r\n", "\n").replace("\r", "\n"))
    plain = plain.replace("\N{NO-BREAK SPACE}", " ").expandtabs(4)
    return plain.removeprefix("\n") if after_break else plain


# --- code ----------------------------------------------------------------------------------------

_STARTS = re.compile(
    r"import\s+\w|from\s+[\w.]+\s+import\b|(async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:]|@\w+"
    r"|#|[A-Za-z_][\w.\[\]]*\s*(:\s*[\w.\[\]]+\s*)?[-+*/]?=(?!=)"
)
_GOES_ON = re.compile(
    r"\s+\S|[)\]}]|(if|for|while|with|try|else|elif|except|finally|return|print|assert|raise)\b"
    r"|\"\"\"|'''|[\w.]+\(.*\)$"
)
_DEFINES = re.compile(r"\s*((async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[(:])|\w+\s*=\s*lambda\b")


def code_in(page: str) -> str:
    """The code in a page: from the first to the last line that looks like Python.

    Empty if these lines define nothing.
    """
    lines = lines_of(page)
    starts = [n for n, line in enumerate(lines) if _STARTS.match(line)]
    if not starts or not any(map(_DEFINES.match, lines)):
        return ""
    first = starts[0]
    last = max(
        n
        for n, line in enumerate(lines)
        if n >= first and (_STARTS.match(line) or _GOES_ON.match(line))
    )
    return "\n".join(lines[first : last + 1]) + "\n"
