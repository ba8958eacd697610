"""Slips that strangers made in answers to the kit's own course, alone and at once: each has a name.

The answers are written as people write them who never saw a reference.
"""

from __future__ import annotations

import pytest

from grader.grading.ladder import grade_submission
from grader.intake import Submission
from grader.sandbox.jails import Warm
from grader.wire import SourceText
from tests.conftest import sharing
from tests.support.seats import real_order

IMPORTS = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def names(warm: Warm, exercise: str, text: str) -> set[str]:
    """The names of mistakes in an answer's grade."""
    with sharing(warm), real_order(exercise).desk() as desk:
        submission = Submission("ada", (SourceText("ada.py", (IMPORTS + text,)),))
        (result,) = grade_submission(desk, submission).exercises
    failed = [test for test in result.tests if test.status in ("failed", "error")]
    return {test.mistake or "no name" for test in failed}


ADAMW = """
def adamw_step(theta, g, m, v, t, lr, betas, eps, decay):
    b1, b2 = betas
    m = b1 * m + (1 - b1) * g
    v = b2 * v + (1 - b2) * SQUARED
    rate = lr * math.sqrt(1 - b2**t) / (1 - b1**t)
    LAST
    return theta, m, v
"""
LATE = "theta = theta - {}\n    theta = theta - lr * decay * theta"
EARLY = "theta = theta - lr * decay * theta - {}"
SHORT = "rate * m / (v.sqrt() + eps)"
UNDER = "rate * m / torch.sqrt(v + eps)"
LONG_UNDER = "lr * m / (1 - b1**t) / (v / (1 - b2**t) + eps).sqrt()"
EPS_FIRST = "eps is added before v is corrected"
EPS_INSIDE = "eps is added inside of the root"
DECAY_LATE = "The decay takes its share of the parameter that has moved"


@pytest.mark.parametrize(
    ("squared", "last", "title"),
    [
        ("g**2", EARLY.format(SHORT), EPS_FIRST),
        ("g**2", LATE.format(SHORT), f"{EPS_FIRST}; and: {DECAY_LATE}"),
        ("g**2", LATE.format(LONG_UNDER), f"{EPS_INSIDE}; and: {DECAY_LATE}"),
        ("g**2", EARLY.format(UNDER), f"{EPS_INSIDE}; and: {EPS_FIRST}"),
        ("g", EARLY.format("lr * m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + eps)"),
         "v is a mean of the gradients themselves, not of their squares"),
    ],
    ids=["eps", "eps and decay", "root and decay", "root and eps", "not squared"],
)  # fmt: skip
def test_a_short_form_of_adamw(warm: Warm, squared: str, last: str, title: str) -> None:
    text = ADAMW.replace("SQUARED", squared).replace("LAST", last)
    assert names(warm, "adamw_step", text) == {title}


IN_LLAMA = "The row passes through float32, as in Llama's code"


@pytest.mark.parametrize(
    "last",
    [
        "return weight * (y * torch.rsqrt(square + eps)).type_as(x)",
        "return (y / torch.sqrt(square + eps) * weight).to(x.dtype)",
        "return (y / (square + eps) ** 0.5 * weight.float()).to(x.dtype)",
        "return (weight.float() * (y * torch.rsqrt(square + eps))).to(x.dtype)",
    ],
    ids=["gain after", "divided", "gain inside", "gain first"],
)
def test_an_rms_norm_through_float32(warm: Warm, last: str) -> None:
    text = (
        "def rms_norm(x, weight, eps=1e-6):\n"
        "    y = x.to(torch.float32)\n"
        f"    square = y.pow(2).mean(-1, keepdim=True)\n    {last}\n"
    )
    assert names(warm, "rms_norm", text) == {IN_LLAMA}


FUNCTIONS = {
    "the mean on top alone": (
        "rms_norm",
        "def rms_norm(x, weight, eps=1e-6):\n"
        "    root = torch.sqrt((x ** 2).mean(-1, keepdim=True) + eps)\n"
        "    return (x - x.mean(-1, keepdim=True)) / root * weight\n",
        "The mean is subtracted on top, and stays in the squares",
    ),
    "reshape for transpose": (
        "next_token_loss",
        "def next_token_loss(logits, ids, ignore=None):\n"
        "    b, t, v = logits.shape\n"
        "    targets = ids[:, 1:].clone()\n"
        "    if ignore is not None:\n"
        "        targets[ignore[:, 1:]] = -100\n"
        "    return F.cross_entropy(logits[:, :-1].reshape(b, v, t - 1), targets)\n",
        "The vocabulary is brought to the front by reshape",
    ),
    "a loss in float32": (
        "next_token_loss",
        "def next_token_loss(logits, ids, ignore=None):\n"
        "    targets = ids[:, 1:].clone()\n"
        "    if ignore is not None:\n"
        "        targets[ignore[:, 1:]] = -100\n"
        "    guesses = logits[:, :-1].float().flatten(0, 1)\n"
        "    return F.cross_entropy(guesses, targets.flatten())\n",
        "The result is float32, whatever came in",
    ),
    "the batch for the tokens": (
        "embed_tokens",
        "def embed_tokens(ids, tokens, positions):\n"
        "    return tokens[ids] + positions[torch.arange(ids.shape[0])]\n",
        "The number of texts is taken for the number of tokens",
    ),
    "a mean with its logsumexp": (
        "merge_states",
        "def merge_states(a, b):\n"
        "    (m1, t1, x1), (m2, t2, x2) = a, b\n"
        "    l1, l2 = m1 + t1.log(), m2 + t2.log()\n"
        "    both = torch.logaddexp(l1, l2)\n"
        "    one, two = (l1 - both).exp()[..., None], (l2 - both).exp()[..., None]\n"
        "    mean = one * x1 / t1[..., None] + two * x2 / t2[..., None]\n"
        "    return both, torch.ones_like(both), mean\n",
        "The logsumexp and the mean of the values are returned, and not the state",
    ),
    "no id kept": (
        "sample_next",
        "def sample_next(logits, u, temperature=1.0, top_k=None, top_p=None):\n"
        "    if temperature == 0:\n"
        "        return int(logits.argmax())\n"
        "    logits = logits / temperature\n"
        "    if top_k is not None and top_k < len(logits):\n"
        "        logits = logits.masked_fill(logits < logits.topk(top_k).values[-1], -math.inf)\n"
        "    p = logits.softmax(-1)\n"
        "    if top_p is not None:\n"
        "        largest, order = p.sort(descending=True)\n"
        "        p = p.index_fill(0, order[largest.cumsum(0) > top_p], 0.0)\n"
        "        p = p / p.sum()\n"
        "    hit = torch.where(p.cumsum(0) > u)[0]\n"
        "    return int(hit[0]) if len(hit) else int(torch.where(p > 0)[0].max())\n",
        "The id that reaches top_p is dropped, even if it is the first",
    ),
}


