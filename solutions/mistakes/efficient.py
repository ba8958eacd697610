"""Known answers of unit 10: mistakes, and right answers in other forms."""

import math
import re

import torch
import torch.nn.functional as F
from torch import nn

from grader.mistakes import accepted, common_mistakes, mistake

# --- online_step ---------------------------------------------------------------------------------

mistake(
    "online_step", "sum-not-rescaled", "The sum so far is not brought to the new maximum",
    hint="The total was made of exp(score - 3). What is it worth once the maximum is 5?",
    change={"total * rescale + block_sum": "total + block_sum"},
)  # fmt: skip

mistake(
    "online_step", "rescaling-inverted", "The sum is multiplied by the inverse of the factor",
    hint="When the maximum grows, should the sum so far become larger or smaller?",
    change={"torch.exp(maximum - new_max)": "torch.exp(new_max - maximum)"},
)  # fmt: skip

mistake(
    "online_step", "divided-by-the-factor", "The sum is divided by the factor",
    hint="When the maximum grows, should the sum so far become larger or smaller?",
    change={"total * rescale + block_sum": "total / rescale + block_sum"},
    same_as={"rescaling-inverted": "to divide by a factor is to multiply by its inverse"},
)  # fmt: skip

mistake(
    "online_step", "factor-on-the-block", "The factor falls on the new block's sum",
    hint="Which of the two sums still belongs to the old maximum?",
    change={"total * rescale + block_sum": "total + block_sum * rescale"},
)  # fmt: skip

mistake(
    "online_step", "factor-on-both", "The factor falls on the new block's sum as well",
    hint="Which of the two sums still belongs to the old maximum?",
    change={"total * rescale + block_sum": "(total + block_sum) * rescale"},
)  # fmt: skip

mistake(
    "online_step", "factor-without-exp", "The factor is a difference, without exp",
    hint="exp(s - 5) is exp(s - 3) times what?",
    change={"torch.exp(maximum - new_max)": "(maximum - new_max)"},
)  # fmt: skip

mistake(
    "online_step", "factor-is-a-ratio", "The factor is the ratio of the two maxima",
    hint="exp(s - 5) is exp(s - 3) times what?",
    change={"torch.exp(maximum - new_max)": "(maximum / new_max)"},
)  # fmt: skip

mistake(
    "online_step", "last-block-counts", "Only the block's sum is left",
    hint="What becomes of the scores before, when a block comes?",
    change={"total * rescale + block_sum": "block_sum"},
)  # fmt: skip

mistake(
    "online_step", "block-not-added", "The block's exponentials are never added",
    hint="Which scores does the new total count?",
    change={"total * rescale + block_sum": "total * rescale"},
)  # fmt: skip

