"""The weights of a module: given by role, and no more of them than the statement has."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from grader.proxies import adoption as _adoption
from grader.proxies.groups import is_called_bias
from grader.proxies.remote import RemoteModule
from grader.proxies.slots import Adoption
from grader.testing.values import assert_that


def adopt(theirs: RemoteModule, ours: nn.Module) -> Adoption:
    """Give the student's module the reference's weights, by role; see `grader.proxies.adoption`.

    Returns how they were matched: ``.missing`` are roles that the student has no parameter for
    (zero in `ours` from now on), ``.extra`` the student's parameters that have no role.
    Raises an AssertionError for the student where there is nothing to adopt.
    """
    adoption = _adoption.give_weights(theirs, ours)
    theirs.remember_make(adoption.in_roles())
    return adoption


def adopt_identity_weights(theirs: RemoteModule, ours: nn.Module) -> None:
    """Make every weight matrix of `ours` an identity and every bias zero, and adopt them.

    A matrix that is not square has ones on its diagonal.
    """
    for weight in ours.parameters():
        _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    adopt(theirs, ours)


def assert_learns_no_more(theirs: RemoteModule, layers: str, *, but: int = 0) -> None:
    """Fail if a module learns more than the weights that it adopted.

    Biases are seen by their name and place beside a weight with a role, since a bias of the keys
    changes no result. Anything else is seen by what it does: layers that take no part may have any
    weights. What has a dimension of the size `but` is another test's to judge.

    `layers` says who has no bias, for the message: ``"queries, keys and values have no bias"``.
    """
    biases = [path for path in _biases_beside(theirs) if but not in _shape(theirs, path)]
    assert_that(
        not biases,
        f"{layers}, and there is {', '.join(biases[:3])}: what does nn.Linear do when you say "
        "nothing about the bias?",
    )
    others = [path for path in _adoption.also_learned(theirs) if but not in _shape(theirs, path)]
    assert_that(
        not others,
        f"the layer learns {', '.join(others[:3])} as well, and its result depends on it: what "
        "the statement names is all that is learned",
    )


def assert_has_one_table(theirs: RemoteModule, table: str, rows: int) -> None:
    """Fail if a module has the adopted weights of a table twice, and its result depends on both.

    Or if both get a gradient, as where one is copied into the other in every call. Or if it learns
    a bias for each of the table's `rows`.
    """
    paths = sorted({slot.path for slot in theirs.adoption.slots if slot.role == table})
    used = paths
    if len(paths) > 1:
        learning = {*_adoption.that_matter(theirs, paths), *_taught(theirs, paths)}
        used = [path for path in paths if path in learning]
    assert_that(
        len(used) == 1,
        f"{' and '.join(used)} are two tables, which learn apart from one another: the output "
        "should use the very table that looks up the tokens",
    )
    unused = {path.rpartition(".")[0] for path in paths if path not in used}
    beside = [path for path in _biases_beside(theirs) if path.rpartition(".")[0] not in unused]
    learned = [*beside, *_adoption.also_learned(theirs)]
    others = [path for path in dict.fromkeys(learned) if rows in _shape(theirs, path)]
    assert_that(
        not others,
        f"{', '.join(others)} has a number for each row of the table: the output adds no bias",
    )


def _taught(theirs: RemoteModule, paths: Sequence[str]) -> list[str]:
    """Those of some parameters that get a gradient other than zero."""
    result = theirs(*_adoption.probe(theirs.contract, theirs.made_with))
    first = result[0] if isinstance(result, (tuple, list)) else result
    if not first.requires_grad:
        return []
    mirrors = [theirs.parameters()[path] for path in paths]
    gradients = torch.autograd.grad(first.square().sum(), mirrors, allow_unused=True)
    return [
        path
        for path, gradient in zip(paths, gradients, strict=True)
        if gradient is not None and bool(gradient.any())
    ]


def _shape(theirs: RemoteModule, path: str) -> tuple[int, ...]:
    return tuple(theirs.parameters()[path].shape)


def _biases_beside(theirs: RemoteModule) -> list[str]:
    """What is called a bias, has no role, and stands in a layer that holds adopted weights."""
    homes = theirs.adoption.homes()
    learned = {info.path for info in theirs.structure.parameters if info.learned}
    biases = [path for path in theirs.adoption.extra if path in learned and is_called_bias(path)]
    return [path for path in biases if path.rpartition(".")[0] in homes]


def assert_one_bias(
    theirs: RemoteModule, ours: nn.Module, layers: str, of: str = "out_proj"
) -> None:
    """Adopt the weights of `ours`; fail unless the layer `of` has a bias, and no other learns one.

    `layers` names those that have none, for the message: ``"queries, keys and values"``.
    """
    adoption = adopt(theirs, ours)
    assert_learns_no_more(theirs, f"{layers} have no bias here")
    assert_that(
        f"{of}.bias" not in adoption.missing,
        "the last layer has a bias, and none could be found that belongs to it",
    )
