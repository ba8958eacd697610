"""Known answers of unit 13: mistakes, and right answers in other forms."""

import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake

# --- head_weights ---------------------------------------------------------------------------------

common_mistakes(
    "head_weights", "no-scale", "no-square-root", "half-of-the-length", "scale-multiplied",
    "scale-tokens", "scale-always-two", "scale-after-softmax",
    "softmax-over-queries", "softmax-over-heads", "no-softmax", "log-weights", "all-weights-equal",
    "no-mask", "mask-thrown-away", "mask-opposite", "mask-opposite-and-zeros", "mask-transposed",
    "sees-one-ahead", "hides-itself", "hides-itself-and-fills-zeros", "mask-for-one-head",
    "mask-fills-zero", "mask-multiplies", "mask-fills-tiny", "mask-fills-minus-one",
    "mask-fills-infinity", "mask-times-infinity", "mask-added", "mask-subtracted",
    "mask-after-softmax", "queries-and-keys-swapped", "keys-of-the-first-head", "all-zeros",
    "nothing-returned", "no-gradient", "float32-inside", "returns-float32", "returns-float64",
    "squeezed",
)  # fmt: skip
mistake("head_weights", common="softmax-over-batch", breaks=("computes", "batch"))
mistake("head_weights", common="mask-fills-minus-hundred", breaks=("large",))

mistake(
    "head_weights", common="scale-d-out",
    change={"head_dim**0.5": "W_query.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "head_weights", "scale-d-in", "The scores are divided by the root of d_in",
    hint="How long are the vectors that meet in a dot product?",
    change={"head_dim**0.5": "x.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "head_weights", common="scale-num-heads",
    change={"head_dim**0.5": "num_heads**0.5"},
)  # fmt: skip

mistake(
    "head_weights", common="keys-are-queries",
    change={"x @ W_key": "x @ W_query"},
)  # fmt: skip

mistake(
    "head_weights", "matrices-transposed",
    "The matrices are transposed, as if they came from nn.Linear as they are",
    hint="Which of its two dimensions does each matrix share with a token?",
    change={"x @ W_query": "x @ W_query.T", "x @ W_key": "x @ W_key.T"},
)  # fmt: skip

mistake(
    "head_weights", "matrices-as-layers",
    "F.linear takes matrices as nn.Linear stores them, and these are stored the other way round",
    hint="Which of its two dimensions does each matrix share with a token?",
    change={
        "x @ W_query": "nn.functional.linear(x, W_query)",
        "x @ W_key": "nn.functional.linear(x, W_key)",
    },
    same_as={"matrices-transposed": "F.linear multiplies with the transpose"},
)  # fmt: skip

mistake(
    "head_weights", common="every-nth-feature",
    change={
        "split_heads(x @ W_query, num_heads)": (
            "(x @ W_query).unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)"
        ),
        "split_heads(x @ W_key, num_heads)": (
            "(x @ W_key).unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", common="reshaped-into-heads",
    change={
        "split_heads(x @ W_query, num_heads)": (
            "(x @ W_query).reshape(x.shape[0], num_heads, tokens, -1)"
        ),
        "split_heads(x @ W_key, num_heads)": (
            "(x @ W_key).reshape(x.shape[0], num_heads, tokens, -1)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "keys-not-split-alike",
    "The keys are cut into heads in another way than the queries",
    hint="Are your two lines that split alike?",
    change={
        "split_heads(x @ W_key, num_heads)": (
            "(x @ W_key).reshape(x.shape[0], num_heads, tokens, -1)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "one-softmax-for-all-heads",
    "The features are never cut into heads, and all heads show the same weights",
    hint="How many softmaxes does each token get?",
    change={
        "split_heads(x @ W_query, num_heads)": "split_heads(x @ W_query, 1)",
        "split_heads(x @ W_key, num_heads)": "split_heads(x @ W_key, 1)",
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask).expand(-1, num_heads, -1, -1)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "not-split-at-all", "The features are never cut into heads",
    hint="How many tables of weights should there be for a sentence?",
    breaks=("returns",),
    change={
        "split_heads(x @ W_query, num_heads)": "split_heads(x @ W_query, 1)",
        "split_heads(x @ W_key, num_heads)": "split_heads(x @ W_key, 1)",
    },
)  # fmt: skip

mistake(
    "head_weights", "heads-averaged", "The weights of all heads are averaged",
    hint="What does the average show of two heads that look at different tokens?",
    breaks=("returns",),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask).mean(dim=1)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "heads-averaged-and-shown-for-each",
    "Every head shows the average of all heads",
    hint="What does the average show of two heads that look at different tokens?",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask).mean(dim=1, keepdim=True).expand_as("
            "attn_scores)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "heads-after-queries", "The queries come first, and then the heads",
    hint="In which order does the statement name the four dimensions?",
    breaks=("returns",),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask).transpose(1, 2)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", common="heads-reversed",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask).flip(1)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "keys-down", "Keys go down, and queries go across",
    hint="Does a row belong to the token that looks, or to the one that is looked at?",
    change={
        "return masked_softmax(attn_scores, mask)": "return masked_softmax(attn_scores, mask).mT",
    },
)  # fmt: skip

mistake(
    "head_weights", "scores-returned", "The scores are returned, before the softmax",
    hint="What do the weights of a query sum to?",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return attn_scores.masked_fill(mask, -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "keys-mixed", "The weights mix the keys, and the mix is returned",
    hint="What is asked for: what a head looks at, or what it finds there?",
    breaks=("returns",),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask) @ keys"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "first-sentence-only", "All sentences show the weights of the first one",
    hint="Whose weights does the second sentence show?",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask)[:1].expand_as(attn_scores)"
        ),
    },
    breaks=("computes", "batch"),
)  # fmt: skip

mistake(
    "head_weights", "rounded-for-display", "The weights are rounded to two digits",
    hint="Do the weights of a query still sum to one?",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "return masked_softmax(attn_scores, mask).round(decimals=2)"
        ),
    },
    breaks=("computes",),
)  # fmt: skip

mistake(
    "head_weights", common="one-maximum-for-all", breaks=("batch", "large"),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "positive = torch.exp(attn_scores - attn_scores.max()).masked_fill(mask, 0.0)\n"
            "    return positive / positive.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", common="one-maximum-per-head", breaks=("batch",),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "highest = attn_scores.amax(dim=(0, 2, 3), keepdim=True)\n"
            "    positive = torch.exp(attn_scores - highest).masked_fill(mask, 0.0)\n"
            "    return positive / positive.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", common="one-maximum-per-sentence", breaks=("large",),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "highest = attn_scores.amax(dim=(1, 2, 3), keepdim=True)\n"
            "    positive = torch.exp(attn_scores - highest).masked_fill(mask, 0.0)\n"
            "    return positive / positive.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "exp-without-a-shift", "exp overflows, and large scores become NaN",
    hint="What is exp(800) in float32, and what did softmax_stable do about it?",
    breaks=("large", "batch"),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "positive = torch.exp(attn_scores).masked_fill(mask, 0.0)\n"
            "    return positive / positive.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", "keys-detached", "The keys' matrix gets no gradient",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"x @ W_key": "x @ W_key.detach()"},
)  # fmt: skip

