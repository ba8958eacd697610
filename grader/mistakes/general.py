"""The engine's table of common mistakes: those that people make in any course with tensors.

A course's own table, ``solutions/mistakes/common.py``, adds mistakes and replaces mistakes of the
same name. The names of variables differ between references, so the changes are patterns of calls.
"""

import re
from textwrap import indent

from grader.mistakes import common

# --- what references have in common ---------------------------------------------------------------

RESULT = re.compile(r"^( *)return (.+?)( *#.*)?$", re.M)
FORWARD = "    def forward("
# The last return of a function with arrays.
LAST_OF_ARRAYS = re.compile(r"\A(def .*?np\.ndarray.*)^( *)return ([^#\n]+)", re.S | re.M)


def returning(new: str) -> dict[str | re.Pattern[str], str]:
    """What comes after `return`, with {} for what is there."""
    return {RESULT: r"\1return " + new.format(r"\2")}


# --- gradients ------------------------------------------------------------------------------------

common(
    "no-gradient", "No gradient flows back to the input",
    hint="Does your result have a grad_fn?",
    breaks=("gradients",),
    change=[{FORWARD: f"    @torch.no_grad()\n{FORWARD}"}, returning("({}).detach()")],
)  # fmt: skip

common(
    "statistics-detached", "A sum, mean or maximum counts as a constant, without a gradient",
    hint="Does that number change when the input changes?",
    breaks=("gradients",),
    change=[
        {re.compile(r"(\.(?:sum|mean|amax|var|std|norm)\([^()]*\))"): r"\1.detach()"},
        {re.compile(r"(torch\.(?:sum|mean|amax|var|std|norm)\([^()]*\))"): r"\1.detach()"},
    ],
)  # fmt: skip

# --- the caller's tensors -------------------------------------------------------------------------

# A module or function up to its first statement, and the name of the first argument.
START_OF_MODULE = re.compile(
    r'(    def forward\(\s*self,\s*(\w+).*?:\n(?:        r?""".*?"""\n+)?)(?=        \S)', re.S
)
START_OF_FUNCTION = re.compile(
    r'\A(def \w+\(\s*(\w+).*?:\n(?:    r?""".*?"""\n+)?)(?=    \S)', re.S
)
# Autograd refuses to change a tensor in place that needs a gradient: the mistake is about others.
ZEROED = r"""callers, \2 = \2, (getattr(\2, "clone", None) or \2.copy)()
if not getattr(callers, "requires_grad", False):
    callers[...] = 0
"""

common(
    "changed-in-place", "The caller's tensor is changed",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
    change=[
        {START_OF_MODULE: rf"\1{indent(ZEROED, 8 * ' ')}"},
        {START_OF_FUNCTION: rf"\1{indent(ZEROED, 4 * ' ')}"},
    ],
)  # fmt: skip

# --- rows of a batch, and large numbers -----------------------------------------------------------

# In a batch of rows of about the same size, hardly any number is so small.
FLUSHED = r"\2 = \2 * (abs(\2) >= 1e-4 * abs(\2).max())" "\n"

common(
    "small-rows-vanish", "Numbers that are small beside the largest of the batch count as zero",
    hint="What is left of a row of small numbers if another row of the batch holds large ones?",
    breaks=("batch",),
    change=[
        {START_OF_MODULE: rf"\1        {FLUSHED}"},
        {START_OF_FUNCTION: rf"\1    {FLUSHED}"},
    ],
)  # fmt: skip

common(
    "not-shifted", "Large numbers overflow, since the maximum is not subtracted",
    hint="What is the exponential of 1000?",
    breaks=("large",),
    change=[
        {re.compile(r"\b(\w+) - \1\.(?:amax|max)\([^()]*\)(?:\.values)?"): r"\1"},
        {re.compile(r"\b(\w+) - (?:largest|maximum|maxima|highest|top|peak|m)\b"): r"\1"},
    ],
)  # fmt: skip

# --- dtypes and shapes ----------------------------------------------------------------------------

common(
    "float32-inside", "The numbers pass through float32 on their way",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change=[
        {LAST_OF_ARRAYS: r"\1\2result = \3\n\2return np.float32(result).astype(result.dtype)"},
        {RESULT: r"\1result = \2\n\1return result.float().to(result.dtype)"},
    ],
)  # fmt: skip

common(
    "returns-float32", "The result is float32, whatever came in",
    hint="Which dtype comes out when float64 goes in?",
    breaks=("dtype",),
    change=returning("({}).float()"),
)  # fmt: skip

common(
    "returns-float64", "The result is float64, whatever was asked for",
    hint="Which dtype should come out, and which one does?",
    breaks=("returns",),
    change=returning("({}).double()"),
)  # fmt: skip

common(
    "squeezed", "Axes of size one disappear",
    hint="Which shape comes out when an axis has size one?",
    breaks=("returns",),
    change=returning("({}).squeeze()"),
)  # fmt: skip

