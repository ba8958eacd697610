"""Draws the curves of a training: with characters for a terminal, and as SVG for a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

WIDTH, HEIGHT = 60, 7  # in characters
BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "#"

# The size and the margins of an SVG, in its own units.
BROAD, TALL = 640.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 12.0, 14.0, 26.0
# Colours that are visible on light and on dark pages.
LOSS, GUESS, EXACT, SINGLE = "#2f7de1", "#c05a12", "#1f9d57", "#8a63d2"


def in_characters(
    values: Sequence[float], last: int, least: float, blocks: str = BLOCKS
) -> Iterator[str]:
    """The lines of a curve, from top to bottom; each column shows the mean of some steps.

    The width covers all `last` steps, so the curve grows to the right during the training. The top
    of the curve is `least`, or the largest mean if that is larger.
    """
    columns = min(WIDTH, last)
    means = []
    for column in range(columns):
        part = values[column * last // columns : (column + 1) * last // columns]
        if part:
            means.append(sum(part) / len(part))
    top, steps = max([least, *means]), len(blocks)
    heights = [max(1, min(HEIGHT * steps, round(mean / top * HEIGHT * steps))) for mean in means]
    for row in reversed(range(HEIGHT)):
        filled = (min(steps, height - row * steps) for height in heights)
        line = "".join(blocks[full - 1] if full > 0 else " " for full in filled)
        label = f"{top:5.2f}" if row == HEIGHT - 1 else "    0" if row == 0 else ""
        yield f"{label:5} |{line}".rstrip()


def loss_svg(losses: Sequence[float], last: int, guessing: float) -> str:
    """The curve of the loss, with a horizontal line at the loss of guessing."""
    top = 1.15 * max([guessing, *losses])
    points = [*enumerate(losses, 1)]
    return _svg(
        "the loss, step by step",
        f"From {losses[0]:.2f} to {losses[-1]:.3f}; guessing is {guessing:.2f}." if losses else "",
        [
            _line([(1, guessing), (last, guessing)], last, top, GUESS, "5 4"),
            _text(BROAD - RIGHT, _y(guessing, top) - 5, f"guessing: {guessing:.2f}", GUESS, "end"),
            _line(points, last, top, LOSS),
            _text(LEFT - 6, _y(0, top) + 4, "0", anchor="end"),
            _text(LEFT - 6, TOP + 8, f"{top:.1f}", anchor="end"),
        ],
        last,
    )


def shares_svg(marks: Sequence[tuple[int, float, float]], last: int, names: tuple[str, str]) -> str:
    """The curves of two shares by step: right characters, and answers that are right as a whole."""
    characters = [(step, share) for step, share, _ in marks]
    whole = [(step, share) for step, _, share in marks]
    described = ""
    if marks:
        described = (
            f"At the end, {marks[-1][1]:.1%} of {names[0]} and {marks[-1][2]:.1%} of {names[1]} "
            "are right."
        )
    return _svg(
        f"{names[0]} and {names[1]} that are right",
        described,
        [
            _line(characters, last, 1.0, SINGLE, "6 3"),
            _line(whole, last, 1.0, EXACT),
            _text(LEFT - 6, _y(1, 1) + 4, "100%", anchor="end"),
            _text(LEFT - 6, _y(0, 1) + 4, "0%", anchor="end"),
            _text(BROAD - RIGHT, TALL - BOTTOM - 26, f"- - {names[0]}", SINGLE, "end"),
            _text(BROAD - RIGHT, TALL - BOTTOM - 10, f"— {names[1]}", EXACT, "end"),
        ],
        last,
    )


def _svg(title: str, described: str, parts: Sequence[str], last: int) -> str:
    ground = TALL - BOTTOM
    axes = (
        f'<path d="M{LEFT} {TOP}V{ground}H{BROAD - RIGHT}" fill="none" stroke="currentColor" '
        'stroke-opacity="0.5"/>'
    )
    below = _text(LEFT, TALL - 8, "step 1") + _text(
        BROAD - RIGHT, TALL - 8, f"{last}", anchor="end"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {BROAD:g} {TALL:g}" role="img" '
        f'width="{BROAD:g}" style="max-width: 100%; height: auto; font: 12px sans-serif">'
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc>"
        f"{axes}{below}{''.join(parts)}</svg>"
    )


def _line(
    points: Sequence[tuple[float, float]], last: int, top: float, color: str, dashes: str = ""
) -> str:
    across = BROAD - LEFT - RIGHT
    placed = " ".join(
        f"{LEFT + across * (x - 1) / max(1, last - 1):.1f},{_y(y, top):.1f}" for x, y in points
    )
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{placed}" fill="none" stroke="{color}" stroke-width="1.6"{dashed}/>'


def _y(value: float, top: float) -> float:
    return TALL - BOTTOM - (TALL - TOP - BOTTOM) * value / top


def _text(x: float, y: float, text: str, color: str = "currentColor", anchor: str = "start") -> str:
    return (
        f'<text x="{x:g}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">{escape(text)}</text>'
    )
