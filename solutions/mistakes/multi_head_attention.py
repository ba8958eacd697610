"""Known answers of unit 6: mistakes, and right answers in other forms."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake


class OwnHead(nn.Module):
    def __init__(self, d_in, d_out, dropout, qkv_bias):
        super().__init__()
        self.query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / self.key.out_features**0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
        return self.dropout(F.softmax(scores, dim=-1)) @ self.value(x)


# --- split_heads ----------------------------------------------------------------------------------

mistake(
    "split_heads", common="reshaped-into-heads",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "x.reshape(batch, num_heads, tokens, head_dim)"
        ),
        "return x.transpose(1, 2)": "return x",
    },
)  # fmt: skip

mistake(
    "split_heads", "turned-then-reshaped",
    "Heads are cut after the turn, out of tokens instead of features",
    hint="Two moves, and their order matters: what must be cut before anything is turned?",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": "x.transpose(1, 2)",
        "return x.transpose(1, 2)": "return x.reshape(batch, num_heads, tokens, head_dim)",
    },
)  # fmt: skip

mistake(
    "split_heads", common="every-nth-feature",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "x.reshape(batch, tokens, head_dim, num_heads)"
        ),
        "x.transpose(1, 2)": "x.permute(0, 3, 1, 2)",
    },
)  # fmt: skip

mistake(
    "split_heads", "overlapping-windows",
    "The windows of the heads overlap: each starts one feature after the last",
    hint="Where does head 1 start, if head 0 has three features?",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "torch.stack([x[..., h : h + head_dim] for h in range(num_heads)], dim=1)"
        ),
        "return x.transpose(1, 2)": "return x",
    },
)  # fmt: skip

mistake(
    "split_heads", common="heads-reversed",
    change={"x.transpose(1, 2)": "x.transpose(1, 2).flip(1)"},
)  # fmt: skip

mistake(
    "split_heads", "same-slice-for-all", "All heads get the features of the first one",
    hint="Which features should head 1 get?",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "x[..., :head_dim].unsqueeze(1).repeat(1, num_heads, 1, 1)"
        ),
        "return x.transpose(1, 2)": "return x",
    },
)  # fmt: skip

mistake(
    "split_heads", "heads-behind-tokens", "The heads are still behind the tokens",
    hint="Which two dimensions have to change places?",
    change={"return x.transpose(1, 2)": "return x"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "split_heads", "wrong-pair-turned", "The wrong two dimensions change places",
    hint="Which two dimensions have to change places?",
    change={"x.transpose(1, 2)": "x.transpose(2, 3)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "split_heads", "heads-before-batch", "The heads come even before the batch",
    hint="Which dimension comes first in the shape that should come back?",
    change={"x.transpose(1, 2)": "x.permute(2, 0, 1, 3)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "split_heads", "batch-and-heads-in-one",
    "Batch and heads are merged into one dimension",
    hint="How many dimensions should the result have?",
    change={"x.transpose(1, 2)": "x.transpose(1, 2).flatten(0, 1)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "split_heads", "width-for-number", "The number of heads is taken for their width",
    hint="With 12 features and 3 heads: how many heads are there, and how wide is each?",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "x.reshape(batch, tokens, head_dim, num_heads)"
        ),
    },
)  # fmt: skip

mistake(
    "split_heads", "tokens-are-split",
    "The tokens are shared out among the heads, and not the features",
    hint="How many tokens does each head see?",
    change={
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "x.reshape(batch, tokens // num_heads, num_heads, d_out)"
        ),
    },
)  # fmt: skip

mistake(
    "split_heads", "unequal-chunks",
    "Chunks need not be equal, nor as many as asked for, and nobody checks",
    hint="How many features does each head get when 12 are cut for 5 heads?",
    change={
        (
            "if d_out % num_heads != 0:\n"
            '        raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} '
            "equal heads\")\n"
            "\n"
            "    "
        ): "",
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "torch.stack(x.chunk(num_heads, dim=-1), dim=2)"
        ),
    },
    breaks=("divides",),
)  # fmt: skip

mistake(
    "split_heads", "leftover-dropped",
    "Features that do not fit into a head are dropped without a word",
    hint="Where does the last of seven features go, with two heads?",
    change={
        (
            "if d_out % num_heads != 0:\n"
            '        raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} '
            "equal heads\")\n"
            "\n"
            "    "
        ): "",
        "x.reshape(batch, tokens, num_heads, head_dim)": (
            "x[..., : head_dim * num_heads].reshape(batch, tokens, num_heads, head_dim)"
        ),
    },
    breaks=("divides",),
)  # fmt: skip

mistake(
    "split_heads", "number-left-open",
    "When the width does not divide, there are more heads than asked for",
    hint="Who makes sure that there are as many heads as the caller wants?",
    change={
        (
            "if d_out % num_heads != 0:\n"
            '        raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} '
            "equal heads\")\n"
            "\n"
            "    "
        ): "",
        "x.reshape(batch, tokens, num_heads, head_dim)": "x.reshape(batch, tokens, -1, head_dim)",
    },
    breaks=("divides",),
)  # fmt: skip

mistake(
    "split_heads", "only-a-message", "A width that does not divide is noted, and nothing is raised",
    hint="What happens to the caller who does not read what you print?",
    change={
        'raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} equal heads")': (
            "print(\"d_out must be a multiple of num_heads\")\n"
            "        return x.unsqueeze(1)"
        ),
    },
    breaks=("divides",),
)  # fmt: skip

mistake(
    "split_heads", "axes-squeezed", common="squeezed",
    hint="Which shape comes out when there is one head only?",
)  # fmt: skip

mistake(
    "split_heads", common="input-changed-in-place",
    change={
        "x = x.reshape(batch, tokens, num_heads, head_dim)": "x.unsqueeze_(1)",
        "return x.transpose(1, 2)": "return torch.cat(x.chunk(num_heads, dim=-1), dim=1)",
    },
)  # fmt: skip

common_mistakes("split_heads", "no-gradient", "returns-float32", "float32-inside")


@accepted("split_heads", "view-and-permute", "view, permute, and an assert")
def split_by_permute(x, num_heads):
    b, t, d = x.size()
    assert d % num_heads == 0, "d_out must be divisible by num_heads"
    return x.contiguous().view(b, t, num_heads, d // num_heads).permute(0, 2, 1, 3).contiguous()


accepted(
    "split_heads", "reshape-complains", "No check: reshape itself refuses what does not divide",
    change={
        (
            "if d_out % num_heads != 0:\n"
            '        raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} '
            "equal heads\")\n"
            "\n"
            "    "
        ): "",
    },
)  # fmt: skip


@accepted("split_heads", "unflatten", "The last axis is unflattened")
def split_by_unflatten(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


@accepted("split_heads", "slices-stacked", "Slices are stacked")
def split_by_slices(x, num_heads):
    width, rest = divmod(x.shape[-1], num_heads)
    if rest:
        raise ArithmeticError("the heads would not be equal")
    slices = [x[..., h * width : (h + 1) * width] for h in range(num_heads)]
    return torch.stack(slices, dim=1)


@accepted("split_heads", "chunks-stacked", "Chunks of equal width are stacked")
def split_by_chunks(x, num_heads):
    if x.size(-1) % num_heads:
        raise RuntimeError("unequal heads")
    return torch.stack(torch.tensor_split(x, num_heads, dim=-1), dim=1)


@accepted("split_heads", "einsum", "A permutation by einsum")
def split_by_einsum(x, num_heads):
    batch, tokens, d_out = x.shape
    cut = x.reshape(batch, tokens, num_heads, d_out // num_heads)
    return torch.einsum("bthd->bhtd", cut)


@accepted("split_heads", "loop", "A loop fills an empty tensor")
def split_by_loop(x, num_heads):
    batch, tokens, d_out = x.shape
    head_dim = d_out // num_heads
    if head_dim * num_heads != d_out:
        raise Exception("no")
    heads = x.new_empty(batch, num_heads, tokens, head_dim)
    for h in range(num_heads):
        heads[:, h] = x[..., h * head_dim : (h + 1) * head_dim]
    return heads


# --- merge_heads ----------------------------------------------------------------------------------

mistake("merge_heads", common="merged-without-turning", change={"x = x.transpose(1, 2)": "x = x"})

mistake(
    "merge_heads", common="features-interleaved",
    change={"x.transpose(1, 2)": "x.permute(0, 2, 3, 1)"},
)  # fmt: skip

mistake(
    "merge_heads", "stacked-and-flattened",
    "The features of the heads are shuffled into one another, by a stack at the end",
    hint="In a merged token, what comes right after the first feature of head 0?",
    change={"x.transpose(1, 2)": "torch.stack(x.unbind(1), dim=-1)"},
    same_as={"features-interleaved": "the same shuffle, in other words"},
)  # fmt: skip

mistake(
    "merge_heads", "wrong-pair-turned", "The wrong two dimensions change places",
    hint="Which two dimensions have to change places?",
    change={"x.transpose(1, 2)": "x.transpose(2, 3)"},
)  # fmt: skip

mistake(
    "merge_heads", "heads-and-features-turned",
    "Heads change places with features, and not with tokens",
    hint="Which two dimensions did split_heads turn last?",
    change={"x.transpose(1, 2)": "x.transpose(1, 3)"},
)  # fmt: skip

mistake(
    "merge_heads", "sentences-mixed", "Tokens and sentences have changed places, and are mixed",
    hint="Whose features does the second token of the first sentence get?",
    change={"x.transpose(1, 2)": "x.permute(2, 0, 1, 3)"},
)  # fmt: skip

mistake(
    "merge_heads", common="heads-reversed",
    change={"x.transpose(1, 2)": "x.flip(1).transpose(1, 2)"},
)  # fmt: skip

mistake(
    "merge_heads", common="first-head-only",
    change={"x.transpose(1, 2)": "x[:, :1].repeat(1, num_heads, 1, 1).transpose(1, 2)"},
)  # fmt: skip

mistake(
    "merge_heads", common="heads-summed",
    change={"return x.reshape(batch, tokens, num_heads * head_dim)": "return x.sum(dim=2)"},
)  # fmt: skip

mistake(
    "merge_heads", common="heads-averaged",
    change={"return x.reshape(batch, tokens, num_heads * head_dim)": "return x.mean(dim=2)"},
)  # fmt: skip

mistake(
    "merge_heads", "not-flattened", "Heads and features are still two dimensions",
    hint="How many dimensions should the result have?",
    change={"return x.reshape(batch, tokens, num_heads * head_dim)": "return x"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "merge_heads", "tokens-side-by-side", "The heads follow one another along the tokens",
    hint="How many tokens went in, and how many come out?",
    change={
        "return x.reshape(batch, tokens, num_heads * head_dim)": (
            "return torch.cat(x.unbind(2), dim=1)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "merge_heads", "view-after-turning", "view cannot flatten what was only turned",
    hint="The error speaks of strides: does a transposed tensor lie in memory in its new order?",
    change={"x.reshape(": "x.view("},
)  # fmt: skip

mistake(
    "merge_heads", "two-heads-only", "Only two heads are merged, however many there are",
    hint="What happens to the third head?",
    change={
        "return x.reshape(batch, tokens, num_heads * head_dim)": (
            "return torch.cat([x[:, :, 0], x[:, :, 1]], dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "merge_heads", "axes-squeezed", "Axes of size one are lost, and the wrong two change places",
    hint="How many dimensions are left when there is one head only?",
    change={"x.transpose(1, 2)": "x.squeeze().transpose(1, 2)"},
)  # fmt: skip

mistake(
    "merge_heads", common="input-changed-in-place",
    change={"x = x.transpose(1, 2)": "x.transpose_(1, 2)"},
)  # fmt: skip

common_mistakes("merge_heads", "no-gradient", "returns-float32", "float32-inside")

accepted(
    "merge_heads", "contiguous-view", "contiguous, then view",
    change={
        "x.reshape(batch, tokens, num_heads * head_dim)": "x.contiguous().view(batch, tokens, -1)",
    },
)  # fmt: skip


@accepted("merge_heads", "flatten", "permute, then flatten")
def merge_by_flatten(heads):
    return heads.permute(0, 2, 1, 3).flatten(start_dim=2)


@accepted("merge_heads", "concatenated", "The heads are concatenated")
def merge_by_cat(x):
    return torch.cat(x.unbind(dim=1), dim=-1)


@accepted("merge_heads", "stacked", "The heads are stacked behind the tokens, then flattened")
def merge_by_stack(x):
    return torch.stack(tuple(x.transpose(0, 1)), dim=2).flatten(2)


@accepted("merge_heads", "einsum", "A permutation by einsum")
def merge_by_einsum(x):
    batch, _, tokens, _ = x.shape
    return torch.einsum("bhtd->bthd", x).reshape(batch, tokens, -1)


@accepted("merge_heads", "loop", "A loop fills an empty tensor")
def merge_by_loop(x):
    batch, num_heads, tokens, head_dim = x.shape
    merged = x.new_empty(batch, tokens, num_heads * head_dim)
    for h in range(num_heads):
        merged[..., h * head_dim : (h + 1) * head_dim] = x[:, h]
    return merged


# --- MultiHeadAttentionWrapper --------------------------------------------------------------------

mistake(
    "MultiHeadAttentionWrapper", "python-list", "Torch finds no heads to train in the module",
    hint="When are your heads made, and where does torch look for what a module holds?",
    change={"nn.ModuleList(": "list("},
    breaks=("parameters",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-along-tokens",
    "The heads follow one another along the tokens, not side by side",
    hint="How many tokens went in, and how many come out?",
    change={"dim=-1": "dim=1"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-along-batch",
    "The heads follow one another along the batch, not side by side",
    hint="How many sentences went in, and how many come out?",
    change={"dim=-1": "dim=0"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-stacked", "The heads get an axis of their own",
    hint="How many dimensions should the result have?",
    change={"torch.cat(": "torch.stack("},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-stacked-in-front", "The heads get an axis of their own",
    hint="How many dimensions should the result have?",
    change={"torch.cat(context_vecs, dim=-1)": "torch.stack(context_vecs)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-stacked-at-tokens", "The heads get an axis of their own",
    hint="How many dimensions should the result have?",
    change={"torch.cat(context_vecs, dim=-1)": "torch.stack(context_vecs, dim=1)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="features-interleaved",
    change={"torch.cat(context_vecs, dim=-1)": "torch.stack(context_vecs, dim=-1).flatten(2)"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="heads-summed",
    change={"torch.cat(context_vecs, dim=-1)": "torch.stack(context_vecs).sum(dim=0)"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="heads-averaged",
    change={"torch.cat(context_vecs, dim=-1)": "torch.stack(context_vecs).mean(dim=0)"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="heads-reversed",
    change={"[head(x) for head in self.heads]": "[head(x) for head in reversed(self.heads)]"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="first-head-only",
    change={"[head(x) for head in self.heads]": "[self.heads[0](x) for _ in self.heads]"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "one-head-many-times",
    "All heads are one and the same, with the same weights",
    hint="How many heads are made, and how many times is each one asked?",
    change={
        "CausalAttention(d_in": "[CausalAttention(d_in",
        "qkv_bias)\n": "qkv_bias)] * num_heads\n",
        "for _ in range(num_heads)\n": "\n",
    },
    breaks=("computes", "parameters"),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "one-head-short", "There is one head too few",
    hint="How many heads does your loop make?",
    change={"range(num_heads)": "range(1, num_heads)"},
    breaks=("returns", "parameters"),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "width-shared-out",
    "Your heads share d_out among them, and each should be d_out wide",
    hint="How wide is the result to be, with three heads of d_out?",
    change={"CausalAttention(d_in, d_out,": "CausalAttention(d_in, d_out // num_heads,"},
    breaks=("returns", "parameters"),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-in-a-chain",
    "Each head gets what the one before it made, and not the input",
    hint="What does the second head look at?",
    change={
        "context_vecs = [head(x) for head in self.heads]": (
            "context_vecs = []\n"
            "        for head in self.heads:\n"
            "            x = head(x)\n"
            "            context_vecs.append(x)"
        ),
    },
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "input-shared-out",
    "Each head sees a share of the input's features, and not all of them",
    hint="What does the second head look at?",
    change={
        "CausalAttention(d_in,": "CausalAttention(d_in // num_heads,",
        "[head(x) for head in self.heads]": (
            "[head(part) for head, part in zip(self.heads, x.chunk(len(self.heads), dim=-1))]"
        ),
    },
    breaks=("computes", "parameters"),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="bias-never",
    change={"dropout, qkv_bias)": "dropout)"},
    breaks=("bias",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "qkv-bias-by-default", common="bias-by-default", breaks=("bias",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "dropout-forgotten", "Dropout is never applied",
    hint="In training, do two calls with the same input differ?",
    change={"context_length, dropout, qkv_bias": "context_length, 0.0, qkv_bias"},
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "dropout-always", "Dropout goes on after .eval()",
    hint="Which modules does .eval() reach, and what puts them back into training?",
    change={"[head(x) for head in self.heads]": "[head.train()(x) for head in self.heads]"},
    breaks=("eval",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "arguments-shifted",
    "The heads get their arguments in the wrong places",
    hint="Which parameter of the head does each of your arguments reach?",
    change={"context_length, dropout, qkv_bias": "context_length, qkv_bias"},
    breaks=("bias", "dropout"),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "arguments-swapped",
    "Two arguments have changed places on their way to the head",
    hint="In which order does the head take its arguments?",
    change={"d_out, context_length, dropout,": "d_out, dropout, context_length,"},
    breaks=("computes", "dropout"),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "heads-turned-around", "The heads take d_out and give d_in",
    hint="Which of the two sizes comes in?",
    change={"CausalAttention(d_in, d_out,": "CausalAttention(d_out, d_in,"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "drops-output-too", "The concatenated heads are dropped once more",
    hint="Where is dropout applied already?",
    change={
        "torch.cat(context_vecs, dim=-1)": (
            "nn.functional.dropout(torch.cat(context_vecs, dim=-1), "
            "self.heads[0].dropout.p, self.training)"
        ),
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "collected-on-the-cpu",
    "The heads are collected in a tensor that was made on the CPU",
    hint="On which device is the input, and on which is what you collect the heads in?",
    change={
        "torch.cat(context_vecs, dim=-1)": (
            "torch.cat([torch.empty(*x.shape[:2], 0), *context_vecs], dim=-1)"
        ),
    },
    breaks=("device",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "output-layer-unasked",
    "There is an output layer that nobody asked for",
    hint="What stands between the heads and the result here?",
    change={
        "super().__init__()": (
            "super().__init__()\n"
            "        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)"
        ),
        "torch.cat(context_vecs, dim=-1)": "self.out_proj(torch.cat(context_vecs, dim=-1))",
    },
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="no-mask",
    change={
        "[head(x) for head in self.heads]": (
            "[\n"
            "            torch.softmax(head.W_query(x) @ head.W_key(x).mT / "
            "head.W_key.out_features**0.5, dim=-1)\n"
            "            @ head.W_value(x)\n"
            "            for head in self.heads\n"
            "        ]"
        ),
    },
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "scale-always-two",
    "The scores are always divided by 2, which is right for d_out = 4 only",
    hint="Where does your divisor come from, and what should it be for d_out = 5?",
    change={
        "    def forward(": (
            "    def attend(self, head, x):\n"
            "        attn_scores = head.W_query(x) @ head.W_key(x).mT / 2\n"
            "        mask = causal_mask(x.shape[1]).to(x.device)\n"
            "        attn_weights = masked_softmax(attn_scores, mask)\n"
            "        return head.dropout(attn_weights) @ head.W_value(x)\n"
            "\n"
            "    def forward("
        ),
        "[head(x) for head": "[self.attend(head, x) for head",
    },
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "mask-not-cut",
    "The mask has the size of the longest sentence, whatever comes in",
    hint="How many tokens does the input have, and how many rows and columns has your mask?",
    change={
        "    def forward(": (
            "    def attend(self, head, x):\n"
            "        queries, keys, values = head.W_query(x), head.W_key(x), head.W_value(x)\n"
            "        attn_scores = queries @ keys.mT / keys.shape[-1] ** 0.5\n"
            "        return head.dropout(masked_softmax(attn_scores, head.mask)) @ values\n"
            "\n"
            "    def forward("
        ),
        "[head(x) for head": "[self.attend(head, x) for head",
    },
    breaks=("shorter",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", "one-maximum-for-all",
    "One maximum is taken for the whole batch, and rows far below it vanish",
    hint="What does exp make of a row that lies 200 below the largest score of another sentence?",
    change={
        "    def forward(": (
            "    def attend(self, head, x):\n"
            "        queries, keys, values = head.W_query(x), head.W_key(x), head.W_value(x)\n"
            "        attn_scores = queries @ keys.mT / keys.shape[-1] ** 0.5\n"
            "        attn_weights = torch.exp(attn_scores - attn_scores.max()).tril()\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)\n"
            "        return head.dropout(attn_weights) @ values\n"
            "\n"
            "    def forward("
        ),
        "[head(x) for head": "[self.attend(head, x) for head",
    },
    breaks=("batch",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="input-changed-in-place",
    change={
        "[head(x) for head in self.heads]": (
            "[\n"
            "            head(copy)\n"
            "            for head, copy in zip(\n"
            "                self.heads, x.unsqueeze_(0).expand(len(self.heads), -1, -1, -1)\n"
            "            )\n"
            "        ]"
        ),
    },
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="made-in-forward",
    change={
        "self.heads = nn.ModuleList(": "self.make = lambda: list(",
        "in self.heads]": "in self.make()]",
    },
    same_as={"python-list": "nothing can be adopted, so no result is ever compared"},
    breaks=("parameters",),
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="no-super-init", breaks=("computes", "parameters"),
)  # fmt: skip
common_mistakes("MultiHeadAttentionWrapper", "no-gradient")

mistake(
    "MultiHeadAttentionWrapper", common="float32-hard-coded",
    change={"[head(x) for head in self.heads]": "[head(x.float()) for head in self.heads]"},
)  # fmt: skip

mistake(
    "MultiHeadAttentionWrapper", common="calls-torch-attention",
    change={
        "[head(x) for head in self.heads]": (
            "[\n"
            "            nn.functional.scaled_dot_product_attention(\n"
            "                head.W_query(x), head.W_key(x), head.W_value(x), is_causal=True,\n"
            "                dropout_p=head.dropout.p * self.training,\n"
            "            )\n"
            "            for head in self.heads\n"
            "        ]"
        ),
    },
)  # fmt: skip


@accepted(
    "MultiHeadAttentionWrapper", "own-heads",
    "Heads written anew, other names, other order of arguments",
)  # fmt: skip
class WithOwnHeads(nn.Module):
    def __init__(self, d_in, d_out, n_heads, block_size, drop_rate, bias=False):
        super().__init__()
        self.attention = nn.ModuleList(
            [OwnHead(d_in, d_out, drop_rate, bias) for _ in range(n_heads)]
        )

    def forward(self, x):
        return torch.cat([attend(x) for attend in self.attention], dim=2)


@accepted("MultiHeadAttentionWrapper", "heads-by-name", "Heads as attributes with numbered names")
class WithHeadsByName(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        for h in range(num_heads):
            setattr(self, f"head_{h}", OwnHead(d_in, d_out, dropout, qkv_bias))

    def forward(self, x):
        return torch.cat([getattr(self, f"head_{h}")(x) for h in range(self.num_heads)], -1)


@accepted("MultiHeadAttentionWrapper", "heads-in-a-dict", "Heads in a ModuleDict")
class WithHeadsInADict(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        heads = {str(h): OwnHead(d_in, d_out, dropout, qkv_bias) for h in range(num_heads)}
        self.heads = nn.ModuleDict(heads)

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads.values()], dim=-1)


accepted(
    "MultiHeadAttentionWrapper", "appended", "Heads appended one by one, results in a loop",
    change={
        "self.heads = nn.ModuleList(\n": (
            "self.heads = nn.Sequential(\n"
            "            *(\n"
        ),
        (
            "for _ in range(num_heads)\n"
            "        )"
        ): (
            "for _ in range(num_heads)\n"
            "        ))"
        ),
        "context_vecs = [head(x) for head in self.heads]": (
            "context_vecs = []\n"
            "        for head in self.heads:\n"
            "            context_vecs += [head(x)]"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttentionWrapper", "stacked-and-turned", "Stacked, turned and flattened",
    change={
        "torch.cat(context_vecs, dim=-1)": "torch.stack(context_vecs, dim=2).flatten(start_dim=2)",
    },
)  # fmt: skip


@accepted("MultiHeadAttentionWrapper", "one-wide-layer", "All heads at once, from wide layers")
class OneWideLayer(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out, self.num_heads = d_out, num_heads
        self.W_query = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def cut(self, x):
        return x.unflatten(-1, (self.num_heads, self.d_out)).transpose(1, 2)

    def forward(self, x):
        queries, keys = self.cut(self.W_query(x)), self.cut(self.W_key(x))
        scores = queries @ keys.mT / math.sqrt(self.d_out)
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = self.dropout(scores.masked_fill(future, -math.inf).softmax(-1))
        return (weights @ self.cut(self.W_value(x))).transpose(1, 2).flatten(2)


# --- MultiHeadAttention ---------------------------------------------------------------------------

common_mistakes(
    "MultiHeadAttention", "no-scale", "no-square-root", "half-of-the-length", "scale-multiplied",
    "scale-by-d-in", "scale-by-number-of-keys",
)  # fmt: skip

mistake(
    "MultiHeadAttention", "scale-by-d-out", "The root is taken of the width of all heads together",
    hint="Over which dimension were the dot products summed?",
    change={"head_dim**0.5": "(self.num_heads * head_dim) ** 0.5"},
)  # fmt: skip

mistake(
    "MultiHeadAttention", "scale-by-num-heads", "The root is taken of the number of heads",
    hint="Over which dimension were the dot products summed?",
    change={"head_dim**0.5": "self.num_heads**0.5"},
)  # fmt: skip

common_mistakes("MultiHeadAttention", "scale-after-softmax", "softmax-over-queries")

mistake(
    "MultiHeadAttention", "softmax-over-heads",
    "The softmax runs over the heads, so heads share their attention",
    hint="Which axis of (batch, heads, queries, keys) holds the keys?",
    change={
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=1)"
        ),
    },
)  # fmt: skip

mistake("MultiHeadAttention", common="softmax-over-batch", breaks=("computes", "batch"))
mistake("MultiHeadAttention", "queries-keys-swapped", common="queries-and-keys-swapped")
common_mistakes("MultiHeadAttention", "values-are-keys")

mistake(
    "MultiHeadAttention", "values-are-queries", "Queries stand where values belong",
    hint="Which of the three carries the message?",
    change={"attn_weights @ values": "attn_weights @ queries"},
)  # fmt: skip

common_mistakes(
    "MultiHeadAttention", "keys-are-queries", "compares-with-values", "scale-always-two",
)  # fmt: skip
mistake("MultiHeadAttention", common="one-maximum-for-all", breaks=("batch", "heads"))
mistake("MultiHeadAttention", common="one-maximum-per-head", breaks=("batch",))
mistake("MultiHeadAttention", common="one-maximum-per-sentence", breaks=("heads",))
common_mistakes(
    "MultiHeadAttention", "input-changed-in-place", "reshaped-into-heads",
    "reshaped-into-heads-and-back", "every-nth-feature", "values-not-split-alike",
    "merged-without-turning", "features-interleaved",
)  # fmt: skip

mistake(
    "MultiHeadAttention", "never-split", "There is one wide head, and num_heads changes nothing",
    hint="How many softmaxes does each token get?",
    change={
        "split_heads(self.W_query(x), self.num_heads)": "self.W_query(x)",
        "split_heads(self.W_key(x), self.num_heads)": "self.W_key(x)",
        "split_heads(self.W_value(x), self.num_heads)": "self.W_value(x)",
        "merge_heads(context_vec)": "context_vec",
    },
)  # fmt: skip

mistake(
    "MultiHeadAttention", "attends-across-heads", "Heads look at heads, and tokens never meet",
    hint="What stands on the last two axes of the scores?",
    change={
        "split_heads(self.W_query(x), self.num_heads)": (
            "self.W_query(x).unflatten(-1, (self.num_heads, -1))"
        ),
        "split_heads(self.W_key(x), self.num_heads)": (
            "self.W_key(x).unflatten(-1, (self.num_heads, -1))"
        ),
        "split_heads(self.W_value(x), self.num_heads)": (
            "self.W_value(x).unflatten(-1, (self.num_heads, -1))"
        ),
        "mask = self.mask[:num_tokens, :num_tokens]": (
            "mask = self.mask[: self.num_heads, : self.num_heads]"
        ),
        "merge_heads(context_vec)": "context_vec.flatten(2)",
    },
)  # fmt: skip

common_mistakes(
    "MultiHeadAttention", "keys-of-the-first-head", "heads-summed", "heads-averaged",
    "hides-itself", "hides-itself-and-fills-zeros", "sees-one-ahead", "mask-opposite",
    "mask-opposite-and-zeros", "mask-transposed", "no-mask", "mask-thrown-away", "mask-fills-zero",
    "mask-multiplies", "mask-fills-tiny", "mask-fills-minus-one", "mask-fills-infinity",
    "mask-times-infinity", "mask-added", "mask-subtracted", "mask-after-softmax",
)  # fmt: skip

mistake(
    "MultiHeadAttention", "mask-not-cut",
    "The mask is not cut to the length of the sentence on both sides",
    hint="How many tokens does the input have, and how many rows and columns has your mask?",
    change={"mask = self.mask[:num_tokens, :num_tokens]": "mask = self.mask"},
    breaks=("shorter",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "mask-cut-on-one-side", "The mask is cut on one side only",
    hint="The scores are square: what is the shape of your mask?",
    change={"mask = self.mask[:num_tokens, :num_tokens]": "mask = self.mask[:num_tokens]"},
    same_as={"mask-not-cut": "torch names the axis of the keys only, which is too long in both"},
    breaks=("shorter",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "mask-from-the-wrong-corner",
    "The mask of a shorter sentence is cut from the wrong corner",
    hint="With 3 tokens of 8, which three columns of the mask belong to them?",
    change={
        "mask = self.mask[:num_tokens, :num_tokens]": "mask = self.mask[:num_tokens, -num_tokens:]",
    },
    breaks=("shorter",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "first-length-remembered", "The first sentence decides the length of all",
    hint="What happens when the second sentence is longer?",
    change={
        "mask = self.mask[:num_tokens, :num_tokens]": (
            "if not hasattr(self, \"length\"):\n"
            "            self.length = num_tokens\n"
            "        mask = self.mask[: self.length, : self.length]"
        ),
    },
    breaks=("shorter",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "mask-left-behind",
    "The mask stays on the CPU when the module and its input have moved",
    hint="On which device is the input, and who brings the mask there?",
    change={
        'self.register_buffer("mask", causal_mask(context_length))': (
            "self.mask = causal_mask(context_length)"
        ),
    },
    breaks=("device",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", common="mask-on-the-cpu",
    same_as={"mask-left-behind": "it is on the CPU either way, and torch says so"},
)  # fmt: skip

common_mistakes("MultiHeadAttention", "mask-for-one-head")

mistake(
    "MultiHeadAttention", "dropout-forgotten", "Dropout is never applied",
    hint="In training, do two calls with the same input differ?",
    change={"attn_weights = self.dropout(attn_weights)": ""},
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-scores", "Scores are dropped, and not weights",
    hint="What does softmax make of a score that was set to 0?",
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "masked_softmax(attn_scores, mask)": "masked_softmax(self.dropout(attn_scores), mask)",
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-hidden-scores",
    "Scores are dropped after the mask, and minus infinity times 0 is NaN",
    hint="What comes out when dropout meets an infinity?",
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(self.dropout(attn_scores.masked_fill(mask, -torch.inf)), dim=-1)"
        ),
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-values", "Features of the values are dropped, and not weights",
    hint="What is dropped: a look at a token, or a feature of its message?",
    change={"attn_weights = self.dropout(attn_weights)": "values = self.dropout(values)"},
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-inputs", "Features of the input are dropped, and not weights",
    hint="Where in the formula do the weights stand?",
    change={
        "_batch, num_tokens, _d_in = x.shape": (
            "_batch, num_tokens, _d_in = x.shape\n"
            "        x = self.dropout(x)"
        ),
        "attn_weights = self.dropout(attn_weights)": "",
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "dropout-always", "Dropout goes on after .eval()",
    hint="How does your function learn whether the module is training?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = nn.functional.dropout(attn_weights, self.dropout.p)"
        ),
    },
    breaks=("eval",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "dropout-made-in-forward",
    "A new dropout layer is made in every call, and it is always training",
    hint="Which layers does .eval() reach?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = nn.Dropout(self.dropout.p)(attn_weights)"
        ),
    },
    same_as={"dropout-always": "either way dropout never hears of .eval()"},
    breaks=("eval",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "keeps-with-p",
    "The chance of being dropped is taken for the chance of being kept",
    hint="With dropout 0.1, how many of ten weights should survive?",
    change={"nn.Dropout(dropout)": "nn.Dropout(1 - dropout)"},
    breaks=("computes", "dropout"),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "rate-forgotten",
    "The dropout layer does not get its rate, and takes one half",
    hint="Which p has nn.Dropout when you say nothing?",
    change={"nn.Dropout(dropout)": "nn.Dropout()"},
    breaks=("computes", "dropout"),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "not-scaled-up", "What survives is not scaled up",
    hint="If half of the weights go, what happens to the average?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "if self.training:\n"
            "            attn_weights = attn_weights * (torch.rand_like(attn_weights) >= "
            "self.dropout.p)"
        ),
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "rows-renormalized", "Rows are made to sum to one again",
    hint="In the example, does a row sum to one afterwards?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = self.dropout(attn_weights)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, "
            "keepdim=True).clamp(min=1e-9)"
        ),
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-only-in-eval", "Dropout is on in evaluation, and off in training",
    hint="When should dropout act: while the model learns, or afterwards?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = nn.functional.dropout(attn_weights, self.dropout.p, not "
            "self.training)"
        ),
    },
    breaks=("dropout", "eval"),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "same-for-all-sentences",
    "All sentences of a batch lose the same weights",
    hint="How many random choices are made for a batch of two sentences?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = attn_weights * self.dropout(torch.ones_like(attn_weights[:1]))"
        ),
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-context", "Dropout acts on the result, and not on the weights",
    hint="What is dropped: a look at a token, or a feature of the answer?",
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "self.out_proj(context_vec)": "self.out_proj(self.dropout(context_vec))",
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-output", "Dropout acts on the output, and not on the weights",
    hint="What is dropped: a look at a token, or a feature of the answer?",
    change={
        "attn_weights = self.dropout(attn_weights)": "",
        "self.out_proj(context_vec)": "self.dropout(self.out_proj(context_vec))",
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "drops-twice", "Dropout acts twice",
    hint=(
        "How often can a weight be dropped, and what is the chance that it survives each time?"
    ),
    change={"self.out_proj(context_vec)": "self.dropout(self.out_proj(context_vec))"},
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "same-for-all-heads", "All heads lose the same weights",
    hint="How many random choices are made for two heads?",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "attn_weights = attn_weights * self.dropout(torch.ones_like(attn_weights[:, :1]))"
        ),
    },
    breaks=("dropout",),
)  # fmt: skip

common_mistakes(
    "MultiHeadAttention", "no-output-layer", "output-layer-unused", "output-layer-first",
    "output-layer-twice", "output-layer-per-head",
)  # fmt: skip

mistake(
    "MultiHeadAttention", common="output-layer-without-bias",
    hint="Of which layers does qkv_bias speak?",
    breaks=("bias",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "output-bias-like-qkv", "The output layer's bias depends on qkv_bias",
    hint="Of which layers does qkv_bias speak?",
    change={"nn.Linear(d_out, d_out)": "nn.Linear(d_out, d_out, bias=qkv_bias)"},
    breaks=("bias",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "output-bias-unless-qkv",
    "The output layer's bias goes away when qkv_bias is True",
    hint="Of which layers does qkv_bias speak?",
    change={"nn.Linear(d_out, d_out)": "nn.Linear(d_out, d_out, bias=not qkv_bias)"},
    breaks=("bias",),
)  # fmt: skip

common_mistakes("MultiHeadAttention", "output-layer-from-d-in", "output-layer-to-d-in")

mistake(
    "MultiHeadAttention", "residual-added", "Each token's own value is added on top",
    hint="What is the sum of all shares that end up in one output?",
    change={"self.out_proj(context_vec)": "self.out_proj(context_vec) + self.W_value(x)"},
)  # fmt: skip

mistake(
    "MultiHeadAttention", "heads-as-wide-as-all",
    "Every head is d_out wide, and there is no room for the others",
    hint="With 12 features and 3 heads, how wide is each?",
    change={
        "split_heads(self.W_query(x), self.num_heads)": (
            "self.W_query(x).view(_batch, num_tokens, self.num_heads, "
            "self.W_key.out_features).transpose(1, 2)"
        ),
        "split_heads(self.W_key(x), self.num_heads)": (
            "self.W_key(x).view(_batch, num_tokens, self.num_heads, "
            "self.W_key.out_features).transpose(1, 2)"
        ),
        "split_heads(self.W_value(x), self.num_heads)": (
            "self.W_value(x).view(_batch, num_tokens, self.num_heads, "
            "self.W_key.out_features).transpose(1, 2)"
        ),
    },
)  # fmt: skip

mistake(
    "MultiHeadAttention", "no-check",
    "A width that does not divide raises nothing when the layer is made",
    hint="What should the constructor do with 7 features and 2 heads?",
    change={"if d_out % num_heads != 0:": "if num_heads > d_out:"},
    breaks=("divides",),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "checks-d-in",
    "The width of the input is checked, and not that of the heads",
    hint="Which width do the heads share?",
    change={"if d_out % num_heads != 0:": "if d_in % num_heads != 0:"},
    breaks=("computes", "divides"),
)  # fmt: skip

mistake(
    "MultiHeadAttention", "only-a-message",
    "A width that does not divide is noted, and nothing is raised",
    hint="What happens to the caller who does not read what you print?",
    change={
        'raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} equal heads")': (
            'print("d_out must be a multiple of num_heads")'
        ),
    },
    same_as={"no-check": "the caller gets a layer either way"},
    breaks=("divides",),
)  # fmt: skip

mistake("MultiHeadAttention", common="bias-left-on", breaks=("bias",))
mistake("MultiHeadAttention", "qkv-bias-by-default", common="bias-by-default", breaks=("bias",))
mistake("MultiHeadAttention", common="bias-never", breaks=("bias",))
mistake("MultiHeadAttention", common="value-bias-always", breaks=("bias",))
common_mistakes(
    "MultiHeadAttention", "no-super-init", "layers-turned-around", "made-in-forward",
    "plain-tensors", "python-list", "float32-hard-coded", "float32-inside", "no-gradient",
    "weights-detached",
)  # fmt: skip
mistake("MultiHeadAttention", common="in-place-after-softmax", breaks=("gradients",))
common_mistakes("MultiHeadAttention", "weights-returned", "weights-returned-too")

mistake(
    "MultiHeadAttention", common="calls-torch-attention",
    change={
        "attn_weights @ values": (
            "nn.functional.scaled_dot_product_attention(\n"
            "            queries, keys, values, is_causal=True,\n"
            "            dropout_p=self.dropout.p * self.training,\n"
            "        )"
        ),
    },
)  # fmt: skip


@accepted(
    "MultiHeadAttention", "as-in-the-book",
    "view, transpose, a mask of floats filled in place, view",
)  # fmt: skip
class AsInTheBook(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask)

    def forward(self, x):
        b, num_tokens, _ = x.shape
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        attn_scores = queries @ keys.transpose(2, 3)
        attn_scores.masked_fill_(self.mask.bool()[:num_tokens, :num_tokens], -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)
        context_vec = (attn_weights @ values).transpose(1, 2)
        context_vec = context_vec.contiguous().view(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


@accepted(
    "MultiHeadAttention", "as-in-gpt",
    "One fused layer, GPT's names and its order of arguments",
)  # fmt: skip
class AsInGpt(nn.Module):
    def __init__(self, n_embd, d_out, n_head, block_size, drop_rate, bias=False):
        super().__init__()
        if d_out % n_head:
            raise ValueError("n_head must divide d_out")
        self.n_head, self.n_out = n_head, d_out
        self.c_attn = nn.Linear(n_embd, 3 * d_out, bias=bias)
        self.c_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(drop_rate)
        tril = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", tril.view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, _ = x.size()
        C = self.n_out
        q, k, v = self.c_attn(x).split(C, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


@accepted("MultiHeadAttention", "fused-and-unbound", "Fused, permuted and unbound in one go")
class FusedAndUnbound(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be a multiple of num_heads")
        self.num_heads = num_heads
        self.to_qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.to_out = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x):
        qkv = self.to_qkv(x).unflatten(-1, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        queries, keys, values = qkv.unbind(0)
        scores = (queries * keys.shape[-1] ** -0.5) @ keys.mT
        tokens = torch.arange(x.shape[1], device=x.device)
        scores = scores.masked_fill(tokens[None, :] > tokens[:, None], -math.inf)
        weights = F.dropout(scores.softmax(dim=-1), self.p, self.training)
        return self.to_out((weights @ values).transpose(1, 2).flatten(2))


@accepted(
    "MultiHeadAttention", "matrices-and-einsum",
    "Matrices instead of nn.Linear, and einsum throughout",
)  # fmt: skip
class MatricesAndEinsum(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.Wq = nn.Parameter(torch.randn(d_in, d_out))
        self.Wk = nn.Parameter(torch.randn(d_in, d_out))
        self.Wv = nn.Parameter(torch.randn(d_in, d_out))
        self.Wo = nn.Parameter(torch.randn(d_out, d_out))
        self.bo = nn.Parameter(torch.zeros(d_out))
        self.bq = nn.Parameter(torch.zeros(d_out)) if qkv_bias else 0.0
        self.bk = nn.Parameter(torch.zeros(d_out)) if qkv_bias else 0.0
        self.bv = nn.Parameter(torch.zeros(d_out)) if qkv_bias else 0.0
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.full((context_length,) * 2, -torch.inf).triu(1))

    def forward(self, x):
        batch, tokens, _ = x.shape
        shape = (batch, tokens, self.num_heads, -1)
        queries = (x @ self.Wq + self.bq).view(shape)
        keys = (x @ self.Wk + self.bk).view(shape)
        values = (x @ self.Wv + self.bv).view(shape)
        scores = torch.einsum("bqhd,bkhd->bhqk", queries, keys) / keys.shape[-1] ** 0.5
        weights = self.dropout((scores + self.mask[:tokens, :tokens]).softmax(-1))
        context = torch.einsum("bhqk,bkhd->bqhd", weights, values)
        return context.flatten(2) @ self.Wo + self.bo


@accepted(
    "MultiHeadAttention", "heads-in-every-matrix",
    "Every matrix has an axis of heads, the output's too, and so have the biases",
)  # fmt: skip
class HeadsInEveryMatrix(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be a multiple of num_heads")
        head_dim = d_out // num_heads
        self.W_q = nn.Parameter(torch.randn(d_in, num_heads, head_dim))
        self.W_k = nn.Parameter(torch.randn(d_in, num_heads, head_dim))
        self.W_v = nn.Parameter(torch.randn(d_in, num_heads, head_dim))
        self.W_o = nn.Parameter(torch.randn(num_heads, head_dim, d_out))
        self.b_o = nn.Parameter(torch.zeros(1, d_out))
        for name in ("b_q", "b_k", "b_v"):
            bias = nn.Parameter(torch.zeros(num_heads, head_dim)) if qkv_bias else None
            self.register_parameter(name, bias)
        self.drop = nn.Dropout(dropout)

    def project(self, x, weight, bias):
        heads = torch.einsum("bti,ihd->bhtd", x, weight)
        return heads if bias is None else heads + bias[:, None]

    def forward(self, x):
        q = self.project(x, self.W_q, self.b_q)
        k = self.project(x, self.W_k, self.b_k)
        v = self.project(x, self.W_v, self.b_v)
        tokens = x.shape[1]
        hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        mixed = self.drop(scores.softmax(dim=-1)) @ v
        return torch.einsum("bhtd,hdo->bto", mixed, self.W_o) + self.b_o


@accepted("MultiHeadAttention", "bmm", "Batch and heads in one axis, and bmm")
class BatchTimesHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be a multiple of num_heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.k_proj = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.v_proj = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.o_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def rows(self, x):
        return torch.cat(x.chunk(self.num_heads, dim=-1), dim=0)

    def forward(self, x):
        queries, keys = self.rows(self.q_proj(x)), self.rows(self.k_proj(x))
        scores = torch.bmm(queries, keys.transpose(1, 2)).div(math.sqrt(keys.shape[-1]))
        scores = scores.masked_fill(torch.ones_like(scores[0]).triu(1).bool(), -1e9)
        context = torch.bmm(self.dropout(scores.softmax(-1)), self.rows(self.v_proj(x)))
        return self.o_proj(torch.cat(context.chunk(self.num_heads, dim=0), dim=-1))


@accepted("MultiHeadAttention", "list-of-heads", "A list of narrow heads, and an output layer")
class ListOfHeads(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        head_dim, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError("d_out must be a multiple of num_heads")
        heads = [OwnHead(d_in, head_dim, dropout, qkv_bias) for _ in range(num_heads)]
        self.heads = nn.ModuleList(heads)
        self.proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


@accepted("MultiHeadAttention", "parameter-lists", "A matrix for each head, in ParameterLists")
class ParameterLists(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        width = d_out // num_heads
        self.scale, self.dropout = width**-0.5, nn.Dropout(dropout)
        for role in ("query", "key", "value"):
            weights = [nn.Parameter(torch.randn(d_in, width)) for _ in range(num_heads)]
            setattr(self, f"W_{role}", nn.ParameterList(weights))
            biases = [nn.Parameter(torch.zeros(width)) for _ in range(num_heads * qkv_bias)]
            setattr(self, f"b_{role}", nn.ParameterList(biases))
        self.out_proj = nn.Linear(d_out, d_out)

    def project(self, x, role, head):
        y, biases = x @ getattr(self, f"W_{role}")[head], getattr(self, f"b_{role}")
        return y + biases[head] if len(biases) else y

    def forward(self, x):
        future = torch.ones(x.shape[1], x.shape[1], device=x.device).triu(1).bool()
        contexts = []
        for head in range(len(self.W_query)):
            queries, keys, values = (self.project(x, r, head) for r in ("query", "key", "value"))
            scores = (queries @ keys.mT * self.scale).masked_fill(future, -torch.inf)
            contexts.append(self.dropout(scores.softmax(dim=-1)) @ values)
        return self.out_proj(torch.cat(contexts, dim=-1))


@accepted(
    "MultiHeadAttention", "names-that-say-nothing",
    "Layers whose names say nothing, made in another order",
)  # fmt: skip
class NamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ArithmeticError("unequal heads")
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.beta = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.gamma = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        projected = self.alpha(x), self.beta(x), self.gamma(x)
        cut = (y.unflatten(-1, (self.n, -1)).transpose(1, 2) for y in projected)
        messages, asking, asked = cut
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -torch.inf)
        return self.last((self.dropout(scores.softmax(-1)) @ messages).transpose(1, 2).flatten(2))


accepted(
    "MultiHeadAttention", "queries-scaled-first",
    "The queries are scaled before they meet the keys",
    change={
        "queries @ keys.transpose(-2, -1) / head_dim**0.5": (
            "(queries * head_dim**-0.5) @ keys.transpose(-2, -1)"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "root-shared", "Queries and keys take half of the scale each",
    change={
        "queries @ keys.transpose(-2, -1) / head_dim**0.5": (
            "(queries / head_dim**0.25) @ (keys / head_dim**0.25).transpose(-2, -1)"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "scaled-after-the-mask", "The scores are scaled after the mask",
    change={
        " / head_dim**0.5": "",
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(attn_scores.masked_fill(mask, -torch.inf) / head_dim**0.5, dim=-1)"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "infinity-added", "An additive mask of zeros and minus infinities",
    change={
        "causal_mask(context_length)": (
            "torch.full((context_length, context_length), -torch.inf).triu(1)"
        ),
        "masked_softmax(attn_scores, mask)": "(attn_scores + mask).softmax(dim=-1)",
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "lowest-number", "The lowest number of the dtype instead of infinity",
    change={
        "masked_softmax(attn_scores, mask)": (
            "attn_scores.masked_fill(mask, torch.finfo(x.dtype).min).softmax(dim=-1)"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "renormalized-afterwards", "Zeroed after the softmax, then renormalised",
    change={
        "masked_softmax(attn_scores, mask)": (
            "torch.softmax(attn_scores, dim=-1).tril()\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "mask-built-in-forward",
    "The mask is built in forward, on the device of the input",
    change={
        'self.register_buffer("mask", causal_mask(context_length))': "",
        "mask = self.mask[:num_tokens, :num_tokens]": "mask = causal_mask(num_tokens).to(x.device)",
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "dice-by-hand", "Random numbers of its own, in training only",
    change={
        "attn_weights = self.dropout(attn_weights)": (
            "if self.training:\n"
            "            keep = torch.rand_like(attn_weights) >= self.dropout.p\n"
            "            attn_weights = attn_weights * keep / (1 - self.dropout.p)"
        ),
    },
)  # fmt: skip

accepted(
    "MultiHeadAttention", "float64-softmax", "The softmax runs in float64, and is cast back",
    change={
        "masked_softmax(attn_scores, mask)": (
            "masked_softmax(attn_scores.double(), mask).to(x.dtype)"
        ),
    },
)  # fmt: skip


@accepted(
    "MultiHeadAttention", "fused-in-its-own-order", "Keys first, and a last layer called proj"
)
class KeysFirst(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)
        self.proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        b, t, _ = x.shape
        k, q, v = (
            part.view(b, t, self.num_heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(self.mask[:t, :t], -torch.inf)
        context = self.dropout(scores.softmax(-1)) @ v
        return self.proj(context.transpose(1, 2).reshape(b, t, -1))


@accepted("MultiHeadAttention", "fused-parameter-in-turns", "One matrix and one bias, head by head")
class TurnByTurn(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("the heads must be of equal width")
        self.num_heads = num_heads
        self.W_qkv = nn.Parameter(torch.randn(d_in, 3 * d_out) * 0.1)
        self.b_qkv = nn.Parameter(torch.zeros(3 * d_out)) if qkv_bias else None
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, t, _ = x.shape
        y = x @ self.W_qkv
        if self.b_qkv is not None:
            y = y + self.b_qkv
        q, k, v = y.view(b, t, self.num_heads, 3, -1).permute(3, 0, 2, 1, 4)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
        context = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))


@accepted("MultiHeadAttentionWrapper", "numbers-in-front", "Heads in a dictionary, by number")
class HeadsByNumber(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.parts = nn.ModuleDict(
            {
                f"{i}_head": CausalAttention(  # noqa: F821 - imported there
                    d_in, d_out, context_length, dropout, qkv_bias
                )
                for i in range(num_heads)
            }
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.parts.values()], dim=-1)


@accepted("MultiHeadAttention", "convolutions", "Convolutions of width one for linear layers")
class AttentionByConvolutions(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.q = nn.Conv1d(d_in, d_out, 1, bias=qkv_bias)
        self.k = nn.Conv1d(d_in, d_out, 1, bias=qkv_bias)
        self.v = nn.Conv1d(d_in, d_out, 1, bias=qkv_bias)
        self.out_proj = nn.Conv1d(d_out, d_out, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, t, _ = x.shape
        x = x.transpose(1, 2)
        q, k, v = (
            layer(x).view(b, self.num_heads, -1, t).transpose(2, 3)
            for layer in (self.q, self.k, self.v)
        )
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future, -torch.inf)
        context = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(context.transpose(2, 3).reshape(b, -1, t)).transpose(1, 2)
