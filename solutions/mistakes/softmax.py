"""Known answers of unit 2: mistakes, and right answers in other forms."""

import math

import torch
import torch.nn.functional as F

from grader.mistakes import accepted, common_mistakes, mistake

# --- normalize_by_sum ----------------------------------------------------------------------------

mistake(
    "normalize_by_sum", "divides-by-maximum", "The scores are divided by the largest of them",
    hint="What do the weights of 1, 3 and 4 add up to?",
    change={"scores.sum(dim=-1)": "scores.max()"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "divides-by-mean", "The scores are divided by their mean",
    hint="What do the weights of 1, 3 and 4 add up to?",
    change={"scores.sum(dim=-1)": "scores.mean()"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "divides-by-count", "The scores are divided by how many there are",
    hint="What do the weights of 1, 3 and 4 add up to?",
    change={"scores.sum(dim=-1)": "scores.shape[0]"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "divides-by-length",
    "The squares of the weights sum to one, not the weights",
    hint="Which norm does torch take unless you say otherwise?",
    change={"scores.sum(dim=-1)": "scores.norm()"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "divides-by-running-sum", "Each score is divided by the sum up to itself",
    hint="How many totals are there for one vector of scores?",
    change={"scores.sum(dim=-1)": "scores.cumsum(dim=-1)"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "upside-down", "The fraction is upside down",
    hint="Which score should earn the largest weight?",
    change={"scores / total": "total / scores"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "whole-division", "The division drops everything after the point",
    hint="What is 1 // 3?",
    change={"scores / total": "scores // total"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "exp-too-early", "Exp has been at work, and plain fractions were asked for",
    hint="With scores of 1 and 3, how many times the weight of the first should the second get?",
    change={
        "scores.sum(dim=-1)": "scores.exp().sum(dim=-1)",
        "scores / total": "scores.exp() / total",
    },
)  # fmt: skip

mistake(
    "normalize_by_sum", "minimum-subtracted", "The smallest score is subtracted, and gets nothing",
    hint="What share of the whole should the smallest score get?",
    change={
        "scores.sum(dim=-1)": "(scores - scores.min()).sum(dim=-1)",
        "scores / total": "(scores - scores.min()) / total",
    },
)  # fmt: skip

mistake(
    "normalize_by_sum", "total-kept-above-one", "A total below one is raised to one",
    hint="What do the weights add up to when all scores are small?",
    change={"scores.sum(dim=-1)": "scores.sum(dim=-1).clamp(min=1.0)"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "returns-total", "The total is returned, not the weights",
    hint="How many weights should come back?",
    breaks=("returns",),
    change={"return scores / total": "return total"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "rounded", "The numbers are rounded",
    hint="Do the numbers of the example show all of their digits?",
    change={"return scores / total": "return torch.round(scores / total, decimals=4)"},
)  # fmt: skip

mistake(
    "normalize_by_sum", "not-stacked", "A list comes back, not a tensor",
    hint="How do many tensors of one shape become a single one?",
    breaks=("returns",),
    change={"return scores / total": "return [score / total for score in scores]"},
)  # fmt: skip

common_mistakes("normalize_by_sum", "squeezed")
mistake("normalize_by_sum", "no-return", common="nothing-returned")

mistake(
    "normalize_by_sum", common="changes-its-input",
    change={"return scores / total": "scores /= total\n    return scores"},
)  # fmt: skip

common_mistakes(
    "normalize_by_sum", "no-gradient", "total-without-gradient", "returns-float32",
    "returns-float64",
)  # fmt: skip

mistake(
    "normalize_by_sum", common="torch-softmax",
    change={"return scores / total": "return torch.softmax(torch.log(scores), dim=-1)"},
)  # fmt: skip


mistake(
    "normalize_by_sum", "epsilon-too-large", "What is added to the total is not small beside it",
    hint="How much is a millionth of a total of 0.01, and of a total of 100?",
    change={"scores.sum(dim=-1)": "(scores.sum(dim=-1) + 1e-6)"},
)  # fmt: skip


@accepted("normalize_by_sum", "share-of-ones", "A dot product with ones as the total")
def total_by_dot(v):
    return v.div(v @ torch.ones_like(v))


@accepted("normalize_by_sum", "reciprocal", "Multiplied by one over the total")
def times_the_reciprocal(x):
    return x * torch.einsum("i->", x).reciprocal()


@accepted("normalize_by_sum", "normalize", "Torch's normalize with the right norm")
def normalised_by_torch(scores):
    return F.normalize(scores, p=1, dim=0)


@accepted("normalize_by_sum", "loop", "Python's sum, and a score at a time")
def total_by_loop(scores):
    total = sum(scores)
    return torch.stack([score / total for score in scores])


@accepted("normalize_by_sum", "copy-in-place", "A copy is divided in place")
def copy_divided_in_place(scores):
    weights = scores.clone()
    weights /= scores.sum()
    return weights


@accepted("normalize_by_sum", "epsilon", "A tiny number added to the total, and a print")
def total_with_epsilon(scores, eps=1e-10):
    print("total:", scores.sum())
    return scores / (scores.sum() + eps)


# --- softmax_naive -------------------------------------------------------------------------------

common_mistakes("softmax_naive", "no-exp")

mistake(
    "softmax_naive", "absolute-scores", "Negative scores count as if they were positive",
    hint="Which should get the larger weight: a score of 1 or a score of -2?",
    change={"torch.exp(scores)": "torch.abs(scores)"},
)  # fmt: skip

mistake(
    "softmax_naive", "squares", "The scores are squared to make them positive",
    hint="Which should get the larger weight: a score of 1 or a score of -2?",
    change={"torch.exp(scores)": "scores**2"},
)  # fmt: skip

mistake(
    "softmax_naive", "negative-cut-off", "Negative scores get nothing",
    hint="What weight should a score of -1 get beside a score of 0?",
    change={"torch.exp(scores)": "torch.exp(scores) * (scores > 0)"},
)  # fmt: skip

mistake(
    "softmax_naive", "base-two", "The base is two, not e",
    hint="How many times the weight of a 0 does a score of 1 get?",
    change={"torch.exp(scores)": "2**scores"},
)  # fmt: skip

mistake(
    "softmax_naive", "rough-e", "The base is e cut off after a few digits",
    hint="How many digits of e does your computer know?",
    change={"torch.exp(scores)": "2.72**scores"},
)  # fmt: skip

mistake(
    "softmax_naive", "sigmoid", "Sigmoids are shared out, not exponentials",
    hint="Does a score of 5 get e times the weight of a score of 4?",
    change={"torch.exp(scores)": "torch.sigmoid(scores)"},
)  # fmt: skip

mistake(
    "softmax_naive", "minus-sign", "The smallest score gets the largest weight",
    hint="Which score should win?",
    change={"torch.exp(scores)": "torch.exp(-scores)"},
)  # fmt: skip

mistake(
    "softmax_naive", "sum-of-scores", "The exponentials are divided by the sum of the scores",
    hint="What do you have to divide by, so that the weights sum to one?",
    change={"positive.sum(dim=-1)": "scores.sum(dim=-1)"},
)  # fmt: skip

mistake(
    "softmax_naive", "exp-of-the-sum", "The divisor is the exp of the sum, not the sum of the exps",
    hint="Is exp(1 + 2) the same as exp(1) + exp(2)?",
    change={"positive.sum(dim=-1)": "torch.exp(scores.sum(dim=-1))"},
)  # fmt: skip

mistake(
    "softmax_naive", "largest-for-sum", "The exponentials are divided by the largest of them",
    hint="What do the weights add up to?",
    change={"positive.sum(dim=-1)": "positive.max()"},
)  # fmt: skip

mistake(
    "softmax_naive", "count-for-sum", "The exponentials are divided by how many there are",
    hint="What do the weights add up to?",
    change={"positive.sum(dim=-1)": "positive.shape[0]"},
)  # fmt: skip

common_mistakes("softmax_naive", "not-normalised")

mistake(
    "softmax_naive", "exp-of-fractions", "The exp comes after the division, not before",
    hint="What is done first in the definition: exp, or the division?",
    change={
        "torch.exp(scores)": "scores",
        "return positive / total": "return torch.exp(positive / total)",
    },
)  # fmt: skip

common_mistakes("softmax_naive", "log-softmax")

mistake(
    "softmax_naive", "winner-takes-all", "The largest score gets everything",
    hint="What should the others get, and what would a gradient do here?",
    change={"torch.exp(scores)": "(scores == scores.max()).to(scores)"},
)  # fmt: skip

common_mistakes("softmax_naive", "squeezed")

mistake(
    "softmax_naive", "epsilon", "A constant in the divisor swallows small totals",
    hint="How large is the total when all scores are around -30?",
    change={"return positive / total": "return positive / (total + 1e-8)"},
)  # fmt: skip

mistake(
    "softmax_naive", common="clamped",
    change={"torch.exp(scores)": "torch.exp(scores.clamp(max=70))"},
)  # fmt: skip

common_mistakes(
    "softmax_naive", "changes-its-input", "no-gradient", "total-without-gradient", "float32-inside",
    "returns-float64",
)  # fmt: skip


@mistake(
    "softmax_naive", "python-numbers",
    "The numbers leave torch and come back without their history",
    hint="What does a Python number know about where it came from?",
    breaks=("dtype", "gradients"),
)  # fmt: skip
def weights_out_of_python_numbers(scores):
    total = sum(math.exp(score) for score in scores)
    return torch.tensor([math.exp(score) / total for score in scores])


mistake(
    "softmax_naive", common="torch-softmax",
    change={"return positive / total": "return torch.softmax(scores, dim=-1)"},
)  # fmt: skip

mistake(
    "softmax_naive", "torch-logsumexp", "Torch's own logsumexp does the work",
    hint="Which functions are off limits in this unit?",
    breaks=("forbidden",),
    change={"return positive / total": "return (scores - torch.logsumexp(scores, dim=-1)).exp()"},
    same_as={"torch-softmax": "both are forbidden, and both are right"},
)  # fmt: skip


@accepted(
    "softmax_naive", "fractions-of-exp", "The last exercise's function, given the exponentials"
)
def fractions_of_exponentials(x):
    return normalize_by_sum(x.exp())  # noqa: F821


@accepted("softmax_naive", "shifted", "The largest score is subtracted first")
def naive_and_shifted(scores):
    positive = (scores - scores.max()).exp()
    return positive / positive.sum()


@accepted("softmax_naive", "power-of-e", "A power of e")
def naive_power_of_e(scores):
    positive = math.e**scores
    return positive / positive.sum(-1, keepdim=True)


@accepted(
    "softmax_naive", "log-of-the-total", "The logarithm of the total is subtracted before exp"
)
def naive_by_logarithm(scores):
    def softmax(v):
        logsumexp = torch.log(v.exp().sum())
        return (v - logsumexp).exp()

    return softmax(scores)


@accepted("softmax_naive", "pairs", "One over the sum of exponentials of differences")
def naive_by_pairs(scores):
    return 1 / torch.exp(scores[None, :] - scores[:, None]).sum(dim=1)


@accepted("softmax_naive", "loop", "A loop that fills a tensor of its own")
def naive_by_loop(scores):
    weights = torch.zeros_like(scores)
    total = sum(torch.exp(score) for score in scores)
    for i, score in enumerate(scores):
        weights[i] = torch.exp(score) / total
    return weights


@accepted("softmax_naive", "float64-inside", "Float64 inside, cast back at the end")
def naive_in_float64(scores):
    positive = scores.double().exp()
    return (positive / positive.sum()).type_as(scores)


# --- softmax_rows --------------------------------------------------------------------------------

common_mistakes("softmax_rows", "columns-sum-to-one", "whole-matrix", "no-keepdim")

mistake(
    "softmax_rows", "one-total-for-all", "All rows are divided by the total of the first one",
    hint="How many totals does a matrix of two rows need?",
    change={"positive.sum(dim=-1, keepdim=True)": "positive[0].sum()"},
)  # fmt: skip

mistake(
    "softmax_rows", "mean-total", "All rows are divided by the mean of the totals",
    hint="How many totals does a matrix of two rows need?",
    change={"positive.sum(dim=-1, keepdim=True)": "positive.sum(dim=-1).mean()"},
)  # fmt: skip

mistake(
    "softmax_rows", "both-axes", "The columns are normalised first, and then the rows",
    hint="Should a row's weights depend on the other rows?",
    change={"torch.exp(scores)": "torch.exp(scores) / torch.exp(scores).sum(dim=0)"},
)  # fmt: skip

common_mistakes("softmax_rows", "no-exp", "not-normalised")

mistake(
    "softmax_rows", "largest-for-sum", "The exponentials are divided by the largest of them",
    hint="What do the weights add up to?",
    change={"sum(dim=-1, keepdim=True)": "amax(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "softmax_rows", "minus-sign", "The smallest score gets the largest weight",
    hint="Which score should win?",
    change={"torch.exp(scores)": "torch.exp(-scores)"},
)  # fmt: skip

mistake(
    "softmax_rows", "base-two", "The base is two, not e",
    hint="How many times the weight of a 0 does a score of 1 get?",
    change={"torch.exp(scores)": "2**scores"},
)  # fmt: skip

common_mistakes("softmax_rows", "log-softmax")

mistake(
    "softmax_rows", "result-transposed", common="transposed",
    hint="Does the result have a row for each query?",
)  # fmt: skip

common_mistakes("softmax_rows", "squeezed")

mistake(
    "softmax_rows", "one-maximum", "One maximum is subtracted from all rows",
    hint="One row lies near 70, another near -70: what is left of the second after the shift?",
    change={"torch.exp(scores)": "torch.exp(scores - scores.max())"},
)  # fmt: skip

mistake(
    "softmax_rows", "epsilon", "A constant in the divisor swallows small totals",
    hint="How large is the total when all scores are around -30?",
    change={"return positive / totals": "return positive / (totals + 1e-8)"},
)  # fmt: skip

common_mistakes(
    "softmax_rows", "changes-its-input", "no-gradient", "total-without-gradient", "float32-inside",
    "returns-float64",
)  # fmt: skip


@mistake(
    "softmax_rows", "last-row-forgotten", "The last row is forgotten",
    hint="Which number does range(n - 1) end with?",
)  # fmt: skip
def rows_but_the_last(scores):
    weights = torch.zeros_like(scores)
    for i in range(scores.shape[0] - 1):
        weights[i] = torch.exp(scores[i]) / torch.exp(scores[i]).sum()
    return weights


common_mistakes("softmax_rows", "returns-float32")


@mistake(
    "softmax_rows", "python-numbers", "The numbers leave torch and come back without their history",
    hint="What does a Python number know about where it came from?",
    breaks=("dtype", "gradients"),
)  # fmt: skip
def rows_out_of_python_numbers(scores):
    rows = [[math.exp(score) for score in row] for row in scores.tolist()]
    return torch.tensor([[number / sum(row) for number in row] for row in rows])


mistake(
    "softmax_rows", common="torch-softmax",
    change={"return positive / totals": "return torch.nn.Softmax(dim=-1)(scores)"},
)  # fmt: skip

mistake(
    "softmax_rows", "torch-logsumexp", "Torch's own logsumexp does the work",
    hint="Which functions are off limits in this unit?",
    breaks=("forbidden",),
    change={
        "return positive / totals": "return (scores - scores.logsumexp(-1, keepdim=True)).exp()",
    },
    same_as={"torch-softmax": "both are forbidden, and both are right"},
)  # fmt: skip


@accepted("softmax_rows", "row-by-row", "The softmax of a vector, row by row")
def rows_by_softmax_naive(scores):
    return torch.stack([softmax_naive(row) for row in scores])  # noqa: F821


@accepted("softmax_rows", "vmap", "The softmax of a vector, mapped over the rows")
def rows_by_vmap(scores):
    return torch.vmap(softmax_naive)(scores)  # noqa: F821


@accepted("softmax_rows", "turned", "The matrix is transposed, divided, and transposed back")
def rows_turned(s):
    positive = s.exp()
    return (positive.T / positive.sum(1)).T


@accepted("softmax_rows", "einsum", "Two einsums: totals, then products with their reciprocals")
def rows_by_einsum(scores):
    positive = torch.exp(scores)
    return torch.einsum("qk,q->qk", positive, 1 / torch.einsum("qk->q", positive))


@accepted("softmax_rows", "product-with-ones", "The totals are a product with a column of ones")
def rows_by_product(s):
    positive = torch.exp(s - s.amax(dim=1, keepdim=True))
    return positive / (positive @ torch.ones(s.shape[1], 1, dtype=s.dtype, device=s.device))


@accepted("softmax_rows", "table", "A table of its own, filled row by row")
def rows_into_a_table(scores):
    weights = torch.empty_like(scores)
    for i in range(scores.size(0)):
        weights[i] = torch.exp(scores[i])
        weights[i] /= weights[i].sum().clone()
    return weights


# --- softmax_stable ------------------------------------------------------------------------------

mistake(
    "softmax_stable", "no-shift", "Exp overflows: nothing is subtracted from the scores",
    hint="A shift of a whole slice changes nothing: which one keeps exp at 1 or below?",
    breaks=("large",),
    change={"scores - largest": "scores"},
)  # fmt: skip

mistake(
    "softmax_stable", "one-maximum-for-all", "One maximum is subtracted from all slices",
    hint="What is left of a slice that lies a thousand below another one?",
    breaks=("large",),
    change={"scores.amax(dim=dim, keepdim=True)": "scores.max()"},
)  # fmt: skip

mistake(
    "softmax_stable", "maximum-along-the-last-axis",
    "The maximum is taken along the last axis, whatever dim says",
    hint="Are all scores of a slice shifted by the same number?",
    change={"amax(dim=dim,": "amax(dim=-1,"},
)  # fmt: skip

mistake(
    "softmax_stable", "sum-along-the-last-axis",
    "The sum is taken along the last axis, whatever dim says",
    hint="Along which axis should the weights sum to one?",
    change={"sum(dim=dim,": "sum(dim=-1,"},
)  # fmt: skip

mistake(
    "softmax_stable", "dim-ignored", "The argument dim is ignored",
    hint="What comes out for dim=0 on a tall matrix?",
    change={"amax(dim=dim,": "amax(dim=-1,", "sum(dim=dim,": "sum(dim=-1,"},
)  # fmt: skip

mistake(
    "softmax_stable", "default-is-the-first-axis",
    "Without a dim, the slices lie along the first axis",
    hint="Which dim does the signature promise if the caller says nothing?",
    change={"dim: int = -1": "dim: int = 0"},
)  # fmt: skip

mistake(
    "softmax_stable", "no-default", "Without a dim, the call fails",
    hint="Which dim does the signature promise if the caller says nothing?",
    change={"dim: int = -1": "dim: int"},
)  # fmt: skip

mistake(
    "softmax_stable", "whole-tensor", "The whole tensor sums to one, not each slice",
    hint="How many distributions are there along dim?",
    change={"positive.sum(dim=dim, keepdim=True)": "positive.sum()"},
)  # fmt: skip

common_mistakes("softmax_stable", "no-keepdim")

mistake(
    "softmax_stable", common="clamped",
    breaks=("large",),
    change={"scores - largest": "scores.clamp(max=80)"},
)  # fmt: skip

mistake(
    "softmax_stable", "shift-by-mean",
    "The mean is subtracted, and the largest score may lie far above it",
    hint="What does exp get to see when one score lies hundreds above the mean?",
    breaks=("large", "infinite"),
    change={"amax(": "mean("},
)  # fmt: skip

mistake(
    "softmax_stable", "shift-by-minimum", "The minimum is subtracted, so exp only gets larger",
    hint="What is the largest number that exp gets to see?",
    breaks=("large", "infinite"),
    change={"amax(": "amin("},
)  # fmt: skip

mistake(
    "softmax_stable", "shift-by-largest-magnitude",
    "The largest magnitude is subtracted, not the largest score",
    hint="What is left of a slice whose scores all lie around -1000?",
    breaks=("large", "infinite"),
    change={"scores.amax(": "scores.abs().amax("},
)  # fmt: skip

mistake(
    "softmax_stable", "fixed-shift", "The same number is subtracted from every tensor",
    hint="What is left of scores around zero?",
    change={"scores - largest": "scores - 1000"},
)  # fmt: skip

mistake(
    "softmax_stable", "adds-the-maximum", "The maximum is added, not subtracted",
    hint="Which number should the largest score of a slice become?",
    breaks=("large",),
    change={"scores - largest": "scores + largest"},
)  # fmt: skip

mistake(
    "softmax_stable", "scores-over-maximum", "The scores are divided by the largest of them",
    hint="Does a softmax stay the same when its scores are divided?",
    change={"scores - largest": "scores / largest"},
)  # fmt: skip

mistake(
    "softmax_stable", "standardised", "The spread of the scores is divided out as well",
    hint="Does a softmax stay the same when its scores are divided?",
    change={"scores - largest": "(scores - largest) / scores.std(dim=dim, keepdim=True)"},
)  # fmt: skip

mistake(
    "softmax_stable", "shift-above-only", "The exponentials are shifted, but not their sum",
    hint="Does the shift cancel if only one half of the fraction has it?",
    change={"totals = positive.sum(": "totals = torch.exp(scores).sum("},
)  # fmt: skip

common_mistakes("softmax_stable", "no-exp")

mistake(
    "softmax_stable", common="log-softmax",
    change={"return positive / totals": "return shifted - torch.log(totals)"},
)  # fmt: skip

mistake(
    "softmax_stable", "nan-replaced", "The overflow is papered over with zeros",
    hint="What should the largest score of a slice weigh: nothing?",
    breaks=("large",),
    change={
        "scores - largest": "scores",
        "return positive / totals": "return torch.nan_to_num(positive / totals)",
    },
)  # fmt: skip

mistake(
    "softmax_stable", "shifts-against-overflow-only",
    "The scores are shifted only where exp would overflow",
    hint="What is left of a slice whose scores all lie around -1000?",
    breaks=("large",),
    change={
        "shifted = scores - largest":
            "shifted = scores - largest if scores.max() > 80 else scores",
    },
)  # fmt: skip

mistake(
    "softmax_stable", "negative-is-last", "Every negative dim is taken for the last axis",
    hint="Which axis of three is dim=-2?",
    change={"largest = scores": "dim = dim if dim >= 0 else -1\n    largest = scores"},
)  # fmt: skip

mistake(
    "softmax_stable", "infinity-becomes-zero",
    "A score of minus infinity turns into an ordinary zero",
    hint="What weight should a score of minus infinity get?",
    breaks=("infinite",),
    change={"torch.exp(shifted)": "torch.exp(shifted.nan_to_num(neginf=0.0))"},
)  # fmt: skip

mistake(
    "softmax_stable", "infinity-becomes-minus-hundred",
    "A score of minus infinity turns into a low number",
    hint="What if the other scores of the slice lie around -500?",
    breaks=("infinite",),
    change={
        "largest = scores": "scores = scores.nan_to_num(neginf=-100.0)\n    largest = scores",
    },
)  # fmt: skip

mistake(
    "softmax_stable", "infinity-becomes-minus-nine-hundred",
    "A score of minus infinity turns into a low number",
    hint="What if the other scores of the slice lie lower still?",
    breaks=("infinite",),
    change={
        "largest = scores": "scores = scores.nan_to_num(neginf=-900.0)\n    largest = scores",
    },
)  # fmt: skip

mistake(
    "softmax_stable", "infinity-keeps-a-weight", "A score of minus infinity keeps a tiny weight",
    hint="Is exp(-80) zero?",
    breaks=("infinite",),
    change={"torch.exp(shifted)": "torch.exp(shifted.clamp(min=-80))"},
)  # fmt: skip


mistake(
    "softmax_stable", "log-of-zero", "A logarithm of zero spoils the gradient",
    hint="What is the slope of log at the weight of a hidden score?",
    breaks=("gradients",),
    change={
        "return positive / totals": "return torch.exp(torch.log(positive) - torch.log(totals))",
    },
)  # fmt: skip

mistake(
    "softmax_stable", common="changes-its-input",
    change={"shifted = scores - largest": "scores -= largest\n    shifted = scores"},
    breaks=("unchanged", "gradients"),
)  # fmt: skip

mistake(
    "softmax_stable", "changes-the-data", common="turned-in-place",
    change={"shifted = scores - largest": "scores.data -= largest.data\n    shifted = scores"},
    same_as={"changes-its-input": "only the gradient tells them apart"},
)  # fmt: skip

mistake(
    "softmax_stable", "infinities-overwritten",
    "The scores of minus infinity are overwritten in the caller's tensor",
    hint="What stands in the caller's tensor afterwards, where there was -inf?",
    breaks=("unchanged",),
    change={
        "largest = scores":
            "scores[scores == -torch.inf] = torch.finfo(scores.dtype).min\n    largest = scores",
    },
)  # fmt: skip

common_mistakes("softmax_stable", "no-gradient", "total-without-gradient")

mistake(
    "softmax_stable", common="float32-inside",
    change={
        "torch.exp(shifted)": "torch.exp(shifted.float())",
        "return positive / totals": "return (positive / totals).to(scores.dtype)",
    },
)  # fmt: skip

common_mistakes("softmax_stable", "returns-float64")


@mistake(
    "softmax_stable", "matrices-only", "Only matrices are turned the right way for dim",
    hint="What does dim=1 mean for a tensor with three axes?",
)  # fmt: skip
def stable_for_matrices(scores, dim=-1):
    rows = scores.transpose(0, -1) if dim == 0 else scores
    positive = torch.exp(rows - rows.amax(-1, keepdim=True))
    weights = positive / positive.sum(-1, keepdim=True)
    return weights.transpose(0, -1) if dim == 0 else weights


mistake(
    "softmax_stable", common="torch-softmax",
    change={"return positive / totals": "return torch.nn.functional.softmax(scores, dim=dim)"},
)  # fmt: skip


@accepted("softmax_stable", "max", "The values of max in place of amax, other names")
def stable_by_max(logits, axis=-1):
    top = torch.max(logits, axis, keepdim=True)[0]
    e = (logits - top).exp()
    return e / e.sum(axis, keepdim=True)


@accepted(
    "softmax_stable", "maximum-without-gradient", "The maximum is detached, for it cancels anyway"
)
def stable_by_detached_maximum(x, dim=-1):
    with torch.no_grad():
        top = x.amax(dim, keepdim=True)
    e = torch.exp(x - top)
    return e / torch.sum(e, dim, keepdim=True)


@accepted("softmax_stable", "logsumexp", "Torch's logsumexp, which is allowed here")
def stable_by_logsumexp(x, dim=-1):
    return torch.exp(x - torch.logsumexp(x, dim=dim, keepdim=True))


@accepted("softmax_stable", "own-logsumexp", "A logsumexp of its own, with max(x) added back")
def stable_by_own_logsumexp(x, dim=-1):
    top = x.amax(dim, keepdim=True)
    return (x - (top + (x - top).exp().sum(dim, keepdim=True).log())).exp()


@accepted(
    "softmax_stable", "other-bound", "A shift beyond the maximum, and a small number in the sum"
)
def stable_by_another_shift(x, dim=-1):
    e = (x - (x.amax(dim, keepdim=True) - 5)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-9)


@accepted("softmax_stable", "chain-of-logaddexp", "A sum of exponentials, score by score")
def softmax_by_logaddexp(scores, dim=-1):
    total, *others = scores.unbind(dim)
    for score in others:
        total = torch.logaddexp(total, score)
    return (scores - total.unsqueeze(dim)).exp()


@accepted("softmax_stable", "movedim", "The axis is moved to the end, and back")
def stable_by_movedim(x, dim=-1):
    x = x.movedim(dim, -1)
    e = torch.exp(x - x.max(-1, keepdim=True).values)
    return (e / e.sum(-1).unsqueeze(-1)).movedim(-1, dim)


@accepted("softmax_stable", "lowest-number", "The lowest number of the dtype for minus infinity")
def stable_by_finfo(x, dim=-1):
    x = x.masked_fill(x == float("-inf"), torch.finfo(x.dtype).min)
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


@accepted("softmax_stable", "unbind", "The entries of all slices as a list, and a running maximum")
def stable_by_unbind(x, dim=-1):
    parts = x.unbind(dim)
    top = parts[0]
    for part in parts[1:]:
        top = torch.maximum(top, part)
    exponentials = [(part - top).exp() for part in parts]
    return torch.stack([e / sum(exponentials) for e in exponentials], dim=dim)


@accepted("softmax_stable", "copy-in-place", "A copy is shifted in place, in float64")
def stable_in_place(scores, dim=-1):
    copy = scores.double()
    copy = copy.clone() if copy is scores else copy
    copy -= copy.detach().amax(dim, keepdim=True)
    e = copy.exp()
    return (e / e.sum(dim, keepdim=True)).to(scores.dtype)
