"""Redistribution policies: which fragments go where. One file each, with `suggest(costs, before, known, limits)`.

`before` has the cost of each processor when fragments were last allocated on it. What a cost means they do not know, so
any of them goes with any cost model.
"""
