"""Known answers of unit 1: mistakes, and right answers in other forms."""

import math

import torch
import torch.nn.functional as F

from grader.mistakes import accepted, common_mistakes, mistake

# --- running_mean_loop ---------------------------------------------------------------------------

mistake("running_mean_loop", common="misses-itself", change={"x[:, : t + 1, :]": "x[:, :t, :]"})

mistake(
    "running_mean_loop", "misses-itself-but-the-first",
    "All tokens but the first leave themselves out",
    hint="Try a sequence of two tokens: what should the second one become?",
    change={"x[:, : t + 1, :]": "x[:, : max(t, 1), :]"},
)  # fmt: skip

mistake("running_mean_loop", common="one-too-many", change={"x[:, : t + 1, :]": "x[:, : t + 2, :]"})
mistake("running_mean_loop", common="future-for-past", change={"x[:, : t + 1, :]": "x[:, t:, :]"})
mistake("running_mean_loop", common="whole-sequence", change={"x[:, : t + 1, :]": "x[:, :, :]"})

mistake(
    "running_mean_loop", "sums-not-means", "These are sums, and means were asked for",
    hint="A mean is a sum divided by what?",
    change={"past.mean(dim=1)": "past.sum(dim=1)"},
)  # fmt: skip

mistake(
    "running_mean_loop", "divides-by-time",
    "Every sum is divided by the length of the whole sequence",
    hint="How many tokens took part in the first sum?",
    change={"past.mean(dim=1)": "past.sum(dim=1) / time"},
)  # fmt: skip

mistake(
    "running_mean_loop", "divides-by-t", "The divisor is one too small from the second token on",
    hint="Counting from zero, how many tokens are there up to token t?",
    change={"past.mean(dim=1)": "past.sum(dim=1) / max(t, 1)"},
)  # fmt: skip

mistake(
    "running_mean_loop", "channels-mixed", "All channels of a token get the same number",
    hint="Over which axis is the mean taken, and which axes should stay apart?",
    change={"past.mean(dim=1)": "past.mean(dim=(1, 2))[:, None].expand(-1, _channels)"},
)  # fmt: skip

mistake(
    "running_mean_loop", "mean-of-everything",
    "The mean runs over the batch, the tokens and the channels all at once",
    hint="mean() without dim leaves one number. Over which axis should it run?",
    change={"past.mean(dim=1)": "past.mean().expand(_batch, _channels)"},
)  # fmt: skip

mistake(
    "running_mean_loop", "divides-by-nothing-at-first",
    "Sums are divided by t, which is 0 for the first token",
    hint="Counting from zero, how many tokens are there up to token t?",
    change={"past.mean(dim=1)": "past.sum(dim=1) / t"},
)  # fmt: skip

mistake(
    "running_mean_loop", "batch-mixed", "The sequences of the batch are mixed with each other",
    hint="Should the answer for one sequence change when another one of the batch does?",
    change={"past.mean(dim=1)": "past.mean(dim=(0, 1)).expand(_batch, -1)"},
)  # fmt: skip

mistake(
    "running_mean_loop", "batch-for-time", "The mean runs over the batch, not over time",
    hint="Which of the three axes holds the tokens of one sequence?",
    change={
        "_batch, time, _channels =": "time, _batch, _channels =", "x[:, : t + 1, :]": "x[: t + 1]",
        "past.mean(dim=1)": "past.mean(dim=0)", "torch.stack(means, dim=1)": "torch.stack(means)",
    },
)  # fmt: skip

mistake(
    "running_mean_loop", "channels-for-time", "The mean runs over the channels, not over time",
    hint="Which of the three axes holds the tokens of one sequence?",
    change={
        "_batch, time, _channels =": "_batch, _time, time =",
        "x[:, : t + 1, :]": "x[:, :, : t + 1]", "past.mean(dim=1)": "past.mean(dim=2)",
        "torch.stack(means, dim=1)": "torch.stack(means, dim=2)",
    },
)  # fmt: skip

mistake(
    "running_mean_loop", "stacked-in-front", "Time has become the first axis of the result",
    hint="Where does torch.stack put the new axis unless you say otherwise?",
    breaks=("returns",),
    change={"torch.stack(means, dim=1)": "torch.stack(means)"},
)  # fmt: skip

