"""A language model in one table, which learns only which letter follows which.

Row i of the table holds the logits of the letter after letter i. The table starts with zeros, so
the first loss is log(vocab), the loss of pure guessing. Your own answers look up rows, measure the
loss, change the table, and choose letters. At the end, see how temperature, top-k and top-p change
the letters after "a", and how temperature changes a text.
"""

import math

import torch

from grader.mine import adamw_step, embed_tokens, next_token_loss, sample_next

text = "a cat saw a rat and the rat saw the cat so the cat sat and the rat ran to the sea "
letters = sorted(set(text))
ids = torch.tensor([[letters.index(letter) for letter in text]])
vocab = len(letters)

table = torch.zeros(vocab, vocab)
momentum, square = torch.zeros_like(table), torch.zeros_like(table)
nowhere = torch.zeros(ids.shape[1], vocab)  # zeros: positions have no effect here
print(f"{vocab} letters: guessing costs log({vocab}) = {math.log(vocab):.3f}")
for step in range(1, 201):
    table.requires_grad_()
    loss = next_token_loss(embed_tokens(ids, table, nowhere), ids)
    (gradient,) = torch.autograd.grad(loss, table)
    if step in (1, 2, 10, 50, 200):
        print(f"loss before step {step:>3}: {loss.item():.3f}")
    table, momentum, square = adamw_step(
        table.detach(), gradient, momentum, square, step, 0.1, (0.9, 0.99), 1e-8, 0.01
    )

print("\nletters after 'a' in 200 draws, for values of u spread evenly from 0 to 1")
after_a = table[letters.index("a")]
settings = {
    "temperature 1": (1.0, None, None),
    "temperature 0.5": (0.5, None, None),
    "temperature 2": (2.0, None, None),
    "top_k = 3": (1.0, 3, None),
    "top_p = 0.9": (1.0, None, 0.9),
}
for name, given in settings.items():
    drawn = [int(sample_next(after_a, (n + 0.5) / 200, *given)) for n in range(200)]
    counts = {letter: drawn.count(i) for i, letter in enumerate(letters)}
    often = {letter: count for letter, count in counts.items() if count > 3}
    shown = "  ".join(f"{letter!r} {count}" for letter, count in often.items())
    print(f"{name:<16}{shown}  others {200 - sum(often.values())}")

print()
torch.manual_seed(4)
for temperature in (0.0, 0.5, 1.0, 2.0):
    written = [letters.index("a")]
    while len(written) < 60:
        chance = torch.rand(()).item()
        written.append(int(sample_next(table[written[-1]], chance, temperature)))
    print(f"temperature {temperature}: {''.join(letters[i] for i in written)}")
