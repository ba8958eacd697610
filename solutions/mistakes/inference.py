"""Known answers of unit 9: mistakes, and right answers in other forms."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake


def future_of(x):
    tokens = x.shape[1]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)


# What three modules have; the answers that they share stand at the end.
SCORES = "queries @ keys.transpose(-2, -1) / head_dim**0.5"
MASKED = "masked_softmax(attn_scores, mask)"
MIX = "attn_weights @ values"


# --- repeat_kv ------------------------------------------------------------------------------------

mistake(
    "repeat_kv", "heads-tiled",
    "The heads come in turn, a, b, a, b, and copies are no neighbours",
    hint="Which head of keys do query heads 0 and 1 share?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat(1, groups, 1, 1)"},
)  # fmt: skip

mistake(
    "repeat_kv", "heads-concatenated",
    "All heads are put behind all heads, and copies are no neighbours",
    hint="Which head of keys do query heads 0 and 1 share?",
    change={"x.repeat_interleave(groups, dim=1)": "torch.cat([x] * groups, dim=1)"},
    same_as={"heads-tiled": "the heads end up in the same order"},
)  # fmt: skip

mistake(
    "repeat_kv", "groups-before-heads",
    "The new axis stands before the heads, and copies are no neighbours",
    hint=(
        "After the reshape, what comes right behind the first head: its copy, or the second "
        "head?"
    ),
    change={
        "x.repeat_interleave(groups, dim=1)": (
            "x.unsqueeze(1).expand(-1, groups, -1, -1, -1).flatten(1, 2)"
        ),
    },
    same_as={
        "heads-tiled": "the heads end up in the same order",
        "heads-concatenated": "the heads end up in the same order",
    },
)  # fmt: skip

mistake(
    "repeat_kv", "tokens-mixed",
    "Copies are made behind the tokens, and the reshape mixes tokens with heads",
    hint="Follow the second token of the first head: in which head does it stand afterwards?",
    change={
        "x.repeat_interleave(groups, dim=1)": (
            "x.unsqueeze(3).expand(-1, -1, -1, groups, -1).reshape(x.shape[0], -1, "
            "*x.shape[2:])"
        ),
    },
)  # fmt: skip

mistake(
    "repeat_kv", "features-mixed",
    "Copies are made behind the features, and the reshape mixes them with heads",
    hint="Follow the second feature of the first token: where does it stand afterwards?",
    change={
        "x.repeat_interleave(groups, dim=1)": (
            "x.unsqueeze(4).expand(-1, -1, -1, -1, groups).reshape(x.shape[0], -1, "
            "*x.shape[2:])"
        ),
    },
)  # fmt: skip

mistake(
    "repeat_kv", "tokens-repeated", "Tokens are repeated, and not heads",
    hint="On which axis do the heads stand?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups, dim=2)"},
)  # fmt: skip

mistake(
    "repeat_kv", "tokens-tiled", "The sentence is repeated as a whole, and not the heads",
    hint="On which axis do the heads stand?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat(1, 1, groups, 1)"},
    same_as={"tokens-repeated": "the shape is the same, and no number is looked at"},
)  # fmt: skip

mistake(
    "repeat_kv", "features-repeated", "Features are repeated, and not heads",
    hint="On which axis do the heads stand?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups, dim=-1)"},
)  # fmt: skip

mistake(
    "repeat_kv", "batch-repeated", "Sentences are repeated, and not heads",
    hint="On which axis do the heads stand?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups, dim=0)"},
)  # fmt: skip

mistake(
    "repeat_kv", "dimension-forgotten",
    "Without a dimension, all numbers are repeated in one long row",
    hint="What does repeat_interleave do when you name no dimension?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups)"},
)  # fmt: skip

mistake(
    "repeat_kv", "axis-left-over",
    "The copies have an axis of their own, which is never joined with the heads",
    hint="How many dimensions should the result have?",
    breaks=("returns",),
    change={
        "x.repeat_interleave(groups, dim=1)": "x.unsqueeze(2).expand(-1, -1, groups, -1, -1)",
    },
)  # fmt: skip

mistake(
    "repeat_kv", "not-repeated", "The heads come back as they were",
    hint="How many heads should there be?",
    change={"x.repeat_interleave(groups, dim=1)": "x"},
)  # fmt: skip

mistake(
    "repeat_kv", "one-copy-too-many", "Every head is written once more than asked",
    hint="With groups = 2, how often does head a stand there in all?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups + 1, dim=1)"},
)  # fmt: skip

mistake(
    "repeat_kv", "always-twice", "Every head is written twice, whatever groups says",
    hint="Where does groups come in?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(2, dim=1)"},
)  # fmt: skip

mistake(
    "repeat_kv", "groups-as-result",
    "groups is taken for the number of heads that should come out",
    hint="With two heads and groups = 6, how many heads should there be?",
    change={
        "x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups // x.shape[1], dim=1)",
    },
)  # fmt: skip

mistake(
    "repeat_kv", "first-head-only", "Only the first head is repeated",
    hint="Which head do the last query heads look at?",
    change={
        "x.repeat_interleave(groups, dim=1)": "x[:, :1].repeat(1, x.shape[1] * groups, 1, 1)",
    },
)  # fmt: skip

mistake(
    "repeat_kv", common="heads-reversed", hint="Which head should stand first?",
    change={"x.repeat_interleave(groups, dim=1)": "x.flip(1).repeat_interleave(groups, dim=1)"},
)  # fmt: skip

mistake(
    "repeat_kv", "zeros-between",
    "Only the first copy of each head holds numbers, and the others are zero",
    hint="What stands in the second copy of a head?",
    change={
        "x.repeat_interleave(groups, dim=1)": (
            "torch.stack([x, *[torch.zeros_like(x)] * (groups - 1)], dim=2).flatten(1, 2)"
        ),
    },
)  # fmt: skip

mistake(
    "repeat_kv", "shared-out", "The copies share the numbers of a head between them",
    hint="Is a copy the same as what it is a copy of?",
    change={"x.repeat_interleave(groups, dim=1)": "x.repeat_interleave(groups, dim=1) / groups"},
)  # fmt: skip

mistake(
    "repeat_kv", "kept-in-float32", "The copies are written into a tensor of float32",
    hint="Which dtype has a new tensor when you say nothing?",
    breaks=("dtype",),
    change={
        "return x.repeat_interleave": (
            "result = torch.zeros(x.shape[0], x.shape[1] * groups, *x.shape[2:])\n"
            "    for head in range(result.shape[1]):\n"
            "        result[:, head] = x[:, head // groups]\n"
            "    return result\n"
            "    return x.repeat_interleave"
        ),
    },
)  # fmt: skip

mistake("repeat_kv", "through-float32", common="float32-inside")
mistake("repeat_kv", "detached", common="no-gradient")

mistake(
    "repeat_kv", "no-result-for-one-copy", "When groups is 1, nothing is returned",
    hint="Which way does your function take when groups is 1?",
    breaks=("returns",),
    change={
        "return x.repeat_interleave": (
            "if groups > 1:\n"
            "        return x.repeat_interleave"
        ),
    },
)  # fmt: skip

mistake(
    "repeat_kv", "gradient-to-one-copy", "Only the first copy of a head passes a gradient on",
    hint="Which copies tell the head about their errors?",
    breaks=("gradients",),
    change={
        "x.repeat_interleave(groups, dim=1)": (
            "torch.stack([x, *[x.detach()] * (groups - 1)], dim=2).flatten(1, 2)"
        ),
    },
)  # fmt: skip

mistake(
    "repeat_kv", common="input-changed-in-place",
    change={
        "x.repeat_interleave(groups, dim=1)": (
            "x.unsqueeze_(2).expand(-1, -1, groups, -1, -1).flatten(1, 2)"
        ),
    },
)  # fmt: skip

common_mistakes("repeat_kv", "nothing-returned")


@accepted("repeat_kv", "expanded", "A new axis behind the heads, expanded and joined")
def expanded(hidden_states, n_rep):
    batch, heads, tokens, head_dim = hidden_states.shape
    if n_rep == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None].expand(batch, heads, n_rep, tokens, head_dim)
    return hidden_states.reshape(batch, heads * n_rep, tokens, head_dim)


@accepted("repeat_kv", "stacked", "Stacked behind the heads, and flattened")
def stacked(x, groups):
    return torch.stack([x] * groups, dim=2).flatten(1, 2)


@accepted("repeat_kv", "looked-up", "Heads looked up by number")
def looked_up(x, groups):
    return x[:, torch.arange(x.shape[1] * groups) // groups]


@accepted("repeat_kv", "selected", "index_select with every number repeated")
def selected(x, groups):
    numbers = torch.arange(x.size(1), device=x.device).repeat_interleave(groups)
    return torch.index_select(x, 1, numbers)


@accepted("repeat_kv", "loop", "A loop over the heads, and a list")
def in_a_loop(x, groups):
    copies = []
    for head in range(x.shape[1]):
        for _ in range(groups):
            copies.append(x[:, head])  # noqa: PERF401 - as people write it
    return torch.stack(copies, dim=1)


@accepted(
    "repeat_kv", "tokens-tiled-and-cut", "Sentences repeated in each head, and cut into heads"
)
def tiled_and_cut(x, groups):
    batch, heads, tokens, head_dim = x.shape
    return x.repeat(1, 1, groups, 1).view(batch, heads * groups, tokens, head_dim)


@accepted("repeat_kv", "einsum", "einsum with a row of ones")
def with_ones(x, groups):
    ones = torch.ones(groups, dtype=x.dtype, device=x.device)
    return torch.einsum("bhtd,g->bhgtd", x, ones).flatten(1, 2)


@accepted("repeat_kv", "filled", "A new tensor of the right dtype, filled copy by copy")
def filled(x, groups):
    result = x.new_empty(x.shape[0], x.shape[1] * groups, *x.shape[2:])
    for copy in range(groups):
        result[:, copy::groups] = x
    return result


# --- GroupedQueryAttention ------------------------------------------------------------------------

mistake(
    "GroupedQueryAttention", "heads-tiled",
    "The heads of keys and values come in turn, a, b, a, b",
    hint="Which head of keys do query heads 0 and 1 share?",
    change={
        "repeat_kv(keys, groups)": "keys.repeat(1, groups, 1, 1)",
        "repeat_kv(values, groups)": "values.repeat(1, groups, 1, 1)",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "queries-grouped-in-turn",
    "The query heads of a group are not neighbours: every so-many-th belongs to it",
    hint=(
        "With six query heads and three heads of keys, which query heads form the first group?"
    ),
    change={
        SCORES: (
            "queries.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2)\n"
            "        attn_scores = attn_scores @ keys.transpose(-2, -1) / head_dim**0.5"
        ),
        MIX: (
            f"{MIX}\n"
            "        context_vec = context_vec.unflatten(1, (-1, groups)).transpose(1, "
            "2).flatten(1, 2)"
        ),
    },
    same_as={"heads-tiled": "query heads and heads of keys meet in the same pairs"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "keys-tiled",
    "The keys come in turn, a, b, a, b, and the values do not",
    hint="Are keys and values of a token repeated alike?",
    change={"repeat_kv(keys, groups)": "keys.repeat(1, groups, 1, 1)"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "values-tiled",
    "The values come in turn, a, b, a, b, and the keys do not",
    hint="Are keys and values of a token repeated alike?",
    change={"repeat_kv(values, groups)": "values.repeat(1, groups, 1, 1)"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "nothing-repeated",
    "Where heads meet, there are fewer of keys or values than of queries",
    hint="How many heads of queries are there, and how many of keys, and of values?",
    change={
        "repeat_kv(keys, groups)": "keys",
        "repeat_kv(values, groups)": "values",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "keys-not-repeated", "The values are repeated, and the keys are not",
    hint="How many heads of queries are there, and how many of keys?",
    change={"repeat_kv(keys, groups)": "keys"},
    same_as={"nothing-repeated": "the scores fail first, for there are too few keys in both"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "values-not-repeated",
    "The keys are repeated, and the values are not",
    hint="How many heads of weights are there, and how many of values?",
    change={"repeat_kv(values, groups)": "values"},
    same_as={
        "nothing-repeated": "torch says the same of heads that do not fit, wherever they meet",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "tokens-repeated", "Tokens are repeated, and not heads",
    hint="On which axis do the heads stand?",
    change={
        "repeat_kv(keys, groups)": "keys.repeat_interleave(groups, dim=2)",
        "repeat_kv(values, groups)": "values.repeat_interleave(groups, dim=2)",
    },
    same_as={
        "nothing-repeated": "there are too few heads of keys in both",
        "keys-not-repeated": "there are too few heads of keys in both",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "features-repeated",
    "Single features are repeated, before they are cut into heads",
    hint="What is repeated: a feature, or all features of a head?",
    change={
        "split_heads(self.W_key(x), self.num_kv_heads)": (
            "split_heads(\n"
            "            self.W_key(x).repeat_interleave(self.num_heads // "
            "self.num_kv_heads, dim=-1),\n"
            "            self.num_heads,\n"
            "        )"
        ),
        "split_heads(self.W_value(x), self.num_kv_heads)": (
            "split_heads(\n"
            "            self.W_value(x).repeat_interleave(self.num_heads // "
            "self.num_kv_heads, dim=-1),\n"
            "            self.num_heads,\n"
            "        )"
        ),
        "repeat_kv(keys, groups)": "keys",
        "repeat_kv(values, groups)": "values",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "first-kv-head-for-all",
    "All query heads look at the first head of keys and values",
    hint="Which head of keys does the last query head look at?",
    change={
        "repeat_kv(keys, groups)": "keys[:, :1].expand_as(queries)",
        "repeat_kv(values, groups)": "values[:, :1].expand_as(queries)",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "kv-for-the-first-heads",
    "The first query heads get the keys and values, and the others zeros",
    hint="Which head of keys does the last query head look at?",
    change={
        "repeat_kv(keys, groups)": (
            "torch.cat([keys, torch.zeros_like(queries)[:, self.num_kv_heads :]], dim=1)"
        ),
        "repeat_kv(values, groups)": (
            "torch.cat([values, torch.zeros_like(queries)[:, self.num_kv_heads :]], dim=1)"
        ),
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "last-kv-head-for-the-rest",
    "The first query heads get a head of keys each, and all others the last one",
    hint="How many query heads share a head of keys?",
    change={
        "repeat_kv(keys, groups)": (
            "keys[:, torch.arange(self.num_heads).clamp(max=self.num_kv_heads - 1)]"
        ),
        "repeat_kv(values, groups)": (
            "values[:, torch.arange(self.num_heads).clamp(max=self.num_kv_heads - 1)]"
        ),
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "groups-are-kv-heads",
    "Each head of keys is repeated num_kv_heads times",
    hint="With six query heads and three heads of keys, how often is each written?",
    change={"groups = self.num_heads // self.num_kv_heads": "groups = self.num_kv_heads"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "groups-are-heads", "Each head of keys is repeated num_heads times",
    hint="With six query heads and three heads of keys, how often is each written?",
    change={"groups = self.num_heads // self.num_kv_heads": "groups = self.num_heads"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "kv-heads-as-group-size",
    "num_kv_heads is taken for the number of query heads that share",
    hint="With six query heads and num_kv_heads = 3, how many heads of keys are there?",
    change={
        "self.num_kv_heads = num_kv_heads": (
            "self.num_kv_heads = num_kv_heads = num_heads // num_kv_heads"
        ),
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "head-dim-from-kv-heads",
    "The width of a head is d_out over num_kv_heads",
    hint="Queries and keys meet in a dot product: how wide is a head of queries?",
    change={"head_dim = d_out // num_heads": "head_dim = d_out // num_kv_heads"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "kv-heads-ignored",
    "There are as many heads of keys and values as of queries, and num_kv_heads changes nothing",
    hint="How many keys does a token have to keep, and how many did it have before?",
    change={
        "self.W_key = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_key = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_value = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_value = nn.Linear(d_in, d_out, bias=False)"
        ),
        "split_heads(self.W_key(x), self.num_kv_heads)": (
            "split_heads(self.W_key(x), self.num_heads)"
        ),
        "split_heads(self.W_value(x), self.num_kv_heads)": (
            "split_heads(self.W_value(x), self.num_heads)"
        ),
        "repeat_kv(keys, groups)": "keys",
        "repeat_kv(values, groups)": "values",
    },
    same_as={"head-dim-from-kv-heads": "the layers have the same sizes, and none of them fits"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "averaged-in-groups",
    "Keys and values of all heads are computed, and averaged in groups",
    hint="How wide are the keys of a token together, before anything is split?",
    change={
        "self.W_key = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_key = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_value = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_value = nn.Linear(d_in, d_out, bias=False)"
        ),
        "split_heads(self.W_key(x), self.num_kv_heads)": (
            "split_heads(self.W_key(x), self.num_heads)"
        ),
        "split_heads(self.W_value(x), self.num_kv_heads)": (
            "split_heads(self.W_value(x), self.num_heads)"
        ),
        "repeat_kv(keys, groups)": (
            "repeat_kv(keys.unflatten(1, (-1, groups)).mean(dim=2), groups)"
        ),
        "repeat_kv(values, groups)": (
            "repeat_kv(values.unflatten(1, (-1, groups)).mean(dim=2), groups)"
        ),
    },
    same_as={
        "head-dim-from-kv-heads": "the layers have the same sizes, and none of them fits",
        "kv-heads-ignored": "the layers have the same sizes, and none of them fits",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "kv-of-one-head",
    "There is one head of keys and values, whatever num_kv_heads says",
    hint="Where does num_kv_heads come in?",
    change={
        "self.W_key = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_key = nn.Linear(d_in, head_dim, bias=False)"
        ),
        "self.W_value = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_value = nn.Linear(d_in, head_dim, bias=False)"
        ),
        "split_heads(self.W_key(x), self.num_kv_heads)": "split_heads(self.W_key(x), 1)",
        "split_heads(self.W_value(x), self.num_kv_heads)": "split_heads(self.W_value(x), 1)",
        "repeat_kv(keys, groups)": "repeat_kv(keys, self.num_heads)",
        "repeat_kv(values, groups)": "repeat_kv(values, self.num_heads)",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "values-in-all-heads",
    "Only the keys are shared, and every head has values of its own",
    hint="What do the query heads of a group share: keys, or keys and values?",
    change={
        "self.W_value = nn.Linear(d_in, num_kv_heads * head_dim, bias=False)": (
            "self.W_value = nn.Linear(d_in, d_out, bias=False)"
        ),
        "split_heads(self.W_value(x), self.num_kv_heads)": (
            "split_heads(self.W_value(x), self.num_heads)"
        ),
        "repeat_kv(values, groups)": "values",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "queries-averaged",
    "The queries of a group are averaged, and all of its heads find the same",
    hint="How many questions does a group of two query heads ask?",
    change={
        SCORES: (
            "repeat_kv(queries.unflatten(1, (-1, groups)).mean(dim=2), groups)\n"
            "        attn_scores = attn_scores @ keys.transpose(-2, -1) / head_dim**0.5"
        ),
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "context-summed-in-groups",
    "What the heads of a group found is added up",
    hint="What do the heads of a group share, and what does each keep for itself?",
    change={
        MIX: (
            f"{MIX}\n"
            "        context_vec = repeat_kv(context_vec.unflatten(1, (-1, "
            "groups)).sum(dim=2), groups)"
        ),
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "scale-kv-width",
    "The scores are divided by the root of the width of all keys together",
    hint="Over how many features does each dot product run?",
    change={"head_dim**0.5": "(head_dim * self.num_kv_heads) ** 0.5"},
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "scale-group-width",
    "The scores are divided by the root of the width of a group",
    hint="Over how many features does each dot product run?",
    change={"head_dim**0.5": "(head_dim * groups) ** 0.5"},
)  # fmt: skip


@accepted(
    "GroupedQueryAttention", "group-axis", "einsum over an axis of groups, without any copies"
)
class GroupAxis(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.kv, self.width = num_kv_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, self.kv * self.width, bias=False)
        self.W_value = nn.Linear(d_in, self.kv * self.width, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries = self.W_query(x).unflatten(-1, (self.kv, -1, self.width))
        keys = self.W_key(x).unflatten(-1, (self.kv, self.width))
        values = self.W_value(x).unflatten(-1, (self.kv, self.width))
        scores = torch.einsum("bqkgd,bskd->bkgqs", queries, keys) / math.sqrt(self.width)
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
        return self.out_proj(torch.einsum("bkgqs,bskd->bqkgd", weights, values).flatten(2))


@accepted("GroupedQueryAttention", "as-in-llama", "Llama's names, and keys that are expanded")
class AsInLlama(nn.Module):
    def __init__(self, hidden_size, d_out, n_heads, n_kv_heads):
        super().__init__()
        assert n_heads % n_kv_heads == 0
        self.head_dim, self.n_rep = d_out // n_heads, n_heads // n_kv_heads
        self.q_proj = nn.Linear(hidden_size, n_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, n_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, n_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(n_heads * self.head_dim, d_out)

    def expand(self, x):
        batch, heads, tokens, width = x.shape
        x = x[:, :, None].expand(batch, heads, self.n_rep, tokens, width)
        return x.reshape(batch, heads * self.n_rep, tokens, width)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q = self.q_proj(x).view(batch, tokens, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(batch, tokens, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(batch, tokens, -1, self.head_dim).transpose(1, 2)
        k, v = self.expand(k), self.expand(v)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5
        if tokens > 1:
            lowest = torch.finfo(x.dtype).min
            mask = torch.full((tokens, tokens), lowest, dtype=x.dtype, device=x.device)
            scores = scores + mask.triu(1)
        weights = F.softmax(scores, dim=-1, dtype=torch.float64).to(q.dtype)
        return self.o_proj((weights @ v).transpose(1, 2).contiguous().view(batch, tokens, -1))


@accepted("GroupedQueryAttention", "head-by-head", "A loop over the query heads, and slices")
class HeadByHead(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_groups):
        super().__init__()
        self.num_heads, self.num_kv_groups = num_heads, num_kv_groups
        self.head_dim = d_out // num_heads
        self.W_q = nn.Linear(d_in, d_out, bias=False)
        self.W_k = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.W_v = nn.Linear(d_in, num_kv_groups * self.head_dim, bias=False)
        self.W_o = nn.Linear(d_out, d_out)

    def cut(self, x, number):
        return x[..., number * self.head_dim : (number + 1) * self.head_dim]

    def forward(self, x):
        queries, keys, values = self.W_q(x), self.W_k(x), self.W_v(x)
        found = []
        for head in range(self.num_heads):
            group = head * self.num_kv_groups // self.num_heads
            scores = self.cut(queries, head) @ self.cut(keys, group).transpose(1, 2)
            scores = scores.masked_fill(future_of(x), -torch.inf) / self.head_dim**0.5
            found.append(scores.softmax(-1) @ self.cut(values, group))
        return self.W_o(torch.cat(found, dim=-1))


@accepted(
    "GroupedQueryAttention",
    "fused-unequal-parts",
    "One layer for all three, cut into unequal parts",
)
class FusedUnequalParts(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        kv_width = d_out // num_heads * num_kv_heads
        self.sizes = [d_out, kv_width, kv_width]
        self.qkv = nn.Linear(d_in, sum(self.sizes), bias=False)
        self.proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q, k, v = self.qkv(x).split(self.sizes, dim=-1)
        q = q.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        k = k.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        v = v.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        k = k.repeat_interleave(self.num_heads // self.num_kv_heads, 1)
        v = v.repeat_interleave(self.num_heads // self.num_kv_heads, 1)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future_of(x), -torch.inf)
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


@accepted(
    "GroupedQueryAttention", "fused-in-turns", "One layer: queries, keys and values group by group"
)
class FusedInTurns(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.kv, self.width = num_kv_heads, d_out // num_heads
        self.group = num_heads // num_kv_heads
        self.c_attn = nn.Linear(d_in, (num_heads + 2 * num_kv_heads) * self.width, bias=False)
        self.c_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        y = self.c_attn(x).unflatten(-1, (self.kv, self.group + 2, self.width))
        queries, keys, values = y.split([self.group, 1, 1], dim=3)
        scores = torch.einsum("btkgd,bskhd->bkgts", queries, keys) / self.width**0.5
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(-1)
        return self.c_proj(torch.einsum("bkgts,bskhd->btkgd", weights, values).flatten(2))


@accepted("GroupedQueryAttention", "keys-and-values-fused", "One layer for keys and values")
class KeysAndValuesFused(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.to_q = nn.Linear(d_in, d_out, bias=False)
        self.to_kv = nn.Linear(d_in, 2 * num_kv_heads * (d_out // num_heads), bias=False)
        self.to_out = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries = self.to_q(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        keys, values = (
            part.unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
            for part in self.to_kv(x).chunk(2, dim=-1)
        )
        group = torch.arange(self.num_heads, device=x.device) * self.num_kv_heads // self.num_heads
        scores = queries @ keys[:, group].mT * keys.shape[-1] ** -0.5
        weights = scores.masked_fill(future_of(x), -1e9).softmax(-1)
        return self.to_out((weights @ values[:, group]).transpose(1, 2).flatten(2))


@accepted("GroupedQueryAttention", "matrices", "Matrices instead of nn.Linear, a bias of its own")
class GroupedMatrices(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = (
            num_heads,
            num_kv_heads,
            d_out // num_heads,
        )
        self.Wq = nn.Parameter(torch.randn(d_in, d_out))
        self.Wk = nn.Parameter(torch.randn(d_in, num_kv_heads * self.head_dim))
        self.Wv = nn.Parameter(torch.randn(d_in, num_kv_heads * self.head_dim))
        self.Wo = nn.Parameter(torch.randn(d_out, d_out))
        self.bo = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        b, t, _ = x.shape
        groups = self.num_heads // self.num_kv_heads
        q = (
            (x @ self.Wq)
            .view(b, t, self.num_kv_heads, groups, self.head_dim)
            .permute(0, 2, 3, 1, 4)
        )
        k = (x @ self.Wk).view(b, t, self.num_kv_heads, 1, self.head_dim).permute(0, 2, 3, 1, 4)
        v = (x @ self.Wv).view(b, t, self.num_kv_heads, 1, self.head_dim).permute(0, 2, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1) / self.head_dim**0.5).masked_fill(
            future_of(x), -torch.inf
        )
        context = scores.softmax(dim=-1) @ v
        return context.permute(0, 3, 1, 2, 4).reshape(b, t, -1) @ self.Wo + self.bo


@accepted(
    "GroupedQueryAttention", "a-matrix-per-head", "Three-dimensional parameters, a matrix per head"
)
class MatrixPerHead(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        width = d_out // num_heads
        self.query = nn.Parameter(torch.randn(num_heads, d_in, width))
        self.key = nn.Parameter(torch.randn(num_kv_heads, d_in, width))
        self.value = nn.Parameter(torch.randn(num_kv_heads, d_in, width))
        self.out = nn.Linear(d_out, d_out)

    def forward(self, x):
        groups = len(self.query) // len(self.key)
        queries = x[:, None] @ self.query
        keys = x[:, None] @ self.key.repeat_interleave(groups, dim=0)
        values = x[:, None] @ self.value.repeat_interleave(groups, dim=0)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
        return self.out((weights @ values).transpose(1, 2).flatten(2))


class OneGroup(nn.Module):
    def __init__(self, d_in, width, heads):
        super().__init__()
        self.heads, self.width = heads, width
        self.W_query = nn.Linear(d_in, heads * width, bias=False)
        self.W_key = nn.Linear(d_in, width, bias=False)
        self.W_value = nn.Linear(d_in, width, bias=False)

    def forward(self, x):
        queries = self.W_query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        scores = queries @ self.W_key(x)[:, None].mT / self.width**0.5
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
        return (weights @ self.W_value(x)[:, None]).transpose(1, 2).flatten(2)


@accepted("GroupedQueryAttention", "list-of-groups", "A list of groups, each with one head of keys")
class ListOfGroups(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        width, heads = d_out // num_heads, num_heads // num_kv_heads
        self.groups = nn.ModuleList(OneGroup(d_in, width, heads) for _ in range(num_kv_heads))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([group(x) for group in self.groups], dim=-1))


@accepted(
    "GroupedQueryAttention",
    "names-that-say-nothing",
    "Layers whose names say nothing, in another order",
)
class GroupedNamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, num_heads, num_kv_heads):
        super().__init__()
        self.n, self.m = num_heads, num_kv_heads
        narrow = d_out // num_heads * num_kv_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_in, narrow, bias=False)
        self.beta = nn.Linear(d_in, d_out, bias=False)
        self.gamma = nn.Linear(d_in, narrow, bias=False)

    def forward(self, x):
        messages = self.alpha(x).unflatten(-1, (self.m, 1, -1)).movedim(1, 3)
        asking = self.beta(x).unflatten(-1, (self.m, self.n // self.m, -1)).movedim(1, 3)
        asked = self.gamma(x).unflatten(-1, (self.m, 1, -1)).movedim(1, 3)
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -torch.inf)
        return self.last((scores.softmax(-1) @ messages).movedim(3, 1).flatten(2))


# --- causal_mask_after ----------------------------------------------------------------------------

mistake(
    "causal_mask_after", "mask-top-left",
    "The triangle of the mask starts in the top left corner, and hides the past",
    hint="Three tokens came before: at which position of the text is the first new one?",
    change={"diagonal=seen + 1": "diagonal=1"},
)  # fmt: skip

mistake(
    "causal_mask_after", common="hides-itself",
    hint="May a new token look at its own key?",
    change={"diagonal=seen + 1": "diagonal=seen"},
)  # fmt: skip

mistake(
    "causal_mask_after", common="sees-one-ahead",
    hint="What may the first new token know about the second?",
    change={"diagonal=seen + 1": "diagonal=seen + 2"},
)  # fmt: skip

mistake(
    "causal_mask_after", "hides-its-neighbour",
    "A token can see neither itself nor the one before it",
    hint="Which keys may the first new token look at?",
    change={"diagonal=seen + 1": "diagonal=seen - 1"},
)  # fmt: skip

mistake(
    "causal_mask_after", "diagonal-by-tokens",
    "The triangle is moved by the number of new tokens, not of those before them",
    hint="At which position of the text is the first new token?",
    change={"diagonal=seen + 1": "diagonal=tokens + 1"},
)  # fmt: skip

mistake(
    "causal_mask_after", "first-rows-of-the-large-mask",
    "The mask of the whole text is cut to its first rows, and hides the past",
    hint="Which rows of the large mask belong to the tokens that come last?",
    change={
        "return torch.triu(everything, diagonal=seen + 1)": (
            "return causal_mask(seen + tokens)[:tokens]"
        ),
    },
    same_as={"mask-top-left": "the first rows of the large triangle are that triangle"},
)  # fmt: skip

mistake(
    "causal_mask_after", "last-rows-off-by-one",
    "The rows that are cut out of the large mask start one too early",
    hint="Which row of the large mask belongs to position `seen`?",
    change={
        "return torch.triu(everything, diagonal=seen + 1)": (
            "start = max(seen - 1, 0)\n"
            "    return causal_mask(seen + tokens)[start : start + tokens]"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", common="mask-opposite",
    change={
        "torch.triu(everything, diagonal=seen + 1)": "torch.tril(everything, diagonal=seen)",
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "past-hidden", "The past is hidden, and new tokens see only one another",
    hint="May a new token look at what was there before?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1).index_fill(1, torch.arange(seen), True)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "only-the-past-hidden",
    "The past is hidden, and new tokens see one another's future",
    hint="May a new token look at what was there before? And at what comes after it?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.tril(everything, diagonal=seen - 1) & (torch.arange(seen + tokens) < seen)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "own-past-hidden", "The past is hidden and the future is open",
    hint="On which side of its own column does the future of a token lie?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": "torch.tril(everything, diagonal=seen - 1)",
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "past-comes-last", "The columns of the past come after those of the new",
    hint="Which keys stand first: those of the cache, or the new ones?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1).roll(tokens, dims=1)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "no-mask-in-a-chunk", "Nothing is hidden, from anyone",
    hint="Two tokens come in after three: may the first of them see the second?",
    change={"torch.ones": "torch.zeros"},
)  # fmt: skip

mistake(
    "causal_mask_after", "no-mask-after-a-past", "After a past, nothing is hidden",
    hint="Two tokens come in after three: may the first of them see the second?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1) & (seen == 0)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "hides-everything", "Everything is hidden, from everyone",
    hint="Do you use what the function returns?",
    change={
        "return torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1)\n"
            "    return everything"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "hides-only-the-next",
    "Only the very next token is hidden, and all that follow it are not",
    hint="How many tokens lie in the future of the first of five new ones?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "everything.triu(seen + 1).tril(seen + 1)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "rows-upside-down", "The rows come in the opposite order",
    hint="Which of the new tokens may look at all keys: the first or the last?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1).flip(0)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "same-row-for-all", "All new tokens get the row of the first one",
    hint="May the last new token look at all keys?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1)[:1].repeat(tokens, 1)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "needs-a-past", "Without a past, all keys are hidden",
    hint="What does a slice like [:-seen] leave over when seen is 0?",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "torch.triu(everything, diagonal=seen + 1) | (seen == 0)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "past-of-one-at-least", "Without a past, it counts one token as seen",
    hint="What do `or` and `max` make of a past of 0?",
    change={"diagonal=seen + 1": "diagonal=max(seen, 1) + 1"},
)  # fmt: skip

mistake(
    "causal_mask_after", "numbers-for-booleans", "The mask holds numbers, not booleans",
    hint="What is the dtype of your mask, and what would masked_fill say to it?",
    breaks=("returns",),
    change={", dtype=torch.bool": ""},
)  # fmt: skip

mistake(
    "causal_mask_after", "minus-infinities",
    "This mask is made to be added to scores, not to say what is hidden",
    hint="Is an entry of your mask a yes or a no?",
    breaks=("returns",),
    change={
        "torch.ones(tokens, seen + tokens, dtype=torch.bool)": (
            "torch.full((tokens, seen + tokens), -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "mask-square",
    "The mask has a column for every new token, and none for the old ones",
    hint="How many keys are there, old ones and new ones?",
    breaks=("returns",),
    change={
        "return torch.triu(everything, diagonal=seen + 1)": "return causal_mask(tokens)",
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "mask-not-cut",
    "The mask has a row for every token so far, and there are fewer queries",
    hint="How many queries are there: as many as keys, or only those of the new tokens?",
    breaks=("returns",),
    change={
        "return torch.triu(everything, diagonal=seen + 1)": "return causal_mask(seen + tokens)",
    },
)  # fmt: skip

mistake(
    "causal_mask_after", "rows-are-keys", "Rows and columns have changed places",
    hint="Are the rows queries or keys?",
    breaks=("returns",),
    change={"diagonal=seen + 1)": "diagonal=seen + 1).T"},
)  # fmt: skip

mistake(
    "causal_mask_after", "old-and-new-swapped", "Old and new tokens have changed places",
    hint="Which of the two numbers comes first in the call?",
    breaks=("returns",),
    change={"everything =": "seen, tokens = tokens, seen\n    everything ="},
)  # fmt: skip

mistake(
    "causal_mask_after", "too-many-axes", "The mask has an axis too many",
    hint="How many dimensions does the statement give it, and how many does yours have?",
    breaks=("returns",),
    change={"diagonal=seen + 1)": "diagonal=seen + 1)[None]"},
)  # fmt: skip

mistake(
    "causal_mask_after", "single-token-squeezed", "The mask of a single token loses its axes",
    hint="Which shape comes out when only one token is new?",
    breaks=("returns",),
    change={"diagonal=seen + 1)": "diagonal=seen + 1).squeeze()"},
)  # fmt: skip

common_mistakes("causal_mask_after", "nothing-returned")


@accepted("causal_mask_after", "comparing-positions", "Positions are counted and compared")
def mask_by_comparing_positions(seen, tokens):
    queries = torch.arange(seen, seen + tokens)
    keys = torch.arange(seen + tokens)
    return keys > queries[:, None]


accepted(
    "causal_mask_after", "last-rows", "The last rows of the large mask",
    change={
        "torch.triu(everything, diagonal=seen + 1)": "causal_mask(seen + tokens)[seen:]",
    },
)  # fmt: skip


@accepted("causal_mask_after", "from-the-end", "The last rows, counted from the end")
def mask_cut_from_the_end(seen, tokens):
    total = seen + tokens
    return torch.ones(total, total).triu(1).bool()[-tokens:, :]


@accepted("causal_mask_after", "two-parts", "An open part for the past, beside a causal mask")
def mask_in_two_parts(seen, tokens):
    past = torch.zeros(tokens, seen, dtype=torch.bool)
    new = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), diagonal=1)
    return torch.cat([past, new], dim=1)


accepted(
    "causal_mask_after", "padded", "A causal mask, padded on the left",
    change={
        "torch.triu(everything, diagonal=seen + 1)": (
            "nn.functional.pad(causal_mask(tokens), (seen, 0))"
        ),
    },
)  # fmt: skip


@accepted("causal_mask_after", "not-the-lower-triangle", "What is not in the lower triangle")
def mask_by_negation(seen, tokens):
    return ~torch.ones(tokens, seen + tokens).tril(seen).bool()


@accepted("causal_mask_after", "row-by-row", "A loop fills row after row")
def mask_row_by_row(seen, tokens):
    mask = torch.zeros(tokens, seen + tokens, dtype=torch.bool)
    for i in range(tokens):
        mask[i, seen + i + 1 :] = True
    print(mask)
    return mask


@accepted("causal_mask_after", "lists", "Lists of Python booleans")
def mask_from_lists(seen, tokens):
    return torch.tensor([[j > seen + i for j in range(seen + tokens)] for i in range(tokens)])


@accepted(
    "causal_mask_after", "infinities-compared", "The additive mask, asked where it is infinite"
)
def mask_by_infinities(seen, tokens):
    return torch.full((tokens, seen + tokens), float("-inf")).triu(seen + 1).isinf()


@accepted("causal_mask_after", "other-order", "The arguments in another order, by their names")
def mask_with_new_tokens_first(tokens, seen):
    return torch.ones(tokens, tokens + seen, dtype=torch.bool).triu(1 + seen)


# --- CachedAttention ------------------------------------------------------------------------------

MASK = "mask = causal_mask_after(seen, tokens).to(x.device)"
UNPACK = "past_keys, past_values = cache"
JOIN_KEYS = "torch.cat([past_keys, keys], dim=-2)"
JOIN_VALUES = "torch.cat([past_values, values], dim=-2)"
RESULT = "return self.out_proj(context_vec), (keys, values)"

mistake(
    "CachedAttention", "mask-top-left",
    "The triangle of the mask starts in the top left corner, and hides the cache",
    hint="Five tokens are in the cache and one comes in: which position is it at?",
    change={"causal_mask_after(seen, tokens)": "torch.ones(tokens, total).triu(1).bool()"},
)  # fmt: skip

mistake(
    "CachedAttention", "no-mask-in-a-chunk",
    "After a cache, the tokens of a chunk see one another's future",
    hint="Two tokens come in after five: may the first of them see the second?",
    change={MASK: f"{MASK} & (cache is None)"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-hidden", "No new token looks at the cache, which only grows",
    hint="May a new token look at what was there before?",
    change={MASK: f"{MASK}\n        mask[:, :seen] = True"},
)  # fmt: skip

mistake(
    "CachedAttention", common="sees-one-ahead",
    hint="What may the first new token know about the second?",
    change={"causal_mask_after(seen, tokens)": "torch.ones(tokens, total).triu(seen + 2).bool()"},
)  # fmt: skip

mistake(
    "CachedAttention", common="hides-itself", hint="Which keys may the very first token look at?",
    change={
        "causal_mask_after(seen, tokens)": "torch.ones(tokens, total).triu(seen).bool()",
        MASKED: "torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=-1)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "hides-itself-and-fills-zeros",
    "A token cannot see itself, and the very first one gets nothing but zeros",
    hint="Which keys may the very first token look at?",
    change={"causal_mask_after(seen, tokens)": "torch.ones(tokens, total).triu(seen).bool()"},
)  # fmt: skip

mistake(
    "CachedAttention", "diagonal-by-tokens",
    "The mask starts behind as many keys as there are new tokens, and not as there are old ones",
    hint="Where in (tokens, total) does the first new token find itself?",
    change={"causal_mask_after(seen, tokens)": "torch.ones(tokens, total).triu(tokens).bool()"},
)  # fmt: skip

mistake(
    "CachedAttention", common="no-mask",
    hint="Which keys may the first of two new tokens not look at?",
)  # fmt: skip

common_mistakes("CachedAttention", "mask-thrown-away")

mistake(
    "CachedAttention", "mask-square",
    "The mask has a column for every new token, and none for the old ones",
    hint="The scores are (tokens, seen + tokens): what is the shape of your mask?",
    change={"causal_mask_after(seen, tokens)": "causal_mask(tokens)"},
)  # fmt: skip

mistake(
    "CachedAttention", "mask-not-cut",
    "The mask has a row for every token so far, and there are fewer queries",
    hint="The scores are (tokens, seen + tokens): what is the shape of your mask?",
    change={"causal_mask_after(seen, tokens)": "causal_mask(total)"},
)  # fmt: skip

mistake(
    "CachedAttention", "mask-of-first-rows",
    "The mask of the whole text is cut to its first rows, and hides the cache",
    hint="Which rows of the large mask belong to the tokens that come last?",
    change={MASK: "mask = causal_mask(total).to(x.device)[:tokens]"},
    same_as={"mask-top-left": "the first rows of the large triangle are that triangle"},
)  # fmt: skip

mistake(
    "CachedAttention", "mask-of-one-length", "There is room for 128 tokens, and longer texts fail",
    hint="How long may a text be?",
    breaks=("length",),
    change={MASK: "mask = causal_mask(128).to(x.device)[seen:total, :total]"},
)  # fmt: skip

common_mistakes("CachedAttention", "mask-on-the-cpu")

mistake(
    "CachedAttention", "new-before-old", "New keys and values are put before the old ones",
    hint="Your mask counts on an order: which keys does it take for the last ones?",
    change={
        JOIN_KEYS: "torch.cat([keys, past_keys], dim=-2)",
        JOIN_VALUES: "torch.cat([values, past_values], dim=-2)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "new-keys-before-old",
    "New keys are put before the old ones, and new values behind them",
    hint="Do a key and its value stand in the same place?",
    change={JOIN_KEYS: "torch.cat([keys, past_keys], dim=-2)"},
)  # fmt: skip

mistake(
    "CachedAttention", "new-values-before-old",
    "New values are put before the old ones, and new keys behind them",
    hint="Do a key and its value stand in the same place?",
    change={JOIN_VALUES: "torch.cat([values, past_values], dim=-2)"},
)  # fmt: skip

mistake(
    "CachedAttention", "keys-and-values-swapped",
    "The cache comes out as (values, keys), and goes in as (keys, values)",
    hint="In which order do you pack the cache, and in which order do you unpack it?",
    change={RESULT: "return self.out_proj(context_vec), (values, keys)"},
)  # fmt: skip

mistake(
    "CachedAttention", "unpacked-the-wrong-way-round",
    "The cache goes in as (values, keys), and comes out as (keys, values)",
    hint="In which order do you pack the cache, and in which order do you unpack it?",
    change={UNPACK: "past_values, past_keys = cache"},
    same_as={"keys-and-values-swapped": "what is swapped once is swapped, on the way in or out"},
)  # fmt: skip

mistake(
    "CachedAttention", "keys-returned-twice", "The cache comes out with the keys in both places",
    hint="What are the two parts of the cache?",
    change={RESULT: "return self.out_proj(context_vec), (keys, keys)"},
)  # fmt: skip

mistake(
    "CachedAttention", "only-the-new-part-returned",
    "The cache that comes out holds the new tokens only",
    hint="Three steps later: where are the keys of the first token?",
    change={
        RESULT: "return self.out_proj(context_vec), (keys[:, :, -tokens:], values[:, :, -tokens:])",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "old-cache-returned",
    "The cache that came in is returned as it was, without the new tokens",
    hint="How many tokens does the cache hold after this step?",
    change={RESULT: "return self.out_proj(context_vec), cache or (keys, values)"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-not-returned", "The cache is not returned",
    hint="Where does the next step get the keys of this one?",
    breaks=("returns",),
    change={RESULT: "return self.out_proj(context_vec)"},
)  # fmt: skip

mistake(
    "CachedAttention", "three-results",
    "Keys and values are returned beside the output, and not as a pair",
    hint="How many things does the caller unpack?",
    breaks=("returns",),
    change={RESULT: "return self.out_proj(context_vec), keys, values"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-comes-first", "The cache is returned first, and then the output",
    hint="In which order does the caller unpack the two?",
    breaks=("returns",),
    change={RESULT: "return (keys, values), self.out_proj(context_vec)"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-ignored",
    "The cache that comes in is never used, and what comes out holds the new tokens only",
    hint="What happens to the argument called cache?",
    change={"if cache is not None:": "if False:"},
    same_as={"only-the-new-part-returned": "the new cache is too short either way"},
)  # fmt: skip

mistake(
    "CachedAttention", "past-not-looked-at", "The cache grows, and no query looks at it",
    hint="Which keys do the new queries meet?",
    change={
        SCORES: "queries @ keys[:, :, -tokens:].transpose(-2, -1) / head_dim**0.5",
        MASK: f"{MASK}[:, seen:]",
        MIX: f"{MIX}[:, :, -tokens:]",
    },
    same_as={"cache-hidden": "what is hidden and what is not there count the same"},
)  # fmt: skip

mistake(
    "CachedAttention", "past-forgotten-in-chunks",
    "When several tokens come in at once, they do not look at the cache",
    hint="May a chunk of three tokens look at what was there before?",
    change={MASK: f"{MASK}\n        if tokens > 1:\n            mask[:, :seen] = True"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-only-for-one-token",
    "When several tokens come in at once, the cache is dropped",
    hint="Does your code take a chunk of three tokens after a cache?",
    change={"if cache is not None:": "if cache is not None and tokens == 1:"},
)  # fmt: skip

mistake(
    "CachedAttention", "window-of-eight", "Only the last eight tokens are looked at",
    hint="How far back may a token look?",
    change={
        MASK: f"{MASK}\n        mask = mask | torch.tril(torch.ones_like(mask), diagonal=seen - 8)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "joined-along-heads", "Old and new keys are joined along the heads",
    hint="On which axis do the tokens stand?",
    change={
        JOIN_KEYS: "torch.cat([past_keys, keys], dim=1)",
        JOIN_VALUES: "torch.cat([past_values, values], dim=1)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "joined-along-features", "Old and new keys are joined along the features",
    hint="On which axis do the tokens stand?",
    change={
        JOIN_KEYS: "torch.cat([past_keys, keys], dim=-1)",
        JOIN_VALUES: "torch.cat([past_values, values], dim=-1)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "joined-along-the-batch", "Old and new keys are joined along the batch",
    hint="On which axis do the tokens stand?",
    change={
        JOIN_KEYS: "torch.cat([past_keys, keys], dim=0)",
        JOIN_VALUES: "torch.cat([past_values, values], dim=0)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "added-to-the-cache",
    "New keys and values are added to the old ones, number by number",
    hint="How many keys are there after the step?",
    change={
        JOIN_KEYS: "past_keys + keys",
        JOIN_VALUES: "past_values + values",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "values-not-cached", "Only the keys are joined with the old ones",
    hint="The weights have a column for every key: how many values are there?",
    change={JOIN_VALUES: "values"},
)  # fmt: skip

mistake(
    "CachedAttention", "keys-not-cached", "Only the values are joined with the old ones",
    hint="How many keys do the queries meet, and how many values are there?",
    change={JOIN_KEYS: "keys"},
)  # fmt: skip

mistake(
    "CachedAttention", "queries-cached-for-keys",
    "The queries are kept for the next step, and not the keys",
    hint="Which vectors will later queries be compared with?",
    change={
        "if cache is not None:": "kept = queries\n        if cache is not None:",
        UNPACK: f"{UNPACK}\n            kept = torch.cat([past_keys, queries], dim=-2)",
        RESULT: "return self.out_proj(context_vec), (kept, values)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-before-the-split",
    "The cache is kept as it was before heads were split",
    hint="Which four axes does the cache have?",
    breaks=("returns",),
    change={
        RESULT: "return self.out_proj(context_vec), (merge_heads(keys), merge_heads(values))",
        UNPACK: "past_keys, past_values = (split_heads(part, self.num_heads) for part in cache)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-tokens-first", "In the cache, the tokens stand before the heads",
    hint="In which order does the contract name the axes of the cache?",
    breaks=("returns",),
    change={
        RESULT: "return self.out_proj(context_vec), (keys.transpose(1, 2), values.transpose(1, 2))",
        UNPACK: "past_keys, past_values = (part.transpose(1, 2) for part in cache)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-in-one-tensor", "Keys and values are stacked into one tensor",
    hint="How many tensors does the cache have?",
    breaks=("returns",),
    change={RESULT: "return self.out_proj(context_vec), torch.stack([keys, values])"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-of-the-first-sentence",
    "All sentences look at the cache of the first one",
    hint="Whose past does the second sentence of the batch look at?",
    change={UNPACK: "past_keys, past_values = (part[:1].expand_as(part) for part in cache)"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-kept-on-self",
    "The module remembers the past itself, and ignores the cache that it is given",
    hint="Two texts are written in turn with one module: whose past does each of them get?",
    breaks=("state",),
    change={
        "if cache is not None:": (
            "if cache is None:\n"
            "            self.past = None\n"
            "        if cache is not None:"
        ),
        UNPACK: "past_keys, past_values = self.past",
        SCORES: f"{SCORES}\n        self.past = (keys.detach(), values.detach())",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-kept-on-self-forever",
    "The module remembers the past itself, and never starts afresh",
    hint="What does the first token of a new text look at?",
    breaks=("state",),
    change={
        "if cache is not None:": 'if hasattr(self, "past"):',
        UNPACK: "past_keys, past_values = self.past",
        SCORES: f"{SCORES}\n        self.past = (keys.detach(), values.detach())",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "length-kept-on-self",
    "The module counts the tokens itself, and not those in the cache",
    hint="Two texts are written in turn with one module: how long is each?",
    breaks=("state",),
    change={
        "seen = total - tokens": (
            "self.seen = 0 if cache is None else self.seen\n"
            "        seen, self.seen = self.seen, self.seen + tokens"
        ),
        "causal_mask_after(seen, tokens)": "torch.ones(tokens, total).triu(seen + 1).bool()",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "past-projected-again",
    "The cache holds the inputs, and all of the past is projected again at every step",
    hint="What is computed in a step that was computed in the step before as well?",
    breaks=("cost",),
    change={
        "if cache is not None:": "if False:",
        "_batch, tokens, _d_in = x.shape": (
            "_batch, tokens, d_in = x.shape\n"
            "        d_out = self.W_key.out_features\n"
            "        inputs = split_heads(nn.functional.pad(x, (0, d_out - d_in)), "
            "self.num_heads)\n"
            "        if cache is not None:\n"
            "            inputs = torch.cat([cache[0], inputs], dim=-2)\n"
            "        everything = merge_heads(inputs)[..., :d_in]"
        ),
        "self.W_key(x)": "self.W_key(everything)",
        "self.W_value(x)": "self.W_value(everything)",
        RESULT: "return self.out_proj(context_vec), (inputs, inputs)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-turned-in-place", "What came in is turned around in place",
    hint="What does the caller find in it after the call?",
    breaks=("unchanged",),
    change={JOIN_KEYS: "torch.cat([past_keys.transpose_(-2, -1), keys.mT], dim=-1).mT"},
)  # fmt: skip

mistake(
    "CachedAttention", "cache-written-in-place",
    "What stands in the cache that came in is overwritten",
    hint="Two continuations start from one cache: what does the second of them find?",
    breaks=("unchanged",),
    change={
        UNPACK: (
            f"{UNPACK}\n"
            "            past_keys.copy_(past_keys.clone().flip(-2))\n"
            "            past_values.copy_(past_values.clone().flip(-2))"
        ),
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-in-float32",
    "The new cache is a tensor of float32, whatever comes in",
    hint="Which dtype has a new tensor when you say nothing?",
    breaks=("dtype",),
    change={
        JOIN_KEYS: f"{JOIN_KEYS}.float()",
        JOIN_VALUES: f"{JOIN_VALUES}.float()",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-in-half-precision", "The cache is kept in half precision",
    hint="Which dtype does the cache have, and which has the input?",
    breaks=("returns",),
    change={
        RESULT: "return self.out_proj(context_vec), (keys.half(), values.half())",
        UNPACK: "past_keys, past_values = (part.to(x.dtype) for part in cache)",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-rounded", "The cache passes through half precision on its way",
    hint="How many digits of a number are left after a visit to float16?",
    change={
        RESULT: (
            "return self.out_proj(context_vec), (keys.half().to(x.dtype), "
            "values.half().to(x.dtype))"
        ),
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-through-float32", "The cache passes through float32 on its way",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change={
        RESULT: (
            "return self.out_proj(context_vec), (keys.float().to(x.dtype), "
            "values.float().to(x.dtype))"
        ),
    },
)  # fmt: skip

mistake(
    "CachedAttention", "cache-needed", "The layer cannot be called without a cache",
    hint="How is it called for the first tokens of a text?",
    breaks=("none",),
    change={"| None = None": "| None"},
)  # fmt: skip

mistake(
    "CachedAttention", "none-not-understood",
    "None is not understood where there is no cache yet",
    hint="Is cache=None the same as leaving it out?",
    breaks=("none",),
    change={
        "| None = None": "| tuple = ()",
        "if cache is not None:": "if len(cache) > 0:",
    },
)  # fmt: skip

mistake(
    "CachedAttention", "scores-scaled-twice-in-the-cache",
    "Keys are scaled before they are kept, and again when they come back",
    hint="How often is the key of the first token divided by the root after three steps?",
    change={
        SCORES: "queries @ keys.transpose(-2, -1)",
        "total, head_dim = keys.shape[-2:]": (
            "total, head_dim = keys.shape[-2:]\n"
            "        keys = keys / head_dim**0.5"
        ),
    },
)  # fmt: skip

mistake(
    "CachedAttention", "scale-total", "The scores are divided by the root of the number of keys",
    hint="What was summed up in a dot product: tokens, or features?",
    change={"head_dim**0.5": "total**0.5"},
)  # fmt: skip

mistake(
    "CachedAttention", "step-without-gradient",
    "After a cache, new keys and values get no gradient",
    hint="Does the new part of the joined keys have a grad_fn?",
    breaks=("gradients",),
    change={
        JOIN_KEYS: "torch.cat([past_keys, keys.detach()], dim=-2)",
        JOIN_VALUES: "torch.cat([past_values, values.detach()], dim=-2)",
    },
)  # fmt: skip


@accepted(
    "CachedAttention",
    "as-people-write-it",
    "view, cat, a list for a cache, the last rows of a square mask",
)
class CachedAsPeopleWriteIt(nn.Module):
    def __init__(self, d_in, d_out, n_heads):
        super().__init__()
        assert d_out % n_heads == 0
        self.n_heads, self.head_dim = n_heads, d_out // n_heads
        self.q_proj = nn.Linear(d_in, d_out, bias=False)
        self.k_proj = nn.Linear(d_in, d_out, bias=False)
        self.v_proj = nn.Linear(d_in, d_out, bias=False)
        self.o_proj = nn.Linear(d_out, d_out)

    def forward(self, x, past_kv=None):
        B, T, _ = x.shape
        q = self.q_proj(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
        if past_kv:
            k = torch.cat([past_kv[0], k], dim=2)
            v = torch.cat([past_kv[1], v], dim=2)
        S = k.size(2)
        mask = torch.triu(torch.ones(S, S, device=x.device), diagonal=1).bool()[-T:]
        scores = (q @ k.transpose(2, 3)) / math.sqrt(self.head_dim)
        weights = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        out = (weights @ v).transpose(1, 2).contiguous().view(B, T, -1)
        return self.o_proj(out), [k, v]


@accepted(
    "CachedAttention", "no-mask-for-one-token", "One token alone gets no mask; einsum throughout"
)
class NoMaskForOneToken(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads, self.width = num_heads, d_out // num_heads
        self.Wq = nn.Parameter(torch.randn(d_in, d_out))
        self.Wk = nn.Parameter(torch.randn(d_in, d_out))
        self.Wv = nn.Parameter(torch.randn(d_in, d_out))
        self.out = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        tokens = x.shape[1]
        shape = (*x.shape[:2], self.num_heads, self.width)
        q, k, v = ((x @ w).view(shape).transpose(1, 2) for w in (self.Wq, self.Wk, self.Wv))
        if cache is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache, (k, v)))  # noqa: B905
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.width**-0.5
        if tokens > 1:
            rows = torch.arange(k.shape[2] - tokens, k.shape[2], device=x.device)
            columns = torch.arange(k.shape[2], device=x.device)
            scores = scores.masked_fill(columns > rows[:, None], -torch.inf)
        context = torch.einsum("bhqk,bhkd->bqhd", scores.softmax(dim=-1), v)
        return self.out(context.reshape(*x.shape[:2], -1)), (k, v)


@accepted(
    "CachedAttention", "scaled-keys-kept", "Keys are kept scaled, and a fused layer makes them"
)
class ScaledKeysKept(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = nn.Linear(d_in, 3 * d_out, bias=False)
        self.c_proj = nn.Linear(d_out, d_out)

    def forward(self, x, layer_past=None):
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, dim=-1)
        )
        k = k / k.shape[-1] ** 0.5
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=-2)
            v = torch.cat((layer_past[1], v), dim=-2)
        tokens, total = q.shape[-2], k.shape[-2]
        hidden = torch.full((tokens, total), -torch.inf, dtype=x.dtype, device=x.device)
        scores = q @ k.mT + hidden.triu(total - tokens + 1)
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), (k, v)


@accepted(
    "CachedAttention", "new-buffer", "A new buffer of the right size, filled from old and new"
)
class NewBuffer(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.key = nn.Linear(d_in, d_out, bias=False)
        self.value = nn.Linear(d_in, d_out, bias=False)
        self.proj = nn.Linear(d_out, d_out)

    def longer(self, old, new):
        if old is None:
            return new
        seen = old.shape[2]
        both = new.new_zeros(*new.shape[:2], seen + new.shape[2], new.shape[3])
        both[:, :, :seen] = old
        both[:, :, seen:] = new
        return both

    def forward(self, x, kv_cache=None):
        old_keys, old_values = kv_cache or (None, None)
        queries, keys, values = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        keys, values = self.longer(old_keys, keys), self.longer(old_values, values)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        seen = keys.shape[2] - x.shape[1]
        scores = scores.masked_fill(torch.ones_like(scores).triu(seen + 1).bool(), -1e9)
        out = self.proj((scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2))
        return out, (keys, values)


@accepted(
    "CachedAttention", "token-by-token", "A chunk is read token by token, and there is no mask"
)
class TokenByToken(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def heads(self, y):
        return y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, cache=None):
        found = []
        for token in x.split(1, dim=1):
            keys, values = self.heads(self.W_key(token)), self.heads(self.W_value(token))
            if cache is not None:
                keys = torch.cat([cache[0], keys], dim=2)
                values = torch.cat([cache[1], values], dim=2)
            cache = keys, values
            scores = self.heads(self.W_query(token)) @ keys.mT / keys.shape[-1] ** 0.5
            found.append((scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2))
        return self.out_proj(torch.cat(found, dim=1)), cache


@accepted("CachedAttention", "newest-first", "New keys before the old ones, and a mask to match")
class NewestFirst(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        queries, keys, values = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            keys, values = torch.cat([keys, cache[0]], 2), torch.cat([values, cache[1]], 2)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        mask = F.pad(future_of(x), (0, scores.shape[-1] - x.shape[1]))
        weights = scores.masked_fill(mask, -torch.inf).softmax(dim=-1)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2)), (keys, values)


@accepted(
    "CachedAttention", "names-that-say-nothing", "Layers whose names say nothing, in another order"
)
class CachedNamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_in, d_out, bias=False)
        self.beta = nn.Linear(d_in, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, cache=None):
        messages, asking, asked = (
            layer(x).unflatten(-1, (self.n, -1)).transpose(1, 2)
            for layer in (self.alpha, self.beta, self.gamma)
        )
        if cache is not None:
            asked = torch.cat([cache[1], asked], dim=2)
            messages = torch.cat([cache[0], messages], dim=2)
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        seen = asked.shape[2] - x.shape[1]
        scores = scores.masked_fill(torch.ones_like(scores).triu(1 + seen) == 1, -torch.inf)
        out = self.last((scores.softmax(-1) @ messages).transpose(1, 2).flatten(2))
        return out, (messages, asked)


@accepted("CachedAttention", "past-and-present-apart", "Scores of past and present side by side")
class PastAndPresentApart(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads, self.scale = num_heads, (d_out // num_heads) ** -0.5
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        queries, keys, values = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if cache is None:
            cache = keys[:, :, :0], values[:, :, :0]
        past_keys, past_values = cache
        past = queries @ past_keys.mT * self.scale
        present = (queries @ keys.mT * self.scale).masked_fill(future_of(x), -torch.inf)
        weights = torch.cat([past, present], dim=-1).softmax(dim=-1)
        context = weights[..., : past.shape[-1]] @ past_values
        context = context + weights[..., past.shape[-1] :] @ values
        new_cache = torch.cat([past_keys, keys], dim=2), torch.cat([past_values, values], dim=2)
        return self.out_proj(context.transpose(1, 2).flatten(2)), new_cache


accepted(
    "CachedAttention", "cache-detached", "The cache that comes out carries no graph",
    change={RESULT: "return self.out_proj(context_vec), (keys.detach(), values.detach())"},
)  # fmt: skip

accepted(
    "CachedAttention", "cache-turned-around-twice",
    "The cache is packed and unpacked as (values, keys)",
    change={
        RESULT: "return self.out_proj(context_vec), (values, keys)",
        UNPACK: "past_values, past_keys = cache",
    },
)  # fmt: skip

accepted(
    "CachedAttention", "empty-cache-first", "A cache of no tokens stands in for none",
    change={
        "if cache is not None:": (
            "if cache is None:\n"
            "            empty = keys.new_zeros(_batch, self.num_heads, 0, keys.shape[-1])\n"
            "            cache = (empty, empty)\n"
            "        if True:"
        ),
    },
)  # fmt: skip

accepted(
    "CachedAttention", "last-rows-of-a-square", "The last rows of a square mask",
    change={
        "mask = causal_mask_after(seen, tokens)": (
            "mask = causal_mask(total)[seen:]"
        ),
    },
)  # fmt: skip

# --- LatentAttention ------------------------------------------------------------------------------

mistake(
    "LatentAttention", "keys-from-x", "Keys or values are made of x, and not of the latent",
    hint="What must be kept of a token, so that its keys and its values can be had again?",
    change={
        "self.W_up_key = nn.Linear(d_latent, d_out, bias=False)": (
            "self.W_up_key = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_up_key(latent)": "self.W_up_key(x)",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "values-from-x", "The values are made of x, and not of the latent",
    hint="What must be kept of a token, so that its values can be had again?",
    change={
        "self.W_up_value = nn.Linear(d_latent, d_out, bias=False)": (
            "self.W_up_value = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_up_value(latent)": "self.W_up_value(x)",
    },
    same_as={"keys-from-x": "the layers have the same sizes, and nothing can be adopted"},
)  # fmt: skip

mistake(
    "LatentAttention", "latent-unused",
    "Keys and values are made of x, and the latent is never used",
    hint="Where does the latent go?",
    change={
        "self.W_up_key = nn.Linear(d_latent, d_out, bias=False)": (
            "self.W_up_key = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_up_key(latent)": "self.W_up_key(x)",
        "self.W_up_value = nn.Linear(d_latent, d_out, bias=False)": (
            "self.W_up_value = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_up_value(latent)": "self.W_up_value(x)",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "queries-from-latent", "The queries are made of the latent too",
    hint="What do the queries come from, and how wide is it?",
    change={
        "self.W_query = nn.Linear(d_in, d_out, bias=False)": (
            "self.W_query = nn.Linear(d_latent, d_out, bias=False)"
        ),
        "self.W_query(x)": "self.W_query(latent)",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "queries-through-the-keys",
    "The queries take the way of the keys, through the latent",
    hint="Which layer makes the queries, and do you use it?",
    change={"self.W_query(x)": "self.W_up_key(latent)"},
)  # fmt: skip

mistake(
    "LatentAttention", "ups-swapped",
    "The layers that unpack keys and values have changed places",
    hint="Which of the two layers makes the keys?",
    change={
        "keys = split_heads(self.W_up_key(latent)": "keys = split_heads(self.W_up_value(latent)",
        "values = split_heads(self.W_up_value(latent)": (
            "values = split_heads(self.W_up_key(latent)"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "two-latents", "Keys and values have a latent each",
    hint="How many numbers are kept of a token, and how many were to be kept?",
    change={
        "self.W_down = nn.Linear(d_in, d_latent, bias=False)": (
            "self.W_down = nn.Linear(d_in, d_latent, bias=False)\n"
            "        self.W_down_value = nn.Linear(d_in, d_latent, bias=False)"
        ),
        "self.W_up_value(latent)": "self.W_up_value(self.W_down_value(x))",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "latent-twice-as-wide",
    "The latent is twice as wide, with one half for keys and one for values",
    hint="How many numbers are kept of a token, and how many were to be kept?",
    change={
        "self.W_down = nn.Linear(d_in, d_latent, bias=False)": (
            "self.W_down = nn.Linear(d_in, 2 * d_latent, bias=False)"
        ),
        "latent = self.W_down(x)": "latent, other = self.W_down(x).chunk(2, dim=-1)",
        "self.W_up_value(latent)": "self.W_up_value(other)",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "latent-normalized", "The latent is normalised: mean 0, variance 1",
    hint="What does the statement say about a norm on the latent?",
    change={
        "latent = self.W_down(x)": (
            "latent = nn.functional.layer_norm(self.W_down(x), (self.W_down.out_features,))"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "latent-rms-norm", "The latent gets an RMS norm",
    hint="What does the statement say about a norm on the latent?",
    change={
        "latent = self.W_down(x)": (
            "latent = self.W_down(x)\n"
            "        latent = latent / (latent.square().mean(dim=-1, keepdim=True) + "
            "1e-6).sqrt()"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "latent-of-length-one", "The latent is brought to length 1",
    hint="What does the statement say about a norm on the latent?",
    change={
        "latent = self.W_down(x)": "latent = nn.functional.normalize(self.W_down(x), dim=-1)",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "latent-relu", "The latent goes through a ReLU",
    hint="Is there anything between the two layers?",
    change={"latent = self.W_down(x)": "latent = torch.relu(self.W_down(x))"},
)  # fmt: skip

mistake(
    "LatentAttention", "latent-gelu", "The latent goes through a GELU",
    hint="Is there anything between the two layers?",
    change={"latent = self.W_down(x)": "latent = nn.functional.gelu(self.W_down(x))"},
)  # fmt: skip

mistake(
    "LatentAttention", "latent-tanh", "The latent goes through a tanh",
    hint="Is there anything between the two layers?",
    change={"latent = self.W_down(x)": "latent = torch.tanh(self.W_down(x))"},
)  # fmt: skip

mistake(
    "LatentAttention", "scale-d-latent", "The scores are divided by the root of d_latent",
    hint="Which vectors does a query meet, when keys are unpacked, and how long are those?",
    change={"head_dim**0.5": "latent.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "LatentAttention", "absorbed-over-all-heads",
    (
        "The queries absorb the keys' layer before they are cut into heads, and all heads "
        "share their weights"
    ),
    hint="How many softmaxes does each token get?",
    change={
        SCORES: "(self.W_query(x) @ self.W_up_key.weight @ latent.mT)[:, None] / head_dim**0.5",
    },
)  # fmt: skip

mistake(
    "LatentAttention", "absorbed-and-mixed-up",
    "The matrix that queries absorb is reshaped where it should be turned",
    hint="In W_up_key.weight, what do the rows stand for, and what do the columns?",
    change={
        SCORES: (
            "self.W_up_key.weight.reshape(self.num_heads, -1, head_dim)\n"
            "        attn_scores = queries @ attn_scores.mT @ latent[:, None].mT / "
            "head_dim**0.5"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "absorbed-every-nth",
    "The matrix that queries absorb is cut into every so-many-th row",
    hint="Which rows of W_up_key.weight belong to head 0?",
    change={
        SCORES: (
            "self.W_up_key.weight.unflatten(0, (head_dim, -1)).transpose(0, 1)\n"
            "        attn_scores = queries @ attn_scores @ latent[:, None].mT / head_dim**0.5"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "heads-mix-latents-alike",
    "The weights of the heads are averaged, and all heads get the same mix of latents",
    hint="How many mixes of latents does a token need?",
    change={MIX: "attn_weights.mean(dim=1, keepdim=True) @ values"},
)  # fmt: skip

mistake(
    "LatentAttention", "latent-detached", "No gradient flows back through the latent",
    hint="Does W_down have a .grad after backward?",
    breaks=("gradients",),
    change={"latent = self.W_down(x)": "latent = self.W_down(x).detach()"},
)  # fmt: skip

mistake(
    "LatentAttention", "only-values-through-the-latent",
    "The keys are compared without being unpacked: queries meet the latent, cut into pieces",
    hint="How wide are queries, and how wide is the latent?",
    change={SCORES: "queries[..., :1] * latent[:, None, :, :1].mT / head_dim**0.5"},
)  # fmt: skip

mistake(
    "LatentAttention", "bias-on-the-way-down", "The layer that squeezes has a bias",
    hint="Which of your five layers has a bias?",
    breaks=("bias",),
    change={
        "self.W_down = nn.Linear(d_in, d_latent, bias=False)": (
            "self.W_down = nn.Linear(d_in, d_latent)"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "query-bias", "The queries have a bias",
    hint="Which of your five layers has a bias?",
    breaks=("bias",),
    change={
        "self.W_query = nn.Linear(d_in, d_out, bias=False)": (
            "self.W_query = nn.Linear(d_in, d_out)"
        ),
    },
)  # fmt: skip


@accepted("LatentAttention", "absorbed-keys", "The queries absorb the layer that unpacks keys")
class AbsorbedKeys(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        latent = self.W_down(x)
        queries = self.W_query(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        up_key = self.W_up_key.weight.unflatten(0, (self.num_heads, -1))
        scores = queries @ up_key @ latent[:, None].mT / self.head_dim**0.5
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
        values = self.W_up_value(latent).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


@accepted(
    "LatentAttention", "all-absorbed", "Latents are compared and mixed, and nothing is unpacked"
)
class AllAbsorbed(nn.Module):
    def __init__(self, d_in, d_out, num_heads, kv_lora_rank):
        super().__init__()
        self.num_heads, self.scale = num_heads, (d_out // num_heads) ** -0.5
        self.q = nn.Linear(d_in, d_out, bias=False)
        self.w_dkv = nn.Linear(d_in, kv_lora_rank, bias=False)
        self.w_uk = nn.Linear(kv_lora_rank, d_out, bias=False)
        self.w_uv = nn.Linear(kv_lora_rank, d_out, bias=False)
        self.w_o = nn.Linear(d_out, d_out)

    def forward(self, x):
        c = self.w_dkv(x)
        q = self.q(x).unflatten(-1, (self.num_heads, -1))
        w_uk = self.w_uk.weight.unflatten(0, (self.num_heads, -1))
        w_uv = self.w_uv.weight.unflatten(0, (self.num_heads, -1))
        q = torch.einsum("bthd,hdc->bthc", q, w_uk)
        scores = torch.einsum("bthc,bsc->bhts", q, c) * self.scale
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
        mixed = torch.einsum("bhts,bsc->bthc", weights, c)
        return self.w_o(torch.einsum("bthc,hdc->bthd", mixed, w_uv).flatten(2))


@accepted(
    "LatentAttention",
    "as-in-deepseek",
    "DeepSeek's names, and one layer that unpacks keys and values",
)
class AsInDeepSeek(nn.Module):
    def __init__(self, d_model, d_out, n_heads, kv_lora_rank):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, d_out // n_heads
        self.q_proj = nn.Linear(d_model, d_out, bias=False)
        self.kv_a_proj = nn.Linear(d_model, kv_lora_rank, bias=False)
        self.kv_b_proj = nn.Linear(kv_lora_rank, 2 * d_out, bias=False)
        self.o_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        bsz, q_len, _ = x.size()
        q = self.q_proj(x).view(bsz, q_len, self.n_heads, self.head_dim).transpose(1, 2)
        kv = self.kv_b_proj(self.kv_a_proj(x)).view(bsz, q_len, 2, self.n_heads, -1)
        k, v = kv.permute(2, 0, 3, 1, 4)
        weights = torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5
        weights = weights.masked_fill(future_of(x), -torch.inf)
        weights = F.softmax(weights, dim=-1, dtype=torch.float64).to(q.dtype)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o_proj(out.reshape(bsz, q_len, -1))


@accepted("LatentAttention", "unpacked-at-once", "One layer unpacks keys and values, cut in two")
class UnpackedAtOnce(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.compress = nn.Linear(d_in, latent_dim, bias=False)
        self.decompress = nn.Linear(latent_dim, 2 * d_out, bias=False)
        self.out = nn.Linear(d_out, d_out)

    def forward(self, x):
        keys, values = self.decompress(self.compress(x)).chunk(2, dim=-1)
        q, k, v = (
            y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for y in (self.query(x), keys, values)
        )
        scores = (q @ k.mT / math.sqrt(k.shape[-1])).masked_fill(future_of(x), -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


@accepted("LatentAttention", "matrices", "Matrices instead of nn.Linear, and a loop over heads")
class LatentMatrices(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.width = d_out // num_heads
        self.W_q = nn.Parameter(torch.randn(d_in, d_out))
        self.W_dkv = nn.Parameter(torch.randn(d_in, d_latent))
        self.W_uk = nn.Parameter(torch.randn(d_latent, d_out))
        self.W_uv = nn.Parameter(torch.randn(d_latent, d_out))
        self.W_o = nn.Parameter(torch.randn(d_out, d_out))
        self.b_o = nn.Parameter(torch.zeros(d_out))

    def forward(self, x):
        latent = x @ self.W_dkv
        found = []
        for start in range(0, self.W_q.shape[1], self.width):
            own = slice(start, start + self.width)
            queries, keys = x @ self.W_q[:, own], latent @ self.W_uk[:, own]
            scores = (queries @ keys.mT / self.width**0.5).masked_fill(future_of(x), -math.inf)
            found.append(scores.softmax(dim=-1) @ (latent @ self.W_uv[:, own]))
        return torch.cat(found, dim=-1) @ self.W_o + self.b_o


@accepted(
    "LatentAttention",
    "up-per-head",
    "A layer for each head unpacks its keys, and another its values",
)
class UpPerHead(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.width = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        layers = [nn.Linear(d_latent, self.width, bias=False) for _ in range(2 * num_heads)]
        self.W_up_key = nn.ModuleList(layers[:num_heads])
        self.W_up_value = nn.ModuleList(layers[num_heads:])
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        latent, queries = self.W_down(x), self.W_query(x).split(self.width, dim=-1)
        found = []
        for query, up_key, up_value in zip(queries, self.W_up_key, self.W_up_value):  # noqa: B905
            scores = query @ up_key(latent).mT * self.width**-0.5
            weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
            found.append(weights @ up_value(latent))
        return self.out_proj(torch.cat(found, dim=-1))


@accepted(
    "LatentAttention",
    "multiplied-out",
    "Both matrices of the keys are multiplied with each other first",
)
class MultipliedOut(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def heads(self, y):
        return y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x):
        queries = self.heads(self.W_query(x))
        keys = self.heads(x @ (self.W_up_key.weight @ self.W_down.weight).T)
        values = self.heads(x @ (self.W_up_value.weight @ self.W_down.weight).T)
        scores = queries @ keys.mT / keys.shape[-1] ** 0.5
        weights = scores.masked_fill(future_of(x), -torch.inf).softmax(dim=-1)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


@accepted(
    "LatentAttention", "names-that-say-nothing", "Layers whose names say nothing, in another order"
)
class LatentNamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_latent, d_out, bias=False)
        self.beta = nn.Linear(d_latent, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_latent, bias=False)
        self.delta = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        small = self.gamma(x)
        messages, asked, asking = (
            y.unflatten(-1, (self.n, -1)).transpose(1, 2)
            for y in (self.alpha(small), self.beta(small), self.delta(x))
        )
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -torch.inf)
        return self.last((scores.softmax(-1) @ messages).transpose(1, 2).flatten(2))


@accepted("LatentAttention", "one-layer-down", "One layer makes queries and latent at once")
class OneLayerDown(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.num_heads, self.sizes = num_heads, [d_out, d_latent]
        self.into = nn.Linear(d_in, d_out + d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries, latent = self.into(x).split(self.sizes, dim=-1)
        q, k, v = (
            y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for y in (queries, self.W_up_key(latent), self.W_up_value(latent))
        )
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future_of(x), -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


# --- GroupedQueryAttention, CachedAttention and LatentAttention -----------------------------------

ALL = ("GroupedQueryAttention", "CachedAttention", "LatentAttention")
NO_CACHE = ("GroupedQueryAttention", "LatentAttention")
SQUARE = "mask = causal_mask(tokens).to(x.device)"

mistake(ALL, "not-scaled", common="no-scale")
mistake(ALL, "root-forgotten", common="no-square-root")
common_mistakes(
    ALL, "half-of-the-length", "scale-multiplied", "scale-d-out", "scale-num-heads", "scale-tokens",
    "scale-d-in", "scale-always-two",
)  # fmt: skip
mistake(ALL, "scaled-after-softmax", common="scale-after-softmax")
common_mistakes(ALL, "softmax-over-queries", "softmax-over-heads", "no-softmax")
mistake(ALL, common="softmax-over-batch", breaks=("computes", "batch"))
mistake(ALL, "log-softmax", common="log-weights")
mistake(ALL, common="one-maximum-per-sentence", breaks=("large",))
mistake(ALL, common="one-maximum-per-head", breaks=("batch",))
mistake(ALL, common="mask-fills-minus-hundred", breaks=("large",))
mistake(ALL, common="one-maximum-for-all", breaks=("batch", "large"))
mistake(ALL, "values-are-keys", common="keys-mixed")
common_mistakes(
    ALL, "keys-are-values", "queries-and-keys-swapped", "compares-with-values", "no-attention",
)  # fmt: skip
common_mistakes(NO_CACHE, "own-value-only")

mistake(
    "CachedAttention", common="own-value-only",
    change={MIX: "values[:, :, -tokens:]"},
)  # fmt: skip

common_mistakes(ALL, "all-weights-equal", "all-zeros")
common_mistakes(
    NO_CACHE, "no-mask", "mask-thrown-away", "hides-itself", "hides-itself-and-fills-zeros",
    "sees-one-ahead", "mask-transposed",
)  # fmt: skip
common_mistakes(
    ALL, "mask-opposite", "mask-opposite-and-zeros", "mask-fills-zero", "mask-multiplies",
    "mask-fills-tiny", "mask-fills-minus-one", "mask-fills-infinity", "mask-times-infinity",
    "mask-added", "mask-after-softmax", "mask-for-one-head",
)  # fmt: skip

mistake(
    NO_CACHE, "length-remembered", "The mask of the first sentence is used for all that come later",
    hint="Give it a longer sentence, and then a shorter one: which mask do they get?",
    breaks=("length",),
    change={
        SQUARE: (
            'if not hasattr(self, "mask"):\n'
            "            self.mask = causal_mask(tokens).to(x.device)\n"
            "        mask = self.mask"
        ),
    },
)  # fmt: skip

mistake(
    NO_CACHE, "mask-of-one-length", "The mask has room for 16 tokens, and longer sentences fail",
    hint="How long may a sentence be?",
    breaks=("length",),
    change={SQUARE: "mask = causal_mask(16).to(x.device)[:tokens, :tokens]"},
)  # fmt: skip

common_mistakes(NO_CACHE, "mask-on-the-cpu")
common_mistakes(
    ALL, "reshaped-into-heads", "reshaped-into-heads-and-back", "every-nth-feature",
    "values-not-split-alike", "merged-without-turning", "features-interleaved",
    "keys-of-the-first-head", "values-of-the-first-head", "heads-summed", "heads-averaged",
    "no-output-layer", "output-layer-unused", "output-layer-twice", "output-layer-from-d-in",
    "output-layer-to-d-in",
)  # fmt: skip
mistake(ALL, common="output-layer-without-bias", breaks=("bias",))
mistake(ALL, "residual-added", common="residual-after-output-layer")
common_mistakes(
    ALL, "no-super-init", "layers-turned-around", "plain-tensors", "python-list", "made-in-forward",
    "float32-hard-coded", "float32-inside", "no-gradient", "weights-detached",
    "layer-read-through-data",
)  # fmt: skip
common_mistakes(NO_CACHE, "input-changed-in-place")
common_mistakes(ALL, "weights-returned")
common_mistakes(NO_CACHE, "weights-returned-too")
mistake(ALL, common="in-place-after-softmax", breaks=("gradients",))
mistake(ALL, common="value-bias", breaks=("bias",))
mistake(ALL, common="bias-left-on", breaks=("bias",))

mistake(
    "GroupedQueryAttention", "one-maximum-per-group",
    "One maximum is taken for all query heads of a group, and heads far below it vanish",
    hint="What does exp make of a row that lies 200 below the largest score of another head?",
    breaks=("large",),
    change={
        MASKED: (
            "attn_scores.unflatten(1, (-1, groups))\n"
            "        attn_weights = torch.exp(attn_weights - attn_weights.amax(dim=(2, 3, "
            "4), keepdim=True))\n"
            "        attn_weights = attn_weights.flatten(1, 2).masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
    same_as={
        "one-maximum-per-sentence": (
            "a head that is NaN makes the whole token NaN in the last layer"
        ),
    },
)  # fmt: skip

mistake(
    "LatentAttention", "layers-up-turned-around",
    "The layers that unpack keys and values take what they should give",
    hint="In which order does nn.Linear want its two sizes?",
    change={
        "W_up_key = nn.Linear(d_latent, d_out": "W_up_key = nn.Linear(d_out, d_latent",
        "W_up_value = nn.Linear(d_latent, d_out": "W_up_value = nn.Linear(d_out, d_latent",
    },
)  # fmt: skip

mistake(
    "GroupedQueryAttention", "keys-and-values-turned-around",
    "The layers of keys and values take what they should give",
    hint="In which order does nn.Linear want its two sizes?",
    change={
        "self.W_key = nn.Linear(d_in, num_kv_heads * head_dim": (
            "self.W_key = nn.Linear(num_kv_heads * head_dim, d_in"
        ),
        "self.W_value = nn.Linear(d_in, num_kv_heads * head_dim": (
            "self.W_value = nn.Linear(num_kv_heads * head_dim, d_in"
        ),
    },
)  # fmt: skip


mistake(
    "LatentAttention", "absorbed-key-for-value",
    "The values are unpacked with the layer of the keys",
    hint="Which layer turns the mix of latents into a mix of values?",
    change={
        MIX: (
            "attn_weights @ latent[:, None] @ self.W_up_key.weight.unflatten(0, "
            "(self.num_heads, -1)).mT"
        ),
    },
    same_as={"values-are-keys": "the keys are mixed either way"},
)  # fmt: skip

mistake(
    "CachedAttention", "input-changed-in-place",
    "The tokens that came in are turned around in place",
    hint="What does the caller find in them after the call?",
    breaks=("unchanged",),
    change={
        "_batch, tokens, _d_in = x.shape": (
            "_batch, tokens, _d_in = x.shape\n"
            "        x.transpose_(1, 2)"
        ),
        "self.W_query(x)": "self.W_query(x.mT)",
        "self.W_key(x)": "self.W_key(x.mT)",
        "self.W_value(x)": "self.W_value(x.mT)",
    },
    same_as={
        "cache-turned-in-place": (
            "every result is right, and the test itself says what was changed"
        ),
    },
)  # fmt: skip

common_mistakes(NO_CACHE, "calls-torch-attention")

mistake(
    "CachedAttention", common="calls-torch-attention",
    change={
        MIX: (
            "nn.functional.scaled_dot_product_attention(\n"
            "                queries, keys, values, attn_mask=~mask\n"
            "            )"
        ),
    },
)  # fmt: skip

accepted(
    ALL, "queries-scaled-first", "The queries are scaled before they meet the keys",
    change={SCORES: "(queries * head_dim**-0.5) @ keys.transpose(-2, -1)"},
)  # fmt: skip

accepted(
    ALL, "root-shared", "Queries and keys take half of the scale each",
    change={SCORES: "(queries / head_dim**0.25) @ (keys / head_dim**0.25).transpose(-2, -1)"},
)  # fmt: skip

accepted(
    ALL, "scaled-after-the-mask", "The scores are scaled after the mask",
    change={
        " / head_dim**0.5": "",
        MASKED: "torch.softmax(attn_scores.masked_fill(mask, -torch.inf) / head_dim**0.5, dim=-1)",
    },
)  # fmt: skip

accepted(
    ALL, "lowest-number", "The lowest number of the dtype instead of infinity",
    change={MASKED: "attn_scores.masked_fill(mask, torch.finfo(x.dtype).min).softmax(dim=-1)"},
)  # fmt: skip

accepted(
    ALL, "renormalized-afterwards", "Zeroed after the softmax, then renormalised",
    change={
        MASKED: (
            "torch.softmax(attn_scores, dim=-1).masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    ALL, "float64-softmax", "The softmax runs in float64, and is cast back",
    change={MASKED: "masked_softmax(attn_scores.double(), mask).to(x.dtype)"},
)  # fmt: skip

accepted(
    NO_CACHE, "infinity-added", "An additive mask of zeros and minus infinities",
    change={
        SQUARE: "mask = torch.full((tokens, tokens), -torch.inf, device=x.device).triu(1)",
        MASKED: "(attn_scores + mask.to(x.dtype)).softmax(dim=-1)",
    },
)  # fmt: skip

accepted(
    NO_CACHE, "mask-as-a-buffer", "The mask is a large buffer, cut in forward",
    change={
        "self.num_heads = num_heads": (
            "self.num_heads = num_heads\n"
            '        self.register_buffer("mask", causal_mask(1024), persistent=False)'
        ),
        SQUARE: "mask = self.mask[:tokens, :tokens]",
    },
)  # fmt: skip

accepted(
    NO_CACHE, "positions-compared", "Positions are compared, and no triangle is cut",
    change={
        SQUARE: (
            "positions = torch.arange(tokens, device=x.device)\n"
            "        mask = positions[None, :] > positions[:, None]"
        ),
    },
)  # fmt: skip


@accepted("LatentAttention", "unpacked-in-turns", "One layer unpacks keys and values, head by head")
class UnpackedInTurns(nn.Module):
    def __init__(self, d_model, d_out, n_heads, kv_lora_rank):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, d_out // n_heads
        self.q_proj = nn.Linear(d_model, d_out, bias=False)
        self.kv_a_proj = nn.Linear(d_model, kv_lora_rank, bias=False)
        self.kv_b_proj = nn.Linear(kv_lora_rank, 2 * d_out, bias=False)
        self.o_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        kv = self.kv_b_proj(self.kv_a_proj(x)).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k, v = torch.split(kv, [self.head_dim, self.head_dim], dim=-1)
        scores = (q @ k.mT * self.head_dim**-0.5).masked_fill(future_of(x), -torch.inf)
        return self.o_proj((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
