"""Always the likeliest letter: a text that goes in circles.

The model has counted, in one short text, which letter follows the letters that it sees. Its choice
depends on these letters only. As soon as it sees the same letters again, it writes the same text
again, and so it goes in a circle for ever. If it sees more letters, the circle gets longer.
"""

import torch
from torch import nn

from grader.mine import yours

TEXT = (
    "the cat sat by the door and the dog sat by the cat until the door was open and the cat ran "
    "to the garden where the dog had gone to dig a hole and then the two of them ran home "
)
LETTERS = sorted(set(TEXT))
RECORDED = {  # the texts of the kit's own answer, by the number of letters that the model sees
    1: "the dog the the the the the the the the the the the the the the the the the ",
    2: "the dog and the dog and the dog and the dog and the dog and the dog and the ",
    3: "the dog had gone two of the dog had gone two of the dog had gone two of the ",
    4: "the dog had gone to dig a hole and the dog had gone to dig a hole and the do",
}


class Counts(nn.Module):
    """A model whose logits count how often each letter follows the letters so far."""

    def forward(self, ids):
        logits = torch.zeros(*ids.shape, len(LETTERS))
        for end in range(ids.shape[1]):
            seen = "".join(LETTERS[one] for one in ids[0, : end + 1].tolist())
            for place in range(len(TEXT) - len(seen)):
                if TEXT.startswith(seen, place):
                    follows = LETTERS.index(TEXT[place + len(seen)])
                    # of two letters with equal counts, the later place wins
                    logits[0, end, follows] += 1 + 0.001 * place
        return logits


write = yours("generate", None, "recorded texts")
start = torch.tensor([[LETTERS.index(letter) for letter in "the dog"]])
for window, text in RECORDED.items():
    if write:
        ids = write(Counts().eval(), start, 69, window)[0].tolist()
        text = "".join(LETTERS[one] for one in ids)
    circle = next(n for n in range(1, 46) if text[-30:] == text[-30 - n : -n])
    seen = "the last letter" if window == 1 else f"the last {window} letters"
    print(f"\nthe model sees {seen}: a circle of {circle} letters\n  {text.rstrip()}")
