"""Asserts by statistics that dropout is applied to attention weights."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.course.tolerances import furthest_share
from grader.testing.values import agree, assert_that

ROUNDING = 1e-5  # of weights, which are at most 1 / (1 - p)


def assert_drops_weights(dropped: Tensor, twins: Tensor, weights: Tensor, p: float) -> None:
    """Fail unless `dropped` may result from inverted dropout of `weights` with probability `p`.

    All three tensors have shape (batch, queries, keys), with at least 16 batch rows and 9 tokens.
    Every query sees the first key, and the last query sees all keys. Entries of `dropped` must be 0
    or ``weights / (1 - p)``, and a share of about p must be 0, within `furthest_share`.

    `twins` holds the same dropped weights, read from a second set of value columns. It agrees with
    `dropped` only if the weights were dropped, not the context.

    >>> weights = torch.full((16, 9, 9), 1 / 9)
    >>> dropped = weights * (make.uniform(batch=16, queries=9, keys=9) > 0.3) / 0.7
    >>> assert_drops_weights(dropped, dropped, weights, p=0.3)
    >>> assert_drops_weights(weights, weights, weights, p=0.3)
    Traceback (most recent call last):
        ...
    AssertionError: with dropout 0.3 a weight w should become 0 or w / 0.7 in training
    """
    visible = weights > 0
    scaled = (dropped[visible] * (1 - p) / weights[visible]).double()
    is_zero, is_one = scaled.abs() < 1e-4, (scaled - 1).abs() < 1e-4
    assert_that(
        bool((is_zero | is_one).all()),
        f"with dropout {p} a weight w should become 0 or w / {1 - p:g} in training",
    )
    assert_that(
        agree(dropped, twins),
        "dropout was applied to the output, not to the weights: drop the weights, not the context",
    )
    share = is_zero.double().mean().item()
    assert_that(
        abs(share - p) < furthest_share(p, is_zero.numel()),
        f"dropout {p} should drop about {p:.0%} of the weights, not {share:.0%}; chance gives such "
        "a share once in a billion times",
    )
    # Weights are read from the result, so a layer like Conv1d leaves its rounding in them.
    assert_that(bool((dropped[~visible].abs() < ROUNDING).all()), "a hidden key got some weight")
    # With 16 sentences and more than 8 tokens, the patterns below do not occur by chance.
    gone = is_zero.new_zeros(weights.shape).masked_scatter(visible, is_zero)
    assert_that(
        not torch.equal(gone[0], gone[1]),
        "two sentences of a batch lost exactly the same weights: drop each weight independently",
    )
    last_query, first_key = gone[:, -1], gone[:, :, 0]
    assert_that(
        bool((last_query.any(dim=-1) & ~last_query.all(dim=-1)).any()),
        "a query loses all of its weights or none: drop each weight independently",
    )
    assert_that(
        bool((first_key.any(dim=-1) & ~first_key.all(dim=-1)).any()),
        "a key is dropped for all queries or for none: drop the weights, not the tokens",
    )


def assert_drops_only_weights(found: Tensor, calm: Tensor, p: float) -> None:
    """Fail unless a share of about `p` of the heads lose their only attention weight.

    Both tensors hold attention's output for the first token. This token sees only itself, so each
    head has a single weight. `found` has shape (sentences, heads, width) and is computed with
    dropout. `calm` has shape (heads, width) and is computed without dropout. If a head's weight was
    dropped, the head adds nothing, and all its numbers are equal. Other dropout is allowed, even if
    it also drops whole outputs of heads.
    """
    lost = found.std(dim=-1) < 0.05 * calm.std(dim=-1)
    share = lost.double().mean().item()
    room = furthest_share(p, len(found))
    assert_that(
        p - room < share < 1 - (1 - p) ** 2 + room,
        f"with dropout {p} in training, the first token should lose its only attention weight in "
        f"about {p:.0%} of all heads, but it does in {share:.0%}: where are weights dropped?",
    )
