"""Whether attention weights are dropped as they should be, judged by statistics."""

from __future__ import annotations

import torch
from torch import Tensor

from grader.course.tolerances import furthest_share
from grader.testing.values import agree, assert_that


def assert_drops_weights(dropped: Tensor, twins: Tensor, weights: Tensor, p: float) -> None:
    """Fail unless `dropped` is what inverted dropout with probability `p` makes of `weights`.

    All three are (batch, queries, keys), with at least 16 batch rows and 9 tokens; every query
    sees the first key, and the last query all keys. Judged by statistics, never by a generator's
    stream: entries are 0 or ``weights / (1 - p)``, and about p of them are 0, within
    `furthest_share`. `twins` holds the same attention weights, seen through a second set
    of value columns: they fall together only if weights were dropped and not the context.
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
        "values that share a weight were dropped apart: drop the weights, not the context",
    )
    share = is_zero.double().mean().item()
    assert_that(
        abs(share - p) < furthest_share(p, is_zero.numel()),
        f"dropout {p} should drop about {p:.0%} of the weights, not {share:.0%}; chance alone "
        "strays so far once in a billion times",
    )
    assert_that(bool((dropped[~visible] == 0).all()), "a hidden key got some weight")
    # With 16 sentences and more than 8 tokens, chance alone does none of these.
    gone = is_zero.new_zeros(weights.shape).masked_scatter(visible, is_zero)
    assert_that(
        not torch.equal(gone[0], gone[1]),
        "two sentences of a batch lost exactly the same weights: each weight is dropped by itself",
    )
    last_query, first_key = gone[:, -1], gone[:, :, 0]
    assert_that(
        bool((last_query.any(dim=-1) & ~last_query.all(dim=-1)).any()),
        "a query loses all of its weights or none: each weight is dropped by itself",
    )
    assert_that(
        bool((first_key.any(dim=-1) & ~first_key.all(dim=-1)).any()),
        "a key is lost to all queries or to none: drop the weights, not the tokens",
    )


def assert_drops_only_weights(found: Tensor, calm: Tensor, p: float) -> None:
    """Fail unless heads lose their only attention weight about as often as `p` says.

    Both are what attention finds for the first token, which sees itself alone, so that each head
    has one weight there: `found` (sentences, heads, width) while dropping, and `calm` (heads,
    width) without. A head whose weight was dropped adds nothing, and the same number stands in all
    of its places. Whatever else is dropped on the way to these numbers does not count, and neither
    does a path that is dropped as a whole once more.
    """
    lost = found.std(dim=-1) < 0.05 * calm.std(dim=-1)
    share = lost.double().mean().item()
    room = furthest_share(p, len(found))
    assert_that(
        p - room < share < 1 - (1 - p) ** 2 + room,
        f"with dropout {p} in training, the first token should lose its only attention weight in "
        f"about {p:.0%} of all heads, and it does in {share:.0%}: where are weights dropped?",
    )
