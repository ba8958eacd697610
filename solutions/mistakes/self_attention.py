"""Known answers of unit 4: mistakes, and right answers in other forms."""

import math
import re
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake


def attend(queries, keys, values):
    return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


# --- linear_by_hand ------------------------------------------------------------------------------

mistake(
    "linear_by_hand", "not-transposed", "The weight is used as it lies, not transposed",
    hint="Which dimensions of the product must be equal, and are they?",
    change={"weight.T": "weight"},
)  # fmt: skip
mistake(
    "linear_by_hand", "reshaped-for-transposed", "A reshape stands where a transposition belongs",
    hint="Which numbers make up the first row after a reshape, and which should?",
    change={"weight.T": "weight.reshape(weight.shape[1], weight.shape[0])"},
)  # fmt: skip
mistake(
    "linear_by_hand", "weight-on-the-left", "The weight stands on the left of x",
    hint="A single vector may stand on either side: may a whole sentence?",
    change={"x @ weight.T": "weight @ x"},
)  # fmt: skip
mistake(
    "linear_by_hand", "bias-forgotten", "The bias is left out",
    hint="With x all zero, what should come out?",
    change={"projected + bias": "projected"},
)  # fmt: skip
mistake(
    "linear_by_hand", "bias-subtracted", "The bias is subtracted",
    hint="With x all zero, what should come out?",
    change={"projected + bias": "projected - bias"},
)  # fmt: skip
mistake(
    "linear_by_hand", "bias-twice", "The bias is added twice",
    hint="With x all zero, what should come out?",
    change={"x @ weight.T": "x @ weight.T + (0 if bias is None else bias)"},
)  # fmt: skip
mistake(
    "linear_by_hand", "bias-into-x", "The bias joins x before the product",
    hint="Does the bias belong to the features that go in, or to those that come out?",
    change={"return projected + bias": "return (x + bias) @ weight.T"},
)  # fmt: skip
mistake(
    "linear_by_hand", "one-bias-for-all", "All output features share the first one's bias",
    hint="How many numbers does the bias hold, and which output does each belong to?",
    change={"projected + bias": "projected + bias[0]"},
)  # fmt: skip
mistake(
    "linear_by_hand", "bias-of-none-added", "A bias is added even when there is none",
    hint="What is a tensor plus None?",
    change={"    if bias is None:\n        return projected\n": ""},
    breaks=("bias",),
)  # fmt: skip
mistake(
    "linear_by_hand", "bias-asked-for-its-truth", "The bias is asked whether it is true",
    hint="Is a tensor of several numbers true or false?",
    change={"if bias is None": "if not bias"},
    breaks=("bias",),
)  # fmt: skip
mistake(
    "linear_by_hand", "ones-for-no-bias", "Where there is no bias, ones are added",
    hint="Which number can you add without changing anything?",
    change={"return projected\n": "return projected + torch.ones(weight.shape[0])\n"},
    breaks=("bias",),
)  # fmt: skip
mistake(
    "linear_by_hand", "nothing-returned", "The last line computes the result and drops it",
    hint="What does a Python function return when it does not say?",
    change={"return projected + bias": "projected + bias"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "linear_by_hand", "matrices-only", "Only a matrix is taken, neither a vector nor a batch",
    hint="How many dimensions does torch.mm allow, and how many may x have?",
    change={"x @ weight.T": "torch.mm(x, weight.T)"},
    breaks=("leading",),
)  # fmt: skip
mistake(
    "linear_by_hand", "products-not-summed", "The products are never summed up",
    hint="How many numbers does one output feature consist of?",
    change={"x @ weight.T": "x[..., None, :] * weight"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "linear_by_hand", "calls-torch-linear", "Torch's own linear layer does the work",
    hint="Which lines would you write if that function did not exist?",
    change={"x @ weight.T": "nn.functional.linear(x, weight)"},
    breaks=("forbidden",),
)  # fmt: skip


@mistake(
    "linear_by_hand", "rows-out-of-order", "On a batch, tokens get the results of other tokens",
    hint="Flattened, multiplied and put back: does every token return to its own place?",
    breaks=("leading",),
)  # fmt: skip
def linear_of_rows_out_of_order(x, weight, bias):
    *front, d_in = x.shape
    rows = x.transpose(0, -2) if len(front) > 1 else x
    out = (rows.reshape(-1, d_in) @ weight.T).reshape(*front, -1)
    return out if bias is None else out + bias


mistake("linear_by_hand", common="detached", change={"weight.T": "weight.data.T"})
mistake(
    "linear_by_hand", common="float32-hard-coded",
    change={"x @ weight.T": "x.float() @ weight.T.float()"},
)  # fmt: skip
common_mistakes("linear_by_hand", "input-changed-in-place")

accepted(
    "linear_by_hand", "in-place-on-own", "The bias is added to the product in place",
    change={"return projected + bias": "projected += bias\n    return projected"},
)  # fmt: skip


@accepted("linear_by_hand", "einsum", "Letters for dimensions")
def linear_in_letters(x, weight, bias):
    out = torch.einsum("...i,oi->...o", x, weight)
    return out if bias is None else out + bias


@accepted("linear_by_hand", "flat-addmm", "All leading dimensions flattened into one")
def linear_of_flat_rows(x, weight, bias):
    rows = x.reshape(-1, x.size(-1))
    out = torch.mm(rows, weight.t()) if bias is None else torch.addmm(bias, rows, weight.t())
    return out.view(*x.shape[:-1], weight.size(0))


@accepted("linear_by_hand", "column-vectors", "The weight on the left of column vectors")
def linear_of_columns(x, weight, bias):
    out = (weight @ x.unsqueeze(-1)).squeeze(-1)
    return out + bias if bias is not None else out


@accepted("linear_by_hand", "feature-by-feature", "A loop over the output features")
def linear_by_features(x, weight, bias):
    columns = []
    for number, row in enumerate(weight):
        column = (x * row).sum(dim=-1)
        if bias is not None:
            column = column + bias[number]
        columns.append(column)
    return torch.stack(columns, dim=-1)


@accepted("linear_by_hand", "float64-inside", "Computed in float64 and cast back")
def linear_in_float64(x, weight, bias):
    out = x.double() @ weight.double().T
    if bias is not None:
        out = out + bias.double()
    return out.to(x.dtype)


@accepted("linear_by_hand", "other-names", "Short argument names, and a bias of zeros for none")
def linear_with_other_names(x, w, b=None):
    if b is None:
        b = torch.zeros(w.shape[0], dtype=x.dtype, device=x.device)
    print("linear", x.shape, w.shape)
    return torch.matmul(x, w.transpose(0, 1)) + b


@accepted("linear_by_hand", "tensordot", "A contraction of two named axes")
def linear_by_contraction(x, weight, bias):
    out = torch.tensordot(x, weight, dims=([-1], [1]))
    return out if bias is None else out.add(bias)


# --- project_qkv ---------------------------------------------------------------------------------

mistake(
    "project_qkv", "keys-first", "Keys come back before queries",
    hint="In which order does the caller unpack the three?",
    change={"return queries, keys, values": "return keys, queries, values"},
)  # fmt: skip
mistake(
    "project_qkv", "values-before-keys", "Values come back before keys",
    hint="In which order does the caller unpack the three?",
    change={"return queries, keys, values": "return queries, values, keys"},
)  # fmt: skip
mistake("project_qkv", common="values-are-keys", change={"inputs @ W_value": "inputs @ W_key"})
mistake("project_qkv", common="keys-are-queries", change={"inputs @ W_key": "inputs @ W_query"})
mistake(
    "project_qkv", "one-matrix-for-all", "One matrix makes queries, keys and values",
    hint="Is a token found by the same features by which it searches?",
    change={"inputs @ W_key": "inputs @ W_query", "inputs @ W_value": "inputs @ W_query"},
)  # fmt: skip
mistake(
    "project_qkv", "keys-from-queries", "The keys are made of the queries, not of the tokens",
    hint="What does each of the three matrices multiply?",
    change={"inputs @ W_key": "queries @ W_key"},
)  # fmt: skip
mistake(
    "project_qkv", "matrix-on-the-left", "The matrices stand on the left of the tokens",
    hint="Tokens are rows: on which side does a row meet a matrix?",
    change={
        "inputs @ W_query": "W_query @ inputs",
        "inputs @ W_key": "W_key @ inputs",
        "inputs @ W_value": "W_value @ inputs",
    },
)  # fmt: skip
mistake(
    "project_qkv", "matrices-transposed", "The matrices are transposed, as if nn.Linear kept them",
    hint="Which of its two dimensions does each matrix share with a token?",
    change={
        "inputs @ W_query": "inputs @ W_query.T",
        "inputs @ W_key": "inputs @ W_key.T",
        "inputs @ W_value": "inputs @ W_value.T",
    },
)  # fmt: skip
mistake(
    "project_qkv", common="t-on-a-batch",
    change={
        "inputs @ W_query": "(W_query.T @ inputs.T).T",
        "inputs @ W_key": "(W_key.T @ inputs.T).T",
        "inputs @ W_value": "(W_value.T @ inputs.T).T",
    },
    breaks=("leading",),
)  # fmt: skip
mistake(
    "project_qkv", "scaled-here", "The queries are scaled already",
    hint="What should this step return, and what the next?",
    change={"inputs @ W_query": "inputs @ W_query / W_query.shape[1] ** 0.5"},
)  # fmt: skip
mistake(
    "project_qkv", "values-left-out", "Only queries and keys come back",
    hint="How many tensors does the caller expect?",
    change={"return queries, keys, values": "return queries, keys"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "project_qkv", "glued-together", "One long tensor comes back, not three",
    hint="How many tensors does the caller expect?",
    change={"return queries, keys, values": "return torch.cat([queries, keys, values], dim=-1)"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "project_qkv", "layout-guessed",
    "The layout is guessed from the shape, which says nothing of a square matrix",
    hint="Which of the two sizes do you compare, and what if both are the same?",
    change={
        "inputs @ W_query": (
            "inputs @ (W_query.T if W_query.shape[1] == inputs.shape[-1] else W_query)"
        )
    },
)  # fmt: skip
mistake(
    "project_qkv", "letters-for-three", "Only a sentence or a batch of them is taken",
    hint="How many dimensions do your letters stand for, and how many may the inputs have?",
    change={
        "inputs @ W_query": (
            'torch.einsum("bti,io->bto" if inputs.dim() == 3 else "ti,io->to", inputs, W_query)'
        )
    },
    breaks=("leading",),
)  # fmt: skip
mistake("project_qkv", common="detached", change={"inputs @ W_query": "inputs.detach() @ W_query"})
mistake(
    "project_qkv", "new-parameters", "A matrix is wrapped in a new parameter",
    hint="Whose gradient does the caller look at after the backward call?",
    change={"inputs @ W_value": "inputs @ nn.Parameter(W_value)"},
    breaks=("gradients",),
)  # fmt: skip
mistake(
    "project_qkv", common="float32-hard-coded",
    change={"return queries, keys, values": "return queries.float(), keys.float(), values.float()"},
)  # fmt: skip
mistake(
    "project_qkv", common="input-changed-in-place",
    change={
        "values = inputs @ W_value": (
            "values = inputs @ W_value\n    inputs.div_(inputs.shape[-1] ** 0.5)"
        )
    },
    breaks=("unchanged", "gradients"),
)  # fmt: skip
mistake(
    "project_qkv", "input-changed-without-gradient",
    "Where no gradient is asked for, the caller's tensor is changed in place",
    hint="Who else may still need that tensor, even if no gradient does?",
    change={
        "values = inputs @ W_value": (
            "values = inputs @ W_value\n"
            "    if not inputs.requires_grad:\n"
            "        inputs.div_(inputs.shape[-1] ** 0.5)"
        )
    },
    breaks=("unchanged",),
)  # fmt: skip


@accepted("project_qkv", "list", "A list, made by a loop over the matrices")
def project_in_a_list(inputs, W_query, W_key, W_value):
    return [inputs.matmul(W) for W in (W_query, W_key, W_value)]


@accepted("project_qkv", "einsum", "Letters for dimensions")
def project_in_letters(inputs, W_query, W_key, W_value):
    project = partial(torch.einsum, "...ti,io->...to", inputs)
    return project(W_query), project(W_key), project(W_value)


@accepted("project_qkv", "fused", "One product with all matrices side by side, cut in three")
def project_at_once(inputs, W_query, W_key, W_value):
    return (inputs @ torch.cat([W_query, W_key, W_value], dim=1)).chunk(3, dim=-1)


@accepted("project_qkv", "f-linear", "F.linear with transposed matrices")
def project_with_linear(inputs, W_query, W_key, W_value):
    return tuple(F.linear(inputs, W.T) for W in (W_query, W_key, W_value))


@accepted("project_qkv", "other-names", "Short names, declared in another order")
def project_with_other_names(x, Wk, Wv, Wq):
    return x @ Wq, x @ Wk, x @ Wv


# --- scaled_scores -------------------------------------------------------------------------------

common_mistakes(
    "scaled_scores", "no-scale", "no-square-root", "half-of-the-length", "scale-multiplied"
)
mistake(
    "scaled_scores", "half-for-root", "1/2 without brackets is no exponent",
    hint="Which does Python do first, the power or the division?",
    change={"d_k**0.5": "d_k**1/2"},
)  # fmt: skip
mistake(
    "scaled_scores", "root-of-four", "The scale fits keys of length 4 only",
    hint="How long are the keys of the next caller?",
    change={"d_k**0.5": "2.0"},
)  # fmt: skip
mistake(
    "scaled_scores", "root-rounded", "The root is cut to a whole number",
    hint="What is the root of 6, and what do you divide by?",
    change={"d_k**0.5": "int(d_k**0.5)"},
)  # fmt: skip
mistake(
    "scaled_scores", common="scale-by-number-of-keys",
    change={"keys.shape[-1]": "keys.shape[-2]"},
)  # fmt: skip
mistake(
    "scaled_scores", "scale-by-number-of-queries", "The scale counts the queries",
    hint="Over which dimension were the dot products summed?",
    change={"keys.shape[-1]": "queries.shape[-2]"},
)  # fmt: skip
mistake(
    "scaled_scores", "scale-by-second-dimension", "On a batch, the second dimension is not d_k",
    hint="Where does d_k stand when there is a batch in front?",
    change={"keys.shape[-1]": "keys.shape[1]"},
    breaks=("leading",),
)  # fmt: skip
mistake(
    "scaled_scores", "scale-by-first-dimension", "The scale is the root of the first dimension",
    hint="Over which dimension were the dot products summed?",
    change={"keys.shape[-1]": "keys.shape[0]"},
)  # fmt: skip
mistake(
    "scaled_scores", "spread-measured", "The scores are divided by their own spread",
    hint="Should the score of one pair depend on which other pairs there are?",
    change={"d_k**0.5": "attn_scores.std()"},
)  # fmt: skip
mistake(
    "scaled_scores", "cosine", "Queries and keys are cut to length one",
    hint="Are two long vectors allowed a higher score than two short ones?",
    change={
        "attn_scores / d_k**0.5": (
            "attn_scores / (queries.norm(dim=-1)[..., None] * keys.norm(dim=-1)[..., None, :])"
        )
    },
)  # fmt: skip
mistake(
    "scaled_scores", "root-in-six-steps", "The root is worked out by hand, in too few steps",
    hint="How close do your steps come to the root of 10000?",
    change={
        "return attn_scores / d_k**0.5": (
            "root = d_k\n"
            "    for _ in range(6):\n"
            "        root = (root + d_k / root) / 2\n"
            "    return attn_scores / root"
        )
    },
)  # fmt: skip
mistake(
    "scaled_scores", "softmax-too-early", "The scores have gone through a softmax",
    hint="What should this step return, and what the next?",
    change={
        "return attn_scores / d_k**0.5": "return torch.softmax(attn_scores / d_k**0.5, dim=-1)"
    },
)  # fmt: skip
common_mistakes("scaled_scores", "queries-and-keys-swapped")
mistake(
    "scaled_scores", "reshaped-for-transposed", "A reshape stands where a transposition belongs",
    hint="Which numbers make up the first row after a reshape, and which should?",
    change={
        "keys.transpose(-2, -1)": ("keys.reshape(*keys.shape[:-2], keys.shape[-1], keys.shape[-2])")
    },
)  # fmt: skip
mistake("scaled_scores", common="t-on-a-batch", breaks=("leading",))
mistake(
    "scaled_scores", "not-transposed", "The keys are used as they lie, not transposed",
    hint="Which dimensions of the product must be equal, and are they?",
    change={"keys.transpose(-2, -1)": "keys"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "scaled_scores", "number-by-number", "Queries and keys are multiplied number by number",
    hint="Does every query meet every key?",
    change={"queries @ keys.transpose(-2, -1)": "queries * keys"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "scaled_scores", "queries-with-queries", "Queries are compared with queries",
    hint="How many scores should a row have?",
    change={"queries @ keys.transpose(-2, -1)": "queries @ queries.transpose(-2, -1)"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "scaled_scores", common="calls-torch-attention",
    change={
        "return attn_scores / d_k**0.5": (
            "each = torch.eye(keys.shape[-2]).expand(*keys.shape[:-1], keys.shape[-2])\n"
            "    weights = nn.functional.scaled_dot_product_attention(queries, keys, each)\n"
            "    return torch.log(weights)"
        )
    },
)  # fmt: skip
mistake(
    "scaled_scores", common="detached",
    change={"@ keys.transpose": "@ keys.detach().transpose"},
)  # fmt: skip
mistake(
    "scaled_scores", common="float32-hard-coded",
    change={"return attn_scores / d_k**0.5": "return attn_scores.float() / d_k**0.5"},
)  # fmt: skip
mistake(
    "scaled_scores", common="input-changed-in-place",
    change={
        "attn_scores = queries": "queries /= d_k**0.5\n    attn_scores = queries",
        "attn_scores / d_k**0.5": "attn_scores",
    },
)  # fmt: skip

accepted(
    "scaled_scores", "in-place-on-own", "The scores are divided in place",
    change={"return attn_scores / d_k**0.5": "attn_scores /= d_k**0.5\n    return attn_scores"},
)  # fmt: skip
accepted(
    "scaled_scores", "queries-scaled-first", "The queries are scaled, not the scores",
    change={"queries @ keys": "(queries * d_k**-0.5) @ keys", " / d_k**0.5": ""},
)  # fmt: skip
accepted(
    "scaled_scores", "root-of-a-tensor", "The root is a tensor's",
    change={"d_k**0.5": "torch.sqrt(torch.tensor(d_k))"},
)  # fmt: skip


@accepted("scaled_scores", "einsum", "Letters for dimensions, and other names")
def scores_in_letters(q, k):
    return torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.size(-1))


@accepted("scaled_scores", "fourth-roots", "Queries and keys carry half of the scale each")
def scores_of_scaled_vectors(queries, keys):
    root = queries.shape[-1] ** 0.25
    return (queries / root) @ (keys / root).mT


@accepted("scaled_scores", "pair-by-pair", "Every pair side by side, multiplied and summed")
def scores_by_broadcasting(queries, keys):
    products = queries[..., :, None, :] * keys[..., None, :, :]
    return products.sum(dim=-1) / keys.shape[-1] ** 0.5


@accepted("scaled_scores", "baddbmm", "A flat batch, and the scale as a factor of the product")
def scores_by_baddbmm(queries, keys):
    q, k = queries.reshape(-1, *queries.shape[-2:]), keys.reshape(-1, *keys.shape[-2:])
    empty = torch.zeros(1, 1, 1, dtype=q.dtype, device=q.device)
    scores = torch.baddbmm(empty, q, k.permute(0, 2, 1), alpha=k.size(2) ** -0.5)
    return scores.view(*queries.shape[:-1], keys.shape[-2])


@accepted("scaled_scores", "keys-on-the-left", "The transposed product, transposed back")
def scores_turned_back(queries, keys):
    return (keys @ queries.transpose(-1, -2)).transpose(-1, -2) / math.sqrt(keys.shape[-1])


# --- scaled_dot_product_attention ----------------------------------------------------------------

common_mistakes("scaled_dot_product_attention", "no-scale", "softmax-over-queries")
mistake("scaled_dot_product_attention", "mask-inverted", common="mask-opposite")
mistake(
    "scaled_dot_product_attention", "mask-ignored", "The mask is never used",
    hint="What changes in your result when the mask does?",
    change={
        (
            "    if mask is not None:\n"
            "        attn_scores = attn_scores.masked_fill(mask, -torch.inf)\n"
        ): ""
    },
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "mask-fills-zero")
mistake(
    "scaled_dot_product_attention", common="mask-after-softmax",
    change={
        (
            "    if mask is not None:\n"
            "        attn_scores = attn_scores.masked_fill(mask, -torch.inf)\n"
        ): "",
        "torch.softmax(attn_scores, dim=-1)\n": (
            "torch.softmax(attn_scores, dim=-1)\n"
            "    if mask is not None:\n"
            "        attn_weights = attn_weights.masked_fill(mask, 0.0)\n"
        ),
    },
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "mask-added")
mistake(
    "scaled_dot_product_attention", "mask-transposed", "The mask is turned on its side",
    hint="What do the rows of the scores stand for, and what those of your mask?",
    change={"masked_fill(mask,": "masked_fill(mask.transpose(-2, -1),"},
)  # fmt: skip
common_mistakes(
    "scaled_dot_product_attention", "values-are-keys", "no-square-root", "half-of-the-length"
)
mistake(
    "scaled_dot_product_attention", "scale-by-d-v", "The scale is the root of d_v, not of d_k",
    hint="Over which dimension were the dot products summed?",
    change={
        "scaled_scores(queries, keys)": (
            "queries @ keys.transpose(-2, -1) / values.shape[-1] ** 0.5"
        )
    },
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "no-softmax", "scale-multiplied")
mistake(
    "scaled_dot_product_attention", common="scaled-twice",
    hint="What has your scaled_scores done already?",
    change={"scaled_scores(queries, keys)": "scaled_scores(queries, keys) / keys.shape[-1] ** 0.5"},
    same_as={"no-square-root": "Two roots make the whole length"},
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "scale-by-number-of-keys")
mistake(
    "scaled_dot_product_attention", common="scale-after-softmax",
    change={
        "scaled_scores(queries, keys)": "queries @ keys.transpose(-2, -1)",
        "torch.softmax(attn_scores, dim=-1)": (
            "torch.softmax(attn_scores, dim=-1) / keys.shape[-1] ** 0.5"
        ),
    },
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "softmax-over-first",
    "The softmax runs over the first dimension, which may be the batch",
    hint="May one sentence have a say in where another one looks?",
    change={"dim=-1": "dim=0"},
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "softmax-over-second",
    "The softmax runs over the second dimension, which is that of the keys only without a batch",
    hint="Where do the keys stand when there is a batch in front?",
    change={"dim=-1": "dim=1"},
    breaks=("leading",),
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "softmax-over-everything",
    "One softmax runs over the whole matrix",
    hint="What should the weights of each single row sum to?",
    change={
        "torch.softmax(attn_scores, dim=-1)": (
            "torch.softmax(attn_scores.flatten(-2), dim=-1).view_as(attn_scores)"
        )
    },
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "one-maximum-for-all",
    "One maximum is taken off all scores, where each row has its own",
    hint="What is left of e**x in a row whose scores are all far below that maximum?",
    change={
        "torch.softmax(attn_scores, dim=-1)": (
            "torch.exp(attn_scores - attn_scores.max())\n"
            "    attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        )
    },
    breaks=("batch",),
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "log-softmax")
mistake(
    "scaled_dot_product_attention", common="mask-thrown-away",
    same_as={"mask-ignored": "Scores that are thrown away leave no trace in any result"},
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "mask-multiplies", "mask-fills-tiny")
mistake(
    "scaled_dot_product_attention", "mask-fills-minus-ten",
    "Hidden scores become low, but not low enough",
    hint="What if the visible scores are lower still?",
    change={"-torch.inf": "-10.0"},
    breaks=("computes", "hidden"),
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "mask-fills-minus-fifty",
    "Hidden scores become a low number, and visible ones can lie lower",
    hint="Is there a number so small that no score is smaller?",
    change={"-torch.inf": "-50.0"},
    breaks=("hidden",),
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "mask-fills-minus-thousand",
    "Hidden scores become a low number, and visible ones can lie lower",
    hint="Is there a number so small that no score is smaller?",
    change={"-torch.inf": "-1000.0"},
    breaks=("hidden",),
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "mask-fills-infinity", "mask-times-infinity")
mistake(
    "scaled_dot_product_attention", "infinity-after-softmax",
    "Minus infinity comes after the softmax",
    hint="What should be left of a hidden value once it is multiplied by its weight?",
    change={
        (
            "    if mask is not None:\n"
            "        attn_scores = attn_scores.masked_fill(mask, -torch.inf)\n"
        ): "",
        "torch.softmax(attn_scores, dim=-1)\n": (
            "torch.softmax(attn_scores, dim=-1)\n"
            "    if mask is not None:\n"
            "        attn_weights = attn_weights.masked_fill(mask, -torch.inf)\n"
        ),
    },
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "mask-always-expected", "Without a mask there is an error",
    hint="What does masked_fill do with None?",
    change={
        "if mask is not None:\n        attn_scores = ": "attn_scores = ",
    },
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "false-for-no-mask", "A mask of None is taken for a mask",
    hint="What does the statement say when there is no mask, and what do you compare with?",
    change={"| None = None": "| bool = False", "mask is not None": "mask is not False"},
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "mask-asked-for-its-truth",
    "The mask is asked whether it is true",
    hint="Is a tensor of several numbers true or false?",
    change={"if mask is not None": "if mask"},
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "mask-as-index",
    "The mask is used as an index, so one mask cannot serve a batch",
    hint="Which shape must an index of booleans have, and which may the mask have?",
    change={
        "attn_scores = attn_scores.masked_fill(mask, -torch.inf)": "attn_scores[mask] = -torch.inf"
    },
    breaks=("broadcast",),
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", "causal-unasked", "Later keys are hidden though nobody asked",
    hint="What may a query see when there is no mask?",
    change={
        "if mask is not None:": (
            "if mask is None:\n"
            "        mask = torch.ones_like(attn_scores, dtype=torch.bool).triu(1)\n"
            "    if mask is not None:"
        )
    },
)  # fmt: skip
mistake("scaled_dot_product_attention", common="weights-returned", breaks=("returns",))
common_mistakes("scaled_dot_product_attention", "weights-returned-too")
mistake(
    "scaled_dot_product_attention", common="calls-torch-attention",
    change={
        "attn_weights @ values": (
            "nn.functional.scaled_dot_product_attention(\n"
            "        queries, keys, values, None if mask is None else ~mask\n"
            "    )"
        )
    },
)  # fmt: skip
mistake(
    "scaled_dot_product_attention", common="in-place-after-softmax",
    change={
        "return attn_weights @ values": (
            "attn_weights /= attn_weights.sum(dim=-1, keepdim=True)\n"
            "    return attn_weights @ values"
        )
    },
    breaks=("gradients",),
)  # fmt: skip
common_mistakes("scaled_dot_product_attention", "detached", "float32-hard-coded")
mistake(
    "scaled_dot_product_attention", common="input-changed-in-place",
    change={
        "scaled_scores(queries, keys)": (
            "queries.div_(keys.shape[-1] ** 0.5) @ keys.transpose(-2, -1)"
        )
    },
)  # fmt: skip

accepted(
    "scaled_dot_product_attention", "in-place-on-own", "The scores are masked in place",
    change={"attn_scores = attn_scores.masked_fill(": "attn_scores.masked_fill_("},
)  # fmt: skip
accepted(
    "scaled_dot_product_attention", "minus-billion", "A score of -1e9 for minus infinity",
    change={"-torch.inf": "-1e9"},
)  # fmt: skip
accepted(
    "scaled_dot_product_attention", "lowest-number", "The dtype's lowest number for infinity",
    change={"-torch.inf": "torch.finfo(attn_scores.dtype).min"},
)  # fmt: skip
accepted(
    "scaled_dot_product_attention", "where", "torch.where picks scores or minus infinity",
    change={
        "attn_scores.masked_fill(mask, -torch.inf)": "torch.where(mask, -torch.inf, attn_scores)"
    },
)  # fmt: skip
accepted(
    "scaled_dot_product_attention", "nan-to-num", "NaN rows are repaired, though there are none",
    change={"attn_weights @ values": "attn_weights.nan_to_num(0.0) @ values"},
)  # fmt: skip
accepted(
    "scaled_dot_product_attention", "f-softmax", "F.softmax",
    change={"torch.softmax": "nn.functional.softmax"},
)  # fmt: skip


@accepted("scaled_dot_product_attention", "scaled-after-mask", "Scaled after the mask, as a module")
def attention_masked_first(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return nn.Softmax(dim=-1)(scores / math.sqrt(queries.size(-1))) @ values


@accepted("scaled_dot_product_attention", "added-mask", "A mask of zeros and minus infinities")
def attention_with_added_mask(queries, keys, values, mask=None):
    scores = queries @ keys.mT * keys.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(mask, -torch.inf)
    return scores.softmax(dim=-1) @ values


@accepted("scaled_dot_product_attention", "renormalised", "Zeros after the softmax, made up to one")
def attention_renormalised(queries, keys, values, mask=None):
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(mask, 0.0)
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ values


@accepted("scaled_dot_product_attention", "divided-last", "Exponentials, divided at the very end")
def attention_divided_last(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -torch.inf)
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return (powers @ values) / powers.sum(dim=-1, keepdim=True)


@accepted(
    "scaled_dot_product_attention", "einsum", "Letters, other names, a mask of zeros for none"
)
def attention_in_letters(q, k, v, attn_mask=None):
    if attn_mask is None:
        attn_mask = torch.zeros(q.size(-2), k.size(-2), dtype=torch.bool, device=q.device)
    scores = torch.einsum("...id,...jd->...ij", q, k) / k.size(-1) ** 0.5
    weights = scores.masked_fill(attn_mask, float("-inf")).softmax(-1)
    return torch.einsum("...ij,...jd->...id", weights, v)


@accepted("scaled_dot_product_attention", "logsumexp", "Weights by their logarithms")
def attention_by_logarithms(queries, keys, values, mask=None):
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -1e4)
    return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True)) @ values


# --- SelfAttention_v1 ----------------------------------------------------------------------------

common_mistakes("SelfAttention_v1", "no-scale", "softmax-over-queries")
mistake(
    "SelfAttention_v1", "shifts-from-zero", "Learned vectors that start at zero are added",
    hint="A bias of zero is a bias: what does training make of it?",
    change={
        "super().__init__()\n": (
            "super().__init__()\n        self.shift = nn.Parameter(torch.zeros(3, d_out))\n"
        ),
        "(queries, keys, values)": (
            "(queries + self.shift[0], keys + self.shift[1], values + self.shift[2])"
        ),
    },
    breaks=("bias",),
)  # fmt: skip
mistake(
    "SelfAttention_v1", common="keys-are-queries",
    change={"x, self.W_query, self.W_key,": "x, self.W_query, self.W_query,"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", common="values-are-keys",
    change={"self.W_key, self.W_value)": "self.W_key, self.W_key)"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", common="queries-and-keys-swapped",
    change={"queries, keys, values = ": "keys, queries, values = "},
)  # fmt: skip
mistake(
    "SelfAttention_v1", "tied", "Torch finds two matrices to train, not three",
    hint="How many entries has list(layer.parameters()), and which is missing?",
    change={"self.W_key = nn.Parameter(torch.rand(d_in, d_out))": "self.W_key = self.W_query"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", "plain-tensors",
    "Torch finds no weights in the layer, and there is nothing to train",
    hint="What does list(layer.parameters()) show, and where does torch look?",
    change={
        "self.W_query = nn.Parameter(torch.rand(d_in, d_out))": (
            "self.W_query = torch.rand(d_in, d_out)"
        ),
        "self.W_key = nn.Parameter(torch.rand(d_in, d_out))": (
            "self.W_key = torch.rand(d_in, d_out)"
        ),
        "self.W_value = nn.Parameter(torch.rand(d_in, d_out))": (
            "self.W_value = torch.rand(d_in, d_out)"
        ),
    },
)  # fmt: skip
common_mistakes(
    "SelfAttention_v1", "no-square-root", "half-of-the-length", "scale-by-d-in", "no-softmax"
)
mistake(
    "SelfAttention_v1", "values-not-projected", "The tokens themselves are mixed, not their values",
    hint="What does a context vector consist of: tokens, or something made of them?",
    change={"(queries, keys, values)": "(queries, keys, x)"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", "single-token-squeezed", "A single token loses its dimension",
    hint="Which shape comes out when there is one token only?",
    change={"(queries, keys, values)": "(queries, keys, values).squeeze()"},
    breaks=("lengths",),
)  # fmt: skip
common_mistakes("SelfAttention_v1", "scale-multiplied", "scale-by-number-of-keys")
mistake(
    "SelfAttention_v1", common="scale-after-softmax",
    change={
        "scaled_dot_product_attention(queries, keys, values)": (
            "torch.softmax(queries @ keys.T, dim=-1) / keys.shape[-1] ** 0.5 @ values"
        )
    },
)  # fmt: skip
mistake(
    "SelfAttention_v1", "weights-remembered",
    "The attention of one sentence is kept for the next one of its length",
    hint="Call the layer on two sentences: what does the second call work out anew?",
    change={
        "super().__init__()\n": "super().__init__()\n        self.weights = {}\n",
        "return scaled_dot_product_attention(queries, keys, values)": (
            "weights = self.weights.get(len(x))\n"
            "        if weights is None:\n"
            "            scores = queries @ keys.T / keys.shape[-1] ** 0.5\n"
            "            weights = torch.softmax(scores, dim=-1)\n"
            "            if self.training:\n"
            "                self.weights[len(x)] = weights\n"
            "        return weights @ values"
        ),
    },
)  # fmt: skip
mistake(
    "SelfAttention_v1", "weights-transposed", "The weights are turned on their side",
    hint="Whose weights stand in one row, and whose values should they mix?",
    change={
        "scaled_dot_product_attention(queries, keys, values)": (
            "torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).T @ values"
        )
    },
)  # fmt: skip
common_mistakes("SelfAttention_v1", "weights-returned")
mistake(
    "SelfAttention_v1", "no-attention", "Every token answers with its own value alone",
    hint="Where do the other tokens come in?",
    change={"scaled_dot_product_attention(queries, keys, values)": "values"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", "residual-added", "Each token's own value is added on top",
    hint="What is the sum of all shares that end up in one output?",
    change={"(queries, keys, values)": "(queries, keys, values) + values"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", "causal-unasked", "Later keys are hidden though nobody asked",
    hint="May a token look at all others here, or at those before it only?",
    change={
        "(queries, keys, values)": (
            "(\n            queries, keys, values,"
            " torch.ones(len(x), len(x), dtype=torch.bool).triu(1)\n        )"
        )
    },
)  # fmt: skip
mistake(
    "SelfAttention_v1", "matrix-on-the-left", "The matrices stand on the left of the tokens",
    hint="Tokens are rows: on which side does a row meet a matrix?",
    change={
        "project_qkv(x, self.W_query, self.W_key, self.W_value)": (
            "(W @ x for W in (self.W_query, self.W_key, self.W_value))"
        )
    },
)  # fmt: skip
mistake(
    "SelfAttention_v1", "sizes-swapped", "The matrices have d_out rows and d_in columns",
    hint="How many numbers has a token, and so how many rows a matrix on its right?",
    change={re.compile(r"d_in, d_out\)"): "d_out, d_in)"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "SelfAttention_v1", "one-plain-tensor", "One of the three matrices is a plain tensor",
    hint="How many entries has list(layer.parameters())?",
    same_as={"tied": "Without a third matrix nothing can be adopted, and no test gets further"},
    change={
        "self.W_value = nn.Parameter(torch.rand(d_in, d_out))": (
            "self.W_value = torch.rand(d_in, d_out)"
        ),
    },
)  # fmt: skip


@mistake("SelfAttention_v1", common="python-list")
class V1WithList(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.weights = [nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3)]

    def forward(self, x):
        queries, keys, values = (x @ W for W in self.weights)
        return attend(queries, keys, values)


mistake(
    "SelfAttention_v1", common="made-in-forward",
    change={
        "super().__init__()\n": "super().__init__()\n        self.d_out = d_out\n",
        re.compile(r" +self\.W_\w+ = .+\n"): "",
        "project_qkv(x, self.W_query, self.W_key, self.W_value)": (
            "(x @ nn.Parameter(torch.rand(x.shape[-1], self.d_out)) for _ in range(3))"
        ),
    },
    same_as={
        "plain-tensors": "Without parameters nothing can be adopted, and no test gets further"
    },
)  # fmt: skip


@mistake(
    "SelfAttention_v1", "one-matrix-for-all", "One matrix makes queries, keys and values",
    hint="Is a token found by the same features by which it searches?",
)  # fmt: skip
class V1WithOneMatrix(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        h = x @ self.W
        return attend(h, h, h)


@mistake("SelfAttention_v1", common="bias-left-on", breaks=("bias",))
class V1WithLinears(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)

    def forward(self, x):
        return attend(self.W_query(x), self.W_key(x), self.W_value(x))


mistake(
    "SelfAttention_v1", "frozen", "A matrix cannot be trained",
    hint="Which of the parameters get a gradient?",
    change={
        "self.W_value = nn.Parameter(torch.rand(d_in, d_out))": (
            "self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)"
        )
    },
    breaks=("gradients",),
)  # fmt: skip
mistake(
    "SelfAttention_v1", common="output-layer-too",
    change={
        "self.W_query =": "self.out_proj = nn.Linear(d_out, d_out)\n        self.W_query =",
        "return scaled_dot_product_attention(queries, keys, values)": (
            "return self.out_proj(scaled_dot_product_attention(queries, keys, values))"
        ),
    },
)  # fmt: skip
common_mistakes("SelfAttention_v1", "no-super-init")
mistake(
    "SelfAttention_v1", "self-forgotten", "A weight is asked for without self",
    hint="Where did the constructor put it?",
    change={"x, self.W_query,": "x, W_query,"},
)  # fmt: skip
mistake(
    "SelfAttention_v1", "forward-misspelt", "Torch finds no forward method in the class",
    hint="What is the method called that torch runs, and how far is it indented in your class?",
    change={"def forward(": "def foward("},
)  # fmt: skip
common_mistakes("SelfAttention_v1", "calls-torch-attention")
mistake(
    "SelfAttention_v1", common="detached",
    change={"(queries, keys, values)": "(queries.detach(), keys, values)"},
)  # fmt: skip


@accepted("SelfAttention_v1", "own-names", "Other names, drawn with randn, (d_out, d_in)")
class V1WithOwnNames(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.wq = nn.Parameter(torch.randn(dim_out, dim_in) * dim_in**-0.5)
        self.wk = nn.Parameter(torch.randn(dim_out, dim_in) * dim_in**-0.5)
        self.wv = nn.Parameter(torch.randn(dim_out, dim_in) * dim_in**-0.5)

    def forward(self, x):
        q, k, v = x @ self.wq.T, x @ self.wk.T, x @ self.wv.T
        return torch.softmax(q @ k.T / math.sqrt(k.shape[1]), dim=1) @ v


@accepted("SelfAttention_v1", "parameter-list", "A ParameterList in an order of its own")
class V1WithParameterList(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.matrices = nn.ParameterList(torch.rand(d_in, d_out) for _ in range(3))

    def forward(self, x):
        values, queries, keys = (x @ W for W in self.matrices)
        return F.softmax(queries @ keys.mT * keys.size(-1) ** -0.5, dim=-1) @ values


@accepted("SelfAttention_v1", "fused", "One parameter for all three, cut in forward")
class V1Fused(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.qkv = nn.Parameter(torch.empty(d_in, 3 * d_out))
        nn.init.xavier_uniform_(self.qkv)

    def forward(self, x):
        queries, keys, values = (x @ self.qkv).chunk(3, dim=-1)
        return attend(queries, keys, values)


@accepted("SelfAttention_v1", "bare-linears", "Linear layers without biases")
class V1Linear(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("query", "key", "value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=False))

    def forward(self, x):
        return attend(queries=self.query(x), keys=self.key(x), values=self.value(x))


@accepted("SelfAttention_v1", "token-by-token", "A loop over the queries")
class V1ByTokens(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.register_parameter("W_value", nn.Parameter(torch.rand(d_in, d_out)))
        self.register_parameter("W_key", nn.Parameter(torch.rand(d_in, d_out)))
        self.register_parameter("W_query", nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        keys, values = x @ self.W_key, x @ self.W_value
        context = []
        for token in x:
            scores = keys @ (token @ self.W_query)
            weights = torch.softmax(scores / keys.shape[1] ** 0.5, dim=0)
            context.append(weights @ values)
        return torch.stack(context)


@accepted("SelfAttention_v1", "zeros-and-scale", "Drawn as zeros, with a scale kept from the start")
class V1WithScale(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.scale = d_out**-0.5
        self.W_query = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_key = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_value = nn.Parameter(torch.zeros(d_in, d_out))

    def forward(self, x):
        scores = torch.einsum("td,sd->st", x @ self.W_key, x @ self.W_query) * self.scale
        return torch.softmax(scores, dim=-1) @ (x @ self.W_value)


# --- SelfAttention_v2 ----------------------------------------------------------------------------

common_mistakes("SelfAttention_v2", "no-scale", "softmax-over-queries", "keys-are-queries")
mistake(
    "SelfAttention_v2", "bias-left-on", "There are biases although qkv_bias is False",
    hint="What does nn.Linear do when you say nothing about the bias?",
    change={
        "self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)": (
            "self.W_query = nn.Linear(d_in, d_out)"
        ),
        "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)": (
            "self.W_key = nn.Linear(d_in, d_out)"
        ),
        "self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)": (
            "self.W_value = nn.Linear(d_in, d_out)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip
mistake(
    "SelfAttention_v2", "scale-learned", "The scores have a factor that is learned",
    hint="Which numbers of your layer does training change?",
    change={
        "super().__init__()\n": (
            "super().__init__()\n        self.factor = nn.Parameter(torch.ones(()))\n"
        ),
        "(queries, keys, values)": "(queries * self.factor, keys, values)",
    },
    breaks=("bias",),
)  # fmt: skip
mistake("SelfAttention_v2", "bias-on-by-default", common="bias-by-default", breaks=("bias",))
mistake("SelfAttention_v2", common="bias-never", breaks=("bias",))
mistake(
    "SelfAttention_v2", "bias-inverted", "qkv_bias means its opposite",
    hint="How many biases are there with True, and how many with False?",
    change={
        "super().__init__()\n": "super().__init__()\n        qkv_bias = not qkv_bias\n",
    },
    breaks=("bias",),
)  # fmt: skip
common_mistakes(
    "SelfAttention_v2", "no-square-root", "half-of-the-length", "scale-by-d-in",
    "queries-and-keys-swapped",
)  # fmt: skip
mistake(
    "SelfAttention_v2", common="values-are-keys",
    change={"(queries, keys, values)": "(queries, keys, keys)"},
)  # fmt: skip
mistake(
    "SelfAttention_v2", "key-bias-missing", "The keys never have a bias",
    hint="Does qkv_bias reach all three layers?",
    change={
        "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)": (
            "self.W_key = nn.Linear(d_in, d_out, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip
common_mistakes("SelfAttention_v2", "scale-multiplied", "scale-by-number-of-keys")
mistake(
    "SelfAttention_v2", "root-of-four", "The scale fits keys of length 4 only",
    hint="How long are the keys of the next caller?",
    change={
        "scaled_dot_product_attention(queries, keys, values)": (
            "torch.softmax(queries @ keys.T / 2.0, dim=-1) @ values"
        )
    },
)  # fmt: skip
mistake(
    "SelfAttention_v2", common="scaled-twice", hint="What has your scaled_scores done already?",
    change={
        "scaled_dot_product_attention(queries, keys, values)": (
            "scaled_dot_product_attention(queries / keys.shape[-1] ** 0.5, keys, values)"
        )
    },
    same_as={"no-square-root": "Two roots make the whole length"},
)  # fmt: skip
common_mistakes("SelfAttention_v2", "no-softmax", "weights-returned")
mistake(
    "SelfAttention_v2", "keys-from-queries", "The keys are made of the queries, not of the tokens",
    hint="What does each of the three matrices multiply?",
    change={"self.W_key(x)": "self.W_key(queries)"},
)  # fmt: skip
mistake(
    "SelfAttention_v2", "single-token-squeezed", "A single token loses its dimension",
    hint="Which shape comes out when there is one token only?",
    change={"(queries, keys, values)": "(queries, keys, values).squeeze()"},
    breaks=("lengths",),
)  # fmt: skip
mistake(
    "SelfAttention_v2", "sizes-swapped", "The layers go from d_out to d_in",
    hint="How many numbers has a token, and how many should a query have?",
    change={re.compile("d_in, d_out, bias"): "d_out, d_in, bias"},
    breaks=("returns",),
)  # fmt: skip
mistake(
    "SelfAttention_v2", "weight-not-transposed", "A layer's weight is used as if it were v1's",
    hint="Which shape does nn.Linear give its weight?",
    change={"self.W_query(x)": "x @ self.W_query.weight"},
)  # fmt: skip
mistake(
    "SelfAttention_v2", "value-bias-missing", "The values never have a bias",
    hint="Does qkv_bias reach all three layers?",
    change={
        "self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)": (
            "self.W_value = nn.Linear(d_in, d_out, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip
mistake("SelfAttention_v2", common="value-bias-always", breaks=("bias",))
mistake(
    "SelfAttention_v2", "bias-not-used", "A bias is made and never added",
    hint="What does a layer do when called that its weight alone does not?",
    change={"self.W_query(x)": "x @ self.W_query.weight.T"},
    breaks=("bias",),
)  # fmt: skip
mistake(
    "SelfAttention_v2", "no-qkv-bias", "The constructor does not know qkv_bias",
    hint="How many arguments may the caller pass?",
    change={
        ", qkv_bias: bool = False": "",
        "super().__init__()\n": "super().__init__()\n        qkv_bias = False\n",
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "SelfAttention_v2", "made-in-forward",
    "Torch finds no weights in the layer, and there is nothing to train",
    hint="What does list(layer.parameters()) show, and where does torch look?",
    change={
        "super().__init__()\n": (
            "super().__init__()\n        self.d_out, self.qkv_bias = d_out, qkv_bias\n"
        ),
        re.compile(r" +self\.W_\w+ = .+\n"): "",
        re.compile(r"self\.W_\w+\(x\)"): (
            "nn.Linear(x.shape[-1], self.d_out, bias=self.qkv_bias)(x)"
        ),
    },
)  # fmt: skip

mistake(
    "SelfAttention_v2", common="python-list",
    same_as={
        "made-in-forward": "Without parameters nothing can be adopted, and no test gets further"
    },
)  # fmt: skip

mistake(
    "SelfAttention_v2", "calls-torch-module", "Torch's own attention module does the work",
    hint="Which lines would you write if that class did not exist?",
    change={
        "    def forward(": (
            "        self.attention = nn.MultiheadAttention(d_out, 1, bias=False)\n\n"
            "    def forward("
        ),
        "scaled_dot_product_attention(queries, keys, values)": (
            "self.attention(queries, keys, values)[0]"
        ),
    },
    breaks=("forbidden",),
)  # fmt: skip

common_mistakes("SelfAttention_v2", "no-super-init")
mistake(
    "SelfAttention_v2", "self-forgotten", "A weight is asked for without self",
    hint="Where did the constructor put it?",
    change={"self.W_key(x)": "W_key(x)"},
)  # fmt: skip
common_mistakes("SelfAttention_v2", "calls-torch-attention", "output-layer-too")
mistake(
    "SelfAttention_v2", common="detached",
    change={"(queries, keys, values)": "(queries, keys, values.detach())"},
)  # fmt: skip

# The last ones belong to SelfAttention_v1 as well.
common_mistakes(("SelfAttention_v1", "SelfAttention_v2"), "float32-hard-coded")
mistake(
    ("SelfAttention_v1", "SelfAttention_v2"), common="input-changed-in-place",
    breaks=("unchanged", "gradients"),
)  # fmt: skip
mistake(
    ("SelfAttention_v1", "SelfAttention_v2"), "input-changed-without-gradient",
    "Where no gradient is asked for, the caller's tensor is changed in place",
    hint="Who else may still need that tensor, even if no gradient does?",
    change={
        "return scaled_dot_product_attention(queries, keys, values)": (
            "if not x.requires_grad:\n"
            "            x -= x.mean(dim=0)\n"
            "        return scaled_dot_product_attention(queries, keys, values)"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip

accepted(
    "SelfAttention_v2", "bias-by-position", "The bias is nn.Linear's third argument",
    change={re.compile("bias=qkv_bias"): "qkv_bias"},
)  # fmt: skip


@accepted("SelfAttention_v2", "fused", "One layer for all three, cut in forward")
class V2Fused(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.qkv = nn.Linear(d_in, 3 * d_out, bias=qkv_bias)

    def forward(self, x):
        queries, keys, values = self.qkv(x).split(self.qkv.out_features // 3, dim=-1)
        return attend(queries, keys, values)


@accepted("SelfAttention_v2", "own-names", "Other names for arguments and layers")
class V2WithOwnNames(nn.Module):
    def __init__(self, in_dim, out_dim, bias=False):
        super().__init__()
        print("a layer of", out_dim)
        self.q_proj = nn.Linear(in_dim, out_dim, bias)
        self.k_proj = nn.Linear(in_dim, out_dim, bias)
        self.v_proj = nn.Linear(in_dim, out_dim, bias)

    def forward(self, tokens):
        q, k, v = self.q_proj(tokens), self.k_proj(tokens), self.v_proj(tokens)
        weights = F.softmax(torch.mm(q, k.t()) / math.sqrt(k.size(1)), dim=1)
        return torch.mm(weights, v)


@accepted("SelfAttention_v2", "module-dict", "A ModuleDict of layers, keys first")
class V2WithDict(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.layers = nn.ModuleDict(
            {name: nn.Linear(d_in, d_out, bias=qkv_bias) for name in ("key", "query", "value")}
        )

    def forward(self, x):
        queries, keys = self.layers["query"](x), self.layers["key"](x)
        scores = torch.einsum("id,jd->ij", queries, keys) * keys.shape[-1] ** -0.5
        return scores.softmax(-1) @ self.layers["value"](x)


@accepted("SelfAttention_v2", "module-list", "A ModuleList of nameless layers, values first")
class V2WithModuleList(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))

    def forward(self, x):
        values, keys, queries = [part(x) for part in self.parts]
        weights = nn.Softmax(dim=-1)((queries / keys.shape[-1] ** 0.5) @ keys.T)
        return weights @ values


@accepted("SelfAttention_v2", "pre-batched", "A batch of one inside, taken off again")
class V2WithBatchOfOne(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        x = x[None]
        scores = torch.bmm(self.W_query(x), self.W_key(x).transpose(1, 2))
        scores = scores / self.W_key.out_features**0.5
        return torch.bmm(torch.softmax(scores, dim=2), self.W_value(x)).squeeze(0)


# --- v1_weights_from_v2 --------------------------------------------------------------------------

mistake(
    "v1_weights_from_v2", "not-transposed", "The matrices keep v2's layout",
    hint="Which shapes do the two versions keep for d_in = 3 and d_out = 2?",
    change={"weight.T": "weight"},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "turned-where-shapes-differ", "Square matrices keep v2's layout",
    hint="Does a square matrix look the same after a transposition?",
    change={"weight.T": "(weight if weight.shape[0] == weight.shape[1] else weight.T)"},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "reshaped-for-transposed",
    "A reshape stands where a transposition belongs",
    hint="Which numbers make up the first row after a reshape, and which should?",
    change={"weight.T": "weight.reshape(weight.shape[1], weight.shape[0])"},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "turned-by-a-quarter", "The matrices are turned by a quarter",
    hint="Where does the top left number of v2's matrix belong in v1's?",
    change={"weight.T": "torch.rot90(weight)"},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "names-kept", "The names are still v2's",
    hint="Under which names does a v1 look for its matrices?",
    change={'name.removesuffix(".weight")': "name"},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "names-stripped-by-letters", "One name loses more than its ending",
    hint="Does rstrip take away a word, or any of its letters?",
    change={'name.removesuffix(".weight")': 'name.rstrip(".weight")'},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "dot-left-over", "The names end in a dot",
    hint="How many characters has the ending, its dot included?",
    change={'name.removesuffix(".weight")': "name[:-6]"},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "names-in-lower-case", "The names have lost their capitals",
    hint="Under which names does a v1 look for its matrices?",
    change={'name.removesuffix(".weight")': 'name.removesuffix(".weight").lower()'},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "both-names", "The old names are still in there",
    hint="What does a strict load_state_dict say to entries that it does not know?",
    change={
        "return {name": "return state | {name",
    },
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "by-position", "The matrices are told apart by where they stand",
    hint="Is the first entry the query's in every dict?",
    change={
        'return {name.removesuffix(".weight"): weight.T for name, weight in state.items()}': (
            "queries, keys, values = state.values()\n"
            '    return {"W_query": queries.T, "W_key": keys.T, "W_value": values.T}'
        )
    },
    breaks=("order",),
)  # fmt: skip
mistake(
    "v1_weights_from_v2", common="queries-and-keys-swapped",
    hint="Whose matrix stands under W_query?",
    change={
        'return {name.removesuffix(".weight"): weight.T for name, weight in state.items()}': (
            "return {\n"
            '        "W_query": state["W_key.weight"].T,\n'
            '        "W_key": state["W_query.weight"].T,\n'
            '        "W_value": state["W_value.weight"].T,\n'
            "    }"
        )
    },
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "one-matrix-for-all", "One matrix makes queries, keys and values",
    hint="How many different matrices go in, and how many come out?",
    change={
        "weight.T for": 'state["W_query.weight"].T for',
    },
)  # fmt: skip
mistake(
    "v1_weights_from_v2", common="values-are-keys",
    change={
        'return {name.removesuffix(".weight"): weight.T for name, weight in state.items()}': (
            "return {\n"
            '        "W_query": state["W_query.weight"].T,\n'
            '        "W_key": state["W_key.weight"].T,\n'
            '        "W_value": state["W_key.weight"].T,\n'
            "    }"
        )
    },
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "values-left-out", "Only queries and keys come back",
    hint="How many matrices does a v1 need?",
    change={"in state.items()}": 'in state.items() if "value" not in name}'},
)  # fmt: skip
mistake(
    "v1_weights_from_v2", "list-returned", "A list comes back, without any names",
    hint="How does load_state_dict know which matrix is which?",
    change={
        'return {name.removesuffix(".weight"): weight.T for name, weight in state.items()}': (
            "return [weight.T for weight in state.values()]"
        )
    },
    breaks=("returns",),
)  # fmt: skip
mistake("v1_weights_from_v2", common="float32-hard-coded", change={"weight.T": "weight.T.float()"})
mistake(
    "v1_weights_from_v2", "input-changed-in-place", "The caller's state is changed",
    common="input-changed-in-place",
    hint="Look at the state after the call: are its entries and its matrices what they were?",
    same_as={"state-emptied": "either way the state holds no longer what it held"},
)  # fmt: skip


@mistake(
    "v1_weights_from_v2", "state-emptied", "The caller's state is changed",
    hint="Look at the state after the call: are its entries and its matrices what they were?",
    breaks=("unchanged",),
    same_as={"input-changed-in-place": "either way the state holds no longer what it held"},
)  # fmt: skip
def v1_weights_in_place_of_v2s(state):
    for name in list(state):
        state[name.removesuffix(".weight")] = state.pop(name).T
    return state


@accepted("v1_weights_from_v2", "one-by-one", "Three entries, written out")
def v1_weights_one_by_one(state):
    return {
        "W_query": state["W_query.weight"].t(),
        "W_key": state["W_key.weight"].t(),
        "W_value": state["W_value.weight"].t(),
    }


@accepted("v1_weights_from_v2", "copies", "Copies, in another order, the names cut at the dot")
def v1_weights_copied(state):
    new_state = {}
    for name in sorted(state):
        new_state[name.split(".")[0]] = state[name].detach().clone().transpose(0, 1).contiguous()
    return new_state


@accepted("v1_weights_from_v2", "parameters", "Parameters, moved by einsum, names cut by length")
def v1_weights_as_parameters(state):
    return dict(
        (name[: -len(".weight")], nn.Parameter(torch.einsum("oi->io", weight)))
        for name, weight in state.items()
    )


@accepted("v1_weights_from_v2", "through-modules", "Through a layer's own state dict")
def v1_weights_through_a_module(state):
    d_out, d_in = state["W_query.weight"].shape
    holder = nn.ParameterDict(
        {
            part: torch.empty(d_in, d_out, dtype=state["W_query.weight"].dtype)
            for part in ("W_query", "W_key", "W_value")
        }
    )
    with torch.no_grad():
        for name, parameter in holder.items():
            parameter.copy_(state[f"{name}.weight"].permute(1, 0))
    return holder.state_dict()


# --- CausalHead ----------------------------------------------------------------------------------

common_mistakes("CausalHead", "no-scale")
mistake(
    "CausalHead", common="no-mask",
    change={"        attn_scores = attn_scores.masked_fill(future, -torch.inf)\n": ""},
)  # fmt: skip
mistake(
    "CausalHead", "hides-itself", "A token cannot see itself",
    hint="May the first token look at anything at all?",
    change={"diagonal=1": "diagonal=0"},
)  # fmt: skip
common_mistakes("CausalHead", "mask-fills-zero")
mistake("CausalHead", "mask-inverted", common="mask-opposite")
common_mistakes("CausalHead", "softmax-over-queries")
mistake("CausalHead", common="bias-left-on", breaks=("bias",))
mistake(
    "CausalHead", "mask-fills-minus-fifty",
    "Hidden scores become a low number, and visible ones can lie lower",
    hint="Is there a number so small that no score is smaller?",
    change={"-torch.inf": "-50.0"},
)  # fmt: skip
mistake(
    "CausalHead", "always-scaled", "The head scales whether asked to or not",
    hint="What should scaled=False change?",
    change={"if self.scaled:": "if True:"},
)  # fmt: skip
mistake(
    "CausalHead", common="mask-after-softmax",
    change={
        "attn_scores = attn_scores.masked_fill(future, -torch.inf)\n\n        ": "",
        "torch.softmax(attn_scores, dim=-1)": (
            "torch.softmax(attn_scores, dim=-1).masked_fill(future, 0.0)"
        ),
    },
)  # fmt: skip
common_mistakes(
    "CausalHead", "no-square-root", "half-of-the-length", "queries-and-keys-swapped",
    "values-are-keys", "scale-multiplied",
)  # fmt: skip
mistake(
    "CausalHead", "half-for-root", "1/2 without brackets is no exponent",
    hint="Which does Python do first, the power or the division?",
    change={"head_size**0.5": "head_size**1/2"},
)  # fmt: skip
mistake(
    "CausalHead", "root-of-four", "The scale fits keys of length 4 only",
    hint="How long are the keys of the next caller?",
    change={"head_size**0.5": "2.0"},
)  # fmt: skip
common_mistakes("CausalHead", "scale-by-d-in")
mistake("CausalHead", common="scale-by-number-of-keys", change={"head_size**0.5": "time**0.5"})
mistake(
    "CausalHead", common="scale-after-softmax",
    change={
        "attn_scores / head_size**0.5": "attn_scores",
        "attn_weights @ values": "attn_weights @ values / values.shape[-1] ** self.scaled ** 0.5",
    },
)  # fmt: skip
mistake(
    "CausalHead", "scaled-inverted", "The head scales just when it should not",
    hint="What should scaled=False change?",
    change={"if self.scaled:": "if not self.scaled:"},
)  # fmt: skip
mistake(
    "CausalHead", "unscaled-by-default", "Without a word on it, the head does not scale",
    hint="What does the caller get who passes two arguments only?",
    change={"scaled: bool = True": "scaled: bool = False"},
)  # fmt: skip
mistake(
    "CausalHead", "no-scaled-argument", "The constructor does not know scaled",
    hint="How many arguments may the caller pass?",
    change={", scaled: bool = True": "", "self.scaled = scaled": "self.scaled = True"},
)  # fmt: skip
common_mistakes("CausalHead", "mask-thrown-away", "sees-one-ahead")
mistake(
    "CausalHead", common="mask-transposed",
    change={"torch.triu(everything, diagonal=1)": "torch.tril(everything, diagonal=-1)"},
)  # fmt: skip
common_mistakes(
    "CausalHead", "mask-multiplies", "mask-fills-tiny", "mask-fills-infinity",
    "mask-times-infinity", "mask-added",
)  # fmt: skip
mistake(
    "CausalHead", "scores-replaced", "The weights do not depend on what the tokens say",
    hint="Do all tokens of the past deserve the same attention?",
    change={"attn_scores.masked_fill(future": "torch.zeros_like(attn_scores).masked_fill(future"},
)  # fmt: skip
mistake(
    "CausalHead", "softmax-over-first",
    "The softmax runs over the first dimension, which may be the batch",
    hint="May one sentence have a say in where another one looks?",
    change={"dim=-1": "dim=0"},
    breaks=("computes", "batch"),
)  # fmt: skip
mistake(
    "CausalHead", "one-maximum-for-all",
    "One maximum is taken off all scores, where each row has its own",
    hint="What is left of e**x in a row whose scores are all far below that maximum?",
    change={
        "torch.softmax(attn_scores, dim=-1)": (
            "torch.exp(attn_scores - attn_scores.max())\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        )
    },
    breaks=("batch",),
)  # fmt: skip
mistake(
    "CausalHead", common="no-softmax",
    change={"torch.softmax(attn_scores, dim=-1)": "attn_scores.masked_fill(future, 0.0)"},
)  # fmt: skip
mistake("CausalHead", common="keys-are-queries", change={"self.key(x)": "self.query(x)"})
common_mistakes("CausalHead", "t-on-a-batch")
mistake("CausalHead", common="weights-returned", breaks=("returns",))
mistake(
    "CausalHead", "batch-for-time", "Batch and time are mistaken for each other",
    hint="Which dimension comes first in x?",
    change={"_batch, time, _d_in": "time, _batch, _d_in"},
)  # fmt: skip
mistake(
    "CausalHead", "fixed-length", "The mask fits sentences of five tokens only",
    hint="How long is the next sentence?",
    change={"torch.ones(time, time,": "torch.ones(5, 5,"},
    breaks=("computes", "lengths"),
)  # fmt: skip
mistake(
    "CausalHead", "mask-not-cut",
    "The mask has the size of the longest sentence, whatever comes in",
    hint="How many tokens does the input have, and how many rows and columns has your mask?",
    change={
        "self.scaled = scaled": (
            "self.scaled = scaled\n"
            '        self.register_buffer("tril", torch.tril(torch.ones(16, 16)))'
        ),
        "masked_fill(future": "masked_fill(self.tril == 0",
    },
)  # fmt: skip
mistake(
    "CausalHead", "first-length-remembered", "The first sentence decides the length of all",
    hint="What happens when the second sentence is longer?",
    change={
        "self.scaled = scaled": "self.scaled = scaled\n        self.future = None",
        "attn_scores = attn_scores.masked_fill(future": (
            "if self.future is None:\n"
            "            self.future = future\n"
            "        attn_scores = attn_scores.masked_fill(self.future[:time, :time]"
        ),
    },
    breaks=("lengths",),
)  # fmt: skip
common_mistakes("CausalHead", "no-super-init")

mistake(
    "CausalHead", "python-list",
    "Torch finds no weights in the layer, and there is nothing to train",
    hint="What does list(layer.parameters()) show, and where does torch look?",
    change={
        re.compile(r"(self\.\w+) = (nn\.Linear.+)"): r"\1 = [\2]",
        re.compile(r"(self\.\w+)\(x\)"): r"\1[0](x)",
    },
)  # fmt: skip

mistake(
    "CausalHead", common="made-in-forward",
    change={
        re.compile(r" +self\.\w+ = nn\.Linear.+\n"): "",
        "self.scaled = scaled": "self.head_size, self.scaled = head_size, scaled",
        re.compile(r"self\.\w+\(x\)"): "nn.Linear(_d_in, self.head_size, bias=False)(x)",
    },
    same_as={"python-list": "Without parameters nothing can be adopted, and no test gets further"},
)  # fmt: skip

mistake(
    "CausalHead", common="calls-torch-attention",
    change={
        "attn_weights @ values": (
            "nn.functional.scaled_dot_product_attention(\n"
            "            queries, keys, values, is_causal=True, "
            "scale=None if self.scaled else 1.0\n"
            "        )"
        )
    },
)  # fmt: skip
common_mistakes("CausalHead", "detached")
mistake(
    "CausalHead", common="in-place-after-softmax",
    change={
        "return attn_weights @ values": (
            "attn_weights[:, future] = 0.0\n        return attn_weights @ values"
        )
    },
    breaks=("gradients",),
)  # fmt: skip
common_mistakes("CausalHead", "float32-hard-coded")
mistake(
    "CausalHead", common="input-changed-in-place",
    change={
        "return attn_weights @ values": (
            "x.data -= x.data.mean(dim=-1, keepdim=True)\n        return attn_weights @ values"
        )
    },
    breaks=("unchanged", "gradients"),
)  # fmt: skip
mistake(
    "CausalHead", "input-changed-without-gradient",
    "Where no gradient is asked for, the caller's tensor is changed in place",
    hint="Who else may still need that tensor, even if no gradient does?",
    change={
        "return attn_weights @ values": (
            "if not x.requires_grad:\n"
            "            x -= x.mean(dim=-1, keepdim=True)\n"
            "        return attn_weights @ values"
        )
    },
    breaks=("unchanged",),
)  # fmt: skip

accepted(
    "CausalHead", "arange", "Positions are counted and compared",
    change={
        "everything = torch.ones(time, time, dtype=torch.bool, device=x.device)": (
            "step = torch.arange(time, device=x.device)"
        ),
        "torch.triu(everything, diagonal=1)": "step[None, :] > step[:, None]",
    },
)  # fmt: skip
accepted(
    "CausalHead", "minus-billion", "A score of -1e9 for minus infinity",
    change={"-torch.inf": "-1e9"},
)  # fmt: skip
accepted(
    "CausalHead", "scale-as-number", "The scale is a factor of the queries",
    change={
        "self.scaled = scaled": "self.factor = head_size**-0.5 if scaled else 1.0",
        "if self.scaled:\n            head_size = keys.shape[-1]\n"
        "            attn_scores = attn_scores / head_size**0.5": "attn_scores *= self.factor",
    },
)  # fmt: skip
accepted(
    "CausalHead", "added-mask", "Minus infinities above the diagonal, added",
    change={
        "attn_scores.masked_fill(future, -torch.inf)": (
            "attn_scores + torch.zeros_like(attn_scores).masked_fill(future, -torch.inf)"
        )
    },
)  # fmt: skip
accepted(
    "CausalHead", "earlier-answer", "The formula of this unit, on scaled-up queries",
    change={
        "return attn_weights @ values": (
            "if not self.scaled:\n"
            "            queries = queries * keys.shape[-1] ** 0.5\n"
            "        return scaled_dot_product_attention(queries, keys, values, future)"
        )
    },
)  # fmt: skip


@accepted("CausalHead", "float-buffer", "A large float triangle in a buffer, cut to the sentence")
class HeadWithBuffer(nn.Module):
    def __init__(self, d_in, head_size, scaled=True):
        super().__init__()
        self.query = nn.Linear(d_in, head_size, bias=False)
        self.key = nn.Linear(d_in, head_size, bias=False)
        self.value = nn.Linear(d_in, head_size, bias=False)
        self.use_scale = scaled
        self.register_buffer("tril", torch.tril(torch.ones(256, 256)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        wei = torch.bmm(q, k.transpose(1, 2))
        if self.use_scale:
            wei = wei * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ v


@accepted("CausalHead", "renormalised", "Zeros after the softmax, made up to one")
class HeadRenormalised(nn.Module):
    def __init__(self, d_in, head_dim, use_scale=True):
        super().__init__()
        self.qkv = nn.Linear(d_in, 3 * head_dim, bias=False)
        self.scale = math.sqrt(head_dim) if use_scale else 1

    def forward(self, x):
        queries, keys, values = self.qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(queries @ keys.mT / self.scale, dim=-1).tril()
        return weights / weights.sum(dim=-1, keepdim=True) @ values


@accepted("CausalHead", "step-by-step", "A loop over time, with nothing to hide")
class HeadStepByStep(nn.Module):
    def __init__(self, d_in, head_size, scaled=True):
        super().__init__()
        self.Wq = nn.Parameter(torch.randn(d_in, head_size))
        self.Wk = nn.Parameter(torch.randn(d_in, head_size))
        self.Wv = nn.Parameter(torch.randn(d_in, head_size))
        self.scaled = scaled

    def forward(self, x):
        keys, values = x @ self.Wk, x @ self.Wv
        out = []
        for t in range(x.shape[1]):
            scores = keys[:, : t + 1] @ (x[:, t] @ self.Wq).unsqueeze(-1)
            if self.scaled:
                scores = scores / math.sqrt(keys.shape[-1])
            weights = torch.softmax(scores, dim=1)
            out.append((weights * values[:, : t + 1]).sum(dim=1))
        return torch.stack(out, dim=1)


@accepted("scaled_scores", "dot-by-dot", "A loop over queries, and one over keys")
def scaled_scores(queries, keys):
    if queries.dim() > 2:
        return torch.stack([scaled_scores(q, k) for q, k in zip(queries, keys)])
    root = queries.shape[-1] ** 0.5
    return torch.stack([torch.stack([torch.dot(q, k) / root for k in keys]) for q in queries])


@accepted("SelfAttention_v1", "scale-kept-as-a-parameter", "The scale is kept, and not trained")
class ScaleKept(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.scale = nn.Parameter(torch.tensor([d_out**-0.5]), requires_grad=False)

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T * self.scale, dim=-1) @ values