mistake(
    "head_weights", common="in-place-after-softmax", breaks=("gradients",),
    change={
        "return masked_softmax(attn_scores, mask)": (
            "attn_weights = torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=-1)\n"
            "    return attn_weights.masked_fill_(mask, 0.0)"
        ),
    },
)  # fmt: skip

mistake(
    "head_weights", common="input-changed-in-place", breaks=("unchanged",),
    change={
        "tokens = x.shape[1]": (
            "tokens = x.shape[1]\n"
            "    if not W_query.requires_grad:\n"
            "        W_query.div_((W_query.shape[-1] // num_heads) ** 0.5)\n"
            "    else:\n"
            "        W_query = W_query / (W_query.shape[-1] // num_heads) ** 0.5"
        ),
        " / head_dim**0.5": "",
    },
)  # fmt: skip

mistake(
    "head_weights", common="calls-torch-attention",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "values = torch.eye(tokens, dtype=x.dtype).expand_as(attn_scores)\n"
            "    return nn.functional.scaled_dot_product_attention(\n"
            "        queries, keys, values, is_causal=True\n"
            "    )"
        ),
    },
)  # fmt: skip


@accepted("head_weights", "as-people-write-it", "view, transpose, masked_fill, F.softmax")
def weights_as_people_write_them(x, W_q, W_k, n_heads):
    B, T, C = x.shape
    d_k = W_q.shape[1] // n_heads
    q = (x @ W_q).view(B, T, n_heads, d_k).transpose(1, 2)
    k = (x @ W_k).view(B, T, n_heads, d_k).transpose(1, 2)
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(d_k)
    mask = torch.tril(torch.ones(T, T))
    scores = scores.masked_fill(mask == 0, float("-inf"))
    return F.softmax(scores, dim=-1)


@accepted("head_weights", "head-by-head", "A loop over the heads, slices and a stack")
def weights_head_by_head(x, W_query, W_key, num_heads):
    width = W_query.shape[1] // num_heads
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    found = []
    for head in range(num_heads):
        own = slice(head * width, (head + 1) * width)
        scores = (x @ W_query[:, own]) @ (x @ W_key[:, own]).mT * width**-0.5
        found.append(scores.masked_fill(future, -torch.inf).softmax(dim=-1))
    return torch.stack(found, dim=1)


@accepted("head_weights", "einsum", "einsum throughout, and a mask that is added")
def weights_by_letters(x, W_query, W_key, num_heads):
    query = torch.einsum("btc,chd->bhtd", x, W_query.unflatten(1, (num_heads, -1)))
    key = torch.einsum("btc,chd->bhtd", x, W_key.unflatten(1, (num_heads, -1)))
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / query.shape[-1] ** 0.5
    tokens = x.shape[1]
    return (scores + torch.full((tokens, tokens), -torch.inf, dtype=x.dtype).triu(1)).softmax(-1)


@accepted("head_weights", "through-the-form", "One matrix per head compares tokens directly")
def weights_through_the_form(x, W_query, W_key, num_heads):
    queries = W_query.unflatten(1, (num_heads, -1)).movedim(1, 0)
    keys = W_key.unflatten(1, (num_heads, -1)).movedim(1, 0)
    forms = queries @ keys.mT / queries.shape[-1] ** 0.5
    scores = x[:, None] @ forms @ x[:, None].mT
    places = torch.arange(x.shape[1])
    return scores.masked_fill(places > places[:, None], -1e9).softmax(dim=-1)


@accepted("head_weights", "row-by-row", "A row for every query, over its past alone")
def weights_row_by_row(x, W_query, W_key, num_heads):
    queries, keys = (
        (x @ matrix).unflatten(-1, (num_heads, -1)).transpose(1, 2) for matrix in (W_query, W_key)
    )
    tokens, rows = x.shape[1], []
    for i in range(tokens):
        scores = (queries[:, :, i : i + 1] * keys[:, :, : i + 1]).sum(-1) / keys.shape[-1] ** 0.5
        rows.append(F.pad(scores.softmax(dim=-1), (0, tokens - 1 - i)))
    return torch.stack(rows, dim=2)


@accepted("head_weights", "softmax-by-hand", "The softmax by hand, with a maximum for each row")
def weights_by_hand(x, W_query, W_key, num_heads):
    queries = torch.stack((x @ W_query).chunk(num_heads, dim=-1), dim=1)
    keys = torch.stack((x @ W_key).chunk(num_heads, dim=-1), dim=1)
    scores = torch.matmul(queries / keys.shape[-1] ** 0.5, keys.permute(0, 1, 3, 2))
    lower = torch.ones_like(scores).tril().bool()
    scores = torch.where(lower, scores, torch.finfo(x.dtype).min)
    positive = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return positive / positive.sum(dim=-1, keepdim=True)