common(
    "transposed", "Rows and columns have changed places",
    hint="Which axis of the result comes first in the statement?",
    change=returning("({}).T"),
)  # fmt: skip

common(
    "nothing-returned", "Nothing is returned",
    hint="What does a Python function give back that has no return?",
    breaks=("returns",),
    change={RESULT: r"\1\2"},
)  # fmt: skip

# --- axes -----------------------------------------------------------------------------------------

common(
    "wrong-axis", "The wrong axis is used",
    hint="Which axis disappears in this line, and which one should?",
    change=[
        {re.compile(r"\bdim=(?:-1|1)\b"): "dim=0"},
        {re.compile(r"\bdim=0\b"): "dim=-1"},
        {re.compile(r"\bdim=-2\b"): "dim=-1"},
        {re.compile(r"\baxis=(?:-1|1)\b"): "axis=0"},
        {re.compile(r"\baxis=0\b"): "axis=-1"},
    ],
)  # fmt: skip

common(
    "no-keepdim", "The totals line up with the wrong axis",
    hint="Does a total of shape (n,) line up with the rows or with the columns?",
    change=[
        {re.compile(r"(dim=[^,()]+), keepdim=True\)"): r"\1)"},
        {re.compile(r"(axis=[^,()]+), keepdims=True\)"): r"\1)"},
    ],
)  # fmt: skip

# --- formulas -------------------------------------------------------------------------------------

common(
    "all-zeros", "The result is zero",
    hint="Which line makes everything vanish?",
    change=returning("0 * {}"),
)  # fmt: skip

common(
    "negated", "The result has the opposite sign",
    hint="What is subtracted from what, and should the result be positive?",
    change=returning("-({})"),
)  # fmt: skip

common(
    "opposite", "True and False have changed places",
    hint="What does True mean in the statement, and what in your result?",
    change=returning("torch.logical_not({})"),
)  # fmt: skip

common(
    "sum-for-mean", "A sum is taken where a mean belongs",
    hint="What happens to this number if there are twice as many elements?",
    change={re.compile(r"\bmean\("): "sum("},
)  # fmt: skip

common(
    "mean-for-sum", "A mean is taken where a sum belongs",
    hint="What happens to this number if there are twice as many elements?",
    change={re.compile(r"\bsum\("): "mean("},
)  # fmt: skip

common(
    "no-root", "The square root is missing",
    hint="Is this number a square, or the length of a side?",
    change=[
        {re.compile(r"torch\.sqrt\("): "("},
        {re.compile(r"\.sqrt\(\)"): ""},
        {re.compile(r"\s*\*\*\s*0\.5\b"): ""},
    ],
)  # fmt: skip

common(
    "sample-variance", "The variance divides by one less than the number of elements",
    hint="By which number do torch's var and std divide unless you say otherwise?",
    change={re.compile(r", (?:unbiased=False|correction=0)\b"): ""},
)  # fmt: skip

common(
    "no-eps", "Nothing keeps the divisor away from zero",
    hint="What is the result for an input in which all numbers are equal?",
    change={re.compile(r" \+ (?:self\.)?eps\b"): ""},
)  # fmt: skip

common(
    "one-step-short", "The loop ends one step too early",
    hint="Which is the last number that range gives?",
    change={re.compile(r"\brange\(([\w.]+)\)"): r"range(\1 - 1)"},
)  # fmt: skip

# --- modules --------------------------------------------------------------------------------------

common(
    "no-super-init", "nn.Module never gets to set itself up",
    hint="Who prepares self to hold parameters, and when?",
    change={"super().__init__()": "pass"},
)  # fmt: skip

common(
    "no-parameters", "Torch finds no weights to train in the module",
    hint="What does list(layer.parameters()) show, and where does torch look for what it shows?",
    change={re.compile(r"nn\.Parameter\("): "("},
)  # fmt: skip

common(
    "bias-missing", "A linear layer has no bias",
    hint="Which of the layers has a bias in the statement?",
    breaks=("weights", "computes"),
    change=[
        {re.compile(r"(nn\.Linear\((?:(?!bias=)[^()])*)\)"): r"\1, bias=False)"},
        {re.compile(r"\bbias=(?:bias|True)\b"): "bias=False"},
    ],
)  # fmt: skip

common(
    "learns-more", "The layer learns a number that the statement does not name",
    hint="Which weights does the statement name, and what does list(layer.parameters()) show?",
    breaks=("weights",),
    change={
        re.compile(r"^( *)super\(\).__init__\(\)$", re.M): (
            r"\g<0>\n\1self.further = nn.Parameter(nn.init.zeros_(nn.Linear(1, 1).bias.data))"
        ),
        **returning("({}) + self.further"),
    },
)  # fmt: skip
