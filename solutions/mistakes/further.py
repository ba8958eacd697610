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
    "scale-tokens", "scale-always-two", "scale-after-softmax", "softmax-over-queries",
    "softmax-over-heads", "no-softmax", "log-weights", "all-weights-equal", "no-mask",
    "mask-thrown-away", "mask-opposite", "mask-opposite-and-zeros", "mask-transposed",
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

common_mistakes("head_weights", "scale-d-in")

mistake(
    "head_weights", common="scale-num-heads",
    change={"head_dim**0.5": "num_heads**0.5"},
)  # fmt: skip

mistake(
    "head_weights", common="keys-are-queries",
    change={"x @ W_key": "x @ W_query"},
)  # fmt: skip

mistake(
    "head_weights", "longest-sentence", "The mask has room for 128 tokens, and longer ones fail",
    hint="How long may a sentence be?",
    change={"causal_mask(tokens).to(x.device)": "causal_mask(128)[:tokens, :tokens].to(x.device)"},
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


# --- LatentCachedAttention and RotaryAttention ----------------------------------------------------

BOTH = ("LatentCachedAttention", "RotaryAttention")
MASK = "mask = causal_mask_after(seen, tokens).to(x.device)"
TRIANGLE = "causal_mask_after(seen, tokens)"
SCORES = "queries @ keys.transpose(-2, -1) / head_dim**0.5"
MASKED = "masked_softmax(attn_scores, mask)"


def future_after(seen, x):
    """True where a new token must not look, on the device of x."""
    tokens = x.shape[1]
    return torch.ones(tokens, seen + tokens, device=x.device).triu(seen + 1).bool()


mistake(
    BOTH, "mask-top-left",
    "The triangle of the mask starts in the top left corner, and hides the cache",
    hint="Five tokens are in the cache and one comes in: which position is it at?",
    change={TRIANGLE: "torch.ones(tokens, seen + tokens).triu(1).bool()"},
)  # fmt: skip

mistake(
    BOTH, "no-mask-in-a-chunk", "After a cache, the tokens of a chunk see one another's future",
    hint="Two tokens come in after five: may the first of them see the second?",
    change={MASK: f"{MASK} & (cache is None)"},
)  # fmt: skip

mistake(
    BOTH, "cache-hidden", "No new token looks at the cache, which only grows",
    hint="May a new token look at what was there before?",
    change={MASK: f"{MASK}\n        mask[:, :seen] = True"},
)  # fmt: skip

mistake(
    BOTH, common="sees-one-ahead",
    hint="What may the first new token know about the second?",
    change={TRIANGLE: "torch.ones(tokens, seen + tokens).triu(seen + 2).bool()"},
)  # fmt: skip

mistake(
    BOTH, common="hides-itself",
    hint="Which keys may the very first token look at?",
    change={
        TRIANGLE: "torch.ones(tokens, seen + tokens).triu(seen).bool()",
        MASKED: "torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=-1)",
    },
)  # fmt: skip

mistake(
    BOTH, "hides-itself-and-fills-zeros",
    "A token cannot see itself, and the very first one gets nothing but zeros",
    hint="Which keys may the very first token look at?",
    change={TRIANGLE: "torch.ones(tokens, seen + tokens).triu(seen).bool()"},
)  # fmt: skip

mistake(
    BOTH, "diagonal-by-tokens",
    "The mask starts behind as many keys as there are new tokens, and not as there are old ones",
    hint="Where in (tokens, seen + tokens) does the first new token find itself?",
    change={TRIANGLE: "torch.ones(tokens, seen + tokens).triu(tokens).bool()"},
)  # fmt: skip

mistake(
    BOTH, "mask-square", "The mask has a column for every new token, and none for the old ones",
    hint="The scores are (tokens, seen + tokens): what is the shape of your mask?",
    change={TRIANGLE: "causal_mask(tokens)"},
)  # fmt: skip

mistake(
    BOTH, "mask-not-cut", "The mask has a row for every token so far, and there are fewer queries",
    hint="The scores are (tokens, seen + tokens): what is the shape of your mask?",
    change={TRIANGLE: "causal_mask(seen + tokens)"},
)  # fmt: skip

mistake(
    BOTH, "mask-of-one-length", "There is room for 100 tokens, and longer texts fail",
    hint="How long may a text be?",
    breaks=("length",),
    change={
        "causal_mask_after(seen, tokens).to(x.device)": (
            "causal_mask(100).to(x.device)[seen : seen + tokens, : seen + tokens]"
        ),
    },
)  # fmt: skip

mistake(
    BOTH, "past-forgotten-in-chunks",
    "When several tokens come in at once, they do not look at the cache",
    hint="May a chunk of three tokens look at what was there before?",
    change={
        MASK: f"{MASK}\n        if tokens > 1:\n            mask[:, :seen] = True",
    },
)  # fmt: skip

mistake(
    BOTH, "window-of-eight", "Only the last eight tokens are looked at",
    hint="How far back may a token look?",
    change={
        MASK: f"{MASK}\n        mask = mask | torch.ones_like(mask).tril(seen - 8)",
    },
)  # fmt: skip

mistake(
    BOTH, "cache-needed", "The layer cannot be called without a cache",
    hint="How is it called for the first tokens of a text?",
    breaks=("none",),
    change={"| None = None": "| None"},
)  # fmt: skip

common_mistakes(BOTH, "scale-d-in")

mistake(
    BOTH, "scale-total", "The scores are divided by the root of the number of keys",
    hint="What was summed up in a dot product: tokens, or features?",
    change={"head_dim**0.5": "(seen + tokens) ** 0.5"},
)  # fmt: skip

mistake(
    BOTH, common="own-value-only",
    change={"attn_weights @ values": "values[:, :, -tokens:]"},
)  # fmt: skip

mistake(
    BOTH, common="calls-torch-attention",
    change={
        "attn_weights @ values": (
            "nn.functional.scaled_dot_product_attention(\n"
            "                queries, keys, values, attn_mask=~mask\n"
            "            )"
        ),
    },
)  # fmt: skip

mistake(
    BOTH,
    common="no-mask",
    hint="Which keys may the first of two new tokens not look at?",
)
mistake(BOTH, "not-scaled", common="no-scale")
mistake(BOTH, "root-forgotten", common="no-square-root")
mistake(BOTH, "scaled-after-softmax", common="scale-after-softmax")
mistake(BOTH, common="softmax-over-batch", breaks=("computes", "batch"))
mistake(BOTH, "log-softmax", common="log-weights")
mistake(BOTH, common="one-maximum-per-sentence", breaks=("large",))
mistake(BOTH, common="one-maximum-per-head", breaks=("batch",))
mistake(BOTH, common="mask-fills-minus-hundred", breaks=("large",))
mistake(BOTH, common="one-maximum-for-all", breaks=("batch", "large"))
mistake(BOTH, "values-are-keys", common="keys-mixed")
mistake(BOTH, common="output-layer-without-bias", breaks=("bias",))
mistake(BOTH, "residual-added", common="residual-after-output-layer")
mistake(BOTH, common="in-place-after-softmax", breaks=("gradients",))
mistake(BOTH, common="value-bias", breaks=("bias",))
mistake(BOTH, common="bias-left-on", breaks=("bias",))
common_mistakes(
    BOTH, "mask-thrown-away", "half-of-the-length",
    "scale-multiplied", "scale-d-out", "scale-num-heads", "scale-tokens", "scale-always-two",
    "softmax-over-queries", "softmax-over-heads", "no-softmax", "keys-are-values",
    "queries-and-keys-swapped", "compares-with-values", "no-attention", "all-weights-equal",
    "all-zeros", "mask-opposite", "mask-opposite-and-zeros", "mask-fills-zero", "mask-multiplies",
    "mask-fills-tiny", "mask-fills-minus-one", "mask-fills-infinity", "mask-times-infinity",
    "mask-added", "mask-after-softmax", "mask-for-one-head", "reshaped-into-heads",
    "reshaped-into-heads-and-back", "every-nth-feature", "values-not-split-alike",
    "merged-without-turning", "features-interleaved", "keys-of-the-first-head",
    "values-of-the-first-head", "heads-summed", "heads-averaged", "no-output-layer",
    "output-layer-unused", "output-layer-twice", "output-layer-from-d-in", "output-layer-to-d-in",
    "no-super-init", "layers-turned-around", "plain-tensors", "python-list", "made-in-forward",
    "float32-hard-coded", "float32-inside", "no-gradient", "weights-detached",
    "layer-read-through-data", "weights-returned",
)  # fmt: skip

accepted(
    BOTH, "last-rows-of-a-square", "The last rows of a square mask",
    change={TRIANGLE: "causal_mask(seen + tokens)[seen:]"},
)  # fmt: skip

accepted(
    BOTH, "queries-scaled-first", "The queries are scaled before they meet the keys",
    change={SCORES: "(queries * head_dim**-0.5) @ keys.transpose(-2, -1)"},
)  # fmt: skip

accepted(
    BOTH, "root-shared", "Queries and keys take half of the scale each",
    change={SCORES: "(queries / head_dim**0.25) @ (keys / head_dim**0.25).transpose(-2, -1)"},
)  # fmt: skip

accepted(
    BOTH, "lowest-number", "The lowest number of the dtype instead of infinity",
    change={MASKED: "attn_scores.masked_fill(mask, torch.finfo(x.dtype).min).softmax(dim=-1)"},
)  # fmt: skip

accepted(
    BOTH, "renormalized-afterwards", "Zeroed after the softmax, then renormalised",
    change={
        MASKED: (
            "torch.softmax(attn_scores, dim=-1).masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    BOTH, "float64-softmax", "The softmax runs in float64, and is cast back",
    change={MASKED: "masked_softmax(attn_scores.double(), mask).to(x.dtype)"},
)  # fmt: skip

# --- LatentCachedAttention ------------------------------------------------------------------------

JOINED = "torch.cat([cache, latent], dim=1)"
LATENT_RESULT = "return self.out_proj(context_vec), latent"

mistake(
    "LatentCachedAttention", "new-before-old", "New latents are put before the old ones",
    hint="Your mask counts on an order: which keys does it take for the last ones?",
    breaks=("computes", "cache"),
    change={JOINED: "torch.cat([latent, cache], dim=1)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "newest-first-in-the-cache",
    (
        "The cache that comes out holds the newest token first, and is turned around when it "
        "comes back"
    ),
    hint="Which token stands first in the cache: the oldest, or the newest?",
    breaks=("cache",),
    change={
        JOINED: "torch.cat([cache.flip(1), latent], dim=1)",
        LATENT_RESULT: "return self.out_proj(context_vec), latent.flip(1)",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-scaled",
    "The latents in the cache are scaled, and scaled back when they are read",
    hint="What does the statement say about the latents in the cache?",
    breaks=("cache",),
    change={
        JOINED: "torch.cat([cache * 2.0, latent], dim=1)",
        LATENT_RESULT: "return self.out_proj(context_vec), latent / 2.0",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-normalized",
    "What comes out as the cache has a norm on it, and what attention used has none",
    hint="Are the latents that you return those that you attended over?",
    breaks=("computes", "cache"),
    change={
        LATENT_RESULT: (
            "return self.out_proj(context_vec), nn.functional.normalize(latent, dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "only-the-new-part-returned",
    "The cache that comes out holds the new tokens only",
    hint="Three steps later: where is the latent of the first token?",
    change={LATENT_RESULT: "return self.out_proj(context_vec), latent[:, -tokens:]"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "old-cache-returned",
    "The cache that came in is returned as it was, without the new tokens",
    hint="How many tokens does the cache hold after this step?",
    change={
        LATENT_RESULT: "return self.out_proj(context_vec), latent if cache is None else cache",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-ignored",
    "The cache that comes in is never used, and what comes out holds the new tokens only",
    hint="What happens to the argument called cache?",
    change={"if cache is not None:": "if False:"},
    same_as={"only-the-new-part-returned": "the new cache is too short either way"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-only-for-one-token",
    "When several tokens come in at once, the cache is dropped",
    hint="Does your code take a chunk of three tokens after a cache?",
    change={"if cache is not None:": "if cache is not None and tokens == 1:"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-not-returned", "The cache is not returned",
    hint="Where does the next step get the latents of this one?",
    breaks=("returns",),
    change={LATENT_RESULT: "return self.out_proj(context_vec)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-comes-first",
    "The cache is returned first, and then the output",
    hint="In which order does the caller unpack the two?",
    breaks=("returns",),
    change={LATENT_RESULT: "return latent, self.out_proj(context_vec)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-in-a-tuple", "The latents are returned in a tuple of their own",
    hint="How many tensors is the cache, and does anything stand around it?",
    breaks=("returns",),
    change={
        JOINED: "torch.cat([cache[0], latent], dim=1)",
        LATENT_RESULT: "return self.out_proj(context_vec), (latent,)",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "keys-and-values-kept",
    "The cache holds unpacked keys and values, and not the latents they come from",
    hint="How many numbers does your cache keep of a token, and how many should it be?",
    breaks=("returns",),
    change={LATENT_RESULT: "return self.out_proj(context_vec), (keys, values)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "keys-for-latents", "The keys are kept, and not the latents",
    hint="How many numbers does your cache keep of a token, and how many should it be?",
    breaks=("returns",),
    change={LATENT_RESULT: "return self.out_proj(context_vec), merge_heads(keys)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "inputs-kept",
    "The cache holds the tokens as they came in, and all are squeezed again at every step",
    hint="How many numbers does your cache keep of a token, and how many should it be?",
    breaks=("returns",),
    change={
        "latent = self.W_down(x)": "latent = x",
        JOINED: "torch.cat([cache, x], dim=1)",
        "self.W_up_key(latent)": "self.W_up_key(self.W_down(latent))",
        "self.W_up_value(latent)": "self.W_up_value(self.W_down(latent))",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "axis-of-heads", "The cache has an axis for the heads",
    hint="Which axes does the statement give the cache? Is a latent cut into heads?",
    breaks=("returns",),
    change={
        JOINED: "torch.cat([cache[:, 0], latent], dim=1)",
        LATENT_RESULT: "return self.out_proj(context_vec), latent[:, None]",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "joined-along-features",
    "Old and new latents are joined along the features",
    hint="On which axis do the tokens stand?",
    change={JOINED: "torch.cat([cache, latent], dim=-1)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "joined-along-the-batch",
    "Old and new latents are joined along the batch",
    hint="On which axis do the tokens stand?",
    change={JOINED: "torch.cat([cache, latent], dim=0)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "squeezed-again", "What comes from the cache is squeezed once more",
    hint="What does the cache hold: tokens, or latents already?",
    change={JOINED: "self.W_down(torch.cat([cache, latent], dim=1))"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "queries-from-latents",
    "Queries are made for all tokens so far, and not for the new ones alone",
    hint="How many rows does your output have?",
    change={
        "self.W_query(x)": (
            "self.W_query(nn.functional.pad(x, (0, 0, latent.shape[1] - tokens, 0)))"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "old-keys-only-unpacked",
    "The keys are unpacked from all latents, and the values from the new ones only",
    hint="The weights have a column for every key: how many values are there?",
    change={"self.W_up_value(latent)": "self.W_up_value(latent[:, -tokens:])"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-of-the-first-sentence",
    "All sentences look at the cache of the first one",
    hint="Whose past does the second sentence of the batch look at?",
    breaks=("computes", "cache"),
    change={JOINED: "torch.cat([cache[:1].expand_as(cache), latent], dim=1)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-kept-on-self",
    "The module remembers the past itself, and ignores the cache that it is given",
    hint="Two texts are written in turn with one module: whose past does each of them get?",
    breaks=("state",),
    change={
        JOINED: "torch.cat([self.past, latent], dim=1)",
        "        queries = split_heads": (
            "        self.past = latent.detach()\n"
            "        queries = split_heads"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-kept-on-self-forever",
    "The module remembers the past itself, and never starts afresh",
    hint="What does the first token of a new text look at?",
    breaks=("state",),
    change={
        "if cache is not None:": 'if hasattr(self, "past"):',
        JOINED: "torch.cat([self.past, latent], dim=1)",
        "        queries = split_heads": (
            "        self.past = latent.detach()\n"
            "        queries = split_heads"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-written-in-place",
    "What stands in the cache that came in is overwritten",
    hint="Two continuations start from one cache: what does the second of them find?",
    breaks=("unchanged",),
    change={
        JOINED: (
            "torch.cat([cache, latent], dim=1)\n"
            "            cache.copy_(cache.clone().flip(1))"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "input-changed-in-place",
    "The tokens that came in are turned around in place",
    hint="What does the caller find in them after the call?",
    breaks=("unchanged",),
    change={
        "_batch, tokens, _d_in = x.shape": (
            "_batch, tokens, _d_in = x.shape\n"
            "        x.transpose_(1, 2)"
        ),
        "self.W_query(x)": "self.W_query(x.mT)",
        "self.W_down(x)": "self.W_down(x.mT)",
    },
    same_as={
        "cache-written-in-place": (
            "every result is right, and the test itself says what was changed"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-in-float32",
    "The new cache is a tensor of float32, whatever comes in",
    hint="Which dtype has a new tensor when you say nothing?",
    breaks=("dtype",),
    change={JOINED: "torch.cat([cache, latent], dim=1).float()"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-rounded", "The cache passes through half precision on its way",
    hint="How many digits of a number are left after a visit to float16?",
    breaks=("computes", "cache"),
    change={LATENT_RESULT: "return self.out_proj(context_vec), latent.half().to(x.dtype)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "cache-through-float32", "The cache passes through float32 on its way",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change={LATENT_RESULT: "return self.out_proj(context_vec), latent.float().to(x.dtype)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "none-not-understood",
    "None is not understood where there is no cache yet",
    hint="Is cache=None the same as leaving it out?",
    breaks=("none",),
    change={
        "| None = None": "| tuple = ()",
        "if cache is not None:": "if len(cache) > 0:",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "step-without-gradient",
    "After a cache, the latents of the new tokens get no gradient",
    hint="Does the new part of the joined latents have a grad_fn?",
    breaks=("gradients",),
    change={JOINED: "torch.cat([cache, latent.detach()], dim=1)"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "latent-detached", "No gradient flows back through the latent",
    hint="Does W_down have a .grad after backward?",
    breaks=("gradients",),
    change={"latent = self.W_down(x)": "latent = self.W_down(x).detach()"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "keys-from-x", "Keys or values are made of x, and not of the latent",
    hint="What must be kept of a token, so that its keys and its values can be had again?",
    change={
        "self.W_up_key = nn.Linear(d_latent, d_out, bias=False)": (
            "self.W_up_key = nn.Linear(d_in, d_out, bias=False)"
        ),
        "self.W_up_key(latent)": "self.W_up_key(x)",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "queries-from-latent", "The queries are made of the latent too",
    hint="What do the queries come from, and how wide is it?",
    change={
        "self.W_query = nn.Linear(d_in, d_out, bias=False)": (
            "self.W_query = nn.Linear(d_latent, d_out, bias=False)"
        ),
        "self.W_query(x)": "self.W_query(latent[:, -tokens:])",
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "queries-through-the-keys",
    "The queries take the way of the keys, through the latent",
    hint="Which layer makes the queries, and do you use it?",
    change={"self.W_query(x)": "self.W_up_key(latent[:, -tokens:])"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "ups-swapped",
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
    "LatentCachedAttention", "latent-normalized", "The latent is normalised: mean 0, variance 1",
    hint="What does the statement say about a norm on the latent?",
    breaks=("computes", "cache"),
    change={
        "latent = self.W_down(x)": (
            "latent = nn.functional.layer_norm(self.W_down(x), (self.W_down.out_features,))"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "latent-rms-norm", "The latent gets an RMS norm",
    hint="What does the statement say about a norm on the latent?",
    breaks=("computes", "cache"),
    change={
        "latent = self.W_down(x)": (
            "latent = self.W_down(x)\n"
            "        latent = latent / (latent.square().mean(dim=-1, keepdim=True) + "
            "1e-6).sqrt()"
        ),
    },
)  # fmt: skip

mistake(
    "LatentCachedAttention", "latent-relu", "The latent goes through a ReLU",
    hint="Is there anything between the two layers?",
    breaks=("computes", "cache"),
    change={"latent = self.W_down(x)": "latent = torch.relu(self.W_down(x))"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "scale-d-latent", "The scores are divided by the root of d_latent",
    hint="Which vectors does a query meet, when keys are unpacked, and how long are those?",
    change={"head_dim**0.5": "latent.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "LatentCachedAttention", "absorbed-over-all-heads",
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
    "LatentCachedAttention", "bias-on-the-way-down", "The layer that squeezes has a bias",
    hint="Which of your five layers has a bias?",
    breaks=("bias",),
    change={
        "self.W_down = nn.Linear(d_in, d_latent, bias=False)": (
            "self.W_down = nn.Linear(d_in, d_latent)"
        ),
    },
)  # fmt: skip

common_mistakes("LatentCachedAttention", "mask-on-the-cpu")

accepted(
    "LatentCachedAttention", "cache-detached", "The cache that comes out carries no graph",
    change={LATENT_RESULT: "return self.out_proj(context_vec), latent.detach()"},
)  # fmt: skip

accepted(
    "LatentCachedAttention", "empty-cache-first", "A cache of no tokens stands in for none",
    change={
        "if cache is not None:": (
            "if cache is None:\n"
            "            cache = latent.new_zeros(_batch, 0, latent.shape[-1])\n"
            "        if True:"
        ),
    },
)  # fmt: skip


@accepted("LatentCachedAttention", "absorbed-keys", "The queries absorb the layer of the keys")
class CachedAbsorbedKeys(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_down = nn.Linear(d_in, d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        new = self.W_down(x)
        latents = new if cache is None else torch.cat((cache, new), dim=-2)
        W_query = self.W_query.weight.unflatten(0, (self.num_heads, -1))
        W_up_key = self.W_up_key.weight.unflatten(0, (self.num_heads, -1))
        absorbed = W_query.mT @ W_up_key
        scores = x[:, None] @ absorbed @ latents[:, None].mT / self.head_dim**0.5
        hidden = future_after(latents.shape[1] - x.shape[1], x)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        values = self.W_up_value(latents).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2)), latents


@accepted(
    "LatentCachedAttention", "all-absorbed",
    "Latents are compared and mixed, and nothing is unpacked",
)  # fmt: skip
class CachedAllAbsorbed(nn.Module):
    def __init__(self, d_in, d_out, num_heads, kv_lora_rank):
        super().__init__()
        self.num_heads, self.scale = num_heads, (d_out // num_heads) ** -0.5
        self.q = nn.Linear(d_in, d_out, bias=False)
        self.w_dkv = nn.Linear(d_in, kv_lora_rank, bias=False)
        self.w_uk = nn.Linear(kv_lora_rank, d_out, bias=False)
        self.w_uv = nn.Linear(kv_lora_rank, d_out, bias=False)
        self.w_o = nn.Linear(d_out, d_out)

    def forward(self, x, kv_cache=None):
        c = self.w_dkv(x)
        if kv_cache is not None:
            c = torch.cat([kv_cache, c], dim=1)
        q = self.q(x).unflatten(-1, (self.num_heads, -1))
        w_uk = self.w_uk.weight.unflatten(0, (self.num_heads, -1))
        w_uv = self.w_uv.weight.unflatten(0, (self.num_heads, -1))
        q = torch.einsum("bthd,hdc->bthc", q, w_uk)
        scores = torch.einsum("bthc,bsc->bhts", q, c) * self.scale
        if x.shape[1] > 1:
            scores = scores.masked_fill(future_after(c.shape[1] - x.shape[1], x), -torch.inf)
        mixed = torch.einsum("bhts,bsc->bthc", scores.softmax(dim=-1), c)
        return self.w_o(torch.einsum("bthc,hdc->bthd", mixed, w_uv).flatten(2)), c


@accepted(
    "LatentCachedAttention", "as-in-deepseek",
    "DeepSeek's names, and one layer that unpacks keys and values",
)  # fmt: skip
class CachedAsInDeepSeek(nn.Module):
    def __init__(self, d_model, d_out, n_heads, kv_lora_rank):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, d_out // n_heads
        self.q_proj = nn.Linear(d_model, d_out, bias=False)
        self.kv_a_proj = nn.Linear(d_model, kv_lora_rank, bias=False)
        self.kv_b_proj = nn.Linear(kv_lora_rank, 2 * d_out, bias=False)
        self.o_proj = nn.Linear(d_out, d_out)

    def forward(self, x, past=None):
        bsz, q_len, _ = x.size()
        compressed = self.kv_a_proj(x)
        if past is not None:
            compressed = torch.cat([past, compressed], dim=1)
        kv_len = compressed.size(1)
        q = self.q_proj(x).view(bsz, q_len, self.n_heads, self.head_dim).transpose(1, 2)
        kv = self.kv_b_proj(compressed).view(bsz, kv_len, 2, self.n_heads, -1)
        k, v = kv.permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.head_dim**-0.5
        mask = torch.ones(kv_len, kv_len, device=x.device).triu(1)[-q_len:].bool()
        weights = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o_proj(out.reshape(bsz, q_len, -1)), compressed


@accepted("LatentCachedAttention", "matrices", "Matrices instead of layers, and a loop over heads")
class CachedLatentMatrices(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.width = d_out // num_heads
        self.W_q = nn.Parameter(torch.randn(d_in, d_out))
        self.W_dkv = nn.Parameter(torch.randn(d_in, d_latent))
        self.W_uk = nn.Parameter(torch.randn(d_latent, d_out))
        self.W_uv = nn.Parameter(torch.randn(d_latent, d_out))
        self.W_o = nn.Parameter(torch.randn(d_out, d_out))
        self.b_o = nn.Parameter(torch.zeros(d_out))

    def forward(self, x, cache=None):
        latent = x @ self.W_dkv
        seen = 0
        if cache is not None:
            seen = cache.size(1)
            latent = torch.cat([cache, latent], dim=1)
        found = []
        for start in range(0, self.W_q.shape[1], self.width):
            own = slice(start, start + self.width)
            queries, keys = x @ self.W_q[:, own], latent @ self.W_uk[:, own]
            scores = queries @ keys.mT / self.width**0.5
            weights = scores.masked_fill(future_after(seen, x), -math.inf).softmax(dim=-1)
            found.append(weights @ (latent @ self.W_uv[:, own]))
        return torch.cat(found, dim=-1) @ self.W_o + self.b_o, latent


@accepted(
    "LatentCachedAttention", "token-by-token", "A chunk is read token by token, without a mask"
)
class LatentTokenByToken(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(d_in, d_out, bias=False)
        self.compress = nn.Linear(d_in, d_latent, bias=False)
        self.unpack = nn.Linear(d_latent, 2 * d_out, bias=False)
        self.proj = nn.Linear(d_out, d_out)

    def heads(self, y):
        return y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x, cache=None):
        found = []
        for token in x.split(1, dim=1):
            latent = self.compress(token)
            cache = latent if cache is None else torch.cat([cache, latent], dim=1)
            keys, values = (self.heads(part) for part in self.unpack(cache).chunk(2, dim=-1))
            scores = self.heads(self.query(token)) @ keys.mT / keys.shape[-1] ** 0.5
            found.append((scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2))
        return self.proj(torch.cat(found, dim=1)), cache


@accepted(
    "LatentCachedAttention", "names-that-say-nothing",
    "Layers whose names say nothing, in another order",
)  # fmt: skip
class CachedLatentNamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_latent, d_out, bias=False)
        self.beta = nn.Linear(d_latent, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_latent, bias=False)
        self.delta = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x, cache=None):
        small = self.gamma(x)
        small = small if cache is None else torch.cat([cache, small], dim=1)
        messages, asked, asking = (
            y.unflatten(-1, (self.n, -1)).transpose(1, 2)
            for y in (self.alpha(small), self.beta(small), self.delta(x))
        )
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        seen = small.shape[1] - x.shape[1]
        scores = scores.masked_fill(torch.ones_like(scores).triu(1 + seen) == 1, -torch.inf)
        return self.last((scores.softmax(-1) @ messages).transpose(1, 2).flatten(2)), small


@accepted("LatentCachedAttention", "one-layer-down", "One layer makes queries and latents at once")
class CachedOneLayerDown(nn.Module):
    def __init__(self, d_in, d_out, num_heads, d_latent):
        super().__init__()
        self.num_heads, self.sizes = num_heads, [d_out, d_latent]
        self.into = nn.Linear(d_in, d_out + d_latent, bias=False)
        self.W_up_key = nn.Linear(d_latent, d_out, bias=False)
        self.W_up_value = nn.Linear(d_latent, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        queries, latent = self.into(x).split(self.sizes, dim=-1)
        total = x.new_zeros(x.shape[0], 0, self.sizes[1]) if cache is None else cache
        seen = total.shape[1]
        total = torch.cat([total, latent], dim=1)
        q, k, v = (
            y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for y in (queries, self.W_up_key(total), self.W_up_value(total))
        )
        rows = torch.arange(seen, total.shape[1], device=x.device)[:, None]
        hidden = torch.arange(total.shape[1], device=x.device) > rows
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(hidden, -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), total


# --- RotaryAttention ------------------------------------------------------------------------------

POSITIONS = "positions = torch.arange(seen, seen + tokens, device=x.device)"
TURN_QUERIES = "queries = apply_rope(queries, positions)"
TURN_KEYS = "keys = apply_rope(keys, positions)"
JOIN_KEYS = "torch.cat([past_keys, keys], dim=-2)"
JOIN_VALUES = "torch.cat([past_values, values], dim=-2)"
ROTARY_RESULT = "return self.out_proj(context_vec), (keys, values)"

mistake(
    "RotaryAttention", "not-rotated", "Nothing is rotated",
    hint="Which line of yours makes the result depend on the positions?",
    change={TURN_QUERIES: "pass", TURN_KEYS: "pass"},
)  # fmt: skip

mistake(
    "RotaryAttention", "queries-only", "Only the queries are rotated",
    hint="Turning by m and back by n is turning by m - n: who turns by n?",
    change={TURN_KEYS: "pass"},
)  # fmt: skip

mistake(
    "RotaryAttention", "keys-only", "Only the keys are rotated",
    hint="Turning by m and back by n is turning by m - n: who turns by m?",
    change={TURN_QUERIES: "pass"},
)  # fmt: skip

mistake(
    "RotaryAttention", "values-rotated-too", "The values are rotated too",
    hint="What does a token pass on: does that depend on where it stands?",
    change={TURN_KEYS: f"{TURN_KEYS}\n        values = apply_rope(values, positions)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "rotated-before-splitting",
    "Queries and keys are rotated before they are cut into heads",
    hint="Which is the slowest pair of head 0, and how fast should it be?",
    change={
        "queries = split_heads(self.W_query(x), self.num_heads)": (
            "positions = torch.arange(seen, seen + tokens, device=x.device)\n"
            "        queries = split_heads(apply_rope(self.W_query(x), positions), self.num_heads)"
        ),
        "split_heads(self.W_key(x), self.num_heads)": (
            "split_heads(apply_rope(self.W_key(x), positions), self.num_heads)"
        ),
        TURN_QUERIES: "pass",
        TURN_KEYS: "pass",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "positions-from-zero", "Every chunk counts its positions from 0",
    hint="Five tokens are in the cache and one comes in: which position is it at?",
    change={POSITIONS: "positions = torch.arange(tokens, device=x.device)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "query-positions-from-zero",
    "The queries of every chunk count from 0, and the keys count on",
    hint="Five tokens are in the cache and one comes in: which position is its query at?",
    change={TURN_QUERIES: "queries = apply_rope(queries, positions - seen)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "one-position-for-a-chunk", "All tokens of a chunk have the first position",
    hint="Three tokens come in at once: at how many positions are they?",
    change={
        POSITIONS: "positions = torch.full((tokens,), seen, device=x.device)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "gap-after-the-cache", "After a cache, positions go on one too late",
    hint="Five tokens are in the cache: at which position is the last of them?",
    change={
        POSITIONS: f"{POSITIONS} + (seen > 0)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "one-back-after-the-cache", "After a cache, positions go on one too early",
    hint="Five tokens are in the cache: at which position is the last of them?",
    change={
        POSITIONS: f"{POSITIONS} - int(seen > 0)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "heads-counted-as-tokens",
    "The number of heads in the cache is taken for the number of its tokens",
    hint="On which axis of the cache do the tokens stand?",
    change={
        POSITIONS: (
            "start = 0 if cache is None else cache[0].shape[1]\n"
            "        positions = torch.arange(start, start + tokens, device=x.device)"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "parts-counted-as-tokens",
    "The length of the pair of keys and values is taken for the number of tokens: always 2",
    hint="What does len() count in a pair of tensors?",
    change={
        POSITIONS: (
            "start = 0 if cache is None else len(cache)\n"
            "        positions = torch.arange(start, start + tokens, device=x.device)"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "keys-rotated-again",
    "Keys that were rotated when they came in are rotated again with every step",
    hint="How often is the key of the first token rotated after three steps? And the second?",
    change={
        TURN_KEYS: "pass",
        JOIN_VALUES: (
            f"{JOIN_VALUES}\n"
            "        keys = apply_rope(keys, torch.arange(seen + tokens, device=x.device))"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "old-keys-never-rotated",
    "The cache holds keys as they were, and only the new ones are rotated",
    hint="Are the keys of the cache rotated when the queries meet them?",
    change={
        "# each: (batch, num_heads, tokens, head_dim)": "plain = keys",
        ROTARY_RESULT: (
            "plain = plain if cache is None else torch.cat([cache[0], plain], dim=-2)\n"
            "        return self.out_proj(context_vec), (plain, values)"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "keys-of-a-chunk-last-first",
    "The positions of a chunk count backwards",
    hint="Which of two new tokens came first?",
    change={POSITIONS: f"{POSITIONS}.flip(0)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "turned-backwards",
    "Pairs are turned clockwise: the angle has the wrong sign",
    hint="Turn (1, 0) by a quarter of a circle: where should it point?",
    change={POSITIONS: f"{POSITIONS}.neg()"},
)  # fmt: skip

mistake(
    "RotaryAttention", "keys-turned-backwards",
    "Keys are turned the other way than queries, and scores depend on the sum of the positions",
    hint="Move both tokens on by ten: does their score stay as it was?",
    change={TURN_KEYS: "keys = apply_rope(keys, -positions)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "half-split-pairs",
    "Feature i is paired with feature i + head_dim/2, and not with its neighbour",
    hint="Which two features make pair 0 of a head of 8?",
    change={
        TURN_QUERIES: (
            "queries = queries.unflatten(-1, (2, -1)).mT.flatten(-2)\n"
            "        queries = apply_rope(queries, positions)"
        ),
        TURN_KEYS: (
            "keys = keys.unflatten(-1, (2, -1)).mT.flatten(-2)\n"
            "        keys = apply_rope(keys, positions)"
        ),
    },
)  # fmt: skip

# Rotations that leave every feature in its place, as most models' code has them.
TURNED = """def turned(part):
            width = part.shape[-1]
            speeds = torch.arange(0, width, 2, dtype=x.dtype, device=x.device) / width
            angles = POSITIONS.to(x.dtype)[:, None] * 10000.0**-speeds
            angles = ANGLES
            partners = PARTNERS
            return part * angles.cos() + partners * angles.sin()
"""
ANGLES_OF_HALVES = "torch.cat([angles, angles], dim=-1)"
ANGLES_OF_NEIGHBOURS = "angles.repeat_interleave(2, dim=-1)"
HALVES = "torch.cat([-part[..., width // 2 :], part[..., : width // 2]], dim=-1)"
NEIGHBOURS = "torch.stack([-part[..., 1::2], part[..., 0::2]], dim=-1).flatten(-2)"


def turning(angles, partners, positions="positions", change=()):
    """A function that rotates, with these angles and the other features of the pairs."""
    text = TURNED.replace("ANGLES", angles).replace("PARTNERS", partners)
    for old, new in dict(change).items():
        text = text.replace(old, new)
    return text.replace("POSITIONS", positions)


def rotated_by(angles, partners, change=()):
    """Queries and keys rotated by a function of one's own."""
    turn = turning(angles, partners, change=change)
    return {
        TURN_QUERIES: f"{turn}\n        queries = turned(queries)",
        TURN_KEYS: "keys = turned(keys)",
    }


mistake(
    "RotaryAttention", "half-split-pairs-in-place",
    "Feature i is paired with feature i + head_dim/2, and not with its neighbour",
    hint="Which two features make pair 0 of a head of 8?",
    change=rotated_by(ANGLES_OF_HALVES, HALVES),
)  # fmt: skip

WHOSE_PAIR = (
    "For each feature: whose partner is it, and whose angle has it? Do both say the same pair?"
)

mistake(
    "RotaryAttention", "halves-turned-with-the-angles-of-neighbours",
    "Features are paired with those head_dim/2 away, and angles with neighbours",
    hint=WHOSE_PAIR,
    change=rotated_by(ANGLES_OF_NEIGHBOURS, HALVES),
)  # fmt: skip

mistake(
    "RotaryAttention", "neighbours-turned-with-the-angles-of-halves",
    "Features are paired with neighbours, and angles with those head_dim/2 away",
    hint=WHOSE_PAIR,
    change=rotated_by(ANGLES_OF_HALVES, NEIGHBOURS),
)  # fmt: skip

mistake(
    "RotaryAttention", together=("half-split-pairs-in-place", "turned-backwards"),
    change=rotated_by(ANGLES_OF_HALVES, f"-{HALVES}"),
)  # fmt: skip

mistake(
    "RotaryAttention", "another-theta", "theta is 500,000, as in Llama 3, and not 10,000",
    hint="What is the usual theta of apply_rope?",
    change={
        TURN_QUERIES: "queries = apply_rope(queries, positions, 500000.0)",
        TURN_KEYS: "keys = apply_rope(keys, positions, 500000.0)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "speeds-of-d-out", "The speeds count all features, and not those of a head",
    hint="In the exponent -2i/d, what is d: the width of all heads together, or that of one?",
    change={
        TURN_QUERIES: "queries = apply_rope(queries, positions, 10000.0 ** (1 / self.num_heads))",
        TURN_KEYS: "keys = apply_rope(keys, positions, 10000.0 ** (1 / self.num_heads))",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "exponent-without-its-two",
    "The exponent is i / head_dim, where it should be 2i / head_dim",
    hint="With heads of four features, by how much does pair 1 turn a position?",
    change={
        TURN_QUERIES: "queries = apply_rope(queries, positions, 100.0)",
        TURN_KEYS: "keys = apply_rope(keys, positions, 100.0)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "no-speeds", "All pairs turn at the same speed",
    hint="What tells pair 0 from pair 1 in your angles?",
    change={
        TURN_QUERIES: "queries = apply_rope(queries, positions, 1.0)",
        TURN_KEYS: "keys = apply_rope(keys, positions, 1.0)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "rotated-twice", "Queries and keys are rotated twice",
    hint="By how much do two neighbours differ in their angle?",
    change={POSITIONS: f"{POSITIONS} * 2"},
)  # fmt: skip

mistake(
    "RotaryAttention", "tokens-rotated", "The tokens are rotated, and not queries and keys",
    hint="What goes into apply_rope: x, or what was projected from it?",
    change={
        "queries = split_heads(self.W_query(x), self.num_heads)": (
            "positions = torch.arange(seen, seen + tokens, device=x.device)\n"
            "        turned = apply_rope(nn.functional.pad(x, (0, x.shape[-1] % 2)), positions)\n"
            "        turned = turned[..., : x.shape[-1]]\n"
            "        queries = split_heads(self.W_query(turned), self.num_heads)"
        ),
        "self.W_key(x)": "self.W_key(turned)",
        TURN_QUERIES: "pass",
        TURN_KEYS: "pass",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "context-rotated", "What the heads find is rotated as well",
    hint="What does a token pass on: does that depend on where it stands?",
    change={
        "attn_weights @ values": "apply_rope(attn_weights @ values, positions)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "heads-for-positions", "Each head has a position, and not each token",
    hint="On which axis does apply_rope expect the tokens?",
    change={
        TURN_QUERIES: (
            "heads = torch.arange(self.num_heads, device=x.device)\n"
            "        queries = apply_rope(queries.transpose(1, 2), heads).transpose(1, 2)"
        ),
        TURN_KEYS: "keys = apply_rope(keys.transpose(1, 2), heads).transpose(1, 2)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "table-too-short",
    "Angles are made for 64 positions, and later tokens get those of the last",
    hint="How long may a text be?",
    breaks=("length",),
    change={POSITIONS: f"{POSITIONS}.clamp(max=63)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "positions-counted-on-self",
    "The module counts positions itself, and not the tokens in the cache",
    hint="Two texts are written in turn with one module: at which position is each?",
    breaks=("state",),
    change={
        POSITIONS: (
            "self.start = 0 if cache is None else self.start\n"
            "        positions = torch.arange(self.start, self.start + tokens, device=x.device)\n"
            "        self.start += tokens"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "angles-in-float32", "In float64 the angles have only the digits of float32",
    hint="Which dtype does torch.arange have, when you say nothing?",
    breaks=("dtype",),
    change={
        TURN_QUERIES: (
            "width = queries.shape[-1]\n"
            "        speeds = 10000.0 ** -(torch.arange(0, width, 2, device=x.device) / width)\n"
            "        cos = (positions[:, None] * speeds).cos().repeat_interleave(2, dim=-1)\n"
            "        sin = (positions[:, None] * speeds).sin().repeat_interleave(2, dim=-1)\n"
            "        partner = torch.stack([-queries[..., 1::2], queries[..., 0::2]], dim=-1)\n"
            "        queries = queries * cos + partner.flatten(-2) * sin"
        ),
        TURN_KEYS: (
            "partner = torch.stack([-keys[..., 1::2], keys[..., 0::2]], dim=-1)\n"
            "        keys = keys * cos + partner.flatten(-2) * sin"
        ),
    },
)  # fmt: skip

SPEEDS_IN_FLOAT32 = {"* 10000.0**-speeds": "/ 10000.0 ** speeds.float()"}

mistake(
    "RotaryAttention", "speeds-in-float32", "The speeds of the pairs have the digits of float32",
    hint="Which digits does a root of 10000 lose in float32?",
    breaks=("dtype",),
    change=rotated_by(ANGLES_OF_NEIGHBOURS, NEIGHBOURS, SPEEDS_IN_FLOAT32),
    same_as={"angles-in-float32": "both lose digits"},
)  # fmt: skip

mistake(
    "RotaryAttention", "new-before-old", "New keys and values are put before the old ones",
    hint="Your mask counts on an order: which keys does it take for the last ones?",
    change={
        JOIN_KEYS: "torch.cat([keys, past_keys], dim=-2)",
        JOIN_VALUES: "torch.cat([values, past_values], dim=-2)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "new-keys-before-old",
    "New keys are put before the old ones, and new values behind them",
    hint="Do a key and its value stand in the same place?",
    change={JOIN_KEYS: "torch.cat([keys, past_keys], dim=-2)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "keys-and-values-swapped",
    "The cache comes out as (values, keys), and goes in as (keys, values)",
    hint="In which order do you pack the cache, and in which order do you unpack it?",
    change={ROTARY_RESULT: "return self.out_proj(context_vec), (values, keys)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "only-the-new-part-returned",
    "The cache that comes out holds the new tokens only",
    hint="Three steps later: where are the keys of the first token?",
    change={
        ROTARY_RESULT: (
            "return self.out_proj(context_vec), (keys[:, :, -tokens:], values[:, :, -tokens:])"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "old-cache-returned",
    "The cache that came in is returned as it was, without the new tokens",
    hint="How many tokens does the cache hold after this step?",
    change={ROTARY_RESULT: "return self.out_proj(context_vec), cache or (keys, values)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-not-returned", "The cache is not returned",
    hint="Where does the next step get the keys of this one?",
    breaks=("returns",),
    change={ROTARY_RESULT: "return self.out_proj(context_vec)"},
)  # fmt: skip

mistake(
    "RotaryAttention", "three-results",
    "Keys and values are returned beside the output, and not as a pair",
    hint="How many things does the caller unpack?",
    breaks=("returns",),
    change={ROTARY_RESULT: "return self.out_proj(context_vec), keys, values"},
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-tokens-first", "In the cache, the tokens stand before the heads",
    hint="In which order does the statement name the axes of the cache?",
    breaks=("returns",),
    change={
        "cache[0].shape[-2]": "cache[0].shape[1]",
        ROTARY_RESULT: (
            "return self.out_proj(context_vec), (keys.transpose(1, 2), values.transpose(1, 2))"
        ),
        "past_keys, past_values = cache": (
            "past_keys, past_values = (part.transpose(1, 2) for part in cache)"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-only-for-one-token",
    "When several tokens come in at once, the cache is dropped",
    hint="Does your code take a chunk of three tokens after a cache?",
    change={
        "if cache is not None:": "if cache is not None and tokens == 1:",
        MASK: (
            "seen = keys.shape[-2] - tokens\n"
            f"        {MASK}"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-kept-on-self",
    "The module remembers the past itself, and ignores the cache that it is given",
    hint="Two texts are written in turn with one module: whose past does each of them get?",
    breaks=("state",),
    change={
        "cache[0].shape[-2]": "self.past[0].shape[-2]",
        "past_keys, past_values = cache": "past_keys, past_values = self.past",
        "head_dim = keys.shape[-1]": (
            "self.past = (keys.detach(), values.detach())\n"
            "        head_dim = keys.shape[-1]"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "past-projected-again",
    "The cache holds the inputs, and all of the past is projected again at every step",
    hint="What is computed in a step that was computed in the step before as well?",
    breaks=("cost",),
    change={
        "if cache is not None:": "if False:",
        "queries = split_heads(self.W_query(x), self.num_heads)": (
            "d_out = self.W_key.out_features\n"
            "        inputs = nn.functional.pad(x, (0, d_out - _d_in))\n"
            "        inputs = split_heads(inputs, self.num_heads)\n"
            "        if cache is not None:\n"
            "            inputs = torch.cat([cache[0], inputs], dim=-2)\n"
            "        everything = merge_heads(inputs)[..., :_d_in]\n"
            "        queries = split_heads(self.W_query(x), self.num_heads)"
        ),
        "self.W_key(x)": "self.W_key(everything)",
        "self.W_value(x)": "self.W_value(everything)",
        TURN_KEYS: "keys = apply_rope(keys, torch.arange(seen + tokens, device=x.device))",
        ROTARY_RESULT: "return self.out_proj(context_vec), (inputs, inputs)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-written-in-place",
    "What stands in the cache that came in is overwritten",
    hint="Two continuations start from one cache: what does the second of them find?",
    breaks=("unchanged",),
    change={
        "past_keys, past_values = cache": (
            "past_keys, past_values = (part.clone() for part in cache)\n"
            "            cache[0].copy_(past_keys.flip(-2))\n"
            "            cache[1].copy_(past_values.flip(-2))"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-turned-in-place", "What came in is turned around in place",
    hint="What does the caller find in it after the call?",
    breaks=("unchanged",),
    change={JOIN_KEYS: "torch.cat([past_keys.transpose_(-2, -1), keys.mT], dim=-1).mT"},
    same_as={"cache-written-in-place": "the results are right, and the cache is changed"},
)  # fmt: skip

mistake(
    "RotaryAttention", "input-changed-in-place",
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

mistake(
    "RotaryAttention", "cache-in-float32",
    "The new cache is a tensor of float32, whatever comes in",
    hint="Which dtype has a new tensor when you say nothing?",
    breaks=("dtype",),
    change={JOIN_KEYS: f"{JOIN_KEYS}.float()", JOIN_VALUES: f"{JOIN_VALUES}.float()"},
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-in-eight-bits", "The cache is rounded to 8 bits a number",
    hint="Does a token that comes alone get the very output that it gets with all others?",
    change={
        ROTARY_RESULT: (
            "step = keys.abs().amax() / 127\n"
            "        return self.out_proj(context_vec), ((keys / step).round() * step, values)"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "cache-through-float32", "The cache passes through float32 on its way",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change={
        ROTARY_RESULT: (
            "return self.out_proj(context_vec), (keys.float().to(x.dtype), "
            "values.float().to(x.dtype))"
        ),
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "none-not-understood",
    "None is not understood where there is no cache yet",
    hint="Is cache=None the same as leaving it out?",
    breaks=("none",),
    change={
        "| None = None": "| tuple = ()",
        "seen = 0 if cache is None else cache[0].shape[-2]": (
            "seen = cache[0].shape[-2] if len(cache) > 0 else 0"
        ),
        "if cache is not None:": "if len(cache) > 0:",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "step-without-gradient",
    "After a cache, new keys and values get no gradient",
    hint="Does the new part of the joined keys have a grad_fn?",
    breaks=("gradients",),
    change={
        JOIN_KEYS: "torch.cat([past_keys, keys.detach()], dim=-2)",
        JOIN_VALUES: "torch.cat([past_values, values.detach()], dim=-2)",
    },
)  # fmt: skip

mistake(
    "RotaryAttention", "rotation-without-gradient", "The rotated keys get no gradient",
    hint="Does the matrix of the keys have a .grad after backward?",
    breaks=("gradients",),
    change={TURN_KEYS: "keys = apply_rope(keys, positions).detach()"},
)  # fmt: skip

accepted(
    "RotaryAttention", "cache-detached", "The cache that comes out carries no graph",
    change={
        ROTARY_RESULT: "return self.out_proj(context_vec), (keys.detach(), values.detach())",
    },
)  # fmt: skip

accepted(
    "RotaryAttention", "positions-from-one", "Positions count from 1, and distances are the same",
    change={POSITIONS: f"{POSITIONS} + 1"},
)  # fmt: skip

accepted(
    "RotaryAttention", "rotated-as-tokens-by-heads",
    "Rotated while tokens stand before heads, with an axis for the heads",
    change={
        TURN_QUERIES: (
            "cos, sin = (\n"
            "            wave(positions[:, None] * 10000.0 ** (-torch.arange(\n"
            "                0, queries.shape[-1], 2, dtype=x.dtype, device=x.device\n"
            "            ) / queries.shape[-1]))[:, None]\n"
            "            for wave in (torch.cos, torch.sin)\n"
            "        )\n"
            "        queries, keys = (\n"
            "            torch.stack([\n"
            "                part[..., 0::2] * cos - part[..., 1::2] * sin,\n"
            "                part[..., 0::2] * sin + part[..., 1::2] * cos,\n"
            "            ], dim=-1).flatten(-2).transpose(1, 2)\n"
            "            for part in (queries.transpose(1, 2), keys.transpose(1, 2))\n"
            "        )"
        ),
        TURN_KEYS: "pass",
    },
)  # fmt: skip


@accepted(
    "RotaryAttention", "plain-keys-kept", "Keys are kept as they were, and rotated at each step"
)
class PlainKeysKept(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def rotated(self, y, start):
        width = y.shape[-1]
        speeds = 10000 ** -(torch.arange(0, width, 2, dtype=y.dtype, device=y.device) / width)
        places = torch.arange(start, start + y.shape[-2], device=y.device)
        cos = (places[:, None] * speeds).cos().repeat_interleave(2, dim=-1)
        sin = (places[:, None] * speeds).sin().repeat_interleave(2, dim=-1)
        partner = torch.stack((-y[..., 1::2], y[..., 0::2]), dim=-1).reshape(y.shape)
        return y * cos + partner * sin

    def forward(self, x, cache=None):
        queries, keys, values = (
            layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        if cache is not None:
            keys = torch.cat([cache[0], keys], dim=2)
            values = torch.cat([cache[1], values], dim=2)
        seen = keys.shape[2] - x.shape[1]
        scores = self.rotated(queries, seen) @ self.rotated(keys, 0).mT / keys.shape[-1] ** 0.5
        weights = scores.masked_fill(future_after(seen, x), -torch.inf).softmax(dim=-1)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2)), (keys, values)


@accepted("RotaryAttention", "as-in-llama", "Complex numbers as in Meta's code, in its names")
class RotaryAsInLlama(nn.Module):
    def __init__(self, dim, d_out, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, d_out // n_heads
        self.wq = nn.Linear(dim, d_out, bias=False)
        self.wk = nn.Linear(dim, d_out, bias=False)
        self.wv = nn.Linear(dim, d_out, bias=False)
        self.wo = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = self.wk(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xv = self.wv(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        start = cache[0].shape[2] if cache else 0
        steps = torch.arange(0, self.head_dim, 2, device=x.device).to(x.dtype)
        freqs = 1.0 / (10000.0 ** (steps / self.head_dim))
        t = torch.arange(start, start + seqlen, device=x.device).to(x.dtype)
        angles = torch.outer(t, freqs)
        freqs_cis = torch.polar(torch.ones_like(angles), angles)[None, :, None]
        xq, xk = (
            torch.view_as_real(
                torch.view_as_complex(y.reshape(bsz, seqlen, self.n_heads, -1, 2)) * freqs_cis
            ).flatten(3)
            for y in (xq, xk)
        )
        xq, keys, values = xq.transpose(1, 2), xk.transpose(1, 2), xv.transpose(1, 2)
        if cache:
            keys = torch.cat([cache[0], keys], dim=2)
            values = torch.cat([cache[1], values], dim=2)
        scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(self.head_dim)
        if seqlen > 1:
            scores = scores + torch.full(
                (seqlen, start + seqlen), float("-inf"), dtype=x.dtype, device=x.device
            ).triu(start + 1)
        scores = F.softmax(scores, dim=-1)
        output = torch.matmul(scores, values).transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.wo(output), [keys, values]


@accepted(
    "RotaryAttention", "angles-as-a-buffer", "Angles of 128 positions in a buffer, a fused layer"
)
class AnglesAsABuffer(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = nn.Linear(d_in, 3 * d_out, bias=False)
        self.c_proj = nn.Linear(d_out, d_out)
        width = d_out // num_heads
        speeds = 10000 ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = torch.arange(128)[:, None] * speeds
        self.register_buffer("waves", torch.stack([angles.cos(), angles.sin()]))

    def rotate(self, y, cos, sin):
        even, odd = y.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def forward(self, x, layer_past=None):
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in self.c_attn(x).chunk(3, dim=-1)
        )
        seen = layer_past[0].shape[-2] if layer_past is not None else 0
        cos, sin = self.waves[:, seen : seen + x.shape[1]].to(x.dtype)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=-2)
            v = torch.cat((layer_past[1], v), dim=-2)
        scores = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(future_after(seen, x), -1e9)
        return self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), (k, v)


@accepted(
    "RotaryAttention", "small-matrices", "Matrices for layers, and a matrix of two by two per pair"
)
class RotaryBySmallMatrices(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads, self.width = num_heads, d_out // num_heads
        self.Wq = nn.Parameter(torch.randn(d_in, d_out))
        self.Wk = nn.Parameter(torch.randn(d_in, d_out))
        self.Wv = nn.Parameter(torch.randn(d_in, d_out))
        self.out = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        shape = (*x.shape[:2], self.num_heads, self.width)
        q, k, v = ((x @ w).view(shape).transpose(1, 2) for w in (self.Wq, self.Wk, self.Wv))
        seen = 0 if cache is None else cache[0].size(2)
        pairs = torch.arange(self.width // 2, dtype=x.dtype, device=x.device)
        angles = torch.arange(seen, seen + x.size(1), device=x.device)[:, None] * torch.exp(
            -2 * pairs * math.log(10000.0) / self.width
        )
        cos, sin = angles.cos(), angles.sin()
        turns = torch.stack([cos, -sin, sin, cos], dim=-1).unflatten(-1, (2, 2))
        q, k = (
            torch.einsum("tpij,bhtpj->bhtpi", turns, y.unflatten(-1, (-1, 2))).flatten(-2)
            for y in (q, k)
        )
        if cache is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache, (k, v)))  # noqa: B905
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * self.width**-0.5
        weights = scores.masked_fill(future_after(seen, x), -torch.inf).softmax(-1)
        context = torch.einsum("bhqk,bhkd->bqhd", weights, v)
        return self.out(context.reshape(*x.shape[:2], -1)), (k, v)


@accepted(
    "RotaryAttention", "names-that-say-nothing", "Layers whose names say nothing, in another order"
)
class RotaryNamesThatSayNothing(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.n = num_heads
        self.last = nn.Linear(d_out, d_out)
        self.alpha = nn.Linear(d_in, d_out, bias=False)
        self.beta = nn.Linear(d_in, d_out, bias=False)
        self.gamma = nn.Linear(d_in, d_out, bias=False)

    def turn(self, y, start):
        d = y.shape[-1]
        out = torch.empty_like(y)
        places = torch.arange(start, start + y.shape[-2], dtype=y.dtype, device=y.device)
        for i in range(d // 2):
            c, s = (
                (places * 10000.0 ** (-2 * i / d)).cos(),
                (places * 10000.0 ** (-2 * i / d)).sin(),
            )
            out[..., 2 * i] = y[..., 2 * i] * c - y[..., 2 * i + 1] * s
            out[..., 2 * i + 1] = y[..., 2 * i] * s + y[..., 2 * i + 1] * c
        return out

    def forward(self, x, cache=None):
        messages, asking, asked = (
            layer(x).unflatten(-1, (self.n, -1)).transpose(1, 2)
            for layer in (self.alpha, self.beta, self.gamma)
        )
        seen = 0 if cache is None else cache[0].shape[2]
        asking, asked = self.turn(asking, seen), self.turn(asked, seen)
        if cache is not None:
            asked = torch.cat([cache[1], asked], dim=2)
            messages = torch.cat([cache[0], messages], dim=2)
        scores = asking @ asked.mT / asked.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(1 + seen) == 1, -torch.inf)
        out = self.last((scores.softmax(-1) @ messages).transpose(1, 2).flatten(2))
        return out, (messages, asked)


@accepted("RotaryAttention", "newest-first", "New keys before the old ones, and a mask to match")
class RotaryNewestFirst(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.to_q = nn.Linear(d_in, d_out, bias=False)
        self.to_kv = nn.Linear(d_in, 2 * d_out, bias=False)
        self.to_out = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        queries, keys, values = (
            y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for y in (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        )
        seen = 0 if cache is None else cache[1].shape[2]
        width = keys.shape[-1]
        speeds = torch.logspace(0, -4, width // 2 + 1, dtype=x.dtype, device=x.device)[:-1]
        angles = torch.arange(seen, seen + x.shape[1], device=x.device)[:, None] * speeds
        turns = torch.complex(angles.cos(), angles.sin())
        queries, keys = (
            torch.view_as_real(
                torch.complex(y[..., ::2].contiguous(), y[..., 1::2].contiguous()) * turns
            ).flatten(-2)
            for y in (queries, keys)
        )
        if cache is not None:
            keys, values = torch.cat([keys, cache[0]], 2), torch.cat([values, cache[1]], 2)
        scores = queries @ keys.mT / width**0.5
        mask = F.pad(future_after(0, x), (0, seen))
        weights = scores.masked_fill(mask, -torch.inf).softmax(dim=-1)
        return self.to_out((weights @ values).transpose(1, 2).flatten(2)), (keys, values)


# --- LlamaBlock ----------------------------------------------------------------------------------

READ = "found, _cache = self.attention(rms_norm(x, self.norm1))"
ADD = "h = x + found"
FEED = "return h + self.feed_forward(rms_norm(h, self.norm2))"
ONE_GAIN = "self.norm1 = nn.Parameter(torch.ones(d_model))"
OTHER_GAIN = "self.norm2 = nn.Parameter(torch.ones(d_model))"

mistake(
    "LlamaBlock", "post-norm", "The norms come after the sums: this is post-norm",
    hint="What does the attention read here: x, or x after a norm?",
    change={
        READ: "found, _cache = self.attention(x)",
        ADD: "h = rms_norm(x + found, self.norm1)",
        FEED: "return rms_norm(h + self.feed_forward(h), self.norm2)",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "norm-behind-each-layer", "Each norm comes after its layer, and not before it",
    hint="What does the attention read: x, or x after a norm?",
    change={
        READ: "found, _cache = self.attention(x)",
        ADD: "h = x + rms_norm(found, self.norm1)",
        FEED: "return h + rms_norm(self.feed_forward(h), self.norm2)",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "no-first-shortcut", "The shortcut around the attention is missing",
    hint="What is added to what the attention finds?",
    change={ADD: "h = found"},
)  # fmt: skip

mistake(
    "LlamaBlock", "no-second-shortcut", "The shortcut around the feed-forward layer is missing",
    hint="What is added to what the feed-forward layer gives?",
    change={FEED: "return self.feed_forward(rms_norm(h, self.norm2))"},
)  # fmt: skip

mistake(
    "LlamaBlock", "first-shortcut-after-norm", "The first shortcut starts behind the norm",
    hint="What is added to what the attention finds: x, or what the norm made of it?",
    change={READ: "x = rms_norm(x, self.norm1)\n        found, _cache = self.attention(x)"},
)  # fmt: skip

mistake(
    "LlamaBlock", "first-norm-twice", "What the first norm gives is normed once more",
    hint="How often does norm1 come before the attention, and what is added to what that finds?",
    change={
        READ: f"x = rms_norm(x, self.norm1)\n        {READ}",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "second-shortcut-after-norm", "The second shortcut starts behind the norm",
    hint="What is added to what the feed-forward layer gives: h, or what the norm made of it?",
    change={FEED: "h = rms_norm(h, self.norm2)\n        return h + self.feed_forward(h)"},
)  # fmt: skip

mistake(
    "LlamaBlock", "input-returned", "What came in is returned, and nothing is made of it",
    hint="Which name does the last line return, and which lines does its value come from?",
    change={FEED: f"h = {FEED.removeprefix('return ')}\n        return x"},
)  # fmt: skip

mistake(
    "LlamaBlock", "no-attention", "The attention is left out",
    hint="Which line of forward looks at other tokens?",
    change={READ: "", ADD: "h = x"},
)  # fmt: skip

mistake(
    "LlamaBlock", "no-feed-forward", "The feed-forward network is left out",
    hint="What comes after the attention in a block?",
    change={FEED: "return h"},
)  # fmt: skip

mistake(
    "LlamaBlock", "second-shortcut-from-x",
    "The second shortcut starts at the block's input, and what attention added is lost",
    hint="To what does the feed-forward layer add: to x, or to what it read?",
    change={FEED: "return x + self.feed_forward(rms_norm(h, self.norm2))"},
)  # fmt: skip

mistake(
    "LlamaBlock", "parallel", "The feed-forward layer reads x, and not the first sum",
    hint="May the feed-forward layer see what attention found?",
    change={FEED: "return h + self.feed_forward(rms_norm(x, self.norm2))"},
)  # fmt: skip

mistake(
    "LlamaBlock", "feed-forward-first", "The feed-forward layer comes before the attention",
    hint="Which of the two layers should see what the other one did?",
    change={
        READ: "h = x + self.feed_forward(rms_norm(x, self.norm2))",
        ADD: "found, _cache = self.attention(rms_norm(h, self.norm1))",
        FEED: "return h + found",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "norms-swapped", "The two norms have changed places",
    hint="Which of the gains belongs to the attention?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, self.norm2))",
        FEED: "return h + self.feed_forward(rms_norm(h, self.norm1))",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "one-gain-used-twice", "One gain is used in both places",
    hint="How many gains does the block have, and which line uses the second?",
    change={FEED: "return h + self.feed_forward(rms_norm(h, self.norm1))"},
)  # fmt: skip

mistake(
    "LlamaBlock", "one-gain", "There is one gain for both norms",
    hint="How many gains does the block learn?",
    change={OTHER_GAIN: "self.norm2 = self.norm1"},
    same_as={"one-gain-used-twice": "a second gain that nobody uses is as good as none"},
    breaks=("computes", "norms"),
)  # fmt: skip

mistake(
    "LlamaBlock", "gains-for-feed-forward-only", "The attention reads x as it is, without a norm",
    hint="What does each of the two layers read?",
    change={READ: "found, _cache = self.attention(x)"},
)  # fmt: skip

mistake(
    "LlamaBlock", "no-second-norm", "The feed-forward layer reads the sum as it is, without a norm",
    hint="What does each of the two layers read?",
    change={FEED: "return h + self.feed_forward(h)"},
)  # fmt: skip

LAYER_NORM = "nn.functional.layer_norm({0}, {0}.shape[-1:], {1}, eps=1e-6)"

mistake(
    "LlamaBlock", "layer-norm", "The mean is subtracted: these are layer norms without a shift",
    hint="What does an RMS norm do to a token whose features are all 5?",
    change={
        READ: f"found, _cache = self.attention({LAYER_NORM.format('x', 'self.norm1')})",
        FEED: f"return h + self.feed_forward({LAYER_NORM.format('h', 'self.norm2')})",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "one-plus-gain", "What multiplies is 1 + gain, and not the gain",
    hint="What does a norm with a gain of 1 do to a token?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, 1 + self.norm1))",
        FEED: "return h + self.feed_forward(rms_norm(h, 1 + self.norm2))",
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "gains-that-are-not-learned", "The gains are no parameters, and never learn",
    hint="What does list(block.parameters()) show?",
    change={
        ONE_GAIN: "self.norm1 = torch.ones(d_model)",
        OTHER_GAIN: "self.norm2 = torch.ones(d_model)",
    },
    breaks=("norms",),
)  # fmt: skip

mistake(
    "LlamaBlock", "no-gains", "The norms have no gain",
    hint="What multiplies the normed features?",
    change={
        ONE_GAIN: "self.norm1 = None",
        OTHER_GAIN: "self.norm2 = None",
        READ: "found, _cache = self.attention(nn.functional.rms_norm(x, x.shape[-1:], eps=1e-6))",
        FEED: (
            "return h + self.feed_forward(nn.functional.rms_norm(h, h.shape[-1:], eps=1e-6))"
        ),
    },
    same_as={"gains-that-are-not-learned": "a gain of 1 for ever is as good as none"},
    breaks=("norms",),
)  # fmt: skip

mistake(
    "LlamaBlock", "eps-larger", "The norms add 1e-5, and not 1e-6",
    hint="Which number stands under the root in the statement?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, self.norm1, 1e-5))",
        FEED: "return h + self.feed_forward(rms_norm(h, self.norm2, 1e-5))",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "LlamaBlock", "eps-much-larger", "The norms add 1e-3, and not 1e-6",
    hint="Which number stands under the root in the statement?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, self.norm1, 1e-3))",
        FEED: "return h + self.feed_forward(rms_norm(h, self.norm2, 1e-3))",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "LlamaBlock", "no-eps", "The norms add nothing to the mean square",
    hint="What do you divide by where all features of a token are 0?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, self.norm1, 0.0))",
        FEED: "return h + self.feed_forward(rms_norm(h, self.norm2, 0.0))",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "LlamaBlock", "eps-of-torch", "The norms add what nn.RMSNorm adds when nobody says anything",
    hint="Which eps does nn.RMSNorm have when you say nothing?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, self.norm1, 1.1920929e-07))",
        FEED: "return h + self.feed_forward(rms_norm(h, self.norm2, 1.1920929e-07))",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "LlamaBlock", "eps-smaller", "The norms add 1e-8, and not 1e-6",
    hint="Which number stands under the root in the statement?",
    change={
        READ: "found, _cache = self.attention(rms_norm(x, self.norm1, 1e-8))",
        FEED: "return h + self.feed_forward(rms_norm(h, self.norm2, 1e-8))",
    },
    breaks=("eps",),
)  # fmt: skip


def normed_by(*lines):
    """Norms of one's own in the block, in these lines."""
    body = "\n            ".join(lines)
    return {
        READ: (
            f"def norm(x, gain):\n            {body}\n\n"
            "        found, _cache = self.attention(norm(x, self.norm1))"
        ),
        FEED: "return h + self.feed_forward(norm(h, self.norm2))",
    }


MEAN_SQUARE = "square = x.square().mean(dim=-1, keepdim=True)"

mistake(
    "LlamaBlock", "eps-beside-the-root", "1e-6 is added to the root, and not under it",
    hint="Which comes first, the root or the sum?",
    change=normed_by(MEAN_SQUARE, "return x / (square.sqrt() + 1e-6) * gain"),
    breaks=("eps",),
)  # fmt: skip

mistake(
    "LlamaBlock", "mean-subtracted-on-top",
    "The norms subtract the mean on top, and it stays in the squares",
    hint="Is any mean subtracted in an RMS norm?",
    change=normed_by(
        MEAN_SQUARE, "return (x - x.mean(dim=-1, keepdim=True)) / (square + 1e-6).sqrt() * gain"
    ),
)  # fmt: skip

mistake(
    "LlamaBlock", "divided-by-one-less", "The sum of squares is divided by d_model - 1",
    hint="How many squares are there, and by which number is their sum divided?",
    change=normed_by(
        "square = x.square().sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)",
        "return x / (square + 1e-6).sqrt() * gain",
    ),
)  # fmt: skip

mistake(
    "LlamaBlock", "divided-by-spread", "The norms divide by the spread about the mean",
    hint="Of which numbers are the squares in an RMS norm: of x, or of x less its mean?",
    change=normed_by(
        "square = x.var(dim=-1, keepdim=True, correction=0)",
        "return x / (square + 1e-6).sqrt() * gain",
    ),
)  # fmt: skip

BETWEEN = "self.feed_forward.W_gate(read)"
UP = "self.feed_forward.W_up(read)"


def gated(by):
    """The feed-forward layer written out in the block, with another product in it."""
    return {
        FEED: (
            f"read = rms_norm(h, self.norm2)\n        return h + self.feed_forward.W_down({by})"
        ),
    }


mistake(
    "LlamaBlock", "gate-by-gelu", "The gate is a GELU, and not a SiLU",
    hint="Which function does the gate pass through?",
    change=gated(f"nn.functional.gelu({BETWEEN}) * {UP}"),
)  # fmt: skip

mistake(
    "LlamaBlock", "gate-by-sigmoid", "The gate is a sigmoid, and not z · sigmoid(z)",
    hint="What is silu(4)?",
    change=gated(f"torch.sigmoid({BETWEEN}) * {UP}"),
)  # fmt: skip

mistake(
    "LlamaBlock", "gate-on-the-other-side", "SiLU is applied to up, and not to the gate",
    hint="Which of the two projections passes through silu?",
    change=gated(f"{BETWEEN} * nn.functional.silu({UP})"),
)  # fmt: skip

mistake(
    "LlamaBlock", "silu-on-both", "Both projections go through silu",
    hint="Which of the two projections passes through silu?",
    change=gated(f"nn.functional.silu({BETWEEN}) * nn.functional.silu({UP})"),
)  # fmt: skip

mistake(
    "LlamaBlock", "no-silu", "The gate has no silu",
    hint="What is done to W_gate(x) before it multiplies?",
    change=gated(f"{BETWEEN} * {UP}"),
)  # fmt: skip

mistake(
    "LlamaBlock", "gate-added", "Gate and projection are added, and not multiplied",
    hint="What does a gate of 0 let through?",
    change=gated(f"nn.functional.silu({BETWEEN}) + {UP}"),
)  # fmt: skip

mistake(
    "LlamaBlock", "no-gate", "W_gate goes through SiLU, and nothing is multiplied: W_up is unused",
    hint="How many matrices does the feed-forward layer have, and which one did nothing?",
    change=gated(f"nn.functional.silu({BETWEEN})"),
)  # fmt: skip

mistake(
    "LlamaBlock", "gate-by-relu", "The gate is a ReLU, and not a SiLU",
    hint="Which function does the gate pass through?",
    change=gated(f"torch.relu({BETWEEN}) * {UP}"),
)  # fmt: skip

mistake(
    "LlamaBlock", "rotated-tokens", "The tokens are rotated before the attention as well",
    hint="What is rotated: tokens, or queries and keys?",
    change={
        READ: (
            "places = torch.arange(x.shape[1], device=x.device)\n"
            "        read = apply_rope(rms_norm(x, self.norm1), places)\n"
            "        found, _cache = self.attention(read)"
        ),
    },
)  # fmt: skip

TURN_BOTH = "queries, keys = apply_rope(queries, places), apply_rope(keys, places)"
WRITTEN_OUT = """read, layer = rms_norm(x, self.norm1), self.attention
        queries, keys, values = (
            split_heads(project(read), layer.num_heads)
            for project in (layer.W_query, layer.W_key, layer.W_value)
        )
        places = torch.arange(x.shape[1], device=x.device)
        queries, keys = apply_rope(queries, places), apply_rope(keys, places)
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        weights = masked_softmax(scores, causal_mask(x.shape[1]).to(x.device))
        found = layer.out_proj(merge_heads(weights @ values))"""


def written_out(*changes):
    """The attention written out in the block, with these changes."""
    text = WRITTEN_OUT
    for old, new in changes:
        text = text.replace(old, new)
    return {READ: text}


def turned_by(angles, partners, change=()):
    """Queries and keys of the block rotated by a function of one's own."""
    turn = turning(angles, partners, "places", change)
    return written_out(
        (TURN_BOTH, f"{turn}\n        queries, keys = turned(queries), turned(keys)")
    )


mistake(
    "LlamaBlock", "not-rotated", "Nothing is rotated: the attention knows no positions",
    hint="How does a query know how far away a key is?",
    change=written_out((TURN_BOTH, "")),
)  # fmt: skip

mistake(
    "LlamaBlock", "values-rotated-too", "The values are rotated too",
    hint="Which of the three are compared with each other, and which is handed on?",
    change=written_out(("weights @ values", "weights @ apply_rope(values, places)")),
)  # fmt: skip

mistake(
    "LlamaBlock", "rotated-before-splitting",
    "Queries and keys are rotated before they are cut into heads",
    hint="Which pair of features turns fastest in the second head?",
    change=written_out(
        ("split_heads(project(read), layer.num_heads)", "project(read)"),
        (TURN_BOTH, f"{TURN_BOTH}\n"
         "        queries, keys, values = (\n"
         "            split_heads(part, layer.num_heads) for part in (queries, keys, values)\n"
         "        )"),
    ),
)  # fmt: skip

mistake(
    "LlamaBlock", "half-split-pairs", "Feature i turns with feature i + half, as in other models",
    hint="Which features make a pair: neighbours, or those that lie half a head apart?",
    change=written_out((
        TURN_BOTH,
        "queries, keys = (\n"
        "            apply_rope(torch.stack(part.chunk(2, -1), -1).flatten(-2), places)\n"
        "            for part in (queries, keys)\n"
        "        )",
    )),
)  # fmt: skip

mistake(
    "LlamaBlock", "halves-turned-with-the-angles-of-neighbours",
    "Features are paired with those half a head apart, and angles with neighbours",
    hint=WHOSE_PAIR,
    change=turned_by(ANGLES_OF_NEIGHBOURS, HALVES),
)  # fmt: skip

mistake(
    "LlamaBlock", "neighbours-turned-with-the-angles-of-halves",
    "Features are paired with neighbours, and angles with those half a head apart",
    hint=WHOSE_PAIR,
    change=turned_by(ANGLES_OF_HALVES, NEIGHBOURS),
)  # fmt: skip

mistake(
    "LlamaBlock", "speeds-in-float32", "The speeds of the pairs have the digits of float32",
    hint="Which digits does a root of 10000 lose in float32?",
    breaks=("dtype",),
    change=turned_by(ANGLES_OF_NEIGHBOURS, NEIGHBOURS, SPEEDS_IN_FLOAT32),
    same_as={"float32-inside": "both lose digits"},
)  # fmt: skip

mistake(
    "LlamaBlock", "another-theta", "theta is 500,000, as in Llama 3, and not 10,000",
    hint="What is the usual theta of apply_rope?",
    change=written_out(("places)", "places, 500000.0)")),
)  # fmt: skip

mistake(
    "LlamaBlock", "queries-only", "Only the queries are rotated",
    hint="Turning by m and back by n is turning by m - n: who turns by n?",
    change=written_out((TURN_BOTH, "queries = apply_rope(queries, places)")),
)  # fmt: skip

mistake(
    "LlamaBlock", "keys-only", "Only the keys are rotated",
    hint="Turning by m and back by n is turning by m - n: who turns by m?",
    change=written_out((TURN_BOTH, "keys = apply_rope(keys, places)")),
)  # fmt: skip

mistake(
    "LlamaBlock", "exponent-without-its-two",
    "The exponent is i / head_dim, where it should be 2i / head_dim",
    hint="With heads of four features, by how much does pair 1 turn a position?",
    change=written_out((
        TURN_BOTH,
        "queries, keys = (apply_rope(part, places, 100.0) for part in (queries, keys))",
    )),
)  # fmt: skip

mistake(
    "LlamaBlock", "speeds-of-d-model", "The speeds count all features, and not those of a head",
    hint="In the exponent -2i/d, what is d: the width of all heads together, or that of one?",
    change=written_out((
        TURN_BOTH,
        "queries, keys = (\n"
        "            apply_rope(part, places, 10000 ** (1 / layer.num_heads))\n"
        "            for part in (queries, keys)\n"
        "        )",
    )),
)  # fmt: skip

mistake(
    "LlamaBlock", "sees-the-future", "Nothing hides the future",
    hint="Change the last token: which outputs may change?",
    change=written_out((
        "masked_softmax(scores, causal_mask(x.shape[1]).to(x.device))", "scores.softmax(dim=-1)",
    )),
)  # fmt: skip

mistake(
    "LlamaBlock", common="no-scale",
    change=written_out((" / queries.shape[-1] ** 0.5", "")),
)  # fmt: skip

mistake(
    "LlamaBlock", "one-head", "There is one head, whatever num_heads says",
    hint="Which arguments does your attention take, and in which order?",
    change={"RotaryAttention(d_model, d_model, num_heads)": "RotaryAttention(d_model, d_model, 1)"},
)  # fmt: skip

mistake(
    "LlamaBlock", "goes-on-with-the-last-text",
    "The cache of the last call is used in the next one",
    hint="What should the second call remember of the first one?",
    change={
        READ: (
            "past = getattr(self, 'past', None)\n"
            "        found, self.past = self.attention(rms_norm(x, self.norm1), past)"
        ),
    },
    breaks=("computes", "length", "gradients", "eps"),
)  # fmt: skip

mistake(
    "LlamaBlock", "hundred-tokens", "Sentences of more than 100 tokens fail",
    hint="How many positions did you prepare?",
    change={
        READ: (
            "if x.shape[1] > 100:\n"
            "            raise ValueError('the sentence is too long')\n"
            f"        {READ}"
        ),
    },
    breaks=("length",),
)  # fmt: skip

mistake(
    "LlamaBlock", "output-without-bias", "The attention's last layer has no bias",
    hint="Which layer of your RotaryAttention has a bias?",
    change={
        OTHER_GAIN: (
            f"{OTHER_GAIN}\n"
            "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "LlamaBlock", "qkv-biases", common="qkv-bias",
    change={
        OTHER_GAIN: (
            f"{OTHER_GAIN}\n"
            "        self.attention.W_query = nn.Linear(d_model, d_model)\n"
            "        self.attention.W_key = nn.Linear(d_model, d_model)\n"
            "        self.attention.W_value = nn.Linear(d_model, d_model)"
        ),
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "feed-forward-biases", "The layers of the feed-forward part have a bias",
    hint="What does nn.Linear do when you say nothing about the bias?",
    change={
        "self.feed_forward = SwiGLU(d_model, d_hidden)": (
            "self.feed_forward = SwiGLU(d_model, d_hidden)\n"
            "        self.feed_forward.W_gate = nn.Linear(d_model, d_hidden)\n"
            "        self.feed_forward.W_up = nn.Linear(d_model, d_hidden)\n"
            "        self.feed_forward.W_down = nn.Linear(d_hidden, d_model)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "LlamaBlock", common="float32-inside",
    change={ADD: "h = (x + found).float().to(x.dtype)"},
)  # fmt: skip

mistake(
    "LlamaBlock", "attention-biases", common="qkv-bias",
    hint="What does nn.Linear do when you say nothing about the bias?",
    change={
        OTHER_GAIN: (
            f"{OTHER_GAIN}\n"
            "        self.attention.W_query = nn.Linear(d_model, d_model)\n"
            "        self.attention.W_key = nn.Linear(d_model, d_model)\n"
            "        self.attention.W_value = nn.Linear(d_model, d_model)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "LlamaBlock", "feed-forward-sizes-swapped",
    "The feed-forward layers take what they should give",
    hint="Which of d_model and d_hidden comes first where you make the feed-forward part?",
    change={"SwiGLU(d_model, d_hidden)": "SwiGLU(d_hidden, d_model)"},
)  # fmt: skip

# Norms in float32, as in Llama's code: by a root or rsqrt, with the gain in either dtype.
IN_FLOAT32 = "whole, x = x, x.float()"

for slug, result in (
    ("", "(x * torch.rsqrt(square + EPS)).to(whole.dtype) * gain"),
    ("-divided", "(x / torch.sqrt(square + EPS)).to(whole.dtype) * gain"),
    ("-with-gain", "(x * torch.rsqrt(square + EPS) * gain.float()).to(whole.dtype)"),
    ("-divided-with-gain", "(x / torch.sqrt(square + EPS) * gain.float()).to(whole.dtype)"),
):
    lines = IN_FLOAT32, MEAN_SQUARE, f"return {result}"
    mistake(
        "LlamaBlock", f"norms-in-float32{slug}", common="float32-inside",
        change=normed_by(*(line.replace("EPS", "1e-6") for line in lines)),
    )  # fmt: skip
    mistake(
        "LlamaBlock", together=(f"norms-in-float32{slug}", "eps-larger"),
        change=normed_by(*(line.replace("EPS", "1e-5") for line in lines)),
    )  # fmt: skip
    mistake("LlamaBlock", together=(f"norms-in-float32{slug}", "output-without-bias"))
    # The block as it was published.
    mistake(
        "LlamaBlock", together=(f"norms-in-float32{slug}", "eps-larger", "output-without-bias"),
        change={
            **normed_by(*(line.replace("EPS", "1e-5") for line in lines)),
            OTHER_GAIN: (
                f"{OTHER_GAIN}\n"
                "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
            ),
        },
    )  # fmt: skip

# Without the bias of the output layer, as in published code, and with one slip more.
for slug in (
    "eps-larger",
    "eps-smaller",
    "eps-of-torch",
    "no-eps",
    "eps-beside-the-root",
    "half-split-pairs",
    "halves-turned-with-the-angles-of-neighbours",
    "not-rotated",
    "another-theta",
    "layer-norm",
    "sees-the-future",
    "no-scale",
    "post-norm",
    "gate-by-gelu",
    "no-silu",
    "no-first-shortcut",
    "no-second-shortcut",
):
    mistake("LlamaBlock", together=("output-without-bias", slug))

mistake("LlamaBlock", together=("attention-biases", "feed-forward-biases"))
mistake("LlamaBlock", together=("attention-biases", "eps-larger"))
mistake("LlamaBlock", together=("attention-biases", "eps-smaller"))
mistake("LlamaBlock", together=("feed-forward-biases", "eps-larger"))
mistake("LlamaBlock", together=("output-without-bias", "feed-forward-biases"))

mistake(
    "LlamaBlock", together=("attention-biases", "output-without-bias"),
    change={
        OTHER_GAIN: (
            f"{OTHER_GAIN}\n"
            "        self.attention.W_query = nn.Linear(d_model, d_model)\n"
            "        self.attention.W_key = nn.Linear(d_model, d_model)\n"
            "        self.attention.W_value = nn.Linear(d_model, d_model)\n"
            "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
)  # fmt: skip

mistake(
    "LlamaBlock", "adds-in-place", "x += … changes the caller's tensor",
    hint="Whose tensor is x when forward begins?",
    change={ADD: "x += found\n        h = x"},
    breaks=("unchanged", "gradients"),
)  # fmt: skip

mistake(
    "LlamaBlock", "written-into-the-input",
    "The first sum is written into the caller's tensor as well",
    hint="Who else holds the tensor that you were given?",
    change={
        READ: f"kept, x = x, x.clone()\n        {READ}",
        ADD: "h = x + found\n        kept.data.copy_(h)",
    },
    breaks=("unchanged",),
)  # fmt: skip

common_mistakes("LlamaBlock", "no-gradient", "no-super-init")

mistake(
    "LlamaBlock", "shortcut-detached", "No gradient flows along the shortcut",
    hint="Along which way would a gradient pass a hundred blocks?",
    change={ADD: "h = x.detach() + found"},
    breaks=("gradients",),
)  # fmt: skip

mistake(
    "LlamaBlock", "cache-returned-too", "The cache of the attention is returned as well",
    hint="What would the next block do with what this one returns?",
    change={"_cache": "cache", FEED: f"{FEED}, cache"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "LlamaBlock", common="calls-torch-attention",
    change=written_out((
        "found = layer.out_proj(merge_heads(weights @ values))",
        "attend = nn.functional.scaled_dot_product_attention\n"
        "        found = attend(queries, keys, values, is_causal=True)\n"
        "        found = layer.out_proj(merge_heads(found))",
    )),
)  # fmt: skip


class LlamaAttention(nn.Module):
    """Attention with Llama's names, and no cache."""

    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        return self.o_proj(attend_rotated(q, k, v, self.num_heads))


def attend_rotated(q, k, v, num_heads):
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in (q, k, v))
    q, k = turned(q), turned(k)
    future = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -torch.inf)
    return (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)


def turned(x, theta=10000.0):
    d = x.shape[-1]
    speeds = theta ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    places = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)
    cos, sin = (places[:, None] * speeds).cos(), (places[:, None] * speeds).sin()
    one, other = x[..., 0::2], x[..., 1::2]
    return torch.stack([one * cos - other * sin, one * sin + other * cos], dim=-1).flatten(-2)


class LlamaNorm(nn.Module):
    """An RMS norm as in Llama's code."""

    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class LlamaFeed(nn.Module):
    """A feed-forward layer with the numbers of Llama's first code."""

    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(nn.functional.silu(self.w1(x)) * self.w3(x))


@accepted("LlamaBlock", "as-in-llama", "Names of Llama's own code")
class LlamaBlockAsInLlama(nn.Module):
    def __init__(self, dim, n_heads, hidden_dim):
        super().__init__()
        self.attention = LlamaAttention(dim, n_heads)
        self.feed_forward = LlamaFeed(dim, hidden_dim)
        self.attention_norm = LlamaNorm(dim)
        self.ffn_norm = LlamaNorm(dim)

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


@accepted("LlamaBlock", "as-in-transformers", "Names of a library, gate and up in one layer")
class LlamaBlockAsInTransformers(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, intermediate_size):
        super().__init__()
        self.self_attn = LlamaAttention(hidden_size, num_attention_heads)
        self.mlp = nn.ModuleDict(
            {
                "gate_up_proj": nn.Linear(hidden_size, 2 * intermediate_size, bias=False),
                "down_proj": nn.Linear(intermediate_size, hidden_size, bias=False),
            }
        )
        self.input_layernorm = nn.RMSNorm(hidden_size, eps=1e-6)
        self.post_attention_layernorm = nn.RMSNorm(hidden_size, eps=1e-6)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
        read = self.post_attention_layernorm(hidden_states)
        gate, up = self.mlp["gate_up_proj"](read).chunk(2, dim=-1)
        return hidden_states + self.mlp["down_proj"](nn.functional.silu(gate) * up)


@accepted("LlamaBlock", "bare-parameters", "Matrices and gains in the block itself")
class LlamaBlockOfMatrices(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.num_heads = num_heads
        self.gain1 = nn.Parameter(torch.ones(d_model))
        self.gain2 = nn.Parameter(torch.ones(d_model))
        self.Wq = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.Wk = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.Wv = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.Wo = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.bo = nn.Parameter(torch.zeros(d_model))
        self.W_gate = nn.Parameter(torch.randn(d_model, d_hidden) / d_model**0.5)
        self.W_up = nn.Parameter(torch.randn(d_model, d_hidden) / d_model**0.5)
        self.W_down = nn.Parameter(torch.randn(d_hidden, d_model) / d_hidden**0.5)

    def forward(self, x):
        width = (x.shape[-1],)
        n = nn.functional.rms_norm(x, width, self.gain1, eps=1e-6)
        x = x + attend_rotated(n @ self.Wq, n @ self.Wk, n @ self.Wv, self.num_heads) @ self.Wo
        x = x + self.bo
        n = nn.functional.rms_norm(x, width, self.gain2, eps=1e-6)
        return x + (nn.functional.silu(n @ self.W_gate) * (n @ self.W_up)) @ self.W_down


class LlamaPreNorm(nn.Module):
    """A norm, then a layer, and the shortcut around both."""

    def __init__(self, dim, layer):
        super().__init__()
        self.norm = LlamaNorm(dim)
        self.fn = layer

    def forward(self, x):
        return x + self.fn(self.norm(x))


@accepted("LlamaBlock", "wrapped", "Two wrappers of a norm, a layer and its shortcut, in a row")
class LlamaBlockWrapped(nn.Sequential):
    def __init__(self, d, heads, hidden):
        super().__init__(
            LlamaPreNorm(d, LlamaAttention(d, heads)), LlamaPreNorm(d, LlamaFeed(d, hidden))
        )


@accepted("LlamaBlock", "flat", "A fused layer and three more in the block, gains in a list")
class LlamaBlockFlat(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.proj = nn.Linear(d_model, d_model)
        self.gate = nn.Linear(d_model, d_hidden, bias=False)
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.down = nn.Linear(d_hidden, d_model, bias=False)
        self.gains = nn.ParameterList([torch.ones(d_model), torch.ones(d_model)])

    def normed(self, x, n):
        return x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() * self.gains[n]

    def forward(self, x):
        q, k, v = self.qkv(self.normed(x, 0)).chunk(3, dim=-1)
        x = x + self.proj(attend_rotated(q, k, v, self.num_heads))
        read = self.normed(x, 1)
        gate = self.gate(read)
        return x + self.down(gate * torch.sigmoid(gate) * self.up(read))


@accepted("LlamaBlock", "names-that-say-nothing", "Parts named by letters, made last to first")
class LlamaBlockOfLetters(nn.Module):
    def __init__(self, d, heads, hidden):
        super().__init__()
        self.d, self.c = LlamaFeed(d, hidden), LlamaNorm(d)
        self.b, self.a = LlamaAttention(d, heads), LlamaNorm(d)

    def forward(self, x):
        x = self.b(self.a(x)) + x
        return self.d(self.c(x)) + x


@accepted("LlamaBlock", "norms-inside", "Each layer has its norm inside")
class LlamaBlockNormsInside(nn.Module):
    def __init__(self, d, heads, hidden):
        super().__init__()
        self.attn = nn.Sequential(LlamaNorm(d), LlamaAttention(d, heads))
        self.mlp = nn.Sequential(LlamaNorm(d), LlamaFeed(d, hidden))

    def forward(self, x):
        x = x + self.attn(x)
        return x + self.mlp(x)


# --- EncoderDecoderBlock --------------------------------------------------------------------------

OWN = "h = x + self.attention(self.norm1(x))[0]  # causal; the cache is of no use here"
OTHER = "h = h + self.cross(self.norm2(h), context, context_mask)"
NETWORK = "return h + self.feed_forward(self.norm3(h))"
THIRD_NORM = "self.norm3 = nn.LayerNorm(d_model)"
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
    "EncoderDecoderBlock", "roles-swapped-and-cut", "The context asks, and x answers",
    hint="From which sequence come the queries: which one gets a result for each of its tokens?",
    change={
        OTHER: "h = h + self.cross(context, self.norm2(h))[:, : x.shape[1]]",
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
    "EncoderDecoderBlock", "no-cross-attention", "The second attention is left out",
    hint="Which line of forward reads the context?",
    change={OTHER: ""},
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-self-attention", "Self-attention is left out",
    hint="Which line of forward lets a token of x look at the ones before it?",
    change={OWN: "h = x"},
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
    "EncoderDecoderBlock", "input-returned", "What came in is returned, and nothing is made of it",
    hint="Which name does the last line return, and which lines does its value come from?",
    change={NETWORK: f"h = {NETWORK.removeprefix('return ')}\n        return x"},
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
    "EncoderDecoderBlock", "gelu-after-both", "A GELU comes after down, too",
    hint="How often does the formula have a GELU?",
    change={NETWORK: "return h + nn.functional.gelu(self.feed_forward(self.norm3(h)))"},
    breaks=("computes", "gelu"),
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
    "EncoderDecoderBlock", "network-without-bias", "No layer of the network has a bias",
    hint="How many biases does the statement name?",
    change={
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.feed_forward = nn.Sequential(\n"
            "            nn.Linear(d_model, d_hidden, bias=False),\n"
            "            nn.GELU(),\n"
            "            nn.Linear(d_hidden, d_model, bias=False),\n"
            "        )"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "down-without-bias", "The last layer of the network has no bias",
    hint="How many biases does the statement name?",
    change={
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.feed_forward = nn.Sequential(\n"
            "            nn.Linear(d_model, d_hidden),\n"
            "            nn.GELU(),\n"
            "            nn.Linear(d_hidden, d_model, bias=False),\n"
            "        )"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "outputs-without-bias",
    "The output layers of both attentions have no bias",
    hint="How many biases does the statement name?",
    change={
        THIRD_NORM: (
            f"{THIRD_NORM}\n"
            "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)\n"
            "        self.cross.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "self-output-without-bias",
    "The output layer of self-attention has no bias",
    hint="How many biases does the statement name?",
    change={
        THIRD_NORM: (
            f"{THIRD_NORM}\n"
            "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "cross-output-without-bias",
    "The output layer of the second attention has no bias",
    hint="How many biases does the statement name?",
    change={
        THIRD_NORM: (
            f"{THIRD_NORM}\n"
            "        self.cross.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "longest-sentence", "Sentences of more than 128 tokens fail",
    hint="How long may a sentence be?",
    change={
        OWN: (
            "if x.shape[1] > 128:\n"
            "            raise ValueError('the sentence is too long')\n"
            f"        {OWN}"
        ),
    },
    breaks=("length",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "longest-context", "Contexts of more than 128 tokens fail",
    hint="How long may a sentence be?",
    change={
        OWN: (
            "if context.shape[1] > 128:\n"
            "            raise ValueError('the context is too long')\n"
            f"        {OWN}"
        ),
    },
    breaks=("length",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "eps-smaller", "The norms add 1e-6, and not 1e-5",
    hint="Which eps does nn.LayerNorm have when you say nothing?",
    change={
        f"self.norm{n} = nn.LayerNorm(d_model)": f"self.norm{n} = nn.LayerNorm(d_model, eps=1e-6)"
        for n in (1, 2, 3)
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "eps-larger", "The norms add 1e-3, and not 1e-5",
    hint="Which eps does nn.LayerNorm have when you say nothing?",
    change={
        f"self.norm{n} = nn.LayerNorm(d_model)": f"self.norm{n} = nn.LayerNorm(d_model, eps=1e-3)"
        for n in (1, 2, 3)
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "EncoderDecoderBlock", "no-eps", "The norms add nothing to the variance",
    hint="What do you divide by where all features of a token are the same?",
    change={
        f"self.norm{n} = nn.LayerNorm(d_model)": f"self.norm{n} = nn.LayerNorm(d_model, eps=0.0)"
        for n in (1, 2, 3)
    },
    breaks=("eps",),
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
    "EncoderDecoderBlock", common="mask-fills-minus-hundred",
    breaks=("causal", "hidden"),
)  # fmt: skip
class BothLowered(Translating):
    def hide_future(self, scores):
        return scores.masked_fill(torch.ones_like(scores[0, 0]).triu(1).bool(), -100.0)

    def hide_padding(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, None], -100.0)


@mistake(
    "EncoderDecoderBlock", "mask-on-queries", "The mask hides queries, and not keys",
    hint="On which axis of the scores do the keys lie?",
)  # fmt: skip
class MaskOnQueries(Translating):
    def hide_padding(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, :, None], -torch.inf)


@mistake(
    "EncoderDecoderBlock", "self-attention-twice", "Both attentions share their weights",
    hint="How many matrices does the block learn?",
)  # fmt: skip
class SelfAttentionTwice(Translating):
    def attend(self, layers, x, seen, hide):
        return super().attend(self.self_attn, x, seen, hide)


@mistake(
    "EncoderDecoderBlock", "a-single-attention", "Both attentions share their weights",
    hint="How many matrices does the block learn?",
)  # fmt: skip
class SingleAttention(Translating):
    def __init__(self, d_model, num_heads, d_hidden):
        super().__init__(d_model, num_heads, d_hidden)
        self.cross_attn = self.self_attn


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
    "EncoderDecoderBlock", "biased", common="qkv-bias",
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
