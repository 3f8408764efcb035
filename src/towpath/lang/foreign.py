"""Words that other dialects of SQL write behind an input of FROM, and what to do instead.

Taken for the input's name they would be dropped in silence, and the query would answer something else.
"""

from __future__ import annotations

_WINDOW = "give the input a window: FROM stream [RANGE 10 SECONDS SLIDE 5 SECONDS]"
_ONCE = "a window gives its result once, when it is complete"
_ALL = "a query reads every tuple of its streams; choose among them with WHERE"
_NOW = "a query reads streams as they come; choose times with WHERE"
_JOIN = "joins are inner joins: FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.x = b.y"
_CASE = "name the columns one by one, with CASE where it takes one"
_GROUP = "put the columns into GROUP BY"
_NONE = "leave it out"

_HINTS = {
    _WINDOW: "WINDOW TUMBLING TUMBLE HOPPING HOP SLIDING SLIDE SESSION RANGE ROWS EVERY OVER",
    _ONCE: "EMIT CHANGES FINAL GRACE WATERMARK",
    _ALL: "TABLESAMPLE SAMPLE LATEST ONLY PREWHERE",
    _NOW: "FOR VERSION TIMESTAMP SYSTEM_TIME AT BEFORE",
    _JOIN: "ASOF ANTI SEMI ANY ALL GLOBAL POSITIONAL APPLY WITHIN",
    _CASE: "PIVOT UNPIVOT",
    _GROUP: "PARTITION",
    "join the stream with itself, and say in WHERE what follows what": "MATCH_RECOGNIZE",
    "UNION ALL is the only way to combine SELECTs": "MINUS",
    _NONE: "SETTINGS FORMAT USE FORCE IGNORE",
}
JOINS = ("ASOF", "ANTI", "SEMI")  # kinds of joins, if JOIN follows
FOREIGN = {word: hint for hint, words in _HINTS.items() for word in words.split()}
