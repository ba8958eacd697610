"""Unit 12, a language model of your own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch  # noqa: F401 - your answers will need it
from torch import nn

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor


def generate(
    model: nn.Module, ids: Int[Tensor, "batch tokens"], new_tokens: int, context_length: int
) -> Int[Tensor, "batch tokens+new_tokens"]:
    """Let a language model write: append the likeliest next id to each row, again and again.

        visible = the last context_length ids of the row, or all where there are fewer
        next id = argmax over the vocabulary of model(visible)[row, last position]
        ids     = ids, followed by the next id          new_tokens times

    The model gives logits for every position, because it was trained to guess the next id
    everywhere. Here only the guess at the last position counts: all the others are known already.
    Each row goes on with its own next id.

    Why: a GPT knows positions up to its context length and no others, but a text may grow beyond.
    So the model reads through a window that moves along with the text's end. To take the likeliest
    id each time is called greedy; `sample_next` is the other way.

    Takes:
        model: an nn.Module that is called as model(ids), with int64 ids (batch, visible), and gives
            logits (batch, visible, vocab). It is in eval mode, and no two logits are equal at the
            top. It raises an exception for more than `context_length` ids.
        ids: int (batch, tokens), the prompt, int64. There is at least one token.
        new_tokens: int, 0 or more, how many ids to append to each row.
        context_length: int, at least 1, how many ids the model can see at once.

    Returns:
        int (batch, tokens+new_tokens): the whole prompt and the new ids behind it, int64.

    Rules:
        context: The text may be longer than `context_length`, because it grows or because the
            prompt is long. The model then sees the last `context_length` ids, and all ids are
            returned.
        zero: With `new_tokens` = 0, the prompt comes back.
        unchanged: `ids` stays as it was, and so do the weights of the model.

    Example: for this model, the likeliest next id is the sum of all ids that it sees, without the
    tens. It sees three. 1 + 2 = 3, and 1 + 2 + 3 = 6. Then the 1 is out of sight: 2 + 3 + 6 = 11,
    which gives 1.

    >>> class AddsUp(nn.Module):
    ...     def forward(self, ids):
    ...         return nn.functional.one_hot(ids.cumsum(dim=1) % 10, 10).float()
    >>> generate(AddsUp(), torch.tensor([[1, 2]]), new_tokens=4, context_length=3)
    tensor([[1, 2, 3, 6, 1, 0]])

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3,
    https://arxiv.org/abs/1904.09751. It shows that greedy text soon repeats itself.
    """
    raise NotImplementedError
