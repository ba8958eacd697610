"""Known answers of unit 5: mistakes, and right answers in other forms."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake

# --- causal_mask ----------------------------------------------------------------------------------

common_mistakes("causal_mask", "hides-itself")

mistake(
    "causal_mask", "hides-its-neighbour", "A token can see neither itself nor the one before it",
    hint="For two tokens, which of the four entries should be False?",
    change={"diagonal=1": "diagonal=-1"},
)  # fmt: skip

common_mistakes("causal_mask", "sees-one-ahead")

mistake(
    "causal_mask", "hides-only-the-next",
    "Only the very next token is hidden, and all that follow it are not",
    hint="How many tokens lie in the future of the first of five?",
    change={"torch.triu(everything, diagonal=1)": "everything.triu(1).tril(1)"},
)  # fmt: skip

mistake(
    "causal_mask", common="mask-opposite",
    change={"torch.triu(everything, diagonal=1)": "torch.tril(everything)"},
)  # fmt: skip

mistake(
    "causal_mask", "hides-the-past", "The past is hidden and the future is open",
    hint="Rows are the tokens that ask: to which side of the diagonal does their future lie?",
    change={"torch.triu(everything, diagonal=1)": "torch.tril(everything, diagonal=-1)"},
)  # fmt: skip

mistake(
    "causal_mask", "hides-everything", "Everything is hidden, from everyone",
    hint="Do you use what the function returns?",
    change={
        "return torch.triu(everything, diagonal=1)": (
            "torch.triu(everything, diagonal=1)\n"
            "    return everything"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask", "hides-nothing", "Nothing is hidden, from anyone",
    hint="You cut a triangle out of a square: what was the square filled with?",
    change={"torch.ones": "torch.zeros"},
)  # fmt: skip

mistake(
    "causal_mask", "numbers-for-booleans", "The mask holds numbers, not booleans",
    hint="What is the dtype of your mask, and what would masked_fill say to it?",
    breaks=("returns",),
    change={", dtype=torch.bool": ""},
)  # fmt: skip

mistake(
    "causal_mask", "minus-infinities",
    "This mask is made to be added to scores, not to say what is hidden",
    hint="Is an entry of your mask a yes or a no?",
    breaks=("returns",),
    change={
        "torch.ones(num_tokens, num_tokens, dtype=torch.bool)": (
            "torch.full((num_tokens, num_tokens), -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask", "three-tokens-always", "The mask always has the size of the example",
    hint="How large should the mask be for seven tokens?",
    breaks=("returns",),
    change={"torch.ones(num_tokens, num_tokens,": "torch.ones(3, 3,"},
)  # fmt: skip

mistake(
    "causal_mask", "too-many-axes", "The mask has an axis too many",
    hint="How many dimensions does the statement give it, and how many does yours have?",
    breaks=("returns",),
    change={"diagonal=1)": "diagonal=1)[None]"},
)  # fmt: skip

mistake(
    "causal_mask", "one-column-too-many", "There is one key more than there are tokens",
    hint="The mask is square: how many tokens ask, and how many can be looked at?",
    breaks=("returns",),
    change={"torch.ones(num_tokens, num_tokens,": "torch.ones(num_tokens, num_tokens + 1,"},
)  # fmt: skip

mistake(
    "causal_mask", "single-token-squeezed", "The mask of a single token loses its axes",
    hint="Which shape comes out when there is one token only?",
    breaks=("returns",),
    change={"diagonal=1)": "diagonal=1).squeeze()"},
)  # fmt: skip


@accepted("causal_mask", "comparing-positions", "Positions are counted and compared")
def mask_by_comparing_positions(num_tokens):
    rows = torch.arange(num_tokens)
    return rows[:, None] < rows[None, :]


@accepted("causal_mask", "not-the-lower-triangle", "What is not in the lower triangle")
def mask_by_negation(num_tokens):
    return ~torch.ones(num_tokens, num_tokens).tril().bool()


@accepted("causal_mask", "zeros-of-tril", "The zeros of a triangle of ones")
def mask_by_zeros(num_tokens):
    return torch.tril(torch.ones(num_tokens, num_tokens)) == 0


@accepted("causal_mask", "row-by-row", "A loop fills row after row")
def mask_row_by_row(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for query in range(num_tokens):
        mask[query, query + 1 :] = True
    return mask


@accepted("causal_mask", "lists", "Lists of Python booleans")
def mask_from_lists(num_tokens):
    tokens = range(num_tokens)
    return torch.tensor([[key > query for key in tokens] for query in tokens])


@accepted("causal_mask", "indices", "The indices of the triangle are set")
def mask_by_indices(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    rows, columns = torch.triu_indices(num_tokens, num_tokens, offset=1)
    mask[rows, columns] = True
    return mask


@accepted("causal_mask", "running-sum", "A running sum over an identity matrix")
def mask_by_running_sum(num_tokens):
    itself = torch.eye(num_tokens)
    return (itself.cumsum(dim=1) - itself).bool()


@accepted("causal_mask", "infinities-compared", "The additive mask, asked where it is infinite")
def mask_by_infinities(num_tokens):
    return torch.full((num_tokens, num_tokens), float("-inf")).triu(1).isinf()


# --- masked_softmax -------------------------------------------------------------------------------

mistake(
    "masked_softmax", "mask-without-effect", "The mask has no effect",
    hint="What does the softmax get: your masked scores, or the old ones?",
    change={
        "scores.masked_fill(mask, -torch.inf)": "scores",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-thrown-away",
    change={
        "visible_scores = scores.masked_fill(mask, -torch.inf)": (
            "scores.masked_fill(mask, -torch.inf)"
        ),
        "visible_scores, dim": "scores, dim",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
    same_as={"mask-without-effect": "either way the scores stay as they were"},
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-opposite",
    change={
        "scores.masked_fill(mask": "scores.masked_fill(~mask",
        "attn_weights.masked_fill(mask": "attn_weights.masked_fill(~mask",
    },
)  # fmt: skip

mistake(
    "masked_softmax", "opposite-mask-once", common="mask-opposite",
    change={
        "scores.masked_fill(mask": "scores.masked_fill(~mask",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
)  # fmt: skip

mistake(
    "masked_softmax", "keeps-what-is-hidden", "The scores are multiplied by the mask",
    hint="Is the mask True where a query may look? And what does softmax make of a score of 0?",
    change={
        "scores.masked_fill(mask, -torch.inf)": "scores * mask",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
)  # fmt: skip

mistake(
    "masked_softmax", "nan-where-all-is-hidden", "A row in which everything is hidden becomes NaN",
    hint=(
        "What is left to share out when every score is minus infinity, and what is 0 divided "
        "by 0?"
    ),
    breaks=("empty",),
    change={"attn_weights.masked_fill(mask, 0.0)": "attn_weights"},
)  # fmt: skip

mistake(
    "masked_softmax", "uniform-where-all-is-hidden",
    "A row in which everything is hidden shares out its attention evenly",
    hint="If all scores of a row are the same, however small, what does softmax make of them?",
    breaks=("empty",),
    change={"-torch.inf": "-1e9", "attn_weights.masked_fill(mask, 0.0)": "attn_weights"},
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-fills-zero",
    change={"-torch.inf": "0.0", "attn_weights.masked_fill(mask, 0.0)": "attn_weights"},
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-multiplies",
    change={
        "scores.masked_fill(mask, -torch.inf)": "scores * ~mask",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-fills-minus-one",
    change={"-torch.inf": "-1.0", "attn_weights.masked_fill(mask, 0.0)": "attn_weights"},
)  # fmt: skip

mistake(
    "masked_softmax", "mask-fills-minus-hundred",
    "Hidden scores become a low number, and visible ones can lie lower",
    hint="Is there a number so small that no score is smaller?",
    breaks=("large",),
    change={"-torch.inf": "-100.0"},
)  # fmt: skip

mistake(
    "masked_softmax", "mask-lowers-by-a-thousand",
    "Hidden scores are lowered, and can still be the largest",
    hint="What is left of a hidden score of 1000, and where does a visible one of -1000 stand?",
    breaks=("large",),
    change={"scores.masked_fill(mask, -torch.inf)": "scores - 1000.0 * mask.to(scores.dtype)"},
)  # fmt: skip

common_mistakes("masked_softmax", "mask-fills-infinity", "mask-times-infinity")

mistake(
    "masked_softmax", common="mask-added",
    change={
        "scores.masked_fill(mask, -torch.inf)": "scores + mask.to(scores.dtype)",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-subtracted",
    change={
        "scores.masked_fill(mask, -torch.inf)": "scores - mask.to(scores.dtype)",
        "attn_weights.masked_fill(mask, 0.0)": "attn_weights",
    },
)  # fmt: skip

mistake(
    "masked_softmax", common="mask-after-softmax",
    change={"scores.masked_fill(mask, -torch.inf)": "scores"},
)  # fmt: skip


@mistake(
    "masked_softmax", "renormalized-afterwards",
    "The hidden keys take part in the softmax, and can drown all others",
    hint="What is left of the visible weights if a hidden score is 500 above them?",
    breaks=("large",),
)  # fmt: skip
def masked_after_the_softmax(scores, mask):
    attn_weights = torch.softmax(scores, dim=-1).masked_fill(mask, 0.0)
    row_sums = attn_weights.sum(dim=-1, keepdim=True)
    return attn_weights / row_sums.masked_fill(row_sums == 0, 1.0)


common_mistakes("masked_softmax", "softmax-over-queries")

mistake(
    "masked_softmax", "softmax-over-queries-once", common="softmax-over-queries",
    change={"dim=-1": "dim=-2", "attn_weights.masked_fill(mask, 0.0)": "attn_weights"},
)  # fmt: skip

mistake(
    "masked_softmax", "axis-counted-from-the-front",
    "The axis is counted from the front, and moves with a batch in front",
    hint="Which number has the axis of the keys in a matrix, and in a batch of matrices?",
    breaks=("leading",),
    change={"dim=-1": "dim=1"},
)  # fmt: skip

mistake(
    "masked_softmax", common="softmax-over-batch",
    breaks=("computes",),
    change={"dim=-1": "dim=0"},
)  # fmt: skip

mistake(
    "masked_softmax", "no-room-for-heads",
    "The axis of the keys is right for a matrix and for a batch, and not for heads",
    hint="Leading dimensions can be many: from which end is the axis of the keys always the same?",
    breaks=("leading",),
    change={"dim=-1": "dim=1 if scores.dim() == 2 else 2"},
)  # fmt: skip


@mistake(
    "masked_softmax", "one-sum-for-all", "All weights together sum to one, not each row",
    hint="How many distributions are there: one, or one for each query?",
)  # fmt: skip
def one_distribution_for_all(scores, mask):
    exps = torch.exp(scores - scores.max()).masked_fill(mask, 0.0)
    return exps / exps.sum()


@mistake(
    "masked_softmax", "naive-exponent", "Large scores overflow to infinity",
    hint="A per-row shift changes nothing: which shift keeps exp at 1 or below?",
    breaks=("large",),
)  # fmt: skip
def masked_without_a_shift(scores, mask):
    exps = torch.exp(scores).masked_fill(mask, 0.0)
    row_sums = exps.sum(dim=-1, keepdim=True)
    return exps / row_sums.masked_fill(row_sums == 0, 1.0)


common_mistakes("masked_softmax", "log-softmax")

mistake(
    "masked_softmax", "one-softmax-too-many", "The weights go through a second softmax",
    hint="How often should exp act on a score?",
    change={
        "attn_weights.masked_fill(mask, 0.0)": (
            "torch.softmax(attn_weights, dim=-1).masked_fill(mask, 0.0)"
        ),
    },
)  # fmt: skip

mistake(
    "masked_softmax", "scaled-too", "The scores are divided by a square root as well",
    hint="Does the example divide by anything before the softmax?",
    change={"visible_scores, dim": "visible_scores / scores.shape[-1] ** 0.5, dim"},
)  # fmt: skip

mistake(
    "masked_softmax", "own-causal-mask",
    "The mask that is given is ignored, and the future hidden instead",
    hint="Which mask did the caller ask for?",
    change={
        "visible_scores = scores.masked_fill(mask, -torch.inf)": (
            "mask = torch.ones(scores.shape[-2:]).triu(1).bool()\n"
            "    visible_scores = scores.masked_fill(mask, -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "masked_softmax", "mask-as-index",
    "The mask is used as an index, so one mask cannot serve a batch",
    hint="Which shape must an index of booleans have, and which may the mask have?",
    breaks=("leading",),
    change={
        "visible_scores = scores.masked_fill(mask, -torch.inf)": (
            "visible_scores = scores.clone()\n"
            "    visible_scores[..., mask] = -torch.inf"
        ),
    },
)  # fmt: skip

mistake(
    "masked_softmax", "heads-guessed",
    "A mask of three dimensions gets an axis for heads, though the scores may have none",
    hint="When the mask has a batch in front, how many dimensions can the scores have?",
    breaks=("leading",),
    change={
        "visible_scores = scores.masked_fill(mask, -torch.inf)": (
            "if mask.dim() == 3:\n"
            "        mask = mask.unsqueeze(1)\n"
            "    visible_scores = scores.masked_fill(mask, -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "masked_softmax", common="input-changed-in-place",
    change={"scores.masked_fill(mask, -torch.inf)": "scores.masked_fill_(mask, -torch.inf)"},
)  # fmt: skip


common_mistakes("masked_softmax", "nothing-returned", "no-gradient")


@mistake(
    "masked_softmax", "sums-detached",
    "The gradient forgets that the sums depend on the entries too",
    hint="If one entry of a row grows, what happens to the others?",
    breaks=("gradients",),
)  # fmt: skip
def masked_with_detached_sums(scores, mask):
    hidden = scores.masked_fill(mask, -torch.inf)
    largest = hidden.amax(dim=-1, keepdim=True).clamp(min=-1e9)
    exps = torch.exp(hidden - largest)
    return exps / exps.sum(dim=-1, keepdim=True).clamp(min=1e-30).detach()


mistake(
    "masked_softmax", "added-infinity",
    "An infinity is added to the scores, and its gradient is NaN where all is hidden",
    hint="What is the gradient of an infinity, and what if the score were replaced?",
    breaks=("empty",),
    change={
        "scores.masked_fill(mask, -torch.inf)": (
            "scores + torch.zeros_like(scores).masked_fill(mask, -torch.inf)"
        ),
    },
)  # fmt: skip

common_mistakes("masked_softmax", "returns-float32", "float32-inside")

mistake(
    "masked_softmax", common="calls-torch-attention",
    change={
        "attn_weights = torch.softmax(visible_scores, dim=-1)": (
            "identity = torch.eye(scores.shape[-1])\n"
            "    attn_weights = nn.functional.scaled_dot_product_attention(\n"
            "        visible_scores.nan_to_num(neginf=-1e9), identity, identity, scale=1.0\n"
            "    )"
        ),
    },
)  # fmt: skip

accepted(
    "masked_softmax", "nan-to-zero", "NaN rows become zeros afterwards",
    change={"attn_weights.masked_fill(mask, 0.0)": "attn_weights.nan_to_num(nan=0.0)"},
)  # fmt: skip


@accepted("masked_softmax", "where", "torch.where hides, twice")
def masked_by_where(scores, mask):
    attn_weights = F.softmax(torch.where(mask, float("-inf"), scores), dim=-1)
    return torch.where(mask, 0.0, attn_weights)


accepted(
    "masked_softmax", "a-billion-below", "A very negative number instead of infinity",
    change={"-torch.inf": "-1e9"},
)  # fmt: skip

accepted(
    "masked_softmax", "lowest-number", "The lowest number of the dtype instead of infinity",
    change={"-torch.inf": "torch.finfo(scores.dtype).min"},
)  # fmt: skip


@accepted("masked_softmax", "by-hand", "Shift, exponent and division by hand")
def masked_by_hand(scores, mask):
    hidden = scores.masked_fill(mask, -torch.inf)
    largest = hidden.amax(dim=-1, keepdim=True)
    largest = largest.masked_fill(largest.isinf(), 0.0)
    exps = (hidden - largest).exp()
    return exps / exps.sum(dim=-1, keepdim=True).clamp(min=1e-30)


@accepted("masked_softmax", "in-place-on-a-copy", "In place, on a copy")
def masked_in_a_copy(scores, mask):
    scores = scores.clone()
    scores.masked_fill_(mask, -math.inf)
    attn_weights = scores.softmax(-1)
    silent = mask.all(dim=-1, keepdim=True)
    return torch.where(silent, torch.zeros_like(attn_weights), attn_weights)


@accepted(
    "masked_softmax", "opens-hidden-rows",
    "Rows in which all is hidden are opened, and emptied later",
)  # fmt: skip
def masked_with_open_rows(scores, mask):
    silent = mask.all(dim=-1, keepdim=True)
    attn_weights = scores.masked_fill(mask & ~silent, -torch.inf).softmax(dim=-1)
    return attn_weights * ~silent


@accepted("masked_softmax", "logsumexp", "Through the logarithm of the sum")
def masked_by_logarithms(scores, mask):
    hidden = scores.masked_fill(mask, -torch.inf)
    total = torch.logsumexp(hidden, dim=-1, keepdim=True)
    return torch.exp(hidden - total.masked_fill(total.isinf(), 0.0))


@accepted("masked_softmax", "float64-inside", "Computed in float64, and cast back")
def masked_in_float64(scores, mask):
    attn_weights = scores.double().masked_fill(mask, -torch.inf).softmax(dim=-1)
    return attn_weights.nan_to_num(0.0).to(scores.dtype)


@accepted("masked_softmax", "broadcast-index", "The mask is stretched, then used as an index")
def masked_by_index(attn_scores, attn_mask):
    attn_mask = attn_mask.expand_as(attn_scores)
    hidden = attn_scores.clone()
    hidden[attn_mask] = -torch.inf
    attn_weights = nn.Softmax(dim=-1)(hidden)
    return attn_weights.masked_fill(attn_mask, 0)


# --- renormalized_causal_weights ------------------------------------------------------------------

mistake(
    "renormalized_causal_weights", "not-renormalized",
    "The future is gone, and rows no longer sum to one",
    hint="What do your rows sum to, and what should they?",
    change={"past_weights / row_sums": "past_weights"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "sums-from-before",
    "Rows are divided by what they summed to before the future was taken out",
    hint="What is left of a row when its future is gone: is it still one?",
    change={"past_weights.sum(": "weights.sum("},
    same_as={
        "not-renormalized": (
            "rows that come out of a softmax sum to one, so the division does nothing"
        ),
    },
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "column-sums", "Each column is divided by its sum, not each row",
    hint="Which axis should sum to one?",
    change={"dim=-1": "dim=0"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "keepdim-forgotten",
    "The row sums lie down, and divide the columns instead",
    hint="What shape do the sums have, and along which axis does (tokens,) line up?",
    change={", keepdim=True": ""},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "one-sum-for-all",
    "All weights together sum to one, not each row",
    hint="How many distributions are there: one, or one for each query?",
    change={"past_weights.sum(dim=-1, keepdim=True)": "past_weights.sum()"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", common="hides-itself",
    change={"torch.tril(weights)": "torch.tril(weights, diagonal=-1)"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", common="sees-one-ahead",
    change={"torch.tril(weights)": "torch.tril(weights, diagonal=1)"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "hides-the-past", "The past is hidden and the future is open",
    hint="Rows are the tokens that ask: to which side of the diagonal does their future lie?",
    change={"torch.tril(": "torch.triu("},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "softmax-again",
    "A softmax renormalises, and gives the zeros a share as well",
    hint="What does softmax make of a 0?",
    change={"past_weights / row_sums": "torch.softmax(past_weights, dim=-1)"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "one-softmax-too-many",
    "The weights go through a second softmax",
    hint="How often should exp act on a score?",
    change={
        "past_weights / row_sums": (
            "weights.masked_fill(causal_mask(len(weights)), -torch.inf).softmax(dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "divides-by-number-of-tokens",
    "Each row is divided by the number of visible tokens, not by their weight",
    hint="The second row of the example keeps 0.2 and 0.6: by what must these be divided?",
    change={"past_weights.sum(dim=-1, keepdim=True)": "torch.arange(1, len(weights) + 1)[:, None]"},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "divides-by-largest",
    "Each row is divided by its largest weight",
    hint="Your largest weight is always 1: what do the rows sum to?",
    change={"past_weights.sum(": "past_weights.amax("},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "divides-by-length",
    "The squares of the weights sum to one, not the weights",
    hint="Which norm does torch take unless you say otherwise?",
    change={"past_weights.sum(": "past_weights.norm("},
)  # fmt: skip

mistake(
    "renormalized_causal_weights", "subtracts-the-rest",
    "What is missing is shared out evenly, not in proportion",
    hint="In the example, 0.2 and 0.6 become 1/4 and 3/4: is their ratio still the same in yours?",
    change={
        "past_weights / row_sums": (
            "torch.tril(past_weights + (1 - row_sums) / torch.arange(1, len(weights) + "
            "1)[:, None])"
        ),
    },
)  # fmt: skip

mistake(
    "renormalized_causal_weights", common="input-changed-in-place",
    change={"torch.tril(weights)": "weights.tril_()"},
)  # fmt: skip


common_mistakes("renormalized_causal_weights", "nothing-returned", "no-gradient")

mistake(
    "renormalized_causal_weights", "sums-detached",
    "The gradient forgets that the sums depend on the entries too",
    hint="If one entry of a row grows, what happens to the others?",
    breaks=("gradients",),
    change={"keepdim=True)": "keepdim=True).detach()"},
)  # fmt: skip

common_mistakes("renormalized_causal_weights", "float32-inside", "returns-float32")


@accepted(
    "renormalized_causal_weights", "mask-filled",
    "The mask of the first exercise, filled with zeros",
)  # fmt: skip
def renormalized_by_filling(attn_weights):
    future = torch.ones_like(attn_weights).triu(diagonal=1).bool()
    past = attn_weights.masked_fill(future, 0)
    return past.div(past.sum(1, keepdim=True))


@accepted("renormalized_causal_weights", "mask-multiplied", "A triangle of ones, multiplied")
def renormalized_by_multiplying(weights):
    tokens = weights.size(0)
    past = weights * torch.tril(torch.ones(tokens, tokens))
    return past / past.sum(dim=-1).unsqueeze(-1)


@accepted("renormalized_causal_weights", "row-by-row", "A loop renormalises row after row")
def renormalized_row_by_row(weights):
    rows = []
    for token, row in enumerate(weights):
        past = row[: token + 1]
        rows.append(torch.cat([past / past.sum(), torch.zeros_like(row[token + 1 :])]))
    return torch.stack(rows)


@accepted("renormalized_causal_weights", "normalize", "torch's normalize, by absolute values")
def renormalized_by_normalize(weights):
    return F.normalize(weights.tril(), p=1, dim=-1)


@accepted(
    "renormalized_causal_weights", "logarithms",
    "Back to scores, and through a masked softmax",
)  # fmt: skip
def renormalized_through_scores(weights):
    rows = torch.arange(len(weights))
    return weights.log().masked_fill(rows > rows[:, None], -torch.inf).softmax(dim=-1)


accepted(
    "renormalized_causal_weights", "running-sums", "Row sums from the diagonal of a running sum",
    change={
        "past_weights.sum(dim=-1, keepdim=True)": "weights.cumsum(dim=-1).diagonal().unsqueeze(-1)",
    },
)  # fmt: skip


@accepted("renormalized_causal_weights", "einsum", "Sums and division by einsum")
def renormalized_by_einsum(weights):
    past = weights.tril()
    return torch.einsum("qk,q->qk", past, torch.einsum("qk->q", past).reciprocal())


@accepted("renormalized_causal_weights", "in-place-on-a-copy", "In place, on a copy")
def renormalized_in_a_copy(weights):
    weights = weights.clone().tril_()
    weights /= weights.sum(dim=-1, keepdim=True)
    return weights


# --- apply_dropout --------------------------------------------------------------------------------

mistake(
    "apply_dropout", "not-scaled-up", "What survives is not scaled up",
    hint="If half of the weights go, what happens to the average?",
    change={"survivors / (1 - p)": "survivors"},
)  # fmt: skip

mistake(
    "apply_dropout", "divides-by-p", "What survives is divided by the chance of being dropped",
    hint="Out of ten weights with p = 0.2, how many survive?",
    change={"(1 - p)": "p"},
)  # fmt: skip

mistake(
    "apply_dropout", "scaled-down", "What survives shrinks, and it should grow",
    hint="Some weights are gone: must the others grow or shrink to keep the average?",
    change={"survivors / (1 - p)": "survivors * (1 - p)"},
)  # fmt: skip

mistake(
    "apply_dropout", "grows-by-p", "What survives grows by a share of p, which is not enough",
    hint="With p = 0.5 half of the weights are gone: how much must the other half grow?",
    change={"survivors / (1 - p)": "survivors * (1 + p)"},
)  # fmt: skip

mistake(
    "apply_dropout", "keep-inverted", "What should be kept is dropped, and the other way round",
    hint="What does True mean in this mask?",
    change={"weights * keep": "weights * ~keep"},
)  # fmt: skip

mistake(
    "apply_dropout", "rows-renormalized", "Rows are made to sum to one again",
    hint="In the example, does a row sum to one afterwards?",
    change={"survivors / (1 - p)": "survivors / survivors.sum(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "apply_dropout", "divides-by-actual-share",
    "The divisor is the share that happened to survive, not the chance of it",
    hint="If one weight out of four was dropped by chance, and p is 0.2, what do you divide by?",
    change={"(1 - p)": "keep.to(weights.dtype).mean()"},
)  # fmt: skip

mistake(
    "apply_dropout", "nothing-dropped", "Survivors grow, and nothing is dropped",
    hint="What should stand where keep is False?",
    change={"return survivors / (1 - p)": "return torch.where(keep, weights / (1 - p), weights)"},
)  # fmt: skip

mistake(
    "apply_dropout", "minus-infinity-for-zero",
    "What is dropped becomes minus infinity, as if a softmax were still to come",
    hint="Are these scores, or weights?",
    change={"weights * keep": "weights.masked_fill(~keep, -torch.inf)"},
)  # fmt: skip

mistake(
    "apply_dropout", "own-dice",
    "A new random choice is made, and the mask that is given is ignored",
    hint="Call it twice: do you get the same result?",
    change={"return survivors / (1 - p)": "return nn.functional.dropout(weights, p)"},
)  # fmt: skip

mistake(
    "apply_dropout", "drops-twice", "Dropout acts twice",
    hint=(
        "How often may a weight be dropped, and what is the chance that it survives every "
        "time?"
    ),
    change={"return survivors / (1 - p)": "return nn.functional.dropout(survivors, p)"},
)  # fmt: skip

mistake(
    "apply_dropout", "mask-ignored-at-zero", "With p = 0 the keep mask is ignored",
    hint="May a weight stay where keep is False?",
    change={"survivors = weights * keep": "survivors = weights * keep if p > 0 else weights"},
)  # fmt: skip

mistake(
    "apply_dropout", "p-of-the-example", "The divisor is that of the example, whatever p is",
    hint="What should happen with p = 0.5?",
    change={"(1 - p)": "0.8"},
)  # fmt: skip

mistake(
    "apply_dropout", "weights-forgotten", "The mask is scaled, and the weights are forgotten",
    hint="Where do the weights come in?",
    change={"weights * keep": "keep"},
)  # fmt: skip

mistake(
    "apply_dropout", "entries-collected", "Only the entries that survive come back, in a row",
    hint="What shape should the answer have?",
    breaks=("returns",),
    change={"weights * keep": "weights[keep]"},
)  # fmt: skip

mistake(
    "apply_dropout", common="input-changed-in-place",
    change={"survivors = weights * keep": "survivors = weights.mul_(keep)"},
)  # fmt: skip


@mistake(
    "apply_dropout", "matrices-only", "Weights and mask are taken for matrices, always",
    hint="How many dimensions may the weights have?",
    breaks=("leading",),
)  # fmt: skip
def dropout_row_by_row(weights, keep, p):
    queries, keys = weights.shape
    factors = torch.zeros(queries, keys, dtype=weights.dtype)
    factors[keep] = 1 / (1 - p)
    return weights * factors


common_mistakes("apply_dropout", "no-gradient", "float32-inside", "returns-float32")


@accepted("apply_dropout", "where", "torch.where chooses")
def dropout_by_where(attn_weights, keep_mask, p):
    return torch.where(keep_mask, attn_weights / (1 - p), 0.0)


accepted(
    "apply_dropout", "fill", "What is dropped is filled with zeros",
    change={"weights * keep": "weights.masked_fill(keep.logical_not(), 0)"},
)  # fmt: skip


@accepted("apply_dropout", "one-factor", "Mask and scale become one factor")
def dropout_by_one_factor(weights, keep, p):
    factor = keep.to(weights.dtype).div(1 - p)
    return factor * weights


@accepted("apply_dropout", "index-in-a-copy", "Zeros are written into a copy")
def dropout_in_a_copy(weights, keep, p):
    dropped = weights.clone()
    dropped[~keep] = 0.0
    return dropped.mul_(1.0 / (1.0 - p))


@accepted("apply_dropout", "scatter", "Survivors are put back into zeros")
def dropout_by_scatter(weights, keep, p):
    return torch.zeros_like(weights).masked_scatter(keep, weights[keep] / (1 - p))


accepted(
    "apply_dropout", "einsum", "A product by einsum",
    change={"weights * keep": 'torch.einsum("...,...->...", weights, keep.to(weights.dtype))'},
)  # fmt: skip

# --- CausalAttention ------------------------------------------------------------------------------

common_mistakes(
    "CausalAttention", "no-scale", "no-square-root", "half-of-the-length", "scale-multiplied",
    "scale-by-d-in", "scale-by-number-of-keys", "scale-after-softmax", "softmax-over-queries",
)  # fmt: skip
mistake("CausalAttention", common="softmax-over-batch", breaks=("computes", "batch"))

mistake(
    "CausalAttention", "scores-for-weights", "The tokens are mixed by scores, without a softmax",
    hint="What do the numbers that you mix with add up to?",
    change={"masked_softmax(attn_scores, mask)": "attn_scores.masked_fill(mask, 0.0)"},
)  # fmt: skip

mistake("CausalAttention", "queries-keys-swapped", common="queries-and-keys-swapped")
common_mistakes("CausalAttention", "values-are-keys", "output-layer-too")

mistake(
    "CausalAttention", "values-are-queries", "Queries stand where values belong",
    hint="Which of the three carries the message?",
    change={"attn_weights @ values": "attn_weights @ queries"},
)  # fmt: skip

mistake(
    "CausalAttention", "inputs-for-values", "The inputs are mixed, and the values never used",
    hint="Which of the three carries the message, and how wide is it?",
    breaks=("returns",),
    change={"attn_weights @ values": "attn_weights @ x"},
)  # fmt: skip

common_mistakes("CausalAttention", "keys-are-queries", "compares-with-values", "t-on-a-batch")

mistake(
    "CausalAttention", "channels-compared",
    "Channels are compared with channels, not tokens with tokens",
    hint="Which shape should the scores have, and what is on their two axes?",
    breaks=("computes", "returns"),
    change={"queries @ keys.transpose(-2, -1)": "queries.transpose(-2, -1) @ keys"},
)  # fmt: skip

mistake(
    "CausalAttention", "elementwise-product", "Queries and keys are multiplied entry by entry",
    hint="How many keys does each query meet?",
    change={"queries @ keys.transpose(-2, -1)": "queries * keys"},
)  # fmt: skip

mistake(
    "CausalAttention", "keys-of-the-first-sentence",
    "All sentences look at the keys of the first one",
    hint="Which sentence of the batch does your second sentence look at?",
    breaks=("batch", "computes"),
    change={"keys.transpose(-2, -1)": "keys[0].transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "CausalAttention", "scale-always-two",
    "The scores are always divided by 2, which is right for d_out = 4 only",
    hint="Where does your divisor come from, and what should it be for d_out = 6?",
    change={"d_out**0.5": "2"},
)  # fmt: skip

mistake(
    "CausalAttention", "one-maximum-for-all",
    "One maximum is taken for the whole batch, and rows far below it vanish",
    hint="What does exp make of a row that lies 200 below the largest score of another sentence?",
    breaks=("batch",),
    change={
        "masked_softmax(attn_scores, mask)": (
            "torch.exp(attn_scores - attn_scores.max()).masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

common_mistakes(
    "CausalAttention", "input-changed-in-place", "weights-returned", "weights-returned-too",
    "hides-itself", "hides-itself-and-fills-zeros", "sees-one-ahead", "mask-opposite",
    "mask-opposite-and-zeros", "mask-transposed", "no-mask", "mask-thrown-away", "mask-fills-zero",
    "mask-multiplies", "mask-fills-tiny", "mask-fills-minus-one", "mask-fills-infinity",
    "mask-times-infinity", "mask-added", "mask-subtracted", "mask-after-softmax",
)  # fmt: skip

mistake(
    "CausalAttention", "mask-not-cut",
    "The mask is not cut to the length of the sentence on both sides",
    hint="How many tokens does the input have, and how many rows and columns has your mask?",
    breaks=("shorter",),
    change={"mask = self.mask[:num_tokens, :num_tokens]": "mask = self.mask"},
)  # fmt: skip

mistake(
    "CausalAttention", "mask-cut-on-one-side", "The mask is cut on one side only",
    hint="The scores are square: what is the shape of your mask?",
    breaks=("shorter",),
    change={"mask = self.mask[:num_tokens, :num_tokens]": "mask = self.mask[:num_tokens]"},
    same_as={"mask-not-cut": "torch names the axis of the keys only, which is too long in both"},
)  # fmt: skip

mistake(
    "CausalAttention", "mask-from-the-wrong-corner",
    "The mask of a shorter sentence is cut from the wrong corner",
    hint="With 3 tokens of 8, which three columns of the mask belong to them?",
    breaks=("shorter",),
    change={
        "mask = self.mask[:num_tokens, :num_tokens]": "mask = self.mask[:num_tokens, -num_tokens:]",
    },
)  # fmt: skip

mistake(
    "CausalAttention", "first-length-remembered", "The first sentence decides the length of all",
    hint="What happens when the second sentence is longer?",
    breaks=("shorter",),
    change={
        "mask = self.mask[:num_tokens, :num_tokens]": (
            "if not hasattr(self, \"length\"):\n"
            "            self.length = num_tokens\n"
            "        mask = self.mask[: self.length, : self.length]"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "mask-left-behind",
    "The mask stays on the CPU when the module and its input have moved",
    hint="On which device is the input, and who brings the mask there?",
    breaks=("device",),
    change={
        'self.register_buffer("mask", causal_mask(context_length))': (
            "self.mask = causal_mask(context_length)"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", common="mask-on-the-cpu",
    same_as={"mask-left-behind": "it is on the CPU either way, and torch says so"},
)  # fmt: skip

mistake(
    "CausalAttention", "dropout-forgotten", "Dropout is never applied",
    hint="In training, do two calls with the same input differ?",
    breaks=("dropout",),
    change={"attn_weights = self.dropout(attn_weights)": ""},
)  # fmt: skip

mistake(
    "CausalAttention", "drops-scores", "Scores are dropped, and not weights",
    hint="What does softmax make of a score that was set to 0?",
    breaks=("dropout",),
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "masked_softmax(attn_scores, mask)": "masked_softmax(self.dropout(attn_scores), mask)",
    },
)  # fmt: skip

mistake(
    "CausalAttention", "drops-hidden-scores",
    "Scores are dropped after the mask, and minus infinity times 0 is NaN",
    hint="What comes out when dropout meets an infinity?",
    breaks=("dropout",),
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(self.dropout(attn_scores.masked_fill(mask, -torch.inf)), dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "drops-values", "Features of the values are dropped, and not weights",
    hint="What is dropped: a look at a token, or a feature of its message?",
    breaks=("dropout",),
    change={"attn_weights = self.dropout(attn_weights)": "values = self.dropout(values)"},
)  # fmt: skip

mistake(
    "CausalAttention", "drops-inputs", "Features of the input are dropped, and not weights",
    hint="Where in the formula do the weights stand?",
    breaks=("dropout",),
    change={
        "_batch, num_tokens, _d_in = x.shape": (
            "_batch, num_tokens, _d_in = x.shape\n"
            "        x = self.dropout(x)"
        ),
        "attn_weights = self.dropout(attn_weights)": "",
    },
)  # fmt: skip

mistake(
    "CausalAttention", "dropout-always", "Dropout goes on after .eval()",
    hint="How does your function learn whether the module is training?",
    breaks=("eval",),
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = nn.functional.dropout(attn_weights, self.dropout.p)"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "dropout-made-in-forward",
    "A new dropout layer is made in every call, and it is always training",
    hint="Which layers does .eval() reach?",
    breaks=("eval",),
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = nn.Dropout(self.dropout.p)(attn_weights)"
        ),
    },
    same_as={"dropout-always": "either way dropout never hears of .eval()"},
)  # fmt: skip

mistake(
    "CausalAttention", "keeps-with-p",
    "The chance of being dropped is taken for the chance of being kept",
    hint="With dropout 0.1, how many of ten weights should survive?",
    breaks=("dropout", "computes"),
    change={"nn.Dropout(dropout)": "nn.Dropout(1 - dropout)"},
)  # fmt: skip

mistake(
    "CausalAttention", "rate-forgotten",
    "The dropout layer does not get its rate, and takes one half",
    hint="Which p has nn.Dropout when you say nothing?",
    breaks=("dropout", "computes"),
    change={"nn.Dropout(dropout)": "nn.Dropout()"},
)  # fmt: skip

mistake(
    "CausalAttention", "not-scaled-up", "What survives is not scaled up",
    hint="If half of the weights go, what happens to the average?",
    breaks=("dropout",),
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "if self.training:\n"
            "            attn_weights = attn_weights * (torch.rand_like(attn_weights) >= "
            "self.dropout.p)"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "rows-renormalized", "Rows are made to sum to one again",
    hint="In the example, does a row sum to one afterwards?",
    breaks=("dropout",),
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = self.dropout(attn_weights)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, "
            "keepdim=True).clamp(min=1e-9)"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "drops-only-in-eval", "Dropout is on in evaluation, and off in training",
    hint="When should weights be dropped: in training, or afterwards?",
    breaks=("dropout", "eval"),
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = nn.functional.dropout(attn_weights, self.dropout.p, not "
            "self.training)"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "same-for-all-sentences", "All sentences of a batch lose the same weights",
    hint="How many random choices does a batch of two sentences need?",
    breaks=("dropout",),
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = attn_weights * self.dropout(torch.ones_like(attn_weights[:1]))"
        ),
    },
)  # fmt: skip

mistake(
    "CausalAttention", "drops-context", "Dropout acts on the result, and not on the weights",
    hint="What is dropped: a look at a token, or a feature of the answer?",
    breaks=("dropout",),
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "return attn_weights @ values": "return self.dropout(attn_weights @ values)",
    },
)  # fmt: skip

mistake(
    "CausalAttention", "drops-twice", "Dropout acts twice",
    hint=(
        "How often may a weight be dropped, and what is the chance that it survives every "
        "time?"
    ),
    breaks=("dropout",),
    change={"return attn_weights @ values": "return self.dropout(attn_weights @ values)"},
)  # fmt: skip

mistake("CausalAttention", common="bias-left-on", breaks=("bias",))
mistake("CausalAttention", "qkv-bias-by-default", common="bias-by-default", breaks=("bias",))
mistake("CausalAttention", common="bias-never", breaks=("bias",))
mistake("CausalAttention", common="value-bias-always", breaks=("bias",))
common_mistakes(
    "CausalAttention", "no-super-init", "layers-turned-around", "made-in-forward", "plain-tensors",
    "python-list", "float32-hard-coded", "float32-inside", "no-gradient", "weights-detached",
)  # fmt: skip
mistake("CausalAttention", common="in-place-after-softmax", breaks=("gradients",))

mistake(
    "CausalAttention", common="calls-torch-attention",
    change={
        "return attn_weights @ values": (
            "return nn.functional.scaled_dot_product_attention(queries, keys, values, "
            "dropout_p=self.dropout.p * self.training, is_causal=True)"
        ),
    },
)  # fmt: skip


@accepted(
    "CausalAttention", "as-in-the-book",
    "A mask of floats, filled in place, scaled inside the softmax",
)  # fmt: skip
class AsInTheBook(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), 1))

    def forward(self, x):
        _, num_tokens, _ = x.shape
        keys, queries, values = self.W_key(x), self.W_query(x), self.W_value(x)
        attn_scores = queries @ keys.transpose(1, 2)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(attn_scores / self.d_out**0.5, dim=-1)
        return self.dropout(attn_weights) @ values


@accepted(
    "CausalAttention", "as-in-the-lecture",
    "Other names, another order of arguments, tril and F.softmax",
)  # fmt: skip
class AsInTheLecture(nn.Module):
    def __init__(self, n_embd, head_size, block_size, drop_rate, bias=False):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=bias)
        self.query = nn.Linear(n_embd, head_size, bias=bias)
        self.value = nn.Linear(n_embd, head_size, bias=bias)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.drop = nn.Dropout(drop_rate)

    def forward(self, x):
        _, T, _ = x.shape
        k, q, v = self.key(x), self.query(x), self.value(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return self.drop(F.softmax(wei, dim=-1)) @ v


@accepted("CausalAttention", "one-fused-layer", "One layer makes queries, keys and values")
class OneFusedLayer(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.scale = 1 / math.sqrt(d_out)

    def forward(self, x):
        queries, keys, values = self.qkv(x).chunk(3, dim=-1)
        scores = torch.bmm(queries, keys.mT) * self.scale
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = self.dropout(torch.softmax(scores.masked_fill(future, -math.inf), dim=-1))
        return torch.bmm(weights, values)


@accepted("CausalAttention", "matrices", "Three matrices and three vectors, without nn.Linear")
class WithMatrices(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.Wq = nn.Parameter(torch.rand(d_in, d_out))
        self.Wk = nn.Parameter(torch.rand(d_in, d_out))
        self.Wv = nn.Parameter(torch.rand(d_in, d_out))
        self.bq = nn.Parameter(torch.zeros(d_out)) if qkv_bias else 0.0
        self.bk = nn.Parameter(torch.zeros(d_out)) if qkv_bias else 0.0
        self.bv = nn.Parameter(torch.zeros(d_out)) if qkv_bias else 0.0
        self.p = dropout

    def forward(self, x):
        queries, keys, values = x @ self.Wq + self.bq, x @ self.Wk + self.bk, x @ self.Wv + self.bv
        scores = torch.einsum("bqd,bkd->bqk", queries, keys) / keys.size(-1) ** 0.5
        position = torch.arange(x.shape[1], device=x.device)
        scores = torch.where(position > position[:, None], -torch.inf, scores)
        weights = F.dropout(scores.softmax(dim=-1), p=self.p, training=self.training)
        return torch.einsum("bqk,bkd->bqd", weights, values)


@accepted("CausalAttention", "layers-in-a-dict", "The layers live in a ModuleDict")
class LayersInADict(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        roles = ("query", "key", "value")
        self.layers = nn.ModuleDict({role: nn.Linear(d_in, d_out, qkv_bias) for role in roles})
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1) > 0)

    def attend(self, queries, keys, tokens):
        scores = queries @ keys.transpose(1, 2) / math.sqrt(queries.shape[-1])
        hidden = scores.masked_fill(self.mask[:tokens, :tokens], -1e9)
        return self.dropout(hidden.softmax(dim=-1))

    def forward(self, x):
        weights = self.attend(self.layers["query"](x), self.layers["key"](x), x.shape[1])
        return weights @ self.layers["value"](x)


@accepted(
    "CausalAttention", "names-that-say-nothing",
    "Layers whose names say nothing, made in another order",
)  # fmt: skip
class NamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.first = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.second = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.third = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        messages, asked, asking = self.first(x), self.second(x), self.third(x)
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        return self.dropout(scores.softmax(-1)) @ messages


accepted(
    "CausalAttention", "queries-scaled-first", "The queries are scaled before they meet the keys",
    change={
        "queries @ keys.transpose(-2, -1) / d_out**0.5": (
            "(queries * d_out**-0.5) @ keys.transpose(-2, -1)"
        ),
    },
)  # fmt: skip

accepted(
    "CausalAttention", "root-shared", "Queries and keys take half of the scale each",
    change={
        "queries @ keys.transpose(-2, -1) / d_out**0.5": (
            "(queries / d_out**0.25) @ (keys / d_out**0.25).transpose(-2, -1)"
        ),
    },
)  # fmt: skip

accepted(
    "CausalAttention", "scaled-after-the-mask", "The scores are scaled after the mask",
    change={
        " / d_out**0.5": "",
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(attn_scores.masked_fill(mask, -torch.inf) / d_out**0.5, dim=-1)"
        ),
    },
)  # fmt: skip

accepted(
    "CausalAttention", "infinity-added", "An additive mask of zeros and minus infinities",
    change={
        "causal_mask(context_length)": (
            "torch.full((context_length, context_length), -torch.inf).triu(1)"
        ),
        "masked_softmax(attn_scores, mask)": "(attn_scores + mask).softmax(dim=-1)",
    },
)  # fmt: skip

accepted(
    "CausalAttention", "lowest-number", "The lowest number of the dtype instead of infinity",
    change={
        "masked_softmax(attn_scores, mask)": (
            "attn_scores.masked_fill(mask, torch.finfo(x.dtype).min).softmax(dim=-1)"
        ),
    },
)  # fmt: skip

accepted(
    "CausalAttention", "renormalized-afterwards", "Zeroed after the softmax, then renormalised",
    change={
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(attn_scores, dim=-1).tril()\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    "CausalAttention", "mask-built-in-forward",
    "The mask is built in forward, on the device of the input",
    change={
        'self.register_buffer("mask", causal_mask(context_length))': "",
        "mask = self.mask[:num_tokens, :num_tokens]": "mask = causal_mask(num_tokens).to(x.device)",
    },
)  # fmt: skip

accepted(
    "CausalAttention", "dice-by-hand", "A random choice of its own, in training only",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "if self.training:\n"
            "            keep = torch.rand_like(attn_weights) >= self.dropout.p\n"
            "            attn_weights = attn_weights * keep / (1 - self.dropout.p)"
        ),
    },
)  # fmt: skip

accepted(
    "CausalAttention", "float64-softmax", "The softmax runs in float64, and is cast back",
    change={
        "masked_softmax(attn_scores, mask)": (
            "masked_softmax(attn_scores.double(), mask).to(x.dtype)"
        ),
    },
)  # fmt: skip


@accepted("CausalAttention", "baddbmm", "Scores and mask in one baddbmm")
class WithBaddbmm(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        mask = torch.full((context_length, context_length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        tokens, queries, keys = x.shape[1], self.W_query(x), self.W_key(x)
        mask = self.mask[:tokens, :tokens]
        scores = torch.baddbmm(mask, queries, keys.mT, alpha=keys.shape[-1] ** -0.5)
        return self.dropout(scores.softmax(dim=-1)) @ self.W_value(x)


@accepted("masked_softmax", "a-little-in-the-sum", "Something tiny keeps the sum from being zero")
def never_divided_by_zero(scores, mask):
    hidden = scores.masked_fill(mask, float("-inf"))
    largest = hidden.amax(dim=-1, keepdim=True)
    e = torch.exp(hidden - largest.masked_fill(largest.isinf(), 0.0))
    return e / (e.sum(dim=-1, keepdim=True) + 1e-8)


@accepted("CausalAttention", "looks-at-its-values", "Assertions on the way")
class Careful(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        t = x.shape[1]
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(self.mask[:t, :t], -torch.inf)
        weights = scores.softmax(-1)
        assert not torch.isnan(weights).any(), "NaN in the weights"
        return self.dropout(weights) @ v


@accepted("CausalAttention", "lazy", "Layers that get their weights in the first call")
class LazyCausalAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (
            nn.LazyLinear(d_out, bias=qkv_bias) for _ in range(3)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        t = x.shape[1]
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        return self.dropout(weights) @ self.W_value(x)