mistake(
    "running_mean_loop", "not-stacked", "A list comes back, not a tensor",
    hint="How do many tensors of one shape become a single one?",
    breaks=("returns",),
    change={"torch.stack(means, dim=1)": "means"},
)  # fmt: skip

common_mistakes("running_mean_loop", "squeezed")

mistake(
    "running_mean_loop", "last-token-forgotten", "The last token is forgotten",
    hint="Which number does range(n - 1) end with?",
    change={"range(time)": "range(time - 1)"},
)  # fmt: skip

common_mistakes("running_mean_loop", "no-gradient")

mistake(
    "running_mean_loop", "half-the-average", "Each new token counts as much as its whole past",
    hint="In a mean of three tokens, what share should the third one have?",
    change={"past.mean(dim=1)": "x[:, t] if t == 0 else (means[-1] + x[:, t]) / 2"},
)  # fmt: skip


@mistake("running_mean_loop", common="changes-its-input")
def loop_that_writes_into_x(x):
    for t in reversed(range(x.shape[1])):
        x[:, t] = x[:, : t + 1].mean(dim=1)
    return x


@mistake(
    "running_mean_loop", "means-of-means",
    "The means overwrite the tokens that later means still need",
    hint="When token 2 gets its mean, what stands where token 1 was?",
)  # fmt: skip
def loop_over_a_copy(x):
    out = x.clone()
    for t in range(x.shape[1]):
        out[:, t] = out[:, : t + 1].mean(dim=1)
    return out


common_mistakes("running_mean_loop", "returns-float32")


@mistake(
    "running_mean_loop", "first-sequence-only",
    "Only the first sequence of the batch gets an answer",
    hint="How many sequences does x hold?",
)  # fmt: skip
def loop_over_the_first_sequence(x):
    means = torch.zeros_like(x)
    for t in range(x.shape[1]):
        means[0, t] = x[0, : t + 1].mean(dim=0)
    return means


mistake("running_mean_loop", "no-return", common="nothing-returned")


@mistake(
    "running_mean_loop", "returns-too-early", "The loop returns in its first round",
    hint="How far is the return indented, and how often does the loop get to run?",
)  # fmt: skip
def loop_that_returns_in_its_first_round(x):
    means = torch.zeros_like(x)
    for t in range(x.shape[1]):
        means[:, t] = x[:, : t + 1].mean(dim=1)
        return means


@mistake(
    "running_mean_loop", "future-subtracted", "The past is computed as the whole less the future",
    hint="What is left of a small number after a huge one was added and subtracted again?",
)  # fmt: skip
def loop_that_subtracts_the_future(x):
    whole = x.sum(dim=1)
    return torch.stack(
        [(whole - x[:, t + 1 :].sum(dim=1)) / (t + 1) for t in range(x.shape[1])], dim=1
    )


@accepted("running_mean_loop", "table", "A table of zeros, filled for each sequence and token")
def loop_over_sequences_and_tokens(x):
    B, T, C = x.shape
    out = torch.zeros((B, T, C), dtype=x.dtype)
    for b in range(B):
        for t in range(T):
            xprev = x[b, : t + 1]
            out[b, t] = torch.mean(xprev, 0)
    return out


@accepted("running_mean_loop", "running-total", "A total that grows from token to token")
def loop_with_a_total(inputs):
    total = 0
    rows = []
    for t in range(inputs.shape[1]):
        total = total + inputs[:, t]
        rows.append(total / (t + 1))
    return torch.stack(rows, 1)


@accepted("running_mean_loop", "update", "Each mean is the last one, corrected by the new token")
def loop_that_corrects_the_last_mean(x):
    mean = x[:, 0]
    rows = [mean]
    for t in range(1, x.size(1)):
        mean = mean + (x[:, t] - mean) / (t + 1)
        rows.append(mean)
    return torch.stack(rows, dim=1)


@accepted("running_mean_loop", "cat", "Means of length one along time, concatenated")
def loop_in_a_comprehension(x):
    return torch.cat([x[:, :t].mean(1, keepdim=True) for t in range(1, x.shape[1] + 1)], 1)


@accepted("running_mean_loop", "copy", "A copy whose rows are replaced, in float64 inside")
def loop_into_a_copy(x):
    exact, out = x.double(), x.clone()
    for t in range(1, x.shape[1]):
        out[:, t] = exact[:, : t + 1].sum(1).div(t + 1).to(x.dtype)
    return out