mistake(
    "online_step", "block-sum-by-its-own-maximum",
    "A block's sum belongs to the block's maximum, and is added to one of another",
    hint="Which maximum do both parts of the new total have to belong to?",
    change={"block - new_max[..., None]": "block - block.amax(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "online_step", "block-sum-by-the-old-maximum", "The block's exponentials keep the old maximum",
    hint="Which maximum do both parts of the new total have to belong to?",
    change={"block - new_max[..., None]": "block - maximum[..., None]"},
)  # fmt: skip

mistake(
    "online_step", "old-maximum-throughout", "The old maximum is kept when a larger score comes",
    hint="Which is the largest score that the row has seen now?",
    change={"torch.maximum(maximum, block.amax(dim=-1))": "maximum"},
)  # fmt: skip

mistake(
    "online_step", "old-maximum-returned", "The total is new, and the maximum the old one",
    hint="Which maximum does the total that you return belong to?",
    change={"return new_max,": "return maximum,"},
)  # fmt: skip

mistake(
    "online_step", "block-maximum-kept", "The block's maximum is kept, even where it is lower",
    hint="Can a maximum fall when more scores come?",
    change={"torch.maximum(maximum, block.amax(dim=-1))": "block.amax(dim=-1)"},
)  # fmt: skip

mistake(
    "online_step", "block-maximum-returned", "The block's maximum is returned",
    hint="Can a maximum fall when more scores come?",
    change={"return new_max,": "return block.amax(dim=-1),"},
)  # fmt: skip

mistake(
    "online_step", "updated-too-early", "The factor is computed after the maximum was replaced",
    hint="Does the factor still know the old maximum?",
    change={
        "rescale = torch.exp(maximum - new_max)": (
            "maximum = new_max\n    rescale = torch.exp(maximum - new_max)"
        ),
    },
    same_as={"sum-not-rescaled": "a factor of 1 is no factor"},
)  # fmt: skip

mistake(
    "online_step", "minimum-for-maximum", "The smaller of the two maxima is kept",
    hint="Which is the largest score that the row has seen now?",
    change={"torch.maximum(": "torch.minimum("},
)  # fmt: skip

mistake(
    "online_step", "maxima-added", "The two maxima are added",
    hint="Which is the largest score that the row has seen now?",
    change={"torch.maximum(maximum, block.amax(dim=-1))": "maximum + block.amax(dim=-1)"},
)  # fmt: skip

mistake(
    "online_step", "mean-of-the-block", "The block's exponentials are averaged, not summed",
    hint="Does a block of four scores count more than a block of one?",
    change={"sum(dim=-1)": "mean(dim=-1)"},
)  # fmt: skip

mistake(
    "online_step", "largest-of-the-block", "Only the block's largest score is added",
    hint="How many exponentials does a block of four scores bring?",
    change={"torch.exp(block - new_max[..., None]).sum(dim=-1)": (
        "torch.exp(block.amax(dim=-1) - new_max)"
    )},
)  # fmt: skip

mistake(
    "online_step", common="no-exp",
    change={"torch.exp(block - new_max[..., None]).sum(dim=-1)": (
        "(block - new_max[..., None]).sum(dim=-1)"
    )},
)  # fmt: skip

mistake(
    "online_step", "logarithm-of-the-total", "The logarithm of the total is returned",
    hint="Is the total a sum of exponentials or its logarithm?",
    change={"total * rescale + block_sum": "torch.log(total * rescale + block_sum)"},
)  # fmt: skip

mistake(
    "online_step", "total-of-plain-exponentials", "No maximum is taken off the exponentials",
    hint="Which exponents does the total that you return add up?",
    breaks=("computes", "large"),
    change={
        "torch.exp(maximum - new_max)": "torch.exp(maximum)",
        "torch.exp(block - new_max[..., None])": "torch.exp(block)",
    },
)  # fmt: skip

mistake(
    "online_step", "factor-of-two-exponentials", "The factor is made of two exponentials",
    hint="What is exp(1000), on its own?",
    breaks=("large",),
    change={"torch.exp(maximum - new_max)": "torch.exp(maximum) / torch.exp(new_max)"},
)  # fmt: skip


@mistake(
    "online_step", "shifted-afterwards", "Exponentials are taken first, and the shift comes later",
    hint="What is exp(1000), on its own?",
    breaks=("large",),
    same_as={"factor-of-two-exponentials": "both take exp(1000), and infinity follows"},
)  # fmt: skip
def step_shifted_afterwards(maximum, total, block):
    new = torch.maximum(maximum, block.amax(-1))
    return new, (total * maximum.exp() + block.exp().sum(-1)) / new.exp()


mistake(
    "online_step", "maximum-never-below-zero", "The maximum is never below 0, and scores can be",
    hint="What does the maximum become when every score is -1000, and what is exp(-1000 - 0)?",
    change={"torch.maximum(maximum,": "torch.maximum(maximum.clamp(min=0.0),"},
)  # fmt: skip

mistake(
    "online_step", "maximum-never-below-minus-hundred",
    "The maximum is never below -100, and scores can be",
    hint="What does the maximum become when every score is -1000?",
    breaks=("large",),
    change={"torch.maximum(maximum,": "torch.maximum(maximum.clamp(min=-100.0),"},
)  # fmt: skip

mistake(
    "online_step", "exponents-clamped", "Exponents stop at -10, so that low scores count too much",
    hint="How much does a score add that lies 30 below the maximum?",
    change={
        "torch.exp(maximum - new_max)": "torch.exp((maximum - new_max).clamp(min=-10.0))",
        "block - new_max[..., None]": "(block - new_max[..., None]).clamp(min=-10.0)",
    },
)  # fmt: skip

mistake(
    "online_step", "maximum-by-absolute-value",
    "The maximum is made of a sum and a difference, which is NaN at the start",
    hint="What is -inf + inf?",
    breaks=("empty",),
    change={
        "torch.maximum(maximum, block.amax(dim=-1))": (
            "(maximum + block.amax(dim=-1) + (maximum - block.amax(dim=-1)).abs()) / 2"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "infinite-maximum-becomes-zero",
    "A maximum of -inf is replaced by 0, and scores can lie below",
    hint="Which is the largest of the scores -3 and -5, when there were none before?",
    breaks=("empty",),
    change={
        "torch.maximum(maximum,": (
            "torch.maximum(maximum.masked_fill(maximum == -torch.inf, 0.0),"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "one-empty-row-for-all", "All rows start anew where one has seen no score yet",
    hint="If one row begins, what becomes of the others?",
    breaks=("empty",),
    change={
        "new_max = torch.maximum(": (
            "if (total == 0).any():\n"
            "        total = torch.zeros_like(total)\n"
            "    new_max = torch.maximum("
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "first-block-not-shifted",
    "At the very start, exponentials are taken without the maximum",
    hint="Which maximum does the total of the first block belong to?",
    breaks=("empty",),
    change={
        "return new_max,": (
            "if (total == 0).all():\n"
            "        return new_max, torch.exp(block).sum(dim=-1)\n"
            "    return new_max,"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "one-maximum-for-all-rows", "All rows share the block's maximum",
    hint="Which is the largest score of each row?",
    change={"block.amax(dim=-1)": "block.max()"},
)  # fmt: skip

mistake(
    "online_step", "one-sum-for-all-rows", "The exponentials of all rows go into one sum",
    hint="Whose scores does the total of a row count?",
    change={"sum(dim=-1)": "sum()"},
)  # fmt: skip

mistake(
    "online_step", "summed-over-rows", "Maximum and sum run over the first dimension",
    hint="Along which dimension do the scores of one row lie?",
    change={
        "block.amax(dim=-1)": "block.amax(dim=0).max()",
        "sum(dim=-1)": "sum(dim=0).sum()",
    },
)  # fmt: skip

mistake(
    "online_step", "matrices-only", "The block must have two dimensions",
    hint="What stands in front of n in the shape of the block?",
    breaks=("leading",),
    change={"    new_max = torch": "    _rows, _n = block.shape\n    new_max = torch"},
)  # fmt: skip

mistake(
    "online_step", "axis-counted-from-the-front",
    "The axis is counted from the front, and moves with a batch in front",
    hint="Which number has the axis of the scores in a matrix, and in a batch of matrices?",
    breaks=("leading",),
    change={"block.amax(dim=-1)": "block.amax(dim=1)", "sum(dim=-1)": "sum(dim=1)"},
    same_as={"matrices-only": "both are right for matrices alone"},
)  # fmt: skip

mistake(
    "online_step", "numbers-only", "Rows are turned into Python numbers",
    hint="How many rows has a state whose maximum is a tensor of shape (2, 3)?",
    breaks=("computes", "leading", "returns", "gradients", "dtype"),
    change={
        "new_max = torch.maximum(maximum, block.amax(dim=-1))": (
            "new_max = torch.tensor(max(float(maximum), float(block.max())))"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "total-first", "The total comes first, and then the maximum",
    hint="In which order are the two passed in?",
    change={
        "return new_max, total * rescale + block_sum": (
            "return total * rescale + block_sum, new_max"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "keepdim-left", "A dimension of size one is left for the scores",
    hint="Which shapes did the maximum and the total have when they came in?",
    breaks=("returns",),
    change={
        "return new_max, total * rescale + block_sum": (
            "return new_max[..., None], (total * rescale + block_sum)[..., None]"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", common="squeezed",
    change={
        "return new_max, total * rescale + block_sum": (
            "return new_max.squeeze(), (total * rescale + block_sum).squeeze()"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "total-only", "The total is returned, and the maximum is not",
    hint="What does the next step need to know?",
    breaks=("returns",),
    change={"return new_max, ": "return "},
)  # fmt: skip

mistake(
    "online_step", "weights-too", "The block's weights are returned along with the state",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "total * rescale + block_sum": (
            "total * rescale + block_sum, torch.exp(block - new_max[..., None])"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "stacked", "One tensor comes back, not two",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "return new_max, total * rescale + block_sum": (
            "return torch.stack([new_max, total * rescale + block_sum], dim=-1)"
        ),
    },
)  # fmt: skip

mistake("online_step", "no-return", common="nothing-returned")

mistake(
    "online_step", "state-returned", "The state comes back as it was",
    hint="Which scores does the state count after the step?",
    change={
        "return new_max, total * rescale + block_sum": "return maximum.clone(), total.clone()",
    },
)  # fmt: skip

mistake(
    "online_step", "block-overwritten", "The block is overwritten with its exponentials",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged", "gradients"),
    change={
        "return new_max,": (
            "block.data.copy_(torch.exp(block - new_max[..., None]).data)\n    return new_max,"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "maximum-overwritten", "The new maximum is written into the caller's tensor",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
    change={
        "return new_max,": "maximum.data.copy_(new_max.data)\n    return new_max,",
    },
)  # fmt: skip

mistake(
    "online_step", common="float32-inside",
    change={
        "torch.exp(block - new_max[..., None])": (
            "torch.exp((block - new_max[..., None]).float()).to(block)"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "factor-of-float32", "The factor passes through float32",
    hint="How many digits of a float64 are left after a visit to float32?",
    breaks=("dtype",),
    change={"torch.exp(maximum - new_max)": "torch.exp((maximum - new_max).float())"},
    same_as={"float32-inside": "both lose digits of the total"},
)  # fmt: skip

mistake(
    "online_step", common="returns-float64",
    change={
        "return new_max, total * rescale + block_sum": (
            "return new_max.double(), (total * rescale + block_sum).double()"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "torch-logsumexp", "Torch's own logsumexp does the work",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
    change={
        "torch.exp(block - new_max[..., None]).sum(dim=-1)": (
            "torch.exp(torch.logsumexp(block, dim=-1) - new_max)"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", common="torch-softmax",
    change={
        "torch.exp(block - new_max[..., None]).sum(dim=-1)": (
            "torch.exp(block.amax(dim=-1) - new_max) / torch.softmax(block, dim=-1).amax(dim=-1)"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", common="no-gradient",
    change={
        "return new_max, total * rescale + block_sum": (
            "return new_max.detach(), (total * rescale + block_sum).detach()"
        ),
    },
)  # fmt: skip

mistake(
    "online_step", "total-without-gradient", "No gradient flows to the total so far",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"total * rescale": "total.detach() * rescale"},
)  # fmt: skip

mistake(
    "online_step", "block-without-gradient", "No gradient flows through the block's exponentials",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"torch.exp(block - ": "torch.exp(block.detach() - "},
)  # fmt: skip

mistake(
    "online_step", "shift-without-gradient",
    "The maximum has a gradient where it is returned, and none where it is taken off",
    hint="Does the total not depend on the maximum that was taken off?",
    breaks=("gradients",),
    change={
        "torch.exp(maximum - new_max)": "torch.exp(maximum - new_max.detach())",
        "block - new_max[..., None]": "block - new_max.detach()[..., None]",
    },
)  # fmt: skip

accepted(
    "online_step", "max-values", "torch.max and its values, and unsqueeze",
    change={
        "block.amax(dim=-1)": "block.max(dim=-1).values",
        "new_max[..., None]": "new_max.unsqueeze(-1)",
    },
)  # fmt: skip

accepted(
    "online_step", "list", "A list of two",
    change={
        "return new_max, total * rescale + block_sum": (
            "return [new_max, total * rescale + block_sum]"
        ),
    },
)  # fmt: skip

accepted(
    "online_step", "lowest-number", "The dtype's lowest number instead of -inf",
    change={"torch.exp(maximum - new_max)": (
        "torch.exp(maximum.clamp(min=torch.finfo(maximum.dtype).min) - new_max)"
    )},
)  # fmt: skip

accepted(
    "online_step", "maximum-without-gradient", "The maximum is a constant everywhere",
    change={"torch.maximum(maximum, block.amax(dim=-1))": (
        "torch.maximum(maximum, block.amax(dim=-1)).detach()"
    )},
)  # fmt: skip


@accepted("online_step", "logaddexp", "Logarithms of both sums are added by logaddexp")
def step_by_logaddexp(m, l, x):  # noqa: E741
    top = x.max(dim=-1)[0]
    of_block = top + (x - top[..., None]).exp().sum(-1).log()
    everything = torch.logaddexp(m + l.log(), of_block)
    new = torch.maximum(m, top)
    return new, (everything - new).exp()


@accepted("online_step", "one-score-at-a-time", "A loop over single scores, as in the paper")
def step_a_score_at_a_time(maximum, total, block):
    for j in range(block.size(-1)):
        old, score = maximum, block[..., j]
        maximum = torch.where(score > old, score, old)
        total = total * torch.exp(old - maximum) + torch.exp(score - maximum)
    return maximum, total


@accepted("online_step", "two-factors", "The block by its own maximum, and then a factor for each")
def step_with_two_factors(maximum, total, block):
    own = block.amax(dim=-1, keepdim=True)
    own_total = torch.exp(block - own).sum(dim=-1, keepdim=True)
    old, old_total = maximum.unsqueeze(-1), total.unsqueeze(-1)
    new = torch.maximum(old, own)
    both = old_total * torch.exp(old - new) + own_total * torch.exp(own - new)
    return new.squeeze(-1), both.squeeze(-1)


@accepted(
    "online_step", "one-row-longer", "The maximum as one score more, which counts `total` times"
)
def step_with_a_longer_block(maximum, total, block):
    scores = torch.cat([maximum[..., None], block], dim=-1)
    counts = torch.cat([total[..., None], torch.ones_like(block)], dim=-1)
    new = scores.amax(dim=-1)
    return new, torch.einsum("...n,...n->...", counts, torch.exp(scores - new[..., None]))


@accepted("online_step", "by-cases", "Rows whose maximum grows, and rows whose maximum stays")
def step_by_cases(maximum, total, block):
    top = block.amax(-1)
    grown = torch.exp(block - top[..., None]).sum(-1) + total * torch.exp(maximum - top)
    stayed = total + torch.exp(block - maximum[..., None]).sum(-1)
    return torch.where(top > maximum, top, maximum), torch.where(top > maximum, grown, stayed)


@accepted("online_step", "named-result", "A class of its own for the state, and prints")
def step_with_a_named_result(maximum, total, block):
    from collections import namedtuple

    State = namedtuple("State", "maximum total")
    new = torch.stack([maximum, block.amax(-1)]).amax(0)
    print("maximum:", new)
    # With nothing before it, log(0) - inf is -inf, and exp makes 0 of it.
    kept = (total.log() + maximum - new).exp()
    return State(new, kept + torch.exp(block - new.unsqueeze(-1)).sum(-1))


@accepted("online_step", "in-place-on-own", "Its own tensors are changed in place")
def step_with_buffers(maximum, total, block):
    new = torch.maximum(maximum, block.amax(-1))
    added = (block - new.unsqueeze(-1)).exp().sum(-1)
    kept = (maximum - new).exp()
    kept = kept * total
    kept += added
    return new, kept


@accepted("online_step", "float64-inside", "In float64 inside, and back")
def step_in_float64(maximum, total, block):
    m, b = maximum.double(), block.double()
    new = torch.maximum(m, b.amax(-1))
    result = total.double() * torch.exp(m - new) + torch.exp(b - new[..., None]).sum(-1)
    return new.to(block.dtype), result.to(block.dtype)


# --- softmax_online ------------------------------------------------------------------------------

mistake(
    "softmax_online", "sum-not-rescaled", "The sum so far is not brought to the new maximum",
    hint="The sum was made of exp(score - 3). What is it worth once the maximum is 5?",
    change={"running_sum * rescale + block_sum": "running_sum + block_sum"},
)  # fmt: skip

mistake(
    "softmax_online", "maximum-starts-at-zero", "The maximum starts at 0, and scores can lie below",
    hint="What does the maximum become when every score is -1000, and what is exp(-1000 - 0)?",
    breaks=("large",),
    change={"full_like(scores[..., :1], -torch.inf)": "zeros_like(scores[..., :1])"},
)  # fmt: skip

mistake(
    "softmax_online", "rescaling-inverted", "The sum is multiplied by the inverse of the factor",
    hint="When the maximum grows, should the sum so far become larger or smaller?",
    change={"torch.exp(running_max - new_max)": "torch.exp(new_max - running_max)"},
)  # fmt: skip

mistake(
    "softmax_online", "rescaling-inverted-later",
    "The sum is multiplied by the inverse of the factor",
    hint="When the maximum grows, should the sum so far become larger or smaller?",
    change={
        "torch.full_like(scores[..., :1], -torch.inf)": "scores[..., :1]",
        "torch.exp(running_max - new_max)": "torch.exp(new_max - running_max)",
    },
)  # fmt: skip

mistake("softmax_online", "not-divided", common="not-normalised", change={" / running_sum": ""})

mistake(
    "softmax_online", "last-block-counts", "Only the last block's sum is left at the end",
    hint="What becomes of the blocks before, when a new one comes?",
    change={"running_sum * rescale + block_sum": "block_sum"},
)  # fmt: skip

mistake(
    "softmax_online", "last-block-dropped", "Scores that do not fill a block are not counted",
    hint="With 5 scores and blocks of 2, how many blocks are there?",
    change={
        "split(scores,": (
            "split(scores[..., : scores.shape[-1] // block_size * block_size],"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", "block-sum-by-its-own-maximum",
    "A block's sum belongs to the block's maximum, and is added to one of another",
    hint="Which maximum do both parts of the new sum have to belong to?",
    change={"torch.exp(block - new_max)": "torch.exp(block - block_max)"},
)  # fmt: skip

mistake(
    "softmax_online", "last-maximum-at-the-end",
    "At the end, the last block's maximum is taken off",
    hint="Which maximum does the sum belong to when the loop is over?",
    change={"torch.exp(scores - running_max)": "torch.exp(scores - block_max)"},
)  # fmt: skip

mistake(
    "softmax_online", "factor-on-the-block", "The factor falls on the new block's sum",
    hint="Which of the two sums still belongs to the old maximum?",
    change={
        "running_sum * rescale + block_sum": "running_sum + block_sum * rescale",
    },
)  # fmt: skip

mistake(
    "softmax_online", "factor-on-both", "The factor falls on the new block's sum as well",
    hint="Which of the two sums still belongs to the old maximum?",
    change={
        "running_sum * rescale + block_sum": "(running_sum + block_sum) * rescale",
    },
)  # fmt: skip

mistake(
    "softmax_online", "factor-without-exp", "The factor is a difference, without exp",
    hint="exp(s - 5) is exp(s - 3) times what?",
    change={
        "torch.full_like(scores[..., :1], -torch.inf)": "scores[..., :1]",
        "torch.exp(running_max - new_max)": "(running_max - new_max)",
    },
)  # fmt: skip

mistake(
    "softmax_online", "maximum-not-kept", "The new maximum is forgotten after its block",
    hint="What does the next block compare its own maximum with?",
    change={"        running_max = new_max\n": ""},
)  # fmt: skip

mistake(
    "softmax_online", "block-maximum-kept", "The last block's maximum is kept, not the largest",
    hint="Can a maximum fall when more scores come?",
    change={"running_max = new_max": "running_max = block_max"},
)  # fmt: skip

mistake(
    "softmax_online", "block-maximum-overflows",
    "Each block is shifted by its own maximum, and earlier sums overflow when that falls",
    hint="What is the factor when one block lies around 1000 and the next around -1000?",
    breaks=("large",),
    change={"torch.maximum(running_max, block_max)": "block_max"},
)  # fmt: skip

mistake(
    "softmax_online", "factor-of-two-exponentials", "The factor is made of two exponentials",
    hint="What is exp(1000), on its own?",
    breaks=("large",),
    change={
        "torch.exp(running_max - new_max)": "torch.exp(running_max) / torch.exp(new_max)",
    },
)  # fmt: skip

mistake(
    "softmax_online", "updated-too-early", "The factor is computed after the maximum was replaced",
    hint="Does the factor still know the old maximum?",
    change={
        "rescale = torch.exp(running_max - new_max)": (
            "running_max = new_max\n"
            "        rescale = torch.exp(running_max - new_max)"
        ),
    },
    same_as={"sum-not-rescaled": "a factor of 1 is no factor"},
)  # fmt: skip

mistake(
    "softmax_online", "maximum-starts-too-high", "The maximum starts at -100, and scores lie below",
    hint="What is exp(-1000 - (-100))?",
    breaks=("large",),
    change={"-torch.inf": "-100.0"},
    same_as={"maximum-starts-at-zero": "both lie so far above -1000 that nothing is left"},
)  # fmt: skip

mistake(
    "softmax_online", "one-maximum-for-all-rows", "All rows share one maximum",
    hint="What is left of a row that lies 1000 below another one?",
    breaks=("large", "block"),
    change={"block.amax(dim=-1, keepdim=True)": "block.max()"},
)  # fmt: skip


@mistake(
    "softmax_online", "without-a-maximum", "Large scores overflow to infinity",
    hint="What is exp(1000)? And which shift makes no exponential larger than 1?",
    breaks=("large",),
)  # fmt: skip
def sums_without_a_maximum(scores, block_size):
    total = sum(block.exp().sum(dim=-1, keepdim=True) for block in scores.split(block_size, dim=-1))
    return scores.exp() / total


@mistake(
    "softmax_online", "softmax-of-each-block", "Each block sums to one, not each row",
    hint="What do the weights of the whole row add up to?",
)  # fmt: skip
def softmax_block_by_block(scores, block_size):
    parts = []
    for block in scores.split(block_size, dim=-1):
        positive = torch.exp(block - block.amax(dim=-1, keepdim=True))
        parts.append(positive / positive.sum(dim=-1, keepdim=True))
    return torch.cat(parts, dim=-1)


@mistake(
    "softmax_online", "parts-averaged", "Each block's weights are divided by how many blocks came",
    hint="Should a block of low scores get as much as a block of high ones?",
)  # fmt: skip
def softmax_of_blocks_averaged(scores, block_size):
    blocks = scores.split(block_size, dim=-1)
    parts = []
    for block in blocks:
        positive = torch.exp(block - block.amax(dim=-1, keepdim=True))
        parts.append(positive / positive.sum(dim=-1, keepdim=True) / len(blocks))
    return torch.cat(parts, dim=-1)


@mistake(
    "softmax_online", "weights-too-early", "Weights are handed out before the sum is complete",
    hint="When the first block is read, does it know its share of the whole row?",
)  # fmt: skip
def weights_as_blocks_go_by(scores, block_size):
    largest = torch.full_like(scores[..., :1], -torch.inf)
    total = torch.zeros_like(largest)
    parts = []
    for block in scores.split(block_size, dim=-1):
        new = torch.maximum(largest, block.amax(dim=-1, keepdim=True))
        positive = torch.exp(block - new)
        total = total * torch.exp(largest - new) + positive.sum(dim=-1, keepdim=True)
        largest = new
        parts.append(positive / total)
    return torch.cat(parts, dim=-1)


@mistake(
    "softmax_online", "exponentials-of-their-time",
    "Each block's exponentials keep the maximum of their time",
    hint="Which maximum does the sum at the end belong to, and which the first block's numerators?",
)  # fmt: skip
def exponentials_not_brought_down(scores, block_size):
    largest = torch.full_like(scores[..., :1], -torch.inf)
    total = torch.zeros_like(largest)
    parts = []
    for block in scores.split(block_size, dim=-1):
        new = torch.maximum(largest, block.amax(dim=-1, keepdim=True))
        parts.append(torch.exp(block - new))
        total = total * torch.exp(largest - new) + parts[-1].sum(dim=-1, keepdim=True)
        largest = new
    return torch.cat(parts, dim=-1) / total


@mistake(
    "softmax_online", "not-in-blocks", "Something runs over more scores than a block has",
    hint="How many scores does each maximum and each sum look at?",
    breaks=("block", "once"),
)  # fmt: skip
def softmax_in_one_go(scores, block_size):  # noqa: ARG001
    positive = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return positive / positive.sum(dim=-1, keepdim=True)


@mistake(
    "softmax_online", "maximum-in-one-go", "The maximum looks at the whole row",
    hint="How many scores does each maximum look at?",
    breaks=("block", "once"),
    same_as={"not-in-blocks": "both are right, and look at too much"},
)  # fmt: skip
def only_sums_in_blocks(scores, block_size):
    largest = scores.max(dim=-1, keepdim=True).values
    total = torch.zeros_like(largest)
    for block in scores.split(block_size, dim=-1):
        total = total + torch.exp(block - largest).sum(dim=-1, keepdim=True)
    return torch.exp(scores - largest) / total


@mistake(
    "softmax_online", "sum-in-one-go", "The sum looks at the whole row",
    hint="How many scores does each sum look at?",
    breaks=("block", "once"),
    same_as={"not-in-blocks": "both are right, and look at too much"},
)  # fmt: skip
def only_maxima_in_blocks(scores, block_size):
    largest = torch.full_like(scores[..., :1], -torch.inf)
    for block in scores.split(block_size, dim=-1):
        largest = torch.maximum(largest, block.amax(dim=-1, keepdim=True))
    positive = torch.exp(scores - largest)
    return positive / positive.sum(dim=-1, keepdim=True)


@mistake(
    "softmax_online", "sum-by-a-product", "A product with ones looks at the whole row",
    hint="How many numbers does a dot product with ones add up?",
    breaks=("block", "once"),
    same_as={"not-in-blocks": "both are right, and look at too much"},
)  # fmt: skip
def sum_by_a_product(scores, block_size):
    largest = torch.full_like(scores[..., :1], -torch.inf)
    for block in scores.split(block_size, dim=-1):
        largest = torch.maximum(largest, block.amax(dim=-1, keepdim=True))
    positive = torch.exp(scores - largest)
    return positive / (positive @ scores.new_ones(scores.shape[-1]))[..., None]


@mistake(
    "softmax_online", "running-maximum-of-torch", "A cumulative maximum looks at the whole row",
    hint="How many scores does cummax look at?",
    breaks=("block", "once"),
    same_as={"not-in-blocks": "both are right, and look at too much"},
)  # fmt: skip
def by_cumulative_maximum(scores, block_size):
    largest = scores.cummax(dim=-1).values[..., -1:]
    total = torch.zeros_like(largest)
    for start in range(0, scores.shape[-1], block_size):
        total += torch.exp(scores[..., start : start + block_size] - largest).sum(-1, keepdim=True)
    return torch.exp(scores - largest) / total


mistake(
    "softmax_online", "block-size-of-its-own", "Blocks have a size of their own, and a larger one",
    hint="Who says how large a block is?",
    breaks=("block",),
    change={"(scores, block_size, dim=-1)": "(scores, 16, dim=-1)"},
    same_as={"not-in-blocks": "both are right, and look at too much"},
)  # fmt: skip


@mistake(
    "softmax_online", "two-passes", "The scores are read twice: for all maxima, then for all sums",
    hint="What can you do with a block's exponentials when its maximum is not yet the last one?",
    breaks=("once",),
)  # fmt: skip
def softmax_in_two_passes(scores, block_size):
    blocks = torch.split(scores, block_size, dim=-1)
    largest = blocks[0].amax(-1, keepdim=True)
    for block in blocks[1:]:
        largest = torch.max(largest, block.amax(-1, keepdim=True))
    total = sum(torch.exp(block - largest).sum(-1, keepdim=True) for block in blocks)
    return torch.exp(scores - largest).div(total)


@mistake(
    "softmax_online", "all-blocks-side-by-side", "All blocks' maxima are found before any sum",
    hint="How often is each score read before the last line?",
    breaks=("once",),
    same_as={"two-passes": "both find the largest of all scores before they add anything up"},
)  # fmt: skip
def softmax_on_two_levels(scores, block_size):
    missing = -scores.shape[-1] % block_size
    blocks = F.pad(scores, (0, missing), value=-torch.inf).unflatten(-1, (-1, block_size))
    maxima = blocks.amax(dim=-1)
    largest = maxima.amax(dim=-1, keepdim=True)
    sums = torch.exp(blocks - largest[..., None]).sum(dim=-1)
    return torch.exp(scores - largest) / sums.sum(dim=-1, keepdim=True)


mistake(
    "softmax_online", "row-counted-on", "Each block starts from the beginning of the row",
    hint="How many scores has the third block?",
    change={
        "for block in torch.split(scores, block_size, dim=-1):": (
            "for end in range(block_size, scores.shape[-1] + block_size, block_size):\n"
            "        block = scores[..., :end]"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", common="torch-softmax",
    change={"return torch.exp(scores - running_max) / running_sum": "return scores.softmax(-1)"},
    same_as={"not-in-blocks": "torch's softmax looks at the whole row as well"},
)  # fmt: skip


@mistake(
    "softmax_online", "torch-logsumexp", "Torch's own logsumexp does the work",
    hint="Which functions are off limits here?",
    breaks=("forbidden",),
)  # fmt: skip
def blocks_by_logsumexp(scores, block_size):
    total = torch.full_like(scores[..., :1], -torch.inf)
    for block in scores.split(block_size, dim=-1):
        total = torch.logaddexp(total, torch.logsumexp(block, dim=-1, keepdim=True))
    return torch.exp(scores - total)


mistake(
    "softmax_online", common="log-softmax",
    change={
        "torch.exp(scores - running_max) / running_sum": (
            "scores - running_max - torch.log(running_sum)"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", "first-axis-cut", "The rows are cut into blocks, not the scores of a row",
    hint="Along which dimension do the scores of one row lie?",
    change={"block_size, dim=-1)": "block_size, dim=0)"},
)  # fmt: skip

mistake(
    "softmax_online", "columns-sum-to-one", "The softmax runs over the first dimension",
    hint="Along which dimension should the weights sum to one?",
    change={"scores[..., :1]": "scores[:1]", re.compile("dim=-1"): "dim=0"},
)  # fmt: skip

mistake(
    "softmax_online", "matrices-only", "Scores must have two dimensions",
    hint="What stands in front of n in the shape of the scores?",
    breaks=("leading",),
    change={
        "    running_max = torch": "    _rows, _n = scores.shape\n    running_max = torch",
    },
)  # fmt: skip

mistake(
    "softmax_online", "blocks-must-fit", "Rows that blocks do not fill end in an error",
    hint="Must block_size divide n?",
    change={
        "torch.split(scores, block_size, dim=-1)": (
            "scores.unflatten(-1, (-1, block_size)).unbind(dim=-2)"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", "padded-with-zeros", "The last block is filled up with zeros, which count",
    hint="What is exp(0), and what score would add nothing to the sum?",
    change={
        "    for block in torch.split(scores,": (
            "    missing = -scores.shape[-1] % block_size\n"
            "    for block in torch.split(torch.nn.functional.pad(scores, (0, missing)),"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", "blocks-changed-in-place",
    "The blocks are changed in place, and the scores with them",
    hint="Is a piece of a tensor a copy, or a look at it?",
    breaks=("computes", "unchanged"),
    change={"torch.exp(block - new_max)": "block.sub_(new_max).exp_()"},
)  # fmt: skip

mistake(
    "softmax_online", common="changes-its-input",
    change={"torch.exp(scores - running_max)": "scores.sub_(running_max).exp_()"},
)  # fmt: skip

mistake(
    "softmax_online", common="float32-inside",
    change={
        "return torch.exp(scores - running_max) / running_sum": (
            "weights = torch.exp(scores.float() - running_max.float()) / running_sum.float()\n"
            "    return weights.to(scores)"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", "buffers-of-float32", "The maximum so far is kept in float32",
    hint="Which dtype do torch.zeros and torch.full have if you say nothing?",
    breaks=("dtype",),
    change={
        "torch.full_like(scores[..., :1], -torch.inf)": (
            "torch.full(scores[..., :1].shape, -torch.inf)"
        ),
        "torch.maximum(running_max, block_max)": "torch.maximum(running_max, block_max.float())",
        "torch.exp(scores - running_max)": "torch.exp(scores.float() - running_max).to(scores)",
    },
    same_as={"float32-inside": "both lose the same digits"},
)  # fmt: skip

common_mistakes("softmax_online", "returns-float64")

mistake(
    "softmax_online", "statistics-too", "Maximum and sum are returned along with the weights",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "return torch.exp(scores - running_max) / running_sum": (
            "return torch.exp(scores - running_max) / running_sum, running_max, running_sum"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_online", "sum-returned", "The sum is returned, not the weights",
    hint="How many weights should come back?",
    breaks=("returns",),
    change={"return torch.exp(scores - running_max) / running_sum": "return running_sum"},
)  # fmt: skip

mistake("softmax_online", "no-return", common="nothing-returned")

mistake(
    "softmax_online", "scores-returned", "The scores come back as they were",
    hint="What do the weights of a row add up to?",
    change={"return torch.exp(scores - running_max) / running_sum": "return scores.clone()"},
)  # fmt: skip

mistake(
    "softmax_online", "all-alike", "All scores get the same weight",
    hint="Which score should earn the largest weight?",
    change={
        "return torch.exp(scores - running_max) / running_sum": (
            "return torch.ones_like(scores) / scores.shape[-1]"
        ),
    },
)  # fmt: skip

accepted(
    "softmax_online", "lowest-number", "The dtype's lowest number to start from",
    change={"-torch.inf": "torch.finfo(scores.dtype).min"},
)  # fmt: skip

accepted(
    "softmax_online", "first-score", "The first score to start from",
    change={"torch.full_like(scores[..., :1], -torch.inf)": "scores[..., :1]"},
)  # fmt: skip

accepted(
    "softmax_online", "logarithm", "The logarithm of the sum is taken off at the end",
    change={
        "torch.exp(scores - running_max) / running_sum": (
            "torch.exp(scores - (running_max + torch.log(running_sum)))"
        ),
    },
)  # fmt: skip

accepted(
    "softmax_online", "right-to-left", "Blocks from right to left",
    change={"torch.split(scores, block_size, dim=-1)": "scores.split(block_size, dim=-1)[::-1]"},
)  # fmt: skip

accepted(
    "softmax_online", "smaller-blocks", "Blocks no larger than four",
    change={"(scores, block_size, dim=-1)": "(scores, min(block_size, 4), dim=-1)"},
)  # fmt: skip


@accepted("softmax_online", "states-merged", "A maximum and a sum for each block, merged in pairs")
def softmax_merging_states(scores, block_size):
    states = []
    for block in scores.split(block_size, dim=-1):
        top = block.amax(-1)
        states.append((top, (block - top.unsqueeze(-1)).exp().sum(-1)))
    while len(states) > 1:
        (m1, l1), (m2, l2) = states[:2]
        m = torch.maximum(m1, m2)
        states = [*states[2:], (m, l1 * (m1 - m).exp() + l2 * (m2 - m).exp())]
    m, total = states[0]
    return (scores - m[..., None]).exp() / total[..., None]


@accepted("softmax_online", "one-score-at-a-time", "A loop over single scores, as in the paper")
def softmax_a_score_at_a_time(x, block):
    m = torch.full(x.shape[:-1], float("-inf"), dtype=x.dtype)
    d = torch.zeros(x.shape[:-1], dtype=x.dtype)
    for j in range(x.size(-1)):
        old = m
        m = torch.where(x[..., j] > m, x[..., j], m)
        d = d * torch.exp(old - m) + torch.exp(x[..., j] - m)
    return torch.stack([torch.exp(x[..., j] - m) / d for j in range(x.size(-1))], dim=-1)


@accepted(
    "softmax_online", "block-maxima", "Each block by its own maximum, put together at the end"
)
def softmax_of_blocks_put_together(scores, block_size):
    parts, maxima, sums = [], [], []
    for start in range(0, scores.shape[-1], block_size):
        block = scores[..., start : start + block_size]
        maxima.append(block.max(dim=-1, keepdim=True)[0])
        parts.append(torch.exp(block - maxima[-1]))
        sums.append(parts[-1].sum(dim=-1, keepdim=True))
    largest = maxima[0]
    for maximum in maxima[1:]:
        largest = torch.maximum(largest, maximum)
    factors = [torch.exp(maximum - largest) for maximum in maxima]
    total = sum(s * factor for s, factor in zip(sums, factors, strict=True))
    return torch.cat([p * f / total for p, f in zip(parts, factors, strict=True)], dim=-1)


@accepted("softmax_online", "in-place-on-own", "Its own tensors are changed in place, and prints")
def softmax_with_buffers(scores, block_size):
    m = scores.new_full((*scores.shape[:-1], 1), -math.inf)
    d = scores.new_zeros((*scores.shape[:-1], 1))
    out = torch.empty_like(scores)
    for start in range(0, scores.shape[-1], block_size):
        block = scores.narrow(-1, start, min(block_size, scores.shape[-1] - start))
        m_new = torch.maximum(m, block.amax(-1, keepdim=True))
        d.mul_((m - m_new).exp_()).add_((block - m_new).exp_().sum(-1, keepdim=True))
        m.copy_(m_new)
    print("blocks done:", m.shape)
    torch.sub(scores, m, out=out)
    return out.exp_().div_(d)


@accepted("softmax_online", "no-grad", "Without gradients, in float64 inside")
@torch.no_grad()
def softmax_without_gradients(scores, block_size):
    x = scores.double()
    largest, total = torch.tensor(-torch.inf, dtype=torch.float64), 0.0
    for block in x.split(block_size, -1):
        new = torch.maximum(largest, block.amax(-1, keepdim=True))
        total = total * torch.exp(largest - new) + torch.exp(block - new).sum(-1, keepdim=True)
        largest = new
    return ((x - largest).exp() / total).type_as(scores)


@accepted("softmax_online", "rows-one-by-one", "A loop over rows, too")
def softmax_row_by_row(scores, block_size):
    n = scores.shape[-1]
    rows = []
    for row in scores.reshape(-1, n):
        m, d = row[0], torch.zeros_like(row[0])
        for block in row.split(block_size):
            m_new = max(m, block.max())
            d = d * torch.exp(m - m_new) + torch.exp(block - m_new).sum()
            m = m_new
        rows.append(torch.exp(row - m) / d)
    return torch.stack(rows).reshape(scores.shape)


# --- merge_states --------------------------------------------------------------------------------

mistake(
    "merge_states", "nan-of-two-empty", "Two empty states give NaN",
    hint="What is -inf - (-inf), and when does that happen?",
    breaks=("empty",),
    change={"new_max.masked_fill(new_max == -torch.inf, 0.0)": "new_max"},
)  # fmt: skip

mistake(
    "merge_states", "empty-ends-at-zero", "The maximum of two empty states is 0",
    hint="Which score have two empty states seen together?",
    breaks=("empty",),
    change={"return new_max, total": "return shift, total"},
)  # fmt: skip

mistake(
    "merge_states", "empty-ends-at-lowest", "The maximum of two empty states is a finite number",
    hint="What does nan_to_num make of -inf?",
    breaks=("empty",),
    change={"return new_max, total": "return new_max.nan_to_num(), total"},
    same_as={"empty-ends-at-zero": "both leave a finite maximum"},
)  # fmt: skip

mistake(
    "merge_states", "nan-becomes-zero", "NaN becomes 0 at the end, and so does -inf",
    hint="Which maximum has a state without any key?",
    breaks=("empty",),
    change={
        "new_max.masked_fill(new_max == -torch.inf, 0.0)": "new_max",
        "return new_max, total, mix": (
            "return new_max.nan_to_num(neginf=0.0), total.nan_to_num(), mix.nan_to_num()"
        ),
    },
    same_as={"empty-ends-at-zero": "both end at 0"},
)  # fmt: skip

mistake(
    "merge_states", "empty-only-as-a-whole",
    "A state counts as empty only where all of its queries are",
    hint="What if one query has met no key, and the next one has?",
    breaks=("empty",),
    change={
        "new_max = torch.maximum(first_max, second_max)": (
            "if (first_max == -torch.inf).all():\n"
            "        return second_max.clone(), second_total.clone(), second_mix.clone()\n"
            "    new_max = torch.maximum(first_max, second_max)"
        ),
        "new_max.masked_fill(new_max == -torch.inf, 0.0)": "new_max",
    },
)  # fmt: skip

mistake(
    "merge_states", "one-empty-query-for-all",
    "One query without keys makes the state count as empty",
    hint="If one query has met no key, what becomes of the others?",
    breaks=("empty",),
    change={
        "new_max = torch.maximum(first_max, second_max)": (
            "if (first_max == -torch.inf).any():\n"
            "        return second_max.clone(), second_total.clone(), second_mix.clone()\n"
            "    if (second_max == -torch.inf).any():\n"
            "        return first_max.clone(), first_total.clone(), first_mix.clone()\n"
            "    new_max = torch.maximum(first_max, second_max)"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "empty-one-returned", "Merged with an empty state, everything is lost",
    hint="Which of the two states is left when the other one is empty?",
    breaks=("empty",),
    change={
        "new_max = torch.maximum(first_max, second_max)": (
            "if (first_max == -torch.inf).all():\n"
            "        return first_max.clone(), first_total.clone(), first_mix.clone()\n"
            "    new_max = torch.maximum(first_max, second_max)"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "empty-total-never-zero", "The total of two empty states is not quite 0",
    hint="How many keys have two empty states met together?",
    breaks=("empty",),
    change={"return new_max, total": "return new_max, total.clamp(min=1e-6)"},
)  # fmt: skip

mistake(
    "merge_states", "infinite-maxima-become-zero", "A maximum of -inf is replaced by 0",
    hint="Which is the larger maximum: that of a state at -3, or that of an empty one?",
    breaks=("empty",),
    change={
        "new_max = torch.maximum(first_max, second_max)": (
            "first_max = first_max.masked_fill(first_max == -torch.inf, 0.0)\n"
            "    second_max = second_max.masked_fill(second_max == -torch.inf, 0.0)\n"
            "    new_max = torch.maximum(first_max, second_max)"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "mix-not-rescaled", "The mixes are added as they are",
    hint="Both mixes were made with maxima of their own. Which maximum should they have now?",
    change={
        "first_mix * first_factor[..., None] + second_mix * second_factor[..., None]": (
            "first_mix + second_mix"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "sum-not-rescaled", "The totals are added as they are",
    hint="Both totals were made with maxima of their own. Which maximum should they have now?",
    change={
        "first_total * first_factor + second_total * second_factor": "first_total + second_total",
    },
)  # fmt: skip

mistake(
    "merge_states", "nothing-rescaled", "Neither totals nor mixes are brought to one maximum",
    hint="Both states were made with maxima of their own. Which maximum should they have now?",
    change={
        "first_total * first_factor + second_total * second_factor": "first_total + second_total",
        "first_mix * first_factor[..., None] + second_mix * second_factor[..., None]": (
            "first_mix + second_mix"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "first-not-rescaled", "Only the second state is brought to the new maximum",
    hint="Which of the two may have the lower maximum?",
    change={"torch.exp(first_max - shift)": "torch.ones_like(first_max)"},
)  # fmt: skip

mistake(
    "merge_states", "second-not-rescaled", "Only the first state is brought to the new maximum",
    hint="Which of the two may have the lower maximum?",
    change={"torch.exp(second_max - shift)": "torch.ones_like(second_max)"},
)  # fmt: skip

mistake(
    "merge_states", "factors-swapped", "Each state gets the factor of the other",
    hint="Which state shrinks: the one with the larger maximum, or the other one?",
    change={
        "first_max - shift": "those - shift",
        "second_max - shift": "first_max - shift",
        "those - shift": "second_max - shift",
    },
)  # fmt: skip

mistake(
    "merge_states", "rescaling-inverted", "The factors are the inverse of what they should be",
    hint="When the maximum grows, should a sum become larger or smaller?",
    change={
        "torch.exp(first_max - shift)": "torch.exp(shift - first_max).nan_to_num(posinf=0.0)",
        "torch.exp(second_max - shift)": "torch.exp(shift - second_max).nan_to_num(posinf=0.0)",
    },
)  # fmt: skip

mistake(
    "merge_states", "factor-without-exp", "The factors are differences, without exp",
    hint="exp(s - 5) is exp(s - 3) times what?",
    change={
        "torch.exp(first_max - shift)": "(first_max - shift).nan_to_num(neginf=0.0)",
        "torch.exp(second_max - shift)": "(second_max - shift).nan_to_num(neginf=0.0)",
    },
)  # fmt: skip

mistake(
    "merge_states", "brought-to-the-lower-maximum", "Both go to the smaller maximum",
    hint="Which of two maxima is the maximum of both?",
    change={"torch.maximum(": "torch.minimum("},
)  # fmt: skip

mistake(
    "merge_states", "second-maximum-wins", "Everything is brought to the second maximum",
    hint="What if the first state has met the larger score?",
    change={"torch.maximum(first_max, second_max)": "second_max.clone()"},
)  # fmt: skip

mistake(
    "merge_states", "first-maximum-wins", "Everything is brought to the first maximum",
    hint="What if the second state has met the larger score?",
    change={"torch.maximum(first_max, second_max)": "first_max.clone()"},
)  # fmt: skip

mistake(
    "merge_states", "maxima-added", "The two maxima are added",
    hint="Which is the largest score of both?",
    change={"torch.maximum(first_max, second_max)": "first_max + second_max"},
)  # fmt: skip

mistake(
    "merge_states", "old-maximum-returned", "The first maximum is returned with the new sums",
    hint="Which maximum do the sums that you return belong to?",
    change={"return new_max, total": "return first_max.clone(), total"},
)  # fmt: skip

mistake(
    "merge_states", "mix-divided", "The mix is divided by the total too early",
    hint="What becomes of a divided mix when it is merged once more?",
    change={"return new_max, total, mix": "return new_max, total, mix / total[..., None]"},
)  # fmt: skip

mistake(
    "merge_states", "mixes-taken-as-means", "The mixes are taken for means, and weighed by totals",
    hint="Are the mixes that come in divided by their totals?",
    change={
        "first_mix * first_factor[..., None]": (
            "first_mix * (first_factor * first_total)[..., None]"
        ),
        "second_mix * second_factor[..., None]": (
            "second_mix * (second_factor * second_total)[..., None]"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "means-and-a-mean-again", "The mixes are means, before and after",
    hint="Are the mixes that come in divided by their totals?",
    change={
        "first_mix * first_factor[..., None] + second_mix * second_factor[..., None]": (
            "(first_mix * (first_factor * first_total)[..., None]\n"
            "        + second_mix * (second_factor * second_total)[..., None]\n"
            "    ) / total[..., None]"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "mixes-averaged", "The two mixes are averaged",
    hint="Is the mix a sum over keys, or a mean?",
    change={"second_mix * second_factor[..., None]\n": (
        "second_mix * second_factor[..., None]\n    mix = mix / 2\n"
    )},
)  # fmt: skip

mistake(
    "merge_states", "second-forgotten", "The second total is left out",
    hint="How many keys does the total of both count?",
    change={" + second_total * second_factor": ""},
)  # fmt: skip

mistake(
    "merge_states", "second-mix-forgotten", "The second mix is left out",
    hint="Whose values does the mix of both hold?",
    change={" + second_mix * second_factor[..., None]": ""},
)  # fmt: skip

mistake(
    "merge_states", "factor-along-the-features",
    "The factor of the first query goes to all of them",
    hint="A factor belongs to a query: how does it line up with (queries, d)?",
    change={
        "first_mix * first_factor[..., None]": "first_mix * first_factor[..., :1, None]",
        "second_mix * second_factor[..., None]": "second_mix * second_factor[..., :1, None]",
    },
)  # fmt: skip

mistake(
    "merge_states", "no-new-axis", "The factors line up with the features, not with the queries",
    hint="What are the shapes of a factor and of a mix?",
    change={
        "first_factor[..., None]": "first_factor",
        "second_factor[..., None]": "second_factor",
    },
)  # fmt: skip

mistake(
    "merge_states", "one-maximum-for-all", "One maximum is taken for all queries",
    hint="What is the largest score of each query?",
    change={"torch.maximum(first_max, second_max)": (
        "torch.maximum(first_max, second_max).max().expand_as(first_max)"
    )},
)  # fmt: skip

mistake(
    "merge_states", "logarithm-of-the-total", "The logarithm of the total is returned",
    hint="Is the total a sum of exponentials or its logarithm?",
    change={"return new_max, total": "return new_max, total.log()"},
)  # fmt: skip

mistake(
    "merge_states", "logarithm-for-maximum", "The logarithm of all exponentials is the maximum",
    hint="Which number of a state is its largest score?",
    change={"return new_max, total": "return new_max + total.log(), total"},
)  # fmt: skip

mistake(
    "merge_states", "factor-of-two-exponentials", "The factors are made of two exponentials",
    hint="What is exp(1000), on its own?",
    breaks=("large",),
    change={
        "torch.exp(first_max - shift)": "torch.exp(first_max) / torch.exp(shift)",
        "torch.exp(second_max - shift)": "torch.exp(second_max) / torch.exp(shift)",
    },
)  # fmt: skip

mistake(
    "merge_states", "shift-never-below-minus-hundred",
    "Low states are brought to -100, and vanish",
    hint="What is exp(-1000 - (-100))?",
    breaks=("large",),
    change={"new_max.masked_fill(new_max == -torch.inf, 0.0)": "new_max.clamp(min=-100.0)"},
)  # fmt: skip

mistake(
    "merge_states", "exponents-clamped", "Exponents stop at -10, so that low states count too much",
    hint="How much does a state add whose maximum lies 30 below the other?",
    change={
        "torch.exp(first_max - shift)": "torch.exp((first_max - shift).clamp(min=-10.0))",
        "torch.exp(second_max - shift)": "torch.exp((second_max - shift).clamp(min=-10.0))",
    },
)  # fmt: skip

mistake(
    "merge_states", "lower-state-dropped", "Only the state with the larger maximum is left",
    hint="Does a state count for nothing because another one has met a larger score?",
    change={
        "torch.exp(first_max - shift)": "(first_max >= second_max).to(total_of)",
        "torch.exp(second_max - shift)": "(second_max > first_max).to(total_of)",
        "shift = ": "total_of = first_total\n    shift = ",
    },
)  # fmt: skip

mistake(
    "merge_states", "two-dimensions-only", "Queries must stand in one dimension",
    hint="What may stand in front of the queries?",
    breaks=("leading",),
    change={"    new_max = torch": "    (_queries,) = first_max.shape\n    new_max = torch"},
)  # fmt: skip

mistake(
    "merge_states", "axis-counted-from-the-front", "The new axis is counted from the front",
    hint="Behind which dimension should the new one stand, however many come before it?",
    breaks=("leading",),
    change={
        "first_factor[..., None]": "first_factor.unsqueeze(1)",
        "second_factor[..., None]": "second_factor.unsqueeze(1)",
    },
    same_as={"two-dimensions-only": "both are right for a single sentence alone"},
)  # fmt: skip

mistake(
    "merge_states", "other-order", "The parts of the state come in another order",
    hint="In which order do maximum, total and mix come in?",
    breaks=("returns",),
    change={"return new_max, total, mix": "return mix, new_max, total"},
)  # fmt: skip

mistake(
    "merge_states", "total-first", "The total comes first, and then the maximum",
    hint="In which order do maximum, total and mix come in?",
    change={"return new_max, total, mix": "return total, new_max, mix"},
)  # fmt: skip

mistake(
    "merge_states", "attention-returned", "The mean of the values is returned, and not the state",
    hint="What does the next merge need to know?",
    breaks=("returns",),
    change={"return new_max, total, mix": "return mix / total[..., None]"},
)  # fmt: skip

mistake(
    "merge_states", "maximum-missing", "The maximum does not come back",
    hint="What does the next merge need to know?",
    breaks=("returns",),
    change={"return new_max, total, mix": "return total, mix"},
)  # fmt: skip

LOGSUMEXP = "The logsumexp and the mean of the values are returned, and not the state"
SAME_STATE = "Which three numbers would a query have if it had read all keys at once?"

for slug, returned in (
    ("with-ones", "new_max + total.log(), torch.ones_like(total), mix / total[..., None]"),
    ("with-total", "new_max + total.log(), total, mix / total[..., None]"),
):
    mistake(
        "merge_states", f"logsumexp-{slug}", LOGSUMEXP, hint=SAME_STATE,
        change={"return new_max, total, mix": f"return {returned}"},
    )  # fmt: skip

for slug, returned in (
    ("last", "mix / total[..., None], new_max + total.log()"),
    ("first", "new_max + total.log(), mix / total[..., None]"),
):
    mistake(
        "merge_states", f"logsumexp-{slug}", LOGSUMEXP, hint=SAME_STATE, breaks=("returns",),
        change={"return new_max, total, mix": f"return {returned}"},
    )  # fmt: skip

mistake(
    "merge_states", "all-divided", "Total and mix are both divided by the total",
    hint="What is the total after the merge: the sum of all exponentials, or 1?",
    change={
        "return new_max, total, mix": (
            "return new_max, torch.ones_like(total), mix / total[..., None]"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "states-with-logsumexp",
    "The states are taken for logsumexps with means of the values",
    hint="Does the first number of a state hold the total already, or is it a score?",
    change={
        "new_max = torch.maximum(first_max, second_max)": (
            "new_max = torch.logaddexp(first_max, second_max)"
        ),
        "total = first_total * first_factor + second_total * second_factor": (
            "total = first_total + second_total"
        ),
    },
)  # fmt: skip


mistake(
    "merge_states", "keepdim-left", "Maximum and total keep a dimension of size one",
    hint="Which shapes did maximum and total have when they came in?",
    breaks=("returns",),
    change={"return new_max, total, mix": "return new_max[..., None], total[..., None], mix"},
)  # fmt: skip

mistake(
    "merge_states", common="squeezed",
    change={
        "return new_max, total, mix": "return new_max.squeeze(), total.squeeze(), mix.squeeze()",
    },
)  # fmt: skip

mistake("merge_states", "no-return", common="nothing-returned")

mistake(
    "merge_states", "first-returned", "The first state comes back as it was",
    hint="Which keys does the state count after the merge?",
    change={
        "return new_max, total, mix": (
            "return first_max.clone(), first_total.clone(), first_mix.clone()"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "first-overwritten", "The merged state is written into the first one",
    hint="Who else holds the tensors that you were given?",
    breaks=("unchanged",),
    change={
        "return new_max, total, mix": (
            "first_max.data.copy_(new_max.data)\n    return new_max, total, mix"
        ),
    },
)  # fmt: skip

mistake(
    "merge_states", "mix-overwritten", "The second mix is overwritten",
    hint="Who else holds the tensors that you were given?",
    breaks=("unchanged",),
    change={
        "return new_max, total, mix": "second_mix.data.zero_()\n    return new_max, total, mix",
        "second_mix * second_factor": "second_mix.clone() * second_factor",
    },
)  # fmt: skip

mistake(
    "merge_states", common="float32-inside",
    change={
        "torch.exp(first_max - shift)": "torch.exp((first_max - shift).float()).to(first_max)",
        "torch.exp(second_max - shift)": "torch.exp((second_max - shift).float()).to(second_max)",
    },
)  # fmt: skip

mistake(
    "merge_states", common="returns-float64",
    change={
        "return new_max, total, mix": "return new_max.double(), total.double(), mix.double()",
    },
)  # fmt: skip

mistake(
    "merge_states", common="no-gradient",
    change={
        "return new_max, total, mix": "return new_max.detach(), total.detach(), mix.detach()",
    },
)  # fmt: skip

mistake(
    "merge_states", "mix-without-gradient", "No gradient flows to the second mix",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"second_mix * second": "second_mix.detach() * second"},
)  # fmt: skip

mistake(
    "merge_states", "factors-without-gradient", "No gradient flows through the factors",
    hint="Do the factors not depend on the maxima?",
    breaks=("gradients",),
    change={
        "torch.exp(first_max - shift)": "torch.exp(first_max - shift).detach()",
        "torch.exp(second_max - shift)": "torch.exp(second_max - shift).detach()",
    },
)  # fmt: skip

accepted(
    "merge_states", "list", "A list of three",
    change={"return new_max, total, mix": "return [new_max, total, mix]"},
)  # fmt: skip

accepted(
    "merge_states", "lowest-number", "The shift never falls below the dtype's lowest number",
    change={
        "new_max.masked_fill(new_max == -torch.inf, 0.0)": (
            "new_max.clamp(min=torch.finfo(new_max.dtype).min)"
        ),
    },
)  # fmt: skip

accepted(
    "merge_states", "factors-without-nan", "NaN factors become 0",
    change={
        "new_max.masked_fill(new_max == -torch.inf, 0.0)": "new_max",
        "torch.exp(first_max - shift)": "torch.exp(first_max - shift).nan_to_num(nan=0.0)",
        "torch.exp(second_max - shift)": "torch.exp(second_max - shift).nan_to_num(nan=0.0)",
    },
)  # fmt: skip


@accepted("merge_states", "logaddexp", "By logarithms of the totals, and logaddexp")
def merge_by_logaddexp(first, second):
    (m1, l1, o1), (m2, l2, o2) = first, second
    both = torch.logaddexp(m1 + torch.log(l1), m2 + torch.log(l2))
    m = torch.maximum(m1, m2)
    safe = torch.where(m == -torch.inf, 0.0, m)
    o = o1 * (m1 - safe).exp().unsqueeze(-1) + o2 * (m2 - safe).exp().unsqueeze(-1)
    return m, (both - safe).exp(), o


@accepted("merge_states", "stacked", "Both states in one tensor, with a dimension for which")
def merge_in_one_tensor(first, second):
    maxima, totals, mixes = (torch.stack(pair) for pair in zip(first, second, strict=True))
    top = maxima.amax(dim=0)
    finite = torch.where(torch.isfinite(top), top, torch.zeros_like(top))
    factors = torch.exp(maxima - finite)
    return top, (factors * totals).sum(0), torch.einsum("i...,i...d->...d", factors, mixes)


@accepted("merge_states", "by-cases", "The one with the larger maximum stays, the other shrinks")
def merge_by_cases(a, b):
    a_is_larger = a[0] >= b[0]
    high = [torch.where(a_is_larger, x, y) for x, y in zip(a[:2], b[:2], strict=True)]
    low = [torch.where(a_is_larger, y, x) for x, y in zip(a[:2], b[:2], strict=True)]
    shrink = torch.exp(low[0] - high[0])
    shrink = torch.where(low[0] == -torch.inf, torch.zeros_like(shrink), shrink)
    wide = a_is_larger.unsqueeze(-1)
    mix = torch.where(wide, a[2], b[2]) + shrink[..., None] * torch.where(wide, b[2], a[2])
    return high[0], high[1] + shrink * low[1], mix


@accepted("merge_states", "column-of-totals", "The total as one more column of the mix")
def merge_with_one_column_more(first, second):
    m1, m2 = first[0], second[0]
    new = torch.max(m1, m2)
    shift = new.clone()
    shift[shift == -math.inf] = 0
    sums = [
        torch.cat([mix, total[..., None]], dim=-1) * torch.exp(m - shift).unsqueeze(-1)
        for m, total, mix in (first, second)
    ]
    both = sums[0] + sums[1]
    return new, both[..., -1], both[..., :-1]


@accepted("merge_states", "named-result", "A class of its own for the state, and prints")
def merge_into_a_named_result(first, second):
    from collections import namedtuple

    State = namedtuple("State", ["maximum", "total", "mix"])
    one, other = State(*first), State(*second)
    top = torch.maximum(one.maximum, other.maximum)
    nothing = top.isneginf()
    total, mix = 0, 0
    for part in (one, other):
        factor = torch.exp(torch.where(nothing, -torch.inf, part.maximum - top))
        total = total + part.total * factor
        mix = mix + part.mix * factor[..., None]
    print("merged", total.shape)
    return State(top, total, mix)


@accepted("merge_states", "empty-ones-looked-for", "Empty queries are looked for, and filled in")
def merge_looking_for_empty_queries(first, second):
    (m1, l1, o1), (m2, l2, o2) = first, second
    new = torch.maximum(m1, m2)
    d1, d2 = (m1 - new).exp(), (m2 - new).exp()
    total, mix = l1 * d1 + l2 * d2, o1 * d1[..., None] + o2 * d2[..., None]
    empty = torch.isinf(m1) & torch.isinf(m2)
    return new, total.masked_fill(empty, 0.0), mix.masked_fill(empty[..., None], 0.0)


@accepted("merge_states", "query-by-query", "A loop over queries, in float64")
def merge_query_by_query(first, second):
    d = first[2].shape[-1]
    rows = []
    flat = [
        [part.double().reshape(-1, *part.shape[first[0].dim() :]) for part in state]
        for state in (first, second)
    ]
    for m1, l1, o1, m2, l2, o2 in zip(*flat[0], *flat[1], strict=True):
        if m1 == -math.inf:
            rows.append((m2, l2, o2))
        elif m2 == -math.inf:
            rows.append((m1, l1, o1))
        else:
            m = max(m1, m2)
            f1, f2 = torch.exp(m1 - m), torch.exp(m2 - m)
            rows.append((m, l1 * f1 + l2 * f2, o1 * f1 + o2 * f2))
    maximum, total, mix = (
        torch.stack(parts).type_as(first[0]) for parts in zip(*rows, strict=True)
    )
    shape = first[0].shape
    return maximum.view(shape), total.view(shape), mix.view(*shape, d)


# --- flash_attention -----------------------------------------------------------------------------

mistake(
    "flash_attention", "mix-not-rescaled", "The mix of values is not brought to the new maximum",
    hint="The mix was made with exp(score - 3). What is it worth once the maximum is 5?",
    change={"context * rescale + positive": "context + positive"},
)  # fmt: skip

mistake(
    "flash_attention", "sum-not-rescaled", "The sum so far is not brought to the new maximum",
    hint="The sum was made of exp(score - 3). What is it worth once the maximum is 5?",
    change={"running_sum * rescale + positive": "running_sum + positive"},
)  # fmt: skip

mistake(
    "flash_attention", "no-final-division", "The mix is never divided by the sum",
    hint="What do the weights that you mixed with add up to?",
    change={"return context / running_sum": "return context"},
)  # fmt: skip

mistake(
    "flash_attention", "maximum-starts-at-zero",
    "The maximum starts at 0, and scores can lie below",
    hint="What does the maximum become when every score is -200, and what is exp(-200 - 0)?",
    breaks=("large",),
    change={"full_like(queries[..., :1], -torch.inf)": "zeros_like(queries[..., :1])"},
)  # fmt: skip

common_mistakes("flash_attention", "no-scale")

mistake(
    "flash_attention", "causal-ignored", "Later keys are seen though causal is set",
    hint="What may the first query see when causal is True?",
    change={"if causal:": "if causal and False:"},
)  # fmt: skip

mistake(
    "flash_attention", "local-positions",
    "The causal mask counts keys from the start of their block",
    hint="At which position in the sentence does the first key of the second block stand?",
    change={"positions[start:end] >": "positions[: key_block.shape[-2]] >"},
)  # fmt: skip

mistake(
    "flash_attention", "causal-by-blocks-only",
    "Only whole later blocks are hidden, and none of the keys in a query's own block",
    hint="May the first query of a block see the last key of the same block?",
    change={
        "positions[start:end] > positions[:, None]": (
            "positions[start:end] // block_size > positions[:, None] // block_size"
        ),
    },
)  # fmt: skip

mistake(
    "flash_attention", "last-block-dropped", "Keys that do not fill a block are left out",
    hint="With 11 tokens and blocks of 4, how many blocks are there?",
    change={"range(0, tokens, block_size)": "range(0, tokens - block_size + 1, block_size)"},
)  # fmt: skip

mistake(
    "flash_attention", "rescaling-inverted", "The factor is the inverse of what it should be",
    hint="When the maximum grows, should the sum so far become larger or smaller?",
    change={"torch.exp(running_max - new_max)": "torch.exp(new_max - running_max)"},
)  # fmt: skip

common_mistakes("flash_attention", "no-square-root", "half-of-the-length")

mistake(
    "flash_attention", "scale-by-heads", "The scale counts the heads, not their features",
    hint="Over which dimension were the dot products summed?",
    change={"head_dim**0.5": "queries.shape[1] ** 0.5"},
)  # fmt: skip

mistake(
    "flash_attention", "rescaling-inverted-later", "The factor is the inverse of what it should be",
    hint="When the maximum grows, should the sum so far become larger or smaller?",
    change={
        "torch.full_like(queries[..., :1], -torch.inf)": (
            "(queries * keys[:, :, :1]).sum(-1, keepdim=True) / head_dim**0.5"
        ),
        "torch.exp(running_max - new_max)": "torch.exp(new_max - running_max)",
    },
)  # fmt: skip

mistake(
    "flash_attention", "nothing-rescaled", "Neither sum nor mix is brought to the new maximum",
    hint="Both were made with exp(score - 3). What are they worth once the maximum is 5?",
    change={
        "running_sum * rescale + positive": "running_sum + positive",
        "context * rescale + positive": "context + positive",
    },
)  # fmt: skip

common_mistakes("flash_attention", "scale-multiplied")

mistake(
    "flash_attention", "scale-by-block-size", "The scale counts the keys of a block",
    hint="Over which dimension were the dot products summed?",
    change={"head_dim**0.5": "block_size**0.5"},
)  # fmt: skip

mistake(
    "flash_attention", "scale-by-tokens", "The scale counts the tokens, not their features",
    hint="Over which dimension were the dot products summed?",
    change={"head_dim**0.5": "tokens**0.5"},
)  # fmt: skip

mistake(
    "flash_attention", "scale-by-all-features", "The scale counts the features of all heads",
    hint="How many features does the query of a single head have?",
    change={"head_dim**0.5": "(queries.shape[1] * head_dim) ** 0.5"},
)  # fmt: skip

mistake(
    "flash_attention", common="scaled-twice",
    same_as={"no-square-root": "two roots make the whole length"},
)  # fmt: skip

mistake(
    "flash_attention", "each-block-divided", "Each block is divided by its own sum, and then added",
    hint="Should a block of low scores get as much as a block of high ones?",
    change={
        "context * rescale + positive @ value_block": (
            "context + positive / positive.sum(dim=-1, keepdim=True) @ value_block"
        ),
        "return context / running_sum": "return context",
    },
)  # fmt: skip


@mistake(
    "flash_attention", "blocks-averaged",
    "Each block has a softmax of its own, and all count alike",
    hint="Should a block of low scores get as much as a block of high ones?",
)  # fmt: skip
def attention_of_blocks_averaged(queries, keys, values, block_size, causal=False):
    tokens = keys.shape[-2]
    context, count = torch.zeros_like(values), 0
    for start in range(0, tokens, block_size):
        scores = queries @ keys[:, :, start : start + block_size].mT / keys.shape[-1] ** 0.5
        if causal:
            hidden = torch.ones(tokens, scores.shape[-1], dtype=torch.bool).triu(1 - start)
            scores = scores.masked_fill(hidden, -torch.inf)
        weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
        context = context + weights @ values[:, :, start : start + block_size]
        count = count + weights.sum(-1, keepdim=True)
    return context / count


mistake(
    "flash_attention", "divided-at-every-step-too",
    "The mix is divided at every step, and treated as if it were not",
    hint="What must happen to the old sum before an average can be added to again?",
    change={
        "        running_max = new_max\n": (
            "        running_max = new_max\n        context = context / running_sum\n"
        ),
        "return context / running_sum": "return context",
    },
)  # fmt: skip

mistake(
    "flash_attention", "mix-forgotten", "Only the last block's values are left at the end",
    hint="What becomes of the blocks before, when a new one comes?",
    change={"context * rescale + positive": "positive"},
)  # fmt: skip

mistake(
    "flash_attention", "maximum-not-kept", "The new maximum is forgotten after its block",
    hint="What does the next block compare its own maximum with?",
    change={"        running_max = new_max\n": ""},
)  # fmt: skip

mistake(
    "flash_attention", "block-maximum-kept", "The last block's maximum is kept, not the largest",
    hint="Can a maximum fall when more scores come?",
    change={"running_max = new_max": "running_max = block_max"},
)  # fmt: skip

mistake(
    "flash_attention", "block-maximum-overflows",
    "Each block is shifted by its own maximum, and the past overflows when that falls",
    hint="What is the factor when one block lies at 200 and the next at -200?",
    breaks=("computes", "large"),
    change={"torch.maximum(running_max, block_max)": "block_max"},
)  # fmt: skip

mistake(
    "flash_attention", "exponentials-by-block-maximum",
    "A block's exponentials belong to the block's maximum, and are added to others",
    hint="Which maximum do both parts of the new sum have to belong to?",
    change={"torch.exp(scores - new_max)": "torch.exp(scores - block_max)"},
)  # fmt: skip

mistake(
    "flash_attention", "factor-of-two-exponentials", "The factor is made of two exponentials",
    hint="What is exp(200), on its own?",
    breaks=("large",),
    change={
        "torch.exp(running_max - new_max)": "torch.exp(running_max) / torch.exp(new_max)",
    },
)  # fmt: skip

mistake(
    "flash_attention", "factor-on-the-block", "The factor falls on the new block",
    hint="Which of the two parts still belongs to the old maximum?",
    change={
        "running_sum * rescale + positive.sum(dim=-1, keepdim=True)": (
            "running_sum + positive.sum(dim=-1, keepdim=True) * rescale"
        ),
        "context * rescale + positive @ value_block": "context + positive @ value_block * rescale",
    },
)  # fmt: skip

mistake(
    "flash_attention", "updated-too-early", "The factor is computed after the maximum was replaced",
    hint="Does the factor still know the old maximum?",
    change={
        "rescale = torch.exp(running_max - new_max)": (
            "running_max = new_max\n"
            "        rescale = torch.exp(running_max - new_max)"
        ),
    },
    same_as={"nothing-rescaled": "a factor of 1 is no factor"},
)  # fmt: skip


@mistake(
    "flash_attention", "without-a-maximum", "Large scores overflow to infinity",
    hint="What is exp(200)? And which shift makes no exponential larger than 1?",
    breaks=("large",),
)  # fmt: skip
def attention_without_a_maximum(queries, keys, values, block_size, causal=False):
    tokens = keys.shape[-2]
    total, context = 0.0, 0.0
    for start in range(0, tokens, block_size):
        scores = queries @ keys[:, :, start : start + block_size].mT / keys.shape[-1] ** 0.5
        if causal:
            hidden = torch.ones(tokens, scores.shape[-1], dtype=torch.bool).triu(1 - start)
            scores = scores.masked_fill(hidden, -torch.inf)
        positive = scores.exp()
        total = total + positive.sum(-1, keepdim=True)
        context = context + positive @ values[:, :, start : start + block_size]
    return context / total


mistake(
    "flash_attention", common="clamped",
    breaks=("large",),
    change={"/ head_dim**0.5\n": "/ head_dim**0.5\n        scores = scores.clamp(-80.0, 80.0)\n"},
)  # fmt: skip

mistake(
    "flash_attention", "one-maximum-for-all", "All queries share one maximum",
    hint="What is left of a query whose scores all lie far below those of another?",
    breaks=("large", "block"),
    change={"scores.amax(dim=-1, keepdim=True)": "scores.max()"},
)  # fmt: skip

mistake(
    "flash_attention", "no-exp", "The scores are mixed with, without exp",
    hint="What makes every score positive, and keeps the order?",
    change={"torch.exp(scores - new_max)": "(scores - new_max)"},
)  # fmt: skip


@mistake(
    "flash_attention", "not-tiled", "All weights are stored at once",
    hint="How many numbers does your largest tensor hold, for 4096 tokens?",
    breaks=("memory", "block"),
)  # fmt: skip
def attention_in_one_go(queries, keys, values, block_size, causal=False):  # noqa: ARG001
    tokens = queries.shape[-2]
    scores = queries @ keys.transpose(-2, -1) / queries.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(tokens, tokens).triu(1).bool(), -torch.inf)
    return torch.softmax(scores, dim=-1) @ values


mistake(
    "flash_attention", "tiled-too-late", "A tensor on the way grows faster than the tokens",
    hint="How many keys does your largest tensor hold, and how many for twice the tokens?",
    breaks=("memory",),
    change={
        "    for start in range(": (
            "    all_scores = queries @ keys.transpose(-2, -1) / head_dim**0.5\n"
            "    for start in range("
        ),
        "queries @ key_block.transpose(-2, -1) / head_dim**0.5": "all_scores[..., start:end]",
    },
)  # fmt: skip


@mistake(
    "flash_attention", "tiles-kept", "Something of every block is kept until the end",
    hint="What does that hold for all blocks together? When could you merge it and forget it?",
    breaks=("memory",),
)  # fmt: skip
def attention_that_keeps_its_blocks(queries, keys, values, block_size, causal=False):
    tokens = keys.shape[-2]
    blocks, largest = [], torch.full_like(queries[..., :1], -torch.inf)
    for start in range(0, tokens, block_size):
        scores = queries @ keys[:, :, start : start + block_size].mT / keys.shape[-1] ** 0.5
        if causal:
            hidden = torch.ones(tokens, scores.shape[-1], dtype=torch.bool).triu(1 - start)
            scores = scores.masked_fill(hidden, -torch.inf)
        largest = torch.maximum(largest, scores.amax(-1, keepdim=True))
        blocks.append(scores)
    total, context = torch.zeros_like(largest), torch.zeros_like(values)
    for number, scores in enumerate(blocks):
        start = number * block_size
        positive = torch.exp(scores - largest)
        total = total + positive.sum(-1, keepdim=True)
        context = context + positive @ values[:, :, start : start + block_size]
    return context / total


@mistake(
    "flash_attention", "states-kept", "Something of every block is kept until the end",
    hint="What does that hold for all blocks together? When could you merge it and forget it?",
    breaks=("memory",),
)  # fmt: skip
def attention_of_blocks_put_together(queries, keys, values, block_size, causal=False):
    tokens, scale = keys.shape[-2], keys.shape[-1] ** -0.5
    maxima, sums, mixes = [], [], []
    for start in range(0, tokens, block_size):
        scores = (queries * scale) @ keys[:, :, start : start + block_size].mT
        if causal:
            hidden = torch.ones(tokens, scores.shape[-1], dtype=torch.bool).triu(1 - start)
            scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        maxima.append(scores.amax(-1, keepdim=True))
        positive = torch.exp(scores - maxima[-1])
        sums.append(positive.sum(-1, keepdim=True))
        mixes.append(positive @ values[:, :, start : start + block_size])
    largest = maxima[0]
    for maximum in maxima[1:]:
        largest = torch.maximum(largest, maximum)
    factors = [torch.exp(maximum - largest) for maximum in maxima]
    total = sum(s * f for s, f in zip(sums, factors, strict=True))
    return sum(mix * f for mix, f in zip(mixes, factors, strict=True)) / total


mistake(
    "flash_attention", "blocks-of-a-number", "A tensor on the way grows faster than the tokens",
    hint="How many keys does your largest tensor hold, and how many for twice the tokens?",
    breaks=("memory", "block"),
    change={
        "    for start in range(": (
            "    block_size = -(-tokens // block_size)\n"
            "    for start in range("
        ),
    },
    same_as={"tiled-too-late": "a count says that a tensor is too large, and not which"},
)  # fmt: skip


@mistake(
    "flash_attention", "queries-one-by-one", "A loop over single queries takes too long",
    hint="A product serves all queries at once: which of your loops can go?",
    breaks=("loops",),
)  # fmt: skip
def attention_query_by_query(queries, keys, values, block_size, causal=False):
    tokens, scale = queries.shape[2], queries.shape[3] ** -0.5
    rows = []
    for i in range(tokens):
        q = queries[:, :, i : i + 1] * scale
        end = i + 1 if causal else tokens
        m = torch.full_like(q[..., :1], -torch.inf)
        total, mix = torch.zeros_like(m), torch.zeros_like(q)
        for start in range(0, end, block_size):
            stop = min(start + block_size, end)
            scores = q @ keys[:, :, start:stop].mT
            m_new = torch.maximum(m, scores.amax(-1, keepdim=True))
            factor, positive = torch.exp(m - m_new), torch.exp(scores - m_new)
            total = total * factor + positive.sum(-1, keepdim=True)
            mix = mix * factor + positive @ values[:, :, start:stop]
            m = m_new
        rows.append(mix / total)
    return torch.cat(rows, dim=2)


mistake(
    "flash_attention", "whole-causal-mask", "The causal mask is made for all tokens at once",
    hint="How many numbers does your mask hold, and how many of them does a block need?",
    breaks=("memory",),
    change={
        "positions[start:end] > positions[:, None]": (
            "torch.ones(tokens, tokens, dtype=torch.bool).triu(1)[:, start:end]"
        ),
    },
)  # fmt: skip

mistake(
    "flash_attention", "block-size-of-its-own", "Blocks have a size of their own, and a larger one",
    hint="Who says how large a block is?",
    breaks=("block",),
    change={
        "    for start in range(": "    block_size = 13\n    for start in range(",
    },
)  # fmt: skip

mistake(
    "flash_attention", "causal-by-default", "Later keys are hidden though nobody asked",
    hint="What may a query see when nothing is said about causal?",
    change={"causal: bool = False": "causal: bool = True"},
)  # fmt: skip

mistake(
    "flash_attention", "always-causal", "Later keys are hidden, whatever causal says",
    hint="What may a query see when causal is False?",
    change={"if causal:": "if True:"},
)  # fmt: skip

mistake(
    "flash_attention", "hides-the-past", "The past is hidden and the future is open",
    hint="Which keys lie in a query's future: those at larger positions or at smaller ones?",
    change={"positions[start:end] > positions": "positions[start:end] < positions"},
)  # fmt: skip

mistake(
    "flash_attention", "hides-itself", "A token cannot see itself",
    hint="May the first token look at anything at all?",
    change={"positions[start:end] > positions": "positions[start:end] >= positions"},
)  # fmt: skip

mistake(
    "flash_attention", common="sees-one-ahead",
    change={
        "positions[start:end] > positions[:, None]": (
            "positions[start:end] > positions[:, None] + 1"
        ),
    },
)  # fmt: skip

common_mistakes("flash_attention", "mask-fills-zero")

mistake(
    "flash_attention", common="mask-thrown-away",
    same_as={"causal-ignored": "either way nothing is hidden"},
)  # fmt: skip

mistake(
    "flash_attention", "hidden-scores-in-the-maximum",
    "Hidden keys have no weight, and still a say in the maximum",
    hint="What is left of the visible keys if a hidden score lies 400 above them?",
    breaks=("large",),
    change={
        "scores = scores.masked_fill(future, -torch.inf)": "pass",
        "torch.exp(scores - new_max)": (
            "torch.exp(scores - new_max)\n"
            "        if causal:\n"
            "            positive = positive.masked_fill(future, 0.0)"
        ),
    },
)  # fmt: skip


@mistake(
    "flash_attention", "triangle-in-every-tile",
    "The same triangle is put on every tile, wherever it lies",
    hint="Which keys may a query of the second block see in the first block?",
)  # fmt: skip
def attention_with_a_triangle_on_each_tile(queries, keys, values, block_size, causal=False):
    tokens, scale = queries.shape[-2], queries.shape[-1] ** -0.5
    rows = []
    for row in range(0, tokens, block_size):
        query_block = queries[:, :, row : row + block_size] * scale
        largest = torch.full_like(query_block[..., :1], -torch.inf)
        total, context = torch.zeros_like(largest), torch.zeros_like(query_block)
        for start in range(0, tokens, block_size):
            if causal and start > row:
                break
            scores = query_block @ keys[:, :, start : start + block_size].mT
            if causal:
                hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
                scores = scores.masked_fill(hidden, -torch.inf)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            factor, positive = torch.exp(largest - new), torch.exp(scores - new)
            total = total * factor + positive.sum(-1, keepdim=True)
            context = context * factor + positive @ values[:, :, start : start + block_size]
            largest = new
        rows.append(context / total)
    return torch.cat(rows, dim=2)


@mistake(
    "flash_attention", "own-block-skipped",
    "A query sees the blocks before its own, and not that one",
    hint="May a token see itself, and in which block does it stand?",
)  # fmt: skip
def attention_to_earlier_blocks(queries, keys, values, block_size, causal=False):
    tokens, scale = queries.shape[-2], queries.shape[-1] ** -0.5
    rows = []
    for row in range(0, tokens, block_size):
        query_block = queries[:, :, row : row + block_size] * scale
        largest = torch.full_like(query_block[..., :1], -torch.inf)
        total, context = torch.zeros_like(largest), torch.zeros_like(query_block)
        for start in range(0, row if causal else tokens, block_size):
            scores = query_block @ keys[:, :, start : start + block_size].mT
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            factor, positive = torch.exp(largest - new), torch.exp(scores - new)
            total = total * factor + positive.sum(-1, keepdim=True)
            context = context * factor + positive @ values[:, :, start : start + block_size]
            largest = new
        rows.append(context / total)
    return torch.cat(rows, dim=2)


@mistake(
    "flash_attention", "blocks-keep-to-themselves", "A query sees the keys of its own block only",
    hint="Which keys should a query of the second block meet?",
)  # fmt: skip
def attention_within_blocks(queries, keys, values, block_size, causal=False):
    rows = []
    for start in range(0, queries.shape[-2], block_size):
        q, k, v = (x[:, :, start : start + block_size] for x in (queries, keys, values))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        rows.append(torch.softmax(scores, dim=-1) @ v)
    return torch.cat(rows, dim=2)


mistake(
    "flash_attention", common="values-are-keys",
    change={"value_block = values[": "value_block = keys["},
)  # fmt: skip

mistake(
    "flash_attention", common="queries-and-keys-swapped", hint="Who asks, and who answers?",
    change={
        "queries @ key_block.transpose(-2, -1)": (
            "keys @ queries[:, :, start:end].transpose(-2, -1)"
        ),
    },
)  # fmt: skip

mistake(
    "flash_attention", "tokens-and-heads-swapped", "The second axis is taken for the tokens",
    hint="Which axis holds the heads, and which the tokens?",
    change={
        "    _batch, _heads,": (
            "    queries, keys, values = (x.transpose(1, 2) for x in (queries, keys, values))\n"
            "    _batch, _heads,"
        ),
        "return context / running_sum": "return (context / running_sum).transpose(1, 2)",
    },
)  # fmt: skip

mistake(
    "flash_attention", "blocks-must-fit", "Sentences that blocks do not fill end in an error",
    hint="Must block_size divide the tokens?",
    change={
        "keys[:, :, start:end]": (
            "keys.unflatten(2, (-1, block_size))[:, :, start // block_size]"
        ),
        "values[:, :, start:end]": (
            "values.unflatten(2, (-1, block_size))[:, :, start // block_size]"
        ),
    },
)  # fmt: skip

mistake(
    "flash_attention", "padding-counts", "The keys that fill up the last block count as well",
    hint="Which score has a key of zeros, and which weight does that make?",
    change={
        "    for start in range(": (
            "    missing = -tokens % block_size\n"
            "    keys, values = (\n"
            "        torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in (keys, values)\n"
            "    )\n"
            "    for start in range("
        ),
        "positions[start:end] >": "torch.arange(start, end) >",
    },
)  # fmt: skip

mistake(
    "flash_attention", common="calls-torch-attention",
    change={
        "return context / running_sum": (
            "return torch.nn.functional.scaled_dot_product_attention(\n"
            "        queries, keys, values, is_causal=causal\n"
            "    )"
        ),
    },
)  # fmt: skip

mistake(
    "flash_attention", "statistics-too", "Maximum and sum are returned along with the result",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "return context / running_sum": (
            "return context / running_sum, running_max, running_sum"
        ),
    },
)  # fmt: skip

mistake("flash_attention", "no-return", common="nothing-returned")

mistake(
    "flash_attention", "values-returned", "The values come back as they were",
    hint="What should a query get that likes two keys equally well?",
    change={"return context / running_sum": "return values.clone()"},
)  # fmt: skip

mistake(
    "flash_attention", "plain-mean", "All keys get the same weight",
    hint="Do your queries and keys have any say in the result?",
    change={"torch.exp(scores - new_max)": "torch.exp((scores - new_max) * 0.0)"},
)  # fmt: skip

mistake(
    "flash_attention", "zeros", "The result is nothing but zeros",
    hint="Which line puts something into the tensor that you return?",
    change={"return context / running_sum": "return torch.zeros_like(values)"},
)  # fmt: skip

mistake(
    "flash_attention", common="changes-its-input",
    change={
        "    for start in range(": "    queries /= head_dim**0.5\n    for start in range(",
        "key_block.transpose(-2, -1) / head_dim**0.5": "key_block.transpose(-2, -1)",
    },
)  # fmt: skip

mistake(
    "flash_attention", "mix-written-into-values",
    "The mix is written into the values, which are still to be read",
    hint="Is `x = values` a new tensor? And is it zero to begin with?",
    change={
        "torch.zeros_like(values)": "values",
        "context = context * rescale + positive @ value_block": (
            "context.mul_(rescale).add_(positive @ value_block)"
        ),
    },
    same_as={"zeros": "the first factor is 0, and wipes the values out"},
)  # fmt: skip

mistake(
    "flash_attention", common="float32-hard-coded",
    change={
        "return context / running_sum": (
            "return (context.float() / running_sum.float()).to(values.dtype)"
        ),
    },
)  # fmt: skip

for slug, logsumexp in (
    ("", "(running_max + running_sum.log())[..., 0]"),
    ("-with-an-axis", "running_max + running_sum.log()"),
):
    mistake(
        "flash_attention", f"logsumexp-returned-too{slug}",
        "The logsumexp of the scores is returned as well",
        hint="How many tensors does the caller expect?",
        breaks=("returns",),
        change={"return context / running_sum": f"return context / running_sum, {logsumexp}"},
    )  # fmt: skip


common_mistakes("flash_attention", "returns-float64")

accepted(
    "flash_attention", "triangle-shifted", "A triangle of each block's own, shifted by its start",
    change={
        "positions[start:end] > positions[:, None]": (
            "torch.ones(tokens, key_block.shape[2], dtype=torch.bool).triu(1 - start)"
        ),
    },
)  # fmt: skip

accepted(
    "flash_attention", "minus-billion", "A score of -1e9 for minus infinity, in both places",
    change={
        "queries[..., :1], -torch.inf": "queries[..., :1], -1e9",
        "future, -torch.inf": "future, -1e9",
    },
)  # fmt: skip

accepted(
    "flash_attention", "no-grad", "Without gradients, and with a print",
    change={
        "    for start in range(": (
            "    print('tokens:', tokens)\n"
            "    torch.set_grad_enabled(False)\n"
            "    for start in range("
        ),
    },
)  # fmt: skip


@accepted("flash_attention", "tiles-of-both", "Queries in blocks too, as in the paper")
def attention_in_tiles(q, k, v, block, is_causal=False):
    b, h, t, d = q.shape
    rows = []
    for i in range(0, t, block):
        qi = q[:, :, i : i + block]
        n = qi.shape[2]
        m = torch.full((b, h, n), float("-inf"), dtype=q.dtype)
        s = torch.zeros(b, h, n, dtype=q.dtype)
        o = torch.zeros(b, h, n, d, dtype=q.dtype)
        for j in range(0, t, block):
            if is_causal and j > i:
                break
            sij = torch.einsum("bhid,bhjd->bhij", qi, k[:, :, j : j + block]) / math.sqrt(d)
            if is_causal:
                rows_at = torch.arange(i, i + n)[:, None]
                columns_at = torch.arange(j, j + sij.shape[-1])[None, :]
                sij = torch.where(columns_at <= rows_at, sij, float("-inf"))
            m_new = torch.maximum(m, sij.max(dim=-1).values)
            p = torch.exp(sij - m_new[..., None])
            alpha = torch.exp(m - m_new)
            s = alpha * s + p.sum(dim=-1)
            o = alpha[..., None] * o + torch.einsum("bhij,bhjd->bhid", p, v[:, :, j : j + block])
            m = m_new
        rows.append(o / s[..., None])
    return torch.cat(rows, dim=2)


@accepted("flash_attention", "always-divided", "The mix is an average at every step: Algorithm 1")
def attention_divided_at_every_step(queries, keys, values, block_size, causal=False):
    tokens, scale = keys.shape[-2], keys.shape[-1] ** -0.5
    largest = queries.new_full((*queries.shape[:-1], 1), -torch.inf)
    total, out = torch.zeros_like(largest), torch.zeros_like(queries)
    for start in range(0, tokens, block_size):
        scores = queries @ keys[:, :, start : start + block_size].mT * scale
        if causal:
            hidden = torch.ones(tokens, scores.shape[-1]).triu(1 - start).bool()
            scores.masked_fill_(hidden, -torch.inf)
        block_max = scores.amax(-1, keepdim=True)
        new = torch.maximum(largest, block_max)
        positive = torch.exp(scores - new)
        old_total = torch.exp(largest - new) * total
        total = old_total + positive.sum(-1, keepdim=True)
        out = (old_total * out + positive @ values[:, :, start : start + block_size]) / total
        largest = new
    return out


@accepted("flash_attention", "two-passes", "All maxima first, then sums and mixes")
def attention_in_two_passes(queries, keys, values, block_size, causal=False):
    tokens = keys.shape[2]

    def scores_of(start):
        scores = queries @ keys[:, :, start : start + block_size].mT / keys.shape[-1] ** 0.5
        if not causal:
            return scores
        position = torch.arange(start, start + scores.shape[-1])
        return scores.masked_fill(position > torch.arange(tokens)[:, None], -torch.inf)

    starts = range(0, tokens, block_size)
    largest = scores_of(0).amax(-1, keepdim=True)
    for start in starts[1:]:
        largest = torch.maximum(largest, scores_of(start).amax(-1, keepdim=True))
    total = context = 0
    for start in starts:
        positive = torch.exp(scores_of(start) - largest)
        total = total + positive.sum(-1, keepdim=True)
        context = context + positive @ values[:, :, start : start + block_size]
    return context / total


@accepted("flash_attention", "softmax-of-blocks", "A softmax for each block, mixed by logarithms")
def attention_by_softmax_of_blocks(queries, keys, values, block_size, causal=False):
    tokens = keys.shape[-2]
    out, logarithm = None, None
    for start in range(0, tokens, block_size):
        scores = queries @ keys[:, :, start : start + block_size].mT / keys.shape[-1] ** 0.5
        if causal:
            hidden = torch.ones(tokens, scores.shape[-1], dtype=torch.bool).triu(1 - start)
            scores = scores.masked_fill(hidden, -torch.inf)
        part = torch.softmax(scores, dim=-1).nan_to_num() @ values[:, :, start : start + block_size]
        part_logarithm = torch.logsumexp(scores, dim=-1, keepdim=True)
        if out is None:
            out, logarithm = part, part_logarithm
            continue
        both = torch.logaddexp(logarithm, part_logarithm)
        out = out * torch.exp(logarithm - both) + part * torch.exp(part_logarithm - both)
        logarithm = both
    return out


@accepted("flash_attention", "right-to-left", "Blocks from right to left, with empty rows mended")
def attention_from_the_right(queries, keys, values, block_size, causal=False):
    tokens, positions = keys.shape[-2], torch.arange(keys.shape[-2])
    largest = torch.full_like(queries[..., :1], -torch.inf)
    total, context = torch.zeros_like(largest), torch.zeros_like(values)
    for start in reversed(range(0, tokens, block_size)):
        scores = queries @ keys[:, :, start : start + block_size].mT / keys.shape[-1] ** 0.5
        if causal:
            future = positions[start : start + block_size] > positions[:, None]
            scores = scores.masked_fill(future, -torch.inf)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        shift = new.masked_fill(new == -torch.inf, 0.0)
        factor, positive = torch.exp(largest - shift), torch.exp(scores - shift)
        total = total * factor + positive.sum(-1, keepdim=True)
        context = context * factor + positive @ values[:, :, start : start + block_size]
        largest = new
    return context / total


@accepted("flash_attention", "padded", "Keys padded to whole blocks, and the padding hidden")
def attention_padded(queries, keys, values, block_size, causal=False):
    tokens, scale = keys.shape[-2], keys.shape[-1] ** -0.5
    missing = -tokens % block_size
    key_blocks = F.pad(keys, (0, 0, 0, missing)).unflatten(2, (-1, block_size)).unbind(2)
    value_blocks = F.pad(values, (0, 0, 0, missing)).unflatten(2, (-1, block_size)).unbind(2)
    rows = torch.arange(tokens)[:, None]
    largest = torch.full_like(queries[..., :1], -torch.inf)
    total, context = torch.zeros_like(largest), torch.zeros_like(queries)
    for number, (key_block, value_block) in enumerate(zip(key_blocks, value_blocks, strict=True)):
        columns = torch.arange(block_size) + number * block_size
        hidden = (columns >= tokens) | ((columns > rows) if causal else False)
        scores = (queries @ key_block.mT * scale).masked_fill(hidden, -torch.inf)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        factor, positive = torch.exp(largest - new), torch.exp(scores - new)
        total = total * factor + positive.sum(-1, keepdim=True)
        context = context * factor + positive @ value_block
        largest = new
    return context / total


@accepted("flash_attention", "heads-one-by-one", "A loop over sentences and heads, in place")
def attention_head_by_head(queries, keys, values, block_size, causal=False):
    batch, heads, tokens, head_dim = queries.shape
    out = torch.zeros_like(values)
    for b in range(batch):
        for h in range(heads):
            q, k, v = queries[b, h], keys[b, h], values[b, h]
            m, total = q.new_full((tokens, 1), -torch.inf), q.new_zeros(tokens, 1)
            for start in range(0, tokens, block_size):
                scores = q @ k[start : start + block_size].T
                scores /= head_dim**0.5
                if causal:
                    hidden = torch.ones(scores.shape, dtype=torch.bool).triu(1 - start)
                    scores[hidden] = -torch.inf
                m_new = torch.maximum(m, scores.max(dim=1, keepdim=True).values)
                scores.sub_(m_new).exp_()
                factor = torch.exp(m - m_new)
                total.mul_(factor).add_(scores.sum(1, keepdim=True))
                out[b, h].mul_(factor).add_(scores @ v[start : start + block_size])
                m = m_new
            out[b, h] /= total
    return out


# --- softmax_backward ----------------------------------------------------------------------------

mistake(
    "softmax_backward", "no-average", "The row's average is not taken off",
    hint="If all gradients of a row are equal, which score should grow?",
    change={"(grad_weights - average)": "grad_weights"},
)  # fmt: skip

mistake(
    "softmax_backward", "weights-missing", "The difference from the average is not weighed",
    hint="How much does a weight of nearly 0 change when its score does?",
    change={"weights * (grad_weights - average)": "grad_weights - average"},
)  # fmt: skip

mistake(
    "softmax_backward", "plain-mean", "The average counts all keys alike",
    hint="In the average of a row, how much does each gradient count?",
    change={"(weights * grad_weights).sum(": "grad_weights.mean("},
)  # fmt: skip

mistake(
    "softmax_backward", "sum-without-weights", "The average is a sum that does not weigh",
    hint="In the average of a row, how much does each gradient count?",
    change={"(weights * grad_weights).sum(": "grad_weights.sum("},
)  # fmt: skip

mistake(
    "softmax_backward", "weighted-mean", "The weighted sum is divided by how many there are",
    hint="What do the weights of a row add up to already?",
    change={"(weights * grad_weights).sum(": "(weights * grad_weights).mean("},
)  # fmt: skip

mistake(
    "softmax_backward", "gradient-of-log-softmax", "That is the gradient of a log-softmax",
    hint="Did the loss see weights, or their logarithms?",
    change={
        "weights * (grad_weights - average)": (
            "grad_weights - weights * grad_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_backward", "average-not-weighed", "The average is taken off, and not weighed",
    hint="Which part of weights · (grad_weights - average) has lost its weight?",
    change={"weights * (grad_weights - average)": "weights * grad_weights - average"},
)  # fmt: skip

mistake(
    "softmax_backward", "diagonal-only", "Each weight depends on its own score only",
    hint="If one score grows, what happens to the other weights of its row?",
    change={"weights * (grad_weights - average)": "weights * (1 - weights) * grad_weights"},
)  # fmt: skip

mistake(
    "softmax_backward", "average-over-queries", "The average runs over the rows",
    hint="Along which dimension do the weights sum to one?",
    change={"sum(dim=-1, keepdim=True)": "sum(dim=0, keepdim=True)"},
)  # fmt: skip

mistake(
    "softmax_backward", "average-over-everything", "One average is taken for all rows",
    hint="How many softmaxes are there: one, or one for each row?",
    change={"sum(dim=-1, keepdim=True)": "sum()"},
)  # fmt: skip

mistake(
    "softmax_backward", common="no-keepdim",
    hint="Does an average of shape (rows,) line up with the rows or with the columns?",
)  # fmt: skip

mistake(
    "softmax_backward", "average-added", "The average is added, not taken off",
    hint="If all gradients of a row are equal, which score should grow?",
    change={"grad_weights - average": "grad_weights + average"},
)  # fmt: skip

mistake(
    "softmax_backward", "sign-turned", "The gradient has the wrong sign",
    hint="A weight with the largest gradient of its row: should its score grow or shrink?",
    change={"grad_weights - average": "average - grad_weights"},
)  # fmt: skip

mistake(
    "softmax_backward", "weights-squared", "The weights come in twice",
    hint="How often does the formula multiply by the weights outside of the sum?",
    change={"weights * (grad_weights - average)": "weights * weights * (grad_weights - average)"},
)  # fmt: skip

mistake(
    "softmax_backward", "weights-taken-for-scores", "The weights go through a softmax once more",
    hint="Are these scores or weights that come in?",
    change={"average =": "weights = torch.softmax(weights, dim=-1)\n    average ="},
)  # fmt: skip

mistake(
    "softmax_backward", "of-cross-entropy", "That is the gradient of a cross-entropy",
    hint="What does the formula do with grad_weights and the weights: subtract or multiply?",
    change={"weights * (grad_weights - average)": "weights - grad_weights"},
)  # fmt: skip

mistake(
    "softmax_backward", "arguments-swapped", "Weights and gradient have changed places",
    hint="Which of the two is a distribution?",
    change={"average =": "weights, grad_weights = grad_weights, weights\n    average ="},
)  # fmt: skip

mistake(
    "softmax_backward", "scaled", "The gradient is divided by the root of the row's length",
    hint="Has this softmax seen a scale?",
    change={"(grad_weights - average)": "(grad_weights - average) / weights.shape[-1] ** 0.5"},
)  # fmt: skip

mistake(
    "softmax_backward", "passed-on", "The gradient is passed on as it came",
    hint="If all gradients of a row are equal, which score should grow?",
    change={"weights * (grad_weights - average)": "grad_weights.clone()"},
)  # fmt: skip

mistake(
    "softmax_backward", "average-returned", "The average is returned",
    hint="How many gradients does a row need?",
    breaks=("returns",),
    change={"return weights * (grad_weights - average)": "return average"},
)  # fmt: skip

mistake(
    "softmax_backward", "jacobian-returned", "All derivatives are returned, and not multiplied",
    hint="How many gradients does a row need?",
    breaks=("returns",),
    change={
        "return weights * (grad_weights - average)": (
            "return torch.diag_embed(weights) - weights[..., None] * weights[..., None, :]"
        ),
    },
)  # fmt: skip


@mistake(
    "softmax_backward", "divided-by-weights", "A weight of 0 is divided by, and gives NaN",
    hint="What is 0 / 0?",
    breaks=("hidden",),
)  # fmt: skip
def backward_by_logarithms(weights, grad_weights):
    for_logarithms = weights * grad_weights
    share = for_logarithms / weights
    return for_logarithms - weights * (weights * share).sum(dim=-1, keepdim=True)


mistake(
    "softmax_backward", "logarithm-of-zero", "The logarithm of a weight of 0 gives NaN",
    hint="What is 0 · log(0), as torch computes it?",
    breaks=("hidden",),
    change={"weights * (grad_weights - average)": (
        "weights * (grad_weights + weights.log() - average - weights.log())"
    )},
    same_as={"divided-by-weights": "both give NaN for hidden keys"},
)  # fmt: skip

mistake(
    "softmax_backward", "weights-never-zero", "Hidden keys get a little weight, and a gradient",
    hint="What should the score of a hidden key learn?",
    breaks=("computes", "hidden"),
    change={"return weights *": "return weights.clamp(min=1e-2) *"},
)  # fmt: skip


@mistake(
    "softmax_backward", "matrices-only", "Weights must have two dimensions",
    hint="What stands in front of n in the shape of the weights?",
    breaks=("leading",),
)  # fmt: skip
def backward_of_a_matrix(weights, grad_weights):
    _rows, _n = weights.shape
    return weights * (grad_weights - (weights * grad_weights).sum(dim=1)[:, None])


@mistake(
    "softmax_backward", "one-row-only", "The weights must be one row",
    hint="What stands in front of n in the shape of the weights?",
    breaks=("computes", "leading"),
)  # fmt: skip
def backward_of_one_row(weights, grad_weights):
    return (torch.diag(weights) - torch.outer(weights, weights)) @ grad_weights


mistake(
    "softmax_backward", "calls-backward", "Autograd does the work",
    hint="Which lines would you write if .backward() did not exist?",
    breaks=("forbidden",),
    change={
        "return weights * (grad_weights - average)": (
            "with torch.inference_mode(False), torch.enable_grad():\n"
            "        scores = weights.clone().log().requires_grad_()\n"
            "        scores.softmax(dim=-1).backward(grad_weights.clone())\n"
            "    return scores.grad"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_backward", "calls-vjp", "Autograd does the work, under another name",
    hint="Which lines would you write if torch could not differentiate?",
    breaks=("forbidden",),
    change={
        "return weights * (grad_weights - average)": (
            "with torch.inference_mode(False):\n"
            "        scores, upstream = weights.log(), grad_weights.clone()\n"
            "        return torch.func.vjp(lambda s: s.softmax(-1), scores)[1](upstream)[0]"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_backward", "calls-the-softmax-s-backward", "Torch's own kernel does the work",
    hint="Which lines would you write if that kernel did not exist?",
    breaks=("forbidden",),
    change={
        "return weights * (grad_weights - average)": (
            "return torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_backward", "rough-differences", "Differences of float32 give few digits",
    hint="How many digits are left in the difference of two numbers that are almost the same?",
    change={
        "return weights * (grad_weights - average)": (
            "step = 1e-3\n"
            "    scores, columns = weights.log(), []\n"
            "    for j in range(weights.shape[-1]):\n"
            "        moved = scores.clone()\n"
            "        moved[..., j] += step\n"
            "        change = (moved.softmax(-1) - weights) / step\n"
            "        columns.append((change * grad_weights).sum(-1))\n"
            "    return torch.stack(columns, dim=-1)"
        ),
    },
)  # fmt: skip

mistake("softmax_backward", "no-return", common="nothing-returned")

common_mistakes("softmax_backward", "all-zeros", "squeezed", "returns-float64")

mistake(
    "softmax_backward", common="changes-its-input",
    change={"weights * (grad_weights - average)": "weights * grad_weights.sub_(average)"},
)  # fmt: skip

mistake(
    "softmax_backward", "weights-overwritten", "The result is written into the caller's weights",
    hint="Who else holds the tensor that you were given?",
    breaks=("unchanged",),
    change={
        "return weights * (grad_weights - average)": (
            "return weights.mul_(grad_weights - average).clone()"
        ),
    },
)  # fmt: skip

mistake(
    "softmax_backward", common="float32-inside",
    change={
        "return weights * (grad_weights - average)": (
            "return (weights.float() * (grad_weights - average).float()).to(weights)"
        ),
    },
)  # fmt: skip

accepted(
    "softmax_backward", "multiplied-out", "The bracket is multiplied out",
    change={
        "weights * (grad_weights - average)": "weights * grad_weights - weights * average",
    },
)  # fmt: skip

accepted(
    "softmax_backward", "no-grad", "Recording is switched off",
    change={
        "return weights * (grad_weights - average)": (
            "with torch.no_grad():\n        return weights.mul(grad_weights.sub(average))"
        ),
    },
)  # fmt: skip


@accepted("softmax_backward", "jacobian", "The whole matrix of derivatives, times the gradient")
def backward_by_the_jacobian(weights, grad_weights):
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return (jacobian @ grad_weights.unsqueeze(-1)).squeeze(-1)


@accepted("softmax_backward", "einsum", "Letters, other names")
def backward_in_letters(p, dp):
    delta = torch.einsum("...n,...n->...", p, dp)
    return p * (dp - delta.unsqueeze(-1))


@accepted("softmax_backward", "product", "The average as a product of a row and a column")
def backward_by_a_product(weights, grad_weights):
    average = weights[..., None, :] @ grad_weights[..., :, None]
    return torch.mul(weights, grad_weights - average[..., 0])


@accepted("softmax_backward", "row-by-row", "A loop over rows, and one over scores")
def backward_row_by_row(weights, grad_weights):
    n = weights.shape[-1]
    out = torch.empty_like(weights).reshape(-1, n)
    for r, (p, g) in enumerate(
        zip(weights.reshape(-1, n), grad_weights.reshape(-1, n), strict=True)
    ):
        average = torch.dot(p, g)
        for j in range(n):
            out[r, j] = p[j] * (g[j] - average)
    print(out.shape)
    return out.reshape(weights.shape)


@accepted("softmax_backward", "pairs", "All pairs of scores compared")
def backward_by_pairs(weights, grad_weights):
    gap = grad_weights.unsqueeze(-1) - grad_weights.unsqueeze(-2)
    return (weights.unsqueeze(-1) * weights.unsqueeze(-2) * gap).sum(dim=-1)


@accepted("softmax_backward", "in-place-on-own", "Its own tensors are changed in place")
def backward_with_buffers(weights, grad_weights):
    out = weights * grad_weights
    share = out.sum(-1, True)
    out -= weights * share
    return out


# --- attention_backward --------------------------------------------------------------------------

mistake(
    "attention_backward", "no-scale-back", "The way back has no √d",
    hint="The scores were divided by √d. Which gradient passes through that division?",
    change={"grad_products = grad_scores / d**0.5": "grad_products = grad_scores"},
)  # fmt: skip

mistake(
    "attention_backward", "no-average", "The row's average is not taken off",
    hint="If one weight of a row grows, what must the others do?",
    change={"weights * (grad_weights - average)": "weights * grad_weights"},
)  # fmt: skip

mistake(
    "attention_backward", "no-scale-in-queries", "The gradient of the queries has no √d",
    hint="Which of the two products with the scores' gradient was divided by √d?",
    change={"grad_products @ keys": "grad_scores @ keys"},
)  # fmt: skip

mistake(
    "attention_backward", "no-scale-in-keys", "The gradient of the keys has no √d",
    hint="Which of the two products with the scores' gradient was divided by √d?",
    change={"grad_products.transpose(-2, -1)": "grad_scores.transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "attention_backward", "no-scale-at-all", "The scores are not scaled, neither there nor back",
    hint="What does the statement's formula divide by?",
    change={
        "keys.transpose(-2, -1) / d**0.5": "keys.transpose(-2, -1)",
        "grad_products = grad_scores / d**0.5": "grad_products = grad_scores",
    },
)  # fmt: skip

mistake(
    "attention_backward", "keys-not-transposed",
    "The scores' gradient is not transposed for the keys",
    hint="A key's gradient comes from all queries that looked at it: is that a row, or a column?",
    change={"grad_products.transpose(-2, -1) @ queries": "grad_products @ queries"},
)  # fmt: skip

mistake(
    "attention_backward", "values-not-transposed", "The weights are not transposed for the values",
    hint="A value's gradient comes from all queries that took of it: is that a row, or a column?",
    change={"weights.transpose(-2, -1) @ grad_output": "weights @ grad_output"},
)  # fmt: skip

mistake(
    "attention_backward", "queries-and-keys-swapped", "Queries and keys get each other's gradient",
    hint="In which order does the statement want the three?",
    change={"return grad_queries, grad_keys": "return grad_keys, grad_queries"},
)  # fmt: skip

mistake(
    "attention_backward", "values-first", "The gradients come in the order in which they are found",
    hint="In which order does the statement want the three?",
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return grad_values, grad_queries, grad_keys"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "average-over-queries", "The average runs over the queries",
    hint="Over which axis did the softmax run? Along it, weights compete.",
    change={"(weights * grad_weights).sum(dim=-1,": "(weights * grad_weights).sum(dim=-2,"},
)  # fmt: skip

mistake(
    "attention_backward", "sum-without-weights", "The average is a sum that does not weigh",
    hint="In an average over a row, how much should a key count that has hardly any weight?",
    change={"(weights * grad_weights).sum": "grad_weights.sum"},
)  # fmt: skip

mistake(
    "attention_backward", "plain-mean", "The average counts all keys alike",
    hint="In an average over a row, how much should a key count that has hardly any weight?",
    change={"(weights * grad_weights).sum": "grad_weights.mean"},
)  # fmt: skip

mistake(
    "attention_backward", "gradient-of-log-softmax", "That is the gradient of a log-softmax",
    hint="Are the weights softmax(scores), or its logarithm?",
    change={
        "weights * (grad_weights - average)": (
            "grad_weights - weights * grad_weights.sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "diagonal-only", "Each weight depends on its own score only",
    hint="What happens to the other weights of a row when one score grows?",
    change={"weights * (grad_weights - average)": "weights * (1 - weights) * grad_weights"},
)  # fmt: skip

mistake(
    "attention_backward", "average-over-everything", "One average is taken for the whole sentence",
    hint="How many softmaxes are there in one sentence?",
    change={
        "(weights * grad_weights).sum(dim=-1, keepdim=True)": (
            "(weights * grad_weights).sum(dim=(-2, -1), keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "average-added", "The average is added, not taken off",
    hint="If all gradients of a row are equal, what can be won by moving weight around?",
    change={"grad_weights - average": "grad_weights + average"},
)  # fmt: skip

mistake(
    "attention_backward", "sign-turned", "The gradient of the scores has the wrong sign",
    hint="If a key's value is better than the row's average, should its score grow or fall?",
    change={"grad_weights - average": "average - grad_weights"},
)  # fmt: skip

mistake(
    "attention_backward", "softmax-forgotten", "The softmax is skipped on the way back",
    hint="Between the weights and the scores there was one step more. Which one?",
    change={"weights * (grad_weights - average)": "grad_weights"},
)  # fmt: skip

mistake(
    "attention_backward", "weights-missing", "The difference from the average is not weighed",
    hint="Can a key with hardly any weight change the output much?",
    change={"weights * (grad_weights - average)": "grad_weights - average"},
)  # fmt: skip

mistake(
    "attention_backward", "weights-are-constants", "The weights are treated as constants",
    hint="What were the weights computed from?",
    change={
        "grad_queries = grad_products @ keys": "grad_queries = torch.zeros_like(queries)",
        "grad_products.transpose(-2, -1) @ queries": "torch.zeros_like(keys)",
    },
)  # fmt: skip

mistake(
    "attention_backward", "scores-for-weights", "The scores stand where weights belong",
    hint="Which did the forward pass multiply the values with?",
    change={"torch.softmax(scores, dim=-1)": "scores"},
)  # fmt: skip

mistake(
    "attention_backward", "values-by-scores", "The values' gradient is made with scores",
    hint="Which did the forward pass multiply the values with?",
    change={"weights.transpose(-2, -1) @ grad_output": "scores.transpose(-2, -1) @ grad_output"},
)  # fmt: skip

mistake(
    "attention_backward", "softmax-over-queries", "Each column of the weights sums to one",
    hint="Each query shares out its attention over the keys: along which axis do these lie?",
    change={
        "torch.softmax(scores, dim=-1)": "torch.softmax(scores, dim=-2)",
        "(weights * grad_weights).sum(dim=-1,": "(weights * grad_weights).sum(dim=-2,",
    },
)  # fmt: skip

mistake(
    "attention_backward", "forward-over-queries",
    "The forward softmax runs over the queries, and the way back over the keys",
    hint="Each query shares out its attention over the keys: along which axis do these lie?",
    change={"torch.softmax(scores, dim=-1)": "torch.softmax(scores, dim=-2)"},
)  # fmt: skip

mistake(
    "attention_backward", "gradient-ignored", "The gradient that arrives is taken for ones",
    hint="What changes in your result when grad_output does?",
    change={"    # Forward:": "    grad_output = torch.ones_like(grad_output)\n    # Forward:"},
)  # fmt: skip

mistake(
    "attention_backward", "keys-for-values", "The weights' gradient is made with the keys",
    hint="What did the forward pass multiply the weights with?",
    change={"grad_output @ values.transpose(-2, -1)": "grad_output @ keys.transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "attention_backward", "own-inputs", "Queries and keys each get their own numbers back",
    hint="In a product of two, what is the gradient of one made with: itself, or the other?",
    change={
        "grad_products @ keys": "grad_products @ queries",
        "grad_products.transpose(-2, -1) @ queries": "grad_products.transpose(-2, -1) @ keys",
    },
)  # fmt: skip

mistake(
    "attention_backward", "divided-by-d", "The way back divides by d, not by its root",
    hint="What was the division in the forward pass?",
    change={"grad_products = grad_scores / d**0.5": "grad_products = grad_scores / d"},
)  # fmt: skip

mistake(
    "attention_backward", "multiplied-back", "The way back multiplies by √d",
    hint="What is the slope of s / √d?",
    change={"grad_products = grad_scores / d**0.5": "grad_products = grad_scores * d**0.5"},
)  # fmt: skip

mistake(
    "attention_backward", "forward-not-scaled", "The weights are made without the scale",
    hint="Are your weights those of the forward pass in the statement?",
    change={"keys.transpose(-2, -1) / d**0.5": "keys.transpose(-2, -1)"},
)  # fmt: skip

mistake(
    "attention_backward", "scale-by-tokens", "The scale counts tokens, not features",
    hint="Over which dimension were the dot products summed?",
    change={"d = queries.shape[-1]": "d = queries.shape[-2]"},
)  # fmt: skip

mistake(
    "attention_backward", "causal", "Later keys are hidden, though nobody asked",
    hint="What may a query see when nothing is said about a mask?",
    change={
        "keys.transpose(-2, -1) / d**0.5": (
            "keys.transpose(-2, -1) / d**0.5\n"
            "    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)\n"
            "    scores = scores.masked_fill(future, -torch.inf)"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "mean-over-the-batch", "The gradients are divided by the batch",
    hint="Has the loss been averaged already, or is that your task?",
    change={"    # Forward:": "    grad_output = grad_output / len(queries)\n    # Forward:"},
)  # fmt: skip

mistake(
    "attention_backward", "batch-summed", "The sentences of a batch share their gradients",
    hint="Did the keys of one sentence have a say in the output of another?",
    change={
        "grad_products.transpose(-2, -1) @ queries": (
            "(grad_products.transpose(-2, -1) @ queries).sum(0, keepdim=True).expand_as(keys)"
        ),
    },
)  # fmt: skip


@mistake(
    "attention_backward", "calls-backward", "Autograd does the work",
    hint="Which lines would you write if backward() did not exist?",
    breaks=("forbidden",),
)  # fmt: skip
def gradients_by_backward(queries, keys, values, grad_output):
    inputs = [x.detach().clone().requires_grad_() for x in (queries, keys, values)]
    q, k, v = inputs
    output = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
    output.backward(grad_output)
    return q.grad, k.grad, v.grad


@mistake(
    "attention_backward", "calls-autograd", "Autograd does the work",
    hint="Which lines would you write if torch.autograd did not exist?",
    breaks=("forbidden",),
)  # fmt: skip
def gradients_by_autograd(queries, keys, values, grad_output):
    with torch.enable_grad():
        inputs = [x.detach().clone().requires_grad_() for x in (queries, keys, values)]
        q, k, v = inputs
        output = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v
        return torch.autograd.grad(output, inputs, grad_output)


@mistake(
    "attention_backward", "calls-vjp", "Autograd does the work, under another name",
    hint="Which lines would you write if torch.func did not exist?",
    breaks=("forbidden",),
)  # fmt: skip
def gradients_by_vjp(queries, keys, values, grad_output):
    def attention(q, k, v):
        return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v

    with torch.inference_mode(False):
        _output, pull = torch.func.vjp(attention, queries.clone(), keys.clone(), values.clone())
        return pull(grad_output.clone())


@mistake(
    "attention_backward", "calls-the-softmax-s-backward",
    "Torch's own gradient of the softmax does the work",
    hint="What would you write for one row, with three weights?",
    breaks=("forbidden",),
)  # fmt: skip
def gradients_by_softmax_backward(queries, keys, values, grad_output):
    scale = queries.shape[-1] ** -0.5
    weights = torch.softmax(queries @ keys.mT * scale, dim=-1)
    grad_scores = scale * torch._softmax_backward_data(
        grad_output @ values.mT, weights, -1, weights.dtype
    )
    return grad_scores @ keys, grad_scores.mT @ queries, weights.mT @ grad_output


mistake(
    "attention_backward", "calls-torch-attention", "Torch's own attention takes part",
    hint="Which lines would you write if that function did not exist?",
    breaks=("forbidden",),
    change={
        "(weights * grad_weights).sum(dim=-1, keepdim=True)": (
            "(grad_output\n"
            "        * nn.functional.scaled_dot_product_attention(queries, keys, values)).sum(\n"
            "        dim=-1, keepdim=True\n"
            "    )"
        ),
        "    d = queries": "    from torch import nn\n\n    d = queries",
    },
)  # fmt: skip


@mistake(
    "attention_backward", "finite-differences", "The number of operations grows with the tokens",
    hint="What do you do again for each token, and can one product do it for all?",
    breaks=("loops", "cost"),
)  # fmt: skip
def gradients_by_finite_differences(queries, keys, values, grad_output):
    inputs, step = [x.double() for x in (queries, keys, values)], 1e-3

    def loss(q, k, v):
        return ((torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v) * grad_output).sum()

    gradients = []
    for number, x in enumerate(inputs):
        gradient = torch.zeros_like(x)
        for place in range(x.numel()):
            ends = []
            for way in (step, -step, 2 * step, -2 * step):
                moved = [other.clone() for other in inputs]
                moved[number].view(-1)[place] += way
                ends.append(loss(*moved))
            near, far = ends[0] - ends[1], ends[2] - ends[3]
            gradient.view(-1)[place] = (8 * near - far) / (12 * step)
        gradients.append(gradient.to(queries.dtype))
    return tuple(gradients)


@mistake(
    "attention_backward", "rough-differences", "Differences of float32 give few digits",
    hint="How many digits are left of a difference of two nearly equal numbers?",
)  # fmt: skip
def gradients_by_rough_differences(queries, keys, values, grad_output):
    inputs, step = [x.clone() for x in (queries, keys, values)], 1e-2

    def loss(q, k, v):
        return ((torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v) * grad_output).sum()

    gradients, now = [], loss(*inputs)
    for number, x in enumerate(inputs):
        gradient = torch.zeros_like(x)
        for place in range(x.numel()):
            moved = [other.clone() for other in inputs]
            moved[number].view(-1)[place] += step
            gradient.view(-1)[place] = (loss(*moved) - now) / step
        gradients.append(gradient)
    return tuple(gradients)


@mistake(
    "attention_backward", "differences-at-once",
    "The numbers are right, for far more work than the chain rule takes",
    hint="How many numbers does your largest tensor hold, and how many the matrix of weights?",
    breaks=("cost",),
    same_as={"whole-jacobian": "right numbers, and too many operations"},
)  # fmt: skip
def gradients_by_differences_at_once(queries, keys, values, grad_output):
    # Along the imaginary axis, differences are exact to the last digit.
    inputs = [x.to(torch.complex128) for x in (queries, keys, values)]
    gradients = []
    for number, x in enumerate(inputs):
        steps = torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape) * 1e-30j
        q, k, v = *inputs[:number], x + steps, *inputs[number + 1 :]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        exp = torch.exp(scores - scores.real.amax(dim=-1, keepdim=True))
        output = exp / exp.sum(dim=-1, keepdim=True) @ v
        slopes = (output.imag * grad_output).sum((-1, -2, -3)) / 1e-30
        gradients.append(slopes.view(x.shape).to(queries.dtype))
    return tuple(gradients)


@mistake(
    "attention_backward", "loop-over-tokens", "The number of operations grows with the tokens",
    hint="What do you do again for each token, and can one product do it for all?",
    breaks=("loops",),
    same_as={"finite-differences": "both are right, and take more operations for more tokens"},
)  # fmt: skip
def gradients_query_by_query(queries, keys, values, grad_output):
    d = queries.shape[-1]
    grad_queries = torch.zeros_like(queries)
    grad_keys, grad_values = torch.zeros_like(keys), torch.zeros_like(values)
    for i in range(queries.shape[1]):
        q, arrives = queries[:, i : i + 1], grad_output[:, i : i + 1]
        weights = torch.softmax(q @ keys.mT / d**0.5, dim=-1)
        grad_values += weights.mT @ arrives
        grad_weights = arrives @ values.mT
        average = (weights * grad_weights).sum(-1, keepdim=True)
        grad_scores = weights * (grad_weights - average) / d**0.5
        grad_queries[:, i : i + 1] = grad_scores @ keys
        grad_keys += grad_scores.mT @ q
    return grad_queries, grad_keys, grad_values


mistake(
    "attention_backward", "naive-exponent", "Large scores overflow to infinity",
    hint="A per-row shift changes nothing: which shift keeps exp at 1 or below?",
    breaks=("large",),
    change={
        "torch.softmax(scores, dim=-1)": (
            "torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "one-maximum-for-all", "One maximum is subtracted from all rows",
    hint="What is left of a row that lies 200 below the largest score of all?",
    breaks=("large",),
    change={
        "torch.softmax(scores, dim=-1)": (
            "torch.exp(scores - scores.max()) "
            "/ torch.exp(scores - scores.max()).sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "all-axes-turned", "A transpose turns the batch around as well",
    hint="Which two axes should change places?",
    change={"weights.transpose(-2, -1) @ grad_output": "weights.permute(2, 1, 0) @ grad_output"},
)  # fmt: skip

mistake(
    "attention_backward", "output-too", "The output is returned along with the gradients",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return weights @ values, grad_queries, grad_keys, grad_values"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "stacked", "One tensor comes back, not three",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return torch.stack([grad_queries, grad_keys, grad_values])"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "values-missing", "The values get no gradient",
    hint="How many tensors does the caller expect?",
    breaks=("returns",),
    change={
        "return grad_queries, grad_keys, grad_values": "return grad_queries, grad_keys",
    },
)  # fmt: skip

mistake(
    "attention_backward", "gradient-of-the-scores", "The gradients of the scores are returned",
    hint="The scores are made of queries and keys: which step is left?",
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return grad_products, grad_weights, grad_values"
        ),
    },
)  # fmt: skip

mistake("attention_backward", "no-return", common="nothing-returned")

mistake(
    "attention_backward", "zeros", "All gradients are zero",
    hint="If a value grows, does the output stay what it was?",
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return torch.zeros_like(queries), torch.zeros_like(keys), torch.zeros_like(values)"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", "passed-on", "The gradient that arrives is passed on to all three",
    hint="Is the output the sum of queries, keys and values?",
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return grad_output.clone(), grad_output.clone(), grad_output.clone()"
        ),
    },
)  # fmt: skip

mistake(
    "attention_backward", common="changes-its-input",
    change={
        "keys.transpose(-2, -1) / d**0.5": "keys.transpose(-2, -1)",
        "    scores = queries": "    queries /= d**0.5\n    scores = queries",
        "    return grad_queries": "    grad_keys = grad_keys * d**0.5\n    return grad_queries",
    },
)  # fmt: skip

mistake(
    "attention_backward", common="float32-inside",
    change={
        "torch.softmax(scores, dim=-1)": "torch.softmax(scores.float(), dim=-1).to(scores.dtype)",
    },
)  # fmt: skip

mistake(
    "attention_backward", "returns-float64", "The results are float64, whatever was asked for",
    hint="Which dtype should come out, and which one does?",
    breaks=("returns",),
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return grad_queries.double(), grad_keys.double(), grad_values.double()"
        ),
    },
)  # fmt: skip

accepted(
    "attention_backward", "list", "A list of three",
    change={
        "return grad_queries, grad_keys, grad_values": (
            "return [grad_queries, grad_keys, grad_values]"
        ),
    },
)  # fmt: skip

accepted(
    "attention_backward", "scale-in-the-queries",
    "Queries are scaled first, and their gradient too",
    change={
        "queries @ keys.transpose(-2, -1) / d**0.5": (
            "(queries / d**0.5) @ keys.transpose(-2, -1)"
        ),
        "grad_products = grad_scores / d**0.5": "grad_products = grad_scores * d**-0.5",
    },
)  # fmt: skip

accepted(
    "attention_backward", "from-the-output",
    "The average from output and gradient, as in the paper",
    change={
        "(weights * grad_weights).sum(dim=-1, keepdim=True)": (
            "(grad_output * (weights @ values)).sum(dim=-1, keepdim=True)"
        ),
    },
)  # fmt: skip

accepted(
    "attention_backward", "no-grad", "Recording is switched off",
    change={"    d = queries": "    torch.set_grad_enabled(False)\n    d = queries"},
)  # fmt: skip


@mistake(
    "attention_backward", "whole-jacobian",
    "The numbers are right, for far more work than the chain rule takes",
    hint="How many numbers does your largest tensor hold, and how many the matrix of weights?",
    breaks=("cost",),
    same_as={"differences-at-once": "right numbers, and too many operations"},
)  # fmt: skip
def gradients_by_the_jacobian(queries, keys, values, grad_output):
    d = queries.shape[-1]
    weights = torch.softmax(queries @ keys.mT / d**0.5, dim=-1)
    slopes = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    grad_weights = grad_output @ values.mT
    grad_scores = (slopes @ grad_weights[..., None]).squeeze(-1) / d**0.5
    return grad_scores @ keys, grad_scores.mT @ queries, weights.mT @ grad_output


@accepted("attention_backward", "einsum", "Letters, other names, the scale at the end")
def gradients_in_letters(q, k, v, dO):  # noqa: N803
    scale = 1 / math.sqrt(q.size(-1))
    P = F.softmax(scale * torch.einsum("bid,bjd->bij", q, k), dim=-1)  # noqa: N806
    dV = torch.einsum("bij,bid->bjd", P, dO)  # noqa: N806
    dP = torch.einsum("bid,bjd->bij", dO, v)  # noqa: N806
    dS = P * dP - P * torch.einsum("bij,bij->bi", P, dP)[..., None]  # noqa: N806
    dQ = torch.einsum("bij,bjd->bid", dS, k) * scale  # noqa: N806
    dK = torch.einsum("bij,bid->bjd", dS, q) * scale  # noqa: N806
    return dQ, dK, dV


@accepted("attention_backward", "sentence-by-sentence", "A loop over the sentences of the batch")
def gradients_sentence_by_sentence(queries, keys, values, grad_output):
    scale = queries.size(-1) ** -0.5
    found = []
    for q, k, v, arrives in zip(queries, keys, values, grad_output, strict=True):
        weights = torch.softmax(q @ k.T * scale, dim=1)
        grad_weights = arrives @ v.T
        grad_scores = weights * (grad_weights - (grad_weights * weights).sum(1, keepdim=True))
        grad_scores *= scale
        found.append((grad_scores @ k, grad_scores.T @ q, weights.T @ arrives))
    return tuple(torch.stack(parts) for parts in zip(*found, strict=True))


@accepted("attention_backward", "own-softmax", "A softmax of its own, and torch.bmm")
def gradients_with_own_softmax(queries, keys, values, grad_output):
    scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(queries.shape[-1])
    weights = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    grad_weights = torch.bmm(grad_output, values.transpose(1, 2))
    grad_scores = torch.mul(weights, grad_weights)
    grad_scores = grad_scores - weights * grad_scores.sum(dim=-1, keepdim=True)
    grad_scores = grad_scores / math.sqrt(queries.shape[-1])
    return (
        torch.bmm(grad_scores, keys),
        torch.bmm(grad_scores.transpose(1, 2), queries),
        torch.bmm(weights.transpose(1, 2), grad_output),
    )


# --- linear_attention ----------------------------------------------------------------------------

mistake(
    "linear_attention", "no-normaliser", "The weights are never divided by their sum",
    hint="What do the weights of a query add up to?",
    change={"return mixed / totals": "return mixed"},
)  # fmt: skip

mistake(
    "linear_attention", "one-missing", "The 1 is missing from elu + 1",
    hint="Which values can elu take, and may a weight be negative?",
    change={
        "elu(queries) + 1.0": "elu(queries)",
        "elu(keys) + 1.0": "elu(keys)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "relu-plus-one", "The feature map is relu + 1",
    hint="What does φ make of -1, and what of -2? Should these be the same?",
    change={"elu(queries)": "relu(queries)", "elu(keys)": "relu(keys)"},
)  # fmt: skip

mistake(
    "linear_attention", "queries-as-they-are", "The queries do not go through φ",
    hint="Which of the three go through φ?",
    change={"torch.nn.functional.elu(queries) + 1.0": "queries"},
)  # fmt: skip

mistake(
    "linear_attention", "keys-as-they-are", "The keys do not go through φ",
    hint="Which of the three go through φ?",
    change={"torch.nn.functional.elu(keys) + 1.0": "keys"},
)  # fmt: skip

mistake(
    "linear_attention", "values-through-phi", "The values go through φ as well",
    hint="Which of the three go through φ?",
    change={
        "key_features.transpose(-2, -1) @ values": (
            "key_features.transpose(-2, -1) @ (torch.nn.functional.elu(values) + 1.0)"
        ),
    },
)  # fmt: skip

mistake(
    "linear_attention", "scaled-before-phi", "Queries are divided by √d before φ",
    hint="Does the statement's formula divide by anything but the sum?",
    change={"elu(queries)": "elu(queries / queries.shape[-1] ** 0.5)"},
)  # fmt: skip

mistake(
    "linear_attention", "total-of-query-features", "The sum runs over a query's own features only",
    hint="The weights of a query sum up over all keys: where are these in your total?",
    change={
        "query_features @ key_sum.transpose(-2, -1)": "query_features.sum(dim=-1, keepdim=True)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "key-sum-over-features", "The keys are summed over their features",
    hint="Of Σφ(k), how many numbers are left: one for each feature, or one for each token?",
    change={
        "query_features @ key_sum.transpose(-2, -1)": "key_features.sum(dim=-1, keepdim=True)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "no-phi", "Nothing goes through φ",
    hint="What makes all weights positive?",
    change={
        "torch.nn.functional.elu(queries) + 1.0": "queries",
        "torch.nn.functional.elu(keys) + 1.0": "keys",
    },
)  # fmt: skip

mistake(
    "linear_attention", "relu", "The feature map is relu",
    hint="What does φ make of -1? Should it be 0?",
    change={
        "elu(queries) + 1.0": "relu(queries)",
        "elu(keys) + 1.0": "relu(keys)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "exp", "The feature map is exp, for positive numbers too",
    hint="What does φ make of 2?",
    change={
        "torch.nn.functional.elu(queries) + 1.0": "torch.exp(queries)",
        "torch.nn.functional.elu(keys) + 1.0": "torch.exp(keys)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "softplus", "The feature map is softplus",
    hint="What does φ make of 0?",
    change={
        "elu(queries) + 1.0": "softplus(queries)",
        "elu(keys) + 1.0": "softplus(keys)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "sigmoid", "The feature map is a sigmoid",
    hint="What does φ make of 2?",
    change={
        "torch.nn.functional.elu(queries) + 1.0": "torch.sigmoid(queries)",
        "torch.nn.functional.elu(keys) + 1.0": "torch.sigmoid(keys)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "leaky-relu", "The feature map is a leaky relu, plus one",
    hint="What does φ make of -1?",
    change={"elu(queries)": "leaky_relu(queries)", "elu(keys)": "leaky_relu(keys)"},
)  # fmt: skip

mistake(
    "linear_attention", "selu", "The feature map is selu + 1",
    hint="What does φ make of 1?",
    change={"elu(queries)": "selu(queries)", "elu(keys)": "selu(keys)"},
)  # fmt: skip

mistake(
    "linear_attention", "one-inside", "The 1 is added before elu, not after it",
    hint="What does φ make of 0, and what of -1?",
    change={
        "elu(queries) + 1.0": "elu(queries + 1.0)",
        "elu(keys) + 1.0": "elu(keys + 1.0)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "softmax-features", "Softmaxes take the place of φ",
    hint="What does the statement apply to each number?",
    change={
        "torch.nn.functional.elu(queries) + 1.0": "torch.softmax(queries, dim=-1)",
        "torch.nn.functional.elu(keys) + 1.0": "torch.softmax(keys, dim=-1)",
    },
)  # fmt: skip


@mistake(
    "linear_attention", "efficient-attention",
    "Queries have a softmax over features, keys one over tokens, and that is all",
    hint="What does the statement apply to each number, and what does it divide by?",
)  # fmt: skip
def attention_with_two_softmaxes(queries, keys, values):
    return queries.softmax(dim=-1) @ (keys.softmax(dim=-2).mT @ values)


@mistake(
    "linear_attention", "softmax-attention", "The weights are those of the softmax",
    hint="Which function of q · k should the weights be made of?",
)  # fmt: skip
def attention_with_a_softmax(queries, keys, values):
    return torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, dim=-1) @ values


@mistake(
    "linear_attention", "phi-of-scores", "φ is applied to the scores",
    hint="What goes through φ: vectors, or their products?",
)  # fmt: skip
def attention_with_phi_of_scores(queries, keys, values):
    weights = F.elu(queries @ keys.mT) + 1
    return weights @ values / weights.sum(dim=-1, keepdim=True)


@mistake(
    "linear_attention", "softmax-of-features", "The products of features go through a softmax",
    hint="What are the products divided by: their sum, or the sum of their exponentials?",
)  # fmt: skip
def attention_with_a_softmax_of_features(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    return torch.softmax(q @ k.mT, dim=-1) @ values


@mistake(
    "linear_attention", "queries-times-keys-first", "The matrix of all weights is made after all",
    hint="Which two of the three factors do you multiply first, and how large is the result?",
    breaks=("cost",),
)  # fmt: skip
def attention_in_quadratic_order(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    weights = q @ k.mT
    return weights @ values / weights.sum(dim=-1, keepdim=True)


@mistake(
    "linear_attention", "query-by-query", "Each query goes through all keys again",
    hint="What do you compute anew for each query, though it is the same for all?",
    breaks=("cost",),
)  # fmt: skip
def attention_for_each_query(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    rows = []
    for i in range(q.shape[1]):
        weights = (q[:, i : i + 1] * k).sum(dim=-1)
        weights = weights / weights.sum(dim=-1, keepdim=True)
        rows.append((weights[..., None] * values).sum(dim=1))
    return torch.stack(rows, dim=1)


@mistake(
    "linear_attention", "quadratic-total", "The sums are taken from the matrix of all weights",
    hint="φ(q) · φ(k1) + φ(q) · φ(k2) + …: what can be taken out of that sum?",
    breaks=("cost",),
    same_as={"queries-times-keys-first": "both are right, and store a matrix of weights"},
)  # fmt: skip
def attention_with_a_quadratic_total(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    return q @ (k.mT @ values) / (q @ k.mT).sum(dim=-1, keepdim=True)


mistake(
    "linear_attention", "mean-of-keys", "The total is a mean over the keys, and the mix a sum",
    hint="What do the weights of a query add up to?",
    change={"key_features.sum(dim=-2, keepdim=True)": "key_features.mean(dim=-2, keepdim=True)"},
)  # fmt: skip

mistake(
    "linear_attention", "divided-by-tokens", "The mix is divided by the number of tokens",
    hint="What do the weights of a query add up to?",
    change={"return mixed / totals": "return mixed / queries.shape[-2]"},
)  # fmt: skip

mistake(
    "linear_attention", "divided-by-its-own-sum",
    "Each result is divided by the sum of its features",
    hint="What should sum to one: a query's weights, or the numbers of its answer?",
    change={"return mixed / totals": "return mixed / mixed.sum(dim=-1, keepdim=True)"},
)  # fmt: skip

mistake(
    "linear_attention", "features-normalised",
    "Each feature is divided by its own sum over the keys",
    hint="Is there one total for each feature, or one for each query?",
    change={"return mixed / totals": "return query_features @ (summary / key_sum.mT)"},
)  # fmt: skip

mistake(
    "linear_attention", "one-total-for-all", "All queries are divided by one total",
    hint="Do two queries have the same sum?",
    change={"return mixed / totals": "return mixed / totals.sum(dim=-2, keepdim=True)"},
)  # fmt: skip

mistake(
    "linear_attention", "queries-summed", "The total has the sum of the queries, not of the keys",
    hint="Over what do the weights of one query sum up?",
    change={
        "query_features @ key_sum.transpose(-2, -1)": (
            "key_features @ query_features.sum(dim=-2, keepdim=True).transpose(-2, -1)"
        ),
    },
)  # fmt: skip

mistake(
    "linear_attention", "batch-summed", "The sentences of a batch share their keys and values",
    hint="Should one sentence change when another one does?",
    change={
        "key_features.transpose(-2, -1) @ values": (
            "(key_features.transpose(-2, -1) @ values).sum(dim=0, keepdim=True)"
        ),
        "key_features.sum(dim=-2, keepdim=True)": "key_features.sum(dim=(0, -2), keepdim=True)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "one-sentence-only", "It is written for one sentence, without a batch",
    hint="Which dimension is the first one here: the sentences, or the tokens?",
    change={
        "key_features.transpose(-2, -1) @ values": "key_features.T @ values",
        "key_features.sum(dim=-2, keepdim=True)": "key_features.sum(dim=0)",
        "query_features @ key_sum.transpose(-2, -1)": "(query_features @ key_sum.T)[:, None]",
    },
)  # fmt: skip


mistake(
    "linear_attention", "large-epsilon", "A constant added to the total is too large",
    hint="How large must a number be that only guards against a division by zero?",
    change={"return mixed / totals": "return mixed / (totals + 1e-2)"},
)  # fmt: skip


@mistake(
    "linear_attention", "causal", "Later keys are hidden, though nobody asked",
    hint="What may a query see when nothing is said about a mask?",
)  # fmt: skip
def attention_to_the_past(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    summary = (k[..., :, None] * values[..., None, :]).cumsum(dim=1)
    totals = (q * k.cumsum(dim=1)).sum(dim=-1, keepdim=True)
    return (q[..., None, :] @ summary).squeeze(-2) / totals


mistake(
    "linear_attention", common="queries-and-keys-swapped", hint="Who asks, and who answers?",
    change={"elu(queries)": "elu(those)", "elu(keys)": "elu(queries)", "elu(those)": "elu(keys)"},
)  # fmt: skip

mistake(
    "linear_attention", common="calls-torch-attention",
    change={
        "return mixed / totals": (
            "return torch.nn.functional.scaled_dot_product_attention(queries, keys, values)"
        ),
    },
    same_as={"softmax-attention": "torch's attention is that of the softmax"},
)  # fmt: skip

mistake(
    "linear_attention", common="weights-returned",
    change={
        "return mixed / totals": "return query_features @ key_features.transpose(-2, -1) / totals",
    },
)  # fmt: skip

mistake(
    "linear_attention", "plain-mean", "All keys get the same weight",
    hint="Do your queries and keys have any say in the result?",
    change={
        "return mixed / totals": "return values.mean(dim=-2, keepdim=True).expand_as(values)",
    },
)  # fmt: skip

mistake(
    "linear_attention", "values-returned", "The values come back as they were",
    hint="What should a query get that likes two keys equally well?",
    change={"return mixed / totals": "return values.clone()"},
)  # fmt: skip

mistake(
    "linear_attention", "zeros", "The result is nothing but zeros",
    hint="Which line puts something into the tensor that you return?",
    change={"return mixed / totals": "return torch.zeros_like(values)"},
)  # fmt: skip

mistake("linear_attention", "no-return", common="nothing-returned")

mistake(
    "linear_attention", "total-without-gradient", "No gradient flows through the total",
    hint="Does the sum of the weights depend on queries and keys as well?",
    breaks=("gradients",),
    change={"mixed / totals": "mixed / totals.detach()"},
)  # fmt: skip

mistake(
    "linear_attention", "no-gradient", "No gradient flows back at all",
    hint="Does your result have a grad_fn?",
    breaks=("gradients",),
    change={"return mixed / totals": "return (mixed / totals).detach()"},
)  # fmt: skip

mistake(
    "linear_attention", "keys-without-gradient", "No gradient reaches the keys",
    hint="After a backward call on the result, which inputs have a gradient?",
    breaks=("gradients",),
    change={"elu(keys)": "elu(keys.detach())"},
)  # fmt: skip

mistake(
    "linear_attention", "elu-in-place", "elu works in place, on the caller's tensor",
    hint="What does the caller find in the queries after the call?",
    breaks=("unchanged", "gradients"),
    change={"elu(queries)": "elu(queries.data, inplace=True)"},
)  # fmt: skip

mistake(
    "linear_attention", "features-written-back",
    "The features are written into the caller's queries in the end",
    hint="What does the caller find in the queries after the call?",
    breaks=("unchanged",),
    change={
        "elu(queries)": "elu(queries.clone())",
        "return mixed / totals": (
            "queries.data.copy_(query_features.data)\n    return mixed / totals"
        ),
    },
)  # fmt: skip

mistake(
    "linear_attention", common="float32-inside",
    change={"elu(keys)": "elu(keys.float()).to(keys)"},
)  # fmt: skip

common_mistakes("linear_attention", "returns-float64")

accepted(
    "linear_attention", "scaled-features", "Both features are scaled, which cancels",
    change={
        "elu(queries) + 1.0": "elu(queries).add(1.0).mul(queries.shape[-1] ** -0.5)",
        "elu(keys) + 1.0": "elu(keys).add(1.0).mul(keys.shape[-1] ** -0.5)",
    },
)  # fmt: skip

accepted(
    "linear_attention", "epsilon", "A tiny number guards against a division by zero",
    change={"mixed / totals": "mixed / (totals + 1e-6)"},
)  # fmt: skip

accepted(
    "linear_attention", "celu", "Torch's celu, which is elu here",
    change={"elu(queries)": "celu(queries)", "elu(keys)": "celu(keys)"},
)  # fmt: skip


@accepted("linear_attention", "einsum", "Letters, other names, and a module for elu")
def attention_in_letters_only(q, k, v):
    phi = nn.ELU()
    q, k = phi(q) + 1, phi(k) + 1
    memory = torch.einsum("bnd,bne->bde", k, v)
    z = 1 / torch.einsum("bnd,bd->bn", q, k.sum(dim=1))
    return torch.einsum("bnd,bde,bn->bne", q, memory, z)


@accepted("linear_attention", "by-cases", "φ by cases")
def attention_with_phi_by_cases(queries, keys, values):
    def phi(x):
        return torch.where(x > 0, x + 1, torch.exp(x))

    q, k = phi(queries), phi(keys)
    return q @ (k.transpose(1, 2) @ values) / (q * k.sum(dim=1, keepdim=True)).sum(-1, keepdim=True)


@accepted("linear_attention", "token-by-token", "A state that grows key by key, as in an RNN")
def attention_with_a_state(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    state = torch.zeros(q.shape[0], q.shape[2], values.shape[2], dtype=q.dtype)
    total = torch.zeros(q.shape[0], q.shape[2], dtype=q.dtype)
    for j in range(k.shape[1]):
        state = state + k[:, j, :, None] * values[:, j, None, :]
        total = total + k[:, j]
    rows = []
    for i in range(q.shape[1]):
        mixed = (q[:, i, None, :] @ state)[:, 0]
        rows.append(mixed / (q[:, i] * total).sum(dim=-1, keepdim=True))
    return torch.stack(rows, dim=1)


@accepted(
    "linear_attention", "column-of-ones", "A column of ones beside the values gives the totals"
)
def attention_with_a_column_of_ones(queries, keys, values):
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    ones = torch.ones_like(values[..., :1])
    mixed = q @ (k.mT @ torch.cat([values, ones], dim=-1))
    return mixed[..., :-1] / mixed[..., -1:]


@accepted("linear_attention", "outer-products", "All outer products of keys and values, summed up")
def attention_with_outer_products(queries, keys, values):
    q, k = queries.clamp(max=0).exp() + queries.clamp(min=0), F.elu(keys) + 1
    state = (k.unsqueeze(-1) * values.unsqueeze(-2)).sum(dim=1)
    total = k.sum(dim=1)
    return torch.bmm(q, state) / torch.bmm(q, total.unsqueeze(-1))


@accepted("linear_attention", "sentence-by-sentence", "A loop over the sentences of the batch")
def attention_sentence_by_sentence(queries, keys, values):
    out = []
    for q, k, v in zip(F.elu(queries) + 1, F.elu(keys) + 1, values, strict=True):
        z = q @ k.sum(0)
        out.append(torch.div(q @ (k.T @ v), z.unsqueeze(1)))
    print("sentences:", len(out))
    return torch.stack(out)
