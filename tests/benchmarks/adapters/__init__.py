"""Adapters: our answers in the signatures and conventions of other judges.

This runs in the judges' own environment. It imports torch, and nothing of the grader. An adapter
takes an answer to one of our exercises, and gives the names that a judge asks for. A probe draws an
input like those of the judge's own tests, and gives the adapted answer's result.

Our causal modules take one sequence. Some judges take queries, keys and values without a mask.
There the query is the last token, from which a causal mask hides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.adapters import functions, modules
from tests.benchmarks.adapters.weights import Answer, Entries


@dataclass(frozen=True)
class Task:
    """One exercise of ours at one task of a judge."""

    judge: str
    task: str
    exercise: str
    adapt: Callable[[Answer], Entries]
    probe: Callable[[Entries, int], Any]  # on the torch seed that is set, and a number


@dataclass(frozen=True)
class LeftOut:
    """An exercise or answers that are not measured, with the reason."""

    judge: str
    task: str
    exercise: str
    reason: str
    answers: tuple[str, ...] = ()  # these only; else the exercise


JUDGE, LEET = "torch-judge", "torchleet"
TASKS: tuple[Task, ...] = (
    Task(
        JUDGE, "softmax", "softmax_stable", functions.judge_softmax, functions.probe_judge_softmax
    ),
    Task(
        JUDGE,
        "attention",
        "scaled_dot_product_attention",
        functions.judge_attention,
        functions.probe_judge_attention,
    ),
    Task(
        JUDGE,
        "causal_attention",
        "CausalAttention",
        modules.judge_causal,
        modules.probe_judge_causal,
    ),
    Task(
        JUDGE, "mha", "MultiHeadAttention", modules.judge_multi_head, modules.probe_judge_multi_head
    ),
    Task(
        JUDGE, "cross_attention", "CrossAttention", modules.judge_cross, modules.probe_judge_cross
    ),
    Task(JUDGE, "rope", "apply_rope", functions.judge_rope, functions.probe_judge_rope),
    Task(
        JUDGE,
        "sliding_window",
        "sliding_window_mask",
        functions.judge_window,
        functions.probe_judge_window,
    ),
    Task(JUDGE, "gqa", "GroupedQueryAttention", modules.judge_grouped, modules.probe_judge_grouped),
    Task(JUDGE, "kv_cache", "CachedAttention", modules.judge_cache, modules.probe_judge_cache),
    Task(
        JUDGE,
        "flash_attention",
        "flash_attention",
        functions.judge_flash,
        functions.probe_judge_flash,
    ),
    Task(
        JUDGE,
        "linear_attention",
        "linear_attention",
        functions.judge_linear,
        functions.probe_judge_linear,
    ),
    Task(LEET, "softmax", "softmax_stable", functions.leet_softmax, functions.probe_leet_softmax),
    Task(
        LEET,
        "implement-attention-from-scratch",
        "scaled_dot_product_attention",
        functions.leet_attention,
        functions.probe_leet_attention,
    ),
    Task(
        LEET,
        "multi-head-attention",
        "MultiHeadAttention",
        modules.leet_multi_head,
        modules.probe_leet_multi_head,
    ),
    Task(
        LEET,
        "sinusoidal-positional-embedding",
        "sinusoidal_positions",
        functions.leet_sinusoidal,
        functions.probe_leet_sinusoidal,
    ),
    Task(
        LEET,
        "sliding-window-attention",
        "sliding_window_mask",
        functions.leet_window,
        functions.probe_leet_window,
    ),
    Task(
        LEET,
        "grouped-query-attention",
        "GroupedQueryAttention",
        modules.leet_grouped,
        modules.probe_leet_grouped,
    ),
    Task(LEET, "kv-cache", "CachedAttention", modules.leet_cache, modules.probe_leet_cache),
    Task(
        LEET, "flash-attention", "flash_attention", functions.leet_flash, functions.probe_leet_flash
    ),
)
LEFT_OUT: tuple[LeftOut, ...] = (
    LeftOut(
        LEET,
        "rotary-positional-embedding",
        "apply_rope",
        "it turns the two halves of a vector, by cosines and sines that it gives; ours turns "
        "neighbours, and computes the angles",
    ),
    LeftOut(
        LEET,
        "implement-attention-from-scratch",
        "scaled_dot_product_attention",
        "it takes the weights beside the result, if an answer gives them",
        ("weights-returned-too",),
    ),
    LeftOut(
        LEET,
        "multi-head-attention",
        "MultiHeadAttention",
        "a function of its own makes its layers at each call",
        ("made-in-forward",),
    ),
    LeftOut(
        LEET,
        "grouped-query-attention",
        "GroupedQueryAttention",
        "a function of its own makes its layers at each call",
        ("made-in-forward",),
    ),
    LeftOut(
        JUDGE,
        "rope",
        "apply_rope",
        "it does not say where positions begin",
        ("positions-from-one",),
    ),
    LeftOut(
        JUDGE,
        "flash_attention",
        "flash_attention",
        "it asks for gradients, and ours does not",
        ("no-grad",),
    ),
)
