"""Questions on the shape of a value on the way."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from grader import wire
from grader.questions.inputs import shapes_in_words
from grader.questions.outcomes import shapes_of
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import MARKS, files_of, marked

FEWEST = 2  # dimensions that are worth asking


def about_shapes(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on shapes that no argument has, and that no other line has."""
    one = study.clear_input
    if one is None or not one.is_worded:
        return
    sites = [site for site in study.sites if site.kind == "value"]
    shapes: dict[wire.Site, tuple[int, ...]] = {}
    # A question does not show the numbers of a mask, so a shape must not depend on them.
    for site, seen in _same(study.probed(sites, [one, one.with_other_masks])).items():
        # In a loop, the question is about the first time.
        if seen and (site.loops or len({*seen}) == 1) and seen[0] is not None:
            shapes[site] = seen[0]
    lines: dict[tuple[int, ...], set[tuple[str, int, int]]] = defaultdict(set)
    for site, shape in shapes.items():
        lines[shape].add((site.place.file, site.place.cell, site.place.line))
    known = {tuple(tensor.shape) for tensor in one.tensors}
    known.update(shapes_of(study.values[study.inputs.index(one)]))
    asked = [
        site
        for site, shape in shapes.items()
        if FEWEST <= len(shape) <= wire.MAX_DIMENSIONS
        and shape not in known
        and len(lines[shape]) == 1
        and str(shape)[1:-1] not in site.text  # as in `torch.zeros(2, 3)`
    ]
    chance.shuffle(asked)
    for site in asked:
        again = " the first time that it runs" if site.loops else ""
        yield Question(
            "shape",
            study.name,
            f"Suppose that {shapes_in_words(study.contract, one)}. What is the shape of the value "
            f"between {MARKS[0]} and {MARKS[1]} in {files_of([site])}{again}?",
            marked(study.sources, site),
            str(shapes[site]),
            f"A probe saw a tensor of the shape {shapes[site]} there.",
            "What does each of these numbers stand for?",
        )


def _same(
    every: Sequence[Mapping[wire.Site, list[wire.Value]]],
) -> Mapping[wire.Site, list[tuple[int, ...] | None]]:
    """The shapes of the values that probes saw, if they saw the same shapes each time."""
    shapes = [
        {
            site: [v.shape if isinstance(v, wire.TensorData) else None for v in values]
            for site, values in seen.items()
        }
        for seen in every
    ]
    first = shapes[0] if shapes else {}
    return {site: own for site, own in first.items() if all(one[site] == own for one in shapes)}
