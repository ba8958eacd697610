"""Sentences about a training, for the terminal, the notebook and the page."""

from __future__ import annotations

from collections.abc import Iterator

from grader.playing import removal
from grader.playing.attention import Head
from grader.playing.game import Game
from grader.playing.learning import Learning, Sample
from grader.records.rows import counted

HIGH_START = (
    "The first loss was {first:.1f}. Guessing among {size} characters gives ln {size} = "
    "{guessing:.2f}, so at the start your model was sure, and wrong. Its tables of tokens and "
    "positions were drawn with a standard deviation of {spread:.2g} (nn.Embedding uses 1). If the "
    "output layer shares the table of tokens, each logit is a sum of {width} products of such "
    "numbers, and the logits are far apart. With a standard deviation near 0.02 all logits start "
    "near 0, which is the same as guessing. Try it: {again}"
)

CAN = 0.9  # the share of right answers from which on a model can do its task
FAR = 1 / 3  # the part of the way from even weights to all weight that a telling head goes

NO_WEIGHTS = (
    "No attention is drawn: your model computes no matrix with a row and a column for each token "
    "and with rows that sum to one."
)


def progress(learning: Learning) -> str:
    """A line with the current step, the loss and the time."""
    loss = f", loss {learning.losses[-1]:.3f}" if learning.losses else ""
    return f"step {learning.step} of {learning.last}{loss}, {learning.seconds:.0f} s"


def shares(learning: Learning) -> tuple[str, str] | None:
    """Lines with the shares of right characters and right answers in the last exam, if any."""
    if not learning.marks:
        return None
    game, mark = learning.game, learning.marks[-1]
    return (
        f"{game.characters} right {mark.characters:6.1%}",
        f"{game.answers} right {mark.exact:6.1%}, of {mark.questions:,} not used for training",
    )


def line_of(sample: Sample, *, backwards: bool) -> str:
    """A prompt and its answer: wrong characters in brackets, then the right answer."""
    return "".join(text for text, _ in parts_of(sample, backwards=backwards))


def parts_of(
    sample: Sample, *, backwards: bool, marks: tuple[str, str] = ("✓", "✗")
) -> list[tuple[str, str]]:
    """The pieces of `line_of`, each with its kind: prompt, right, wrong, mark, or "" if unknown."""
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
    """A sentence that explains the brackets in an answer."""
    return f"In its answers, {game.characters} in [brackets] are wrong."


def _visible(text: str) -> str:
    return text.replace("\n", " / ")


def summary(learning: Learning) -> str:
    """A sentence on how the training ended."""
    game, steps = learning.game, counted(learning.step, "step")
    how = "Stopped" if learning.interrupted else "Learnt" if learning.learnt else "Ended"
    end = f"{how} after {steps}, {learning.seconds:.0f} s"
    if not learning.marks:
        loss = f", loss {learning.losses[-1]:.2f}" if learning.losses else ""
        return f"{end}{loss}."
    mark = learning.marks[-1]
    return (
        f"{end}: of {mark.questions:,} {game.answers} that were not used for training, "
        f"{mark.exact:.1%} are right, and {mark.characters:.1%} of their {game.characters}."
    )


def remarks(learning: Learning, name: str) -> Iterator[str]:
    """Remarks on a high first loss, and on parts that were left out of the model."""
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
            f"When your model reads the right answer along with the question, as in training, "
            f"it gets {fed:.1%} of the {game.answers} right."
        )
    key = ",".join(part for part in removal.PARTS if part in without)
    yield from [" ".join(game.without[key].split())] if key in game.without else []


def of_head(head: Head, learning: Learning) -> str:
    """Sentences that say why this head is shown.

    The head's place of most weight has a meaning only if the model can do its task, and if the
    weight there is far above chance.
    """
    game, scene = learning.game, learning.game.scene
    shown = f"This is {head.name}, while the model reads {scene.text!r}."
    mark = learning.marks[-1] if learning.marks else None
    if mark is not None and mark.exact < CAN:
        return (
            f"{shown} Only {mark.exact:.0%} of the model's {game.answers} are right, so what its "
            "heads look at says nothing yet."
        )
    weight, chance = head.on(scene.focus), head.chance(scene.focus)
    if weight < chance + FAR * (1 - chance):
        return (
            f"{shown} No head looks especially at {scene.meaning}: the most weight there is "
            f"{weight:.0%}, and even weights would give {chance:.0%}."
        )
    return (
        f"{shown} Of all heads, this head has the most weight, {weight:.0%}, on {scene.meaning}. "
        f"Even weights would give {chance:.0%}."
    )


def letter(character: str) -> str:
    """A character as a label, with a visible sign for a space or a line break."""
    return {" ": "␣", "\n": "¶"}.get(character, character)
