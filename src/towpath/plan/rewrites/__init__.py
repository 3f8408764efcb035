"""Plan rewrites: each is one pure function (plan, catalog) -> plan in its own file; they run in this order."""

from collections.abc import Callable

from towpath.plan.operators import LogicalOperator
from towpath.plan.rewrites.canonicalise import canonicalise
from towpath.plan.rewrites.imply_equalities import imply_equalities
from towpath.plan.rewrites.number_inputs import number_inputs
from towpath.plan.rewrites.order_joins import order_joins
from towpath.plan.rewrites.push_filters import push_filters
from towpath.schema import Catalog

Rewrite = Callable[[LogicalOperator, Catalog], LogicalOperator]

REWRITES: tuple[Rewrite, ...] = (
    imply_equalities,
    canonicalise,
    push_filters,
    order_joins,
    number_inputs,
)

__all__ = ["REWRITES", "Rewrite"]
