"""The results of a training, as an HTML page in a single file, and as HTML for a notebook's cell.

Text is escaped. Pictures are SVG, with colours for light and dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from grader.feedback.pictures.svg import heatmap_svg
from grader.feedback.terminal import safe
from grader.playing import words
from grader.playing.attention import Head, most_on
from grader.playing.curve import loss_svg, shares_svg
from grader.playing.learning import Learning
from grader.playing.opening import Opened

COLORS = {"right": "#1f9d57", "wrong": "#d8453c", "mark": "#d8453c"}


def page(opened: Opened, learning: Learning, heads: Sequence[Head]) -> str:
    """The HTML page with all results of a training."""
    game = opened.game
    template = resources.files("grader.playing").joinpath("templates", "page.html")
    return Template(template.read_text("utf-8")).substitute(
        title=_text(game.title),
        summary=_text(words.summary(learning)),
        remarks="".join(
            f"<p>{_text(remark)}</p>" for remark in words.remarks(learning, opened.name)
        ),
        curves=curves(learning),
        samples=_samples(learning, last=True),
        heads=_heads(learning, heads),
        pieces=_pairs((name, f"from {where}") for name, where in opened.places.items()),
        recipe=_pairs(recipe(learning)),
        command=_text(command(opened.name, learning)),
    )


def side_by_side(left: tuple[str, str], right: tuple[str, str]) -> str:
    """An HTML page with two pages in two columns; each is given by its name and its HTML."""
    template = resources.files("grader.playing").joinpath("templates", "beside.html")
    frames = "".join(
        f'<iframe sandbox title="{escape(name)}" srcdoc="{escape(whole)}"></iframe>'
        for name, whole in (left, right)
    )
    title = _text(f"{left[0]} and {right[0]}")
    return Template(template.read_text("utf-8")).substitute(title=title, frames=frames)


def curves(learning: Learning) -> str:
    """The curve of the loss; below it, if the game has an exam, the curves of right answers."""
    game, marks = learning.game, learning.marks
    drawn = [("The loss of every step", loss_svg(learning.losses, learning.last, game.guessing))]
    if marks:
        shares = [(mark.step, mark.characters, mark.exact) for mark in marks]
        names = game.characters, game.answers
        about = f"Right {names[0]} and {names[1]}, among those that were not used for training"
        drawn.append((about, shares_svg(shares, learning.last, names)))
    return "".join(
        f"<figure><figcaption>{_text(title)}</figcaption>{svg}</figure>" for title, svg in drawn
    )


def cell(learning: Learning, below: Iterable[str] = ()) -> str:
    """The state of a training as HTML for a notebook's cell."""
    lines = [words.progress(learning), *(words.shares(learning) or ())]
    return (
        f"<div><p><strong>{'<br>'.join(map(_text, lines))}</strong></p>{curves(learning)}"
        f"{_samples(learning, last=False)}"
        f"{''.join(f'<p>{_text(line)}</p>' for line in below)}</div>"
    )


def recipe(learning: Learning) -> list[tuple[str, str]]:
    """The settings of the training as rows: a name and a text."""
    game, recipe, choices = learning.game, learning.game.recipe, learning.choices
    parameters = sum(p.numel() for p in learning.moments)
    rows = [
        ("model", f"{parameters:,} parameters, width {game.width}, {learning.heads} heads"),
        ("reads", f"{len(game.alphabet)} characters, up to {game.context} at a time"),
        (
            "learning rate",
            f"{recipe.lr:g}, after {recipe.warm_up} steps of warm-up, then down to 0",
        ),
        ("weight decay", f"{recipe.weight_decay:g}"),
        ("steps", f"{learning.step} of {learning.last} at most, in {learning.seconds:.0f} s"),
        ("seed", str(choices.seed)),
    ]
    if choices.without:
        rows.append(("left out", ", ".join(choices.without)))
    if choices.std is not None:
        rows.append(("tables", f"drawn anew with a standard deviation of {choices.std:g}"))
    return rows


def command(name: str, learning: Learning) -> str:
    """The shell command that repeats the training."""
    choices = learning.choices
    given = {
        "seed": choices.seed if choices.seed != 1 else None,
        "steps": choices.steps,
        "heads": choices.heads,
        "std": choices.std,
        "without": ",".join(choices.without) or None,
    }
    options = [f" --{key} {value}" for key, value in given.items() if value is not None]
    return f"grader play {name}{''.join(options)}"


def _heads(learning: Learning, heads: Sequence[Head]) -> str:
    scene = learning.game.scene
    best = most_on(heads, scene)
    if best is None:
        return f"<h2>Its attention</h2><p>{_text(words.NO_WEIGHTS)}</p>"
    tokens = [words.letter(character) for character in scene.text]
    ordered = [best, *(head for head in heads if head is not best)]
    pictures = "".join(f"<figure>{_head(head, tokens)}</figure>" for head in ordered)
    return (
        f"<h2>Its attention</h2><p>{_text(words.of_head(best, learning))} Rows look at columns; "
        f'a fuller cell has more weight.</p><div class="heads">{pictures}</div>'
    )


def _head(head: Head, tokens: Sequence[str]) -> str:
    return heatmap_svg(
        [*map(list, head.weights)], title=head.name, row_tokens=tokens, column_tokens=tokens
    )


def _samples(learning: Learning, *, last: bool) -> str:
    """The model's answers, with a sentence about brackets if answers may have brackets.

    During the training, the sentence is always shown. With `last`, after the training, it is shown
    only if an answer is wrong.
    """
    game = learning.game
    brackets = not last or not all(sample.correct for sample in learning.samples)
    lines = (
        "".join(_piece(*part) for part in words.parts_of(sample, backwards=game.backwards))
        for sample in learning.samples
    )
    joined = "\n".join(lines)
    legend = f'<p class="faint">{_text(words.in_brackets(game))}</p>'
    below = legend if game.exam and brackets else ""
    return f'<pre class="samples">{joined}</pre>{below}' if learning.samples else ""


def _piece(text: str, kind: str) -> str:
    if not kind:
        return _text(text)
    color = f' style="color: {COLORS[kind]}"' if kind in COLORS else ""
    return f'<span class="{kind}"{color}>{_text(text)}</span>'


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in rows)


def _text(raw: str) -> str:
    return escape(safe(raw))
