"""Questions on the shape of a value on the way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from grader import wire
from grader.questions.question import Question
from grader.questions.study import Input, Study, inputs_in_words, lines_of, shape_of

FEWEST = 2  # dimensions that are worth asking


def about_shapes(study: Study, chance: random.Random) -> Iterator[Question]:
    """Questions on shapes that no argument has, and that no other line has."""
    number = next((n for n, one in enumerate(study.inputs) if _is_clear(one)), None)
    if number is None:
        return
    one = study.inputs[number]
    sites = [site for site in study.sites if site.kind == "value"]
    probed = study.probed(sites)
    shapes: dict[wire.Site, tuple[int, ...]] = {}
    for site in sites:
        seen = probed[site][number] if site in probed else []
        found = {shape_of(value) for value in seen}
        if len(found) == 1 and (shape := found.pop()) is not None:
            shapes[site] = shape
    common = Counter((site.place.line, site.place.file, shape) for site, shape in shapes.items())
    lines = Counter(shape for _, _, shape in common)
    given = {tuple(tensor.shape) for tensor in one.tensors}
    result = study.values[number]
    final = shape_of(result.value) if isinstance(result, wire.Returned) else None
    asked = [
        site
        for site, shape in shapes.items()
        if len(shape) >= FEWEST and shape not in given and shape != final and lines[shape] == 1
    ]
    chance.shuffle(asked)
    asked.sort(key=lambda site: not site.name)  # named values first
    for site in asked:
        what = f"`{site.name}`" if site.name else f"`{' '.join(site.text.split())}`"
        place = site.place
        where = place.within if place.cell else place.file
        again = "the first time that it runs, " if site.loops else ""
        yield Question(
            "shape",
            study.name,
            f"{inputs_in_words(study, one)}. What is the shape of {what}, {again}in line "
            f"{place.line} of {where}?",
            [
                wire.Place(place.file, place.line + n, line, place.cell)
                for n, line in enumerate(lines_of(study, site))
            ],
            str(shapes[site]),
            f"A probe saw a tensor of the shape {shapes[site]} there.",
            "What does each of these numbers stand for?",
        )


def _is_clear(one: Input) -> bool:
    """Whether all sizes of an input differ, so that a shape shows where each size comes from."""
    tensors = one.tensors
    if not tensors or any(1 in tensor.shape for tensor in tensors):
        return False
    made = [value for value in one.made.arguments if type(value) is int] if one.made else []
    first = [*tensors[0].shape]
    new = [value for value in made if value not in first]
    return len({*first}) == len(first) and len({*new}) == len(new)
