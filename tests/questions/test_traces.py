"""Questions on what a change reaches: a part of a value, or some of several results."""

from __future__ import annotations

import random
import re

from grader.questions.changes import about_changes
from grader.questions.outcomes import BREAKS
from grader.questions.study import Study
from grader.questions.traces import about_parts
from tests.questions.conftest import Learn
from tests.support.asked import HEAD, STEP


def parts_of(studied: Study) -> dict[str, set[str]]:
    """The parts of values that a changed token i reaches, for lines that are asked about."""
    found: dict[str, set[str]] = {}
    for seed in range(20):
        for question in about_parts(studied, random.Random(seed)):
            assert len({*question.choices}) == len(question.choices) == len(question.lines) >= 3
            at = re.search(r"in `x\[:, (\d)\]` change.* is (.*) the smallest", question.text)
            if at is not None:
                label = question.reply.removeprefix("The value ")
                (line,) = (one.text for one in question.lines if f"«{label}: " in one.text)
                line = line.replace(f"{label}: ", "").strip()
                found.setdefault(line, set()).add(at[2].strip("`").replace(at[1], "i"))
    return found


def test_a_changed_token_reaches_a_row_a_column_or_all_later_rows(learn: Learn) -> None:
    found = parts_of(learn("CausalHead", HEAD))
    assert found["scores = q @ «k.transpose(-2, -1)»"] == {"v[:, :, i]"}
    assert found["scores = «q @ k.transpose(-2, -1)»"] == {"v[:, i] and v[:, :, i]"}
    assert found["weights = «torch.softmax(scores, dim=-1)»"] == {"v[:, i:]"}
    assert found["return «weights @ v»"] == {"v[:, i:]"}


def test_a_part_is_asked_for_only_if_no_row_with_a_column_is_smaller(learn: Learn) -> None:
    slanted = """
import torch

def running_mean_loop(x):
    total = x.cumsum(dim=1)
    channels = torch.arange(x.shape[2])
    past = (channels < torch.arange(x.shape[1])[:, None]) * x[:, None, : x.shape[2], 0]
    slanted = x + past
    doubled = x * 2
    spread = x + x.sum(dim=1, keepdim=True)
    total = total + 0 * (slanted + doubled + spread)
    return total / torch.arange(1, x.shape[1] + 1)[:, None]
"""
    found = parts_of(learn("running_mean_loop", slanted))
    assert found["total = «x.cumsum(dim=1)»"] == {"v[:, i:]"}
    assert "slanted = «x + past»" not in found


def test_a_value_with_one_axis_has_parts_too(learn: Learn) -> None:
    flat = """
import torch

def running_mean_loop(x):
    sizes = x.sum(dim=(0, 2))
    total = x.cumsum(dim=1) + 0 * sizes[:, None]
    counts = torch.arange(1, x.shape[1] + 1)
    return total / counts[:, None]
"""
    studied = learn("running_mean_loop", flat)
    questions = [*about_parts(studied, random.Random(0))]
    assert any("x.sum(dim=(0, 2))" in line.text for one in questions for line in one.lines)


def test_it_is_told_which_of_several_results_change(learn: Learn) -> None:
    studied = learn("adamw_step", STEP)
    changes = [site for site in studied.sites if site.kind != "value"]
    tried = {site: outcome for site in changes if (outcome := studied.outcome(site))}
    told: dict[str, set[str]] = {}
    for site, question in about_changes(studied, tried, random.Random(0)):
        told.setdefault(site.place.text.split()[0], set()).add(question.reply)
        assert question.reply in question.choices
    assert told["mean"] == {"Of the 3 results, only the first and the second change."}
    others = told["power"] - {BREAKS}
    assert others == {"Of the 3 results, only the first and the third change."}
    assert "Of the 3 results, only the first changes." in told["move"]
