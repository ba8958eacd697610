"""What is said of a training, in sentences that every screen shows."""

from __future__ import annotations

from collections.abc import Iterator

from grader.playing import removal
from grader.playing.attention import Head
from grader.playing.game import Game, Scene
from grader.playing.learning import Learning, Sample
from grader.records.rows import counted

HIGH_START = (
    "The first loss was {first:.1f}. Guessing among {size} characters gives ln {size} = "
    "{guessing:.2f}, so at the start your model was sure, and wrong. Its tables of tokens and "
    "positions were drawn with a standard deviation of {spread:.2g} (nn.Embedding takes 1). Where "
    "the output multiplies by the same table, logits are sums of {width} products of such numbers, "
    "and far from each other. With tables near 0.02 all logits start near 0, and that is guessing. "
    "Try it: {again}"
)

NO_WEIGHTS = (
    "No attention is drawn: nothing that your model computes has a row and a column for each "
    "token, and rows that sum to one."
)


def progress(learning: Learning) -> str:
    """How far it is, and the loss, in one line."""
    loss = f", loss {learning.losses[-1]:.3f}" if learning.losses else ""
    return f"step {learning.step} of {learning.last}{loss}, {learning.seconds:.0f} s"


def shares(learning: Learning) -> tuple[str, str] | None:
    """What of the last exam was right, in characters and in whole answers; None without one."""
    if not learning.marks:
        return None
    game, mark = learning.game, learning.marks[-1]
    return (
        f"{game.characters} right {mark.characters:6.1%}",
        f"{game.answers} right {mark.exact:6.1%}, of {mark.questions:,} it never learns from",
    )


def line_of(sample: Sample, *, backwards: bool) -> str:
    """A prompt and what came: wrong characters stand in brackets, and what is right behind."""
    return "".join(text for text, _ in parts_of(sample, backwards=backwards))


def parts_of(
    sample: Sample, *, backwards: bool, marks: tuple[str, str] = ("✓", "✗")
) -> list[tuple[str, str]]:
    """The same in pieces, each with its kind: prompt, right, wrong, mark, or "" if nobody knows."""
    answer, right = sample.answer, sample.right
    if not right:
        return [(_visible(sample.prompt), "prompt"), (_visible(answer), "")]
    pairs = [*zip(answer, right, strict=True)]
    pieces = [
        (ours, "right") if ours == theirs else (f"[{ours}]", "wrong") for ours, theirs in pairs
    ]
    good, bad = marks
    shown = right[::-1] if backwards else right
    verdict = (f"  {good}", "right") if sample.correct else (f"  {bad} {shown}", "mark")
    return [(sample.prompt, "prompt"), *(pieces[::-1] if backwards else pieces), verdict]


def in_brackets(game: Game) -> str:
    """What the brackets in an answer mean."""
    return f"In its answers, {game.characters} in [brackets] are wrong."


def _visible(text: str) -> str:
    return text.replace("\n", " / ")


def summary(learning: Learning) -> str:
    """How the training ended, in one sentence."""
    game, steps = learning.game, counted(learning.step, "step")
    how = "Stopped" if learning.interrupted else "Learnt" if learning.learnt else "Ended"
    said = f"{how} after {steps}, {learning.seconds:.0f} s"
    if not learning.marks:
        loss = f", loss {learning.losses[-1]:.2f}" if learning.losses else ""
        return f"{said}{loss}."
    mark = learning.marks[-1]
    return (
        f"{said}: of {mark.questions:,} {game.answers} that it never learnt from, {mark.exact:.1%} "
        f"are right, and {mark.characters:.1%} of their {game.characters}."
    )


def remarks(learning: Learning, name: str) -> Iterator[str]:
    """What there is to see in this training beyond its numbers."""
    game, without = learning.game, learning.choices.without
    if learning.starts_too_high:
        yield HIGH_START.format(
            first=learning.losses[0],
            size=len(game.alphabet),
            guessing=game.guessing,
            spread=learning.first_spread,
            width=game.width,
            again=f"grader play {name} --std 0.02",
        )
    if not without:
        return
    yield f"Left out of your model: {', '.join(without)}."
    if removal.MASK in without and game.exam is not None:
        fed = learning.fed()
        yield (
            f"Where it reads the right answer along with the question, as it did while it learnt, "
            f"it gets {fed:.1%} of the {game.answers} right."
        )
    key = ",".join(part for part in removal.PARTS if part in without)
    yield from [" ".join(game.without[key].split())] if key in game.without else []


def of_head(head: Head, scene: Scene) -> str:
    """Why this head is shown."""
    return (
        f"This is {head.name}, while it reads {scene.text!r}. Of all heads it has the most weight, "
        f"{head.on(scene.focus):.0%}, on {scene.meaning}."
    )


def letter(character: str) -> str:
    """A character as a label: a space can be seen."""
    return {" ": "␣", "\n": "¶"}.get(character, character)
