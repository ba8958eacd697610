"""Mistakes that people make in many exercises of this course, beside those of the engine's table.

An exercise lists those that apply to it in its unit's file, and gets the first change that fits its
reference. Where there is none, or none that fits, it brings its own.
"""

import re

from grader.mistakes import common

# --- what references have in common ---------------------------------------------------------------

RESULT = re.compile(r"^( *)return (.+?)( *#.*)?$", re.M)
START = re.compile(r'\A(def \w+\(\s*(\w+).*?"""\n)', re.S)  # of a function, to its docstring's end
FORWARD = "    def forward("
SIZES = re.compile(r"_batch, (?:num_)?tokens, _d_in = x.shape")

# A layer, where it is made and where it is called.
LAYER = re.compile(r"(self\.W_\w+) = nn\.Linear\((.+), bias=\w+\)")
CALL = re.compile(r"(self\.W_\w+)\((\w+)\)")
KEY = re.compile(r"(self\.W_(?:up_)?key)\((\w+)\)")
VALUE = re.compile(r"(self\.W_(?:up_)?value = nn\.Linear\(.+), bias=\w+\)")
OUT = "nn.Linear(d_out, d_out)"

# Attention, whole or in steps.
ATTEND = "scaled_dot_product_attention(queries, keys, values)"
SCORES = "scaled_scores(queries, keys)"
ROOT = re.compile(r"(\w+)\*\*0\.5")
SCALE = re.compile(r" / (\w+\*\*0\.5)")
WEIGHTS = "torch.softmax(attn_scores, dim=-1)"
MIX = "attn_weights @ values"
SPLIT = re.compile(r"split_heads\((self\.\w+\(\w+\)), (self\.\w+)\)")
MERGE = re.compile(r"merge_heads\((.+?)\)")

# Masks: built, put over scores, or both at once.
FUTURE = re.compile(r"causal_mask\((\w+)\)")
FILL = re.compile(r"(\w*scores)\.masked_fill\((~?\w+), -torch\.inf\)")
MASKED = "masked_softmax(attn_scores, mask)"
TRIANGLE = "prefix_sum_matrix(time)"


def returning(new):
    """What comes after `return`, with {} for what is there."""
    return {RESULT: r"\1return " + new.format(r"\2")}


def hiding(new):
    """Masked scores of another kind, made of {0}, the scores, and {1}, the mask."""
    by_mask = new.format("attn_scores", "mask")
    return [{MASKED: f"torch.softmax({by_mask}, dim=-1)"}, {FILL: new.format(r"\1", r"\2")}]


def weighing(new):
    """Weights of another kind, made of {}, the masked scores."""
    masked = new.format("attn_scores.masked_fill(mask, -torch.inf)")
    return [{MASKED: masked}, {WEIGHTS: new.format("attn_scores")}]


# --- what goes in and what comes out --------------------------------------------------------------

common(
    "detached", "Gradients are cut off",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={MIX: "attn_weights.detach() @ values"},
)  # fmt: skip

common(
    "weights-detached", "Queries and keys get no gradient, and never learn",
    hint="Which parameters have a .grad after backward?",
    breaks=("gradients",),
    change=[{MASKED: f"{MASKED}.detach()"}, {WEIGHTS: f"{WEIGHTS}.detach()"}],
)  # fmt: skip

common(
    "layer-read-through-data", "The weights of a layer are read through .data, and never learn",
    hint="Which parameters have a .grad after backward?",
    breaks=("gradients",),
    change={KEY: r"\2 @ \1.weight.data.T"},
)  # fmt: skip

common(
    "clamped", "Scores above a bound count as if they were at the bound",
    hint="Are two large scores, one larger than the other, still told apart?",
)  # fmt: skip

common(
    "input-changed-in-place", "The caller's tensor is changed in place",
    hint="What does the caller find in it after the call?",
    breaks=("unchanged",),
    change=[
        {
            SIZES: r"\g<0>\n        x.transpose_(1, 2)",
            re.compile(r"(self\.W_\w+)\(x\)"): r"\1(x.mT)",
        },
        {"weight.T": "weight.t_()"},
        {
            f"return {ATTEND}": (
                "with torch.no_grad():\n"
                "            x -= x.mean(dim=0)\n"
                f"        return {ATTEND}"
            ),
        },
    ],
)  # fmt: skip

