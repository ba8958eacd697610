"""A real browser without a window: Debian's ``chromium``, or a Chrome that is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """Where a browser is, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser that is closed in the end."""
    # As root it has no sandbox of its own; what it opens here was written here.
    options = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=options)
        try:
            yield browser
        finally:
            browser.close()
