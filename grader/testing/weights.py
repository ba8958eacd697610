"""Gives a module the reference's weights, and asserts that the module learns no others."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from grader.proxies import adoption as _adoption
from grader.proxies.groups import is_called_bias
from grader.proxies.remote import RemoteModule
from grader.proxies.slots import Adoption, Unadoptable
from grader.testing.values import assert_that


def adopt(theirs: RemoteModule, ours: nn.Module) -> Adoption:
    """Give the student's module the reference's weights, by role.

    A role is a weight's name, such as ``W_query`` or an alias of it, or else the place in which the
    weight gives the reference's results. Returns the match. ``.missing`` lists the roles that the
    student's module lacks, which become zero in `ours`. ``.extra`` lists the student's parameters
    without a role. Raises `Unadoptable`, an `AssertionError` for the student, if the module has no
    place for the weights.

    >>> theirs, ours = student.Projection(3, 4), reference.Projection(3, 4)
    >>> adopt(theirs, ours).extra
    ('linear.bias',)
    >>> x = make.normal(batch=2, d_in=3)
    >>> assert_agrees(theirs(x), ours(x))
    """
    try:
        adoption = _adoption.give_weights(theirs, ours)
    except Unadoptable:
        theirs.forget_make(ours)
        raise
    theirs.remember_make(adoption.in_roles())
    return adoption


def adopt_identity_weights(theirs: RemoteModule, ours: nn.Module) -> None:
    """Make every weight matrix of `ours` an identity and every bias zero, and adopt them.

    A non-square matrix gets ones on its diagonal.
    """
    for weight in ours.parameters():
        _ = nn.init.eye_(weight) if weight.ndim == 2 else nn.init.zeros_(weight)
    adopt(theirs, ours)


def assert_learns_no_more(theirs: RemoteModule, layers: str, *, but: int = 0) -> None:
    """Fail if a module learns more than the weights that it adopted.

    An extra bias in a layer with adopted weights is found by its name, since a bias of the keys
    never influences the result. Other extra parameters count only if they influence the result.
    Parameters with a dimension of size `but` are ignored, because another test checks them.

    The message begins with `layers`, such as ``"queries, keys and values have no bias"``.

    >>> theirs = student.Projection(3, 4)
    >>> _ = adopt(theirs, reference.Projection(3, 4))
    >>> assert_learns_no_more(theirs, "the layer has no bias")
    Traceback (most recent call last):
        ...
    AssertionError: the layer has no bias, but there is linear.bias: what is nn.Linear's ...
    """
    biases = [path for path in _extra_biases(theirs) if but not in _shape(theirs, path)]
    assert_that(
        not biases,
        f"{layers}, but there is {', '.join(biases[:3])}: what is nn.Linear's default for bias?",
    )
    others = [path for path in _adoption.also_learned(theirs) if but not in _shape(theirs, path)]
    assert_that(
        not others,
        f"the layer also learns {', '.join(others[:3])}, which changes its result: learn only the "
        "weights that the statement names",
    )


def assert_learns_the_weights(theirs: RemoteModule, layers: str) -> None:
    """Fail unless a module learns all weights that it was to adopt, and no others.

    The message begins with `layers`, such as ``"the layer learns a scale and a shift"``. A test of
    values does not notice a missing bias, which counts as zero.
    """
    missing = theirs.adoption.missing
    assert_that(not missing, f"{layers}, but there is no {' and no '.join(missing[:3])} in yours")
    assert_learns_no_more(theirs, layers)


def assert_has_one_table(theirs: RemoteModule, table: str, rows: int) -> None:
    """Fail if a module holds a table's weights twice, or learns a bias for each of its `rows`.

    A second copy counts if it influences the result, or if both copies get a gradient, as when
    every call copies one into the other.
    """
    paths = sorted({slot.path for slot in theirs.adoption.slots if slot.role == table})
    used = paths
    if len(paths) > 1:
        learning = {*_adoption.influential(theirs, paths), *_with_gradient(theirs, paths)}
        used = [path for path in paths if path in learning]
    assert_that(
        len(used) == 1,
        f"{' and '.join(used)} are two tables, which learn separately: the output should use the "
        "same table that looks up the tokens",
    )
    unused = {path.rpartition(".")[0] for path in paths if path not in used}
    biases = [path for path in _extra_biases(theirs) if path.rpartition(".")[0] not in unused]
    learned = [*biases, *_adoption.also_learned(theirs)]
    others = [path for path in dict.fromkeys(learned) if rows in _shape(theirs, path)]
    assert_that(
        not others,
        f"{', '.join(others)} has a number for each row of the table: the output must not add a "
        "bias",
    )


def _with_gradient(theirs: RemoteModule, paths: Sequence[str]) -> list[str]:
    """The parameters among `paths` that get a nonzero gradient."""
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


def _extra_biases(theirs: RemoteModule) -> list[str]:
    """The names of learned biases without a role, in layers that hold adopted weights."""
    homes = theirs.adoption.homes()
    learned = {info.path for info in theirs.structure.parameters if info.learned}
    biases = [path for path in theirs.adoption.extra if path in learned and is_called_bias(path)]
    return [path for path in biases if path.rpartition(".")[0] in homes]


def assert_one_bias(
    theirs: RemoteModule, ours: nn.Module, layers: str, of: str = "out_proj"
) -> None:
    """Adopt the weights of `ours`; fail unless exactly the layer `of` has a bias.

    `layers` names the other layers in the message, such as ``"queries, keys and values"``.
    """
    adoption = adopt(theirs, ours)
    assert_learns_no_more(theirs, f"{layers} have no bias here")
    assert_that(
        f"{of}.bias" not in adoption.missing,
        "the last layer has a bias in the statement, but none was found in yours",
    )