common(
    "changes-its-input", "The caller's tensor is changed",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
    change={"torch.exp(scores)": "scores.exp_()"},
)  # fmt: skip

common(
    "turned-in-place", "The caller's tensor is changed, though all results are right",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
)  # fmt: skip

common(
    "float32-inside", "The numbers pass through float32 on their way",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change=[
        {MASKED: "masked_softmax(attn_scores.float(), mask).to(x.dtype)"},
        {WEIGHTS: "torch.softmax(attn_scores.float(), dim=-1).to(x.dtype)"},
        {START: r"\1    dtype, \2 = \2.dtype, \2.float()\n", **returning("({}).to(dtype)")},
    ],
)  # fmt: skip

common(
    "float32-hard-coded", "float32 is forced upon float64",
    hint="Which dtype goes into each line, and which comes out?",
    breaks=("dtype",),
    change=[
        {SIZES: r"\g<0>\n        x = x.float()"},
        {re.compile("queries = split_heads"): r"x = x.float()\n        \g<0>"},
        {MIX: "attn_weights.float() @ values.float()"},
        {"(queries, keys, values)": "(queries.float(), keys.float(), values.float())"},
    ],
)  # fmt: skip

common(
    "transposed", "Rows and columns have changed places",
    hint="Does a row belong to the token that listens, or to the one that is heard?",
    change=[{re.compile(r"return weights @ (\w+)"): r"return weights.T @ \1"}, returning("({}).T")],
)  # fmt: skip

# --- operations that are not allowed --------------------------------------------------------------

common(
    "calls-torch-attention", "Torch's own attention does the work",
    hint="Which lines would you write if that function did not exist?",
    breaks=("forbidden",),
    change=[
        {"    return scaled_dot_product_attention(": (
            "    return nn.functional.scaled_dot_product_attention("
        )},
        {MIX: f"nn.functional.{ATTEND[:-1]}, is_causal=True)"},
    ],
)  # fmt: skip

common(
    "torch-softmax", "Torch's own softmax does the work",
    hint="Which functions are off limits in this unit?",
    breaks=("forbidden",),
)  # fmt: skip

# --- sums over the past ---------------------------------------------------------------------------

common(
    "one-too-many", "Each token already hears the next one",
    hint="May the first token know anything about the second one?",
    change={TRIANGLE: "torch.tril(torch.ones(time, time), diagonal=1)"},
)  # fmt: skip

common(
    "future-for-past", "Each token hears what comes after it, not before",
    hint="Which token should have no company at all: the first one or the last one?",
    change={TRIANGLE: "torch.triu(torch.ones(time, time))"},
)  # fmt: skip

common(
    "whole-sequence", "Every token hears the whole sequence",
    hint="What keeps the first token from hearing the last one?",
    change={TRIANGLE: "torch.ones(time, time)"},
)  # fmt: skip

common(
    "misses-itself", "The token itself is left out",
    hint="Does token t belong to its own past here?",
    change={TRIANGLE: "torch.tril(torch.ones(time, time), diagonal=-1)"},
)  # fmt: skip

# --- softmax --------------------------------------------------------------------------------------

common(
    "columns-sum-to-one", "Each column sums to one, not each row",
    hint="Which axis should sum to one?",
    change={"dim=-1": "dim=0"},
)  # fmt: skip

common(
    "softmax-over-queries", "Each column sums to one, not each row",
    hint="Each query shares out its attention over the keys: along which axis do these lie?",
    change=[
        {"dim=-1": "dim=-2"},
        {ATTEND: "torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values"},
        {MASKED: "torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=-2)"},
    ],
)  # fmt: skip

common(
    "softmax-over-heads", "The softmax runs over the heads",
    hint="On which axis do the keys stand?",
    change=weighing("torch.softmax({}, dim=1)"),
)  # fmt: skip

common(
    "softmax-over-batch", "The softmax runs over the batch, so sentences share their attention",
    hint="Should one sentence lose weight when another one gains some?",
    breaks=("computes", "batch"),
    change=weighing("torch.softmax({}, dim=0)"),
)  # fmt: skip

common(
    "no-keepdim", "The totals line up with the wrong axis",
    hint="Does a total of shape (n,) line up with the rows or with the columns?",
    change={re.compile(r"(sum\(dim=\S+), keepdim=True\)"): r"\1)"},
)  # fmt: skip

