"""Your GPT learns to write, character by character, from the beginning of a book.

The book is "Alice's Adventures in Wonderland" by Lewis Carroll, 1865, which is in the public
domain. The text is its first three chapters without the last lines, in lower case.
"""

from pathlib import Path

from grader.mine import GPT, adamw_step, generate, next_token_loss
from grader.playing import Game, Recipe, Scene

CONTEXT = 32
paragraphs = Path(__file__).with_name("alice.txt").read_text("utf-8").lower().split("\n\n")
text = "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
alphabet = "".join(sorted(set(text)))


def batch(chance):
    starts = [chance.randrange(len(text) - CONTEXT) for _ in range(64)]
    return [text[start : start + CONTEXT] for start in starts]


def model(heads):
    return GPT(len(alphabet), 64, heads, 2, 256, CONTEXT, 0.0)


def read(typed):
    if not typed:
        raise ValueError("type the beginning of a sentence, such as: alice was")
    return typed.lower()


game = Game(
    title="A GPT of your own learns to write",
    alphabet=alphabet,
    context=CONTEXT,
    width=64,
    heads=4,
    model=model,
    loss=next_token_loss,
    update=adamw_step,
    generate=generate,
    recipe=Recipe(steps=1000, lr=3e-3, warm_up=50, weight_decay=0.01),
    batch=batch,
    prompts=["alice ", "'oh, i"],
    length=120,
    read=read,
    invitation="the beginning of a sentence, such as: alice was",
    scene=Scene(
        text="alice had not a moment to think",
        focus=[(row, row - 1) for row in range(1, 31)],
        meaning="the character before",
    ),
    without={
        "mask": """The loss fell at once, but the text is nonsense. In training, every position
            could see the character that it had to predict, so the model learned to copy. When it
            writes, that character is not there yet."""
    },
)
