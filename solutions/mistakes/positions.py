"""Known answers of unit 8: mistakes, and right answers in other forms."""

import math

import torch

from grader.mistakes import accepted, common_mistakes, mistake

# --- sinusoidal_positions -------------------------------------------------------------------------

mistake(
    "sinusoidal_positions", "halves-side-by-side",
    "All sines stand in the left half, and all cosines in the right one",
    hint="Which feature stands right beside the sine of pair 0?",
    change={
        "torch.stack([angles.sin(), angles.cos()], dim=-1)": (
            "torch.cat([angles.sin(), angles.cos()], dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "sinusoidal_positions", "cosine-first", "The cosine comes before the sine",
    hint="At position 0, what are sine and cosine, and which of them should come first?",
    change={"[angles.sin(), angles.cos()]": "[angles.cos(), angles.sin()]"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "exponent-without-its-two",
    "The exponent is i / d_model, where it should be 2i / d_model",
    hint="With four features, by how much does pair 1 turn a token?",
    change={"torch.arange(0, d_model, 2)": "torch.arange(d_model // 2)"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "exponent-doubled-twice",
    "The exponent is 4i / d_model: what is 2i already was doubled again",
    hint="With d_model = 6, which numbers come out of your arange: i or 2i?",
    change={"torch.arange(0, d_model, 2) / d_model": "2 * torch.arange(0, d_model, 2) / d_model"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "positions-from-one", "Positions are counted from 1",
    hint="What are the sine and the cosine in row 0 of the example?",
    change={"torch.arange(num_tokens)": "torch.arange(1, num_tokens + 1)"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "multiplied-by-the-power",
    "The angle is multiplied by the power of 10000, not divided by it",
    hint="Which pair should turn fastest, the first or the last?",
    change={"positions[:, None] / 10000**exponents": "positions[:, None] * 10000**exponents"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "sine-everywhere", "Both features of a pair hold the sine",
    hint="What should an odd feature hold?",
    change={"[angles.sin(), angles.cos()]": "[angles.sin(), angles.sin()]"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "base-of-1000", "The base is 1000",
    hint="How many zeros does the number in the formula have?",
    change={"10000": "1000"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "angles-in-degrees", "Angles are taken for degrees",
    hint="Does torch.sin want radians or degrees?",
    change={
        "positions[:, None] / 10000**exponents": (
            "torch.deg2rad(positions[:, None] / 10000**exponents)"
        ),
    },
)  # fmt: skip


@mistake(
    "sinusoidal_positions", "an-angle-for-each-feature",
    "Each feature has an angle of its own, so that sine and cosine are no pair",
    hint="Which two features share an angle?",
)  # fmt: skip
def an_angle_for_each_feature(num_tokens, d_model):
    features = torch.arange(d_model)
    angles = torch.arange(num_tokens)[:, None] / 10000 ** (features / d_model)
    return torch.where(features % 2 == 0, angles.sin(), angles.cos())


mistake(
    "sinusoidal_positions", "turning-backwards",
    "The angles are negative: the sines have the wrong sign",
    hint="Just after position 0, does a sine rise or fall?",
    change={"positions[:, None] / 10000**exponents": "-positions[:, None] / 10000**exponents"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "returns-float64", "The table is float64",
    hint="Which dtype do new tensors have in torch, and which in NumPy?",
    change={"torch.arange(num_tokens)": "torch.arange(num_tokens).double()"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "batch-axis-kept",
    "There is an axis in front for a batch that nobody has",
    hint="How many dimensions should the table have?",
    change={
        "return pairs.reshape(num_tokens, d_model)": "return pairs.reshape(1, num_tokens, d_model)",
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "stacked-along-rows",
    "All sines stand in the left half, and all cosines in the right one",
    hint="Which feature stands right beside the sine of pair 0?",
    change={"dim=-1": "dim=1"},
    same_as={"halves-side-by-side": "the reshape puts one half behind the other"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "stacked-in-front",
    "The table of sines stands above the table of cosines, and rows of both are cut anew",
    hint="Which axis must a pair lie along, so that a reshape brings it side by side?",
    change={"dim=-1": "dim=0"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "cosine-everywhere", "Both features of a pair hold the cosine",
    hint="What should an even feature hold?",
    change={"[angles.sin(), angles.cos()]": "[angles.cos(), angles.cos()]"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "angles-without-waves",
    "The table holds the angles themselves, and no waves",
    hint="How large can a sine become, and how large is the largest number of your table?",
    change={"[angles.sin(), angles.cos()]": "[angles, angles]"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "divided-by-half-the-width",
    "The exponent is divided by half the width: it becomes 4i / d_model",
    hint="How does the exponent of the last pair compare to 1?",
    change={
        "torch.arange(0, d_model, 2) / d_model": "torch.arange(0, d_model, 2) / (d_model // 2)",
    },
    same_as={"exponent-doubled-twice": "half the divisor is twice the exponent"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "ends-at-the-base",
    "The speeds are spread so that the last pair has the exponent 1",
    hint="Does 2i / d_model ever arrive at 1?",
    change={
        "torch.arange(0, d_model, 2) / d_model": "torch.arange(d_model // 2) / (d_model // 2 - 1)",
    },
)  # fmt: skip

mistake(
    "sinusoidal_positions", "base-of-100000", "The base is 100000",
    hint="How many zeros does the number in the formula have?",
    change={"10000": "100000"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "wrong-logarithm",
    "A power of e is taken with a logarithm to the base 10",
    hint="exp undoes one logarithm: which?",
    change={
        "positions[:, None] / 10000**exponents": (
            "positions[:, None] * torch.exp(-exponents * torch.tensor(10000.0).log10())"
        ),
    },
)  # fmt: skip

mistake(
    "sinusoidal_positions", "base-times-exponent",
    "10000 is multiplied by the exponent, not raised to it",
    hint="What is 10000 to the power of 0, and what is 10000 times 0?",
    change={"10000**exponents": "(10000 * exponents)"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "no-speeds", "All pairs turn at the same speed",
    hint="What is 2 // 8, and what is 2 / 8?",
    change={"torch.arange(0, d_model, 2) / d_model": "torch.arange(0, d_model, 2) // d_model"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "slowest-first", "The slowest pair comes first",
    hint="Which pair should turn by one radian a token?",
    change={"10000**exponents": "10000 ** exponents.flip(0)"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "positions-as-fractions",
    "Positions are fractions of the length, so that a longer table has other rows",
    hint="Should row 3 change when the sentence gets longer?",
    change={"torch.arange(num_tokens)": "torch.arange(num_tokens) / num_tokens"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "angles-made-degrees",
    "Angles are turned into degrees before torch sees them",
    hint="Does torch.sin want radians or degrees?",
    change={
        "positions[:, None] / 10000**exponents": (
            "torch.rad2deg(positions[:, None] / 10000**exponents)"
        ),
    },
)  # fmt: skip

mistake(
    "sinusoidal_positions", "length-for-width", "The exponent is divided by the number of tokens",
    hint="Does the speed of a pair depend on how long the sentence is?",
    change={"torch.arange(0, d_model, 2) / d_model": "torch.arange(0, d_model, 2) / num_tokens"},
)  # fmt: skip


@mistake(
    "sinusoidal_positions", "an-angle-for-each-feature-doubled",
    "Each feature has an angle of its own, with twice its number in the exponent",
    hint="In the formula, i counts pairs: which i do features 4 and 5 have?",
)  # fmt: skip
def an_angle_for_each_feature_doubled(num_tokens, d_model):
    table = torch.zeros(num_tokens, d_model)
    for position in range(num_tokens):
        for feature in range(d_model):
            angle = position / 10000 ** (2 * feature / d_model)
            table[position, feature] = math.cos(angle) if feature % 2 else math.sin(angle)
    return table


@mistake(
    "sinusoidal_positions", "waves-by-row",
    "Even rows hold sines and odd rows cosines, where it should be features",
    hint="Does 2i in the formula number a position or a feature?",
)  # fmt: skip
def waves_by_row(num_tokens, d_model):
    rows = torch.arange(num_tokens)[:, None]
    exponents = torch.arange(0, d_model, 2).repeat_interleave(2) / d_model
    angles = rows / 10000**exponents
    return torch.where(rows % 2 == 0, angles.sin(), angles.cos())


mistake(
    "sinusoidal_positions", "table-left-empty", "The table is still full of zeros",
    hint="What of your waves arrives in the table that you return?",
    change={"return pairs.reshape(num_tokens, d_model)": "return torch.zeros(num_tokens, d_model)"},
)  # fmt: skip

mistake(
    "sinusoidal_positions", "transposed", "Features go down and positions across",
    hint="Which comes first in the shape that the statement gives?",
    change={
        "return pairs.reshape(num_tokens, d_model)": "return pairs.reshape(num_tokens, d_model).T",
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "pairs-not-flattened", "Pairs are still an axis of their own",
    hint="How many dimensions should the table have?",
    change={"return pairs.reshape(num_tokens, d_model)": "return pairs"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "axes-squeezed", common="squeezed",
    hint="Which shape comes out when there is one token only?",
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "single-pair-squeezed",
    "The axis of the pairs is lost when there is only one",
    hint="Which shape do your speeds have when d_model is 2?",
    change={
        "positions[:, None] / 10000**exponents": (
            "torch.outer(positions, (1 / 10000**exponents).squeeze())"
        ),
    },
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "table-too-short",
    "The table is made for 64 positions, and longer sentences find nothing there",
    hint="How many rows should there be for 100 tokens?",
    change={
        "torch.arange(num_tokens)": "torch.arange(64)",
        "return pairs.reshape(num_tokens, d_model)": (
            "return pairs.reshape(64, d_model)[:num_tokens]"
        ),
    },
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "sinusoidal_positions", "starts-over", "After 64 tokens the positions start over at 0",
    hint="Should two tokens of one sentence have the same row?",
    change={"torch.arange(num_tokens)": "torch.arange(num_tokens) % 64"},
    breaks=("sizes",),
)  # fmt: skip


@accepted(
    "sinusoidal_positions", "columns-filled", "Even and odd columns of an empty table are filled"
)
def fill_columns(seq_len, d_model):
    pe = torch.zeros(seq_len, d_model)
    position = torch.arange(0, seq_len, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


@accepted("sinusoidal_positions", "two-loops", "Two loops and plain Python numbers")
def fill_number_by_number(num_tokens, d_model):
    table = torch.empty(num_tokens, d_model)
    for p in range(num_tokens):
        for i in range(d_model // 2):
            angle = p / 10000 ** (2 * i / d_model)
            table[p, 2 * i] = math.sin(angle)
            table[p, 2 * i + 1] = math.cos(angle)
    return table


@accepted("sinusoidal_positions", "lists", "Nested lists of Python numbers")
def table_from_lists(n, d):
    def entry(p, j):
        wave = math.cos if j % 2 else math.sin
        return wave(p / 10000 ** ((j - j % 2) / d))

    return torch.tensor([[entry(p, j) for j in range(d)] for p in range(n)])


@accepted("sinusoidal_positions", "outer-product", "An outer product, and the pairs flattened")
def table_by_outer_product(num_tokens, d_model):
    speeds = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
    angles = torch.outer(torch.arange(num_tokens).float(), speeds)
    return torch.stack((torch.sin(angles), torch.cos(angles)), dim=2).flatten(1)


@accepted("sinusoidal_positions", "shifted-sine", "A cosine is a sine a quarter turn ahead")
def table_by_a_shifted_sine(num_tokens, d_model):
    features = torch.arange(d_model)
    exponents = 2 * (features // 2) / d_model
    angles = torch.arange(num_tokens).unsqueeze(-1) / torch.pow(10000, exponents)
    return torch.sin(angles + (features % 2) * (math.pi / 2))


@accepted(
    "sinusoidal_positions", "chosen-by-where", "Both waves everywhere, and one of them chosen"
)
def table_by_choice(num_tokens, d_model):
    columns = torch.arange(d_model)
    even = columns - columns % 2
    angles = torch.arange(num_tokens)[:, None] * 10000.0 ** (-even / d_model)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


@accepted("sinusoidal_positions", "complex-numbers", "Complex numbers on the unit circle")
def table_by_complex_numbers(num_tokens, d_model):
    exponents = torch.arange(d_model // 2) * 2 / d_model
    angles = torch.arange(num_tokens)[:, None] / 10000**exponents
    turns = torch.view_as_real(torch.polar(torch.ones_like(angles), angles))
    return turns.flip(-1).reshape(num_tokens, -1)


@accepted("sinusoidal_positions", "float64-inside", "Computed in float64, and cast at the end")
def table_by_float64(num_tokens, d_model):
    p = torch.arange(num_tokens, dtype=torch.float64)[:, None]
    angles = p / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.zeros(num_tokens, d_model, dtype=torch.float64)
    table[:, ::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table.float()


@accepted(
    "sinusoidal_positions", "halves-interleaved", "Halves side by side, put in turn by an index"
)
def table_by_interleaving(num_tokens, d_model):
    half = d_model // 2
    angles = torch.arange(num_tokens)[:, None] / 10000 ** (torch.arange(half) / half)
    halves = torch.cat([angles.sin(), angles.cos()], dim=-1)
    order = torch.arange(d_model).view(2, half).T.reshape(-1)
    return halves[:, order]


@accepted("sinusoidal_positions", "longer-table", "A table made longer than needed, and cut")
def table_cut_from_a_longer_one(num_tokens, d_model):
    angles = torch.arange(max(num_tokens, 512))[:, None] / 10000 ** (
        torch.arange(0, d_model, 2) / d_model
    )
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:num_tokens]


# --- apply_rope -----------------------------------------------------------------------------------

mistake(
    "apply_rope", "half-split-pairs",
    "Feature i is paired with feature i + d/2, and not with its neighbour",
    hint="Which two features make pair 0 when d is 8?",
    change={
        "x[..., 0::2]": "x[..., : d // 2]",
        "x[..., 1::2]": "x[..., d // 2 :]",
        "torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)": (
            "torch.cat([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "written-to-halves",
    "Pairs are read from neighbours, and written to the two halves of a token",
    hint=(
        "Does each pair come back to the places it was taken from? Is it cat or stack that brings "
        "neighbours together?"
    ),
    change={
        "torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)": (
            "torch.cat([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "turned-backwards", "Pairs are turned clockwise: the angle has the wrong sign",
    hint="Turn (1, 0) by a quarter of a circle: where should it point?",
    change={"positions[:, None] * speeds": "-positions[:, None] * speeds"},
)  # fmt: skip

mistake(
    "apply_rope", "positions-ignored",
    "The positions have no effect: tokens are always counted from 0",
    hint="Where does your code use positions?",
    change={"positions[:, None] * speeds": "torch.arange(x.shape[-2])[:, None] * speeds"},
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "theta-ignored", "theta has no effect: the base is always 10000",
    hint="Where does your code use theta?",
    change={"theta**-exponents": "10000.0**-exponents"},
)  # fmt: skip

mistake(
    "apply_rope", "exponent-without-its-two", "The exponent is i / d, where it should be 2i / d",
    hint="With four features, by how much does pair 1 turn a position?",
    change={
        "torch.arange(0, d, 2, dtype=x.dtype, device=x.device)": (
            "torch.arange(d // 2, dtype=x.dtype, device=x.device)"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "exponent-doubled-twice",
    "The exponent is 4i / d: what is 2i already was doubled again",
    hint="With d = 6, which numbers come out of your arange: i or 2i?",
    change={
        "torch.arange(0, d, 2, dtype=x.dtype, device=x.device)": (
            "2 * torch.arange(0, d, 2, dtype=x.dtype, device=x.device)"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "positions-from-one", "Positions are counted one too high",
    hint="What should happen to a token at position 0?",
    change={"positions[:, None] * speeds": "(positions + 1)[:, None] * speeds"},
)  # fmt: skip

mistake(
    "apply_rope", "first-sign-lost", "The minus in the first of the two features is a plus",
    hint="Is your result as long as what came in?",
    change={
        "[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": "[x0 * cos + x1 * sin, x0 * sin + x1 * cos]",
    },
)  # fmt: skip

mistake(
    "apply_rope", "exponent-positive",
    "The exponent has the wrong sign: later pairs turn faster, and not slower",
    hint="Which pair should turn fastest, the first or the last?",
    change={"theta**-exponents": "theta**exponents"},
)  # fmt: skip

mistake(
    "apply_rope", "angles-in-float32", "In float64 the angles have only the digits of float32",
    hint="Which dtype does torch.arange have, when you say nothing?",
    change={"dtype=x.dtype, ": ""},
    breaks=("dtype",),
)  # fmt: skip

mistake(
    "apply_rope", "input-changed-in-place", "A tensor of the caller is changed in place",
    hint="What does the caller find in x and in positions after the call?",
    change={
        "torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)": (
            "torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)\n    "
            "x.copy_(pairs.reshape(x.shape))"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip

mistake(
    "apply_rope", "no-gradient", "No gradient flows back to x",
    hint="Does your result have a grad_fn?",
    change={"    d = x.shape[-1]": "    x = x.detach()\n    d = x.shape[-1]"},
    breaks=("gradients",),
)  # fmt: skip

mistake(
    "apply_rope", "not-turned", "x comes back as it was",
    hint="Which line of yours makes the result depend on the positions?",
    change={"return pairs.reshape(x.shape)": "return x"},
)  # fmt: skip

mistake(
    "apply_rope", "zeros", "Everything comes back as zero",
    hint="How long should a pair be after it was turned?",
    change={"return pairs.reshape(x.shape)": "return torch.zeros_like(x)"},
)  # fmt: skip

mistake(
    "apply_rope", "read-from-halves",
    "Pairs are read from the two halves of a token, and written to neighbours",
    hint="Does each pair come back to the places it was taken from?",
    change={
        "x[..., 0::2]": "x[..., : d // 2]",
        "x[..., 1::2]": "x[..., d // 2 :]",
    },
)  # fmt: skip

mistake(
    "apply_rope", "stacked-before-the-pairs",
    "Pairs are read from neighbours, and written to the two halves of a token",
    hint="Does each pair come back to the places it was taken from?",
    change={"+ x1 * cos], dim=-1": "+ x1 * cos], dim=-2"},
    same_as={"written-to-halves": "the reshape puts one half behind the other"},
)  # fmt: skip

mistake(
    "apply_rope", "halves-turned-with-the-angles-of-neighbours",
    "Features are paired with those d/2 away, and angles with neighbours",
    hint=(
        "For each feature: whose partner is it, and whose angle has it? Do both say the same pair?"
    ),
    change={
        "angles.cos(), angles.sin()": (
            "angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)"
        ),
        "return pairs.reshape(x.shape)": (
            "return x * cos + torch.cat([-x[..., d // 2 :], x[..., : d // 2]], dim=-1) * sin"
        ),
        "    pairs = torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)\n": "",
    },
)  # fmt: skip

mistake(
    "apply_rope", "neighbours-turned-with-the-angles-of-halves",
    "Features are paired with neighbours, and angles with those d/2 away",
    hint=(
        "For each feature: whose partner is it, and whose angle has it? Do both say the same pair?"
    ),
    change={
        "cos, sin = angles.cos(), angles.sin()": (
            "angles = torch.cat([angles, angles], dim=-1)\n    cos, sin = angles.cos(), "
            "angles.sin()"
        ),
        "return pairs.reshape(x.shape)": (
            "return x * cos + torch.stack([-x1, x0], dim=-1).reshape(x.shape) * sin"
        ),
        "    pairs = torch.stack([x0 * cos - x1 * sin, x0 * sin + x1 * cos], dim=-1)\n": "",
    },
)  # fmt: skip

mistake(
    "apply_rope", "second-sign-turned", "The sine in the second of the two features has a minus",
    hint="Is your result as long as what came in?",
    change={
        "[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": "[x0 * cos - x1 * sin, x1 * cos - x0 * sin]",
    },
)  # fmt: skip

mistake(
    "apply_rope", "mirrored",
    "The second feature of each pair has the wrong sign: this mirrors, and does not turn",
    hint="At position 0, which features of x have changed?",
    change={
        "[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": (
            "[x0 * cos - x1 * sin, -(x0 * sin + x1 * cos)]"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "pair-members-swapped", "The two features of each pair have changed places",
    hint="At position 0, which features of x have changed?",
    change={
        "[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": "[x0 * sin + x1 * cos, x0 * cos - x1 * sin]",
    },
)  # fmt: skip

mistake(
    "apply_rope", "sine-for-cosine", "Sine and cosine have changed places",
    hint="What are the sine and the cosine of 0, and what should happen to a pair at position 0?",
    change={"angles.cos(), angles.sin()": "angles.sin(), angles.cos()"},
)  # fmt: skip

mistake(
    "apply_rope", "cosine-only",
    "Each feature is multiplied by a cosine, and nothing of its partner is added",
    hint="Turn (1, 0) by a quarter of a circle: is there anything left?",
    change={"[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": "[x0 * cos, x1 * cos]"},
)  # fmt: skip

mistake(
    "apply_rope", "waves-added", "Waves are added to x, and x is not turned",
    hint="What happens to a token of zeros, when it is turned?",
    change={"[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": "[x0 + sin, x1 + cos]"},
)  # fmt: skip

mistake(
    "apply_rope", "waves-multiplied",
    "Features are multiplied by sines and cosines in turn, and pairs never meet",
    hint="Which two features make the first feature of a turned pair?",
    change={"[x0 * cos - x1 * sin, x0 * sin + x1 * cos]": "[x0 * cos, x1 * sin]"},
)  # fmt: skip


@mistake(
    "apply_rope", "second-from-the-turned-first",
    "The second feature is made of the first one after it was turned",
    hint="When you compute the second feature, is the first one still what it was?",
)  # fmt: skip
def turned_one_after_the_other(x, positions, theta=10000.0):
    d = x.shape[-1]
    speeds = theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = positions[:, None] * speeds
    out = x.clone()
    out[..., 0::2] = out[..., 0::2] * angles.cos() - out[..., 1::2] * angles.sin()
    out[..., 1::2] = out[..., 0::2] * angles.sin() + out[..., 1::2] * angles.cos()
    return out


mistake(
    "apply_rope", "divided-by-half-the-width",
    "The exponent is divided by half the width: it becomes 4i / d",
    hint="How does the exponent of the last pair compare to 1?",
    change={"device=x.device) / d": "device=x.device) / (d // 2)"},
    same_as={"exponent-doubled-twice": "half the divisor is twice the exponent"},
)  # fmt: skip

mistake(
    "apply_rope", "pairs-counted-from-one",
    "Pairs are counted from 1, so that the first is too slow",
    hint="By how much should pair 0 turn a position?",
    change={
        "torch.arange(0, d, 2, dtype=x.dtype, device=x.device)": (
            "torch.arange(2, d + 2, 2, dtype=x.dtype, device=x.device)"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "ends-at-theta", "The speeds are spread so that the last pair has the exponent 1",
    hint="Does 2i / d ever arrive at 1?",
    change={"device=x.device) / d": "device=x.device) / max(d - 2, 1)"},
)  # fmt: skip

mistake(
    "apply_rope", "wrong-logarithm", "A power of e is taken with a logarithm to the base 10",
    hint="exp undoes one logarithm: which?",
    change={"theta**-exponents": "torch.exp(-exponents * torch.tensor(theta).log10())"},
)  # fmt: skip

mistake(
    "apply_rope", "no-speeds", "All pairs turn at the same speed",
    hint="What tells pair 0 from pair 1 in your angles?",
    change={"theta**-exponents": "torch.ones_like(exponents)"},
)  # fmt: skip

mistake(
    "apply_rope", "slowest-first", "The slowest pair comes first",
    hint="Which pair should turn by one radian a position?",
    change={"theta**-exponents": "(theta**-exponents).flip(0)"},
)  # fmt: skip

mistake(
    "apply_rope", "theta-as-factor", "theta is multiplied with the speeds of base 10000",
    hint="For which theta is theta^(-2i / d) right in your code?",
    change={"theta**-exponents": "(theta / 10000.0) * 10000.0**-exponents"},
)  # fmt: skip

mistake(
    "apply_rope", "positions-from-the-first",
    "Positions are counted from the first one of the sentence",
    hint="What if the only token has position 23?",
    change={"positions[:, None] * speeds": "(positions - positions[0])[:, None] * speeds"},
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "positions-from-the-lowest",
    "Positions are counted from the lowest one of the sentence",
    hint="What if the only token has position 23?",
    change={"positions[:, None] * speeds": "(positions - positions.min())[:, None] * speeds"},
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "positions-sorted", "Positions are sorted, and tokens get those of others",
    hint="Which position belongs to the first token?",
    change={"positions[:, None] * speeds": "positions.sort().values[:, None] * speeds"},
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "start-for-positions",
    "Only the first position is used, and the others are counted on from it",
    hint="Do the positions have to be neighbours?",
    change={
        "positions[:, None] * speeds": (
            "(positions[0] + torch.arange(x.shape[-2]))[:, None] * speeds"
        ),
    },
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "positions-as-fractions",
    "Positions are divided by their number, so that the angles are too small",
    hint="Should a token turn less when the sentence is longer?",
    change={"positions[:, None] * speeds": "positions[:, None] / len(positions) * speeds"},
)  # fmt: skip

mistake(
    "apply_rope", "angles-in-degrees", "Angles are taken for degrees",
    hint="Does torch.sin want radians or degrees?",
    change={"positions[:, None] * speeds": "torch.deg2rad(positions[:, None] * speeds)"},
)  # fmt: skip

mistake(
    "apply_rope", "only-the-first-pair", "Only the first pair is turned",
    hint="What happens to features 2 and 3?",
    change={
        "cos, sin = angles.cos(), angles.sin()": (
            "angles = angles * (exponents == 0)\n    cos, sin = angles.cos(), angles.sin()"
        ),
    },
)  # fmt: skip

mistake(
    "apply_rope", "only-half-of-the-features", "Only the first half of the features is turned",
    hint="What happens to the last pair?",
    change={"positions[:, None] * speeds": "positions[:, None] * speeds * (exponents < 0.5)"},
)  # fmt: skip

mistake(
    "apply_rope", "first-token-for-all", "All tokens are turned by the angle of the first one",
    hint="Which angle belongs to the second token?",
    change={"positions[:, None] * speeds": "positions[:1, None] * speeds"},
)  # fmt: skip

mistake(
    "apply_rope", "position-of-the-batch-row",
    "Each batch row has a position, where each token should have one",
    hint="Along which axis of x do the positions lie?",
    change={
        "positions[:, None] * speeds": (
            "positions[: x.shape[0]].reshape(-1, *[1] * (x.dim() - 1)) * speeds"
        ),
    },
    breaks=("computes", "leading"),
)  # fmt: skip

mistake(
    "apply_rope", "angles-transposed", "The table of angles has pairs down and tokens across",
    hint="Which shape must the angles have, to line up with (..., tokens, d / 2)?",
    change={"positions[:, None] * speeds": "positions * speeds[:, None]"},
)  # fmt: skip

mistake(
    "apply_rope", "heads-behind-tokens", "The angles are made for heads behind the tokens",
    hint="Which dimension of x stands right before d: tokens or heads?",
    change={"positions[:, None] * speeds": "positions[:, None, None] * speeds"},
    breaks=("leading",),
)  # fmt: skip

mistake(
    "apply_rope", "four-dimensions-only", "Only four dimensions fit, and x may have any number",
    hint="Which shapes does the statement allow in front of tokens?",
    change={"d = x.shape[-1]": "_batch, _heads, _tokens, d = x.shape"},
    breaks=("leading",),
)  # fmt: skip

mistake(
    "apply_rope", "three-dimensions-only", "Only three dimensions fit, and x may have any number",
    hint="Which shapes does the statement allow in front of tokens?",
    change={"d = x.shape[-1]": "_batch, _tokens, d = x.shape"},
    breaks=("leading",),
)  # fmt: skip

mistake(
    "apply_rope", "table-as-long-as-x",
    "Angles are made for as many positions as there are tokens, and later ones are missing",
    hint="How far can a position lie beyond the number of tokens?",
    change={
        "positions[:, None] * speeds": "(torch.arange(x.shape[-2])[:, None] * speeds)[positions]",
    },
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "table-too-short", "Angles are made for 64 positions, and later ones are missing",
    hint="What happens at position 100?",
    change={"positions[:, None] * speeds": "(torch.arange(64)[:, None] * speeds)[positions]"},
    breaks=("positions",),
)  # fmt: skip

mistake(
    "apply_rope", "positions-changed-in-place", "A tensor of the caller is changed in place",
    hint="What does the caller find in x and in positions after the call?",
    change={"positions[:, None] * speeds": "positions.unsqueeze_(1) * speeds"},
    same_as={
        "input-changed-in-place": (
            "the results are right either way, and the test says which argument it was"
        ),
    },
    breaks=("unchanged",),
)  # fmt: skip

mistake(
    "apply_rope", "gradient-through-one-half", "The second feature of each pair has no gradient",
    hint="Which parts of x does a gradient have to find its way back to?",
    change={"x[..., 1::2]": "x[..., 1::2].detach()"},
    breaks=("gradients",),
)  # fmt: skip


mistake(
    "apply_rope", "speeds-in-float32", "The speeds of the pairs have the digits of float32",
    hint="Which digits does a root of theta lose in float32?",
    breaks=("dtype",),
    change={
        "angles = positions[:, None] * speeds": (
            "angles = positions[:, None].to(x.dtype) / theta ** (torch.arange(0, d, 2) / d)"
        ),
    },
    same_as={"angles-in-float32": "both lose digits"},
)  # fmt: skip


@mistake(
    "apply_rope", "detour-over-float32", "In float64 the result has only the digits of float32",
    hint="Which dtype has x between its first line and its last?",
    breaks=("dtype",),
)  # fmt: skip
def rope_by_a_detour(x, positions, theta=10000.0):
    d = x.size(-1)
    freqs = 1.0 / (theta ** (torch.arange(0, d, 2).float() / d))
    freqs = torch.outer(positions.float(), freqs)
    turns = torch.polar(torch.ones_like(freqs), freqs)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


common_mistakes("apply_rope", "returns-float32")

mistake(
    "apply_rope", "returns-float64", "The result is float64, whatever came in",
    hint="Which dtype comes out when float32 goes in?",
    change={
        "torch.arange(0, d, 2, dtype=x.dtype, device=x.device)": (
            "torch.arange(0, d, 2, dtype=torch.float64, device=x.device)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "apply_rope", "axes-squeezed", common="squeezed",
    hint="Which shape comes out when there is one token only?",
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "apply_rope", "single-pair-squeezed", "The axis of the pairs is lost when there is only one",
    hint="Which shape do your speeds have when d is 2?",
    change={"positions[:, None] * speeds": "torch.outer(positions, speeds.squeeze())"},
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "apply_rope", "pairs-not-flattened", "Pairs are still an axis of their own",
    hint="Which shape does the statement promise?",
    change={"return pairs.reshape(x.shape)": "return pairs"},
    breaks=("returns",),
)  # fmt: skip


@accepted("apply_rope", "complex-numbers", "Pairs are complex numbers")
def rope_by_complex_numbers(x, positions, theta=10000.0):
    d = x.shape[-1]
    freqs = theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.outer(positions.to(x.dtype), freqs)
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2)


@accepted("apply_rope", "rotated-partners", "x times cosines, plus its partners times sines")
def rope_by_partners(q, pos, base=10000.0):
    dim = q.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(0, dim, 2, device=q.device).to(q.dtype) / dim)
    angles = torch.einsum("t,f->tf", pos.to(q.dtype), inv_freq).repeat_interleave(2, dim=-1)
    partners = torch.stack((-q[..., 1::2], q[..., ::2]), dim=-1).flatten(-2)
    return q * angles.cos() + partners * angles.sin()


@accepted(
    "apply_rope", "halves-there-and-back", "Halves are turned, and neighbours put together again"
)
def rope_by_halves(x, positions, theta=10000.0):
    d = x.shape[-1]
    split = torch.cat([x[..., 0::2], x[..., 1::2]], dim=-1)
    angles = positions.unsqueeze(-1) * theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    cos, sin = torch.cat([angles.cos()] * 2, dim=-1), torch.cat([angles.sin()] * 2, dim=-1)
    turned = split * cos + torch.cat([-split[..., d // 2 :], split[..., : d // 2]], dim=-1) * sin
    return turned.unflatten(-1, (2, d // 2)).transpose(-1, -2).flatten(-2)


@accepted("apply_rope", "columns-filled", "Even and odd columns of an empty tensor are filled")
def rope_by_columns(x, positions, theta=10000.0):
    half = x.shape[-1] // 2
    angles = positions.view(-1, 1) / theta ** (torch.arange(half, dtype=x.dtype) / half)
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * angles.cos() - x[..., 1::2] * angles.sin()
    out[..., 1::2] = x[..., 0::2] * angles.sin() + x[..., 1::2] * angles.cos()
    return out


@accepted("apply_rope", "two-loops", "Two loops and plain Python numbers")
def rope_by_loops(x, positions, theta=10000.0):
    d = x.shape[-1]
    rows = []
    for t, p in enumerate(positions.tolist()):
        row = []
        for i in range(d // 2):
            a = p * theta ** (-2 * i / d)
            x0, x1 = x[..., t, 2 * i], x[..., t, 2 * i + 1]
            row += [x0 * math.cos(a) - x1 * math.sin(a), x0 * math.sin(a) + x1 * math.cos(a)]
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


@accepted("apply_rope", "rotation-matrices", "A rotation matrix for each token")
def rope_by_matrices(x, positions, theta=10000.0):
    d = x.shape[-1]
    matrices = torch.zeros(len(positions), d, d, dtype=x.dtype)
    angles = positions[:, None] * theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    even = torch.arange(0, d, 2)
    matrices[:, even, even] = matrices[:, even + 1, even + 1] = angles.cos()
    matrices[:, even, even + 1] = -angles.sin()
    matrices[:, even + 1, even] = angles.sin()
    return torch.einsum("tij,...tj->...ti", matrices, x)


@accepted("apply_rope", "small-matrices", "A matrix of two by two for each token and pair")
def rope_by_small_matrices(x, positions, theta=10000.0):
    pairs = x.unflatten(-1, (-1, 2)).unsqueeze(-1)
    exponents = torch.arange(pairs.shape[-3], dtype=x.dtype) / pairs.shape[-3]
    angles = positions[:, None] * torch.pow(theta, -exponents)
    cos, sin = torch.cos(angles), torch.sin(angles)
    turns = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    return (turns @ pairs).squeeze(-1).flatten(-2)


@accepted(
    "apply_rope",
    "table-by-position",
    "A table of all positions up to the last, and rows picked from it",
)
def rope_by_table(x, positions, theta=10000.0):
    d = x.shape[-1]
    speeds = torch.exp(-math.log(theta) * torch.arange(0, d, 2, dtype=x.dtype) / d)
    table = torch.arange(int(positions.max()) + 1, dtype=x.dtype)[:, None] * speeds
    cos, sin = table.cos()[positions], table.sin()[positions]
    even, odd = x.unflatten(-1, (d // 2, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


@accepted("apply_rope", "float64-inside", "Angles in float64, cast to the dtype of x")
def rope_by_float64(x, positions, theta=10000.0):
    d = x.shape[-1]
    angles = positions.double()[:, None] / theta ** (torch.arange(0, d, 2).double() / d)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    x0, x1 = x[..., ::2], x[..., 1::2]
    return torch.stack([x0 * cos - x1 * sin, x1 * cos + x0 * sin], dim=-1).view_as(x)


@accepted("apply_rope", "pair-by-pair", "A loop over pairs")
def rope_pair_by_pair(x, positions, theta=10000.0):
    d, features = x.shape[-1], []
    for i in range(0, d, 2):
        a = positions.to(x.dtype) * theta ** (-i / d)
        features.append(x[..., i] * a.cos() - x[..., i + 1] * a.sin())
        features.append(x[..., i] * a.sin() + x[..., i + 1] * a.cos())
    return torch.stack(features, dim=-1)


@accepted("apply_rope", "clone-changed", "A copy of x is changed in place")
def rope_on_a_copy(x, positions, theta=10000.0):
    d = x.shape[-1]
    angles = positions[:, None] * theta ** (torch.arange(0, d, 2, dtype=x.dtype).neg() / d)
    x0, x1, out = x[..., 0::2], x[..., 1::2], x.clone()
    out[..., 0::2] *= angles.cos()
    out[..., 0::2] -= x1 * angles.sin()
    out[..., 1::2] *= angles.cos()
    out[..., 1::2] += x0 * angles.sin()
    return out


@accepted("apply_rope", "always-four-dimensions", "Leading dimensions are flattened, and put back")
def rope_with_flat_front(x, positions, theta=10000.0):
    *front, tokens, d = x.shape
    flat = x.reshape(-1, tokens, d // 2, 2)
    angles = (positions[:, None] * theta ** (-torch.arange(0, d, 2, dtype=x.dtype) / d))[None]
    first = flat[..., 0] * angles.cos() - flat[..., 1] * angles.sin()
    second = flat[..., 0] * angles.sin() + flat[..., 1] * angles.cos()
    return torch.stack([first, second], -1).reshape(*front, tokens, d)


# --- alibi_bias -----------------------------------------------------------------------------------

mistake(
    "alibi_bias", "far-is-better", "The sign is wrong: distant keys are raised, and not lowered",
    hint="Is the score of a key far back higher or lower once your bias is added?",
    change={"keys - queries": "queries - keys"},
)  # fmt: skip

mistake(
    "alibi_bias", "slopes-from-zero", "Heads are counted from 0, so that the first slope is 1",
    hint="For eight heads, which slope has the first one?",
    change={"torch.arange(1, num_heads + 1)": "torch.arange(num_heads)"},
)  # fmt: skip

mistake(
    "alibi_bias", "key-without-query",
    "The bias grows with the key's position, and not with its distance from the query",
    hint="What should a token's own entry be, in the last row as in the first?",
    change={"keys - queries": "keys - 0 * queries"},
)  # fmt: skip

mistake(
    "alibi_bias", "future-open", "The future is open, and raised on top of it",
    hint="What should a query see of the keys that come after it?",
    change={"bias.masked_fill(causal_mask(num_tokens), -torch.inf)": "bias"},
)  # fmt: skip

mistake(
    "alibi_bias", "symmetric", "Distances are counted to both sides, and the future is open",
    hint="What should a query see of the keys that come after it?",
    change={
        "keys - queries": "-(keys - queries).abs()",
        "bias.masked_fill(causal_mask(num_tokens), -torch.inf)": "bias",
    },
)  # fmt: skip

mistake(
    "alibi_bias", "future-zero", "The future has the bias 0, and is open",
    hint="What does adding 0 do to a score?",
    change={"-torch.inf": "0.0"},
)  # fmt: skip

mistake(
    "alibi_bias", "future-minus-a-billion",
    "The future has a large negative number, and not minus infinity",
    hint="The statement asks for a true infinity: is yours one?",
    change={"-torch.inf": "-1e9"},
)  # fmt: skip

mistake(
    "alibi_bias", "itself-hidden", "A token cannot see itself",
    hint="May the first token look at anything at all?",
    change={"causal_mask(num_tokens)": "causal_mask(num_tokens) | (offsets == 0)"},
)  # fmt: skip

mistake(
    "alibi_bias", "heads-reversed", "The slopes come in the wrong order: the flattest first",
    hint="Which head is the steepest, the first or the last?",
    change={"slopes[:, None, None] * offsets": "slopes.flip(0)[:, None, None] * offsets"},
)  # fmt: skip

mistake(
    "alibi_bias", "a-half-for-all",
    "Slopes are 1/2, 1/4, 1/8 and so on, though the number of heads asks for others",
    hint="For two heads, which slope has the last one?",
    change={"2 ** (-8 * heads / num_heads)": "2.0**-heads"},
)  # fmt: skip

mistake(
    "alibi_bias", "divided-by-the-head",
    "The exponent is divided by the head's number, and not multiplied by it",
    hint="Eight heads have 1/2, 1/4, 1/8: which are yours?",
    change={"2 ** (-8 * heads / num_heads)": "2 ** (-8 / heads)"},
)  # fmt: skip

mistake(
    "alibi_bias", "steps-counted-from-one", "A token is one step away from itself",
    hint="How far is a token from itself?",
    change={"keys - queries": "keys - queries - 1"},
)  # fmt: skip

mistake(
    "alibi_bias", "query-without-key",
    "The bias falls with the query's position, the same for all its keys",
    hint="Does it tell near keys from far ones?",
    change={"keys - queries": "0 * keys - queries"},
)  # fmt: skip

mistake(
    "alibi_bias", "future-lowest-number",
    "The future has the lowest finite number, and not minus infinity",
    hint="The statement asks for a true infinity: is yours one?",
    change={"-torch.inf": "torch.finfo(bias.dtype).min"},
)  # fmt: skip

mistake(
    "alibi_bias", "future-minus-ten-thousand",
    "The future has a negative number of no great size, and not minus infinity",
    hint="The statement asks for a true infinity: is yours one?",
    change={"-torch.inf": "-10000.0"},
)  # fmt: skip

mistake(
    "alibi_bias", "future-plus-infinity", "The future is plus infinity",
    hint="Which score turns into a weight of exactly 0?",
    change={"-torch.inf": "torch.inf"},
)  # fmt: skip

mistake(
    "alibi_bias", "past-hidden", "The past is hidden, and the future is open",
    hint="Rows are queries: to which side of the diagonal does their future lie?",
    change={"causal_mask(num_tokens)": "causal_mask(num_tokens).T"},
)  # fmt: skip

mistake(
    "alibi_bias", "mask-opposite",
    "The mask is the wrong way round: the past is hidden, and every token from itself",
    hint="What does True mean here: look, or do not look?",
    change={"causal_mask(num_tokens)": "~causal_mask(num_tokens)"},
)  # fmt: skip

mistake(
    "alibi_bias", "mask-times-infinity", "What is not hidden becomes NaN",
    hint="What is 0 times infinity?",
    change={
        "bias.masked_fill(causal_mask(num_tokens), -torch.inf)": (
            "bias + causal_mask(num_tokens) * -torch.inf"
        ),
    },
)  # fmt: skip

mistake(
    "alibi_bias", "mask-thrown-away", "The future is open: the masked bias is thrown away",
    hint="Does masked_fill change your bias, or hand you a new one?",
    change={
        "return bias.masked_fill(causal_mask(num_tokens), -torch.inf)": (
            "bias.masked_fill(causal_mask(num_tokens), -torch.inf)\n    return bias"
        ),
    },
    same_as={"future-open": "either way the bias stays as it was"},
)  # fmt: skip

mistake(
    "alibi_bias", "mask-only", "There is a mask and no slope",
    hint="By how much does a key lose for each step?",
    change={"slopes[:, None, None] * offsets": "slopes[:, None, None] * (0 * offsets)"},
)  # fmt: skip

mistake(
    "alibi_bias", "from-a-half-always",
    "The slopes lead from 1/2 to 1/256, however many heads there are",
    hint="For four heads, what is the first slope?",
    change={"2 ** (-8 * heads / num_heads)": "2 ** -torch.linspace(1, 8, num_heads)"},
)  # fmt: skip

mistake(
    "alibi_bias", "linear-slopes", "The slopes are evenly spaced, and do not shrink by a factor",
    hint="What does each slope have to be multiplied by to get the next one?",
    change={"2 ** (-8 * heads / num_heads)": "heads / num_heads"},
)  # fmt: skip

mistake(
    "alibi_bias", "growing-slopes", "The exponent has the wrong sign: slopes are above 1",
    hint="Is 2^(-8h / num_heads) above or below 1?",
    change={"2 ** (-8 * heads / num_heads)": "2 ** (8 * heads / num_heads)"},
)  # fmt: skip

mistake(
    "alibi_bias", "e-for-two", "The slopes are powers of e, not of 2",
    hint="What is the first slope for eight heads: 0.5 or 0.37?",
    change={"2 ** (-8 * heads / num_heads)": "torch.exp(-8 * heads / num_heads)"},
)  # fmt: skip

mistake(
    "alibi_bias", "length-in-the-slope", "The exponent is divided by the number of tokens",
    hint="Does a head become flatter when the sentence gets longer?",
    change={"heads / num_heads)": "heads / num_tokens)"},
)  # fmt: skip

mistake(
    "alibi_bias", "four-for-eight", "The exponent has a 4 where it should have an 8",
    hint="What is the last slope, however many heads there are?",
    change={"-8": "-4"},
)  # fmt: skip

mistake(
    "alibi_bias", "one-slope-for-all", "All heads have the slope of the first one",
    hint="What tells the heads apart?",
    change={
        "2 ** (-8 * heads / num_heads)": "(2 ** (-8 * heads / num_heads))[:1].repeat(num_heads)",
    },
)  # fmt: skip

mistake(
    "alibi_bias", "no-slopes", "All heads have the slope 1",
    hint="What tells the heads apart?",
    change={"slopes[:, None, None] * offsets": "torch.ones(num_heads, 1, 1) * offsets"},
)  # fmt: skip

mistake(
    "alibi_bias", "slope-kept-negative",
    "The slopes are taken twice with a minus: distant keys are raised",
    hint="Two minus signs: what becomes of them?",
    change={"slopes[:, None, None] * offsets": "-slopes[:, None, None] * offsets"},
    same_as={"far-is-better": "a minus at the slope or at the distance"},
)  # fmt: skip

mistake(
    "alibi_bias", "steps-squared", "The bias falls with the square of the distance",
    hint="By how much does a key two steps back lose more than one a step back?",
    change={"keys - queries": "-((keys - queries) ** 2)"},
)  # fmt: skip

mistake(
    "alibi_bias", "steps-divided", "The slope is divided by the distance",
    hint="Is a key ten steps back lower or higher than one a step back?",
    change={
        "slopes[:, None, None] * offsets": (
            "-slopes[:, None, None] / (queries - keys).abs().clamp(min=1) * (offsets != 0)"
        ),
    },
)  # fmt: skip

mistake(
    "alibi_bias", "steps-clipped", "From 32 steps on, the bias falls no further",
    hint="How much lower than 32 steps back is 60 steps back?",
    change={"keys - queries": "(keys - queries).clamp(min=-32)"},
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "alibi_bias", "queries-across", "Queries go across and keys go down",
    hint="In the shape that the statement gives, which comes first: queries or keys?",
    change={
        "bias.masked_fill(causal_mask(num_tokens), -torch.inf)": (
            "bias.masked_fill(causal_mask(num_tokens), -torch.inf).transpose(1, 2)"
        ),
    },
)  # fmt: skip

mistake(
    "alibi_bias", "heads-last", "The heads come last",
    hint="Which dimension comes first in the shape that the statement gives?",
    change={
        "bias.masked_fill(causal_mask(num_tokens), -torch.inf)": (
            "bias.masked_fill(causal_mask(num_tokens), -torch.inf).permute(1, 2, 0)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "alibi_bias", "heads-forgotten", "There is one table for all heads",
    hint="How many tables should four heads have?",
    change={"slopes[:, None, None] * offsets": "slopes[0] * offsets"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "alibi_bias", "one-row-for-all-queries", "There is one row of biases for all queries",
    hint="How many rows should there be for each head?",
    change={
        "return bias.masked_fill(causal_mask(num_tokens), -torch.inf)": (
            "return slopes[:, None, None] * keys[None, None, :]"
        ),
    },
)  # fmt: skip

mistake(
    "alibi_bias", "batch-axis-kept", "There is an axis in front for a batch that nobody has",
    hint="How many dimensions should the result have?",
    change={
        "bias.masked_fill(causal_mask(num_tokens), -torch.inf)": (
            "bias.masked_fill(causal_mask(num_tokens), -torch.inf)[None]"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "alibi_bias", "slopes-returned", "The slopes come back, and not the bias",
    hint="Which shape does the statement promise?",
    change={"return bias.masked_fill(causal_mask(num_tokens), -torch.inf)": "return slopes"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "alibi_bias", "returns-float64", "The bias is float64",
    hint="Which dtype do new tensors have in torch, and which in NumPy?",
    change={"2 ** (-8 * heads / num_heads)": "2 ** (-8 * heads.double() / num_heads)"},
    breaks=("returns",),
)  # fmt: skip

mistake(
    "alibi_bias", "axes-squeezed", common="squeezed",
    hint="Which shape comes out when there is one head only?",
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "alibi_bias", "single-head-squeezed", "The axis of the heads is lost when there is only one",
    hint="Which shape do your slopes have for one head?",
    change={"2 ** (-8 * heads / num_heads)": "(2 ** (-8 * heads / num_heads)).squeeze()"},
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "alibi_bias", "single-token-squeezed", "An axis of the tokens is lost when there is only one",
    hint="Which shape comes out when there is one token only?",
    change={"slopes[:, None, None] * offsets": "(slopes[:, None, None] * offsets).squeeze(-1)"},
    breaks=("sizes",),
)  # fmt: skip


@accepted("alibi_bias", "slopes-of-the-authors", "Slopes as the authors' code makes them")
def alibi_as_the_authors(n_heads, seq_len):
    start = 2 ** (-(2 ** -(math.log2(n_heads) - 3)))
    slopes = torch.tensor([start * start**i for i in range(n_heads)])
    distance = torch.arange(seq_len)[None, :] - torch.arange(seq_len)[:, None]
    alibi = slopes.view(n_heads, 1, 1) * distance.float()
    mask = torch.triu(torch.full((seq_len, seq_len), float("-inf")), diagonal=1)
    return alibi + mask


@accepted("alibi_bias", "lists", "Nested lists of Python numbers")
def alibi_from_lists(num_heads, num_tokens):
    bias = []
    for h in range(1, num_heads + 1):
        slope = 2 ** (-8 * h / num_heads)
        bias.append(
            [
                [-slope * (q - k) if k <= q else -math.inf for k in range(num_tokens)]
                for q in range(num_tokens)
            ]
        )
    return torch.tensor(bias)


@accepted("alibi_bias", "where", "torch.where chooses between past and future")
def alibi_by_where(num_heads, num_tokens):
    steps = torch.arange(num_tokens).unsqueeze(1) - torch.arange(num_tokens)
    slopes = torch.pow(2.0, -8.0 * torch.arange(1, num_heads + 1) / num_heads)
    bias = -torch.einsum("h,qk->hqk", slopes, steps.float())
    return torch.where(steps >= 0, bias, torch.tensor(-torch.inf))


@accepted(
    "alibi_bias", "absolute-distances", "Distances to both sides, and then the future is hidden"
)
def alibi_by_absolute_distances(num_heads, num_tokens):
    positions = torch.arange(num_tokens, dtype=torch.float32)
    distances = (positions[:, None] - positions[None, :]).abs()
    slopes = torch.logspace(-8 / num_heads, -8, num_heads, base=2.0)
    future = torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
    return (-slopes[:, None, None] * distances).masked_fill(future, float("-inf"))


@accepted("alibi_bias", "running-sum", "Distances by a running sum over a triangle")
def alibi_by_running_sum(num_heads, num_tokens):
    triangle = torch.ones(num_tokens, num_tokens).tril()
    distances = triangle.cumsum(dim=0) - triangle
    slopes = 2 ** -torch.linspace(8 / num_heads, 8, num_heads)
    bias = -slopes.view(-1, 1, 1) * distances
    return bias.masked_fill(triangle == 0, -torch.inf)


@accepted("alibi_bias", "row-by-row", "A loop fills row after row")
def alibi_row_by_row(num_heads, num_tokens):
    bias = torch.full((num_heads, num_tokens, num_tokens), -torch.inf)
    ratio = 2 ** (-8 / num_heads)
    for head in range(num_heads):
        for query in range(num_tokens):
            bias[head, query, : query + 1] = ratio ** (head + 1) * torch.arange(-query, 1)
    return bias


@accepted(
    "alibi_bias", "ratio-multiplied-up", "Slopes by multiplying with the ratio, again and again"
)
def alibi_by_running_product(num_heads, num_tokens):
    slopes = torch.full((num_heads,), 2 ** (-8 / num_heads)).cumprod(0)
    offsets = torch.arange(num_tokens)[None] - torch.arange(num_tokens)[:, None]
    bias = slopes[:, None, None] * offsets[None]
    bias[:, offsets > 0] = float("-inf")
    return bias


@accepted("alibi_bias", "logarithm-of-a-triangle", "Minus infinity as the logarithm of zero")
def alibi_by_logarithm(num_heads, num_tokens):
    slopes = torch.tensor([1 / 2 ** (8 * h / num_heads) for h in range(1, num_heads + 1)])
    t = torch.arange(num_tokens)
    visible = torch.ones(num_tokens, num_tokens).tril()
    return slopes[:, None, None] * (t - t[:, None]) + visible.log()


@accepted("alibi_bias", "heads-stacked", "One table for each head, stacked")
def alibi_stacked(num_heads, num_tokens):
    t = torch.arange(num_tokens).float()
    steps = (t[None, :] - t[:, None]).masked_fill(t[None, :] > t[:, None], -torch.inf)
    return torch.stack([steps * 0.5 ** (8 * (h + 1) / num_heads) for h in range(num_heads)])


# --- sliding_window_mask --------------------------------------------------------------------------

mistake(
    "sliding_window_mask", "one-too-many",
    "A token sees one token more than the window: itself is not counted",
    hint="With a window of 1, how many tokens does a token see?",
    change={"distances >= window": "distances > window"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "one-too-few", "A token sees one token less than the window",
    hint="With a window of 1, how many tokens does a token see?",
    change={"distances >= window": "distances >= window - 1"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "symmetric",
    "The window reaches into the future as far as into the past",
    hint="What may the first token know about the second?",
    change={
        "distances >= window": "distances.abs() >= window",
        "causal_mask(num_tokens) | too_far_back": "too_far_back",
    },
)  # fmt: skip

mistake(
    "sliding_window_mask", "symmetric-and-one-too-many",
    "The window reaches into the future as far as into the past, and one token too far",
    hint="With a window of 1, how many tokens does a token see?",
    change={
        "distances >= window": "distances.abs() > window",
        "causal_mask(num_tokens) | too_far_back": "too_far_back",
    },
)  # fmt: skip

mistake(
    "sliding_window_mask", "half-to-each-side",
    "The window reaches half to each side, as in an encoder",
    hint="What may the first token know about the second?",
    change={"causal_mask(num_tokens) | too_far_back": "distances.abs() > window // 2"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "half-a-window", "Only half of the window is used",
    hint="How many tokens does the last token see?",
    change={"distances >= window": "distances > window // 2"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "future-open", "The future is open: only the far past is hidden",
    hint="What may the first token know about the second?",
    change={"causal_mask(num_tokens) | too_far_back": "too_far_back"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "no-window", "Only the future is hidden, and the window has no effect",
    hint="What should the last token see of the first, with a window of 2?",
    change={"causal_mask(num_tokens) | too_far_back": "causal_mask(num_tokens)"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "both-for-either",
    "Nothing is hidden: a key would have to be in the future and far back at once",
    hint="Is a key hidden when one of the two reasons holds, or both?",
    change={"causal_mask(num_tokens) | too_far_back": "causal_mask(num_tokens) & too_far_back"},
)  # fmt: skip

mistake(
    "sliding_window_mask", common="mask-opposite",
    change={"causal_mask(num_tokens) | too_far_back": "~(causal_mask(num_tokens) | too_far_back)"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "near-past-hidden", "The near past is hidden, and the far past is seen",
    hint="Which end of the past should a token see?",
    change={"distances >= window": "distances < window"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "itself-hidden", "A token cannot see itself",
    hint="Which token does a window of 1 show?",
    change={
        "causal_mask(num_tokens) | too_far_back": (
            "causal_mask(num_tokens) | too_far_back | (distances == 0)"
        ),
    },
)  # fmt: skip

mistake(
    "sliding_window_mask", "itself-hidden-window-before",
    "A token cannot see itself, and sees the whole window before it",
    hint="Which token does a window of 1 show?",
    change={"causal_mask(num_tokens) | too_far_back": "(distances <= 0) | (distances > window)"},
)  # fmt: skip

common_mistakes("sliding_window_mask", "sees-one-ahead")

mistake(
    "sliding_window_mask", "transposed",
    "A token sees what comes after it, and not what comes before",
    hint="Rows are queries: to which side of the diagonal does their past lie?",
    change={"causal_mask(num_tokens) | too_far_back": "(causal_mask(num_tokens) | too_far_back).T"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "blocks",
    "Tokens see their own block of the sentence, and windows do not slide",
    hint="With a window of 3, how many tokens does token 3 see?",
    change={"distances >= window": "queries // window != keys // window"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "start-of-the-sentence",
    "Tokens see the first ones of the sentence, and not those right before them",
    hint="Which tokens should the last token see?",
    change={"distances >= window": "keys >= window"},
)  # fmt: skip

mistake(
    "sliding_window_mask", "numbers-for-booleans", "The mask holds numbers, not booleans",
    hint="What is the dtype of your mask, and what would masked_fill say to it?",
    change={
        "causal_mask(num_tokens) | too_far_back": (
            "(causal_mask(num_tokens) | too_far_back).float()"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sliding_window_mask", "minus-infinities",
    "This mask is made to be added to scores, not to say what is hidden",
    hint="Is an entry of your mask a yes or a no?",
    change={
        "return causal_mask(num_tokens) | too_far_back": (
            "hidden = causal_mask(num_tokens) | too_far_back\n    return torch.zeros(num_tokens, "
            "num_tokens).masked_fill(hidden, -torch.inf)"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sliding_window_mask", "too-many-axes", "The mask has an axis too many",
    hint="How many dimensions does the statement give it, and how many does yours have?",
    change={
        "causal_mask(num_tokens) | too_far_back": "(causal_mask(num_tokens) | too_far_back)[None]",
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sliding_window_mask", "window-for-columns", "There are as many keys as the window is long",
    hint="The mask is square: how many tokens can be looked at?",
    change={
        "causal_mask(num_tokens) | too_far_back": (
            "(causal_mask(num_tokens) | too_far_back)[:, :window]"
        ),
    },
    breaks=("returns",),
)  # fmt: skip

mistake(
    "sliding_window_mask", "window-cut-short", "A window as long as the sentence is cut one short",
    hint="With seven tokens and a window of 7, what should the last one see?",
    change={"distances >= window": "distances >= min(window, max(num_tokens - 1, 1))"},
    breaks=("sizes",),
)  # fmt: skip

mistake(
    "sliding_window_mask", "single-token-squeezed", "The mask of a single token loses its axes",
    hint="Which shape comes out when there is one token only?",
    change={
        "causal_mask(num_tokens) | too_far_back": (
            "(causal_mask(num_tokens) | too_far_back).squeeze()"
        ),
    },
    breaks=("sizes",),
)  # fmt: skip


@mistake(
    "sliding_window_mask", "slice-below-zero",
    "For the first tokens a slice gets a negative number, and counts from the end",
    hint=(
        "For the first token and a window of 3, where do your slices begin and end? What does a "
        "negative number mean there?"
    ),
)  # fmt: skip
def window_by_slices_below_zero(num_tokens, window):
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
    for query in range(num_tokens):
        mask[query, : query - window + 1] = True
    return mask


@mistake(
    "sliding_window_mask", "slice-starts-below-zero",
    "For the first tokens a slice gets a negative number, and counts from the end",
    hint=(
        "For the first token and a window of 3, where do your slices begin and end? What does a "
        "negative number mean there?"
    ),
    same_as={"slice-below-zero": "hiding from the end and showing from the end hide the same keys"},
)  # fmt: skip
def window_by_starts_below_zero(num_tokens, window):
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    for query in range(num_tokens):
        mask[query, query - window + 1 : query + 1] = False
    return mask


@mistake(
    "sliding_window_mask", "window-of-one-shows-all", "A window of one shows the whole past",
    hint="What does a slice from -0 on hold: nothing, or everything?",
    breaks=("sizes",),
)  # fmt: skip
def window_by_last_ones(num_tokens, window):
    rows = []
    for query in range(num_tokens):
        seen = [query, *list(range(query))[-(window - 1) :]]
        rows.append([key not in seen for key in range(num_tokens)])
    return torch.tensor(rows)


@mistake(
    "sliding_window_mask", "longer-window-fails",
    "A window longer than the sentence ends in an error",
    hint="How many tokens lie ten steps back, in a sentence of seven?",
    breaks=("sizes",),
)  # fmt: skip
def window_by_diagonals_that_end(num_tokens, window):
    seen = torch.zeros(num_tokens, num_tokens)
    for step in range(window):
        seen += torch.diag(torch.ones(num_tokens - step), diagonal=-step)
    return seen == 0


@accepted("sliding_window_mask", "two-triangles", "Two triangles")
def window_by_two_triangles(num_tokens, window):
    ones = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    return torch.triu(ones, diagonal=1) | torch.tril(ones, diagonal=-window)


@accepted("sliding_window_mask", "not-the-band", "What is not in the band")
def window_by_negation(num_tokens, window_size):
    i = torch.arange(num_tokens)[:, None]
    j = torch.arange(num_tokens)[None, :]
    return ~((j <= i) & (j > i - window_size))


@accepted("sliding_window_mask", "band-of-ones", "A band cut out of ones by two triangles")
def window_by_a_band(num_tokens, window):
    return torch.ones(num_tokens, num_tokens).tril().triu(1 - window) == 0


@accepted("sliding_window_mask", "row-by-row", "A loop fills row after row")
def window_row_by_row(num_tokens, window):
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    for query in range(num_tokens):
        mask[query, max(0, query - window + 1) : query + 1] = False
    return mask


@accepted("sliding_window_mask", "lists", "Lists of Python booleans")
def window_from_lists(num_tokens, window):
    tokens = range(num_tokens)
    return torch.tensor([[not 0 <= q - k < window for k in tokens] for q in tokens])


@accepted(
    "sliding_window_mask",
    "either-but-not-both",
    "An exclusive or: no key is in the future and far back at once",
)
def window_by_exclusive_or(num_tokens, window):
    steps = torch.arange(num_tokens).unsqueeze(-1) - torch.arange(num_tokens)
    return (steps < 0) ^ (steps > window - 1)


@accepted("sliding_window_mask", "diagonals", "The diagonals of the window are cleared")
def window_by_diagonals(num_tokens, window):
    mask = torch.ones(num_tokens, num_tokens, dtype=torch.bool)
    for step in range(min(window, num_tokens)):
        mask.diagonal(-step).fill_(False)
    return mask


@accepted(
    "sliding_window_mask",
    "clamped",
    "A distance that is what it is when clamped lies in the window",
)
def window_by_clamping(num_tokens, window):
    distances = torch.arange(num_tokens)[:, None] - torch.arange(num_tokens)[None, :]
    return distances != distances.clamp(0, window - 1)