common(
    "whole-matrix", "The whole matrix sums to one, not each row",
    hint="How many distributions are there in the matrix?",
    change={"sum(dim=-1, keepdim=True)": "sum()"},
)  # fmt: skip

common(
    "not-normalised", "The exponentials are never divided by their sum",
    hint="What do the weights add up to?",
    change=[
        {"torch.softmax(scores, dim=-1)": "torch.exp(scores)"},
        {re.compile(r"return positive / totals?"): "return positive"},
    ],
)  # fmt: skip

common(
    "no-exp", "The raw scores are divided by their sum, without exp",
    hint="What if a score is negative?",
    change=[
        {re.compile(r"torch\.exp\((?:scores|shifted)\)"): "scores"},
        {"torch.softmax(scores, dim=-1)": "scores / scores.sum(dim=-1, keepdim=True)"},
    ],
)  # fmt: skip

common(
    "log-softmax", "These are logarithms of weights",
    hint="Can a weight be negative?",
    change=[
        {"torch.softmax(": "torch.log_softmax("},
        {re.compile(r"return positive / (totals?)"): r"return scores - torch.log(\1)"},
    ],
)  # fmt: skip

common(
    "log-weights", "The logarithms of the weights are used",
    hint="Is a weight ever negative?",
    change=[
        {MASKED: "torch.log_softmax(attn_scores.masked_fill(mask, -1e9), dim=-1)"},
        {WEIGHTS: "torch.log_softmax(attn_scores, dim=-1)"},
    ],
)  # fmt: skip

common(
    "no-softmax", "The scores are used as weights, without a softmax",
    hint="What do the weights of a query sum to?",
    change=[
        {MASKED: "attn_scores.masked_fill(mask, 0.0)"},
        {WEIGHTS: "attn_scores"},
        {ATTEND: "(queries @ keys.T / keys.shape[-1] ** 0.5) @ values"},
    ],
)  # fmt: skip

common(
    "all-weights-equal", "All visible tokens count the same, whatever the scores are",
    hint="What goes into the softmax?",
    change={MASKED: "masked_softmax(attn_scores * 0, mask)"},
)  # fmt: skip

common(
    "total-without-gradient", "No gradient flows through the sum",
    hint="Does the sum depend on the scores as well?",
    breaks=("gradients",),
    change={re.compile(r"sum\(dim=[^)]+\)"): r"\g<0>.detach()"},
)  # fmt: skip

