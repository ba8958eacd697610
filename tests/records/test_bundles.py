"""A bundle knows its own files again, by the list that was written last."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.records.bundles import SUMS, bundled, write_sums


def write_bundle(to: Path, *names: str) -> None:
    """A bundle of files that hold their names; it has exercises."""
    with bundled(to) as draft:
        for name in ("exercises/stub.py", *names):
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_text(name)
        write_sums(draft)


def test_what_only_the_earlier_bundle_had_goes_and_what_others_added_stays(tmp_path: Path) -> None:
    to = tmp_path / "bundle"
    write_bundle(to, "old.md", "same.md")
    (to / "notes.txt").write_text("mine")
    write_bundle(to, "same.md", "new.md")
    there = {path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()}
    assert there == {"exercises/stub.py", "same.md", "new.md", "notes.txt", SUMS.as_posix()}


def test_the_list_goes_last_for_a_run_that_is_cut_off_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = tmp_path / "bundle"
    to.mkdir()
    moved: list[Path] = []
    replace = Path.replace

    def replacing(path: Path, target: Path) -> Path:
        moved.append(target.relative_to(to))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", replacing)
    write_bundle(to, "z.md")
    assert moved == [Path("exercises/stub.py"), Path("z.md"), SUMS]
