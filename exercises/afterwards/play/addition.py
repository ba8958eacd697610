"""Your GPT learns to add from examples of sums.

There are 10,000 sums. 1,000 of them are not used in training: they are the model's exam.
"""

import random
import re

import torch

from grader.mine import GPT, adamw_step, generate, next_token_loss
from grader.playing import Exam, Game, Recipe, Scene

QUESTION = 6  # characters of "57+68="; the answer has three more


def answer(question):
    """The right answer, beginning with the units: each carry is known when it is needed."""
    first, second = question.rstrip("=").split("+")
    return f"{int(first) + int(second):03}"[::-1]


questions = [f"{first:02}+{second:02}=" for first in range(100) for second in range(100)]
random.Random(0).shuffle(questions)
never_seen, learnt_from = questions[:1000], questions[1000:]


def batch(chance):
    return [question + answer(question) for question in chance.choices(learnt_from, k=128)]


def model(heads):
    return GPT(12, 64, heads, 2, 256, 9, 0.0)


def loss(logits, ids):
    """The loss of the answer only, because a random question cannot be predicted."""
    ignore = torch.zeros_like(ids, dtype=torch.bool)
    ignore[:, :QUESTION] = True
    return next_token_loss(logits, ids, ignore)


def read(typed):
    numbers = re.fullmatch(r"\s*(\d{1,2})\s*\+\s*(\d{1,2})\s*=?\s*", typed, re.ASCII)
    if numbers is None:
        raise ValueError("type two numbers from 0 to 99 with a + between them, such as 57+68")
    return "{:02}+{:02}=".format(*map(int, numbers.groups()))


# What happens if a part of the model is left out.
without = {
    "mask": """The loss fell at once, but the sums are wrong. In training, every position could see
        the character that it had to predict, so the model learned to copy. When it writes, that
        character is not there yet. The mask makes training as hard as writing.""",
    "positions": """The model still learns, but later (try --steps 900). No table of positions says
        which character came first. Where does the model find the order? Leave out one part more:
        --without mask,positions""",
    "mask,positions": """Now the model sees a line as characters without an order: 12+34 is the same
        as 21+43. So the mask had shown the order before: the first token sees one token, the second
        sees two, and so on. (Haviv et al. 2022, "Transformer Language Models without Positional
        Encodings Still Learn Positional Information", https://arxiv.org/abs/2203.16634)""",
    "scale": """With four heads, the model only learns more slowly: a score is a sum of 16 products.
        With one head, a score is a sum of 64 products, and eight times as large without the scale.
        A softmax of large scores looks at one token and learns little. Compare the share of right
        digits with --without scale --heads 1 and with --heads 1 alone.""",
}

game = Game(
    title="A GPT of your own learns to add",
    alphabet="0123456789+=",
    context=9,
    width=64,
    heads=4,
    model=model,
    loss=loss,
    update=adamw_step,
    generate=generate,
    recipe=Recipe(steps=600, lr=2e-3, warm_up=50, weight_decay=0.01),
    batch=batch,
    prompts=never_seen[:6],
    length=3,
    read=read,
    invitation="a sum, such as 57+68",
    scene=Scene(
        text="57+68=521",
        focus=[(6, 1), (6, 4)],
        meaning="the units 7 and 8, in the row of the 5: there it writes the tens, and 7 + 8 says "
        "whether to carry one (it writes the units first, so 521 is 125)",
    ),
    exam=Exam(never_seen, answer),
    backwards=True,
    answers="sums",
    characters="digits",
    without=without,
)