common(
    "one-maximum-for-all",
    "One maximum is taken for all sentences and heads, and rows far below it vanish",
    hint="What does exp make of a row that lies 200 below the largest score of another sentence?",
    breaks=("batch", "large"),
    change={
        MASKED: (
            "torch.exp(attn_scores - attn_scores.max()).masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

common(
    "one-maximum-per-head",
    "One maximum is taken for a head in all sentences, and sentences far below it vanish",
    hint="What does exp make of a row that lies 200 below the largest score of another sentence?",
    breaks=("batch",),
    change={
        MASKED: (
            "torch.exp(attn_scores - attn_scores.amax(dim=(0, 2, 3), keepdim=True))\n"
            "        attn_weights = attn_weights.masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

common(
    "one-maximum-per-sentence",
    "One maximum is taken for all heads of a sentence, and heads far below it vanish",
    hint="What does exp make of a row that lies 200 below the largest score of another head?",
    breaks=("large",),
    change={
        MASKED: (
            "torch.exp(attn_scores - attn_scores.amax(dim=(1, 2, 3), keepdim=True))\n"
            "        attn_weights = attn_weights.masked_fill(mask, 0.0)\n"
            "        attn_weights = attn_weights / attn_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

# --- masks: which way round, and what they hide ---------------------------------------------------

common(
    "no-mask", "Nothing hides the future",
    hint="Change the last token: which outputs may change?",
    change={MASKED: WEIGHTS},
)  # fmt: skip

common(
    "mask-opposite",
    "The mask is the wrong way round: it hides what may be seen, and shows the rest",
    hint="What does True mean here: look, or do not look?",
    change=hiding("{0}.masked_fill(~{1}, -torch.inf)"),
)  # fmt: skip

common(
    "mask-opposite-and-zeros",
    "The mask is the wrong way round, and the last token gets nothing but zeros",
    hint="What does True mean here: look, or do not look?",
    change={MASKED: "masked_softmax(attn_scores, ~mask)"},
)  # fmt: skip

common(
    "mask-transposed", "The past is hidden, and the future seen",
    hint="Rows are queries: on which side of the diagonal do the later keys stand?",
    change={MASKED: "masked_softmax(attn_scores, mask.T)"},
)  # fmt: skip

common(
    "sees-one-ahead", "A token can see the one that comes right after it",
    hint="What may the first token know about the second?",
    change=[{"diagonal=1": "diagonal=2"}, {FUTURE: r"torch.ones(\1, \1).triu(2).bool()"}],
)  # fmt: skip

common(
    "hides-itself", "The diagonal is hidden too, so a token cannot see itself",
    hint="May the first token look at anything at all?",
    change=[
        {"diagonal=1": "diagonal=0"},
        {
            FUTURE: r"torch.ones(\1, \1).triu(0).bool()",
            MASKED: "torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=-1)",
        },
    ],
)  # fmt: skip

common(
    "hides-itself-and-fills-zeros",
    "A token cannot see itself, and the first one gets nothing but zeros",
    hint="May the first token look at anything at all?",
    change={FUTURE: r"torch.ones(\1, \1).triu(0).bool()"},
)  # fmt: skip

common(
    "mask-for-one-head", "Only the first head is masked",
    hint="Against which axes of the scores does your mask line up?",
    change=[
        {
            MASKED: (
                "torch.cat([\n"
                "            masked_softmax(attn_scores[:, :1], mask),\n"
                "            attn_scores[:, 1:].softmax(dim=-1),\n"
                "        ], dim=1)"
            ),
        },
        {FILL: r"torch.cat([\1[:, :1].masked_fill(\2, -torch.inf), \1[:, 1:]], dim=1)"},
    ],
)  # fmt: skip

common(
    "mask-on-the-cpu", "The mask is always built on the CPU",
    hint="On which device is the input, and on which the mask?",
    breaks=("device",),
    change=[
        {"mask = self.mask[:num_tokens, :num_tokens]": "mask = causal_mask(num_tokens)"},
        {re.compile(r"\.to\(x\.device\)|, device=x\.device"): ""},
    ],
)  # fmt: skip

# --- masks: what they do to scores ----------------------------------------------------------------

common(
    "mask-thrown-away", "The masked scores are thrown away",
    hint="Does masked_fill change your scores, or hand you new ones?",
    change=[
        {re.compile(r"(\w*scores) = (\1\.masked_fill)"): r"\2"},
        {
            re.compile(r"( +)mask = .+"): r"\g<0>\n\1attn_scores.masked_fill(mask, -torch.inf)",
            MASKED: WEIGHTS,
        },
    ],
    same_as={"no-mask": "either way the scores stay as they were"},
)  # fmt: skip

common(
    "mask-fills-zero", "Hidden scores become zero",
    hint="What does a softmax make of a score of 0?",
    change=hiding("{0}.masked_fill({1}, 0.0)"),
)  # fmt: skip

common(
    "mask-multiplies", "Hidden scores are multiplied by zero",
    hint="What does a softmax make of a score of 0?",
    change=hiding("{0} * ~{1}"),
    same_as={"mask-fills-zero": "a number times 0 is 0"},
)  # fmt: skip

common(
    "mask-fills-tiny", "Hidden scores become a tiny number, not a very low one",
    hint="Where does 1e-9 stand among your scores?",
    change=hiding("{0}.masked_fill({1}, 1e-9)"),
    same_as={
        "mask-fills-zero": "a number so small is 0 to the exponential",
        "mask-multiplies": "a number so small is 0 to the exponential",
    },
)  # fmt: skip

common(
    "mask-fills-minus-one", "Hidden scores become a number that is a score like any other",
    hint="Which score turns into a weight of exactly 0?",
    change=hiding("{0}.masked_fill({1}, -1.0)"),
)  # fmt: skip

common(
    "mask-fills-minus-hundred",
    "Hidden scores become a low number, and visible ones can lie lower",
    hint="Is there a number so small that no score is smaller?",
    change=hiding("{0}.masked_fill({1}, -100.0)"),
)  # fmt: skip

common(
    "mask-fills-infinity", "A query from which keys are hidden gets NaN",
    hint="What stands in such a row just before the softmax: is any of it NaN, or plus infinity?",
    change=hiding("{0}.masked_fill({1}, torch.inf)"),
)  # fmt: skip

common(
    "mask-times-infinity", "Every result is NaN",
    hint="Which step makes the first NaN: 0 times infinity, infinity less infinity, 0 over 0?",
    change=hiding("{0} + {1} * -torch.inf"),
)  # fmt: skip

common(
    "mask-added", "The mask is added to the scores as 0 and 1",
    hint="How far does that move a hidden score, and which way?",
    change=hiding("{0} + {1}.to({0})"),
)  # fmt: skip

common(
    "mask-subtracted", "The mask is taken from the scores as 0 and 1",
    hint="How far does that move a hidden score, and is it enough?",
    change=hiding("{0} - {1}.to({0})"),
)  # fmt: skip

common(
    "mask-after-softmax",
    "Hidden weights are zeroed after the softmax, and the rest no longer makes one",
    hint="What do the weights of a row sum to at the end?",
    change={MASKED: f"{WEIGHTS}.masked_fill(mask, 0.0)"},
)  # fmt: skip

common(
    "in-place-after-softmax", "The softmax's result is overwritten in place",
    hint="What does the softmax need to remember for its gradient?",
    breaks=("gradients",),
    change={
        MASKED: (
            "torch.softmax(attn_scores.masked_fill(mask, -torch.inf), dim=-1)\n"
            "        attn_weights.masked_fill_(mask, 0.0)"
        ),
    },
)  # fmt: skip

# --- the scale ------------------------------------------------------------------------------------

common(
    "no-scale", "The scores are not scaled",
    hint=(
        "The variance of a dot product grows with the length of the vectors: what brings it back "
        "to one?"
    ),
    change=[
        {SCALE: ""},
        {ATTEND: "torch.softmax(queries @ keys.T, dim=-1) @ values"},
        {SCORES: "queries @ keys.transpose(-2, -1)"},
    ],
)  # fmt: skip

common(
    "no-square-root", "The scores are divided by the length, not by its root",
    hint="A variance of d_k is a spread of how much?",
    change=[
        {ROOT: r"\1"},
        {ATTEND: "torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values"},
        {SCORES: "queries @ keys.transpose(-2, -1) / keys.shape[-1]"},
    ],
)  # fmt: skip

common(
    "half-of-the-length", "The scores are divided by half of the length, not by its root",
    hint="How many stars does a power have: ** 0.5 or * 0.5?",
    change=[
        {ROOT: r"(\1 * 0.5)"},
        {ATTEND: "torch.softmax(queries @ keys.T / (keys.shape[-1] * 0.5), dim=-1) @ values"},
        {SCORES: "queries @ keys.transpose(-2, -1) / (keys.shape[-1] * 0.5)"},
    ],
)  # fmt: skip

common(
    "scale-multiplied", "The scores are multiplied by the root, not divided",
    hint="Do longer keys make dot products larger or smaller, and which way must you correct?",
    change=[
        {SCALE: r" * \1"},
        {ATTEND: "torch.softmax(queries @ keys.T * keys.shape[-1] ** 0.5, dim=-1) @ values"},
        {SCORES: "queries @ keys.transpose(-2, -1) * keys.shape[-1] ** 0.5"},
    ],
)  # fmt: skip

common(
    "scaled-twice", "The scores are scaled twice",
    hint="How often do you divide by the root?",
    change={SCALE: r" / \1 / \1"},
)  # fmt: skip

common(
    "scale-after-softmax", "The weights are scaled, and not the scores",
    hint="Should the weights of a query still sum to one?",
    change={
        re.compile(r" / (\w+\*\*0\.5)(.+?softmax\(attn_scores, \S+\))", re.S): r"\2 / \1",
    },
)  # fmt: skip

common(
    "scaled-too-early", "The scores are scaled, and no scale was asked for",
    hint="In which unit does the square root come in?",
    change={"torch.softmax(scores,": "torch.softmax(scores / inputs.shape[-1] ** 0.5,"},
)  # fmt: skip

common(
    "scale-by-number-of-keys", "The scale counts the keys, not their features",
    hint="Over which dimension were the dot products summed?",
    change=[
        {ROOT: "num_tokens**0.5"},
        {ATTEND: "torch.softmax(queries @ keys.T / keys.shape[0] ** 0.5, dim=-1) @ values"},
        {SCORES: "queries @ keys.transpose(-2, -1) / keys.shape[-2] ** 0.5"},
    ],
)  # fmt: skip

common(
    "scale-by-d-in", "The root is taken of the width of the input",
    hint="Over which dimension were the dot products summed?",
    change=[
        {ROOT: "_d_in**0.5"},
        {ATTEND: "torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values"},
    ],
)  # fmt: skip

common(
    "scale-d-out", "The scores are divided by the root of d_out, and not of the width of a head",
    hint="Over how many features does each dot product run?",
    change={ROOT: "(head_dim * self.num_heads) ** 0.5"},
)  # fmt: skip

common(
    "qkv-bias", "Queries, keys and values have a bias",
    hint="What does nn.Linear do when you say nothing about the bias?",
    breaks=("bias",),
)  # fmt: skip

common(
    "scale-num-heads", "The scores are divided by the root of the number of heads",
    hint="What was summed up in a dot product: heads, or features?",
    change={ROOT: "self.num_heads**0.5"},
)  # fmt: skip

common(
    "scale-d-in", "The scores are divided by the root of d_in",
    hint="How long are the vectors that meet in a dot product?",
    change={ROOT: "x.shape[-1] ** 0.5"},
)  # fmt: skip

common(
    "scale-tokens", "The scores are divided by the root of the number of tokens",
    hint="What was summed up in a dot product: tokens, or features?",
    change={ROOT: "tokens**0.5"},
)  # fmt: skip

common(
    "scale-always-two",
    "The scores are always divided by 2, which is right for heads of four features only",
    hint="Where does your divisor come from, and what should it be for heads of 5?",
    change={ROOT: "2"},
)  # fmt: skip

# --- queries, keys and values ---------------------------------------------------------------------

common(
    "queries-and-keys-swapped", "Queries and keys have changed places",
    hint="In row i of the scores, who asks and who answers?",
    change=[
        {"queries @ keys.transpose": "keys @ queries.transpose"},
        {"(queries, keys, values)": "(keys, queries, values)"},
    ],
)  # fmt: skip

common(
    "keys-are-queries", "The keys are the queries once more",
    hint="Which matrix makes a token findable, and do you use it?",
    change=[{"self.W_key(x)": "self.W_query(x)"}],
)  # fmt: skip

common(
    "values-are-keys", "Keys stand where values belong",
    hint="Which of the three carries the message?",
    change={MIX: "attn_weights @ keys"},
)  # fmt: skip

common(
    "keys-mixed", "The keys are mixed, and the values are never used",
    hint="Which projection carries what a token has to say?",
    change={re.compile(r"(self\.W_(?:up_)?)value\((\w+)\)"): r"\1key(\2)"},
)  # fmt: skip

common(
    "keys-are-values", "Queries are compared with values, and there are no keys of their own",
    hint="Which projection makes a token findable, and do you use it?",
    change={re.compile(r"(self\.W_(?:up_)?)key\((\w+)\)"): r"\1value(\2)"},
)  # fmt: skip

common(
    "compares-with-values", "Queries meet the values, and the keys are used for nothing",
    hint="What is a query compared with?",
    change={"queries @ keys.transpose": "queries @ values.transpose"},
    same_as={"keys-are-values": "either way the scores are made of queries and values"},
)  # fmt: skip

common(
    "weights-returned", "The weights are returned, and not what they mix",
    hint="What is mixed by the weights, and in which line?",
    change=[
        {"return self.out_proj(context_vec)": "return attn_weights"},
        {MIX: "attn_weights"},
        {ATTEND: "torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)"},
    ],
)  # fmt: skip

common(
    "weights-returned-too", "The weights are returned along with the mix of values",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change=returning("{}, attn_weights"),
)  # fmt: skip

common(
    "no-attention", "The output layer gets the queries, and no token looks at another",
    hint="Where do the values go?",
    change={MIX: "queries"},
)  # fmt: skip

common(
    "own-value-only", "Every token gets its own value back, and looks at no other",
    hint="What do the weights do in your last steps?",
    change={MIX: "values"},
)  # fmt: skip

common(
    "t-on-a-batch", "On a batch, .T turns all dimensions around",
    hint="Which two dimensions should change places, and which should stay?",
    change={"keys.transpose(-2, -1)": "keys.T"},
)  # fmt: skip

# --- heads ----------------------------------------------------------------------------------------

common(
    "every-nth-feature", "Each head gets every so-many-th feature, and not neighbouring ones",
    hint="Which features of six belong to the first of two heads?",
    change={SPLIT: r"\1.unflatten(-1, (-1, \2)).permute(0, 3, 1, 2)"},
)  # fmt: skip

common(
    "reshaped-into-heads",
    "The tensor is reshaped straight into heads, which mixes tokens with features",
    hint="Follow the first token: where do its last features end up?",
    change={SPLIT: r"\1.reshape(x.shape[0], \2, x.shape[1], -1)"},
)  # fmt: skip

common(
    "reshaped-into-heads-and-back",
    "The tensor is reshaped straight into heads and straight back, without a turn",
    hint="Follow the first token: which features of which tokens does head 0 see?",
    change={
        SPLIT: r"\1.reshape(x.shape[0], \2, x.shape[1], -1)",
        MERGE: r"(\1).reshape(*x.shape[:2], -1)",
    },
)  # fmt: skip

common(
    "values-not-split-alike", "The values are cut into heads in another way than queries and keys",
    hint="Are your three lines that split alike?",
    change={
        re.compile(r"split_heads\((self\.W_(?:up_)?value\(\w+\)), (self\.\w+)\)"): (
            r"\1.reshape(x.shape[0], \2, x.shape[1], -1)"
        ),
    },
)  # fmt: skip

common(
    "merged-without-turning",
    "The heads are flattened where they stand, and tokens get features of others",
    hint="Split, then merge: do you get back what you put in?",
    change={MERGE: r"(\1).reshape(*x.shape[:2], -1)"},
)  # fmt: skip

common(
    "features-interleaved", "The features of the heads are shuffled into one another",
    hint="In a merged token, what comes right after the first feature of head 0?",
    change={MERGE: r"(\1).permute(0, 2, 3, 1).flatten(2)"},
)  # fmt: skip

common(
    "heads-summed", "The heads are added up",
    hint="How wide should a token be afterwards?",
    change={MERGE: r"(\1).sum(dim=1)"},
)  # fmt: skip

common(
    "heads-averaged", "The heads are averaged",
    hint="How wide should a token be afterwards?",
    change={MERGE: r"(\1).mean(dim=1).repeat(1, 1, self.num_heads)"},
)  # fmt: skip

common(
    "first-head-only", "All heads are replaced by the first",
    hint="Where do the features of head 1 go?",
    change={MERGE: r"(\1)[:, 0].repeat(1, 1, self.num_heads)"},
)  # fmt: skip

common(
    "heads-reversed", "The heads come out last first",
    hint="Which features belong to head 0?",
)  # fmt: skip

common(
    "keys-of-the-first-head", "All heads look at the keys of the first one",
    hint="Whose keys does head 1 look at?",
    change={"keys.transpose(-2, -1)": "keys[:, :1].transpose(-2, -1)"},
)  # fmt: skip

common(
    "values-of-the-first-head", "All heads get the values of the first one",
    hint="Whose values does head 1 mix?",
    change={MIX: "attn_weights @ values[:, :1]"},
)  # fmt: skip

# --- layers ---------------------------------------------------------------------------------------

common(
    "made-in-forward", "There are new weights at every call",
    hint="Call the layer twice on the same input: what should happen?",
    change={KEY: r"nn.Linear(\2.shape[-1], \1.out_features, bias=False)(\2)"},
)  # fmt: skip

common(
    "python-list", "The weights hide in a Python list",
    hint="Where does torch look for what a module holds?",
    change={re.compile(r"(self\.W_\w+) = (nn\.Linear\(.+\))"): r"\1 = [\2]", CALL: r"\1[0](\2)"},
    same_as={"plain-tensors": "nothing can be adopted, so no result is ever compared"},
)  # fmt: skip

common(
    "plain-tensors", "Torch finds no weights to train in the module",
    hint="What does list(layer.parameters()) show, and where does torch look for what it shows?",
    change={LAYER: r"\1 = torch.randn(\2)", CALL: r"\2 @ \1"},
)  # fmt: skip

common(
    "bias-left-on", "Biases are trained though nobody asked",
    hint="What does nn.Linear do when you say nothing about the bias?",
    breaks=("bias",),
    change={re.compile(r", bias=\w+\)"): ")"},
)  # fmt: skip

common(
    "bias-by-default", "Without a word on it, there are biases",
    hint="What does the caller get who does not speak of qkv_bias?",
    breaks=("bias",),
    change={"qkv_bias: bool = False": "qkv_bias: bool = True"},
)  # fmt: skip

common(
    "bias-never", "There are never any biases, even when qkv_bias is True",
    hint="Where does qkv_bias arrive?",
    breaks=("bias",),
    change={re.compile("bias=qkv_bias"): "bias=False"},
)  # fmt: skip

common(
    "value-bias-always", "The values have a bias whether asked for or not",
    hint="Does qkv_bias reach all three layers?",
    breaks=("bias",),
    change={VALUE: r"\1)"},
)  # fmt: skip

common(
    "value-bias", "The values have a bias, and nothing else has",
    hint="Do all of your layers have the same setting for the bias?",
    breaks=("bias",),
    change={VALUE: r"\1)"},
)  # fmt: skip

common(
    "layers-turned-around", "The layers take what they should give, and give what they should take",
    hint="In which order does nn.Linear want its two sizes?",
    change={
        re.compile(r"(self\.W_\w+ = nn\.Linear)\((.+?), (.+?), bias"): r"\1(\3, \2, bias",
    },
)  # fmt: skip

common(
    "no-output-layer", "The output layer is missing",
    hint="What comes after the heads are merged?",
    change={f"self.out_proj = {OUT}": "pass", "self.out_proj(context_vec)": "context_vec"},
)  # fmt: skip

common(
    "output-layer-unused", "The output layer is made, and never used",
    hint="Which of your layers does forward call?",
    change={"self.out_proj(context_vec)": "context_vec"},
)  # fmt: skip

common(
    "output-layer-twice", "The output layer is applied twice",
    hint="How often does the last layer come?",
    change={"self.out_proj(context_vec)": "self.out_proj(self.out_proj(context_vec))"},
)  # fmt: skip

common(
    "output-layer-too", "An output layer comes last, and nobody asked for one",
    hint="What stands after the weighted sum of the values in the formula?",
    change=[
        {
            VALUE: r"\g<0>\n        self.out_proj = nn.Linear(d_out, d_out, bias=False)",
            RESULT: r"\1return self.out_proj(\2)",
        },
    ],
)  # fmt: skip

common(
    "output-layer-without-bias", "The output layer has no bias",
    hint="Which of the layers has a bias?",
    breaks=("bias",),
    change={OUT: "nn.Linear(d_out, d_out, bias=False)"},
)  # fmt: skip

common(
    "output-layer-from-d-in", "The output layer expects tokens as wide as the input",
    hint="How wide is a token when the heads are merged?",
    change={OUT: "nn.Linear(d_in, d_out)"},
)  # fmt: skip

common(
    "output-layer-to-d-in", "The output layer makes tokens as wide as the input",
    hint="How wide should a token be in the end?",
    change={OUT: "nn.Linear(d_out, d_in)"},
)  # fmt: skip

common(
    "output-layer-per-head", "Each head has the output layer for itself, so heads never mix",
    hint="How many features should the last layer take in?",
    change={
        OUT: "nn.Linear(d_out // num_heads, d_out // num_heads)",
        "self.out_proj(context_vec)": "context_vec",
        "merge_heads(context_vec)": "merge_heads(self.out_proj(context_vec))",
    },
)  # fmt: skip

common(
    "output-layer-first", "The output layer mixes the values before the heads get them",
    hint="What is it that the last layer mixes?",
    change={
        re.compile(r"self\.W_value\(\w+\)"): r"self.out_proj(\g<0>)",
        "return self.out_proj(context_vec)": "return context_vec",
    },
)  # fmt: skip

common(
    "residual-after-output-layer",
    "What comes out of the heads is added on top of the last layer",
    hint="What is the last step, and does anything come after it?",
    change={"self.out_proj(context_vec)": "context_vec + self.out_proj(context_vec)"},
)  # fmt: skip
