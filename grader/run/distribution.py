"""Distributes work over processes of this machine, or over the machines of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from grader.grading.order import Order
from grader.run.workers import Result, SetAside, WorkItem, fails, share

if TYPE_CHECKING:
    from grader.grading.desk import Desk


def distribute(
    order: Order,
    work: Callable[[Desk, WorkItem], Result],
    items: Sequence[WorkItem],
    gives: type[Result],
    set_aside: SetAside[WorkItem, Result] = fails,
    *,
    jobs: int,
    cluster: str | None,
) -> Generator[Result]:
    """Yield results of the type `gives`: by `cluster` if it is an address, else by processes."""
    if cluster is None:
        return share(order, work, items, jobs, set_aside)
    from grader.run import cluster as machines  # needs Dask, which is optional

    return machines.share_on_cluster(cluster, order, work, items, gives, set_aside)
