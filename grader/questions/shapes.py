"""Questions on the shape of a value on the way."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator

from grader import wire
from grader.questions.inputs import shapes_in_words
from grader.questions.outcomes import shapes_of
from grader.questions.question import Question
from grader.questions.study import Study
from grader.questions.texts import lines_at, named

FEWEST = 2  # dimensions that are worth asking


def about_shapes(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on shapes that no argument has, and that no other line has."""
    one = study.clear_input
    if one is None:
        return
    sites = [site for site in study.sites if site.kind == "value"]
    shapes: dict[wire.Site, tuple[int, ...]] = {}
    for site, seen in next(iter(study.probed(sites, [one])), {}).items():
        found = {value.shape if isinstance(value, wire.TensorData) else None for value in seen}
        # In a loop, the question is about the first time.
        if seen and (site.loops or len(found) == 1) and isinstance(seen[0], wire.TensorData):
            shapes[site] = seen[0].shape
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
    asked.sort(key=lambda site: not site.name)  # named values first
    for site in asked:
        again = "the first time that it runs, " if site.loops else ""
        yield Question(
            "shape",
            study.name,
            f"Suppose that {shapes_in_words(study.contract, one)}. What is the shape of "
            f"`{named(site)}`, {again}in line {site.place.line} of {site.place.within}?",
            lines_at(study.sources, site),
            str(shapes[site]),
            f"A probe saw a tensor of the shape {shapes[site]} there.",
            "What does each of these numbers stand for?",
        )
