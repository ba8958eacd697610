"""How temperature, top_k and top_p change one guess.

Four words fit, and each of 2,000 other words is very unlikely. Together, the other words are chosen
often: at temperature 2 nearly always. A single such word can spoil a text. A low temperature makes
likely words likelier; top_k and top_p leave out unlikely words. The 500 values of u are spread
evenly from 0 to 1.
"""

import torch

from grader.mine import yours

DRAWS = 500
WORDS = ("mat", "sofa", "floor", "roof", "2,000 others")  # the cat sat on the …
SETTINGS = {
    "temperature 0.5": (0.5, None, None),
    "temperature 1": (1.0, None, None),
    "temperature 2": (2.0, None, None),
    "top_k = 2": (1.0, 2, None),
    "top_p = 0.8": (1.0, None, 0.8),
    "temperature 2, top_k = 4": (2.0, 4, None),
}
RECORDED = [  # how often the kit's own answer drew each word
    [397, 81, 19, 3, 0],
    [262, 117, 59, 21, 41],
    [25, 17, 12, 7, 439],
    [345, 155, 0, 0, 0],
    [299, 134, 67, 0, 0],
    [206, 138, 97, 59, 0],
]

logits = torch.cat((torch.tensor([4.0, 3.2, 2.5, 1.5]), torch.linspace(-5.0, -6.0, 2000)))
draw = yours("sample_next", None, "recorded numbers")


def counted(*given):
    """Count how often each of the four words is drawn, and how often any other word."""
    drawn = [int(draw(logits, (n + 0.5) / DRAWS, *given)) for n in range(DRAWS)]
    fitting = [drawn.count(word) for word in range(4)]
    return [*fitting, DRAWS - sum(fitting)]


counts = [counted(*given) for given in SETTINGS.values()] if draw else RECORDED
for title, row in zip(SETTINGS, counts, strict=True):
    print(f"\n{title}")
    for word, count in zip(WORDS, row, strict=True):
        print(f"{word:>14} {count / DRAWS:5.0%} {'█' * round(50 * count / DRAWS)}".rstrip())
