"""A distribution as bars: an ``<svg>`` element in the colours of the page around it.

The page's style knows its classes ``bar``, ``axis`` and ``count``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from grader.records.rows import number
from grader.report.classroom import Bar

WIDTH, HEIGHT = 640, 200
ABOVE, BELOW, GAP = 22, 26, 4  # room for counts, for points, and between bars
BASE = HEIGHT - BELOW


def histogram(bars: Sequence[Bar], title: str) -> str:
    """Counts stand above the bars, points below them; who does not see it is told in words."""
    described = "; ".join(f"{_points(b.low)} to {_points(b.high)} points: {b.count}" for b in bars)
    return (
        f'<svg class="histogram" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="histogram-title" aria-describedby="histogram-described">'
        f'<title id="histogram-title">{escape(title)}</title>'
        f'<desc id="histogram-described">{escape(described)}</desc>'
        f'{"".join(_bars(bars))}<path class="axis" d="M0 {BASE}H{WIDTH}"/></svg>'
    )


def _bars(bars: Sequence[Bar]) -> Iterator[str]:
    most = max((bar.count for bar in bars), default=0)
    step = WIDTH / max(len(bars), 1)
    for place, bar in enumerate(bars):
        left, middle = place * step, (place + 0.5) * step
        height = (BASE - ABOVE) * bar.count / most if most else 0
        yield (
            f'<rect class="bar" x="{left + GAP / 2:.1f}" y="{BASE - height:.1f}"'
            f' width="{step - GAP:.1f}" height="{height:.1f}"/>'
        )
        if bar.count:
            yield _text(middle, BASE - height - 6, str(bar.count), "middle", "count")
        yield _text(left, HEIGHT - 9, _points(bar.low), "middle" if place else "start")
    if bars:
        yield _text(WIDTH, HEIGHT - 9, _points(bars[-1].high), "end")


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{styled}>{escape(text)}</text>'


def _points(value: float) -> str:
    return number(round(value, 1))
