"""The colours of the full screen: on a dark ground, and on a light one.

What is drawn names the sixteen colours of a terminal; here they are chosen so that each can be read
on the ground of its theme.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.terminal_theme import TerminalTheme

DARK, LIGHT = "textual-dark", "textual-light"

ON_DARK = TerminalTheme(
    (18, 18, 18),
    (224, 224, 224),
    [
        (150, 150, 150), (255, 105, 105), (120, 210, 110), (240, 190, 80),
        (120, 170, 255), (225, 140, 245), (90, 210, 230), (224, 224, 224),
    ],
)  # fmt: skip
ON_LIGHT = TerminalTheme(
    (224, 224, 224),
    (31, 31, 31),
    [
        (80, 80, 80), (165, 15, 30), (15, 90, 15), (105, 70, 0),
        (25, 60, 165), (120, 35, 130), (0, 80, 100), (31, 31, 31),
    ],
)  # fmt: skip


def is_light(environ: Mapping[str, str]) -> bool:
    """Whether the terminal's ground is light, as far as it says so; a theme that is named wins."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return ground in ("7", "15") and "TEXTUAL_THEME" not in environ
