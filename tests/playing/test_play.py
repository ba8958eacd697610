"""`grader play`: a model made of a student's answers, trained, asked, and put on a page."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from grader.course.course import load_course
from grader.release.courses import copy_exercises
from grader.release.engine import FOR_STUDENTS, copy_engine
from tests.conftest import Grader, Ran
from tests.playing.conftest import SETS, answer

FEW = ("--steps", "3", "--no-questions")


def play(grader: Grader, folder: Path, *options: str, game: str = "addition") -> Ran:
    return grader("play", game, "--course", folder, *options)


def refused(ran: Ran) -> str:
    """What a call that cannot be says: one line, and exit code 2."""
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    return ran.err


# --- from the student's own code -----------------------------------------------------------------


@pytest.mark.parametrize("which", SETS)
def test_a_model_of_the_students_own_answers_is_trained(
    cold_grader: Grader, folder: Path, which: str
) -> None:
    answer(folder, which)
    ran = play(cold_grader, folder, *FEW)
    assert ran.code == 0
    for name in ("GPT", "adamw_step", "generate", "next_token_loss"):
        assert f"{name}: yours, from gpt.py line" in ran.out
    assert "step 1 of 3, loss 2." in ran.out
    assert "digits right" in ran.out
    assert re.search(r"Ended after 3 steps, \d+ s: of 1,000 sums that were not used", ran.out)


def test_two_trainings_from_one_seed_are_the_same(cold_grader: Grader, folder: Path) -> None:
    def losses(*options: str) -> list[str]:
        return re.findall(r"loss (\S+),", play(cold_grader, folder, *FEW, *options).out)

    assert losses() == losses("--seed", "1") != losses("--seed", "2")


def test_all_that_is_not_written_is_named_and_nothing_stands_in_for_it(
    cold_grader: Grader, folder: Path
) -> None:
    text = (folder / "gpt.py").read_text("utf-8")
    (folder / "gpt.py").write_text(text[: text.index("def adamw_step")], "utf-8")
    said = refused(play(cold_grader, folder, *FEW))
    assert "not written yet" in said
    assert "adamw_step, generate" in said
    assert not Path("addition.html").exists()


def test_a_step_that_moves_nothing_leaves_the_loss_where_it_was(
    cold_grader: Grader, folder: Path
) -> None:
    answer(folder, "modules", "def adamw_step(p, g, m, v, *rest):\n    return p, m, v\n")
    ran = play(cold_grader, folder, "--steps", "40", "--no-questions")
    losses = [float(loss) for loss in re.findall(r"step \d+ of 40, loss (\S+),", ran.out)]
    assert len(losses) == 3
    assert max(losses) - min(losses) < 0.05


def test_what_no_check_calls_right_is_said(cold_grader: Grader, folder: Path) -> None:
    (folder / "progress.txt").write_text("solved GPT\nsolved generate\n", "utf-8")
    out = play(cold_grader, folder, *FEW).out
    assert "These answers have not passed their checks so far" in out
    assert "odd results: adamw_step, next_token_loss. Try: grader check adamw_step" in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "def next_token_loss(logits, ids, ignore=None):\n    raise RuntimeError('mine')\n",
            "playing addition ended at gpt.py line 112: RuntimeError: mine",
        ),
        (
            "def next_token_loss(logits, ids, ignore=None):\n    return logits.mean(dim=-1)\n",
            "the loss must be one number with a gradient, but has the shape (128, 9)",
        ),
        (
            "def next_token_loss(logits, ids, ignore=None):\n    return logits.sum() * nan\n"
            "nan = float('nan')\n",
            "the loss is nan at step 1",
        ),
        (
            "def adamw_step(p, *rest):\n    return p\n",
            "adamw_step must return three tensors of the parameter's shape",
        ),
        (
            "def generate(model, ids, new_tokens, context_length):\n    return ids\n",
            "generate must return ids of shape (6, 9), not (6, 6)",
        ),
        (
            "class GPT(nn.Module):\n    def __init__(self, *sizes):\n        super().__init__()\n\n"
            "    def forward(self, ids):\n        return torch.zeros(*ids.shape, 12)\n",
            "GPT has no parameters",
        ),
    ],
    ids=["raises", "many losses", "nan", "one tensor", "too short", "nothing to learn"],
)
def test_what_an_answer_gets_wrong_is_one_line(
    cold_grader: Grader, folder: Path, more: str, said: str
) -> None:
    answer(folder, "modules", more)
    assert said in refused(play(cold_grader, folder, *FEW))


# --- choices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--heads", "5"], "5 heads do not divide the width of 64: choose from 1, 2, 4, 8, 16"),
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--std", "0"], "--std must be above 0, got 0"),
        (["--without", "norm"], "'norm' cannot be left out"),
        (["--out", "gpt.py"], "--out names a page, so it must end in .html, but gpt.py does not"),
        (["--out", "nowhere/x.html"], "the page cannot be written to nowhere/x.html"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_before_anything_is_trained(
    cold_grader: Grader, folder: Path, options: list[str], said: str
) -> None:
    ran = play(cold_grader, folder, *FEW, *options)
    assert said in refused(ran)
    assert "step 1" not in ran.out


def test_what_cannot_be_played_says_what_can(cold_grader: Grader, folder: Path) -> None:
    said = refused(play(cold_grader, folder, *FEW, game="chess"))
    assert "no game called 'chess' to play; choose from: addition, text" in said


def test_without_a_name_there_is_a_list(cold_grader: Grader, folder: Path) -> None:
    ran = cold_grader("play", "--course", folder)
    assert [line.split()[2] for line in ran.out.splitlines()] == ["addition", "text"]


def test_a_part_of_a_course_has_no_play_without_its_answers(folder: Path) -> None:
    assert len(load_course(folder).after_files()) == 3
    text = (folder / "course.toml").read_text("utf-8")
    (folder / "course.toml").write_text(text.replace('"generate"', '"go_on"'), "utf-8")
    assert load_course(folder).after_files() == []


def test_a_bundle_carries_what_is_played_and_what_plays_it(folder: Path, tmp_path: Path) -> None:
    (folder / "checks").mkdir()
    (folder / "checks" / "test_gpt.py").write_text("", "utf-8")
    copy_exercises(load_course(folder), tmp_path / "bundle" / "exercises")
    copied = (tmp_path / "bundle" / "exercises" / "afterwards" / "play").iterdir()
    assert {path.name for path in copied} == {"addition.py", "text.py", "alice.txt"}
    copy_engine(tmp_path / "bundle" / "grader", FOR_STUDENTS)
    engine = tmp_path / "bundle" / "grader" / "playing"
    assert (engine / "templates" / "page.html").is_file()


def test_tables_that_start_large_are_explained_and_drawn_anew_on_request(
    cold_grader: Grader, folder: Path
) -> None:
    text = (folder / "gpt.py").read_text("utf-8")
    (folder / "gpt.py").write_text(text.replace("std=0.02", "std=1.0"), "utf-8")
    out = play(cold_grader, folder, *FEW).out
    assert re.search(r"The first loss was [34]\d\.\d\. .* ln 12 = 2\.48", out)
    assert "grader play addition --std 0.02" in out
    out = play(cold_grader, folder, *FEW, "--std", "0.02").out
    assert "step 1 of 3, loss 2." in out
    assert "The first loss" not in out


@pytest.mark.parametrize("which", SETS)
def test_without_the_mask_a_model_reads_its_answers(
    cold_grader: Grader, folder: Path, which: str
) -> None:
    answer(folder, which)
    out = play(cold_grader, folder, "--steps", "60", "--no-questions", "--without", "mask").out
    assert "Left out of your model: mask." in out
    fed = re.search(r"your model reads the right answer .* it gets (\S+)% of the sums right", out)
    exact = re.search(r"not used for training, (\S+)% are right", out)
    assert fed is not None
    assert exact is not None
    assert float(fed[1]) > 50 > 10 > float(exact[1])


def test_a_model_without_a_mask_is_not_said_to_have_lost_one(
    cold_grader: Grader, folder: Path
) -> None:
    text = (folder / "gpt.py").read_text("utf-8")
    unmasked = text.replace("        scores.masked_fill_(mask, -torch.inf)\n", "")
    assert unmasked != text
    (folder / "gpt.py").write_text(unmasked, "utf-8")
    ran = play(cold_grader, folder, *FEW, "--without", "mask")
    assert "no mask was found that could be left out" in refused(ran)
    assert "Left out" not in ran.out


# --- the end of it -------------------------------------------------------------------------------


def test_ctrl_c_ends_the_training_and_goes_on_with_what_is_learnt(
    cold_grader: Grader, folder: Path
) -> None:
    more = "right = adamw_step\n\n\ndef adamw_step(p, g, m, v, step, *rest):\n"
    more += "    if step == 3:\n        raise KeyboardInterrupt\n"
    more += "    return right(p, g, m, v, step, *rest)\n"
    text = (folder / "gpt.py").read_text("utf-8").replace("def adamw_step", "def first_step")
    (folder / "gpt.py").write_text(text + more.replace("adamw_step\n", "first_step\n", 1), "utf-8")
    ran = play(cold_grader, folder, *FEW)
    assert ran.code == 0
    assert "Training is stopped" in ran.out
    assert re.search(r"Stopped after 2 steps, \d+ s: of 1,000 sums", ran.out)
    assert Path("addition.html").exists()


def test_sums_that_are_typed_get_answers(
    cold_grader: Grader, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "57+68\n 7 + 8\nseven\nhead\nhead 2 3\nhead 9 1\n\n1+1\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    ran = play(cold_grader, folder, "--steps", "2")
    assert ran.code == 0
    asked = ran.out[ran.out.index("Ask your model") :]
    assert re.search(r"57\+68=\S+  ✗ 125", asked)
    assert re.search(r"07\+08=\S+  ✗ 015", asked)
    assert "type two numbers from 0 to 99" in asked
    assert "layer 2, head 3 (rows look at columns)" in asked
    assert "there is no layer 9, head 1; there are: layer 1, head 1 to layer 2, head 4" in asked
    assert "01+01" not in asked


def test_the_page_stands_alone_and_says_whose_work_it_is(cold_grader: Grader, folder: Path) -> None:
    ran = play(cold_grader, folder, *FEW, "--heads", "2", "--out", "mine.html")
    assert "A page to show around: mine.html" in ran.out
    page = Path("mine.html").read_text("utf-8")
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=", page)
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "default-src 'none'" in page
    assert re.search(r"<dt>GPT</dt><dd>from gpt.py line \d+</dd>", page)
    assert "grader play addition --steps 3 --heads 2" in page
    assert page.count("<svg") == 2 + 4  # two curves, and two heads in two layers
    assert "This is layer" in page
    assert "digits in [brackets] are wrong" in page


def test_no_page_is_overwritten_without_a_word(cold_grader: Grader, folder: Path) -> None:
    for name in ("addition.html", "addition-2.html", "addition-3.html"):
        assert f"A page to show around: {name}\n" in play(cold_grader, folder, *FEW).out
    again = play(cold_grader, folder, *FEW, "--out", "addition.html").out
    assert "A page to show around: addition.html (it replaces an earlier page)" in again


def test_two_runs_are_set_side_by_side(cold_grader: Grader, folder: Path) -> None:
    play(cold_grader, folder, *FEW)
    ran = play(cold_grader, folder, *FEW, "--without", "mask", "--beside", "addition.html")
    assert "Both runs side by side: addition-beside-addition-2.html" in ran.out
    both = Path("addition-beside-addition-2.html").read_text("utf-8")
    assert both.count("<iframe sandbox") == 2
    assert "grader play addition --steps 3 --without mask" in both
    refusal = refused(play(cold_grader, folder, *FEW, "--beside", "nowhere.html"))
    assert "--beside names the page of another run" in refusal


ADDS = """
def generate(model, ids, count, context):
    total = 10 * (ids[:, 0] + ids[:, 3]) + ids[:, 1] + ids[:, 4]
    return torch.cat((ids, torch.stack((total % 10, total // 10 % 10, total // 100), dim=1)), dim=1)
"""


def test_the_page_explains_no_brackets_where_all_its_answers_are_right(
    cold_grader: Grader, folder: Path
) -> None:
    answer(folder, "modules", ADDS)
    ran = play(cold_grader, folder, *FEW, "--out", "mine.html")
    assert "sums right 100.0%" in ran.out
    assert "in [brackets] are wrong" in ran.out, "answers to what is typed follow there"
    assert "brackets" not in Path("mine.html").read_text("utf-8")


def test_the_page_names_the_answers_that_others_are_built_on(
    cold_grader: Grader, folder: Path
) -> None:
    with (folder / "course.toml").open("a", encoding="utf-8") as toml:
        toml.write('\n[[unit.exercise]]\nname = "Block"\ntitle = "A block"\npoints = 1\n')
    play(cold_grader, folder, *FEW, "--out", "mine.html")
    pieces = re.findall(r"<dt>(\w+)</dt><dd>from ", Path("mine.html").read_text("utf-8"))
    assert pieces == ["GPT", "adamw_step", "generate", "next_token_loss", "Block"]


def test_a_text_is_written_on(
    cold_grader: Grader, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("The cat\nn°1\n\n"))
    ran = play(cold_grader, folder, "--steps", "2", game="text")
    assert ran.code == 0
    assert "Ended after 2 steps" in ran.out
    assert re.search(r"^> the cat.{120}", ran.out, re.MULTILINE | re.DOTALL)
    assert "the model does not know '1', '°'" in ran.out
    assert Path("text.html").exists()
