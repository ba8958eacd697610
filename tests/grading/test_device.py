"""Answers that compute on a GPU: what that needs, what it allows, and what the grade says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.course.course import load_course
from grader.feedback.differences.pair import computed_on, differing
from grader.grading.ladder import grade_submission
from grader.grading.order import Order
from grader.intake import find_submissions
from grader.records.grade import Grade
from grader.sandbox.session import Device
from grader.wire import payload
from tests.conftest import Grader
from tests.support.places import REAL, ROOT, SAMPLES

COURSE = load_course(REAL)
UNDER_WEAK = ("--device", "cuda", "--isolation", "weak")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


# --- without a GPU -------------------------------------------------------------------------------


def test_a_gpu_is_refused_without_weak_isolation(tmp_path: Path, grader: Grader) -> None:
    ran = grader("grade", SAMPLES / "ada", "--out", tmp_path / "out", "--device", "cuda")
    assert ran.code == 2
    assert "jails cannot use cuda" in ran.err
    assert "--isolation=weak" in ran.err
    assert not (tmp_path / "out").exists()


@without_gpu
def test_a_gpu_that_is_not_there_is_one_line(tmp_path: Path, cold_grader: Grader) -> None:
    ran = cold_grader("grade", SAMPLES / "ada", "--out", tmp_path / "out", *UNDER_WEAK)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].endswith("no CUDA device here: leave out --device cuda")
    assert not (tmp_path / "out").exists()


def test_a_jail_on_a_gpu_is_refused(grader: Grader) -> None:
    options = ("--course", ROOT, "--device", "cuda", "--backend", "jail")
    ran = grader("check", "causal_mask", "--in", SAMPLES / "ada", *options)
    assert ran.code == 2
    assert "jails cannot use cuda" in ran.err


def test_a_grade_tells_of_its_device_where_that_is_not_the_cpu() -> None:
    plain = Grade("ada", "ada", "graded", 1.0, 2.0, "seed", "course", ("weak",), "2.13.0", 0.1)
    assert b"device" not in plain.to_json()
    told = b'{"device": "cuda", ' + plain.to_json().removeprefix(b"{")
    assert Grade.from_json(told).device == "cuda"
    assert b'"device":"cuda"' in Grade.from_json(told).to_json()


def test_results_of_another_device_may_round_otherwise() -> None:
    ours = torch.linspace(1, 2, 5)
    theirs = ours * (1 + 1e-5) + 1e-5
    assert differing(theirs, ours).all()
    with computed_on("cuda"):
        assert not differing(theirs, ours).any()
        assert differing(ours + 0.001, ours).all()
    assert differing(theirs, ours).all()


def test_a_tensor_that_is_not_where_the_answer_computes_is_told_as_such() -> None:
    with pytest.raises(payload.Unsendable, match="a tensor on device cpu"):
        payload.pack_tensor(torch.ones(2), home="cuda")


# --- with one ------------------------------------------------------------------------------------


def grade_on(device: Device, student: str) -> Grade:
    (submission,) = find_submissions([SAMPLES / student], COURSE, single=True)
    files = COURSE.tests_of()
    order = Order(COURSE, COURSE.hidden_seed(), files, isolation="weak", device=device)
    with order.desk() as desk:
        return grade_submission(desk, submission)


@pytest.mark.gpu
@pytest.mark.parametrize("student", ["ada", "bob_four_classes.py", "dana_mistakes"])
def test_a_submission_earns_the_same_on_a_gpu(student: str) -> None:
    there, here = grade_on("cuda", student), grade_on("cpu", student)
    assert {e.name: e.points for e in there.exercises} == {e.name: e.points for e in here.exercises}
    assert (there.device, there.isolation) == ("cuda", ("weak",))


@pytest.mark.gpu
def test_a_check_on_a_gpu_names_mistakes_too(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(
        "import torch\n\ndef softmax_rows(scores):\n"
        "    e = torch.exp(scores)\n    return e / e.sum(dim=0)\n"
    )
    ran = grader("check", "softmax_rows", "--course", ROOT, "--in", tmp_path, "--device", "cuda")
    assert ran.code == 1
    assert "column" in ran.out


@pytest.mark.gpu
def test_a_result_that_was_moved_off_the_gpu_is_told(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(
        "import torch\n\ndef softmax_rows(scores):\n"
        "    e = torch.exp(scores)\n    return (e / e.sum(dim=1, keepdim=True)).cpu()\n"
    )
    ran = grader("check", "softmax_rows", "--course", ROOT, "--in", tmp_path, "--device", "cuda")
    assert ran.code == 1
    assert "a tensor on device cpu" in ran.out
