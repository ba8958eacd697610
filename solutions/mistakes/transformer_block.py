"""Known answers of unit 11: mistakes, and right answers in other forms."""

import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake

# --- layer_norm ----------------------------------------------------------------------------------

VARIANCE = "(centred * centred).mean(dim=-1, keepdim=True)"
LAYER_NORM = "centred / torch.sqrt(variance + eps) * gain + shift"

mistake(
    "layer_norm", "divided-by-one-less", "The variance is divided by d - 1, and not by d",
    hint="How many squares are there, and by which number is their sum divided?",
    change={VARIANCE: "x.var(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "layer_norm", "eps-outside-root", "eps is added after the root",
    hint="What stands under the root in the formula?",
    breaks=("eps",),
    change={"torch.sqrt(variance + eps)": "(torch.sqrt(variance) + eps)"},
)  # fmt: skip

mistake(
    "layer_norm", "no-eps", "eps is left out",
    hint="What is the variance of a row of equal numbers, and what do you divide by?",
    breaks=("eps", "constant"),
    change={"variance + eps": "variance"},
)  # fmt: skip

mistake(
    "layer_norm", "eps-of-another-size", "The default of eps is another one",
    hint="Which number is eps if the caller says nothing?",
    breaks=("eps",),
    change={"eps: float = 1e-5": "eps: float = 1e-6"},
)  # fmt: skip

mistake(
    "layer_norm", "eps-tiny", "The default of eps is another one",
    hint="Which number is eps if the caller says nothing?",
    breaks=("eps",),
    change={"eps: float = 1e-5": "eps: float = 1e-12"},
)  # fmt: skip

mistake(
    "layer_norm", "eps-ignored", "The caller's eps is ignored",
    hint="Where does the argument eps come in?",
    breaks=("eps",),
    change={"variance + eps": "variance + 1e-5"},
)  # fmt: skip

mistake(
    "layer_norm", "eps-as-least-variance", "eps is a lower limit of the variance, and never added",
    hint="What does a small variance become: eps, or eps and a little more?",
    breaks=("eps",),
    change={"variance + eps": "variance.clamp(min=eps)"},
)  # fmt: skip

mistake(
    "layer_norm", "eps-squared", "The square of eps is added",
    hint="What stands under the root in the formula?",
    breaks=("eps",),
    change={"variance + eps": "variance + eps**2"},
)  # fmt: skip

mistake(
    "layer_norm", "whole-tensor", "One mean and one variance are taken for all rows",
    hint="How many means are there, if there are three tokens?",
    change={
        "x.mean(dim=-1, keepdim=True)": "x.mean()",
        VARIANCE: "(centred * centred).mean()",
    },
)  # fmt: skip

mistake(
    "layer_norm", "over-tokens", "Each feature is normalised over the tokens, and not each token",
    hint="Which numbers belong together: those of one token, or those of one feature?",
    change={re.compile("dim=-1"): "dim=0"},
)  # fmt: skip

mistake(
    "layer_norm", "mean-not-subtracted", "The mean stays in",
    hint="What is the mean of a row that comes out, before gain and shift?",
    change={"x - x.mean(dim=-1, keepdim=True)": "x"},
)  # fmt: skip

mistake(
    "layer_norm", "squares-of-x", "The squares of x are averaged, with the mean still in it",
    hint="Of which numbers are the squares in the variance?",
    change={VARIANCE: "(x * x).mean(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "layer_norm", "no-root", "The row is divided by its variance, and not by the root",
    hint="What variance has a row that comes out, before gain and shift?",
    change={"torch.sqrt(variance + eps)": "(variance + eps)"},
)  # fmt: skip

mistake(
    "layer_norm", "multiplied", "The row is multiplied by the root",
    hint="Should a row with large numbers become larger or smaller?",
    change={"centred / torch": "centred * torch"},
)  # fmt: skip

mistake(
    "layer_norm", "mean-of-distances", "Distances are averaged, and not their squares",
    hint="What stands behind the Σ in the variance?",
    change={VARIANCE: "centred.abs().mean(dim=-1, keepdim=True) ** 2"},
)  # fmt: skip

mistake(
    "layer_norm", "summed", "The squares are summed up, and never divided",
    hint="By what is the sum of the squares divided?",
    change={VARIANCE: "(centred * centred).sum(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "layer_norm", "gain-left-out", "The gain is left out",
    hint="Which of your arguments is never used?",
    change={" * gain": ""},
)  # fmt: skip

mistake(
    "layer_norm", "shift-left-out", "The shift is left out",
    hint="Which of your arguments is never used?",
    change={" + shift": ""},
)  # fmt: skip

mistake(
    "layer_norm", "gain-and-shift-swapped", "Gain and shift have changed places",
    hint="Which of the two multiplies?",
    change={" * gain + shift": " * shift + gain"},
)  # fmt: skip

mistake(
    "layer_norm", "one-more-than-gain", "The row is multiplied by 1 + gain",
    hint="What does a gain of 1 do to a row?",
    change={" * gain": " * (1 + gain)"},
)  # fmt: skip

mistake(
    "layer_norm", "shift-first", "The shift is added first, and then multiplied by the gain",
    hint="Which comes first in the formula, the product or the sum?",
    change={LAYER_NORM: "(centred / torch.sqrt(variance + eps) + shift) * gain"},
)  # fmt: skip

mistake(
    "layer_norm", "shift-subtracted", "The shift is subtracted",
    hint="What should a row of equal numbers give?",
    change={" + shift": " - shift"},
)  # fmt: skip

mistake(
    "layer_norm", "gain-before-variance", "The gain is applied before the variance is taken",
    hint="Is the variance one of x, or one of x times gain?",
    change={
        "keepdim=True)  # (..., d)": "keepdim=True)\n    centred = centred * gain",
        " * gain +": " +",
    },
)  # fmt: skip

mistake(
    "layer_norm", common="no-keepdim",
    change={re.compile(", keepdim=True"): ""},
)  # fmt: skip

mistake(
    "layer_norm", "square-of-the-mean",
    "The square of the mean is taken from the mean of the squares, and float32 has too few digits",
    hint="At 1000, how far apart are two neighbouring float32 numbers of the size of x²?",
    breaks=("large",),
    change={
        VARIANCE: (
            "(x * x).mean(dim=-1, keepdim=True) - x.mean(dim=-1, keepdim=True) ** 2"
        ),
    },
)  # fmt: skip

mistake(
    "layer_norm", "constant-rows-kept", "A row of equal numbers comes back as it was",
    hint="What does the formula give where every number is the mean?",
    breaks=("constant",),
    change={LAYER_NORM: f"torch.where(variance == 0, x, {LAYER_NORM})"},
)  # fmt: skip

mistake(
    "layer_norm", "constant-rows-zero", "A row of equal numbers becomes zero",
    hint="What is added at the end, whatever the row?",
    breaks=("constant",),
    change={LAYER_NORM: f"({LAYER_NORM}) * (variance > 0)"},
)  # fmt: skip

mistake(
    "layer_norm", "matrices-only", "x must have two dimensions",
    hint="How many dimensions may stand in front of d?",
    breaks=("leading",),
    change={"    centred = x": "    _rows, _d = x.shape\n    centred = x"},
)  # fmt: skip

mistake(
    "layer_norm", "axis-counted-from-the-front",
    "The axis is counted from the front, and moves with a batch in front",
    hint="Which number has the axis of the features in a matrix, and in a batch of matrices?",
    breaks=("leading",),
    change={re.compile("dim=-1"): "dim=1"},
    same_as={"matrices-only": "both are right for matrices alone"},
)  # fmt: skip

mistake(
    "layer_norm", "statistics-returned-too", "Mean and variance are returned as well",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={LAYER_NORM: f"{LAYER_NORM}, variance"},
)  # fmt: skip

mistake(
    "layer_norm", "centred-in-place", "The mean is subtracted from the caller's tensor",
    hint="Does sub_ make a new tensor, or change the one that it belongs to?",
    breaks=("unchanged",),
    change={"centred = x - x.mean(dim=-1, keepdim=True)": (
        "centred = x.sub_(x.mean(dim=-1, keepdim=True))"
    )},
)  # fmt: skip

mistake(
    "layer_norm", "statistics-without-gradient", "No gradient flows through mean and variance",
    hint="Which of your lines use x, and does each have a gradient?",
    breaks=("gradients",),
    change={
        "x - x.mean(dim=-1, keepdim=True)": "x - x.mean(dim=-1, keepdim=True).detach()",
        "variance + eps": "variance.detach() + eps",
    },
)  # fmt: skip

mistake(
    "layer_norm", "variance-without-gradient", "No gradient flows through the variance",
    hint="Which of your lines use x, and does each have a gradient?",
    breaks=("gradients",),
    change={"variance + eps": "variance.detach() + eps"},
)  # fmt: skip

mistake(
    "layer_norm", "gain-never-learns", "No gradient reaches the gain",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"* gain": "* gain.data"},
)  # fmt: skip

mistake(
    "layer_norm", "torch-layer-norm", "Torch's own layer norm does the work",
    hint="Which lines would you write if that function did not exist?",
    breaks=("forbidden",),
    change={LAYER_NORM: "nn.functional.layer_norm(x, x.shape[-1:], gain, shift, eps)"},
)  # fmt: skip

mistake(
    "layer_norm", "torch-group-norm", "Torch's group norm does the work, with one group",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
    change={
        LAYER_NORM: (
            "nn.functional.group_norm(x.reshape(-1, x.shape[-1]), 1, gain, shift, eps)"
            ".reshape(x.shape)"
        ),
    },
)  # fmt: skip

mistake(
    "layer_norm", "torch-rms-norm", "Torch's RMS norm does half of the work",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
    change={
        LAYER_NORM: (
            "nn.functional.rms_norm(centred, centred.shape[-1:], gain, eps) + shift"
        ),
    },
)  # fmt: skip

mistake(
    "layer_norm", "mean-stays-on-top", "The mean is subtracted for the variance, and not on top",
    hint="What stands above the root in the formula: x, or x less its mean?",
    change={"centred / torch": "x / torch"},
)  # fmt: skip

mistake(
    "layer_norm", "rows-for-features", "Sums are divided by the number of rows, and not by d",
    hint="What are len(x) and x.shape[0]: the number of rows, or that of the features?",
    change={
        "x.mean(dim=-1, keepdim=True)": "x.sum(dim=-1, keepdim=True) / len(x)",
        VARIANCE: "(centred * centred).sum(dim=-1, keepdim=True) / len(x)",
    },
)  # fmt: skip

mistake(
    "layer_norm", "rows-for-features-in-the-variance",
    "The sum of the squares is divided by the number of rows, and not by d",
    hint="What are len(x) and x.shape[0]: the number of rows, or that of the features?",
    change={VARIANCE: "(centred * centred).sum(dim=-1, keepdim=True) / len(x)"},
)  # fmt: skip

mistake(
    "layer_norm", "features-counted-from-the-front",
    "The size of the axis of features is looked up from the front",
    hint="Which number has the axis of the features in a vector, and in a batch of matrices?",
    breaks=("leading",),
    change={
        "x.mean(dim=-1, keepdim=True)": "x.sum(dim=-1, keepdim=True) / x.shape[1]",
        VARIANCE: "(centred * centred).sum(dim=-1, keepdim=True) / x.shape[1]",
    },
)  # fmt: skip


common_mistakes(
    "layer_norm", "all-zeros", "nothing-returned", "squeezed", "no-gradient", "float32-inside",
    "returns-float32", "returns-float64",
)  # fmt: skip


@accepted("layer_norm", "var-mean", "Variance and mean from torch, divided by d")
def norm_by_var_mean(x, weight, bias, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return weight * ((x - mean) * torch.rsqrt(var + eps)) + bias


@accepted("layer_norm", "std-squared", "The standard deviation, squared again")
def norm_by_std(x, gain, shift, eps=1e-5):
    mu = x.mean(-1).unsqueeze(-1)
    sigma = x.std(-1, unbiased=False).unsqueeze(-1)
    return (x - mu) / (sigma**2 + eps) ** 0.5 * gain + shift


@accepted("layer_norm", "sums-by-products", "Sums as products with a column of ones")
def norm_by_products(x, gain, shift, eps=1e-5):
    ones = torch.ones(x.shape[-1], 1, dtype=x.dtype) / x.shape[-1]
    centred = x - x @ ones
    return torch.addcmul(shift, gain, centred / torch.sqrt(centred.square() @ ones + eps))


@accepted("layer_norm", "row-by-row", "A loop over the rows, one at a time")
def norm_row_by_row(x, gain, shift, eps=1e-5):
    done = []
    for row in x.reshape(-1, x.shape[-1]):
        centred = row - sum(row) / len(row)
        length = torch.dot(centred, centred) / len(row) + eps
        done.append(centred * length**-0.5 * gain + shift)
    return torch.stack(done).view(x.shape)


@accepted("layer_norm", "length", "The length of the centred row, and hypot")
def norm_by_length(x, gamma, beta, eps=1e-5):
    print("rows of", x.size(-1))
    centred = torch.sub(x, torch.mean(x, -1, True))
    spread = torch.linalg.vector_norm(centred, dim=-1, keepdim=True) / math.sqrt(x.size(-1))
    return centred / torch.hypot(spread, torch.full_like(spread, eps**0.5)) * gamma + beta


@accepted("layer_norm", "float64-inside", "In float64 inside, and back")
def norm_in_float64(x, gain, shift, eps=1e-5):
    y = x.double()
    mean_of_squares, mean = (y * y).mean(-1, keepdim=True), y.mean(-1, keepdim=True)
    y = (y - mean) / (mean_of_squares - mean * mean + eps).sqrt()
    return (y * gain.double() + shift.double()).to(x.dtype)


@accepted("layer_norm", "features-first", "The features are brought to the front")
def norm_features_first(x, gain, shift, eps=1e-5):
    columns = x.movedim(-1, 0)
    columns = columns - columns.mean(0)
    columns = columns / (columns.pow(2).mean(0) + eps).sqrt()
    return columns.movedim(0, -1).mul(gain).add(shift)


@accepted("layer_norm", "einsum", "Letters for dimensions, and its own tensors in place")
def norm_in_letters(x, gain, shift, eps=1e-5):
    d = x.shape[-1]
    out = x - torch.einsum("...d->...", x).div(d)[..., None]
    var = torch.einsum("...d,...d->...", out, out) / d
    out = out * (var + eps).rsqrt()[..., None] * gain
    out += shift
    return out


# --- rms_norm ------------------------------------------------------------------------------------

SQUARES = "(x * x).mean(dim=-1, keepdim=True)"
RMS_NORM = "x / torch.sqrt(mean_square + eps) * gain"

mistake(
    "rms_norm", "mean-subtracted", "The mean is subtracted first, as in a layer norm",
    hint="Which steps of layer_norm are left out here?",
    change={"    mean_square": "    x = x - x.mean(dim=-1, keepdim=True)\n    mean_square"},
)  # fmt: skip

mistake(
    "rms_norm", "divided-by-spread", "The row is divided by its spread about the mean",
    hint="Of which numbers are the squares in the formula: of x, or of x less its mean?",
    change={SQUARES: "x.var(dim=-1, keepdim=True, unbiased=False)"},
)  # fmt: skip

mistake(
    "rms_norm", "no-root", "The row is divided by the mean square, and not by its root",
    hint="If all numbers of a row are doubled, what should change in the result?",
    change={"torch.sqrt(mean_square + eps)": "(mean_square + eps)"},
)  # fmt: skip

mistake(
    "rms_norm", "divided-by-length", "The row is divided by its length: squares are summed up",
    hint="What is the M in RMS?",
    change={SQUARES: "(x * x).sum(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "rms_norm", "mean-size", "The mean size is taken, without squares",
    hint="What is the S in RMS?",
    change={SQUARES: "x.abs().mean(dim=-1, keepdim=True) ** 2"},
)  # fmt: skip

mistake(
    "rms_norm", "square-of-the-mean", "The mean is squared, and not the numbers",
    hint="Which comes first, the square or the mean?",
    change={SQUARES: "x.mean(dim=-1, keepdim=True) ** 2"},
)  # fmt: skip

mistake(
    "rms_norm", "divided-by-one-less", "The sum of squares is divided by d - 1",
    hint="How many squares are there, and by which number is their sum divided?",
    change={SQUARES: "(x * x).sum(dim=-1, keepdim=True) / (x.shape[-1] - 1)"},
)  # fmt: skip

mistake(
    "rms_norm", "eps-outside-root", "eps is added after the root",
    hint="What stands under the root in the formula?",
    breaks=("eps",),
    change={"torch.sqrt(mean_square + eps)": "(torch.sqrt(mean_square) + eps)"},
)  # fmt: skip

mistake(
    "rms_norm", "no-eps", "eps is left out",
    hint="What do you divide by in a row of zeros?",
    breaks=("eps", "zeros"),
    change={"mean_square + eps": "mean_square"},
)  # fmt: skip

mistake(
    "rms_norm", "eps-of-another-size", "The default of eps is another one",
    hint="Which number is eps if the caller says nothing?",
    breaks=("eps",),
    change={"eps: float = 1e-6": "eps: float = 1e-5"},
)  # fmt: skip

mistake(
    "rms_norm", "eps-tiny", "The default of eps is another one",
    hint="Which number is eps if the caller says nothing?",
    breaks=("eps",),
    change={"eps: float = 1e-6": "eps: float = 1e-8"},
)  # fmt: skip

mistake(
    "rms_norm", "eps-ignored", "The caller's eps is ignored",
    hint="Where does the argument eps come in?",
    breaks=("eps",),
    change={"mean_square + eps": "mean_square + 1e-6"},
)  # fmt: skip

mistake(
    "rms_norm", "eps-as-least-square", "eps is a lower limit, and never added",
    hint="What does a small mean square become: eps, or eps and a little more?",
    breaks=("eps",),
    change={"mean_square + eps": "mean_square.clamp(min=eps)"},
)  # fmt: skip

mistake(
    "rms_norm", "whole-tensor", "One mean is taken for all rows",
    hint="How many means are there, if there are three tokens?",
    change={SQUARES: "(x * x).mean()"},
)  # fmt: skip

mistake(
    "rms_norm", "over-tokens", "Each feature is normalised over the tokens, and not each token",
    hint="Which numbers belong together: those of one token, or those of one feature?",
    change={"dim=-1": "dim=0"},
)  # fmt: skip

mistake(
    "rms_norm", "one-more-than-gain", "The row is multiplied by 1 + gain",
    hint="What does a gain of 1 do to a row?",
    change={" * gain": " * (1 + gain)"},
)  # fmt: skip

mistake(
    "rms_norm", "gain-left-out", "The gain is left out",
    hint="Which of your arguments is never used?",
    change={" * gain": ""},
)  # fmt: skip

mistake(
    "rms_norm", "gain-added", "The gain is added",
    hint="What does a gain of 1 do to a row?",
    change={" * gain": " + gain"},
)  # fmt: skip

mistake(
    "rms_norm", "gain-first", "The gain is applied before the mean is taken",
    hint="Is the mean square one of x, or one of x times gain?",
    change={"    mean_square": "    x = x * gain\n    mean_square", "eps) * gain": "eps)"},
)  # fmt: skip

mistake(
    "rms_norm", "divided-by-gain", "The gain divides",
    hint="What does a gain of 2 do to a row?",
    change={" * gain": " / gain"},
)  # fmt: skip

mistake(
    "rms_norm", "multiplied", "The row is multiplied by its root mean square",
    hint="Should a row with large numbers become larger or smaller?",
    change={"x / torch": "x * torch"},
)  # fmt: skip

mistake(
    "rms_norm", common="no-keepdim",
    change={"mean(dim=-1, keepdim=True)": "mean(dim=-1)"},
)  # fmt: skip

mistake(
    "rms_norm", "rows-of-zeros-become-gain", "A row of zeros becomes the gain",
    hint="What is 0 divided by √eps?",
    breaks=("zeros",),
    change={RMS_NORM: f"torch.where(mean_square == 0, gain, {RMS_NORM})"},
)  # fmt: skip

mistake(
    "rms_norm", "matrices-only", "x must have two dimensions",
    hint="How many dimensions may stand in front of d?",
    breaks=("leading",),
    change={"    mean_square": "    _rows, _d = x.shape\n    mean_square"},
)  # fmt: skip

mistake(
    "rms_norm", "axis-counted-from-the-front",
    "The axis is counted from the front, and moves with a batch in front",
    hint="Which number has the axis of the features in a matrix, and in a batch of matrices?",
    breaks=("leading",),
    change={"dim=-1": "dim=1"},
    same_as={"matrices-only": "both are right for matrices alone"},
)  # fmt: skip

mistake(
    "rms_norm", "divided-in-place", "The caller's tensor is divided in place",
    hint="Does div_ make a new tensor, or change the one that it belongs to?",
    breaks=("unchanged", "gradients"),
    change={"x / torch.sqrt(mean_square + eps)": "x.div_(torch.sqrt(mean_square + eps))"},
)  # fmt: skip

mistake(
    "rms_norm", "changed-without-gradient",
    "Where no gradient is asked for, the caller's rows are divided in place",
    hint="Who else may still need that tensor, even if no gradient does?",
    breaks=("unchanged",),
    change={
        "    return x": (
            "    if not x.requires_grad:\n"
            "        return x.mul_(torch.rsqrt(mean_square + eps)) * gain\n"
            "    return x"
        ),
    },
)  # fmt: skip

mistake(
    "rms_norm", "root-without-gradient", "No gradient flows through the root mean square",
    hint="Which of your lines use x, and does each have a gradient?",
    breaks=("gradients",),
    change={"mean_square + eps": "mean_square.detach() + eps"},
)  # fmt: skip

mistake(
    "rms_norm", "gain-never-learns", "No gradient reaches the gain",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"* gain": "* gain.data"},
)  # fmt: skip

mistake(
    "rms_norm", "as-in-llama", "The row passes through float32, as in Llama's code",
    hint="Llama computes in 16 bits. What does .float() do to a float64?",
    breaks=("dtype",),
    change={
        "    mean_square": "    dtype, x = x.dtype, x.float()\n    mean_square",
        RMS_NORM: "(x / torch.sqrt(mean_square + eps)).to(dtype) * gain",
    },
)  # fmt: skip

# The same by other roundings: with rsqrt, with the gain in float32, or in the statistics alone.

AS_IN_LLAMA = "The row passes through float32, as in Llama's code"
SIXTEEN_BITS = "Llama computes in 16 bits. What does .float() do to a float64?"
LENGTH = "x.norm(dim=-1, keepdim=True)"
IN_FLOAT32 = "    dtype, x = x.dtype, x.float()\n    mean_square"

for slug, result in (
    ("rsqrt", "(x * torch.rsqrt(mean_square + eps)).to(dtype) * gain"),
    ("gain", "(x / torch.sqrt(mean_square + eps) * gain.float()).to(dtype)"),
    ("rsqrt-and-gain", "(x * torch.rsqrt(mean_square + eps) * gain.float()).to(dtype)"),
    ("gain-first", "(gain.float() * x * torch.rsqrt(mean_square + eps)).to(dtype)"),
    ("power", "(x * (mean_square + eps) ** -0.5).to(dtype) * gain"),
    ("reciprocal", "(x * (1 / torch.sqrt(mean_square + eps))).to(dtype) * gain"),
    ("reciprocal-and-gain", "(x * (1 / torch.sqrt(mean_square + eps)) * gain.float()).to(dtype)"),
    ("length", f"(x / torch.sqrt(({LENGTH} / x.shape[-1] ** 0.5) ** 2 + eps)).to(dtype) * gain"),
):
    mistake(
        "rms_norm", f"as-in-llama-with-{slug}", AS_IN_LLAMA, hint=SIXTEEN_BITS,
        breaks=("dtype",), change={"    mean_square": IN_FLOAT32, RMS_NORM: result},
    )  # fmt: skip

for slug, square, result in (
    ("divided", "x.float().square()", "x / torch.sqrt(mean_square + eps).to(x) * gain"),
    ("divided-before", "x.float().square()", "(x / torch.sqrt(mean_square + eps)).to(x) * gain"),
    ("rsqrt", "x.float().square()", "x * torch.rsqrt(mean_square + eps).to(x) * gain"),
    ("sums", "(x * x).float()", "x / torch.sqrt(mean_square + eps).to(x) * gain"),
    ("sums-and-rsqrt", "(x * x).float()", "x * torch.rsqrt(mean_square + eps).to(x) * gain"),
):
    mistake(
        "rms_norm", f"statistics-in-float32-{slug}", "The mean square is computed in float32",
        hint="How many digits of a float64 are left after a visit to float32?",
        breaks=("dtype",),
        change={SQUARES: f"{square}.mean(dim=-1, keepdim=True)", RMS_NORM: result},
    )  # fmt: skip

mistake(
    "rms_norm", common="float32-inside",
    change={RMS_NORM: f"({RMS_NORM}).float().to(x.dtype)"},
)  # fmt: skip

mistake(
    "rms_norm", "gain-through-float32", common="float32-inside",
    change={RMS_NORM: RMS_NORM.replace("gain", "gain.float()")},
)  # fmt: skip

mistake(
    "rms_norm", "mean-subtracted-on-top", "The mean is subtracted on top, and stays in the squares",
    hint="Which steps of layer_norm are left out here?",
    change={"return x /": "return (x - x.mean(dim=-1, keepdim=True)) /"},
)  # fmt: skip

mistake(
    "rms_norm", "divided-by-unbiased-spread",
    "The row is divided by its standard deviation, with d - 1 for d",
    hint="Of which numbers are the squares in the formula: of x, or of x less its mean?",
    change={SQUARES: "x.var(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "rms_norm", "rows-for-features", "The sum is divided by the number of rows, and not by d",
    hint="What are len(x) and x.shape[0]: the number of rows, or that of the features?",
    change={SQUARES: "(x * x).sum(dim=-1, keepdim=True) / len(x)"},
)  # fmt: skip

mistake(
    "rms_norm", "features-counted-from-the-front",
    "The size of the axis of features is looked up from the front",
    hint="Which number has the axis of the features in a vector, and in a batch of matrices?",
    breaks=("leading",),
    change={SQUARES: "(x * x).sum(dim=-1, keepdim=True) / x.shape[1]"},
)  # fmt: skip


mistake(
    "rms_norm", "torch-rms-norm", "Torch's own RMS norm does the work",
    hint="Which lines would you write if that function did not exist?",
    breaks=("forbidden",),
    change={RMS_NORM: "torch.nn.functional.rms_norm(x, x.shape[-1:], gain, eps)"},
)  # fmt: skip

mistake(
    "rms_norm", "torch-normalize", "Torch's normalize does the work",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
    change={
        RMS_NORM: (
            "nn.functional.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * gain "
            "* torch.sqrt(mean_square / (mean_square + eps))"
        ),
    },
)  # fmt: skip

common_mistakes(
    "rms_norm", "all-zeros", "nothing-returned", "squeezed", "no-gradient", "returns-float32",
    "returns-float64",
)  # fmt: skip


@accepted("rms_norm", "rsqrt", "One over the root, and powers")
def rms_by_rsqrt(x, weight, epsilon=1e-6):
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon))


@accepted("rms_norm", "length", "The length of the row, over √d")
def rms_by_length(x, gain, eps=1e-6):
    squared = torch.linalg.vector_norm(x, dim=-1) ** 2 / x.shape[-1]
    return gain * x / (squared + eps).sqrt()[..., None]


@accepted("rms_norm", "row-by-row", "A loop over the rows, with dot products")
def rms_row_by_row(x, g, eps=1e-6):
    flat = x.reshape(-1, x.size(-1))
    rows = [row / (row @ row / row.numel() + eps) ** 0.5 for row in flat]
    return torch.stack(rows).reshape(x.shape) * g


@accepted("rms_norm", "einsum", "Letters for dimensions, and a division of the gain")
def rms_in_letters(x, gain, eps=1e-6):
    square = torch.einsum("...d,...d->...", x, x) / x.shape[-1] + eps
    return torch.einsum("...d,d,...->...d", x, gain, square**-0.5)


@accepted("rms_norm", "float64-inside", "In float64 inside, and back")
def rms_in_float64(x, gain, eps=1e-6):
    y = x.to(torch.float64)
    y = y / torch.sqrt(torch.mean(torch.square(y), dim=-1, keepdim=True) + eps)
    return y.to(x.dtype) * gain


@accepted("rms_norm", "one-number-longer", "eps as one number more in the row, and its length")
def rms_with_a_longer_row(x, gain, eps=1e-6):
    d = x.shape[-1]
    root = torch.full_like(x[..., :1], (eps * d) ** 0.5)
    length = torch.cat([x, root], dim=-1).norm(dim=-1, keepdim=True)
    return x * (d**0.5 / length) * gain


@accepted("rms_norm", "features-first", "The features are brought to the front")
def rms_features_first(x, gain, eps=1e-6):
    columns = x.movedim(-1, 0)
    root = columns.square().mean(0).add(eps).sqrt()
    return torch.div(columns, root).movedim(0, -1).mul(gain)


# --- gelu ----------------------------------------------------------------------------------------

SMALLER = "(1 + torch.erf(x / math.sqrt(2))) / 2"
TANH = "(1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2"

mistake(
    "gelu", "tanh", "The approximation by tanh stands in for Φ",
    hint="Which of torch's functions is in the formula?",
    breaks=("gelu",),
    change={SMALLER: TANH},
)  # fmt: skip

mistake(
    "gelu", "tanh-by-exponentials",
    "An approximation by tanh, whose exponentials overflow for large numbers",
    hint="What is exp(2000), and what is inf / inf?",
    breaks=("gelu", "large"),
    change={
        "    return x * smaller": (
            "    u = torch.exp(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))\n"
            "    return x * (1 + (u - 1) / (u + 1)) / 2"
        ),
    },
)  # fmt: skip

mistake(
    "gelu", "tanh-with-another-number", "A digit of the approximation by tanh is missing",
    hint="Look the number up that multiplies x³; or use erf, which has none.",
    change={SMALLER: TANH.replace("0.044715", "0.44715")},
)  # fmt: skip

mistake(
    "gelu", "tanh-without-cube", "The approximation by tanh lacks the cube",
    hint="How large is the term with x³ at 2? Or use erf, which has none.",
    change={SMALLER: "(1 + torch.tanh(math.sqrt(2 / math.pi) * x)) / 2"},
)  # fmt: skip

mistake(
    "gelu", "sigmoid-of-1.702-x", "A sigmoid of 1.702 x stands in for Φ",
    hint="Which of torch's functions is in the formula?",
    change={SMALLER: "torch.sigmoid(1.702 * x)"},
)  # fmt: skip

mistake(
    "gelu", "silu", "This is SiLU: the number times its sigmoid",
    hint="By which chance is x multiplied, and is that a sigmoid?",
    change={SMALLER: "torch.sigmoid(x)"},
)  # fmt: skip

mistake(
    "gelu", "relu", "This is ReLU",
    hint="What is gelu(-1)?",
    change={"x * smaller": "x.clamp(min=0)"},
)  # fmt: skip

mistake(
    "gelu", "not-halved", "1 + erf is never halved",
    hint="What is Φ(100), and what do you have there?",
    change={f"{SMALLER}": "1 + torch.erf(x / math.sqrt(2))"},
)  # fmt: skip

mistake(
    "gelu", "one-left-out", "The 1 is missing beside erf",
    hint="What is Φ(0), and what do you have there?",
    change={"(1 + torch.erf(x / math.sqrt(2)))": "torch.erf(x / math.sqrt(2))"},
)  # fmt: skip

mistake(
    "gelu", "brackets-forgotten", "Only erf is halved, and not the 1",
    hint="What does Python divide by 2, without brackets around the sum?",
    change={SMALLER: "1 + torch.erf(x / math.sqrt(2)) / 2"},
)  # fmt: skip

mistake(
    "gelu", "root-of-two-forgotten", "erf sees x, and not x over √2",
    hint="What goes into erf?",
    change={"x / math.sqrt(2)": "x"},
)  # fmt: skip

mistake(
    "gelu", "two-for-its-root", "x is divided by 2, and not by √2",
    hint="What goes into erf?",
    change={"math.sqrt(2)": "2"},
)  # fmt: skip

mistake(
    "gelu", "times-root-of-two", "x is multiplied by √2",
    hint="What goes into erf?",
    change={"x / math.sqrt(2)": "x * math.sqrt(2)"},
)  # fmt: skip

mistake(
    "gelu", "chance-returned", "Φ is returned, and not x · Φ",
    hint="What is gelu(100): 1, or 100?",
    change={"x * smaller": "smaller"},
)  # fmt: skip

mistake(
    "gelu", "density", "x is multiplied by the density, and not by the chance",
    hint="How large is Φ for large x: near 0, or near 1?",
    change={SMALLER: "torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)"},
)  # fmt: skip

mistake(
    "gelu", "wrong-side", "x is multiplied by the chance that a normal number is larger",
    hint="Which numbers should pass: the large ones, or the negative ones?",
    change={"1 + torch.erf": "1 - torch.erf"},
)  # fmt: skip

mistake(
    "gelu", "twice", "x is multiplied by Φ twice",
    hint="How often does Φ stand in the formula?",
    change={"x * smaller": "x * smaller * smaller"},
)  # fmt: skip

mistake(
    "gelu", "cut-series", "Φ is the beginning of a series, and right near 0 only",
    hint="What is Φ(5), and what is your polynomial there?",
    change={SMALLER: "0.5 + (x - x**3 / 6) / math.sqrt(2 * math.pi)"},
)  # fmt: skip

mistake(
    "gelu", "straight-from-four", "Beyond ±4 the GELU is a straight line",
    hint="What is Φ(4), to five digits?",
    breaks=("gelu",),
    change={"x * smaller": "torch.where(x.abs() < 4, x * smaller, x.clamp(min=0))"},
)  # fmt: skip

mistake(
    "gelu", "clamped", "Numbers are cut off at 10",
    hint="What is gelu(1000)?",
    breaks=("large",),
    change={"x * smaller": "x.clamp(-10, 10) * smaller"},
)  # fmt: skip

mistake(
    "gelu", "matrices-only", "x must have two dimensions",
    hint="How many dimensions may x have?",
    breaks=("leading",),
    change={"    smaller =": "    _rows, _columns = x.shape\n    smaller ="},
)  # fmt: skip


@mistake(
    "gelu", "rows-in-a-loop", "A loop over the rows needs at least one dimension",
    hint="How many rows has a tensor with a single number, of shape ()?",
    breaks=("leading",),
    same_as={"matrices-only": "both fail for a single number"},
)  # fmt: skip
def gelu_row_by_row(x):
    return torch.stack([row * (1 + torch.erf(row / math.sqrt(2))) / 2 for row in x])


common_mistakes("gelu", "no-gradient", "float32-inside")


@mistake(
    "gelu", "python-numbers", "Python numbers are computed one by one, and no gradient is left",
    hint="Does your result have a grad_fn?",
    breaks=("gradients",),
    same_as={"no-gradient": "both have no gradient at all"},
)  # fmt: skip
def gelu_of_python_numbers(x):
    numbers = [n * (1 + math.erf(n / math.sqrt(2))) / 2 for n in x.flatten().tolist()]
    return torch.tensor(numbers, dtype=x.dtype).reshape(x.shape)


mistake(
    "gelu", "chance-without-gradient", "No gradient flows through Φ",
    hint="The derivative of a product has two terms: which one is missing?",
    breaks=("gradients",),
    change={"x * smaller": "x * smaller.detach()"},
)  # fmt: skip

mistake(
    "gelu", "multiplied-in-place", "The caller's tensor is multiplied in place",
    hint="Does mul_ make a new tensor, or change the one that it belongs to?",
    breaks=("unchanged",),
    change={"x * smaller": "x.mul_(smaller)"},
)  # fmt: skip

mistake(
    "gelu", "chance-in-float32", "Φ is computed in float32",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change={"torch.erf(x / math.sqrt(2))": "torch.erf((x / math.sqrt(2)).float()).to(x.dtype)"},
    same_as={"float32-inside": "both lose digits"},
)  # fmt: skip

mistake(
    "gelu", "root-in-float32", "The root of 2 is a tensor in float32",
    hint="How many digits of a root has a new tensor, unless you pass a dtype?",
    breaks=("dtype",),
    change={"math.sqrt(2)": "torch.sqrt(torch.tensor(2.0))"},
    same_as={"float32-inside": "both lose digits"},
)  # fmt: skip

mistake(
    "gelu", "torch-gelu", "Torch's own GELU does the work",
    hint="Which lines would you write if that function did not exist?",
    breaks=("forbidden",),
    change={"x * smaller": "nn.functional.gelu(x)"},
)  # fmt: skip

common_mistakes(
    "gelu", "all-zeros", "nothing-returned", "squeezed",
    "returns-float32", "returns-float64",
)  # fmt: skip


@accepted("gelu", "ndtr", "Torch's distribution function")
def gelu_by_ndtr(x):
    return torch.special.ndtr(x) * x


@accepted("gelu", "erfc", "erfc of -x")
def gelu_by_erfc(x):
    return 0.5 * x * torch.erfc(-x * 2**-0.5)


@accepted("gelu", "normal", "The distribution as an object")
def gelu_by_distribution(x):
    normal = torch.distributions.Normal(torch.zeros_like(x), torch.ones_like(x))
    return x * normal.cdf(x)


@accepted("gelu", "relu-and-the-rest", "What passes, less what a ReLU lets through too much")
def gelu_by_relu(x):
    size = abs(x)
    return torch.where(x > 0, x, 0) - size * torch.erfc(size / math.sqrt(2)) / 2


@accepted("gelu", "float64-inside", "In float64 inside, and back, with a print")
def gelu_in_float64(inputs):
    print(inputs.dtype)
    wide = inputs.double()
    return (wide / 2 + wide / 2 * torch.special.erf(wide * math.sqrt(0.5))).to(inputs.dtype)


@accepted("gelu", "log-ndtr", "Through the logarithm of the chance")
def gelu_by_log_ndtr(x):
    return x * torch.special.log_ndtr(x).exp()


# --- FeedForward ---------------------------------------------------------------------------------

UP, DOWN = "self.up = nn.Linear(d_model, d_hidden)", "self.down = nn.Linear(d_hidden, d_model)"

mistake(
    "FeedForward", "no-activation", "Nothing stands between the two layers",
    hint="What are two linear layers without anything between them?",
    change={"gelu(self.up(x))": "self.up(x)"},
)  # fmt: skip

mistake(
    "FeedForward", "relu", "A ReLU stands between the layers",
    hint="Which function does the formula ask for?",
    change={"gelu(self.up(x))": "torch.relu(self.up(x))"},
)  # fmt: skip

mistake(
    "FeedForward", "silu", "A SiLU stands between the layers",
    hint="Which function does the formula ask for?",
    change={"gelu(self.up(x))": "nn.functional.silu(self.up(x))"},
)  # fmt: skip

mistake(
    "FeedForward", "tanh", "The approximation by tanh stands in for the GELU",
    hint="What is the default of nn.GELU's `approximate`, and what did you pass?",
    breaks=("gelu",),
    change={"gelu(self.up(x))": 'nn.functional.gelu(self.up(x), approximate="tanh")'},
)  # fmt: skip

mistake(
    "FeedForward", "sigmoid-of-1.702-x", "A sigmoid of 1.702 x stands in for the GELU's Φ",
    hint="Which function does the formula ask for?",
    change={"gelu(self.up(x))": "self.up(x) * torch.sigmoid(1.702 * self.up(x))"},
)  # fmt: skip

mistake(
    "FeedForward", "gelu-last", "The GELU comes after the second layer",
    hint="Between which two steps does the GELU stand?",
    change={"gelu(self.up(x))": "self.up(x)", "self.down(hidden)": "gelu(self.down(hidden))"},
)  # fmt: skip

mistake(
    "FeedForward", "gelu-after-both", "A GELU comes after the second layer, too",
    hint="How often does the formula have a GELU?",
    change={"self.down(hidden)": "gelu(self.down(hidden))"},
)  # fmt: skip

mistake(
    "FeedForward", "gelu-first", "The GELU comes before the first layer",
    hint="Between which two steps does the GELU stand?",
    change={"gelu(self.up(x))": "self.up(gelu(x))"},
)  # fmt: skip

mistake(
    "FeedForward", "without-biases", "No layer has a bias",
    hint="What does nn.Linear do when you say nothing about the bias?",
    breaks=("bias",),
    change={UP: f"{UP[:-1]}, bias=False)", DOWN: f"{DOWN[:-1]}, bias=False)"},
)  # fmt: skip

mistake(
    "FeedForward", "first-layer-without-bias", "The first layer has no bias",
    hint="Which of the two layers has a bias?",
    breaks=("bias",),
    change={UP: f"{UP[:-1]}, bias=False)"},
)  # fmt: skip

mistake(
    "FeedForward", "last-layer-without-bias", "The second layer has no bias",
    hint="Which of the two layers has a bias?",
    breaks=("bias",),
    change={DOWN: f"{DOWN[:-1]}, bias=False)"},
)  # fmt: skip

mistake(
    "FeedForward", "learned-scale", "A number is learned that nobody asked for",
    hint="What does list(layer.named_parameters()) show?",
    breaks=("bias",),
    change={
        DOWN: f"{DOWN}\n        self.scale = nn.Parameter(torch.ones(d_model))",
        "self.down(hidden)": "self.down(hidden) * self.scale",
    },
)  # fmt: skip

mistake(
    "FeedForward", "input-added", "x is added at the end",
    hint="Where is x added: in this layer, or in the block around it?",
    change={"self.down(hidden)": "x + self.down(hidden)"},
)  # fmt: skip

mistake(
    "FeedForward", "normalised-first", "The tokens are normalised first",
    hint="Is there a norm in the formula?",
    change={
        "self.up(x)": "self.up(layer_norm(x, torch.ones(x.shape[-1]), torch.zeros(x.shape[-1])))",
    },
)  # fmt: skip

for rate in (0.05, 0.1, 0.2, 0.3, 0.5):
    inner = f"nn.functional.dropout(hidden, {rate}, self.training)"
    for place, result in (
        ("", f"nn.functional.dropout(self.down(hidden), {rate}, self.training)"),
        ("-between", f"self.down({inner})"),
        ("-twice", f"nn.functional.dropout(self.down({inner}), {rate}, self.training)"),
    ):
        mistake(
            "FeedForward", f"dropout{place}-{rate}", "Some numbers are dropped while training",
            hint="Is there dropout in the formula?",
            change={"self.down(hidden)": result},
        )  # fmt: skip
    raised = f"nn.functional.dropout(self.up(x), {rate}, self.training)"
    mistake(
        "FeedForward", f"dropout-first-{rate}", "Some numbers are dropped while training",
        hint="Is there dropout in the formula?",
        change={"gelu(self.up(x))": f"gelu({raised})"},
    )  # fmt: skip

mistake(
    "FeedForward", "four-times-as-wide", "The hidden layer is 4 · d_model wide, whatever was asked",
    hint="Where does d_hidden come in?",
    change={
        "d_model, d_hidden)": "d_model, 4 * d_model)",
        "d_hidden, d_model)": "4 * d_model, d_model)",
    },
)  # fmt: skip

mistake(
    "FeedForward", "one-layer-only", "The second layer is never used",
    hint="Which of your layers does forward call?",
    breaks=("returns",),
    change={"self.down(hidden)": "hidden"},
)  # fmt: skip

mistake(
    "FeedForward", "layers-the-wrong-way", "The layers take what they should give",
    hint="In which order does nn.Linear want its two sizes?",
    change={
        UP: "self.up = nn.Linear(d_hidden, d_model)",
        DOWN: "self.down = nn.Linear(d_model, d_hidden)",
    },
)  # fmt: skip

mistake(
    "FeedForward", "last-layer-the-wrong-way", "The second layer takes what it should give",
    hint="In which order does nn.Linear want its two sizes?",
    change={DOWN: "self.down = nn.Linear(d_model, d_hidden)"},
)  # fmt: skip

mistake(
    "FeedForward", "mixed-with-the-mean", "Every token gets the mean of all tokens",
    hint="What does a token know of its neighbours here?",
    change={"self.up(x)": "self.up(x.mean(dim=1, keepdim=True).expand_as(x))"},
)  # fmt: skip

mistake(
    "FeedForward", "softmax", "A softmax stands between the layers",
    hint="Which function does the formula ask for?",
    change={"gelu(self.up(x))": "torch.softmax(self.up(x), dim=-1)"},
)  # fmt: skip

mistake(
    "FeedForward", "one-matrix-for-both", "The second layer is the first one, turned around",
    hint="How many matrices are learned?",
    change={
        DOWN: "self.bias = nn.Parameter(torch.zeros(d_model))",
        "self.down(hidden)": "hidden @ self.up.weight + self.bias",
    },
)  # fmt: skip

mistake(
    "FeedForward", common="plain-tensors",
    change={
        UP: "self.up = torch.randn(d_model, d_hidden)",
        DOWN: "self.down = torch.randn(d_hidden, d_model)",
        "self.up(x)": "x @ self.up",
        "self.down(hidden)": "hidden @ self.down",
    },
)  # fmt: skip

mistake(
    "FeedForward", common="python-list",
    change={
        UP: "self.layers = [nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)]",
        DOWN: "pass",
        "self.up(x)": "self.layers[0](x)",
        "self.down(hidden)": "self.layers[1](hidden)",
    },
)  # fmt: skip

mistake(
    "FeedForward", common="made-in-forward",
    change={
        DOWN: "self.d_model = d_model",
        "self.down(hidden)": "nn.Linear(hidden.shape[-1], self.d_model)(hidden)",
    },
    same_as={"plain-tensors": "nothing can be adopted, so no result is ever compared"},
)  # fmt: skip

mistake(
    "FeedForward", common="float32-hard-coded",
    change={"gelu(self.up(x))": "gelu(self.up(x).float()).to(x.dtype)"},
)  # fmt: skip

mistake(
    "FeedForward", "root-in-float32", "The root of 2 in the GELU is a tensor in float32",
    hint="How many digits of a root has a new tensor, unless you pass a dtype?",
    breaks=("dtype",),
    change={
        "hidden = gelu(self.up(x))": (
            "wide = self.up(x)\n"
            "        hidden = 0.5 * wide * (1 + torch.erf(wide / torch.sqrt(torch.tensor(2.0))))"
        ),
    },
    same_as={"float32-hard-coded": "both lose digits"},
)  # fmt: skip

mistake(
    "FeedForward", common="changes-its-input",
    change={"return self.down(hidden)": (
        "out = self.down(hidden)\n"
        "        if not x.requires_grad:\n"
        "            x += out.detach()\n"
        "        return out"
    )},
)  # fmt: skip

common_mistakes("FeedForward", "no-gradient")

mistake(
    "FeedForward", "hidden-without-gradient", "The first layer gets no gradient, and never learns",
    hint="Which parameters have a .grad after backward?",
    breaks=("gradients",),
    same_as={"no-gradient": "the input gets none either way"},
    change={"self.down(hidden)": "self.down(hidden.detach())"},
)  # fmt: skip

mistake(
    "FeedForward", common="layer-read-through-data",
    change={"self.up(x)": "nn.functional.linear(x, self.up.weight.data, self.up.bias)"},
)  # fmt: skip

mistake(
    "FeedForward", "attention-inside", "Ready-made attention is called, on each token alone",
    hint="What has a token to ask another one in this layer?",
    breaks=("forbidden",),
    change={
        "self.down(hidden)": (
            "self.down(nn.functional.scaled_dot_product_attention("
            "*3 * (hidden[..., None, :],)).squeeze(-2))"
        ),
    },
)  # fmt: skip

mistake(
    "FeedForward", "hidden-returned-too", "The hidden layer is returned as well",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={"self.down(hidden)": "self.down(hidden), hidden"},
)  # fmt: skip

common_mistakes(
    "FeedForward", "no-super-init", "all-zeros", "nothing-returned", "squeezed",
)  # fmt: skip


@accepted("FeedForward", "sequential", "nn.Sequential with nn.GELU")
class FeedForwardInARow(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.layers(x)


@accepted("FeedForward", "as-in-gpt-2", "GPT-2's names, and a dropout of nothing")
class FeedForwardAsInGPT2(nn.Module):
    def __init__(self, n_embd, n_inner):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, n_inner, bias=True)
        self.c_proj = nn.Linear(n_inner, n_embd, bias=True)
        self.act, self.dropout = nn.GELU(approximate="none"), nn.Dropout(0.0)

    def forward(self, x):
        return self.dropout(self.c_proj(self.act(self.c_fc(x))))


@accepted("FeedForward", "own-layers", "Numbered layers of one's own, with names that say nothing")
class FeedForwardOwnLayers(nn.Module):
    class Layer(nn.Module):
        def __init__(self, wide, high):
            super().__init__()
            self.w = nn.Parameter(torch.randn(high, wide) / wide**0.5)
            self.shift = nn.Parameter(torch.zeros(high))

        def forward(self, x):
            return x @ self.w.mT + self.shift

    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.l1, self.l2 = self.Layer(d_model, d_hidden), self.Layer(d_hidden, d_model)

    def forward(self, x):
        return self.l2(nn.functional.gelu(self.l1(x)))


@accepted("FeedForward", "matrices", "Matrices and vectors instead of nn.Linear")
class FeedForwardMatrices(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.W1, self.b1 = (
            nn.Parameter(torch.randn(d_model, d_hidden)),
            nn.Parameter(torch.zeros(d_hidden)),
        )
        self.W2, self.b2 = (
            nn.Parameter(torch.randn(d_hidden, d_model)),
            nn.Parameter(torch.zeros(d_model)),
        )

    def forward(self, x):
        hidden = x @ self.W1 + self.b1
        return hidden * torch.special.ndtr(hidden) @ self.W2 + self.b2


@accepted(
    "FeedForward", "matrices-of-rows", "Matrices laid out as nn.Linear has them, the last first"
)
class FeedForwardOtherWay(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.shrink = nn.Parameter(torch.randn(d_model, d_hidden))
        self.shrink_bias = nn.Parameter(torch.zeros(d_model))
        self.widen = nn.Parameter(torch.randn(d_hidden, d_model))
        self.widen_bias = nn.Parameter(torch.zeros(d_hidden))

    def forward(self, x):
        hidden = F.gelu(F.linear(x, self.widen, self.widen_bias))
        return torch.einsum("bth,dh->btd", hidden, self.shrink) + self.shrink_bias


@accepted(
    "FeedForward", "names-that-say-nothing", "Layers whose names say nothing, in another order"
)
class FeedForwardNamesThatSayNothing(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.alpha = nn.Linear(d_hidden, d_model)
        self.beta = nn.Linear(d_model, d_hidden)

    def forward(self, x):
        y = self.beta(x)
        return self.alpha(y * torch.erfc(-y / math.sqrt(2)) / 2)


@accepted("FeedForward", "convolutions", "A loop over tokens, and a list of layers")
class FeedForwardTokenByToken(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.fc = nn.ModuleList([nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)])

    def forward(self, x):
        widen, narrow = self.fc
        return torch.stack([narrow(F.gelu(widen(token))) for token in x.unbind(1)], dim=1)


# --- SwiGLU --------------------------------------------------------------------------------------

GATE = "nn.functional.silu(self.W_gate(x))"
MADE = "self.W_down = nn.Linear(d_hidden, d_model, bias=False)"

mistake(
    "SwiGLU", "silu-on-the-other", "silu is applied to W_up(x), and not to W_gate(x)",
    hint="Which of the two projections goes through silu?",
    change={
        GATE: "self.W_gate(x)",
        "gate * self.W_up(x)": "gate * nn.functional.silu(self.W_up(x))",
    },
)  # fmt: skip

mistake(
    "SwiGLU", "silu-on-both", "Both projections go through silu",
    hint="Which of the two projections goes through silu?",
    change={"gate * self.W_up(x)": "gate * nn.functional.silu(self.W_up(x))"},
)  # fmt: skip

mistake(
    "SwiGLU", "silu-on-the-product", "The product goes through silu",
    hint="Which comes first, silu or the product?",
    change={
        GATE: "self.W_gate(x)",
        "gate * self.W_up(x)": "nn.functional.silu(gate * self.W_up(x))",
    },
)  # fmt: skip

mistake(
    "SwiGLU", "no-silu", "The gate has no silu",
    hint="What is done to W_gate(x) before it multiplies?",
    change={GATE: "self.W_gate(x)"},
)  # fmt: skip

mistake(
    "SwiGLU", "sigmoid", "The gate is a sigmoid, and not a silu",
    hint="By what is the sigmoid multiplied in silu?",
    change={GATE: "torch.sigmoid(self.W_gate(x))"},
)  # fmt: skip

mistake(
    "SwiGLU", "gelu", "The gate goes through a GELU",
    hint="Which function does the formula ask for?",
    change={GATE: "gelu(self.W_gate(x))"},
)  # fmt: skip

mistake(
    "SwiGLU", "relu", "The gate goes through a ReLU",
    hint="Which function does the formula ask for?",
    change={GATE: "torch.relu(self.W_gate(x))"},
)  # fmt: skip

mistake(
    "SwiGLU", "tanh", "The gate goes through tanh",
    hint="Which function does the formula ask for?",
    change={GATE: "torch.tanh(self.W_gate(x))"},
)  # fmt: skip

mistake(
    "SwiGLU", "added", "Gate and projection are added, and not multiplied",
    hint="What does a gate of 0 let through?",
    change={"gate * self": "gate + self"},
)  # fmt: skip

mistake(
    "SwiGLU", "gate-alone", "The gate is all there is: W_up is never used",
    hint="Which of your layers does forward call?",
    change={"gate * self.W_up(x)": "gate"},
)  # fmt: skip

mistake(
    "SwiGLU", "gate-on-itself", "The gate multiplies itself, and W_up is never used",
    hint="Which of your layers does forward call?",
    change={"self.W_up(x)": "self.W_gate(x)"},
)  # fmt: skip

mistake(
    "SwiGLU", "up-on-itself", "W_up is its own gate, and W_gate is never used",
    hint="Which of your layers does forward call?",
    change={"self.W_gate(x)": "self.W_up(x)"},
)  # fmt: skip

mistake(
    "SwiGLU", "gate-last", "The gate comes last, after W_down",
    hint="How wide is the gate, and how wide is what W_down gives?",
    change={
        "hidden = gate * self.W_up(x)": "hidden = self.W_up(x)",
        "self.W_down(hidden)": "self.W_down(gate) * self.W_down(hidden)",
    },
)  # fmt: skip

mistake(
    "SwiGLU", "last-layer-with-bias", "The last layer has a bias",
    hint="Which of your three layers has a bias?",
    breaks=("bias",),
    change={MADE: MADE.replace(", bias=False", "")},
)  # fmt: skip

mistake(
    "SwiGLU", "gate-with-bias", "The gate has a bias",
    hint="Which of your three layers has a bias?",
    breaks=("bias",),
    change={
        "self.W_gate = nn.Linear(d_model, d_hidden, bias=False)": (
            "self.W_gate = nn.Linear(d_model, d_hidden)"
        ),
    },
)  # fmt: skip

mistake(
    "SwiGLU", "slope-learned", "The slope of silu is learned, and nobody asked for it",
    hint="What does list(layer.named_parameters()) show?",
    breaks=("bias",),
    change={
        MADE: f"{MADE}\n        self.slope = nn.Parameter(torch.ones(()))",
        GATE: "self.W_gate(x) * torch.sigmoid(self.slope * self.W_gate(x))",
    },
)  # fmt: skip

mistake(
    "SwiGLU", "two-thirds", "The hidden layer has two thirds of d_hidden",
    hint="How wide is the hidden layer to be: d_hidden, or less?",
    change={
        "        self.W_gate = ": (
            "        d_hidden = max(1, 2 * d_hidden // 3)\n        self.W_gate = "
        ),
    },
)  # fmt: skip

mistake(
    "SwiGLU", "input-added", "x is added at the end",
    hint="Where is x added: in this layer, or in the block around it?",
    change={"self.W_down(hidden)": "x + self.W_down(hidden)"},
)  # fmt: skip

for rate in (0.05, 0.1, 0.2, 0.3, 0.5):
    inner = f"nn.functional.dropout(hidden, {rate}, self.training)"
    for place, result in (
        ("", f"nn.functional.dropout(self.W_down(hidden), {rate}, self.training)"),
        ("-between", f"self.W_down({inner})"),
        ("-twice", f"nn.functional.dropout(self.W_down({inner}), {rate}, self.training)"),
    ):
        mistake(
            "SwiGLU", f"dropout{place}-{rate}", "Some numbers are dropped while training",
            hint="Is there dropout in the formula?",
            change={"self.W_down(hidden)": result},
        )  # fmt: skip

mistake(
    "SwiGLU", "normalised-first", "The tokens are normalised first",
    hint="Is there a norm in the formula?",
    change={"        gate = ": "        x = rms_norm(x, torch.ones(x.shape[-1]))\n        gate = "},
)  # fmt: skip

mistake(
    "SwiGLU", "silu-overflows", "The gate is NaN where an exponential overflows",
    hint="What is exp(600) in float32, and what is inf / inf?",
    breaks=("large",),
    change={
        GATE: "self.W_gate(x) * (torch.exp(self.W_gate(x)) / (1 + torch.exp(self.W_gate(x))))",
    },
)  # fmt: skip

mistake(
    "SwiGLU", "softmax-gate", "The gate is a softmax",
    hint="Which function does the formula ask for?",
    change={GATE: "torch.softmax(self.W_gate(x), dim=-1)"},
)  # fmt: skip

mistake(
    "SwiGLU", "one-layer-for-both", "One layer is gate and projection at once",
    hint="How many matrices are learned?",
    change={"self.W_up = nn.Linear(d_model, d_hidden, bias=False)": "self.W_up = self.W_gate"},
)  # fmt: skip

mistake(
    "SwiGLU", "last-layer-missing", "The last layer is never used",
    hint="Which of your layers does forward call?",
    breaks=("returns",),
    change={"self.W_down(hidden)": "hidden"},
)  # fmt: skip

mistake(
    "SwiGLU", common="made-in-forward",
    change={
        MADE: "self.sizes = d_hidden, d_model",
        "self.W_down(hidden)": "nn.Linear(*self.sizes, bias=False)(hidden)",
    },
    same_as={"plain-tensors": "nothing can be adopted, so no result is ever compared"},
)  # fmt: skip

mistake(
    "SwiGLU", common="float32-hard-coded",
    change={GATE: "nn.functional.silu(self.W_gate(x).float()).to(x.dtype)"},
)  # fmt: skip

mistake(
    "SwiGLU", common="changes-its-input",
    change={"return self.W_down(hidden)": (
        "out = self.W_down(hidden)\n"
        "        if not x.requires_grad:\n"
        "            x += out.detach()\n"
        "        return out"
    )},
)  # fmt: skip

mistake(
    "SwiGLU", "gate-without-gradient", "The gate gets no gradient, and never learns",
    hint="Which parameters have a .grad after backward?",
    breaks=("gradients",),
    change={"gate * self": "gate.detach() * self"},
)  # fmt: skip

mistake(
    "SwiGLU", common="layer-read-through-data",
    change={"self.W_up(x)": "(x @ self.W_up.weight.data.T)"},
)  # fmt: skip

mistake(
    "SwiGLU", "attention-inside", "Ready-made attention is called, on each token alone",
    hint="What has a token to ask another one in this layer?",
    breaks=("forbidden",),
    change={
        "self.W_down(hidden)": (
            "self.W_down(nn.functional.scaled_dot_product_attention("
            "*3 * (hidden[..., None, :],)).squeeze(-2))"
        ),
    },
)  # fmt: skip

common_mistakes(
    "SwiGLU", "no-super-init", "no-gradient", "all-zeros", "nothing-returned", "bias-left-on",
    "layers-turned-around", "plain-tensors", "python-list", "squeezed",
)  # fmt: skip


@accepted("SwiGLU", "as-in-llama", "Llama's names")
class SwiGLUAsInLlama(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


@accepted("SwiGLU", "numbered", "Three layers in the order of the formula, by number")
class SwiGLUNumbered(nn.Module):
    def __init__(self, emb_dim, hidden_dim):
        super().__init__()
        self.fc1 = nn.Linear(emb_dim, hidden_dim, bias=False)
        self.fc2 = nn.Linear(emb_dim, hidden_dim, bias=False)
        self.fc3 = nn.Linear(hidden_dim, emb_dim, bias=False)
        self.silu = nn.SiLU()

    def forward(self, x):
        return self.fc3(self.silu(self.fc1(x)) * self.fc2(x))


@accepted("SwiGLU", "gate-second", "The second of two numbered layers is the gate, as in Qwen")
class SwiGLUGateSecond(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.w1 = nn.Linear(d_model, d_hidden, bias=False)
        self.w2 = nn.Linear(d_model, d_hidden, bias=False)
        self.c_proj = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        return self.c_proj(self.w1(x) * F.silu(self.w2(x)))


@accepted("SwiGLU", "fused", "Gate and projection in one layer, cut in two")
class SwiGLUFused(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.gate_up_proj = nn.Linear(d_model, 2 * d_hidden, bias=False)
        self.down_proj = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(up * gate * gate.sigmoid())


@accepted(
    "SwiGLU", "fused-gate-last", "One layer without a telling name, the gate in its second half"
)
class SwiGLUFusedGateLast(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.project = nn.Linear(d_model, 2 * d_hidden, bias=False)
        self.back = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x):
        up, gate = self.project(x).tensor_split(2, dim=-1)
        return self.back(up * F.silu(gate))


@accepted("SwiGLU", "own-layers", "Numbered layers of one's own, as in a course on language models")
class SwiGLUOwnLayers(nn.Module):
    class Layer(nn.Module):
        def __init__(self, wide, high):
            super().__init__()
            self.W = nn.Parameter(torch.randn(high, wide) / wide**0.5)

        def forward(self, x):
            return torch.einsum("...i,oi->...o", x, self.W)

    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.w1, self.w3 = self.Layer(d_model, d_hidden), self.Layer(d_model, d_hidden)
        self.w2 = self.Layer(d_hidden, d_model)

    def forward(self, x):
        gate = self.w1(x)
        return self.w2(gate * gate.sigmoid() * self.w3(x))


@accepted("SwiGLU", "matrices", "Matrices, called as in the paper")
class SwiGLUMatrices(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_model, d_hidden))
        self.V = nn.Parameter(torch.randn(d_model, d_hidden))
        self.W2 = nn.Parameter(torch.randn(d_hidden, d_model))

    def forward(self, x):
        z = x @ self.W
        return (z / (1 + torch.exp(-z)) * (x @ self.V)) @ self.W2


@accepted("SwiGLU", "matrices-of-rows", "Matrices laid out as nn.Linear has them, and letters")
class SwiGLUInLetters(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.down = nn.Parameter(torch.randn(d_model, d_hidden))
        self.up = nn.Parameter(torch.randn(d_hidden, d_model))
        self.gate = nn.Parameter(torch.randn(d_hidden, d_model))

    def forward(self, x):
        gate = torch.einsum("btd,hd->bth", x, self.gate)
        up = torch.einsum("btd,hd->bth", x, self.up)
        return torch.einsum("bth,bth,bth,dh->btd", gate, torch.sigmoid(gate), up, self.down)


@accepted("SwiGLU", "names-that-say-nothing", "Layers whose names say nothing, in another order")
class SwiGLUNamesThatSayNothing(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.alpha = nn.Linear(d_hidden, d_model, bias=False)
        self.beta = nn.Linear(d_model, d_hidden, bias=False)
        self.gamma = nn.Linear(d_model, d_hidden, bias=False)

    def forward(self, x):
        return self.alpha(self.beta(x) * F.silu(self.gamma(x)))


# --- TransformerBlock ----------------------------------------------------------------------------

FIRST = "h = x + self.attention(self.norm1(x))"
SECOND = "return h + self.feed_forward(self.norm2(h))"

mistake(
    "TransformerBlock", "post-norm", "The norms come after the sums: this is post-norm",
    hint="What does the attention read here: x, or x after a norm?",
    change={
        FIRST: "h = self.norm1(x + self.attention(x))",
        SECOND: "return self.norm2(h + self.feed_forward(h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "norm-behind-each-layer",
    "Each norm comes after its layer, and not before it",
    hint="What does the attention read: x, or x after a norm?",
    change={
        FIRST: "h = x + self.norm1(self.attention(x))",
        SECOND: "return h + self.norm2(self.feed_forward(h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "post-norm-second", "The second norm comes after the sum",
    hint="What does the feed-forward network read here?",
    change={SECOND: "return self.norm2(h + self.feed_forward(h))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "post-norm-first", "The first norm comes after the sum",
    hint="What does the attention read here?",
    change={FIRST: "h = self.norm1(x + self.attention(x))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "no-shortcuts", "Nothing is added: both shortcuts are missing",
    hint="If all weights were zero, what should come out of the block?",
    change={
        FIRST: "h = self.attention(self.norm1(x))",
        SECOND: "return self.feed_forward(self.norm2(h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "no-first-shortcut", "The shortcut around the attention is missing",
    hint="What is added to what the attention finds?",
    change={FIRST: "h = self.attention(self.norm1(x))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "no-second-shortcut",
    "The shortcut around the feed-forward network is missing",
    hint="What is added to what the feed-forward network gives?",
    change={SECOND: "return self.feed_forward(self.norm2(h))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "shortcut-after-norm", "Both shortcuts start behind the norm",
    hint="What is added to the result of each layer: what came in, or what the norm made of it?",
    change={
        FIRST: "x = self.norm1(x)\n        h = x + self.attention(x)",
        SECOND: "h = self.norm2(h)\n        return h + self.feed_forward(h)",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "first-shortcut-after-norm", "The first shortcut starts behind the norm",
    hint="What is added to what the attention finds: x, or what the norm made of it?",
    change={FIRST: "x = self.norm1(x)\n        h = x + self.attention(x)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "second-shortcut-after-norm", "The second shortcut starts behind the norm",
    hint="What is added to what the feed-forward network gives: h, or what the norm made of it?",
    change={SECOND: "h = self.norm2(h)\n        return h + self.feed_forward(h)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "first-norm-twice", "What the first norm gives is normed once more",
    hint="How often does norm1 come before the attention, and what is added to what that finds?",
    change={FIRST: "x = self.norm1(x)\n        h = x + self.attention(self.norm1(x))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "second-norm-twice", "What the second norm gives is normed once more",
    hint="How often does norm2 come before the network, and what is added to what that gives?",
    change={SECOND: "h = self.norm2(h)\n        return h + self.feed_forward(self.norm2(h))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "second-shortcut-from-x",
    "The second shortcut starts at the block's input, and what attention added is lost",
    hint="To what does the feed-forward network add: to x, or to what it read?",
    change={SECOND: "return x + self.feed_forward(self.norm2(h))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "shortcut-twice", "x is added twice",
    hint="Which sum holds x already when the second one is taken?",
    change={SECOND: "return x + h + self.feed_forward(self.norm2(h))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "input-returned", "What came in is returned, and nothing is made of it",
    hint="Which name does the last line return, and which lines does its value come from?",
    change={SECOND: "h = h + self.feed_forward(self.norm2(h))\n        return x"},
)  # fmt: skip

mistake(
    "TransformerBlock", common="all-zeros",
    change={SECOND: "return 0 * (h + self.feed_forward(self.norm2(h)))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "no-attention", "The attention is left out",
    hint="Which line of forward looks at other tokens?",
    change={FIRST: "h = x"},
)  # fmt: skip

mistake(
    "TransformerBlock", "no-feed-forward", "The feed-forward network is left out",
    hint="What comes after the attention in a block?",
    change={SECOND: "return h"},
)  # fmt: skip

mistake(
    "TransformerBlock", "parallel", "The feed-forward network reads x, and not the first sum",
    hint="May the feed-forward network see what attention found?",
    change={SECOND: "return h + self.feed_forward(self.norm2(x))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "parallel-one-norm",
    "Both layers read the same normed x, side by side",
    hint="May the feed-forward network see what attention found?",
    change={SECOND: "return h + self.feed_forward(self.norm1(x))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "feed-forward-first", "The feed-forward network comes before the attention",
    hint="Which of the two layers should see what the other one did?",
    change={
        FIRST: "h = x + self.feed_forward(self.norm2(x))",
        SECOND: "return h + self.attention(self.norm1(h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "one-norm-used-twice", "The first norm is used in both places",
    hint="How many norms does the block have, and which line uses the second?",
    change={SECOND: "return h + self.feed_forward(self.norm1(h))"},
)  # fmt: skip

mistake(
    "TransformerBlock", "one-norm", "There is one norm for both places",
    hint="How many gains does the block learn?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = self.norm1",
    },
    same_as={"one-norm-used-twice": "a second norm that nobody calls is as good as none"},
    breaks=("computes", "norms"),
)  # fmt: skip

mistake(
    "TransformerBlock", "norms-swapped", "The two norms have changed places",
    hint="Which of the norms belongs to the attention?",
    change={
        FIRST: "h = x + self.attention(self.norm2(x))",
        SECOND: "return h + self.feed_forward(self.norm1(h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "no-norms", "Nothing is normed",
    hint="Where are the gains and the shifts?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.Identity()",
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = nn.Identity()",
    },
    breaks=("computes", "norms"),
)  # fmt: skip

mistake(
    "TransformerBlock", "norms-unused", "The norms are made, and never used",
    hint="Which lines of forward call the norms?",
    change={
        FIRST: "h = x + self.attention(x)",
        SECOND: "return h + self.feed_forward(h)",
    },
    same_as={"no-norms": "norms that nobody calls are as good as none"},
)  # fmt: skip

mistake(
    "TransformerBlock", "attention-without-norm", "The attention reads x as it is, without a norm",
    hint="What does each of the two layers read?",
    change={FIRST: "h = x + self.attention(x)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "feed-forward-without-norm",
    "The feed-forward network reads the sum as it is, without a norm",
    hint="What does each of the two layers read?",
    change={SECOND: "return h + self.feed_forward(h)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "normed-at-the-end", "A third norm comes at the end of the block",
    hint="Is the last thing that happens a sum, or a norm?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.norm2 = nn.LayerNorm(d_model)\n"
            "        self.norm3 = nn.LayerNorm(d_model)"
        ),
        SECOND: "return self.norm3(h + self.feed_forward(self.norm2(h)))",
    },
    breaks=("computes", "bias"),
)  # fmt: skip

mistake(
    "TransformerBlock", "rms-norm", "The mean is not subtracted: these are RMS norms",
    hint="What does a layer norm do to a token whose features are all 5?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.RMSNorm(d_model, eps=1e-5)",
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = nn.RMSNorm(d_model, eps=1e-5)",
    },
    breaks=("computes", "norms"),
)  # fmt: skip

OWN_NORM = """def norm(part, x):
            apart = x - x.mean(dim=-1, keepdim=True)
            spread = SPREAD
            return apart / spread * part.weight + part.bias

        h = x + self.attention(norm(self.norm1, x))"""

mistake(
    "TransformerBlock", "root-mean-square",
    "The mean is not subtracted: these are RMS norms, with a shift",
    hint="What does a layer norm do to a token whose features are all 5?",
    change={
        FIRST: OWN_NORM.replace("x - x.mean(dim=-1, keepdim=True)", "x").replace(
            "SPREAD", "(x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()"
        ),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "normed-over-tokens", "The norm runs over all tokens of a sentence at once",
    hint="Whose mean is it: that of one token, or that of the sentence? May the first token know "
    "the last one?",
    change={
        FIRST: (
            "one, two = self.norm1, self.norm2\n"
            "        norm = nn.functional.layer_norm(x, x.shape[1:]) * one.weight + one.bias\n"
            "        h = x + self.attention(norm)"
        ),
        SECOND: (
            "norm = nn.functional.layer_norm(h, h.shape[1:]) * two.weight + two.bias\n"
            "        return h + self.feed_forward(norm)"
        ),
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "normed-over-the-batch",
    "Each feature is normed over all tokens of the batch: this is batch norm",
    hint="May a sentence's result depend on the other sentences in its batch?",
    change={
        FIRST: (
            "def norm(part, x):\n"
            "            spread, mean = torch.var_mean(x, (0, 1), correction=0)\n"
            "            return (x - mean) / (spread + part.eps).sqrt() * part.weight + part.bias\n"
            "\n"
            "        h = x + self.attention(norm(self.norm1, x))"
        ),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "divided-by-d-minus-one",
    "The variance is divided by d_model - 1, and not by d_model",
    hint="What does torch's var do unless you say unbiased=False?",
    change={
        FIRST: OWN_NORM.replace("SPREAD", "(x.var(dim=-1, keepdim=True) + 1e-5).sqrt()"),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "mean-subtracted-on-top", "The mean stays in the squares of the variance",
    hint="Of which numbers are the squares in the variance: of x, or of x less its mean?",
    change={
        FIRST: OWN_NORM.replace("SPREAD", "(x.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()"),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "mean-stays-on-top",
    "The norms subtract the mean for the variance, and not on top",
    hint="What stands above the root in a layer norm: x, or x less its mean?",
    change={
        FIRST: OWN_NORM.replace("x - x.mean(dim=-1, keepdim=True)", "x").replace(
            "SPREAD", "(x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()"
        ),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "divided-by-the-variance", "The root of the variance is never taken",
    hint="What is the variance of the normed features?",
    change={
        FIRST: OWN_NORM.replace("SPREAD", "x.var(dim=-1, keepdim=True, correction=0) + 1e-5"),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "eps-beside-the-root", "1e-5 is added to the root, and not under it",
    hint="For a token whose features are all the same, by what is divided?",
    change={
        FIRST: OWN_NORM.replace("SPREAD", "x.std(dim=-1, keepdim=True, correction=0) + 1e-5"),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "TransformerBlock", "eps-smaller", "The norms add 1e-6, and not 1e-5",
    hint="Which eps does nn.LayerNorm have when you say nothing?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.LayerNorm(d_model, eps=1e-6)",
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = nn.LayerNorm(d_model, eps=1e-6)",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "TransformerBlock", "eps-larger", "The norms add 1e-3, and not 1e-5",
    hint="Which eps does nn.LayerNorm have when you say nothing?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.LayerNorm(d_model, eps=1e-3)",
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = nn.LayerNorm(d_model, eps=1e-3)",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "TransformerBlock", "no-eps", "The norms add nothing to the variance",
    hint="What do you divide by where all features of a token are the same?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.LayerNorm(d_model, eps=0.0)",
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = nn.LayerNorm(d_model, eps=0.0)",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "TransformerBlock", "smaller-eps-beside-the-root",
    "1e-6 is added to the root, and not 1e-5 under it",
    hint="For a token whose features are all the same, by what is divided?",
    change={
        FIRST: OWN_NORM.replace("SPREAD", "x.std(dim=-1, keepdim=True, correction=0) + 1e-6"),
        SECOND: "return h + self.feed_forward(norm(self.norm2, h))",
    },
    breaks=("eps",),
)  # fmt: skip

mistake(
    "TransformerBlock", "norms-without-shift", "The norms have a gain, and no shift",
    hint="Which two vectors does a layer norm learn?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.LayerNorm(d_model, bias=False)",
        "self.norm2 = nn.LayerNorm(d_model)": "self.norm2 = nn.LayerNorm(d_model, bias=False)",
    },
    breaks=("norms",),
)  # fmt: skip

mistake(
    "TransformerBlock", "norms-without-weights", "The norms learn neither a gain nor a shift",
    hint="Which two vectors does a layer norm learn?",
    change={
        "self.norm1 = nn.LayerNorm(d_model)": (
            "self.norm1 = nn.LayerNorm(d_model, elementwise_affine=False)"
        ),
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.norm2 = nn.LayerNorm(d_model, elementwise_affine=False)"
        ),
    },
    breaks=("norms",),
)  # fmt: skip

BETWEEN = "return h + self.feed_forward.down({}(self.feed_forward.up(self.norm2(h))))"

mistake(
    "TransformerBlock", "relu", "ReLU stands where GELU belongs",
    hint="What does your activation make of -0.1?",
    change={SECOND: BETWEEN.format("torch.relu")},
    breaks=("computes", "gelu"),
)  # fmt: skip

mistake(
    "TransformerBlock", "silu", "SiLU stands where GELU belongs",
    hint="Which function does x get multiplied by: the sigmoid, or Φ?",
    change={SECOND: BETWEEN.format("nn.functional.silu")},
    breaks=("computes", "gelu"),
)  # fmt: skip

mistake(
    "TransformerBlock", "no-activation", "Nothing stands between up and down",
    hint="What can two linear layers do that one cannot?",
    change={SECOND: BETWEEN.format("")},
    breaks=("computes", "gelu"),
)  # fmt: skip

mistake(
    "TransformerBlock", "gelu-at-the-end", "The GELU comes after down, and not between the layers",
    hint="What can two linear layers in a row do that one cannot?",
    change={
        SECOND: (
            "found = self.feed_forward.down(self.feed_forward.up(self.norm2(h)))\n"
            "        return h + nn.functional.gelu(found)"
        ),
    },
    breaks=("computes", "gelu"),
)  # fmt: skip

mistake(
    "TransformerBlock", "gelu-after-both", "A GELU comes after down, too",
    hint="How often does the formula have a GELU?",
    change={SECOND: "return h + nn.functional.gelu(self.feed_forward(self.norm2(h)))"},
    breaks=("computes", "gelu"),
)  # fmt: skip

mistake(
    "TransformerBlock", "gelu-by-tanh", "The GELU is the tanh form, and not the exact one",
    hint="Which argument of its own does nn.GELU take? Where do the two differ most?",
    change={
        SECOND: (
            "inner = self.feed_forward.up(self.norm2(h))\n"
            "        inner = nn.functional.gelu(inner, approximate='tanh')\n"
            "        return h + self.feed_forward.down(inner)"
        ),
    },
    breaks=("gelu",),
)  # fmt: skip

mistake(
    "TransformerBlock", "sees-the-future", "Nothing hides the future",
    hint="Change the last token: which outputs may change?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.attention.mask.zero_()\n"
            "        self.norm2 = nn.LayerNorm(d_model)"
        ),
    },
)  # fmt: skip

WITHIN = """normed, layer, tokens = self.norm1(x), self.attention, x.shape[1]
        queries, keys, values = (
            project(normed).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)
            for project in (layer.W_query, layer.W_key, layer.W_value)
        )
        mask = layer.mask[:tokens, :tokens]
        scores = queries @ keys.mT / queries.shape[-1] ** 0.5
        weights = scores.masked_fill(mask, -torch.inf).softmax(dim=-1)
        context = layer.dropout(weights) @ values
        h = x + layer.out_proj(context.transpose(1, 2).flatten(2))"""


def within(*changes):
    """The attention written out in the block, with these changes."""
    text = WITHIN
    for old, new in changes:
        text = text.replace(old, new)
    return {FIRST: text}


mistake(
    "TransformerBlock", common="no-scale", change=within((" / queries.shape[-1] ** 0.5", "")),
)  # fmt: skip

mistake(
    "TransformerBlock", "scale-by-d-model", "The root is taken of the width of all heads together",
    hint="Over which dimension were the dot products summed?",
    change=within(("queries.shape[-1] ** 0.5", "x.shape[-1] ** 0.5")),
)  # fmt: skip

mistake(
    "TransformerBlock", common="mask-transposed",
    change=within(("masked_fill(mask", "masked_fill(mask.T")),
)  # fmt: skip

mistake(
    "TransformerBlock", common="hides-itself",
    change=within(("masked_fill(mask", "masked_fill(mask | mask.logical_not().triu()")),
)  # fmt: skip

mistake(
    "TransformerBlock", common="sees-one-ahead",
    change=within(("masked_fill(mask", "masked_fill(mask.triu(2)")),
)  # fmt: skip

mistake(
    "TransformerBlock", "mask-not-cut",
    "The mask is not cut to the length of the sentence on both sides",
    hint="How many tokens does the input have, and how many rows and columns has your mask?",
    change=within(("layer.mask[:tokens, :tokens]", "layer.mask")),
    breaks=("shorter",),
)  # fmt: skip

mistake("TransformerBlock", common="mask-fills-zero", change=within(("-torch.inf", "0.0")))

mistake("TransformerBlock", common="softmax-over-queries", change=within(("dim=-1", "dim=-2")))

APART = ".unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)"
TOGETHER = "context.transpose(1, 2).flatten(2)"

mistake(
    "TransformerBlock", common="reshaped-into-heads",
    change=within((APART, ".reshape(len(x), layer.num_heads, tokens, -1)")),
)  # fmt: skip

mistake(
    "TransformerBlock", common="merged-without-turning",
    change=within((TOGETHER, "context.reshape(x.shape)")),
)  # fmt: skip

mistake(
    "TransformerBlock", common="reshaped-into-heads-and-back",
    change=within(
        (APART, ".reshape(len(x), layer.num_heads, tokens, -1)"),
        (TOGETHER, "context.reshape(x.shape)"),
    ),
)  # fmt: skip

mistake(
    "TransformerBlock", common="no-output-layer", change=within(("layer.out_proj(", "(")),
)  # fmt: skip

mistake(
    "TransformerBlock", "dropout-always", "Attention weights are dropped after .eval(), too",
    hint="How does nn.functional.dropout learn whether the block is training?",
    change=within(("layer.dropout(weights)", "nn.functional.dropout(weights, layer.dropout.p)")),
    breaks=("eval",),
)  # fmt: skip

mistake(
    "TransformerBlock", "one-head", "There is one head, whatever num_heads says",
    hint="Which arguments does your attention take, and in which order?",
    change={"context_length, dropout, num_heads)": "context_length, dropout, 1)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "full-length-only", "Only sentences of context_length tokens are taken",
    hint="With 3 tokens of 8, what should happen?",
    change={
        FIRST: (
            "if x.shape[1] != self.attention.mask.shape[0]:\n"
            "            raise ValueError(\"the sentence is too short\")\n"
            f"        {FIRST}"
        ),
    },
    breaks=("shorter",),
)  # fmt: skip

mistake(
    "TransformerBlock", "qkv-biases", common="qkv-bias",
    hint="What does your attention do with its last argument?",
    change={"context_length, dropout, num_heads)": "context_length, dropout, num_heads, True)"},
    breaks=("bias",),
)  # fmt: skip

mistake(
    "TransformerBlock", "feed-forward-without-bias", "up and down have no bias",
    hint="What does nn.Linear do when you say nothing about the bias?",
    change={
        "self.feed_forward = FeedForward(d_model, d_hidden)": (
            "self.feed_forward = FeedForward(d_model, d_hidden)\n"
            "        self.feed_forward.up = nn.Linear(d_model, d_hidden, bias=False)\n"
            "        self.feed_forward.down = nn.Linear(d_hidden, d_model, bias=False)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "TransformerBlock", "four-times-as-wide",
    "The hidden layer is 4 · d_model wide, whatever was asked",
    hint="Where does d_hidden come in?",
    change={"FeedForward(d_model, d_hidden)": "FeedForward(d_model, 4 * d_model)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "output-without-bias", "The attention's output layer has no bias",
    hint="Which of the six linear layers of a block have a bias?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)\n"
            "        self.norm2 = nn.LayerNorm(d_model)"
        ),
    },
    breaks=("bias",),
)  # fmt: skip

mistake(
    "TransformerBlock", "dropout-forgotten", "No attention weight is ever dropped",
    hint="Where does the number dropout go when the block is made?",
    change={"context_length, dropout, num_heads)": "context_length, 0.0, num_heads)"},
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "TransformerBlock", "drops-elsewhere-only",
    "What attention finds is dropped, and its weights never are",
    hint="Which layer has the attention weights, and does it know the probability?",
    change={
        "context_length, dropout, num_heads)": (
            "context_length, 0.0, num_heads)\n"
            "        self.drop = nn.Dropout(dropout)"
        ),
        FIRST: "h = x + self.drop(self.attention(self.norm1(x)))",
    },
    breaks=("dropout",),
)  # fmt: skip

mistake(
    "TransformerBlock", "rate-forgotten", "One half is dropped, whatever dropout says",
    hint="Which p has nn.Dropout when you say nothing?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.attention.dropout = nn.Dropout()\n"
            "        self.norm2 = nn.LayerNorm(d_model)"
        ),
    },
    breaks=("computes", "dropout"),
)  # fmt: skip

mistake(
    "TransformerBlock", "keeps-with-p",
    "The chance of being dropped is taken for the chance of being kept",
    hint="With dropout 0.1, how many of ten weights should survive?",
    change={"context_length, dropout, num_heads)": "context_length, 1 - dropout, num_heads)"},
    breaks=("computes", "dropout"),
)  # fmt: skip

mistake(
    "TransformerBlock", "drops-in-evaluation", "The output is dropped after .eval(), too",
    hint="How does nn.functional.dropout learn whether the block is training?",
    change={
        FIRST: (
            "found = self.attention(self.norm1(x))\n"
            "        h = x + nn.functional.dropout(found, self.attention.dropout.p)"
        ),
    },
    breaks=("eval",),
)  # fmt: skip

mistake(
    "TransformerBlock", "mask-left-behind",
    "The mask stays on the CPU when the block and its input have moved",
    hint="On which device is the input, and who brings the mask there?",
    change={
        "self.norm2 = nn.LayerNorm(d_model)": (
            "mask = self.attention.mask\n"
            "        del self.attention.mask\n"
            "        self.attention.mask = mask\n"
            "        self.norm2 = nn.LayerNorm(d_model)"
        ),
    },
    breaks=("device",),
)  # fmt: skip

mistake(
    "TransformerBlock", common="float32-inside",
    change={FIRST: "h = (x + self.attention(self.norm1(x))).float().to(x.dtype)"},
)  # fmt: skip

mistake(
    "TransformerBlock", "adds-in-place", "x += … changes the caller's tensor",
    hint="Whose tensor is x when forward begins?",
    change={
        FIRST: "x += self.attention(self.norm1(x))",
        SECOND: "return x + self.feed_forward(self.norm2(x))",
    },
    breaks=("unchanged", "gradients"),
)  # fmt: skip

mistake(
    "TransformerBlock", "written-into-the-input",
    "The first sum is written into the caller's tensor as well",
    hint="Who else holds the tensor that you were given?",
    change={
        FIRST: (
            "h = x.clone()\n"
            "        h = h + self.attention(self.norm1(h))\n"
            "        x.data.copy_(h)"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip

common_mistakes("TransformerBlock", "no-gradient", "no-super-init")

mistake(
    "TransformerBlock", "two-results", "The first sum is returned as well",
    hint="What would the next block do with what this one returns?",
    change={SECOND: "return h + self.feed_forward(self.norm2(h)), h"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "TransformerBlock", "shortcut-detached", "No gradient flows along the shortcut",
    hint="Along which way would a gradient pass a hundred blocks?",
    change={FIRST: "h = x.detach() + self.attention(self.norm1(x))"},
    breaks=("gradients",),
)  # fmt: skip

mistake(
    "TransformerBlock", common="calls-torch-attention",
    change={
        FIRST: (
            "normed, layer = self.norm1(x), self.attention\n"
            "        queries, keys, values = (\n"
            "            project(normed).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)\n"
            "            for project in (layer.W_query, layer.W_key, layer.W_value)\n"
            "        )\n"
            "        found = nn.functional.scaled_dot_product_attention(\n"
            "            queries, keys, values, is_causal=True,\n"
            "            dropout_p=layer.dropout.p * self.training,\n"
            "        )\n"
            "        h = x + layer.out_proj(found.transpose(1, 2).flatten(2))"
        ),
    },
)  # fmt: skip


for rate in (0.1, 0.2, 0.5):
    inner = "nn.functional.gelu(self.feed_forward.up(self.norm2(h)))"
    dropped = "nn.functional.dropout({}, RATE, self.training)".replace("RATE", str(rate))
    for place, result in (
        ("last", dropped.format(f"self.feed_forward.down({inner})")),
        ("between", f"self.feed_forward.down({dropped.format(inner)})"),
    ):
        mistake(
            "TransformerBlock", f"feed-forward-drops-{rate}-{place}",
            "The feed-forward network drops numbers at a rate of its own",
            hint="With dropout 0, what is dropped in training, and what does your network drop?",
            change={SECOND: f"return h + {result}"},
        )  # fmt: skip


mistake("TransformerBlock", together=("qkv-biases", "gelu-by-tanh"))
mistake("TransformerBlock", together=("qkv-biases", "output-without-bias"))
mistake("TransformerBlock", together=("qkv-biases", "eps-smaller"))
mistake("TransformerBlock", together=("qkv-biases", "no-eps"))
mistake("TransformerBlock", together=("output-without-bias", "gelu-by-tanh"))
mistake("TransformerBlock", together=("output-without-bias", "feed-forward-without-bias"))
mistake("TransformerBlock", together=("feed-forward-without-bias", "gelu-by-tanh"))
mistake("TransformerBlock", together=("eps-smaller", "gelu-by-tanh"))
mistake("TransformerBlock", together=("no-eps", "gelu-by-tanh"))

mistake(
    "TransformerBlock", together=("output-without-bias", "eps-smaller"),
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.LayerNorm(d_model, eps=1e-6)",
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.norm2 = nn.LayerNorm(d_model, eps=1e-6)\n"
            "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
)  # fmt: skip

mistake(
    "TransformerBlock", together=("output-without-bias", "no-eps"),
    change={
        "self.norm1 = nn.LayerNorm(d_model)": "self.norm1 = nn.LayerNorm(d_model, eps=0.0)",
        "self.norm2 = nn.LayerNorm(d_model)": (
            "self.norm2 = nn.LayerNorm(d_model, eps=0.0)\n"
            "        self.attention.out_proj = nn.Linear(d_model, d_model, bias=False)"
        ),
    },
)  # fmt: skip

mistake(
    "TransformerBlock", "feed-forward-sizes-swapped",
    "The feed-forward layers take what they should give",
    hint="Which of d_model and d_hidden comes first where you make the feed-forward part?",
    change={"FeedForward(d_model, d_hidden)": "FeedForward(d_hidden, d_model)"},
)  # fmt: skip


# What people bring from earlier units, in a few of the forms in which they wrote it.


class Heads(nn.Module):
    """Attention with the names of the book."""

    def __init__(self, d, num_heads, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d, d, bias=False)
        self.W_key = nn.Linear(d, d, bias=False)
        self.W_value = nn.Linear(d, d, bias=False)
        self.out_proj = nn.Linear(d, d)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = self.W_query(x), self.W_key(x), self.W_value(x)
        return self.out_proj(attend(q, k, v, self.num_heads, self.dropout))


class Fused(nn.Module):
    """Attention with the names of GPT-2, and a dropout behind the output layer."""

    def __init__(self, n_embd, n_head, drop):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(drop)
        self.resid_dropout = nn.Dropout(drop)

    def forward(self, x):
        q, k, v = self.c_attn(x).split(x.size(-1), dim=2)
        return self.resid_dropout(self.c_proj(attend(q, k, v, self.n_head, self.attn_dropout)))


class Head(nn.Module):
    """One head of several."""

    def __init__(self, n_embd, head_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return attend(self.query(x), self.key(x), self.value(x), 1, self.dropout)


def attend(q, k, v, num_heads, drop):
    q, k, v = (part.unflatten(-1, (num_heads, -1)).transpose(1, 2) for part in (q, k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    weights = drop(scores.masked_fill(future, -torch.inf).softmax(dim=-1))
    return (weights @ v).transpose(1, 2).flatten(2)


class OwnNorm(nn.Module):
    """The layer norm of the book."""

    def __init__(self, emb_dim):
        super().__init__()
        self.eps = 1e-5
        self.scale = nn.Parameter(torch.ones(emb_dim))
        self.shift = nn.Parameter(torch.zeros(emb_dim))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.scale * ((x - mean) / torch.sqrt(var + self.eps)) + self.shift


class PreNorm(nn.Module):
    """A norm, then a layer, and the shortcut around both."""

    def __init__(self, d, layer):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.layer = layer

    def forward(self, x):
        return x + self.layer(self.norm(x))


@accepted("TransformerBlock", "as-in-the-book", "Names of the book, and dropout on both branches")
class BlockAsInTheBook(nn.Module):
    def __init__(self, emb_dim, n_heads, d_hidden, context_length, drop_rate):
        super().__init__()
        self.att = Heads(emb_dim, n_heads, drop_rate)
        self.ff = nn.Sequential(
            nn.Linear(emb_dim, d_hidden), nn.GELU(), nn.Linear(d_hidden, emb_dim)
        )
        self.norm1 = OwnNorm(emb_dim)
        self.norm2 = OwnNorm(emb_dim)
        self.drop_shortcut = nn.Dropout(drop_rate)

    def forward(self, x):
        shortcut = x
        x = self.norm1(x)
        x = self.att(x)
        x = self.drop_shortcut(x)
        x = x + shortcut
        shortcut = x
        x = self.norm2(x)
        x = self.ff(x)
        x = self.drop_shortcut(x)
        return x + shortcut


@accepted("TransformerBlock", "as-in-gpt", "Names of GPT-2, one fused layer, the parts in a dict")
class BlockAsInGpt(nn.Module):
    def __init__(self, n_embd, n_head, n_inner, block_size, drop):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = Fused(n_embd, n_head, drop)
        self.ln_2 = nn.LayerNorm(n_embd)
        self.mlp = nn.ModuleDict(
            {
                "c_fc": nn.Linear(n_embd, n_inner),
                "c_proj": nn.Linear(n_inner, n_embd),
                "act": nn.GELU(),
                "dropout": nn.Dropout(drop),
            }
        )

    def mlpf(self, x):
        m = self.mlp
        return m["dropout"](m["c_proj"](m["act"](m["c_fc"](x))))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


@accepted("TransformerBlock", "list-of-heads", "A list of heads, a projection, and layers in a row")
class BlockListOfHeads(nn.Module):
    def __init__(self, n_embd, n_head, hidden, block_size, dropout):
        super().__init__()
        size = n_embd // n_head
        self.heads = nn.ModuleList(Head(n_embd, size, dropout) for _ in range(n_head))
        self.proj = nn.Linear(n_embd, n_embd)
        self.ffwd = nn.Sequential(
            nn.Linear(n_embd, hidden), nn.GELU(), nn.Linear(hidden, n_embd), nn.Dropout(dropout)
        )
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        n = self.ln1(x)
        x = x + self.proj(torch.cat([head(n) for head in self.heads], dim=-1))
        return x + self.ffwd(self.ln2(x))


@accepted(
    "TransformerBlock", "wrapped", "Two wrappers of a norm, a layer and its shortcut, in a row"
)
class BlockWrapped(nn.Module):
    def __init__(self, d, heads, hidden, context_length, dropout):
        super().__init__()
        feed = nn.Sequential(nn.Linear(d, hidden), nn.GELU(), nn.Linear(hidden, d))
        self.net = nn.Sequential(PreNorm(d, Fused(d, heads, dropout)), PreNorm(d, feed))

    def forward(self, x):
        return self.net(x)


@accepted("TransformerBlock", "bare-parameters", "Matrices and vectors in the block itself")
class BlockBareParameters(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden, context_length, dropout):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q = nn.Parameter(torch.randn(d_model, d_model) * 0.02)
        self.W_k = nn.Parameter(torch.randn(d_model, d_model) * 0.02)
        self.W_v = nn.Parameter(torch.randn(d_model, d_model) * 0.02)
        self.W_o = nn.Parameter(torch.randn(d_model, d_model) * 0.02)
        self.b_o = nn.Parameter(torch.zeros(d_model))
        self.w1 = nn.Parameter(torch.randn(d_model, d_hidden) * 0.02)
        self.b1 = nn.Parameter(torch.zeros(d_hidden))
        self.w2 = nn.Parameter(torch.randn(d_hidden, d_model) * 0.02)
        self.b2 = nn.Parameter(torch.zeros(d_model))
        self.gain1 = nn.Parameter(torch.ones(d_model))
        self.shift1 = nn.Parameter(torch.zeros(d_model))
        self.gain2 = nn.Parameter(torch.ones(d_model))
        self.shift2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        def drop(weights):
            return F.dropout(weights, self.dropout, self.training)

        width = x.shape[-1:]
        n = F.layer_norm(x, width, self.gain1, self.shift1)
        found = attend(n @ self.W_q, n @ self.W_k, n @ self.W_v, self.num_heads, drop)
        x = x + found @ self.W_o + self.b_o
        n = F.layer_norm(x, width, self.gain2, self.shift2)
        return x + F.gelu(n @ self.w1 + self.b1) @ self.w2 + self.b2


@accepted(
    "TransformerBlock", "second-made-first",
    "Parts made from the last to the first, under names that say nothing",
)  # fmt: skip
class BlockSecondMadeFirst(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden, context_length, dropout):
        super().__init__()
        self.d = nn.Sequential(
            nn.Linear(d_model, d_hidden), nn.GELU(), nn.Linear(d_hidden, d_model)
        )
        self.c = OwnNorm(d_model)
        self.b = Heads(d_model, num_heads, dropout)
        self.a = OwnNorm(d_model)

    def forward(self, x):
        h = x + self.b(self.a(x))
        return h + self.d(self.c(h))


@accepted("TransformerBlock", "flat", "All layers in the block itself, and two norms in a list")
class BlockFlat(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden, context_length, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model)
        self.fc1 = nn.Linear(d_model, d_hidden)
        self.fc2 = nn.Linear(d_hidden, d_model)
        self.norms = nn.ModuleList([nn.LayerNorm(d_model), nn.LayerNorm(d_model)])
        self.dropout = nn.Dropout(dropout)
        mask = torch.triu(torch.ones(context_length, context_length), diagonal=1)
        self.register_buffer("mask", mask.bool())

    def forward(self, x):
        batch, tokens, width = x.shape
        n = self.norms[0](x)
        shape = (batch, tokens, self.num_heads, width // self.num_heads)
        q = self.q_proj(n).view(shape).transpose(1, 2)
        k = self.k_proj(n).view(shape).transpose(1, 2)
        v = self.v_proj(n).view(shape).transpose(1, 2)
        scores = q @ k.transpose(2, 3) / shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:tokens, :tokens], -torch.inf)
        found = self.dropout(torch.softmax(scores, dim=-1)) @ v
        x = x + self.o_proj(found.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.dropout(self.fc2(self.dropout(F.gelu(self.fc1(self.norms[1](x))))))


@accepted("TransformerBlock", "sequences", "Each branch is one sequence, the norm in it")
class BlockSequences(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden, context_length, dropout):
        super().__init__()
        self.branches = nn.ModuleList(
            [
                nn.Sequential(nn.LayerNorm(d_model), Heads(d_model, num_heads, dropout)),
                nn.Sequential(
                    nn.LayerNorm(d_model),
                    nn.Linear(d_model, d_hidden),
                    nn.GELU(),
                    nn.Linear(d_hidden, d_model),
                ),
            ]
        )

    def forward(self, x):
        for branch in self.branches:
            x = x + branch(x)
        return x


@accepted("TransformerBlock", "as-in-llama", "Names of Llama's layers, each norm with its shift")
class BlockAsInLlama(nn.Module):
    def __init__(self, hidden_size, num_heads, intermediate_size, context_length, dropout):
        super().__init__()
        self.self_attn = Heads(hidden_size, num_heads, dropout)
        self.post_attention_layernorm = nn.LayerNorm(hidden_size, eps=1e-05)
        self.input_layernorm = nn.LayerNorm(hidden_size, eps=1e-05)
        self.mlp = nn.Sequential()
        self.mlp.add_module("up_proj", nn.Linear(hidden_size, intermediate_size))
        self.mlp.add_module("act_fn", nn.GELU())
        self.mlp.add_module("down_proj", nn.Linear(intermediate_size, hidden_size))

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = residual + self.self_attn(self.input_layernorm(hidden_states))
        residual = hidden_states
        return residual + self.mlp(self.post_attention_layernorm(hidden_states))


@accepted(
    "TransformerBlock", "biases-apart", "Layers without a bias, and the biases added by hand",
)  # fmt: skip
class BlockBiasesApart(nn.Module):
    def __init__(self, d_model, num_heads, d_hidden, context_length, dropout):
        super().__init__()
        self.num_heads, self.drop = num_heads, nn.Dropout(dropout)
        self.Wqkv = nn.Parameter(torch.randn(d_model, 3 * d_model) * 0.02)
        self.Wo = nn.Linear(d_model, d_model, bias=False)
        self.bo = nn.Parameter(torch.zeros(d_model))
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.up_bias = nn.Parameter(torch.zeros(d_hidden))
        self.down = nn.Linear(d_hidden, d_model, bias=False)
        self.down_bias = nn.Parameter(torch.zeros(d_model))
        self.gamma = nn.ParameterList([torch.ones(d_model), torch.ones(d_model)])
        self.beta = nn.ParameterList([torch.zeros(d_model), torch.zeros(d_model)])

    def norm(self, x, n):
        apart = x - x.mean(-1, keepdim=True)
        spread = apart.square().mean(-1, keepdim=True)
        return self.gamma[n] * apart * torch.rsqrt(spread + 1e-5) + self.beta[n]

    def forward(self, x):
        q, k, v = (self.norm(x, 0) @ self.Wqkv).chunk(3, dim=-1)
        x = x + self.Wo(attend(q, k, v, self.num_heads, self.drop)) + self.bo
        inner = self.up(self.norm(x, 1)) + self.up_bias
        inner = inner * 0.5 * (1.0 + torch.erf(inner / math.sqrt(2.0)))
        return x + self.down(inner) + self.down_bias
