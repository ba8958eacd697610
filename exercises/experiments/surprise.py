"""The loss of an even guess, of a right guess and of a wrong guess.

The loss is minus the logarithm of the probability that the model gave to the next token. An even
guess costs log(vocab). A sure guess costs nothing if it is right, and any amount if it is wrong. A
model does best if the probability of its guesses equals the share of right guesses.
"""

import math

import torch
from torch.nn import functional

from grader.mine import yours

LETTERS = 27  # a to z, and a space


def of_torch(logits, ids):
    """Torch's loss, for the second of two tokens."""
    return functional.cross_entropy(logits[:, 0], ids[:, 1])


loss_of = yours("next_token_loss", of_torch)


def surprise(right):
    """The loss if the next token has this probability, and all others share the rest."""
    wrong = (1 - right) / (LETTERS - 1)
    probabilities = torch.full((1, 2, LETTERS), wrong, dtype=torch.float64)
    probabilities[..., 5] = right
    return loss_of(probabilities.log(), torch.tensor([[0, 5]])).item()


print(f"\nlog({LETTERS}) = {math.log(LETTERS):.3f}; probability of the next token, and the loss")
for right in (0.999, 0.9, 0.5, 1 / LETTERS, 0.01, 0.001, 0.0001):
    print(f"{right:9.4f} {surprise(right):8.3f} {'█' * round(4 * surprise(right))}")

print("\na model is right 9 times out of 10: the probability of its guess, the mean loss")
for sure in (0.5, 0.8, 0.9, 0.99, 0.999, 0.9999):
    # If the guess is wrong, the next token is one of the others, which share the rest.
    mean = 0.9 * surprise(sure) + 0.1 * surprise((1 - sure) / (LETTERS - 1))
    print(f"{sure:9.4f} {mean:8.3f} {'█' * round(20 * mean)}")
