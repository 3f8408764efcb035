"""Which columns of an input are its event time, as the text has them before names are resolved."""

from __future__ import annotations

from sqlglot import exp

from towpath.lang.dialect import Windowed
from towpath.lang.fields import is_one_of
from towpath.lang.scope import lookup
from towpath.lang.table_windows import TableWindow
from towpath.schema import Catalog


class EventTimes:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def of(self, source: exp.Expr) -> frozenset[str] | None:
        """Their names in lower case; None of a stream that is not known."""
        if isinstance(source, Windowed | TableWindow):
            return self.of(source.this)
        if isinstance(source, exp.Table):
            name = lookup(source.name, self._catalog)
            return frozenset({self._catalog[name].time.lower()}) if name else None
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select):
            return self._derived(source.this)
        return frozenset()

    def _derived(self, select: exp.Select) -> frozenset[str] | None:
        """A filter passes the event time on; the results of a join have the latest of several."""
        start = select.args.get("from_")
        if start is None or select.args.get("joins") or select.args.get("group"):
            return frozenset()
        inner = self.of(start.this)
        if inner is None:
            return None
        if any(item.is_star for item in select.expressions):
            return inner
        items = ((item.alias_or_name, item.unalias()) for item in select.expressions)
        source = start.this.this if isinstance(start.this, Windowed | TableWindow) else start.this
        own = {source.alias_or_name.lower()}
        return frozenset(n.lower() for n, v in items if isinstance(v, exp.Column) and is_one_of(v, inner, own))
