"""Which of a student's parameters hold which weights of a reference, whatever that is made of.

The student's tree of modules may differ from the reference's at every level. So each level is
matched by itself:

1. A model, in `models`: its layers are what is alike so many times. One is matched for all of them,
   and so is what stands around them.
2. A block, in `blocks`: its norms are found by their vectors (`norms`), and each part that holds
   matrices by a branch of the tree (`parts`).
3. One part, as an attention, or an exercise that is no more than that: in `matching`.

At every level, names come first, since a weight that is used for something else than its name is a
mistake. Where they say nothing, parts are taken in the order in which they were made, as most
people make them in the order in which they use them. The ways that are left come after that:
`adoption` tries them, one after the other, until the student's module gives the reference's result.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from grader.proxies import blocks, models
from grader.proxies.groups import is_floating
from grader.proxies.names import NameAliases
from grader.proxies.slots import Adoption, WantedRoles, likeliest


@lru_cache(maxsize=256)  # students who took the stub's names have the same
def candidates(wanted: WantedRoles, aliases: NameAliases) -> tuple[Adoption, ...]:
    """Every way to match them, likeliest first; raises `Unadoptable` if there is none.

    What can hold no weight, as whole numbers, takes no part from here on.
    """
    held = tuple(info for info in wanted.parameters if is_floating(info))
    others = tuple(info.path for info in wanted.parameters if info not in held)
    found = _among(replace(wanted, parameters=held), aliases)
    return tuple(replace(one, extra=(*one.extra, *others)) for one in found)


def _among(wanted: WantedRoles, aliases: NameAliases) -> tuple[Adoption, ...]:
    if models.has_layers(wanted.roles):
        return likeliest(models.candidates(wanted, aliases))
    return blocks.candidates(wanted, aliases)