@pytest.mark.parametrize(("exercise", "text", "title"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_slip_in_a_function(warm: Warm, exercise: str, text: str, title: str) -> None:
    assert names(warm, exercise, text) == {title}


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize(
    "call", ["self.drop(self.down({}))", "self.down(self.drop({}))"], ids=["last", "between"]
)
def test_dropout_in_a_feed_forward_network(warm: Warm, rate: float, call: str) -> None:
    text = f"""
class FeedForward(nn.Module):
    def __init__(self, d_model, d_hidden):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.drop = nn.Dropout({rate})

    def forward(self, x):
        return {call.format("F.gelu(self.up(x))")}
"""
    assert names(warm, "FeedForward", text) == {"Some numbers are dropped while training"}


LLAMA = """
class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        y = x.IN_DTYPE()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + EPS)
        return self.weight * y.to(x.dtype)


def rotate(x):
    tokens, d = x.shape[-2:]
    speeds = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype) / d)
    angles = torch.outer(torch.arange(tokens, dtype=x.dtype), speeds)
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


class LlamaBlock(nn.Module):
    def __init__(self, dim, n_heads, hidden):
        super().__init__()
        self.n_heads = n_heads
        self.attention_norm, self.ffn_norm = Norm(dim), Norm(dim)
        self.q_proj = nn.Linear(dim, dim, bias=QKV)
        self.k_proj = nn.Linear(dim, dim, bias=QKV)
        self.v_proj = nn.Linear(dim, dim, bias=QKV)
        self.o_proj = nn.Linear(dim, dim, bias=OUT)
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = (
            layer(x).view(b, t, self.n_heads, -1).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = rotate(q) @ rotate(k).mT / math.sqrt(d // self.n_heads)
        scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
        return self.o_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attend(self.attention_norm(x))
        y = self.ffn_norm(x)
        return x + self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))
"""
NO_BIAS = "The attention's last layer has no bias"
EPS_LARGER = "The norms add 1e-5, and not 1e-6"
FLOAT32 = "The numbers pass through float32 on their way"
QKV_BIAS = "Queries, keys and values have a bias"


@pytest.mark.parametrize(
    ("dtype", "eps", "qkv", "out", "title"),
    [
        ("clone", "1e-5", "False", "False", f"{NO_BIAS}; and: {EPS_LARGER}"),
        ("float", "1e-6", "False", "False", f"{FLOAT32}; and: {NO_BIAS}"),
        ("float", "1e-5", "False", "False", f"{FLOAT32}; and: {EPS_LARGER}; and: {NO_BIAS}"),
        ("clone", "1e-6", "True", "False", f"{QKV_BIAS}; and: {NO_BIAS}"),
        ("clone", "1e-6", "True", "True", QKV_BIAS),
    ],
    ids=["bias and eps", "bias and float32", "as published", "all biases wrong", "qkv"],
)  # fmt: skip
def test_a_llama_block_as_published(
    warm: Warm, dtype: str, eps: str, qkv: str, out: str, title: str
) -> None:
    text = LLAMA.replace("IN_DTYPE", dtype).replace("EPS", eps)
    text = text.replace("QKV", qkv).replace("OUT", out)
    assert names(warm, "LlamaBlock", text) == {title}


def test_a_llama_block_that_is_right_has_no_slip(warm: Warm) -> None:
    text = LLAMA.replace("IN_DTYPE", "clone").replace("EPS", "1e-6")
    assert names(warm, "LlamaBlock", text.replace("QKV", "False").replace("OUT", "True")) == set()


def test_two_small_slips_do_not_hide_which_layer_is_which(warm: Warm) -> None:
    """Layers called w1 to w3 are told apart by their results, though no match gives all digits."""
    text = LLAMA.replace("IN_DTYPE", "clone").replace("EPS", "1e-5").replace("QKV", "False")
    text = text.replace("nn.Linear(", "Dense(").replace(", bias=False", "")
    text = text.replace(", bias=OUT", "").replace("gate_proj", "w1").replace("down_proj", "w2")
    dense = """
class Dense(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(columns, rows) / rows**0.5)

    def forward(self, x):
        return x @ self.weight.T
"""
    text = dense + text.replace("up_proj", "w3")
    assert names(warm, "LlamaBlock", text) == {f"{NO_BIAS}; and: {EPS_LARGER}"}
