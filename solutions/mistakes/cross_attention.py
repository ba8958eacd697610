"""Known answers of unit 7: mistakes, and right answers in other forms."""

import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake


def softmax_skipping(scores, mask):
    """As one writes it in unit 5: rows in which everything is hidden become zero."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1).masked_fill(mask, 0.0)


# --- padding_mask ---------------------------------------------------------------------------------

mistake(
    "padding_mask", "inverted", "True marks the real tokens, and not the padding",
    hint="In this kit, does True mean \"look here\" or \"do not look here\"?",
    change={"return positions >= lengths[:, None]": "return positions < lengths[:, None]"},
)  # fmt: skip

mistake(
    "padding_mask", "one-too-few", "The first token of the padding is taken for a real one",
    hint="A sentence has length 2. Is the token at position 2 real?",
    change={"return positions >= lengths[:, None]": "return positions > lengths[:, None]"},
)  # fmt: skip

mistake(
    "padding_mask", "one-too-many", "The last real token is taken for padding",
    hint="A sentence has length 2. Is the token at position 1 real?",
    change={"return positions >= lengths[:, None]": "return positions >= lengths[:, None] - 1"},
)  # fmt: skip

mistake(
    "padding_mask", "counts-from-one", "Positions are counted from 1",
    hint="At which position does a sentence begin?",
    change={
        "positions = torch.arange(num_tokens, device=lengths.device)": (
            "positions = torch.arange(1, num_tokens + 1, device=lengths.device)"
        ),
    },
    same_as={"one-too-many": "each position is one larger, as if each length were one smaller"},
)  # fmt: skip

mistake(
    "padding_mask", "first-padded-only", "Only the first token of the padding is marked",
    hint="How many tokens of a batch of six are padding, if the sentence has four?",
    change={"return positions >= lengths[:, None]": "return positions == lengths[:, None]"},
)  # fmt: skip

mistake(
    "padding_mask", "padding-in-front", "The padding stands before the sentence, and not behind it",
    hint="At which end are short sentences filled up?",
    change={
        "return positions >= lengths[:, None]": "return positions < num_tokens - lengths[:, None]",
    },
)  # fmt: skip

mistake(
    "padding_mask", "as-many-as-real", "As many tokens are padding as are real",
    hint="A sentence has two of five tokens. How many of the five are padding?",
    change={
        "return positions >= lengths[:, None]": "return positions >= num_tokens - lengths[:, None]",
    },
)  # fmt: skip

mistake(
    "padding_mask", "nothing-padded", "Nothing is ever padding",
    hint="What sets a token beyond the end of its sentence apart?",
    change={
        "return positions >= lengths[:, None]": (
            "return torch.zeros_like(positions >= lengths[:, None])"
        ),
    },
)  # fmt: skip

mistake(
    "padding_mask", "first-length-for-all", "All sentences are as long as the first",
    hint="Whose length does each row look at?",
    change={
        "return positions >= lengths[:, None]": (
            "return (positions >= lengths[0]).repeat(len(lengths), 1)"
        ),
    },
)  # fmt: skip

mistake(
    "padding_mask", "longest-for-all", "All sentences are as long as the longest",
    hint="Whose length does each row look at?",
    change={
        "return positions >= lengths[:, None]": (
            "return (positions >= lengths.max()).repeat(len(lengths), 1)"
        ),
    },
)  # fmt: skip

mistake(
    "padding_mask", "only-as-wide-as-needed", "The mask is as wide as the longest sentence",
    hint="Who says how many tokens the batch has?",
    change={
        "positions = torch.arange(num_tokens, device=lengths.device)": (
            "positions = torch.arange(int(lengths.max()), device=lengths.device)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "padding_mask", "transposed", "Rows are tokens, and columns are sentences",
    hint="Which comes first in (batch, num_tokens)?",
    change={"return positions >= lengths[:, None]": "return positions[:, None] >= lengths"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "padding_mask", "meets-without-an-axis",
    "Positions and lengths meet without an axis of their own",
    hint="Which shapes do the two sides of your comparison have, and which shape should come out?",
    change={"return positions >= lengths[:, None]": "return positions >= lengths"},
)  # fmt: skip

mistake(
    "padding_mask", "ready-to-broadcast", "The mask has axes for heads and queries already",
    hint="How many dimensions should the mask have?",
    change={
        "return positions >= lengths[:, None]": (
            "return (positions >= lengths[:, None])[:, None, None, :]"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "padding_mask", "for-every-query", "The mask has a row for every query of a sentence",
    hint="How many dimensions should the mask have?",
    change={
        "return positions >= lengths[:, None]": (
            "return (positions >= lengths[:, None])[:, None, :].repeat(1, num_tokens, 1)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "padding_mask", "numbers", "The mask holds zeros and ones",
    hint="Of which dtype is a mask here?",
    change={
        "return positions >= lengths[:, None]": "return (positions >= lengths[:, None]).long()",
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "padding_mask", "to-be-added", "The mask holds zeros and minus infinities",
    hint="Of which dtype is a mask here?",
    change={
        "return positions >= lengths[:, None]": (
            "return torch.zeros(len(lengths), num_tokens).masked_fill(positions >= lengths[:, "
            "None], -torch.inf)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "padding_mask", "never-all", "A sentence of length 0 keeps its first token",
    hint="What should a row look like if no token is real?",
    change={
        "return positions >= lengths[:, None]": "return positions >= lengths[:, None].clamp(min=1)",
    },
)  # fmt: skip

mistake(
    "padding_mask", "never-full", "A full sentence loses its last token",
    hint="What should a row look like if all tokens are real?",
    change={
        "return positions >= lengths[:, None]": (
            "return positions >= lengths[:, None].clamp(max=num_tokens - 1)"
        ),
    },
)  # fmt: skip


@mistake(
    "padding_mask", "from-the-end", "A sentence without padding is marked from beginning to end",
    hint="Padding is cut from the end here. Which slice is the last 0 tokens?",
)  # fmt: skip
def mask_from_the_end(lengths, num_tokens):
    mask = torch.zeros(len(lengths), num_tokens, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, -(num_tokens - int(length)) :] = True
    return mask


mistake(
    "padding_mask", "axes-squeezed", common="squeezed",
    hint="Which shape comes out for one sentence, or for one token?",
)  # fmt: skip

mistake(
    "padding_mask", "lengths-changed", "The lengths are changed in place",
    hint="What does the caller find in them after the call?",
    change={"return positions >= lengths[:, None]": "return positions > lengths.sub_(1)[:, None]"},
    breaks=("unchanged",),
)  # fmt: skip

mistake(
    "padding_mask", "on-the-cpu", "The positions are always made on the CPU",
    hint="On which device are the lengths, and on which the positions?",
    change={
        "positions = torch.arange(num_tokens, device=lengths.device)": (
            "positions = torch.arange(num_tokens)"
        ),
    },
    breaks=("device",),
)  # fmt: skip

accepted(
    "padding_mask", "not-smaller", "Whatever is not real",
    change={"positions >= lengths[:, None]": "~(positions < lengths.unsqueeze(1))"},
)  # fmt: skip

accepted(
    "padding_mask", "counted-from-one", "Positions counted from 1, and compared accordingly",
    change={
        "torch.arange(num_tokens, device=lengths.device)": (
            "torch.arange(1, num_tokens + 1, device=lengths.device)"
        ),
        "positions >= lengths": "positions > lengths",
    },
)  # fmt: skip

accepted(
    "padding_mask", "smaller-or-equal", "The other way round, with both sides expanded",
    change={
        "return positions >= lengths[:, None]": (
            "shape = lengths.shape[0], num_tokens\n"
            "    return lengths.view(-1, 1).expand(shape) <= positions.view(1, -1).expand(shape)"
        ),
    },
)  # fmt: skip


@accepted("padding_mask", "loop", "A loop fills the end of each row")
def mask_by_loop(lengths, num_tokens):
    mask = torch.zeros(lengths.shape[0], num_tokens, dtype=torch.bool, device=lengths.device)
    for row, length in enumerate(lengths):
        mask[row, length:] = True
    return mask


@accepted("padding_mask", "lists", "Python lists, and a tensor at the end")
def mask_from_lists(lens, max_len):
    rows = [[position >= length for position in range(max_len)] for length in lens.tolist()]
    return torch.tensor(rows, dtype=torch.bool, device=lens.device)


@accepted("padding_mask", "rows-stacked", "Rows are stacked")
def mask_of_rows(lengths, num_tokens):
    steps = torch.arange(num_tokens, device=lengths.device)
    return torch.stack([steps >= length for length in lengths])


@accepted("padding_mask", "table", "Rows are looked up in a triangle")
def mask_from_table(lengths, num_tokens):
    table = torch.ones(num_tokens + 1, num_tokens, device=lengths.device).triu() == 1
    return table[lengths]


@accepted("padding_mask", "ones-counted", "Ones are counted along the row")
def mask_by_counting(lengths, num_tokens):
    ones = torch.ones(len(lengths), num_tokens, dtype=torch.long, device=lengths.device)
    return ones.cumsum(dim=1).gt(lengths[:, None])


@accepted("padding_mask", "other-order", "The number of tokens first")
def mask_number_first(num_tokens, lengths):
    return torch.arange(num_tokens).to(lengths)[None] >= lengths[..., None]


# --- CrossAttention and EncoderSelfAttention ------------------------------------------------------

BOTH = ("CrossAttention", "EncoderSelfAttention")

# What both references have, whatever they call their masks.
SPLIT = re.compile(r"split_heads\((self\.W_\w+)\((\w+)\), self\.num_heads\)")
QUERIES = "queries = split_heads(self.W_query(x), self.num_heads)"
SCORES = "queries @ keys.transpose(-2, -1) / head_dim**0.5"
IF_MASKED = re.compile(r"if (\w+) is not None:")
AXES = "[:, None, None, :]"
FILL = "attn_scores.masked_fill(hidden, -torch.inf)"
HIDE = f"attn_scores = {FILL}"
SOFTMAX = "torch.softmax(attn_scores, dim=-1)"
FROM_MASK_TO_SOFTMAX = re.compile(rf"(if \w+ is not None:).+{re.escape(SOFTMAX)}", re.S)

mistake(
    "CrossAttention", "keys-and-values-from-x",
    "Keys and values come from x, and the context is ignored",
    hint="Where does the message come from: from those who ask, or from those who are asked?",
    change={
        "self.W_key = nn.Linear(d_context": "self.W_key = nn.Linear(d_query",
        "self.W_value = nn.Linear(d_context": "self.W_value = nn.Linear(d_query",
        "self.W_key(context)": "self.W_key(x)",
        "self.W_value(context)": "self.W_value(x)",
    },
)  # fmt: skip

mistake(BOTH, "values-are-keys", common="keys-mixed")
common_mistakes(BOTH, "no-scale")
mistake(BOTH, "root-of-d-out", common="scale-d-out")
mistake(BOTH, "no-root", common="no-square-root")
common_mistakes(BOTH, "half-of-the-length")

mistake(
    "CrossAttention", "no-mask", "The mask is ignored",
    hint="Change a token that context_mask hides: which outputs may change?",
    change={HIDE: "pass"},
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "no-mask", "Padding is seen like any other token",
    hint="Change a token that padding hides: which outputs may change?",
    change={HIDE: "pass"},
)  # fmt: skip

mistake(
    BOTH, "mask-inverted", "The mask is the wrong way round",
    hint="What does True mean here: look, or do not look?",
    change={"hidden = ": "hidden = ~"},
)  # fmt: skip

common_mistakes(BOTH, "mask-fills-zero")

mistake(
    "CrossAttention", common="mask-after-softmax",
    change={
        HIDE: "pass",
        SOFTMAX: (
            f"{SOFTMAX}\n"
            "        if context_mask is not None:\n"
            "            attn_weights = attn_weights.masked_fill(hidden, 0.0)"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", common="mask-after-softmax",
    change={
        HIDE: "pass",
        SOFTMAX: (
            f"{SOFTMAX}\n"
            "        if padding is not None:\n"
            "            attn_weights = attn_weights.masked_fill(hidden, 0.0)"
        ),
    },
)  # fmt: skip

mistake(
    "CrossAttention", "longest-context", "There is room for 128 tokens of the context",
    hint="How many tokens may the context have?",
    change={
        SCORES: (
            f"{SCORES}\n"
            "        room = torch.zeros(128, dtype=torch.bool, device=x.device)\n"
            "        attn_scores = attn_scores.masked_fill(room[: context.shape[1]], -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "CrossAttention", "causal",
    "Later tokens of the context are hidden, as in causal attention",
    hint="Which tokens have not been written yet when these are read?",
    change={
        SOFTMAX: (
            "torch.softmax(\n"
            "            attn_scores.masked_fill(torch.ones_like(attn_scores).triu(1).bool(), "
            "-torch.inf), dim=-1\n"
            "        )"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "causal", "The future is hidden, as in a decoder",
    hint="Which tokens have not been written yet when these are read?",
    change={
        SOFTMAX: (
            "torch.softmax(\n"
            "            attn_scores.masked_fill(torch.ones_like(attn_scores).triu(1).bool(), "
            "-torch.inf), dim=-1\n"
            "        )"
        ),
    },
)  # fmt: skip

common_mistakes(BOTH, "no-output-layer", "merged-without-turning")

mistake(
    "CrossAttention", "values-from-x", "Values come from x",
    hint="Where does the message come from: from those who ask, or from those who are asked?",
    change={
        "self.W_value = nn.Linear(d_context": "self.W_value = nn.Linear(d_query",
        "self.W_value(context)": "self.W_value(x)",
    },
)  # fmt: skip

mistake(
    "CrossAttention", "queries-from-context",
    "Queries come from the context, and keys and values from x",
    hint="Who asks, and who answers? How many answers should there be?",
    change={
        "self.W_query = nn.Linear(d_query": "self.W_query = nn.Linear(d_context",
        "self.W_key = nn.Linear(d_context": "self.W_key = nn.Linear(d_query",
        "self.W_value = nn.Linear(d_context": "self.W_value = nn.Linear(d_query",
        "self.W_query(x)": "self.W_query(context)",
        "self.W_key(context)": "self.W_key(x)",
        "self.W_value(context)": "self.W_value(x)",
    },
)  # fmt: skip

mistake(
    "CrossAttention", "keys-layer-reads-x",
    "A layer for tokens as wide as those of the context is given x",
    hint="How wide is what each layer is given?",
    change={"self.W_key(context)": "self.W_key(x)"},
)  # fmt: skip

mistake(
    "CrossAttention", "values-layer-reads-x", "The layer for the values is given x",
    hint="How wide is what each layer is given?",
    change={"self.W_value(context)": "self.W_value(x)"},
    same_as={"keys-layer-reads-x": "torch names the sizes that do not meet, and they are the same"},
)  # fmt: skip

mistake(
    "CrossAttention", "query-layer-reads-context",
    "A layer for tokens as wide as those of x is given the context",
    hint="How wide is what each layer is given?",
    change={"self.W_query(x)": "self.W_query(context)"},
)  # fmt: skip

mistake(
    "CrossAttention", "all-layers-from-d-context",
    "All three layers expect tokens as wide as the context",
    hint="How wide is a token of x?",
    change={"self.W_query = nn.Linear(d_query": "self.W_query = nn.Linear(d_context"},
    same_as={
        "keys-layer-reads-x": "torch names the sizes that do not meet, and they are the same",
        "values-layer-reads-x": "torch names the sizes that do not meet, and they are the same",
    },
)  # fmt: skip

mistake(
    "CrossAttention", "one-width-for-all", "All three layers expect tokens as wide as those of x",
    hint="How wide is a token of the context?",
    change={
        "self.W_key = nn.Linear(d_context": "self.W_key = nn.Linear(d_query",
        "self.W_value = nn.Linear(d_context": "self.W_value = nn.Linear(d_query",
    },
    same_as={
        "query-layer-reads-context": (
            "torch names the sizes that do not meet, and they are the same"
        ),
    },
)  # fmt: skip

mistake(
    "CrossAttention", "causal-if-as-long",
    "When both sequences are equally long, and there is no mask, the future is hidden",
    hint="Do equal lengths make token 3 of one sequence belong to token 3 of the other?",
    change={
        SOFTMAX: (
            "torch.softmax(\n"
            "            attn_scores.masked_fill(torch.ones_like(attn_scores).triu(1).bool(), "
            "-torch.inf)\n"
            "            if context_mask is None and x.shape[1] == context.shape[1]\n"
            "            else attn_scores,\n"
            "            dim=-1,\n"
            "        )"
        ),
    },
)  # fmt: skip

mistake(
    "CrossAttention", "square-mask", "A causal mask for x alone is laid over the scores",
    hint="Are the scores of two sequences a square?",
    change={
        SOFTMAX: (
            "torch.softmax(\n"
            "            attn_scores.masked_fill(\n"
            "                torch.ones(x.shape[1], x.shape[1], device=x.device).triu(1).bool(), "
            "-torch.inf\n"
            "            ),\n"
            "            dim=-1,\n"
            "        )"
        ),
    },
)  # fmt: skip

mistake(
    "CrossAttention", "context-cut-to-queries",
    "Only as many tokens of the context are read as there are queries",
    hint="How many keys does each query see?",
    change={
        QUERIES: (
            "context = context[:, : x.shape[1]]\n"
            "        context_mask = None if context_mask is None else context_mask[:, : "
            "x.shape[1]]\n"
            f"        {QUERIES}"
        ),
    },
)  # fmt: skip

common_mistakes(BOTH, "keys-are-values")
mistake("CrossAttention", common="no-attention", hint="What does the result depend on, besides x?")

mistake(
    "EncoderSelfAttention", common="no-attention",
    hint="On which other tokens does an output depend?",
)  # fmt: skip

mistake(
    BOTH, "plain-average", "All visible tokens weigh the same",
    hint="Who decides how much weight each key gets?",
    change={SCORES: "queries @ keys.transpose(-2, -1) * 0.0"},
)  # fmt: skip

mistake(
    BOTH, "plain-sum", "Nobody weighs anything: every output is the sum of all values",
    hint="Who decides how much weight each key gets?",
    change={SOFTMAX: "torch.ones_like(attn_scores)"},
)  # fmt: skip

common_mistakes(BOTH, "no-softmax", "softmax-over-queries", "softmax-over-heads")
mistake(BOTH, common="softmax-over-batch", breaks=("computes", "batch"))
common_mistakes(BOTH, "log-weights")

mistake(
    "EncoderSelfAttention", "scores-transposed", "Keys ask, and queries answer",
    hint="Who shares out its attention: the rows of your scores, or the columns?",
    change={SCORES: "keys @ queries.transpose(-2, -1) / head_dim**0.5"},
)  # fmt: skip

mistake(BOTH, "wrong-way", common="scale-multiplied")
mistake(BOTH, "root-of-num-heads", common="scale-num-heads")

mistake(
    "CrossAttention", "root-of-d-query", "The scores are scaled by the root of the width of x",
    hint="Over how many features does one dot product run?",
    change={"keys.shape[-1]": "x.shape[-1]"},
)  # fmt: skip

mistake(
    "CrossAttention", "root-of-d-context",
    "The scores are scaled by the root of the width of the context",
    hint="Over how many features does one dot product run?",
    change={"keys.shape[-1]": "context.shape[-1]"},
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "root-of-d-in", "The scores are scaled by the root of the width of x",
    hint="Over how many features does one dot product run?",
    change={"keys.shape[-1]": "x.shape[-1]"},
)  # fmt: skip

mistake(
    BOTH, "root-of-keys", "The scores are scaled by the root of the number of keys",
    hint="Over how many features does one dot product run?",
    change={"keys.shape[-1]": "keys.shape[-2]"},
)  # fmt: skip

mistake(BOTH, "scaled-after-softmax", common="scale-after-softmax")
mistake(BOTH, common="scaled-twice", same_as={"no-root": "a root times itself"})
common_mistakes(BOTH, "mask-thrown-away")

mistake(
    BOTH, "mask-on-queries", "The mask hides queries, and not keys",
    hint="On which axis of the scores do the keys lie?",
    change={AXES: "[:, None, :, None]"},
)  # fmt: skip

mistake(
    BOTH, "mask-without-axes", "The mask meets the scores without axes for heads and queries",
    hint="With four dimensions of scores, which of them do the two of the mask line up with?",
    change={AXES: ""},
)  # fmt: skip

mistake(
    BOTH, "mask-with-one-axis", "The mask has an axis for queries, and none for heads",
    hint="With four dimensions of scores, which of them do the three of the mask line up with?",
    change={AXES: "[:, None, :]"},
)  # fmt: skip

mistake(
    BOTH, "mask-in-front", "The axes of the mask stand behind it",
    hint="With four dimensions of scores, on which axis do the keys lie?",
    change={AXES: "[:, :, None, None]"},
)  # fmt: skip

mistake(
    "CrossAttention", "mask-for-attention-if-it-fits",
    "A mask that could be one for pairs of queries and keys is taken for one",
    hint="What do the two axes of the mask stand for, even when the sizes happen to agree?",
    change={
        "context_mask[:, None, None, :]": (
            "context_mask\n"
            "            if hidden.shape != attn_scores.shape[-2:]:\n"
            "                hidden = hidden[:, None, None, :]"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "mask-for-attention-if-it-fits",
    "A mask that could be one for pairs of tokens is taken for one",
    hint="What do the two axes of the mask stand for, even when the sizes happen to agree?",
    change={
        "padding[:, None, None, :]": (
            "padding\n"
            "            if hidden.shape != attn_scores.shape[-2:]:\n"
            "                hidden = hidden[:, None, None, :]"
        ),
    },
)  # fmt: skip

mistake(
    BOTH, "mask-of-the-first", "All sentences use the mask of the first",
    hint="Whose mask does each sentence get?",
    change={AXES: "[:1, None, None, :]"},
)  # fmt: skip

mistake(
    BOTH, "mask-of-any", "A token is hidden from all sentences if one of them hides it",
    hint="Whose mask does each sentence get?",
    change={AXES: ".any(dim=0)"},
)  # fmt: skip

common_mistakes(
    BOTH, "mask-for-one-head", "mask-multiplies", "mask-fills-tiny", "mask-fills-minus-one",
)  # fmt: skip

mistake(
    BOTH, "mask-fills-infinity", "Hidden scores become plus infinity",
    hint="What stands in a row just before the softmax: is any of it NaN, or plus infinity?",
    change={FILL: "attn_scores.masked_fill(hidden, torch.inf)"},
)  # fmt: skip

mistake(
    BOTH, "mask-times-infinity", "Infinity times 0 is added to visible scores, and is NaN",
    hint="Which step makes the first NaN: 0 times infinity, infinity less infinity, 0 over 0?",
    change={FILL: "attn_scores + hidden * -torch.inf"},
)  # fmt: skip

common_mistakes(BOTH, "mask-added", "mask-subtracted")
mistake(BOTH, common="mask-fills-minus-hundred", breaks=("hidden",))

mistake(
    BOTH, "mask-adds-forty", "Hidden scores are lowered by a fixed amount",
    hint="Could a hidden token be so interesting that its score is high even so?",
    change={FILL: "attn_scores - 40.0 * hidden.to(x.dtype)"},
    breaks=("hidden",),
)  # fmt: skip

mistake(
    BOTH, "values-hidden", "The values of hidden tokens are zeroed, and their weights are not",
    hint="How much weight do hidden tokens keep?",
    change={HIDE: "values = values.masked_fill(hidden.mT, 0.0)"},
    same_as={"mask-after-softmax": "a value of 0 counts like a weight of 0"},
)  # fmt: skip

mistake(
    "CrossAttention", "context-zeroed",
    "Hidden tokens of the context become zero before they are projected",
    hint="What does a softmax make of a score of 0?",
    change={
        QUERIES: (
            "if context_mask is not None:\n"
            "            context = context.masked_fill(context_mask[..., None], 0.0)\n"
            f"        {QUERIES}"
        ),
        HIDE: "pass",
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "tokens-zeroed", "Padded tokens become zero before they are projected",
    hint="What does a softmax make of a score of 0?",
    change={
        QUERIES: (
            "if padding is not None:\n"
            "            x = x.masked_fill(padding[..., None], 0.0)\n"
            f"        {QUERIES}"
        ),
        HIDE: "pass",
    },
)  # fmt: skip

mistake(
    BOTH, "mask-remembered", "The last mask goes on to be used when there is none",
    hint="What does the module keep from one call to the next?",
    change={
        IF_MASKED: (
            r"if \1 is None:\n"
            r"            \1 = getattr(self, 'last_mask', None)\n"
            r"        self.last_mask = \1\n"
            r"        \g<0>"
        ),
    },
)  # fmt: skip

mistake(
    BOTH, "mask-required", "There is no calling it without a mask",
    hint="What may a caller leave out?",
    change={" | None = None": ""},
)  # fmt: skip

mistake(
    BOTH, "none-not-understood", "A mask may be left out, and None is not understood",
    hint="What do callers pass who have no mask?",
    change={" | None = None": " = torch.tensor([[False]])", IF_MASKED: "if True:"},
)  # fmt: skip

mistake(
    BOTH, "mask-on-the-cpu", "Numbers of its own are made on the CPU",
    hint="On which device is the input, and on which is what you add to it?",
    change={
        IF_MASKED: (
            r"low = torch.full(attn_scores.shape, -torch.inf, dtype=x.dtype)\n        \g<0>"
        ),
        FILL: "torch.where(hidden, low, attn_scores)",
    },
    breaks=("device",),
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "queries-hidden-too",
    "Padded queries see nothing, and NaN spreads to all gradients",
    hint=(
        "What is the softmax of a row in which everything is hidden, and where does its gradient "
        "go?"
    ),
    change={FILL: "attn_scores.masked_fill(hidden | padding[:, None, :, None], -torch.inf)"},
    breaks=("padded",),
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "causal-inverted", "Only later tokens are seen",
    hint="Which tokens of its sentence may an encoder see?",
    change={
        SOFTMAX: (
            "torch.softmax(\n"
            "            attn_scores.masked_fill(torch.ones_like(attn_scores).tril(-1).bool(), "
            "-torch.inf), dim=-1\n"
            "        )"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "not-itself", "A token does not see itself",
    hint="Which tokens of its sentence may an encoder see?",
    change={
        SCORES: (
            f"{SCORES}\n"
            "        itself = torch.eye(x.shape[1], dtype=torch.bool, device=x.device)\n"
            "        attn_scores = attn_scores.masked_fill(itself, -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "only-itself", "A token sees nobody but itself",
    hint="Which tokens of its sentence may an encoder see?",
    change={"attn_weights @ values": "values"},
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "neighbours-only", "A token sees its near neighbours only",
    hint="How far may an encoder see?",
    change={
        SCORES: (
            f"{SCORES}\n"
            "        steps = torch.arange(x.shape[1], device=x.device)\n"
            "        attn_scores = attn_scores.masked_fill((steps[:, None] - steps).abs() > 8, "
            "-torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "causal-unless-padded", "Without padding, the future is hidden",
    hint="What is left to hide when there is no padding?",
    change={
        SOFTMAX: (
            "torch.softmax(\n"
            "            attn_scores\n"
            "            if padding is not None\n"
            "            else "
            "attn_scores.masked_fill(torch.ones_like(attn_scores).triu(1).bool(), -torch.inf),\n"
            "            dim=-1,\n"
            "        )"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "longest-sentence", "Sentences of more than 128 tokens are too long",
    hint="What is there left in the layer that knows the length of a sentence?",
    change={
        "self.out_proj = nn.Linear(d_out, d_out)": (
            "self.out_proj = nn.Linear(d_out, d_out)\n"
            "        self.register_buffer(\"mask\", torch.zeros(128, 128, dtype=torch.bool))"
        ),
        SCORES: (
            f"{SCORES}\n"
            "        tokens = x.shape[1]\n"
            "        attn_scores = attn_scores.masked_fill(self.mask[:tokens, :tokens], "
            "-torch.inf)"
        ),
    },
    breaks=("length",),
)  # fmt: skip

mistake(
    BOTH, "one-head", "There is only one head, as wide as all",
    hint="How many softmaxes does each query have?",
    change={"self.num_heads = num_heads": "self.num_heads = 1"},
)  # fmt: skip

mistake(
    BOTH, "split-by-reshape",
    "Tensors are reshaped straight into heads, which mixes tokens with features",
    hint="Follow the first token: where do its last features end up?",
    change={SPLIT: r"\1(\2).reshape(len(\2), self.num_heads, \2.shape[1], -1)"},
)  # fmt: skip

mistake(
    BOTH, "split-and-merged-by-reshape",
    "Tensors are reshaped into heads and back, which mixes tokens with features both times",
    hint="Follow the first token: where do its last features end up?",
    change={
        SPLIT: r"\1(\2).reshape(len(\2), self.num_heads, \2.shape[1], -1)",
        "merge_heads(context_vec)": "context_vec.reshape(*x.shape[:2], -1)",
    },
)  # fmt: skip

common_mistakes(BOTH, "every-nth-feature")

mistake(
    BOTH, "heads-never-turned",
    "The heads stay behind the tokens, and meet one another instead of keys",
    hint="Which two dimensions does a product of matrices multiply?",
    change={
        SPLIT: r"\1(\2).unflatten(-1, (self.num_heads, -1))",
        AXES: "[:, :, None, None]",
        "merge_heads(context_vec)": "context_vec.flatten(2)",
    },
)  # fmt: skip

mistake(
    BOTH, "features-interleaved",
    "The features of the heads are shuffled into one another when they are merged",
    hint="In a merged token, what comes right after the first feature of head 0?",
    change={"merge_heads(context_vec)": "context_vec.permute(0, 2, 3, 1).flatten(2)"},
)  # fmt: skip

mistake(
    BOTH, "heads-averaged", "The heads are averaged, and repeated",
    hint="How are the answers of several heads put together?",
    change={"merge_heads(context_vec)": "context_vec.mean(dim=1).repeat(1, 1, self.num_heads)"},
)  # fmt: skip

common_mistakes(BOTH, "first-head-only")

mistake(
    BOTH, "not-merged", "The heads are never merged",
    hint="How many dimensions should the result have?",
    change={"context_vec = merge_heads(context_vec)": "context_vec = context_vec"},
    breaks=("returns",),
)  # fmt: skip

common_mistakes(
    BOTH, "output-layer-unused", "output-layer-twice", "output-layer-first",
    "output-layer-per-head",
)  # fmt: skip
mistake(BOTH, common="output-layer-without-bias", breaks=("bias",))

mistake(
    "CrossAttention", "output-layer-to-x", "The output layer makes tokens as wide as those of x",
    hint="How wide should a token be in the end?",
    change={"self.out_proj = nn.Linear(d_out, d_out)": "self.out_proj = nn.Linear(d_out, d_query)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "output-layer-to-x",
    "The output layer makes tokens as wide as those of x",
    hint="How wide should a token be in the end?",
    change={"self.out_proj = nn.Linear(d_out, d_out)": "self.out_proj = nn.Linear(d_out, d_in)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    BOTH, "residual-added", "The queries are added on top",
    hint="Does the formula add what came in to what goes out?",
    change={"self.out_proj(context_vec)": "self.out_proj(context_vec) + self.W_query(x)"},
)  # fmt: skip

mistake(
    BOTH, "dropout-left-in",
    "Some weights are dropped, as in the layer that this one was made from",
    hint="Does the statement ask for dropout?",
    change={
        "attn_weights @ values": "nn.functional.dropout(attn_weights, 0.1, self.training) @ values",
    },
)  # fmt: skip

mistake(
    BOTH, "normalized", "The output is normalised",
    hint="What comes after the output layer?",
    change={
        "self.out_proj(context_vec)": (
            "nn.functional.layer_norm(self.out_proj(context_vec), (context_vec.shape[-1],))"
        ),
    },
)  # fmt: skip

mistake(
    BOTH, "bias-left-on", common="qkv-bias", change={re.compile(", bias=False"): ""},
    breaks=("bias",),
)  # fmt: skip

mistake(
    BOTH, "value-bias", "The values have a bias",
    hint="Which of the four layers has a bias here?",
    change={re.compile("(self.W_value = .+), bias=False"): r"\1"},
    breaks=("bias",),
)  # fmt: skip

common_mistakes(BOTH, "no-super-init")

mistake(
    BOTH, "layers-turned-around", "The layers take d_out, and give what they should take",
    hint="In which order does nn.Linear want its two sizes?",
    change={re.compile(r"(\w+), d_out, bias"): r"d_out, \1, bias"},
)  # fmt: skip

mistake(
    BOTH, "heads-as-wide-as-all", "Every head is d_out wide",
    hint="With 12 features and 3 heads, how wide is each?",
    change={
        "nn.Linear(d_out, d_out)": "nn.Linear(d_out * num_heads, d_out)",
        re.compile("d_out, bias"): "d_out * num_heads, bias",
    },
)  # fmt: skip

common_mistakes(BOTH, "made-in-forward", "plain-tensors", "python-list")

mistake(
    BOTH, "shared-keys-and-values", "One layer makes both keys and values",
    hint="How many projections are there, and what is each for?",
    change={re.compile("self.W_value = .+"): "self.W_value = self.W_key"},
)  # fmt: skip

common_mistakes(BOTH, "float32-hard-coded", "float32-inside", "no-gradient", "weights-detached")

mistake(
    "CrossAttention", "context-detached", "No gradient reaches the context",
    hint="What should the encoder learn from?",
    change={QUERIES: f"context = context.detach()\n        {QUERIES}"},
    breaks=("gradients",),
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "keys-detached", "No gradient reaches the layer of the keys",
    hint="Which parameters have a .grad after backward?",
    change={
        "split_heads(self.W_key(x), self.num_heads)": (
            "split_heads(self.W_key(x), self.num_heads).detach()"
        ),
    },
    breaks=("gradients",),
)  # fmt: skip

mistake(
    BOTH, common="in-place-after-softmax",
    change={
        FROM_MASK_TO_SOFTMAX: (
            r"\g<0>\n        \1\n            attn_weights.masked_fill_(hidden, 0.0)"
        ),
    },
    breaks=("gradients",),
)  # fmt: skip

mistake(
    "CrossAttention", "x-changed-in-place", "The caller finds x changed",
    hint="What does the caller find in x after the call?",
    change={
        QUERIES: (
            "queries = split_heads(self.W_query(x.clone()), self.num_heads)\n"
            "        x.data.zero_()"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "x-changed-in-place", "The caller finds x changed",
    hint="What does the caller find in x after the call?",
    change={
        QUERIES: "queries = split_heads(self.W_query(x.clone()), self.num_heads)",
        "split_heads(self.W_value(x), self.num_heads)": (
            "split_heads(self.W_value(x), self.num_heads)\n"
            "        x.data.zero_()"
        ),
    },
    breaks=("unchanged", "gradients"),
)  # fmt: skip

mistake(
    "CrossAttention", "context-changed-in-place",
    "Hidden tokens of the context are zeroed for the caller too",
    hint="What does the caller find in the context after the call?",
    change={
        "split_heads(self.W_value(context), self.num_heads)": (
            "split_heads(self.W_value(context), self.num_heads)\n"
            "        if context_mask is not None:\n"
            "            context.data.masked_fill_(context_mask[..., None], 0.0)"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip

mistake(
    BOTH, "mask-changed-in-place", "The mask is turned around for the caller too",
    hint="What does the caller find in the mask after the call?",
    change={re.compile(r"hidden = (\w+)"): r"hidden = ~\1.logical_not_()"},
    breaks=("unchanged",),
)  # fmt: skip

mistake(
    BOTH, "naive-exponent", "Large scores overflow",
    hint="What is exp(100) in float32, and what is left if you subtract something first?",
    change={
        SOFTMAX: (
            "torch.exp(attn_scores)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
    breaks=("large",),
)  # fmt: skip

mistake(
    BOTH, "one-maximum-for-the-batch", "One maximum for all sentences: one can bury another",
    hint="Whose maximum do you subtract?",
    change={
        SOFTMAX: (
            "torch.exp(attn_scores - attn_scores.amax(dim=(0, 3), keepdim=True))\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
    breaks=("batch",),
)  # fmt: skip

mistake(
    BOTH, "one-maximum-for-the-heads", "One maximum for all heads: one can bury another",
    hint="Whose maximum do you subtract?",
    change={
        SOFTMAX: (
            "torch.exp(attn_scores - attn_scores.amax(dim=(1, 3), keepdim=True))\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
    breaks=("heads",),
)  # fmt: skip

mistake(
    BOTH, "epsilon-in-the-sum", "A number is added to the sum, and the weights no longer make one",
    hint="What do the weights of a row sum to at the end?",
    change={
        SOFTMAX: (
            "torch.exp(attn_scores - attn_scores.amax(dim=-1, keepdim=True))\n"
            "        attn_weights = attn_weights / (attn_weights.sum(dim=-1, keepdim=True) + 1e-2)"
        ),
    },
)  # fmt: skip

mistake(
    "CrossAttention", "axes-squeezed", common="squeezed",
    hint="Which shape comes out if there is only one query?",
)  # fmt: skip

mistake(
    "EncoderSelfAttention", "axes-squeezed", common="squeezed",
    hint="Which shape comes out if there is only one token?",
    breaks=("returns", "length"),
)  # fmt: skip

mistake(
    "CrossAttention", "context-remembered", "Keys and values of the first context are used for all",
    hint="What does the module keep from one call to the next?",
    change={
        "split_heads(self.W_key(context), self.num_heads)": (
            "split_heads(self.W_key(self.first), self.num_heads)"
        ),
        "split_heads(self.W_value(context), self.num_heads)": (
            "split_heads(self.W_value(self.first), self.num_heads)"
        ),
        QUERIES: (
            "if not hasattr(self, \"first\") or self.first.shape != context.shape:\n"
            "            self.first = context\n"
            f"        {QUERIES}"
        ),
    },
)  # fmt: skip

common_mistakes(BOTH, "weights-returned", "weights-returned-too", "nothing-returned")

mistake(
    "CrossAttention", common="calls-torch-attention",
    change={
        "attn_weights @ values": (
            "nn.functional.scaled_dot_product_attention(\n"
            "            queries, keys, values, attn_mask=None if context_mask is None else "
            "~hidden\n"
            "        )"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderSelfAttention", common="calls-torch-attention",
    change={
        "attn_weights @ values": (
            "nn.functional.scaled_dot_product_attention(\n"
            "            queries, keys, values, attn_mask=None if padding is None else ~hidden\n"
            "        )"
        ),
    },
)  # fmt: skip


@accepted("CrossAttention", "as-in-the-book", "view, transpose, a mask filled in place, view")
class CrossAsInTheBook(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        b, num_queries, _ = x.shape
        _, num_keys, _ = context.shape
        queries = self.W_query(x).view(b, num_queries, self.num_heads, self.head_dim)
        keys = self.W_key(context).view(b, num_keys, self.num_heads, self.head_dim)
        values = self.W_value(context).view(b, num_keys, self.num_heads, self.head_dim)
        keys, queries, values = (part.transpose(1, 2) for part in (keys, queries, values))
        attn_scores = queries @ keys.transpose(2, 3)
        if context_mask is not None:
            attn_scores.masked_fill_(context_mask.unsqueeze(1).unsqueeze(2), -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        context_vec = (attn_weights @ values).transpose(1, 2)
        context_vec = context_vec.contiguous().view(b, num_queries, self.d_out)
        return self.out_proj(context_vec)


@accepted(
    "CrossAttention", "as-in-diffusion",
    "Names and order of a painter of pictures, an additive mask, and einsum",
)  # fmt: skip
class CrossAsInDiffusion(nn.Module):
    def __init__(self, query_dim, context_dim, inner_dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (inner_dim // heads) ** -0.5
        self.to_q = nn.Linear(query_dim, inner_dim, bias=False)
        self.to_k = nn.Linear(context_dim, inner_dim, bias=False)
        self.to_v = nn.Linear(context_dim, inner_dim, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner_dim, inner_dim), nn.Dropout(0.0))

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        parts = self.to_q(x), self.to_k(context), self.to_v(context)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2).flatten(0, 1) for t in parts)
        sim = torch.einsum("bid,bjd->bij", q, k) * self.scale
        if mask is not None:
            hidden = mask.repeat_interleave(self.heads, dim=0)[:, None]
            sim = sim.masked_fill(hidden, -torch.finfo(sim.dtype).max)
        out = torch.einsum("bij,bjd->bid", sim.softmax(dim=-1), v)
        return self.to_out(out.unflatten(0, (-1, self.heads)).transpose(1, 2).flatten(2))


@accepted(
    "CrossAttention", "fused-keys-and-values",
    "One layer for keys and values, and arguments called x and y",
)  # fmt: skip
class FusedKeysAndValues(nn.Module):
    def __init__(self, d_x, d_y, d_out, num_heads):
        super().__init__()
        self.h = num_heads
        self.q_proj = nn.Linear(d_x, d_out, bias=False)
        self.kv_proj = nn.Linear(d_y, 2 * d_out, bias=False)
        self.o_proj = nn.Linear(d_out, d_out)

    def forward(self, x, y, y_mask=None):
        b, n, _ = x.shape
        q = self.q_proj(x).view(b, n, self.h, -1).transpose(1, 2)
        k, v = self.kv_proj(y).view(b, y.size(1), 2, self.h, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(k.size(-1))
        if y_mask is not None:
            bias = torch.zeros_like(scores).masked_fill(y_mask.view(b, 1, 1, -1), -math.inf)
            scores = scores + bias
        return self.o_proj((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, n, -1))


@accepted("CrossAttention", "values-first", "Values before keys in one fused layer")
class ValuesFirst(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_q = nn.Linear(d_query, d_out, bias=False)
        self.W_kv = nn.Linear(d_context, 2 * d_out, bias=False)
        self.W_o = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        values, keys = self.W_kv(context).chunk(2, dim=-1)
        parts = (self.W_q(x), keys, values)
        q, k, v = (part.unflatten(-1, (self.h, -1)).transpose(1, 2) for part in parts)
        mask = None if context_mask is None else context_mask[:, None, None]
        weights = softmax_skipping(q @ k.mT / k.shape[-1] ** 0.5, mask)
        return self.W_o((weights @ v).transpose(1, 2).flatten(2))


@accepted(
    "CrossAttention", "keys-and-values-in-turns",
    "One matrix for keys and values, head by head, and plain parameters",
)  # fmt: skip
class InTurns(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.Wq = nn.Parameter(torch.randn(d_query, d_out) * 0.1)
        self.Wkv = nn.Parameter(torch.randn(d_context, 2 * d_out) * 0.1)
        self.Wo = nn.Parameter(torch.randn(d_out, d_out) * 0.1)
        self.bo = nn.Parameter(torch.zeros(d_out))

    def forward(self, x, context, context_mask=None):
        queries = (x @ self.Wq).unflatten(-1, (self.num_heads, -1))
        keys, values = (context @ self.Wkv).unflatten(-1, (self.num_heads, 2, -1)).unbind(-2)
        scores = torch.einsum("bqhd,bkhd->bhqk", queries, keys) / keys.shape[-1] ** 0.5
        if context_mask is not None:
            scores = torch.where(context_mask[:, None, None], -1e9, scores)
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), values)
        return mixed.flatten(2) @ self.Wo + self.bo


@accepted(
    "CrossAttention", "matrices-and-einsum", "Matrices instead of nn.Linear, and einsum throughout",
)  # fmt: skip
class CrossByEinsum(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Parameter(torch.rand(d_query, d_out))
        self.W_key = nn.Parameter(torch.rand(d_context, d_out))
        self.W_value = nn.Parameter(torch.rand(d_context, d_out))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        def heads(weight):
            return weight.unflatten(1, (self.num_heads, -1))

        queries = torch.einsum("bqi,ihd->bhqd", x, heads(self.W_query))
        keys = torch.einsum("bki,ihd->bhkd", context, heads(self.W_key))
        values = torch.einsum("bki,ihd->bhkd", context, heads(self.W_value))
        scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) * keys.shape[-1] ** -0.5
        if context_mask is not None:
            scores = scores.masked_fill(context_mask[:, None, None, :], torch.finfo(x.dtype).min)
        return self.out_proj(torch.einsum("bhqk,bhkd->bqhd", scores.softmax(-1), values).flatten(2))


@accepted(
    "CrossAttention", "functional-linear", "Weights as nn.Linear lays them out, without nn.Linear",
)  # fmt: skip
class FunctionalCross(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_weight = nn.Parameter(torch.empty(d_out, d_query))
        self.k_weight = nn.Parameter(torch.empty(d_out, d_context))
        self.v_weight = nn.Parameter(torch.empty(d_out, d_context))
        for weight in self.parameters():
            nn.init.xavier_uniform_(weight)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        rows = []
        projected = (
            F.linear(x, self.q_weight), F.linear(context, self.k_weight),
            F.linear(context, self.v_weight),
        )  # fmt: skip
        for q, k, v in zip(*(part.chunk(self.num_heads, -1) for part in projected), strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
            if context_mask is not None:
                scores = scores.masked_fill(context_mask.unsqueeze(1), float("-inf"))
            rows.append(torch.bmm(scores.softmax(dim=2), v))
        return self.out_proj(torch.cat(rows, dim=2))


@accepted(
    "CrossAttention", "list-of-heads", "A list of narrow heads, each with its own mask and softmax",
)  # fmt: skip
class CrossOfHeads(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        width = d_out // num_heads
        self.heads = nn.ModuleList(
            nn.ModuleDict(
                {
                    "query": nn.Linear(d_query, width, bias=False),
                    "key": nn.Linear(d_context, width, bias=False),
                    "value": nn.Linear(d_context, width, bias=False),
                }
            )
            for _ in range(num_heads)
        )
        self.proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        mask = None if context_mask is None else context_mask[:, None, :]
        answers = []
        for head in self.heads:
            keys = head["key"](context)
            scores = head["query"](x) @ keys.mT / keys.shape[-1] ** 0.5
            answers.append(softmax_skipping(scores, mask) @ head["value"](context))
        return self.proj(torch.cat(answers, dim=-1))


@accepted(
    "CrossAttention", "names-that-say-nothing",
    "Layers whose names say nothing, made in another order",
)  # fmt: skip
class NamelessCross(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_context, d_out, bias=False)
        self.beta = nn.Linear(d_query, d_out, bias=False)
        self.gamma = nn.Linear(d_context, d_out, bias=False)

    def forward(self, a, b, c=None):
        projected = self.alpha(b), self.beta(a), self.gamma(b)
        cut = (y.unflatten(-1, (self.n, -1)).transpose(1, 2) for y in projected)
        messages, asking, asked = cut
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        if c is not None:
            scores = scores.masked_fill(c.reshape(len(c), 1, 1, -1), -torch.inf)
        return self.last((scores.softmax(-1) @ messages).transpose(1, 2).flatten(2))


@accepted("CrossAttention", "other-order", "Memory first, and other names for everything")
class MemoryFirst(nn.Module):
    def __init__(self, n_heads, d_out, d_kv, d_q):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_q, d_out, bias=False)
        self.key = nn.Linear(d_kv, d_out, bias=False)
        self.value = nn.Linear(d_kv, d_out, bias=False)
        self.output = nn.Linear(d_out, d_out)

    def forward(self, memory, x, memory_mask=None):
        parts = self.query(x), self.key(memory), self.value(memory)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).movedim(2, 1) for part in parts)
        scores = (q / k.shape[-1] ** 0.25) @ (k / k.shape[-1] ** 0.25).mT
        if memory_mask is not None:
            scores = scores - torch.where(memory_mask, torch.inf, 0.0).to(x.dtype)[:, None, None]
        return self.output((scores.softmax(-1) @ v).movedim(1, 2).flatten(2))


@accepted(
    "CrossAttention", "hidden-tokens-left-out", "Sentence by sentence, with hidden tokens left out",
)  # fmt: skip
class OneSentenceAtATime(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        answers = []
        for row in range(len(x)):
            seen = context[row]
            if context_mask is not None:
                seen = seen[~context_mask[row]]
            parts = self.W_query(x[row]), self.W_key(seen), self.W_value(seen)
            q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(0, 1) for part in parts)
            weights = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
            answers.append((weights @ v).transpose(0, 1).flatten(1))
        return self.out_proj(torch.stack(answers))


@accepted("EncoderSelfAttention", "as-in-the-book", "view, transpose, a mask filled in place, view")
class EncoderAsInTheBook(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, padding=None):
        b, num_tokens, _ = x.shape
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        if padding is not None:
            attn_scores.masked_fill_(padding.unsqueeze(1).unsqueeze(2), -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        context_vec = (attn_weights @ values).transpose(1, 2)
        context_vec = context_vec.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


@accepted(
    "EncoderSelfAttention", "crosses-with-itself",
    "The cross-attention of the last exercise, with x as its own context",
)  # fmt: skip
class CrossesWithItself(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.attention = CrossAttention(d_in, d_in, d_out, num_heads)  # noqa: F821 - defined there

    def forward(self, x, padding=None):
        return self.attention(x, x, padding)


@accepted(
    "EncoderSelfAttention", "fused",
    "One fused layer for queries, keys and values, and other names",
)  # fmt: skip
class FusedEncoder(nn.Module):
    def __init__(self, d_model, d_out, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.c_attn = nn.Linear(d_model, 3 * d_out, bias=False)
        self.c_proj = nn.Linear(d_out, d_out)

    def forward(self, x, key_padding_mask=None):
        B, T, _ = x.size()
        q, k, v = self.c_attn(x).chunk(3, dim=2)
        q = q.view(B, T, self.n_heads, -1).transpose(1, 2)
        k = k.view(B, T, self.n_heads, -1).transpose(1, 2)
        v = v.view(B, T, self.n_heads, -1).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if key_padding_mask is not None:
            att = att.masked_fill(key_padding_mask.view(B, 1, 1, T), float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, -1))


@accepted("EncoderSelfAttention", "fused-in-turns", "One matrix, head by head, and einsum")
class EncoderInTurns(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_qkv = nn.Parameter(torch.randn(d_in, 3 * d_out) * 0.1)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, padding=None):
        q, k, v = (x @ self.W_qkv).unflatten(-1, (self.num_heads, 3, -1)).unbind(-2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / k.shape[-1] ** 0.5
        if padding is not None:
            scores = torch.where(padding[:, None, None], torch.finfo(x.dtype).min, scores)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v).flatten(2))


@accepted(
    "EncoderSelfAttention", "matrices-and-loop",
    "Matrices instead of nn.Linear, and a loop over heads",
)  # fmt: skip
class EncoderByLoop(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.Wq = nn.Parameter(torch.randn(d_in, d_out))
        self.Wk = nn.Parameter(torch.randn(d_in, d_out))
        self.Wv = nn.Parameter(torch.randn(d_in, d_out))
        self.Wo = nn.Parameter(torch.randn(d_out, d_out))
        self.bo = nn.Parameter(torch.zeros(d_out))

    def forward(self, x, padding=None):
        mask = None if padding is None else padding[:, None, :]
        parts = ((x @ weight).chunk(self.num_heads, -1) for weight in (self.Wq, self.Wk, self.Wv))
        heads = [
            softmax_skipping(q @ k.mT / math.sqrt(q.shape[-1]), mask) @ v
            for q, k, v in zip(*parts, strict=True)
        ]
        return torch.cat(heads, dim=-1) @ self.Wo + self.bo


@accepted("EncoderSelfAttention", "list-of-heads", "A list of narrow heads, and an output layer")
class EncoderOfHeads(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        width = d_out // num_heads
        for role in ("query", "key", "value"):
            layers = [nn.Linear(d_in, width, bias=False) for _ in range(num_heads)]
            setattr(self, f"W_{role}", nn.ModuleList(layers))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, padding=None):
        answers = []
        layers = zip(self.W_query, self.W_key, self.W_value, strict=True)
        for W_query, W_key, W_value in layers:
            scores = W_query(x) @ W_key(x).mT / W_key.out_features**0.5
            if padding is not None:
                scores = scores.masked_fill(padding[:, None, :], -1e9)
            answers.append(scores.softmax(dim=-1) @ W_value(x))
        return self.out_proj(torch.cat(answers, dim=-1))


@accepted(
    "EncoderSelfAttention", "names-that-say-nothing",
    "Layers whose names say nothing, made in another order",
)  # fmt: skip
class NamelessEncoder(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_in, d_out, bias=False)
        self.beta = nn.Linear(d_in, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_out, bias=False)

    def forward(self, a, b=None):
        projected = self.alpha(a), self.beta(a), self.gamma(a)
        cut = (y.unflatten(-1, (self.n, -1)).transpose(1, 2) for y in projected)
        messages, asking, asked = cut
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        if b is not None:
            scores = scores.masked_fill(b[:, None, None], -torch.inf)
        return self.last((scores.softmax(-1) @ messages).transpose(1, 2).flatten(2))


@accepted("EncoderSelfAttention", "other-order", "The number of heads first, and other names")
class HeadsFirst(nn.Module):
    def __init__(self, n_heads, d_model, d_out):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_out, bias=False)
        self.key = nn.Linear(d_model, d_out, bias=False)
        self.value = nn.Linear(d_model, d_out, bias=False)
        self.output = nn.Linear(d_out, d_out)

    def forward(self, x, pad_mask=None):
        parts = self.query(x), self.key(x), self.value(x)
        q, k, v = (part.unflatten(-1, (self.n_heads, -1)).movedim(2, 1) for part in parts)
        scores = q @ k.mT / k.shape[-1] ** 0.5
        if pad_mask is not None:
            scores = scores - torch.where(pad_mask, torch.inf, 0.0).to(x.dtype)[:, None, None]
        return self.output((scores.softmax(-1) @ v).movedim(1, 2).flatten(2))


@accepted(
    "EncoderSelfAttention", "padding-left-out",
    "Sentence by sentence, with padding left out, and zeros in its place",
)  # fmt: skip
class RealTokensOnly(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, padding=None):
        answers = []
        for row, sentence in enumerate(x):
            real = torch.ones_like(sentence[:, 0], dtype=torch.bool)
            if padding is not None:
                real = ~padding[row]
            tokens = sentence[real]
            parts = self.W_query(tokens), self.W_key(tokens), self.W_value(tokens)
            q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(0, 1) for part in parts)
            weights = torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1)
            answer = self.out_proj((weights @ v).transpose(0, 1).flatten(1))
            full = answer.new_zeros(len(sentence), answer.shape[-1])
            answers.append(full.masked_scatter(real[:, None], answer))
        return torch.stack(answers)


accepted(
    BOTH, "queries-scaled-first", "The queries are scaled before they meet the keys",
    change={SCORES: "(queries * head_dim**-0.5) @ keys.transpose(-2, -1)"},
)  # fmt: skip

accepted(
    BOTH, "scaled-after-the-mask", "The scores are scaled after the mask",
    change={
        " / head_dim**0.5": "",
        SOFTMAX: "torch.softmax(attn_scores / head_dim**0.5, dim=-1)",
    },
)  # fmt: skip

accepted(
    BOTH, "infinity-added", "An additive mask of zeros and minus infinities",
    change={FILL: "attn_scores + torch.zeros_like(attn_scores).masked_fill(hidden, -torch.inf)"},
)  # fmt: skip

accepted(
    BOTH, "lowest-number-added", "An additive mask of zeros and the lowest number of the dtype",
    change={FILL: "attn_scores + hidden.to(x.dtype) * torch.finfo(x.dtype).min"},
)  # fmt: skip

accepted(
    BOTH, "minus-a-billion-added", "An additive mask of zeros and minus a billion",
    change={FILL: "attn_scores + hidden.to(x.dtype) * -1e9"},
)  # fmt: skip

accepted(
    BOTH, "logarithm-of-the-mask", "The logarithm of what is visible is added",
    change={FILL: "attn_scores + (~hidden).to(x.dtype).log()"},
)  # fmt: skip

accepted(
    BOTH, "lowest-number", "The lowest number of the dtype instead of infinity",
    change={FILL: "attn_scores.masked_fill(hidden, torch.finfo(x.dtype).min)"},
)  # fmt: skip

accepted(
    BOTH, "renormalized-afterwards", "Zeroed after the softmax, then renormalised",
    change={
        FILL: "attn_scores",
        FROM_MASK_TO_SOFTMAX: (
            r"\g<0>\n        \1\n            attn_weights = attn_weights * ~hidden\n"
            r"        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    BOTH, "softmax-by-hand", "A softmax by hand, with the maximum of each row",
    change={
        SOFTMAX: (
            "torch.exp(attn_scores - attn_scores.amax(dim=-1, keepdim=True))\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    BOTH, "mask-always-there", "Without a mask, one that hides nothing is made",
    change={
        IF_MASKED: (
            r"if \1 is None:\n"
            r"            \1 = keys.new_zeros(keys.shape[0], keys.shape[2], dtype=torch.bool)\n"
            r"        if True:"
        ),
    },
)  # fmt: skip

accepted(
    BOTH, "nan-to-num", "NaN is repaired after the softmax",
    change={SOFTMAX: f"{SOFTMAX}.nan_to_num(0.0)"},
)  # fmt: skip

accepted(
    BOTH, "float64-softmax", "The softmax runs in float64, and is cast back",
    change={SOFTMAX: "torch.softmax(attn_scores.double(), dim=-1).to(x.dtype)"},
)  # fmt: skip

accepted(
    BOTH, "mask-expanded", "The mask is expanded to the shape of the scores",
    change={FILL: "attn_scores.masked_fill(hidden.expand_as(attn_scores), -torch.inf)"},
)  # fmt: skip

accepted(
    BOTH, "dropout-of-zero", "A dropout layer that drops nothing",
    change={SOFTMAX: f"nn.Dropout(0.0)({SOFTMAX})"},
)  # fmt: skip

accepted(
    "CrossAttention", "mask-of-any-form", "The mask is turned into booleans, whatever it was",
    change={"context_mask[:, None, None, :]": "context_mask.to(torch.bool)[:, None, None, :]"},
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-queries-zeroed", "Padded queries see nothing, and get zeros",
    change={
        FILL: "attn_scores.masked_fill(hidden | padding[:, None, :, None], -torch.inf)",
        SOFTMAX: (
            f"{SOFTMAX}\n"
            "        if padding is not None:\n"
            "            attn_weights = attn_weights.masked_fill(hidden | padding[:, None, :, "
            "None], 0.0)"
        ),
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-queries-repaired",
    "Padded queries see nothing, and NaN is repaired after the softmax",
    change={
        FILL: "attn_scores.masked_fill(hidden | padding[:, None, :, None], -torch.inf)",
        SOFTMAX: f"{SOFTMAX}.nan_to_num(0.0)",
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-queries-uniform", "Padded queries see everything alike",
    change={FILL: "attn_scores.masked_fill(hidden | padding[:, None, :, None], -1e9)"},
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-pairs-added",
    "Both sides of the mask are added as the lowest numbers",
    change={
        FILL: (
            "(\n"
            "                attn_scores + (hidden | padding[:, None, :, None]).to(x.dtype) * "
            "torch.finfo(x.dtype).min\n"
            "            )"
        ),
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-outputs-zeroed", "Outputs at padded positions are zeroed",
    change={
        "return self.out_proj(context_vec)": (
            "out = self.out_proj(context_vec)\n"
            "        return out if padding is None else out.masked_fill(padding[..., None], 0.0)"
        ),
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-outputs-multiplied",
    "Outputs at padded positions are multiplied by zero",
    change={
        "return self.out_proj(context_vec)": (
            "out = self.out_proj(context_vec)\n"
            "        return out if padding is None else out * ~padding[..., None]"
        ),
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-outputs-nan",
    "Outputs at padded positions become NaN, after everything else",
    change={
        "return self.out_proj(context_vec)": (
            "out = self.out_proj(context_vec)\n"
            "        return out if padding is None else out.masked_fill(padding[..., None], "
            "torch.nan)"
        ),
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "padded-queries-see-themselves", "Padded queries see themselves only",
    change={
        FILL: (
            "attn_scores.masked_fill(\n"
            "                (hidden | padding[:, None, :, None]) & ~torch.eye(x.shape[1], "
            "device=x.device).bool(), -torch.inf\n"
            "            )"
        ),
    },
)  # fmt: skip

accepted(
    "EncoderSelfAttention", "keys-of-padding-never-made",
    "Padded tokens are zeroed before they are projected, and hidden as well",
    change={
        "queries = split_heads(": (
            "if padding is not None:\n"
            "            x = x.masked_fill(padding[..., None], 0.0)\n"
            "        queries = split_heads("
        ),
    },
)  # fmt: skip