@accepted("running_mean_loop", "cumsum", "No loop at all: cumulative sums over counts")
def cumsum_over_counts(x):
    return x.cumsum(1) / torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)[:, None]


# --- prefix_sum_matrix ---------------------------------------------------------------------------

mistake(
    "prefix_sum_matrix", common="misses-itself",
    change={"torch.tril(ones)": "torch.tril(ones, diagonal=-1)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", common="one-too-many",
    change={"torch.tril(ones)": "torch.tril(ones, diagonal=1)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", common="future-for-past",
    change={"torch.tril(ones)": "torch.triu(ones)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "future-alone", "Ones and zeros have changed places",
    hint="Which entries of row 0 should be ones: the visible ones or the hidden ones?",
    change={"torch.tril(ones)": "torch.triu(ones, diagonal=1)"},
)  # fmt: skip

mistake("prefix_sum_matrix", common="whole-sequence", change={"torch.tril(ones)": "ones"})

mistake(
    "prefix_sum_matrix", "itself-alone", "Every token hears only itself",
    hint="What does a product with this matrix do to a sequence?",
    change={"torch.tril(ones)": "torch.eye(time)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "means-not-sums", "These are means, and sums were asked for",
    hint="Which numbers may stand in this matrix?",
    change={"torch.tril(ones)": "torch.tril(ones) / torch.tril(ones).sum(1, keepdim=True)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "minus-infinity", "Hidden tokens get minus infinity, not zero",
    hint="What is minus infinity times an ordinary number, and what becomes of the sum?",
    change={"torch.tril(ones)": 'ones + torch.triu(torch.full_like(ones, float("-inf")), 1)'},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "counts-for-ones", "The numbers count the tokens instead of picking them",
    hint="How often should each visible token take part in the sum?",
    change={"torch.tril(ones)": "torch.tril(ones).cumsum(dim=0)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "bool", "The matrix is bool, not floating point",
    hint="What happens when you multiply it with a sequence of real numbers?",
    breaks=("returns",),
    change={"torch.ones(time, time)": "torch.ones(time, time, dtype=torch.bool)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "integers", "The matrix holds integers, not floating point",
    hint="What happens when you multiply it with a sequence of real numbers?",
    breaks=("returns",),
    change={"torch.ones(time, time)": "torch.ones(time, time, dtype=torch.long)"},
)  # fmt: skip

common_mistakes("prefix_sum_matrix", "returns-float64")

mistake(
    "prefix_sum_matrix", "size-of-the-example", "The size is that of the example, always",
    hint="What comes out for five tokens?",
    change={"torch.ones(time, time)": "torch.ones(3, 3)"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "extra-axis", "The result has an axis too many",
    hint="How many axes does the shape in the contract have?",
    breaks=("returns",),
    change={"torch.ones(time, time)": "torch.ones(1, time, time)"},
)  # fmt: skip

mistake("prefix_sum_matrix", common="squeezed", breaks=("returns", "sizes"))

mistake(
    "prefix_sum_matrix", "wants-a-sequence", "A sequence is expected, but a number comes in",
    hint="Read the signature: what is `time`, a tensor or a number?",
    change={"torch.ones(time, time)": "torch.ones(time.shape[1], time.shape[1])"},
)  # fmt: skip

mistake(
    "prefix_sum_matrix", "largest-size", "Beyond some number of tokens the matrix stops growing",
    hint="What comes out for a thousand tokens?",
    breaks=("sizes",),
    change={"torch.ones(time, time)": "torch.ones(64, 64)[:time, :time]"},
)  # fmt: skip


@mistake(
    "prefix_sum_matrix", "last-token-forgotten", "The last token is forgotten",
    hint="Which number does range(n - 1) end with?",
)  # fmt: skip
def rows_without_the_last(time):
    matrix = torch.zeros(time, time)
    for t in range(time - 1):
        matrix[t, : t + 1] = 1
    return matrix


@accepted("prefix_sum_matrix", "rows", "Row after row, filled with slices of ones")
def rows_of_ones(time):
    matrix = torch.zeros(time, time)
    for t in range(time):
        matrix[t, : t + 1] = 1
    return matrix


@accepted("prefix_sum_matrix", "counting", "Rows and columns are counted and compared")
def triangle_by_counting(T):
    steps = torch.arange(T)
    return (steps[:, None] >= steps).float()


@accepted("prefix_sum_matrix", "upper-turned", "The upper triangle, transposed")
def triangle_turned(n):
    return torch.ones(n, n).triu().T


@accepted("prefix_sum_matrix", "without-future", "All ones, less those of the future")
def triangle_as_a_difference(n):
    return 1 - torch.triu(torch.ones(n, n), diagonal=1)


@accepted("prefix_sum_matrix", "running-identity", "Cumulative sums of the identity")
def triangle_of_the_identity(n):
    return torch.eye(n).cumsum(0)


@accepted("prefix_sum_matrix", "lists", "Nested lists of numbers")
def triangle_in_lists(time):
    return torch.tensor([[float(s <= t) for s in range(time)] for t in range(time)])


# --- running_mean_matrix -------------------------------------------------------------------------

mistake(
    "running_mean_matrix", "sums-not-means", "These are sums, and means were asked for",
    hint="A mean is a sum divided by what?",
    change={"selected / counts": "selected"},
)  # fmt: skip

common_mistakes("running_mean_matrix", "no-keepdim", "columns-sum-to-one")

mistake(
    "running_mean_matrix", "divides-by-time",
    "Every sum is divided by the length of the whole sequence",
    hint="How many tokens took part in the first sum?",
    change={"selected.sum(dim=-1, keepdim=True)": "time"},
)  # fmt: skip

common_mistakes("running_mean_matrix", "whole-matrix")

mistake(
    "running_mean_matrix", "divides-by-t", "The divisor is one too small from the second token on",
    hint="Counting from zero, how many tokens are there up to token t?",
    change={"selected.sum(dim=-1, keepdim=True)": "torch.arange(time).clamp(min=1)[:, None]"},
)  # fmt: skip

common_mistakes(
    "running_mean_matrix", "misses-itself", "one-too-many", "future-for-past", "transposed",
    "whole-sequence",
)  # fmt: skip

mistake(
    "running_mean_matrix", "zero-for-hidden", "The softmax gives hidden tokens a weight as well",
    hint="What does exp make of a 0?",
    change={"selected / counts": "torch.softmax(selected, dim=-1)"},
)  # fmt: skip

mistake(
    "running_mean_matrix", "divides-by-length",
    "The squares of the weights sum to one, not the weights",
    hint="Which norm does torch take unless you say otherwise?",
    change={"sum(dim=-1, keepdim=True)": "norm(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "running_mean_matrix", "whole-division", "The division drops everything after the point",
    hint="What is 1 // 3?",
    change={"selected / counts": "selected // counts"},
)  # fmt: skip

common_mistakes("running_mean_matrix", "returns-float64")

mistake(
    "running_mean_matrix", "rounded", "The numbers are rounded",
    hint="Do the numbers of the example show all of their digits?",
    change={"return selected / counts": "return torch.round(selected / counts, decimals=4)"},
)  # fmt: skip

mistake("running_mean_matrix", common="squeezed", breaks=("returns", "sizes"))

mistake(
    "running_mean_matrix", "size-of-the-example", "The size is that of the example, always",
    hint="What comes out for five tokens?",
    change={"prefix_sum_matrix(time)": "prefix_sum_matrix(3)"},
)  # fmt: skip

mistake(
    "running_mean_matrix", "largest-size", "Beyond some number of tokens the matrix stops growing",
    hint="What comes out for a thousand tokens?",
    breaks=("sizes",),
    change={"prefix_sum_matrix(time)": "prefix_sum_matrix(64)[:time, :time]"},
)  # fmt: skip


@accepted("running_mean_matrix", "counts", "The triangle over a column of counts")
def triangle_over_counts(T):
    return torch.ones(T, T).tril() / torch.arange(1, T + 1).unsqueeze(1)


@accepted("running_mean_matrix", "softmax", "A softmax of zeros and minus infinities")
def means_by_softmax(T):
    scores = torch.zeros(T, T).masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
    return torch.softmax(scores, -1)


@accepted("running_mean_matrix", "rows", "Row after row, filled with fractions")
def rows_of_fractions(T):
    matrix = torch.zeros(T, T)
    for t in range(T):
        matrix[t, : t + 1] = 1 / (t + 1)
    return matrix


@accepted("running_mean_matrix", "diagonal-product", "A diagonal matrix of divisors from the left")
def divisors_on_a_diagonal(T):
    sums = prefix_sum_matrix(T)  # noqa: F821
    return torch.diag(1 / sums.sum(1)) @ sums


@accepted("running_mean_matrix", "in-place", "The matrix of its own is divided in place")
def divided_in_place(time):
    weights = torch.tril(torch.ones(time, time))
    weights /= weights.sum(1, keepdim=True)
    return weights


@accepted("running_mean_matrix", "normalize", "Torch's normalize with the right norm")
def rows_normalised(T):
    return F.normalize(torch.ones(T, T).tril(), p=1, dim=1)


# --- running_mean_matmul -------------------------------------------------------------------------

mistake(
    "running_mean_matmul", "sums-not-means", "These are sums, and means were asked for",
    hint="A mean is a sum divided by what?",
    change={"return weights @ x": "return selected @ x"},
)  # fmt: skip

common_mistakes("running_mean_matmul", "no-keepdim", "columns-sum-to-one")

mistake(
    "running_mean_matmul", "divides-by-time",
    "Every sum is divided by the length of the whole sequence",
    hint="How many tokens took part in the first sum?",
    change={"selected.sum(dim=-1, keepdim=True)": "time"},
)  # fmt: skip

common_mistakes(
    "running_mean_matmul", "misses-itself", "one-too-many", "future-for-past", "transposed",
    "whole-sequence",
)  # fmt: skip

mistake(
    "running_mean_matmul", "softmax-of-the-means",
    "The weights go through a softmax that spoils them",
    hint="The rows summed to one already: what does a softmax make of their zeros?",
    change={"weights = selected / counts": "weights = torch.softmax(selected / counts, dim=-1)"},
)  # fmt: skip

mistake(
    "running_mean_matmul", "wrong-side", "The weights stand on the wrong side of the product",
    hint="Which axis of the tokens should meet the columns of the weights?",
    change={"return weights @ x": "return x @ weights"},
)  # fmt: skip

mistake(
    "running_mean_matmul", "channels-for-time", "The mean runs over the channels, not over time",
    hint="Which of the three axes holds the tokens of one sequence?",
    change={
        "_batch, time, _channels =": "_batch, _time, time =",
        "return weights @ x": "return x @ weights.T",
    },
)  # fmt: skip

mistake(
    "running_mean_matmul", "batch-for-time", "The mean runs over the batch, not over time",
    hint="Which of the three axes holds the tokens of one sequence?",
    change={
        "_batch, time, _channels =": "time, _batch, _channels =",
        "return weights @ x": 'return torch.einsum("ts,sbc->tbc", weights, x)',
    },
)  # fmt: skip

mistake(
    "running_mean_matmul", "batch-mixed", "The sequences of the batch are mixed with each other",
    hint="Should the answer for one sequence change when another one of the batch does?",
    change={"return weights @ x": "return (weights @ x.mean(dim=0)).expand_as(x)"},
)  # fmt: skip

mistake(
    "running_mean_matmul", "default-dtype",
    "The weights keep torch's default dtype, whatever x has",
    hint="Which dtype does a new tensor have unless you say otherwise?",
    breaks=("dtype",),
    change={"prefix_sum_matrix(time).to(x)": "prefix_sum_matrix(time)"},
)  # fmt: skip

common_mistakes(
    "running_mean_matmul", "float32-inside", "returns-float64", "no-gradient", "squeezed",
)  # fmt: skip


@mistake(
    "running_mean_matmul", "loop-over-time",
    "The means are right, but more tokens take more tensor operations: a loop is at work",
    hint="Which step is not one operation on whole tensors, the making of the matrix included?",
    breaks=("loops",),
)  # fmt: skip
def loop_once_more(x):
    return torch.stack([x[:, : t + 1].mean(dim=1) for t in range(x.shape[1])], dim=1)


@mistake(
    "running_mean_matmul", "loop-over-rows", "The matrix itself is filled row by row, in a loop",
    hint="Which function blanks out a triangle in a single step?",
    breaks=("loops",),
    same_as={"loop-over-time": "both give right results by more operations for more tokens"},
)  # fmt: skip
def matrix_filled_in_a_loop(x):
    T = x.shape[1]
    weights = x.new_zeros(T, T)
    for t in range(T):
        weights[t, : t + 1] = 1 / (t + 1)
    return weights @ x


mistake(
    "running_mean_matmul", "leaves-torch",
    "Numbers leave torch on the way to the means",
    hint="Which step could torch do by itself?",
    breaks=("loops",),
    change={
        "selected.sum(dim=-1, keepdim=True)":
            "x.new_tensor([[sum(row)] for row in selected.tolist()])",
    },
)  # fmt: skip


@mistake("running_mean_matmul", common="changes-its-input")
def cumulated_in_place(x):
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)
    return x.cumsum_(dim=1) / counts[:, None]


@accepted("running_mean_matmul", "cumsum", "Cumulative sums over counts")
def cumulated_over_counts(x):
    counts = torch.arange(1, x.shape[1] + 1, dtype=x.dtype, device=x.device)
    return torch.cumsum(x, dim=1) / counts.view(1, -1, 1)


@accepted("running_mean_matmul", "matrix-of-means", "The matrix of the last exercise, cast to x")
def with_the_matrix_of_means(x):
    return running_mean_matrix(x.shape[1]).to(x) @ x  # noqa: F821


@accepted("running_mean_matmul", "einsum", "An einsum in place of the product")
def means_by_einsum(x):
    T = x.shape[1]
    weights = torch.ones(T, T, dtype=x.dtype).tril()
    weights /= weights.sum(-1, keepdim=True)
    return torch.einsum("ij,bjc->bic", weights, x)


@accepted("running_mean_matmul", "bmm", "A matrix for each sequence, and bmm")
def means_by_bmm(x):
    B, T, C = x.shape
    weights = torch.tril(torch.ones(B, T, T, dtype=x.dtype))
    return torch.bmm(weights / weights.sum(-1, keepdim=True), x)


@accepted("running_mean_matmul", "from-the-right", "Channels as rows, the matrix from the right")
def means_from_the_right(x):
    weights = torch.triu(x.new_ones(x.size(1), x.size(1)))
    weights = weights / weights.sum(0, keepdim=True)
    return (x.transpose(1, 2) @ weights).transpose(1, 2)


@accepted("running_mean_matmul", "divides-last", "Sums first, division afterwards")
def sums_then_divides(x):
    keep = torch.tril(x.new_ones(x.shape[1], x.shape[1]))
    return keep @ x / keep.sum(1)[:, None]


@accepted("running_mean_matmul", "float64-inside", "Float64 inside, cast back at the end")
def means_in_float64(x):
    weights = torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.float64))
    return (weights / weights.sum(1, keepdim=True) @ x.double()).to(x.dtype)


@accepted("running_mean_matmul", "baddbmm", "Baddbmm without its first term")
def means_by_baddbmm(x):
    B, T, C = x.shape
    weights = torch.tril(x.new_ones(T, T))
    weights = (weights / weights.sum(1, keepdim=True)).expand(B, T, T)
    return torch.baddbmm(torch.zeros_like(x), weights, x, beta=0)


# --- running_mean_softmax ------------------------------------------------------------------------

common_mistakes("running_mean_softmax", "hides-itself")

mistake(
    "running_mean_softmax", "hides-too-much",
    "The mask hides the token itself and the one before it",
    hint="How many rows of the weights are NaN, and which scores did they have left?",
    change={"diagonal=1)": "diagonal=-1)"},
)  # fmt: skip

mistake("running_mean_softmax", common="one-too-many", change={"diagonal=1)": "diagonal=2)"})

mistake(
    "running_mean_softmax", "mask-inverted", "The mask hides the past and shows the future",
    hint="Which half of the matrix is the future?",
    change={"masked_fill(future,": "masked_fill(~future,"},
)  # fmt: skip

mistake(
    "running_mean_softmax", common="future-for-past",
    change={"torch.triu(everywhere, diagonal=1)": "torch.tril(everywhere, diagonal=-1)"},
)  # fmt: skip

mistake(
    "running_mean_softmax", common="whole-sequence",
    change={'scores = scores.masked_fill(future, float("-inf"))': "pass"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "result-thrown-away", common="mask-thrown-away",
    same_as={"whole-sequence": "without the mask's result there is no mask"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "tiny-for-infinity", "Hidden scores are tiny, not minus infinity",
    hint="Is a tiny score much smaller than zero?",
    change={'float("-inf")': "1e-9"},
    same_as={
        "whole-sequence": "exp(1e-9) is 1 in float32",
        "result-thrown-away": "exp(1e-9) is 1 in float32",
    },
)  # fmt: skip

mistake(
    "running_mean_softmax", "plus-infinity", common="mask-fills-infinity",
    change={'float("-inf")': 'float("inf")'},
)  # fmt: skip

mistake(
    "running_mean_softmax", "mild-mask", "Hidden scores are a little lower, and still count",
    hint="How much is exp(-10), and is that nothing?",
    change={'float("-inf")': "-10.0"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "leaky-mask", "Hidden tokens keep a trace of weight",
    hint="What if a later token is very much larger than the others?",
    change={'float("-inf")': "-30.0"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "infinity-times-zero", common="mask-times-infinity",
    change={'scores.masked_fill(future, float("-inf"))': 'scores + future * float("-inf")'},
)  # fmt: skip

mistake(
    "running_mean_softmax", "mask-added", "The mask is added as zeros and ones",
    hint="Does a score that is larger by one hide a token?",
    change={'scores.masked_fill(future, float("-inf"))': "scores + future"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "zero-for-hidden", "The softmax gives hidden tokens a weight as well",
    hint="What does exp make of a 0?",
    change={
        "x.new_zeros(time, time)": "x.new_ones(time, time)",
        'scores.masked_fill(future, float("-inf"))': "torch.tril(scores)",
    },
)  # fmt: skip

mistake(
    "running_mean_softmax", "masked-afterwards",
    "The future is zeroed after the softmax, and rows lose weight",
    hint="What does each row of the weights sum to?",
    change={
        'scores = scores.masked_fill(future, float("-inf"))': "pass",
        "torch.softmax(scores, dim=-1)": "torch.softmax(scores, dim=-1).masked_fill(future, 0)",
    },
)  # fmt: skip

mistake(
    "running_mean_softmax", "softmax-of-the-means",
    "The weights go through a softmax that spoils them",
    hint="The rows summed to one already: what does a softmax make of their zeros?",
    change={"torch.softmax(scores, dim=-1)": "running_mean_matrix(time).to(x).softmax(dim=-1)"},
)  # fmt: skip

common_mistakes("running_mean_softmax", "columns-sum-to-one", "transposed", "log-softmax")

mistake(
    "running_mean_softmax", "scores-from-tokens",
    "The scores are dot products, and zeros were asked for",
    hint="Should one token prefer another in this exercise?",
    change={"x.new_zeros(time, time)": "x @ x.transpose(1, 2)"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "no-softmax", "The means are right, but no softmax took part",
    hint="Which step of your code turns scores into weights?",
    breaks=("softmax",),
    change={"torch.softmax(scores, dim=-1)": "(scores == 0) / (scores == 0).to(x).sum(-1, True)"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "softmax-for-show", "A softmax is called, and its result is not used",
    hint="If the softmax gave other weights, what would your result be?",
    breaks=("softmax",),
    change={"return weights @ x": "return (~future).to(x) @ x / (~future).sum(-1, True)"},
)  # fmt: skip

common_mistakes("running_mean_softmax", "squeezed")

mistake(
    "running_mean_softmax", "returns-weights",
    "The weights are returned, not what they make of the tokens",
    hint="Which shape should come out?",
    breaks=("returns",),
    change={"return weights @ x": "return weights"},
)  # fmt: skip

mistake(
    "running_mean_softmax", "default-dtype",
    "The weights keep torch's default dtype, whatever x has",
    hint="Which dtype does a new tensor have unless you say otherwise?",
    breaks=("dtype",),
    change={"x.new_zeros(time, time)": "torch.zeros(time, time)"},
)  # fmt: skip

common_mistakes("running_mean_softmax", "float32-inside", "no-gradient")

mistake(
    "running_mean_softmax", "fixed-size", "The mask has one size for all sequences",
    hint="What happens when the sequence is shorter or longer than the one you tried?",
    change={"torch.ones(time, time, ": "torch.ones(4, 4, "},
)  # fmt: skip


@mistake(
    "running_mean_softmax", "softmax-of-the-tokens",
    "The softmax is taken of the tokens themselves",
    hint="What should become weights: the tokens, or scores between them?",
)  # fmt: skip
def softmax_of_the_tokens(x):
    return torch.softmax(x, dim=1) * x


@mistake(
    "running_mean_softmax", "size-of-the-first-call", "The length of the first call is remembered",
    hint="What happens at the second call, when that sequence is longer?",
    same_as={"fixed-size": "the first call may well have that size"},
)  # fmt: skip
def mask_of_the_first_call(x, kept=[]):
    if not kept:
        kept.append(torch.triu(torch.ones(x.shape[1], x.shape[1]), diagonal=1).bool())
    T = kept[0].shape[0]
    scores = x.new_zeros(T, T).masked_fill(kept[0], float("-inf"))
    return torch.softmax(scores, dim=-1) @ x


@mistake("running_mean_softmax", common="changes-its-input", breaks=("unchanged", "gradients"))
def means_written_into_x(x):
    T = x.shape[1]
    scores = torch.triu(x.new_full((T, T), float("-inf")), diagonal=1)
    for sequence in x:
        sequence.copy_(torch.softmax(scores, dim=-1) @ sequence)
    return x


@mistake(
    "running_mean_softmax", common="turned-in-place",
    same_as={"changes-its-input": "only the gradient tells them apart"},
)  # fmt: skip
def means_of_channels_turned_in_place(x):
    T = x.shape[1]
    scores = torch.triu(x.new_full((T, T), float("-inf")), diagonal=1)
    weights = torch.softmax(scores, dim=-1)
    return (x.transpose_(1, 2) @ weights.T).transpose(1, 2)


@accepted(
    "running_mean_softmax", "tril-equals-zero", "The mask is where a triangle of ones is zero"
)
def masked_where_tril_is_zero(x):
    T = x.shape[1]
    tril = torch.tril(torch.ones(T, T))
    wei = torch.zeros((T, T), dtype=x.dtype)
    wei = wei.masked_fill(tril == 0, float("-inf"))
    return F.softmax(wei, dim=-1) @ x


@accepted(
    "running_mean_softmax", "where", "Rows and columns are compared, torch.where does the rest"
)
def masked_by_where(x):
    steps = torch.arange(x.shape[1])
    scores = torch.where(steps[None] > steps[:, None], -math.inf, 0.0).to(x.dtype)
    return scores.softmax(dim=-1).matmul(x)


@accepted("running_mean_softmax", "added-infinities", "A triangle of minus infinities is added")
def masked_by_adding(x):
    T = x.shape[1]
    scores = x.new_zeros(T, T) + torch.triu(x.new_full((T, T), -torch.inf), diagonal=1)
    return torch.nn.Softmax(dim=-1)(scores) @ x


@accepted("running_mean_softmax", "own-softmax", "Exp and a division instead of torch's softmax")
def means_by_own_softmax(x):
    def softmax(scores):
        positive = torch.exp(scores)
        return positive / positive.sum(-1, keepdim=True)

    T = x.shape[1]
    scores = x.new_zeros(T, T)
    scores[torch.triu(torch.ones(T, T), 1) == 1] = float("-inf")
    return torch.einsum("ts,bsc->btc", softmax(scores), x)


@accepted("running_mean_softmax", "batched-ones", "Equal scores of one, a matrix for each sequence")
def means_by_equal_scores(x):
    B, T, C = x.shape
    future = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    scores = torch.ones(B, T, T, dtype=x.dtype).masked_fill_(future, -torch.inf)
    return torch.bmm(scores.softmax(-1), x)


@accepted(
    "running_mean_softmax", "very-negative", "The lowest number of the dtype for minus infinity"
)
def means_by_finfo(x):
    T = x.shape[1]
    lowest = torch.finfo(x.dtype).min
    return torch.triu(x.new_full((T, T), lowest), 1).softmax(-1) @ x


@accepted(
    "running_mean_softmax", "log-of-the-triangle", "The logarithm of zeros and ones as scores"
)
def means_by_log(x):
    T = x.shape[1]
    return torch.tril(x.new_ones(T, T)).log().softmax(-1) @ x


@accepted(
    "running_mean_softmax", "zeroed-and-renormalised", "Zeroed after the softmax, then renormalised"
)
def means_renormalised(x):
    T = x.shape[1]
    weights = torch.softmax(x.new_zeros(T, T), dim=-1).tril()
    return weights / weights.sum(-1, keepdim=True) @ x


@accepted("running_mean_matrix", "entry-by-entry", "Each entry divided by its row's sum, in loops")
def entry_by_entry(time):
    m = prefix_sum_matrix(time)  # noqa: F821 - stands in the same file
    for i in range(time):
        total = m[i].sum()
        for j in range(time):
            m[i, j] = m[i, j] / total
    return m
