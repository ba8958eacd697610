"""Known answers of unit 3: mistakes, and right answers in other forms."""

import torch
import torch.nn.functional as F

from grader.mistakes import accepted, common_mistakes, mistake

# --- attention_scores_for_query ------------------------------------------------------------------

mistake(
    "attention_scores_for_query", "counts-from-one", "Tokens are counted from one, not from zero",
    hint="Which token is inputs[1]: the first or the second?",
    change={"inputs[query_index]": "inputs[query_index - 1]"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "next-token-asks", "The token after the query asks",
    hint="Which token is inputs[1]: the first or the second?",
    change={"inputs[query_index]": "inputs[(query_index + 1) % len(inputs)]"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "zero-is-no-index",
    "Token number zero is taken for no token at all",
    hint="Is 0 true or false in Python?",
    change={"inputs[query_index]": "inputs[query_index or -1]"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "query-of-the-example", "The query of the example asks, always",
    hint="What does your answer do with query_index?",
    change={"inputs[query_index]": "inputs[1]"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "last-token-asks", "The last token asks, always",
    hint="What does your answer do with query_index?",
    change={"inputs[query_index]": "inputs[-1]"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "skips-itself", "The query gets no score with itself",
    hint="How many scores should come back, and is the query among the tokens?",
    change={
        "return inputs @ query":
            "return (inputs @ query).index_fill(0, torch.tensor(query_index), 0)",
    },
)  # fmt: skip

mistake(
    "attention_scores_for_query", "sums-over-tokens", "The products are added up over the tokens",
    hint="Over which axis does a dot product of two tokens add up?",
    breaks=("returns",),
    change={"return inputs @ query": "return (inputs * query).sum(dim=0)"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "not-added-up", "The products are not added up",
    hint="How many numbers is a dot product?",
    breaks=("returns",),
    change={"return inputs @ query": "return inputs * query"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "mean-for-sum", "The products are averaged, not added up",
    hint="What is the dot product of (1, 1) and (1, 1)?",
    change={"return inputs @ query": "return (inputs * query).mean(dim=-1)"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", common="scaled-too-early",
    change={"return inputs @ query": "return inputs @ query / inputs.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "weights-for-scores",
    "These are weights, and scores were asked for",
    hint="Is there a softmax in a dot product?",
    change={"return inputs @ query": "return torch.softmax(inputs @ query, dim=-1)"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "cosine", "The lengths of the tokens are divided out",
    hint="Should a token that is twice as long get twice the score?",
    change={"return inputs @ query": "return torch.cosine_similarity(inputs, query[None], dim=-1)"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "distance", "These are distances, not dot products",
    hint="Should a token get a high score with itself, or a zero?",
    change={"return inputs @ query": "return (inputs - query).norm(dim=-1)"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "column", "The scores come back as a column",
    hint="How many axes does the shape in the statement have?",
    breaks=("returns",),
    change={"return inputs @ query": "return inputs @ query[:, None]"},
)  # fmt: skip

mistake(
    "attention_scores_for_query", "whole-table",
    "The scores of all queries come back, not those of one",
    hint="Which row of the table was asked for?",
    breaks=("returns",),
    change={"return inputs @ query": "return inputs @ inputs.T"},
)  # fmt: skip

common_mistakes("attention_scores_for_query", "no-gradient")

mistake(
    "attention_scores_for_query", "query-without-gradient", "No gradient flows through the query",
    hint="Is the query a token as well?",
    breaks=("gradients",),
    change={"inputs[query_index]": "inputs[query_index].detach()"},
)  # fmt: skip

common_mistakes("attention_scores_for_query", "float32-inside", "returns-float32")


@mistake("attention_scores_for_query", common="changes-its-input")
def tokens_centred_in_place(inputs, query_index):
    tokens = inputs.clone()
    with torch.no_grad():
        inputs -= inputs.mean(dim=0)
    return tokens @ tokens[query_index]


@accepted("attention_scores_for_query", "einsum", "An einsum, and other names for the arguments")
def query_scores_by_einsum(x, i):
    print("query:", i)
    return torch.einsum("td,d->t", x, x[i])


@accepted("attention_scores_for_query", "dots", "A dot product for each token, stacked")
def query_scores_by_dots(inputs, query_index):
    return torch.stack([torch.dot(token, inputs[query_index]) for token in inputs])


@accepted("attention_scores_for_query", "products-summed", "Products by broadcasting, then a sum")
def query_scores_by_products(inputs, query_index):
    return (inputs * inputs[query_index]).sum(dim=-1)


@accepted("attention_scores_for_query", "table", "A vector of its own, filled in a loop")
def query_scores_in_a_vector(inputs, query_index):
    scores = torch.empty(inputs.shape[0], dtype=inputs.dtype)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(inputs[query_index], token)
    return scores


@accepted("attention_scores_for_query", "row-of-all", "A column of the table of all scores")
def query_scores_out_of_all(inputs, query_index):
    return (inputs @ inputs.T)[:, query_index]


# --- attention_scores_loop -----------------------------------------------------------------------

mistake(
    "attention_scores_loop", "compares-channels", "Channels are compared, not tokens",
    hint="What is a row of inputs, and what is a column?",
    change={
        "for query in inputs:": "for query in inputs.T:",
        "for key in inputs:": "for key in inputs.T:",
    },
)  # fmt: skip

mistake(
    "attention_scores_loop", "query-twice", "Every query meets only itself",
    hint="Which two tokens belong to entry (i, j)?",
    change={"torch.dot(query, key)": "torch.dot(query, query)"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "key-twice", "Every key meets only itself",
    hint="Which two tokens belong to entry (i, j)?",
    change={"torch.dot(query, key)": "torch.dot(key, key)"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "first-numbers-only",
    "Only the first numbers of the tokens are multiplied",
    hint="How many numbers of a token take part in a dot product?",
    change={"torch.dot(query, key)": "query[0] * key[0]"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "mean-for-sum", "The products are averaged, not added up",
    hint="What is the dot product of (1, 1) and (1, 1)?",
    change={"torch.dot(query, key)": "(query * key).mean()"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "not-added-up", "The products are not added up",
    hint="How many numbers is a dot product?",
    breaks=("returns",),
    change={"torch.dot(query, key)": "query * key"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "never-reset", "The sum is never set back to zero",
    hint="What does the score hold when the next pair of tokens begins?",
    change={
        "rows = []": "rows = []\n    score = 0",
        "torch.dot(query, key)": "score + torch.dot(query, key)",
    },
)  # fmt: skip

mistake(
    "attention_scores_loop", "last-token-forgotten", "The last token is forgotten",
    hint="Which number does range(n - 1) end with?",
    breaks=("returns",),
    change={"for query in inputs:": "for query in inputs[:-1]:"},
)  # fmt: skip

mistake(
    "attention_scores_loop", common="scaled-too-early",
    change={"torch.dot(query, key)": "torch.dot(query, key) / len(query) ** 0.5"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "weights-for-scores", "These are weights, and scores were asked for",
    hint="Is there a softmax in a dot product?",
    change={"return torch.stack(rows)": "return torch.softmax(torch.stack(rows), dim=-1)"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "flat", "The table comes back as one long vector",
    hint="How many axes does the shape in the statement have?",
    breaks=("returns",),
    change={"return torch.stack(rows)": "return torch.cat(rows)"},
)  # fmt: skip

mistake(
    "attention_scores_loop", "not-stacked", "A list comes back, not a tensor",
    hint="How do many tensors of one shape become a single one?",
    breaks=("returns",),
    change={"return torch.stack(rows)": "return rows"},
)  # fmt: skip

common_mistakes("attention_scores_loop", "no-gradient")

mistake(
    "attention_scores_loop", "key-without-gradient", "No gradient flows through the keys",
    hint="Which of the two tokens of a dot product is part of the input?",
    breaks=("gradients",),
    change={"torch.dot(query, key)": "torch.dot(query, key.detach())"},
)  # fmt: skip

common_mistakes("attention_scores_loop", "float32-inside", "returns-float32")


@mistake(
    "attention_scores_loop", "half-a-table", "Only one half of the table is filled",
    hint="Does a token get a score only from those before it?",
)  # fmt: skip
def table_filled_to_the_diagonal(inputs):
    n = inputs.shape[0]
    scores = inputs.new_zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
    return scores


@mistake(
    "attention_scores_loop", "skips-itself", "The query gets no score with itself",
    hint="How many scores should come back, and is the query among the tokens?",
)  # fmt: skip
def table_without_a_diagonal(inputs):
    n = inputs.shape[0]
    scores = inputs.new_zeros(n, n)
    for i in range(n):
        for j in range(n):
            if i != j:
                scores[i, j] = torch.dot(inputs[i], inputs[j])
    return scores


@mistake(
    "attention_scores_loop", "row-overwritten", "Each score overwrites the whole row",
    hint="How many entries of the table does scores[i] stand for?",
)  # fmt: skip
def table_with_overwritten_rows(inputs):
    n = inputs.shape[0]
    scores = inputs.new_zeros(n, n)
    for i, query in enumerate(inputs):
        for key in inputs:
            scores[i] = torch.dot(query, key)
    return scores


@mistake(
    "attention_scores_loop", "loop-over-channels", "The inner loop counts channels, not tokens",
    hint="How many keys does each query meet?",
)  # fmt: skip
def table_with_a_loop_over_channels(inputs):
    n, d_in = inputs.shape
    scores = inputs.new_zeros(n, n)
    for i in range(n):
        for j in range(d_in):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
    return scores


@mistake(
    "attention_scores_loop", "returns-too-early", "The loop returns in its first round",
    hint="How far is the return indented, and how often does the loop get to run?",
)  # fmt: skip
def table_with_an_early_return(inputs):
    n = inputs.shape[0]
    scores = inputs.new_zeros(n, n)
    for i in range(n):
        for j in range(n):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
        return scores


mistake("attention_scores_loop", "no-return", common="nothing-returned")


@mistake(
    "attention_scores_loop", "size-of-the-example", "The size is that of the example, always",
    hint="What comes out for five tokens?",
)  # fmt: skip
def table_for_six_words(inputs):
    scores = inputs.new_zeros(6, 6)
    for i in range(6):
        for j in range(6):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
    return scores


@mistake("attention_scores_loop", common="changes-its-input")
def table_of_tokens_that_are_emptied(inputs):
    tokens = inputs.clone()
    n = len(tokens)
    scores = inputs.new_zeros(n, n)
    for i in range(n):
        for j in range(n):
            scores[i, j] = torch.dot(tokens[i], tokens[j])
    with torch.no_grad():
        inputs.zero_()
    return scores


@accepted(
    "attention_scores_loop", "table", "A table in the dtype of the inputs, filled in two loops"
)
def table_filled_in_loops(inputs):
    n = inputs.shape[0]
    scores = torch.empty(n, n, dtype=inputs.dtype, device=inputs.device)
    for i in range(n):
        for j in range(n):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
    return scores


@accepted("attention_scores_loop", "mirror", "One half is computed, and mirrored")
def table_mirrored(inputs):
    n = len(inputs)
    scores = inputs.new_zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            scores[i, j] = scores[j, i] = inputs[i] @ inputs[j]
    return scores


@accepted("attention_scores_loop", "three-loops", "Three loops over single numbers")
def table_by_three_loops(x):
    n, d = x.shape
    scores = torch.zeros(n, n, dtype=x.dtype)
    for i in range(n):
        for j in range(n):
            for k in range(d):
                scores[i, j] = scores[i, j] + x[i, k] * x[j, k]
    return scores


@accepted(
    "attention_scores_loop", "flat-then-view", "All pairs in one list, then a view as a table"
)
def table_by_view(inputs):
    n = inputs.size(0)
    return torch.stack([(a * b).sum() for a in inputs for b in inputs]).view(n, n)


@accepted("attention_scores_loop", "query-by-query", "The scores of each query, stacked")
def table_query_by_query(inputs):
    return torch.stack(
        [attention_scores_for_query(inputs, i) for i in range(len(inputs))]  # noqa: F821
    )


@accepted("attention_scores_loop", "product", "No loop: a matrix product")
def table_by_product(inputs):
    return inputs @ inputs.T


# --- attention_scores ----------------------------------------------------------------------------

mistake(
    "attention_scores", "compares-channels", "Channels are compared, not tokens",
    hint="What is a row of inputs, and what is a column?",
    change={"inputs @ inputs.T": "inputs.T @ inputs"},
)  # fmt: skip

mistake(
    "attention_scores", "not-transposed", "The second matrix is not transposed",
    hint="Which sizes have to meet in the middle of the product?",
    change={"inputs @ inputs.T": "inputs @ inputs"},
)  # fmt: skip

mistake(
    "attention_scores", "reshaped", "The numbers are regrouped, not transposed",
    hint="Where does reshape put the second number of the first token?",
    change={"inputs @ inputs.T": "inputs @ inputs.reshape(inputs.shape[1], inputs.shape[0])"},
)  # fmt: skip

mistake(
    "attention_scores", "transposed-if-needed", "A square matrix is not transposed",
    hint="When the sizes fit already, do the numbers as well?",
    change={
        "inputs @ inputs.T":
            "inputs @ (inputs if inputs.shape[0] == inputs.shape[1] else inputs.T)",
    },
)  # fmt: skip

mistake(
    "attention_scores", "elementwise", "The products are taken number by number",
    hint="Does every query meet every key?",
    breaks=("returns",),
    change={"inputs @ inputs.T": "inputs * inputs"},
)  # fmt: skip

mistake(
    "attention_scores", common="scaled-too-early",
    change={"inputs @ inputs.T": "inputs @ inputs.T / inputs.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "attention_scores", "mean-for-sum", "The products are averaged, not added up",
    hint="What is the dot product of (1, 1) and (1, 1)?",
    change={"inputs @ inputs.T": "inputs @ inputs.T / inputs.shape[-1]"},
)  # fmt: skip

mistake(
    "attention_scores", "weights-for-scores", "These are weights, and scores were asked for",
    hint="Is there a softmax in a dot product?",
    change={"inputs @ inputs.T": "torch.softmax(inputs @ inputs.T, dim=-1)"},
)  # fmt: skip

mistake(
    "attention_scores", "cosine", "The lengths of the tokens are divided out",
    hint="Should a token that is twice as long get twice the score?",
    change={
        "return inputs": "inputs = inputs / inputs.norm(dim=-1, keepdim=True)\n    return inputs",
    },
)  # fmt: skip

mistake(
    "attention_scores", "centred", "The mean of the tokens is subtracted first",
    hint="Does a dot product know anything about the other tokens?",
    change={"return inputs": "inputs = inputs - inputs.mean(dim=0)\n    return inputs"},
)  # fmt: skip

mistake(
    "attention_scores", "distance", "These are distances, not dot products",
    hint="Should a token get a high score with itself, or a zero?",
    change={"inputs @ inputs.T": "torch.cdist(inputs, inputs)"},
)  # fmt: skip

mistake(
    "attention_scores", "skips-itself", "The query gets no score with itself",
    hint="How many scores should come back, and is the query among the tokens?",
    change={"return inputs @ inputs.T": "return (inputs @ inputs.T).fill_diagonal_(0)"},
)  # fmt: skip

mistake(
    "attention_scores", "masked-too-early", "The future is hidden, and nobody asked for a mask",
    hint="May a token look in both directions here?",
    change={"return inputs @ inputs.T": "return torch.tril(inputs @ inputs.T)"},
)  # fmt: skip

common_mistakes("attention_scores", "no-gradient")

mistake(
    "attention_scores", "key-without-gradient", "No gradient flows through the keys",
    hint="Which of the two tokens of a dot product is part of the input?",
    breaks=("gradients",),
    change={"inputs @ inputs.T": "inputs @ inputs.detach().T"},
)  # fmt: skip

common_mistakes("attention_scores", "float32-inside", "returns-float32", "returns-float64")

mistake(
    "attention_scores", common="changes-its-input",
    change={
        "return inputs @ inputs.T":
            "tokens = inputs.clone()\n"
            "    inputs.data /= inputs.norm(dim=-1, keepdim=True)\n"
            "    return tokens @ tokens.T",
    },
)  # fmt: skip

mistake(
    "attention_scores", "loop-over-time",
    "The scores are right, but more tokens take more tensor operations: a loop is at work",
    hint="How many torch operations does a sequence of a thousand tokens take?",
    breaks=("loops",),
    change={"inputs @ inputs.T": "torch.stack([inputs @ query for query in inputs])"},
)  # fmt: skip


@accepted("attention_scores", "transpose", "Matmul and transpose by name")
def scores_by_transpose(inputs):
    return torch.matmul(inputs, inputs.transpose(0, 1))


@accepted("attention_scores", "einsum", "An einsum")
def scores_by_einsum(x):
    return torch.einsum("id,jd->ij", x, x)


@accepted("attention_scores", "broadcast", "Products of all pairs by broadcasting, then a sum")
def scores_by_broadcasting(inputs):
    return (inputs[:, None] * inputs[None]).sum(-1)


@accepted("attention_scores", "inner", "Torch's inner product of rows with rows")
def scores_by_inner(inputs):
    return torch.inner(inputs, inputs)


@accepted("attention_scores", "linear", "A linear layer whose weight is the inputs")
def scores_by_linear(inputs):
    return F.linear(inputs, inputs)


@accepted("attention_scores", "batch-of-one", "A batch of one, bmm, and the batch removed")
def scores_by_bmm(inputs):
    batch = inputs.unsqueeze(0)
    return torch.bmm(batch, batch.mT).squeeze(0)


# --- attention_weights ---------------------------------------------------------------------------

common_mistakes("attention_weights", "columns-sum-to-one")

mistake(
    "attention_weights", common="whole-matrix",
    change={"torch.softmax(scores, dim=-1)": "torch.softmax(scores.flatten(), 0).view_as(scores)"},
)  # fmt: skip

common_mistakes("attention_weights", "no-exp", "scaled-too-early")

mistake(
    "attention_weights", "scaled-afterwards", "The weights are scaled after the softmax",
    hint="What do the weights of a query sum to?",
    change={"dim=-1)": "dim=-1) / inputs.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "attention_weights", "returns-scores", "The scores come back, without a softmax",
    hint="What do the weights of a query sum to?",
    change={"return torch.softmax(scores, dim=-1)": "return scores"},
)  # fmt: skip

common_mistakes("attention_weights", "not-normalised", "log-softmax")

mistake(
    "attention_weights", "sigmoid-for-softmax", "A sigmoid judges each score alone",
    hint="What do the weights of a query sum to?",
    change={"torch.softmax(scores, dim=-1)": "torch.sigmoid(scores)"},
)  # fmt: skip

mistake(
    "attention_weights", "softmax-twice", "The softmax is taken twice",
    hint="What does a softmax make of numbers that lie between zero and one?",
    change={"torch.softmax(scores,": "torch.softmax(torch.softmax(scores, dim=1),"},
)  # fmt: skip

mistake(
    "attention_weights", "minus-sign", "The smallest score gets the largest weight",
    hint="Which score should win?",
    change={"torch.softmax(scores,": "torch.softmax(-scores,"},
)  # fmt: skip

mistake(
    "attention_weights", "softmax-of-the-tokens", "The softmax is taken of the tokens themselves",
    hint="What should become weights: the tokens, or scores between them?",
    change={
        "attention_scores(inputs)": "attention_scores(torch.softmax(inputs, dim=1))",
        "return torch.softmax(scores, dim=-1)": "return scores",
    },
)  # fmt: skip

mistake(
    "attention_weights", "compares-channels", "Channels are compared, not tokens",
    hint="What is a row of inputs, and what is a column?",
    breaks=("computes", "returns"),
    change={"attention_scores(inputs)": "inputs.T @ inputs"},
)  # fmt: skip

mistake(
    "attention_weights", "cosine", "The lengths of the tokens are divided out",
    hint="Should a token that is twice as long get twice the score?",
    change={
        "attention_scores(inputs)": "attention_scores(inputs / inputs.norm(dim=1, keepdim=True))",
    },
)  # fmt: skip

mistake(
    "attention_weights", "masked-too-early", "The future is hidden, and nobody asked for a mask",
    hint="May a token look in both directions here?",
    change={
        "torch.softmax(scores,":
            "torch.softmax(scores + torch.full_like(scores, -torch.inf).triu(1),",
    },
)  # fmt: skip

mistake(
    "attention_weights", "skips-itself-as-a-key", "A token may not look at itself",
    hint="Is the query among the keys?",
    change={"torch.softmax(scores,": "torch.softmax(scores.clone().fill_diagonal_(-torch.inf),"},
)  # fmt: skip

mistake(
    "attention_weights", "winner-takes-all", "The largest score gets everything",
    hint="What should the others get, and what would a gradient do here?",
    change={"torch.softmax(scores, dim=-1)": "(scores == scores.amax(1, keepdim=True)).to(scores)"},
)  # fmt: skip

common_mistakes("attention_weights", "no-gradient")

mistake(
    "attention_weights", common="float32-inside",
    change={"dim=-1)": "dim=-1, dtype=torch.float32).to(inputs.dtype)"},
)  # fmt: skip

common_mistakes("attention_weights", "returns-float32", "squeezed")

mistake(
    "attention_weights", "rounded", "The numbers are rounded",
    hint="Do the numbers of the example show all of their digits?",
    change={"dim=-1)": "dim=-1).round(decimals=4)"},
)  # fmt: skip


@mistake(
    "attention_weights", common="no-keepdim",
    same_as={"columns-sum-to-one": "the scores are symmetric"},
)  # fmt: skip
def weights_over_totals_of_rows(inputs):
    positive = torch.exp(inputs @ inputs.T)
    return positive / positive.sum(dim=-1)


@mistake("attention_weights", common="changes-its-input")
def weights_of_tokens_changed_in_place(inputs):
    tokens = inputs.clone()
    with torch.no_grad():
        inputs -= inputs.mean(dim=0)
    return torch.softmax(tokens @ tokens.T, dim=-1)


mistake(
    "attention_weights", common="turned-in-place",
    breaks=("unchanged", "gradients"),
    change={"attention_scores(inputs)": "inputs.clone() @ inputs.t_()"},
    same_as={"changes-its-input": "only the gradient tells them apart"},
)  # fmt: skip


@mistake("attention_weights", common="calls-torch-attention")
def weights_by_torch(inputs):
    itself = torch.eye(len(inputs), dtype=inputs.dtype)
    return F.scaled_dot_product_attention(inputs[None], inputs[None], itself[None], scale=1.0)[0]


@accepted("attention_weights", "own-softmax", "A softmax of its own, with a shift")
def weights_by_own_softmax(inputs):
    scores = inputs @ inputs.T
    positive = (scores - scores.amax(-1, keepdim=True)).exp()
    return positive / positive.sum(-1, keepdim=True)


@accepted("attention_weights", "columns-then-turned", "Columns that sum to one, transposed")
def weights_turned(inputs):
    return torch.softmax(inputs @ inputs.T, dim=0).T


@accepted("attention_weights", "query-by-query", "A softmax for each query, stacked")
def weights_query_by_query(inputs):
    return torch.stack([F.softmax(inputs @ query, dim=0) for query in inputs])


@accepted("attention_weights", "module", "A softmax module, and an einsum")
def weights_by_module(x):
    return torch.nn.Softmax(-1)(torch.einsum("id,jd->ij", x, x))


@accepted("attention_weights", "log-then-exp", "The exponential of a log-softmax, in float64")
def weights_by_logarithms(inputs):
    scores = inputs.double() @ inputs.double().T
    return F.log_softmax(scores, dim=-1).exp().to(inputs.dtype)


# --- context_vector ------------------------------------------------------------------------------

mistake(
    "context_vector", "counts-from-one", "Tokens are counted from one, not from zero",
    hint="Which token is inputs[1]: the first or the second?",
    change={"(inputs, query_index)  #": "(inputs, query_index - 1)  #"},
)  # fmt: skip

mistake(
    "context_vector", "zero-is-no-index", "Token number zero is taken for no token at all",
    hint="Is 0 true or false in Python?",
    change={"(inputs, query_index)  #": "(inputs, query_index or -1)  #"},
)  # fmt: skip

mistake(
    "context_vector", "query-of-the-example", "The query of the example asks, always",
    hint="What does your answer do with query_index?",
    change={"(inputs, query_index)  #": "(inputs, 1)  #"},
)  # fmt: skip

mistake(
    "context_vector", "last-token-asks", "The last token asks, always",
    hint="What does your answer do with query_index?",
    change={"(inputs, query_index)  #": "(inputs, -1)  #"},
)  # fmt: skip

mistake(
    "context_vector", "scores-for-weights", "The tokens are mixed by scores, without a softmax",
    hint="What do the numbers that you mix with add up to?",
    change={"torch.softmax(scores, dim=-1)": "scores"},
)  # fmt: skip

common_mistakes("context_vector", "no-exp", "not-normalised", "scaled-too-early")

mistake(
    "context_vector", "scaled-afterwards", "The weights are scaled after the softmax",
    hint="What do the weights of a query sum to?",
    change={"dim=-1)": "dim=-1) / inputs.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "context_vector", "columns-sum-to-one", "The weights are read along the wrong axis",
    hint="Do the weights with which you mix the tokens belong to one query, and sum to one?",
    change={
        "attention_scores_for_query(inputs, query_index)": "inputs @ inputs.T",
        "torch.softmax(scores, dim=-1)": "torch.softmax(scores, dim=0)[query_index]",
    },
)  # fmt: skip

mistake(
    "context_vector", "column-of-the-weights", "The weights are read along the wrong axis",
    hint="Do the weights with which you mix the tokens belong to one query, and sum to one?",
    change={
        "attention_scores_for_query(inputs, query_index)": "attention_weights(inputs)",
        "torch.softmax(scores, dim=-1)": "scores[:, query_index]",
    },
    same_as={"columns-sum-to-one": "the scores are symmetric"},
)  # fmt: skip

mistake(
    "context_vector", "mean-of-weighted-tokens", "The weighted tokens are averaged, not added up",
    hint="How do tokens that count 0.7 and 0.3 blend into one?",
    change={"return weights @ inputs": "return (weights[:, None] * inputs).mean(dim=0)"},
)  # fmt: skip

mistake(
    "context_vector", "sums-over-channels", "The weighted tokens are added up along the wrong axis",
    hint="How long is the context of a token with three numbers?",
    breaks=("returns",),
    change={"return weights @ inputs": "return (weights[:, None] * inputs).sum(dim=1)"},
)  # fmt: skip

mistake(
    "context_vector", "returns-weights",
    "The weights are returned, not what they make of the tokens",
    hint="Which shape should come out?",
    breaks=("returns",),
    change={"return weights @ inputs": "return weights"},
)  # fmt: skip

mistake(
    "context_vector", "all-contexts", "The contexts of all tokens come back, not that of one",
    hint="How many vectors were asked for?",
    breaks=("returns",),
    change={"return weights @ inputs": "return attention_weights(inputs) @ inputs"},
)  # fmt: skip

mistake(
    "context_vector", common="squeezed",
    change={"torch.softmax(scores,": "torch.softmax(scores.squeeze(),"},
)  # fmt: skip

mistake(
    "context_vector", "row-of-one", "The context comes back as a matrix with one row",
    hint="How many axes does the shape in the statement have?",
    breaks=("returns",),
    change={"return weights @ inputs": "return weights[None] @ inputs"},
)  # fmt: skip

mistake(
    "context_vector", "weights-the-query", "The weights multiply the query, not the tokens",
    hint="Whose numbers does the context carry?",
    change={"return weights @ inputs": "return weights.sum() * inputs[query_index]"},
)  # fmt: skip

mistake(
    "context_vector", "plain-mean", "All tokens count the same",
    hint="What do the weights have to say?",
    change={"return weights @ inputs": "return inputs.mean(dim=0)"},
)  # fmt: skip

mistake(
    "context_vector", "skips-itself-as-a-key", "A token may not look at itself",
    hint="Is the query among the keys?",
    change={
        "torch.softmax(scores,":
            "torch.softmax(scores.index_fill(0, torch.tensor(query_index), -torch.inf),",
    },
)  # fmt: skip

mistake(
    "context_vector", "masked-too-early", "The future is hidden, and nobody asked for a mask",
    hint="May a token look in both directions here?",
    change={
        "torch.softmax(scores, dim=-1)": "torch.softmax(scores[: query_index + 1], dim=-1)",
        "return weights @ inputs": "return weights @ inputs[: query_index + 1]",
    },
)  # fmt: skip

mistake(
    "context_vector", "keeps-the-query", "The query itself is added to its context",
    hint="What is a mix of four equal tokens?",
    change={"return weights @ inputs": "return inputs[query_index] + weights @ inputs"},
)  # fmt: skip

common_mistakes("context_vector", "no-gradient")

mistake(
    "context_vector", "weights-without-gradient", "No gradient flows through the weights",
    hint="Do the weights depend on the inputs as well?",
    breaks=("gradients",),
    change={"return weights @ inputs": "return weights.detach() @ inputs"},
)  # fmt: skip

common_mistakes("context_vector", "float32-inside", "returns-float32")


@mistake("context_vector", common="changes-its-input")
def context_in_the_query(inputs, query_index):
    tokens = inputs.clone()
    context = torch.softmax(tokens @ tokens[query_index], dim=0) @ tokens
    with torch.no_grad():
        inputs[query_index] = context
    return context


@mistake(
    "context_vector", common="turned-in-place",
    breaks=("unchanged", "gradients"),
    same_as={"changes-its-input": "only the gradient tells them apart"},
)  # fmt: skip
def context_of_tokens_turned_in_place(inputs, query_index):
    columns = inputs.t_()
    weights = torch.softmax(columns.T @ columns[:, query_index], dim=0)
    return columns @ weights


@mistake(
    "context_vector", "last-token-only", "Only the last weighted token is kept",
    hint="What does = do in a loop, and what does += do?",
)  # fmt: skip
def context_that_is_overwritten(inputs, query_index):
    weights = torch.softmax(inputs @ inputs[query_index], dim=0)
    for i, token in enumerate(inputs):
        context = weights[i] * token
    return context


@mistake("context_vector", common="calls-torch-attention")
def context_by_torch(inputs, query_index):
    query, tokens = inputs[query_index][None, None], inputs[None]
    return F.scaled_dot_product_attention(query, tokens, tokens, scale=1.0)[0, 0]


@accepted("context_vector", "loop", "A loop that adds up the weighted tokens")
def context_by_loop(inputs, query_index):
    weights = torch.softmax(inputs @ inputs[query_index], dim=0)
    context = torch.zeros_like(inputs[0])
    for weight, token in zip(weights, inputs):
        context += weight * token
    return context


@accepted("context_vector", "row-of-all", "A row of the contexts of all tokens")
def context_out_of_all(inputs, query_index):
    return (attention_weights(inputs) @ inputs)[query_index]  # noqa: F821


@accepted("context_vector", "einsum", "Two einsums")
def context_by_einsum(x, q_idx):
    weights = F.softmax(torch.einsum("td,d->t", x, x[q_idx]), dim=-1)
    return torch.einsum("t,td->d", weights, x)


@accepted("context_vector", "products-summed", "Weighted tokens by broadcasting, then a sum")
def context_by_products(inputs, query_index):
    weights = torch.softmax(inputs @ inputs[query_index], 0)
    return (weights.unsqueeze(-1) * inputs).sum(0)


@accepted("context_vector", "divides-last", "The division comes last, tokens as columns")
def context_divided_last(inputs, query_index):
    positive = torch.exp(inputs @ inputs[query_index])
    return inputs.T @ positive / positive.sum()


# --- simple_self_attention -----------------------------------------------------------------------

mistake(
    "simple_self_attention", common="columns-sum-to-one",
    change={"attention_weights(inputs)": "torch.softmax(inputs @ inputs.T, dim=0)"},
)  # fmt: skip

mistake(
    "simple_self_attention", common="transposed",
    same_as={"columns-sum-to-one": "the scores are symmetric"},
)  # fmt: skip

mistake(
    "simple_self_attention", "scores-for-weights",
    "The tokens are mixed by scores, without a softmax",
    hint="What do the numbers that you mix with add up to?",
    change={"attention_weights(inputs)": "attention_scores(inputs)"},
)  # fmt: skip

mistake(
    "simple_self_attention", common="no-exp",
    change={
        "attention_weights(inputs)": "attention_scores(inputs)",
        "return weights @": "return weights / weights.sum(dim=-1, keepdim=True) @",
    },
)  # fmt: skip

mistake(
    "simple_self_attention", common="scaled-too-early",
    change={
        "attention_weights(inputs)":
            "torch.softmax(inputs @ inputs.T / inputs.shape[-1] ** 0.5, dim=-1)",
    },
)  # fmt: skip


@mistake("simple_self_attention", common="calls-torch-attention")
def contexts_by_torch(inputs):
    batch = inputs[None]
    return F.scaled_dot_product_attention(batch, batch, batch, scale=1.0)[0]


mistake(
    "simple_self_attention", "scaled-afterwards", "The weights are scaled after the softmax",
    hint="What do the weights of a query sum to?",
    change={"return weights @ inputs": "return weights / inputs.shape[-1] ** 0.5 @ inputs"},
)  # fmt: skip

mistake(
    "simple_self_attention", common="whole-matrix",
    change={
        "attention_weights(inputs)":
            "torch.softmax((inputs @ inputs.T).flatten(), 0).view(len(inputs), -1)",
    },
)  # fmt: skip

mistake(
    "simple_self_attention", "softmax-twice", "The softmax is taken twice",
    hint="What does a softmax make of numbers that lie between zero and one?",
    change={"attention_weights(inputs)": "torch.softmax(attention_weights(inputs), dim=-1)"},
)  # fmt: skip

mistake(
    "simple_self_attention", "compares-channels", "Channels are compared, not tokens",
    hint="What is a row of inputs, and what is a column?",
    change={
        "attention_weights(inputs)": "torch.softmax(inputs.T @ inputs, dim=-1)",
        "return weights @ inputs": "return inputs @ weights",
    },
)  # fmt: skip

mistake(
    "simple_self_attention", "wrong-side", "The weights stand on the wrong side of the product",
    hint="Which axis of the tokens should meet the columns of the weights?",
    change={"return weights @ inputs": "return inputs @ weights"},
)  # fmt: skip

mistake(
    "simple_self_attention", "masked-too-early",
    "The future is hidden, and nobody asked for a mask",
    hint="May a token look in both directions here?",
    change={
        "return weights @ inputs":
            "weights = weights.tril()\n    return weights / weights.sum(1, keepdim=True) @ inputs",
    },
)  # fmt: skip

mistake(
    "simple_self_attention", "skips-itself-as-a-key", "A token may not look at itself",
    hint="Is the query among the keys?",
    change={
        "attention_weights(inputs)":
            "torch.softmax((inputs @ inputs.T).fill_diagonal_(-torch.inf), dim=-1)",
    },
)  # fmt: skip

mistake(
    "simple_self_attention", "keeps-the-query", "The query itself is added to its context",
    hint="What is a mix of four equal tokens?",
    change={"return weights @ inputs": "return inputs + weights @ inputs"},
)  # fmt: skip

mistake(
    "simple_self_attention", "plain-mean", "All tokens count the same",
    hint="What do the weights have to say?",
    change={"return weights @ inputs": "return inputs.mean(dim=0).expand_as(inputs)"},
)  # fmt: skip

mistake(
    "simple_self_attention", "winner-takes-all", "The largest score gets everything",
    hint="What should the others get, and what would a gradient do here?",
    change={"return weights @ inputs": "return inputs[weights.argmax(dim=-1)]"},
)  # fmt: skip

mistake(
    "simple_self_attention", "returns-weights",
    "The weights are returned, not what they make of the tokens",
    hint="Which shape should come out?",
    breaks=("returns",),
    change={"return weights @ inputs": "return weights"},
)  # fmt: skip

mistake(
    "simple_self_attention", "weights-for-tokens", "The weights are mixed, not the tokens",
    hint="Whose numbers does a context carry?",
    breaks=("returns",),
    change={"return weights @ inputs": "return weights @ weights"},
)  # fmt: skip

mistake(
    "simple_self_attention", "drops-weights", "Some weights are dropped at random",
    hint="Do two calls with the same tokens give the same?",
    change={"return weights @ inputs": "return torch.dropout(weights, 0.1, True) @ inputs"},
)  # fmt: skip

common_mistakes("simple_self_attention", "no-gradient")

mistake(
    "simple_self_attention", "weights-without-gradient", "No gradient flows through the weights",
    hint="Do the weights depend on the inputs as well?",
    breaks=("gradients",),
    change={"return weights @ inputs": "return weights.detach() @ inputs"},
)  # fmt: skip

mistake(
    "simple_self_attention", "tokens-without-gradient",
    "No gradient flows through the tokens that are mixed",
    hint="In how many places does the formula use the inputs?",
    breaks=("gradients",),
    change={"return weights @ inputs": "return weights @ inputs.data"},
)  # fmt: skip

mistake(
    "simple_self_attention", common="float32-inside",
    change={"weights @ inputs": "(weights.float() @ inputs.float()).to(inputs.dtype)"},
)  # fmt: skip

common_mistakes("simple_self_attention", "squeezed")


@mistake("simple_self_attention", common="changes-its-input")
def contexts_written_into_the_tokens(inputs):
    tokens = inputs.clone()
    contexts = torch.softmax(tokens @ tokens.T, dim=-1) @ tokens
    with torch.no_grad():
        inputs.copy_(contexts)
    return contexts


@mistake(
    "simple_self_attention", common="turned-in-place",
    breaks=("unchanged", "gradients"),
    same_as={"changes-its-input": "only the gradient tells them apart"},
)  # fmt: skip
def contexts_of_tokens_turned_in_place(inputs):
    columns = inputs.t_()
    return (columns @ torch.softmax(columns.T @ columns, dim=0)).T


@mistake(
    "simple_self_attention", "last-eight-tokens", "Only the last eight tokens are heard",
    hint="How many keys does a query meet when there are a hundred tokens?",
)  # fmt: skip
def contexts_of_a_block(inputs):
    block_size = 8
    heard = inputs[-block_size:]
    return torch.softmax(inputs @ heard.T, dim=-1) @ heard


@mistake(
    "simple_self_attention", "contexts-of-contexts",
    "Contexts overwrite the tokens that later ones still need",
    hint="When token 1 asks, what stands where token 0 was?",
)  # fmt: skip
def contexts_of_contexts(inputs):
    tokens = inputs.clone()
    for i in range(len(tokens)):
        tokens[i] = torch.softmax(tokens @ tokens[i], dim=0) @ tokens
    return tokens


common_mistakes("simple_self_attention", "returns-float32")


@accepted("simple_self_attention", "one-line", "All in one line")
def contexts_in_one_line(inputs):
    return F.softmax(inputs @ inputs.T, dim=1) @ inputs


@accepted("simple_self_attention", "query-by-query", "A context for each query, stacked")
def contexts_query_by_query(inputs):
    return torch.stack([context_vector(inputs, i) for i in range(len(inputs))])  # noqa: F821


@accepted("simple_self_attention", "einsum", "Two einsums")
def contexts_by_einsum(x):
    scores = torch.einsum("id,jd->ij", x, x)
    return torch.einsum("ij,jd->id", scores.softmax(-1), x)


@accepted("simple_self_attention", "divides-last", "The division comes last")
def contexts_divided_last(inputs):
    positive = torch.exp(inputs @ inputs.T)
    return (positive @ inputs) / positive.sum(-1, keepdim=True)


@accepted("simple_self_attention", "columns", "Tokens as columns throughout")
def contexts_as_columns(inputs):
    columns = inputs.T
    return (columns @ torch.softmax(columns.T @ columns, dim=0)).T


@accepted("simple_self_attention", "batch-of-one", "A batch of one, and baddbmm")
def contexts_by_baddbmm(inputs):
    batch = inputs.unsqueeze(0)
    scores = torch.baddbmm(batch.new_zeros(1, 1, 1), batch, batch.mT)
    return torch.bmm(torch.softmax(scores, dim=-1), batch).squeeze(0)


# --- scores at the bound of the statements --------------------------------------------------------

for exercise, scores in (
    ("attention_weights", "attention_scores(inputs)"),
    ("context_vector", "attention_scores_for_query(inputs, query_index)"),
):
    mistake(
        exercise, common="clamped",
        change={scores: f"{scores}.clamp(max=75)"},
    )  # fmt: skip

mistake(
    "simple_self_attention", common="clamped",
    change={
        "attention_weights(inputs)": "torch.softmax((inputs @ inputs.T).clamp(max=75), dim=-1)",
    },
)  # fmt: skip
