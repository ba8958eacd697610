"""Shows a training in a terminal: its progress, its results, and questions to the model."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from grader.feedback import terminal
from grader.playing import words
from grader.playing.attention import Head, heads_of, most_on
from grader.playing.curve import BLOCKS, PLAIN, in_characters
from grader.playing.learning import EVERY, Learning, Sample
from grader.records.faults import CallError
from grader.student.heatmap import heatmap

FRAME = 0.1  # seconds between pictures
BAR = 60
STYLES = {"prompt": "bold", "right": "green", "wrong": "bold red", "mark": "red", "": ""}
STOP = "Ctrl-C ends the training early; the model keeps all that it has learnt."
STOPPED = "Training is stopped. Next come the results so far; Ctrl-C again quits."
HOW_TO_ASK = (
    "Ask your model: type {}. `head` draws the attention in the model's last answer, `head 2 1` "
    "the attention of layer 2, head 1. An empty line quits."
)
HELD_OUT = "not used for training"


def train(learning: Learning, console: Console, *, plain: bool = False) -> None:
    """Train to the last step, or until Ctrl-C, and show the progress."""
    terminal.print_plain(console, STOP, "dim")
    if learning.game.exam is not None:
        terminal.print_plain(console, words.in_brackets(learning.game), "dim")
    try:
        if plain or not console.is_terminal:
            _in_lines(learning, console)
        else:
            _live(learning, console)
    except KeyboardInterrupt:
        learning.interrupted = True
        terminal.print_plain(console, f"\n{STOPPED}")


def _live(learning: Learning, console: Console) -> None:
    blocks = BLOCKS if can_show(console, BLOCKS) else PLAIN
    with Live(console=console, auto_refresh=False) as live:
        shown = 0.0
        for _ in learning.steps():
            if time.monotonic() - shown > FRAME:
                live.update(Group(*drawn(learning, blocks)), refresh=True)
                shown = time.monotonic()
        live.update(Group(*drawn(learning, blocks)), refresh=True)


def drawn(learning: Learning, blocks: str) -> Iterator[Text | ProgressBar]:
    """The parts of the live display of a training, from top to bottom."""
    game = learning.game
    yield Text(words.progress(learning))
    yield ProgressBar(learning.last, learning.step, width=BAR + 7)
    yield Text(f"\nthe loss; guessing is {game.guessing:.2f}", "dim")
    for line in in_characters(learning.losses, learning.last, 1.1 * game.guessing, blocks):
        yield Text(line)
    yield Text()
    for line in words.shares(learning) or ():
        yield Text(line, "bold")
    yield Text()
    for sample in learning.samples:
        yield sample_text(sample, backwards=game.backwards, plain=blocks == PLAIN)


def sample_text(sample: Sample, *, backwards: bool, plain: bool) -> Text:
    """A prompt and its answer, in colours and with marks."""
    marks = ("ok", "X") if plain else ("✓", "✗")
    parts = words.parts_of(sample, backwards=backwards, marks=marks)
    return Text.assemble(*((terminal.safe(text), STYLES[kind]) for text, kind in parts))


def _in_lines(learning: Learning, console: Console) -> None:
    """Print the progress line by line, for a file, a screen reader or a log."""
    plain = not can_show(console, BLOCKS)
    for _ in learning.steps():
        if learning.step != 1 and learning.step % EVERY and learning.step != learning.last:
            continue
        state = [words.progress(learning), *(words.shares(learning) or ())]
        sample = learning.samples[learning.step // EVERY % len(learning.samples)]
        text = sample_text(sample, backwards=learning.game.backwards, plain=plain)
        terminal.print_plain(console, "; ".join([*state, text.plain]))


def can_show(console: Console, text: str) -> bool:
    """Whether the console's encoding has these characters."""
    try:
        text.encode(console.encoding)
    except UnicodeEncodeError:
        return False
    return True


# --- results -------------------------------------------------------------------------------------


def conclude(learning: Learning, console: Console, name: str) -> list[Head]:
    """Print the results, and return all attention heads.

    Also draws the head with the most weight on the scene's focus.
    """
    learning.finish()
    console.print()
    terminal.print_plain(console, words.summary(learning), "bold")
    for remark in words.remarks(learning, name):
        console.print()
        terminal.print_plain(console, remark)
    scene = learning.game.scene
    heads = heads_of(learning.game, learning.model, learning.heads, scene.text)
    best = most_on(heads, scene)
    console.print()
    if best is None:
        terminal.print_plain(console, words.NO_WEIGHTS)
    else:
        terminal.print_plain(console, words.of_head(best, learning))
        show_head(best, scene.text)
    return heads


def show_head(head: Head, text: str) -> None:
    """Draw the attention weights of a head, with a text's characters as labels."""
    tokens = [words.letter(character) for character in text]
    title = f"{head.name} (rows look at columns)"
    heatmap(head.weights, tokens=tokens, title=title).show()


# --- questions -----------------------------------------------------------------------------------


def answer_questions(learning: Learning, console: Console) -> None:
    """Answer typed questions until an empty line, the end of the input, or Ctrl-C."""
    game = learning.game
    console.print()
    terminal.print_plain(console, HOW_TO_ASK.format(game.invitation))
    last = game.scene.text
    while True:
        try:
            typed = console.input("> ").strip("\r\n")
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if not typed.strip():
            return
        try:
            if typed.split()[0] == "head":
                _draw(learning, typed.split()[1:], last)
                continue
            sample = learning.ask(typed)
        except CallError as error:
            terminal.print_plain(console, str(error))
            continue
        last = (sample.prompt + sample.answer)[: game.context]
        plain = not can_show(console, BLOCKS)
        line = sample_text(sample, backwards=game.backwards, plain=plain)
        if game.exam is not None and sample.prompt in game.exam.questions:
            line.append(f"  ({HELD_OUT})", "dim")
        terminal.indented(console, line)


def _draw(learning: Learning, which: list[str], text: str) -> None:
    """Draw the head that the student names, or else the head with most weight on the focus."""
    game = learning.game
    heads = heads_of(game, learning.model, learning.heads, text)
    best = most_on(heads, game.scene)
    if which:
        wanted = f"layer {which[0]}, head {' '.join(which[1:]) or 1}"
        best = next((head for head in heads if head.name == wanted), None)
        if best is None:
            raise CallError(f"there is no {wanted}; there are: {_listed(heads)}")
    if best is None:
        raise CallError(words.NO_WEIGHTS)
    show_head(best, text)


def _listed(heads: list[Head]) -> str:
    return f"{heads[0].name} to {heads[-1].name}" if heads else "none with visible weights"