accepted(
    "head_weights", "renormalized-afterwards", "Zeroed after the softmax, then renormalised",
    change={
        "return masked_softmax(attn_scores, mask)": (
            "weights = torch.softmax(attn_scores, dim=-1).masked_fill(mask, 0.0)\n"
            "    return weights / weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    "head_weights", "float64-softmax", "The softmax runs in float64, and is cast back",
    change={
        "masked_softmax(attn_scores, mask)": (
            "masked_softmax(attn_scores.double(), mask).to(x.dtype)"
        ),
    },
)  # fmt: skip

# --- bilinear_form --------------------------------------------------------------------------------

mistake(
    "bilinear_form", "key-first", "The matrix of the keys comes first, so queries go across",
    hint="Which of the two matrices meets the token on the left?",
    change={"W_query @ W_key.T": "W_key @ W_query.T"},
)  # fmt: skip

mistake(
    "bilinear_form", "result-transposed",
    "Features of the query go across, and those of the key down",
    hint="In x · form · xᵀ, which token meets the rows of the form?",
    change={"W_query @ W_key.T": "(W_query @ W_key.T).T"},
    same_as={"key-first": "the transpose of the product is the product the other way round"},
)  # fmt: skip

mistake(
    "bilinear_form", "first-transposed",
    "The first matrix is transposed, and features of queries meet features of keys",
    hint="Which dimension do both matrices share that should vanish: d_in or d_out?",
    change={"W_query @ W_key.T": "W_query.T @ W_key"},
)  # fmt: skip

mistake(
    "bilinear_form", "not-transposed", "Neither matrix is transposed, and the shapes do not meet",
    hint="Write both shapes side by side: which two numbers must be equal?",
    change={"W_query @ W_key.T": "W_query @ W_key"},
)  # fmt: skip

mistake(
    "bilinear_form", "number-by-number", "The matrices are multiplied number by number",
    hint="What does * do with two matrices, and what does @?",
    breaks=("returns",),
    change={"W_query @ W_key.T": "W_query * W_key"},
)  # fmt: skip

mistake(
    "bilinear_form", "scaled", "The form is divided by the root of d_out",
    hint="What are x · form · xᵀ to be: scores that are scaled already, or not yet?",
    change={"W_query @ W_key.T": "W_query @ W_key.T / W_key.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "bilinear_form", "scaled-by-d-in", "The form is divided by the root of d_in",
    hint="What are x · form · xᵀ to be: scores that are scaled already, or not yet?",
    change={"W_query @ W_key.T": "W_query @ W_key.T / W_key.shape[0] ** 0.5"},
)  # fmt: skip

mistake(
    "bilinear_form", "softmaxed", "A softmax is taken over the form",
    hint="Is an entry of the form a weight, or a part of a score?",
    change={"W_query @ W_key.T": "torch.softmax(W_query @ W_key.T, dim=-1)"},
)  # fmt: skip

mistake(
    "bilinear_form", "masked", "The entries above the diagonal are hidden",
    hint="What are rows and columns of the form: tokens, or features?",
    change={"W_query @ W_key.T": "(W_query @ W_key.T).tril()"},
)  # fmt: skip

mistake(
    "bilinear_form", "query-twice", "The queries' matrix stands on both sides",
    hint="If a token searches as it is found, what do you know about the form?",
    change={"W_query @ W_key.T": "W_query @ W_query.T"},
)  # fmt: skip

mistake(
    "bilinear_form", "key-twice", "The keys' matrix stands on both sides",
    hint="If a token searches as it is found, what do you know about the form?",
    change={"W_query @ W_key.T": "W_key @ W_key.T"},
)  # fmt: skip

mistake(
    "bilinear_form", "made-symmetric", "The form is averaged with its transpose",
    hint="Does A search for B as much as B for A?",
    change={
        "return W_query @ W_key.T": (
            "form = W_query @ W_key.T\n"
            "    return (form + form.T) / 2"
        ),
    },
)  # fmt: skip

mistake(
    "bilinear_form", "diagonal-only", "Each feature is compared with itself only",
    hint="May one feature of the query search for another feature of the key?",
    change={"W_query @ W_key.T": "torch.diag((W_query * W_key).sum(dim=-1))"},
)  # fmt: skip

mistake(
    "bilinear_form", "first-column-only", "Only the first feature of queries and keys counts",
    hint="Over which dimension does the product sum, and how long is it?",
    change={"W_query @ W_key.T": "torch.outer(W_query[:, 0], W_key[:, 0])"},
)  # fmt: skip

mistake(
    "bilinear_form", "guessed-from-the-shape",
    "The layout is guessed: matrices with more columns than rows are transposed first",
    hint="May a head have more features than a token?",
    breaks=("computes", "returns"),
    change={
        "return W_query @ W_key.T": (
            "if W_query.shape[1] > W_query.shape[0]:\n"
            "        return W_query.T @ W_key\n"
            "    return W_query @ W_key.T"
        ),
    },
)  # fmt: skip

mistake(
    "bilinear_form", "key-detached", "The keys' matrix gets no gradient",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"W_key.T": "W_key.T.detach()"},
)  # fmt: skip

mistake(
    "bilinear_form", common="input-changed-in-place", breaks=("unchanged",),
    change={"W_key.T": "W_key.t_()"},
)  # fmt: skip

common_mistakes(
    "bilinear_form", "no-gradient", "returns-float32", "returns-float64", "all-zeros", "squeezed",
    "nothing-returned", "float32-inside",
)  # fmt: skip

mistake(
    "bilinear_form", common="calls-torch-attention",
    change={
        "return W_query @ W_key.T": (
            "nn.functional.scaled_dot_product_attention(W_query, W_key, W_key)\n"
            "    return W_query @ W_key.T"
        ),
    },
)  # fmt: skip


@accepted("bilinear_form", "einsum", "einsum over the shared dimension")
def form_by_letters(W_q, W_k):
    return torch.einsum("id,jd->ij", W_q, W_k)


@accepted("bilinear_form", "matmul-transpose", "matmul, transpose, and other names")
def form_by_matmul(Wq, Wk):
    return torch.matmul(Wq, Wk.transpose(0, 1))


@accepted("bilinear_form", "linear", "F.linear, which transposes by itself")
def form_by_linear(W_query, W_key):
    return F.linear(W_query, W_key)


@accepted("bilinear_form", "outer-products", "A sum of outer products, a feature at a time")
def form_by_outer_products(W_query, W_key):
    form = torch.zeros(W_query.shape[0], W_key.shape[0], dtype=W_query.dtype)
    for feature in range(W_query.shape[1]):
        form = form + torch.outer(W_query[:, feature], W_key[:, feature])
    return form


@accepted("bilinear_form", "broadcast", "Broadcast, multiplied and summed")
def form_by_broadcasting(W_query, W_key):
    return (W_query[:, None, :] * W_key[None, :, :]).sum(dim=-1)


@accepted("bilinear_form", "tokens-of-one", "The scores of tokens that have a single feature each")
def form_as_scores(W_query, W_key):
    tokens = torch.eye(W_query.shape[0], dtype=W_query.dtype)
    return (tokens @ W_query) @ (tokens @ W_key).T


@accepted("bilinear_form", "turned-twice", "The other product, transposed")
def form_turned_twice(W_query, W_key):
    return (W_key @ W_query.T).T


# --- absorb_keys ----------------------------------------------------------------------------------

CUT_QUERIES = "W_query.reshape(d_in, num_heads, -1).transpose(0, 1)"
CUT_KEYS = "W_up_key.reshape(d_latent, num_heads, -1).transpose(0, 1)"
PRODUCT = "queries @ keys.transpose(-2, -1)"

mistake(
    "absorb_keys", "over-all-heads",
    "Both matrices are multiplied as a whole, and all heads get the sum of them all",
    hint="How many softmaxes does each token get, and on which scores?",
    change={PRODUCT: "(W_query @ W_up_key.T).expand(num_heads, -1, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "one-for-all-heads", "Both matrices are multiplied as a whole, heads and all",
    hint="How many matrices does the statement ask for?",
    breaks=("returns",),
    change={PRODUCT: "W_query @ W_up_key.T"},
)  # fmt: skip

mistake(
    "absorb_keys", "shared-out", "The product of both matrices as a whole is shared out evenly",
    hint="Which columns make the queries of head 0?",
    change={PRODUCT: "(W_query @ W_up_key.T).expand(num_heads, -1, -1) / num_heads"},
)  # fmt: skip

mistake(
    "absorb_keys", common="every-nth-feature",
    change={
        CUT_QUERIES: "W_query.unflatten(-1, (-1, num_heads)).permute(2, 0, 1)",
        CUT_KEYS: "W_up_key.unflatten(-1, (-1, num_heads)).permute(2, 0, 1)",
    },
)  # fmt: skip

mistake(
    "absorb_keys", "keys-every-nth-feature",
    "The columns of W_query are cut into neighbours, and those of W_up_key into every so-many-th",
    hint="Are your two lines that cut alike?",
    change={CUT_KEYS: "W_up_key.unflatten(-1, (-1, num_heads)).permute(2, 0, 1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "reshaped-into-heads",
    "The matrices are reshaped straight into heads, which mixes rows with columns",
    hint="Follow the first row of W_query: in which head do its last columns end up?",
    change={
        CUT_QUERIES: "W_query.reshape(num_heads, W_query.shape[0], -1)",
        CUT_KEYS: "W_up_key.reshape(num_heads, W_up_key.shape[0], -1)",
    },
)  # fmt: skip

mistake(
    "absorb_keys", "reshaped-to-head-dim",
    "The matrices are reshaped with head_dim before the rows, where they should be turned",
    hint="In W_query, what do the rows stand for, and what do the columns?",
    change={
        CUT_QUERIES: "W_query.reshape(num_heads, -1, W_query.shape[0]).mT",
        CUT_KEYS: "W_up_key.reshape(num_heads, -1, W_up_key.shape[0]).mT",
    },
)  # fmt: skip

mistake(
    "absorb_keys", "keys-of-the-first-head", "All heads absorb the keys of the first one",
    hint="Whose keys does head 1 look at?",
    change={PRODUCT: "queries @ keys[:1].transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "queries-of-the-first-head", "All heads have the queries of the first one",
    hint="Which columns of W_query belong to head 1?",
    change={PRODUCT: "queries[:1] @ keys.transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "scaled", "The matrices are divided by the root of head_dim",
    hint="What are x · absorbed · latentᵀ to be: scores that are scaled already, or not yet?",
    change={PRODUCT: f"{PRODUCT} / keys.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "absorb_keys", "scaled-by-the-latent", "The matrices are divided by the root of d_latent",
    hint="What are x · absorbed · latentᵀ to be: scores that are scaled already, or not yet?",
    change={PRODUCT: f"{PRODUCT} / W_up_key.shape[0] ** 0.5"},
)  # fmt: skip

mistake(
    "absorb_keys", "multiplied-by-the-root", "The matrices are multiplied by the root of head_dim",
    hint="Which scores are x · absorbed · latentᵀ: those before the scale, or more than those?",
    change={PRODUCT: f"{PRODUCT} * keys.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "absorb_keys", "latents-down", "Features of latents go down, and those of tokens across",
    hint="In x · absorbed · latentᵀ, which of the two meets the rows?",
    breaks=("returns",),
    change={PRODUCT: "keys @ queries.transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "heads-in-the-middle", "The heads are the second dimension, and not the first",
    hint="In which order does the statement name the three dimensions?",
    breaks=("returns",),
    change={PRODUCT: f"({PRODUCT}).transpose(0, 1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "heads-last", "The heads are the last dimension, and not the first",
    hint="In which order does the statement name the three dimensions?",
    breaks=("returns",),
    change={PRODUCT: f"({PRODUCT}).movedim(0, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "heads-side-by-side", "The heads stand side by side in one long matrix",
    hint="How many dimensions does the statement give it?",
    breaks=("returns",),
    change={PRODUCT: f"({PRODUCT}).movedim(0, 1).flatten(1)"},
)  # fmt: skip

mistake(
    "absorb_keys", common="heads-reversed",
    change={PRODUCT: f"({PRODUCT}).flip(0)"},
)  # fmt: skip

mistake(
    "absorb_keys", "keys-reversed", "The first head absorbs the keys of the last one",
    hint="Whose keys does head 0 look at?",
    change={PRODUCT: "queries @ keys.flip(0).transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "not-transposed",
    "The keys' matrix is not transposed, and the shapes do not meet",
    hint="Write both shapes of a head side by side: which two numbers must be equal?",
    change={PRODUCT: "queries @ keys"},
)  # fmt: skip

mistake(
    "absorb_keys", "cut-along-the-rows",
    "The rows are cut into heads, as if the matrices came from nn.Linear as they are",
    hint="Which dimension of these matrices has d_out numbers?",
    change={
        CUT_QUERIES: "W_query.T.unflatten(-1, (num_heads, -1)).transpose(0, 1)",
        CUT_KEYS: "W_up_key.T.unflatten(-1, (num_heads, -1)).transpose(0, 1)",
    },
)  # fmt: skip

mistake(
    "absorb_keys", "num-heads-as-width", "num_heads is taken for the width of a head",
    hint="With d_out = 12 and three heads, how many matrices are there?",
    breaks=("computes", "returns"),
    change={
        CUT_QUERIES: "W_query.unflatten(-1, (-1, num_heads)).transpose(0, 1)",
        CUT_KEYS: "W_up_key.unflatten(-1, (-1, num_heads)).transpose(0, 1)",
    },
)  # fmt: skip

mistake(
    "absorb_keys", "softmaxed", "A softmax is taken over the result",
    hint="Is an entry of it a weight, or a part of a score?",
    change={PRODUCT: f"torch.softmax({PRODUCT}, dim=-1)"},
)  # fmt: skip

mistake(
    "absorb_keys", "key-detached", "The keys' matrix gets no gradient",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={PRODUCT: "queries @ keys.detach().transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "absorb_keys", common="input-changed-in-place", breaks=("unchanged",),
    change={
        CUT_KEYS: "W_up_key.t_().unflatten(0, (num_heads, -1)).transpose(-2, -1)",
    },
)  # fmt: skip

common_mistakes(
    "absorb_keys", "no-gradient", "returns-float32", "returns-float64", "all-zeros", "squeezed",
    "nothing-returned", "float32-inside",
)  # fmt: skip

mistake(
    "absorb_keys", common="calls-torch-attention",
    change={
        f"return {PRODUCT}": (
            "nn.functional.scaled_dot_product_attention(queries, keys, keys)\n"
            f"    return {PRODUCT}"
        ),
    },
)  # fmt: skip


@accepted("absorb_keys", "loop", "A loop over the heads, slices and a stack")
def absorbed_head_by_head(W_query, W_up_key, num_heads):
    width = W_query.shape[1] // num_heads
    found = []
    for head in range(num_heads):
        own = slice(head * width, (head + 1) * width)
        found.append(W_query[:, own] @ W_up_key[:, own].T)
    return torch.stack(found)


@accepted("absorb_keys", "einsum", "einsum, with the heads as a letter")
def absorbed_by_letters(W_q, W_uk, n_heads):
    W_q = W_q.reshape(W_q.shape[0], n_heads, -1)
    W_uk = W_uk.reshape(W_uk.shape[0], n_heads, -1)
    return torch.einsum("ihd,lhd->hil", W_q, W_uk)


@accepted("absorb_keys", "as-layers-store-it", "Transposed first, as nn.Linear stores matrices")
def absorbed_from_layers(W_query, W_up_key, num_heads):
    query = W_query.T.contiguous().view(num_heads, -1, W_query.shape[0])
    up_key = W_up_key.T.contiguous().view(num_heads, -1, W_up_key.shape[0])
    return torch.bmm(query.transpose(1, 2), up_key)


@accepted("absorb_keys", "chunks", "Chunks, and a list")
def absorbed_by_chunks(W_query, W_up_key, num_heads):
    pairs = zip(W_query.chunk(num_heads, dim=1), W_up_key.chunk(num_heads, dim=1))  # noqa: B905
    return torch.stack([query.matmul(key.t()) for query, key in pairs], dim=0)


@accepted("absorb_keys", "masked-columns", "All columns but a head's own are multiplied by zero")
def absorbed_by_masks(W_query, W_up_key, num_heads):
    heads = torch.arange(W_query.shape[1]) // (W_query.shape[1] // num_heads)
    own = heads == torch.arange(num_heads)[:, None]
    return (W_query * own[:, None].to(W_query.dtype)) @ W_up_key.T


@accepted("absorb_keys", "filled", "A new tensor of the right dtype, filled head by head")
def absorbed_into_a_tensor(W_query, W_up_key, num_heads):
    d_in, d_out = W_query.shape
    head_dim = d_out // num_heads
    result = W_query.new_zeros(num_heads, d_in, W_up_key.size(0))
    for h in range(num_heads):
        for c in range(h * head_dim, (h + 1) * head_dim):
            result[h] += torch.outer(W_query[:, c], W_up_key[:, c])
    return result


# --- EncoderDecoderBlock --------------------------------------------------------------------------

OWN = "h = x + self.attention(self.norm1(x))[0]  # causal; the cache is of no use here"
OTHER = "h = h + self.cross(self.norm2(h), context, context_mask)"
NETWORK = "return h + self.feed_forward(self.norm3(h))"
OWN_LAYER = "self.attention = CachedAttention(d_model, d_model, num_heads)"
TWO_WAYS = "self.attention = CrossAttention(d_model, d_model, d_model, num_heads)"

mistake(
    "EncoderDecoderBlock", "context-normed", "The context goes through the second norm as well",
    hint="Who has normed the context already, and what comes into your block?",
    change={OTHER: "h = h + self.cross(self.norm2(h), self.norm2(context), context_mask)"},
    breaks=("computes",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "only-context-normed", "The norm is on the context, and not on x",
    hint="Which of the two sequences does each norm belong to?",
    change={OTHER: "h = h + self.cross(h, self.norm2(context), context_mask)"},
    breaks=("computes",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "roles-swapped", "The context asks, and x answers",
    hint="From which sequence come the queries: which one gets a result for each of its tokens?",
    change={
        OTHER: "h = h + self.cross(context, self.norm2(h))",
    },
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "not-causal", "Self-attention sees the future",
    hint="What may token 2 of x know of token 3?",
    change={OWN_LAYER: TWO_WAYS, OWN: "n = self.norm1(x)\n        h = x + self.attention(n, n)"},
    breaks=("computes", "causal"),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "mask-ignored", "Hidden tokens of the context are read all the same",
    hint="Where does context_mask go?",
    change={OTHER: "h = h + self.cross(self.norm2(h), context)"},
    breaks=("computes", "hidden"),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "mask-opposite", "The mask hides what it should show",
    hint="In this kit, does True mean \"look here\" or \"do not look here\"?",
    change={
        OTHER: (
            "h = h + self.cross(self.norm2(h), context, None if context_mask is None else "
            "~context_mask)"
        ),
    },
    breaks=("computes", "hidden"),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "hidden-zeroed", "Hidden tokens of the context become zero, and stay",
    hint="A vector of zeros gets a score, and so a weight. Which?",
    change={
        OTHER: (
            "if context_mask is not None:\n"
            "            context = context.masked_fill(context_mask[..., None], 0.0)\n"
            "        h = h + self.cross(self.norm2(h), context)"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-context", "The context is never read",
    hint="Does your result change with the context?",
    change={OTHER: "h = h + self.cross(self.norm2(h), self.norm2(h))"},
    breaks=("computes",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "context-first", "The context is read before one's own sentence",
    hint="Which of the two attentions comes first?",
    change={
        OWN: "h = x + self.cross(self.norm2(x), context, context_mask)",
        OTHER: "h = h + self.attention(self.norm1(h))[0]",
    },
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "side-by-side", "Both attentions read x, side by side",
    hint="What does the second attention ask with: x, or what the first one made of it?",
    change={OTHER: "h = h + self.cross(self.norm2(x), context, context_mask)"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "one-attention", "Both attentions share their weights",
    hint="How many matrices does the block learn?",
    change={
        OWN: (
            "n = self.norm1(x)\n"
            "        rows = torch.arange(x.shape[1], device=x.device)\n"
            "        own = [self.cross(n[:, i : i + 1], n[:, : i + 1]) for i in rows]\n"
            "        h = x + torch.cat(own, 1)"
        ),
    },
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "post-norm", "The norms come after the sums: this is post-norm",
    hint="What does each part read: x, or x after a norm?",
    change={
        OWN: "h = self.norm1(x + self.attention(x)[0])",
        OTHER: "h = self.norm2(h + self.cross(h, context, context_mask))",
        NETWORK: "return self.norm3(h + self.feed_forward(h))",
    },
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-shortcuts", "Nothing is added: the shortcuts are missing",
    hint="If all weights were zero, what should come out of the block?",
    change={
        OWN: "h = self.attention(self.norm1(x))[0]",
        OTHER: "h = self.cross(self.norm2(h), context, context_mask)",
        NETWORK: "return self.feed_forward(self.norm3(h))",
    },
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-first-shortcut",
    "The shortcut around self-attention is missing",
    hint="What is added to what self-attention finds?",
    change={OWN: "h = self.attention(self.norm1(x))[0]"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-second-shortcut",
    "The shortcut around the second attention is missing",
    hint="What is added to what the block finds in the context?",
    change={OTHER: "h = self.cross(self.norm2(h), context, context_mask)"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-third-shortcut",
    "The shortcut around the feed-forward network is missing",
    hint="What is added to what the feed-forward network gives?",
    change={NETWORK: "return self.feed_forward(self.norm3(h))"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "second-shortcut-from-x",
    "The second shortcut starts at the block's input, and what self-attention added is lost",
    hint="To what does the second attention add?",
    change={OTHER: "h = x + self.cross(self.norm2(h), context, context_mask)"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "cross-without-norm", "The second attention asks without a norm",
    hint="How many norms does the block have, and where is each of them used?",
    change={OTHER: "h = h + self.cross(h, context, context_mask)"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "second-norm-used-twice", "The second norm is used for the third",
    hint="How many norms does the block have, and where is each of them used?",
    change={NETWORK: "return h + self.feed_forward(self.norm2(h))"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "one-norm", "There is one norm for all three places",
    hint="How many gains does the block learn?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = self.norm1",
        "self.norm3 = nn.LayerNorm(d_model)": "self.norm3 = self.norm1",
    },
    breaks=("computes", "norms"),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-network", "The feed-forward network is missing",
    hint="Which of the three parts looks at no other token?",
    change={NETWORK: "return self.norm3(h)"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "rms-norms", "The mean is not subtracted: these are RMS norms",
    hint="What does a layer norm do to a token whose features are all 5?",
    change={
        f"self.norm{n} = nn.LayerNorm(d_model)": f"self.norm{n} = nn.RMSNorm(d_model, eps=1e-5)"
        for n in (1, 2, 3)
    },
    breaks=("computes", "norms"),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "relu", "The network has a ReLU between its layers",
    hint="What does a GELU do to a small negative number?",
    change={
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.feed_forward = nn.Sequential(\n"
            "            nn.Linear(d_model, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_model)\n"
            "        )"
        ),
    },
    breaks=("computes", "gelu"),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "tanh-gelu", "The GELU is the one with the tanh",
    hint="Which of the two forms of GELU is nn.GELU() without an argument?",
    change={
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.feed_forward = nn.Sequential(\n"
            "            nn.Linear(d_model, d_hidden),\n"
            '            nn.GELU(approximate="tanh"),\n'
            "            nn.Linear(d_hidden, d_model),\n"
            "        )"
        ),
    },
    breaks=("gelu",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "context-detached", "No gradient flows back to the context",
    hint="Who learns from what the decoder found in the context?",
    change={OTHER: "h = h + self.cross(self.norm2(h), context.detach(), context_mask)"},
    breaks=("gradients",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "float32-inside", "The numbers pass through float32 on their way",
    hint="How many digits of a float64 are left after a visit to float32?",
    change={OTHER: f"h = h.float().to(x.dtype)\n        {OTHER}"},
    breaks=("dtype",),
)  # fmt: skip


mistake(
    "EncoderDecoderBlock", "returns-a-pair", "The block returns a cache as well",
    hint="How many values does the statement say come back?",
    change={NETWORK: "return h + self.feed_forward(self.norm3(h)), None"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "needs-a-mask", "Without a mask, the block fails",
    hint="What does context_mask hold when nobody hides anything?",
    change={OTHER: "h = h + self.cross(self.norm2(h), context, context_mask.bool())"},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "norms-without-shift", "The norms have no shift",
    hint="Which two things does each norm learn?",
    change={
        f"self.norm{n} = nn.LayerNorm(d_model)": f"self.norm{n} = nn.LayerNorm(d_model, bias=False)"
        for n in (1, 2, 3)
    },
    breaks=("norms",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "norms-learn-nothing", "The norms learn nothing",
    hint="Which two things does each norm learn?",
    change={
        f"self.norm{n} = nn.LayerNorm(d_model)": (
            f"self.norm{n} = nn.LayerNorm(d_model, elementwise_affine=False)"
        )
        for n in (1, 2, 3)
    },
    breaks=("norms",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "up-without-bias", "The first layer of the network has no bias",
    hint="How many biases does the statement name?",
    change={
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.feed_forward = nn.Sequential(\n"
            "            nn.Linear(d_model, d_hidden, bias=False),\n"
            "            nn.GELU(),\n"
            "            nn.Linear(d_hidden, d_model),\n"
            "        )"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "context-changed", "Hidden tokens of the caller's context become zero",
    hint="Who else reads the context after your block?",
    change={
        OTHER: (
            f"{OTHER}\n"
            "        if context_mask is not None:\n"
            "            context.data.masked_fill_(context_mask[..., None], 0.0)"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip


class Translating(nn.Module):
    """The block, all written in one class; each answer below has one thing of its own."""

    biased = False  # queries, keys and values

    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.num_heads = num_heads
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))
        self.self_attn, self.cross_attn = (
            nn.ModuleDict(
                {
                    name: nn.Linear(d_model, d_model, bias=self.biased or name == "o")
                    for name in "qkvo"
                }
            )
            for _ in range(2)
        )
        self.mlp = nn.Sequential(
            nn.Linear(d_model, d_hidden), nn.GELU(), nn.Linear(d_hidden, d_model)
        )

    def hide_future(self, scores):
        future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        return scores.masked_fill(future, -torch.inf)

    def hide_padding(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, None], -torch.inf)

    def attend(self, layers, x, seen, hide):
        queries, keys, values = (
            layers[name](given).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for name, given in (("q", x), ("k", seen), ("v", seen))
        )
        weights = hide(queries @ keys.mT / keys.shape[-1] ** 0.5).softmax(-1)
        return layers["o"]((weights @ values).transpose(1, 2).flatten(2))

    def forward(self, x, context, context_mask=None):
        normed = self.norms[0](x)
        x = x + self.attend(self.self_attn, normed, normed, self.hide_future)

        def hide(scores):
            return self.hide_padding(scores, context_mask)

        x = x + self.attend(self.cross_attn, self.norms[1](x), context, hide)
        return x + self.mlp(self.norms[2](x))


@mistake(
    "EncoderDecoderBlock", "causal-context", "The context is hidden by a causal mask too",
    hint="Which tokens of the context are known when the first word is written?",
)  # fmt: skip
class CausalContext(Translating):
    def hide_padding(self, scores, mask):
        future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        hidden = super().hide_padding(scores, mask)
        return torch.where(future & hidden[..., :1].isfinite(), -torch.inf, hidden)


@mistake(
    "EncoderDecoderBlock", "causal-if-as-long",
    "A context as long as x is hidden by the causal mask, where there is no other",
    hint="Do equal lengths make token 3 of one sequence belong to token 3 of the other?",
)  # fmt: skip
class CausalIfAsLong(Translating):
    def hide_padding(self, scores, mask):
        if mask is None and scores.shape[-1] == scores.shape[-2]:
            return self.hide_future(scores)
        return super().hide_padding(scores, mask)


@mistake(
    "EncoderDecoderBlock", "future-lowered", "Scores of the future become -60, and are not hidden",
    hint="What is the weight of a score of -60 beside one of -70?",
    breaks=("causal",),
)  # fmt: skip
class FutureLowered(Translating):
    def hide_future(self, scores):
        return scores.masked_fill(torch.ones_like(scores[0, 0]).triu(1).bool(), -60.0)


@mistake(
    "EncoderDecoderBlock", "padding-lowered",
    "Scores of hidden tokens become -60, and are not hidden",
    hint="What is the weight of a score of -60 beside one of -70?",
    breaks=("hidden",),
)  # fmt: skip
class PaddingLowered(Translating):
    def hide_padding(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, None], -60.0)


@mistake(
    "EncoderDecoderBlock", "mask-on-the-cpu", "The causal mask is always made on the CPU",
    hint="On which device are the scores, and on which the mask?",
    breaks=("device",),
)  # fmt: skip
class MaskOnTheCpu(Translating):
    def hide_future(self, scores):
        tokens = scores.shape[-1]
        return scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)


@mistake(
    "EncoderDecoderBlock", "biased", "Queries, keys and values have a bias",
    hint="What does nn.Linear do when you say nothing about the bias?",
    breaks=("bias",),
)  # fmt: skip
class Biased(Translating):
    biased = True


@mistake(
    "EncoderDecoderBlock", "ready-made", "Ready-made attention is used",
    hint="Which line of yours does the work of the exercise?",
    breaks=("forbidden",),
)  # fmt: skip
class ReadyMade(Translating):
    def attend(self, layers, x, seen, hide):
        queries, keys, values = (
            layers[name](given).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for name, given in (("q", x), ("k", seen), ("v", seen))
        )
        hidden = hide(torch.zeros(*queries.shape[:3], keys.shape[2], device=x.device))
        mixed = F.scaled_dot_product_attention(queries, keys, values, hidden.to(x.dtype))
        return layers["o"](mixed.transpose(1, 2).flatten(2))


@accepted("EncoderDecoderBlock", "one-class", "All written in one class, layers in dictionaries")
class OneClass(Translating):
    pass


accepted(
    "EncoderDecoderBlock", "one-expression-each", "Three lines, other names for the norms",
    change={
        re.compile(r"self\.norm(\d)"): r"self.ln_\1",
        re.compile(r"self\.attention"): "self.self_attn",
        re.compile(r"self\.cross"): "self.cross_attn",
        re.compile(r"self\.feed_forward"): "self.mlp",
    },
)  # fmt: skip

accepted(
    "EncoderDecoderBlock", "names-that-say-nothing",
    "Parts are called a to f, and made in another order",
    change={
        "self.norm1 = nn.LayerNorm(d_model)\n": (
            "self.f = FeedForward(d_model, d_hidden)\n"
            "        self.e = nn.LayerNorm(d_model)\n"
            "        self.d = CrossAttention(d_model, d_model, d_model, num_heads)\n"
            "        self.c = nn.LayerNorm(d_model)\n"
            "        self.b = CachedAttention(d_model, d_model, num_heads)\n"
            "        self.a = nn.LayerNorm(d_model)\n"
        ),
        "        self.attention = CachedAttention(d_model, d_model, num_heads)\n": "",
        "        self.norm2 = nn.LayerNorm(d_model)\n": "",
        "        self.cross = CrossAttention(d_model, d_model, d_model, num_heads)\n": "",
        "        self.norm3 = nn.LayerNorm(d_model)\n": "",
        "        self.feed_forward = FeedForward(d_model, d_hidden)\n": "",
        OWN: "h = x + self.b(self.a(x))[0]",
        OTHER: "h = h + self.d(self.c(h), context, context_mask)",
        NETWORK: "return h + self.f(self.e(h))",
    },
)  # fmt: skip

accepted(
    "EncoderDecoderBlock", "sequence-with-its-norm", "Norm and network are one sequence",
    change={
        "        self.norm3 = nn.LayerNorm(d_model)\n": "",
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.ff = nn.Sequential(\n"
            "            nn.LayerNorm(d_model),\n"
            "            nn.Linear(d_model, d_hidden),\n"
            "            nn.GELU(),\n"
            "            nn.Linear(d_hidden, d_model),\n"
            "        )"
        ),
        NETWORK: "return h + self.ff(h)",
    },
)  # fmt: skip


@accepted("EncoderDecoderBlock", "all-in-one", "All layers stand in the block itself, some fused")
class AllInOne(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model)
        self.cross_q = nn.Linear(d_model, d_model, bias=False)
        self.cross_kv = nn.Linear(d_model, 2 * d_model, bias=False)
        self.cross_out = nn.Linear(d_model, d_model)
        self.fc1, self.fc2 = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(3)])

    def heads(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def attend(self, queries, keys, values, hidden):
        queries, keys, values = map(self.heads, (queries, keys, values))
        scores = queries @ keys.transpose(2, 3) * keys.shape[-1] ** -0.5
        weights = scores.masked_fill(hidden, float("-inf")).softmax(dim=-1)
        return (weights @ values).transpose(1, 2).flatten(2)

    def forward(self, x, context, context_mask=None):
        count = torch.arange(x.shape[1], device=x.device)
        future = count[None, :] > count[:, None]
        x = x + self.out(self.attend(*self.qkv(self.norms[0](x)).chunk(3, dim=-1), future))
        if context_mask is None:
            context_mask = torch.zeros(context.shape[:2], dtype=torch.bool, device=x.device)
        keys, values = self.cross_kv(context).chunk(2, dim=-1)
        found = self.attend(
            self.cross_q(self.norms[1](x)), keys, values, context_mask[:, None, None]
        )
        x = x + self.cross_out(found)
        return x + self.fc2(F.gelu(self.fc1(self.norms[2](x))))


@accepted("EncoderDecoderBlock", "norms-by-hand", "Gains, shifts and a class for both attentions")
class NormsByHand(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.gains = nn.ParameterList([torch.ones(d_model) for _ in range(3)])
        self.shifts = nn.ParameterList([torch.zeros(d_model) for _ in range(3)])
        self.self_attention = TwoSequences(d_model, num_heads)
        self.cross_attention = TwoSequences(d_model, num_heads)
        self.up = nn.Linear(d_model, d_hidden)
        self.down = nn.Linear(d_hidden, d_model)

    def norm(self, x, number):
        apart = x - x.mean(dim=-1, keepdim=True)
        spread = (apart * apart).mean(dim=-1, keepdim=True)
        return self.gains[number] * apart * (spread + 1e-5).rsqrt() + self.shifts[number]

    def forward(self, x, context, context_mask=None):
        tokens = x.shape[1]
        future = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        normed = self.norm(x, 0)
        x = self.self_attention(normed, normed, future) + x
        hidden = None if context_mask is None else context_mask[:, None, None, :]
        x = self.cross_attention(self.norm(x, 1), context, hidden) + x
        inner = self.up(self.norm(x, 2))
        return self.down(0.5 * inner * (1 + torch.erf(inner / math.sqrt(2)))) + x


class TwoSequences(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        size = d_model // num_heads
        self.w_q = nn.Parameter(0.02 * torch.randn(num_heads, d_model, size))
        self.w_k = nn.Parameter(0.02 * torch.randn(num_heads, d_model, size))
        self.w_v = nn.Parameter(0.02 * torch.randn(num_heads, d_model, size))
        self.w_o = nn.Linear(d_model, d_model)

    def forward(self, x, seen, hidden):
        queries = torch.einsum("btd,hde->bhte", x, self.w_q)
        keys = torch.einsum("btd,hde->bhte", seen, self.w_k)
        values = torch.einsum("btd,hde->bhte", seen, self.w_v)
        scores = torch.einsum("bhqe,bhke->bhqk", queries, keys) / math.sqrt(self.w_q.shape[-1])
        if hidden is not None:
            scores = torch.where(hidden, torch.full_like(scores, -torch.inf), scores)
        mixed = torch.einsum("bhqk,bhke->bqhe", scores.softmax(-1), values)
        return self.w_o(mixed.reshape(*x.shape[:2], -1))
