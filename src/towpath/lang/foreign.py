"""Words that other dialects of SQL write behind an input of FROM, and which feature is missing.

Taken for the input's name they would be dropped in silence, and the query would answer something else.
"""

from __future__ import annotations

_WINDOW = "windows of a fixed length are written FROM stream [RANGE 10 SECONDS SLIDE 5 SECONDS]"
_SESSION = "session windows, which a gap ends, are written FROM stream [SESSION 10 SECONDS]"
_ROWS = "windows of a number of rows are missing"
_ONCE = "updating results are missing: a window gives its result once, when it is complete"
_LATE = "how late a row may come is written in the job file, as the delay of the stream"
_SAMPLE = "reading a part of a stream is missing: a query reads every tuple"
_NOW = "reading a stream as of a time, and as-of joins, are missing"
_JOIN = "joins of this kind are missing: an inner join gives every pair that matches"
_CASE = "name the columns one by one, with CASE where it takes one"
_PARTITION = "a query says nothing of how its streams are divided; GROUP BY gives a result for each group"
_NONE = "leave it out"

_HINTS = {
    _WINDOW: "WINDOW TUMBLING TUMBLE HOPPING HOP SLIDING SLIDE RANGE EVERY OVER",
    _SESSION: "SESSION",
    _ROWS: "ROWS",
    _ONCE: "EMIT CHANGES",
    _LATE: "GRACE WATERMARK",
    "choosing the last version of each row is missing": "FINAL LATEST",
    _SAMPLE: "TABLESAMPLE SAMPLE ONLY",
    "write the condition into WHERE": "PREWHERE",
    _NOW: "FOR VERSION TIMESTAMP SYSTEM_TIME AT BEFORE",
    _JOIN: "ASOF ANTI SEMI ANY ALL GLOBAL POSITIONAL APPLY WITHIN",
    _CASE: "PIVOT UNPIVOT",
    _PARTITION: "PARTITION",
    "patterns of rows that follow each other are missing": "MATCH_RECOGNIZE",
    "differences of results are missing": "MINUS",
    _NONE: "SETTINGS FORMAT USE FORCE IGNORE",
}
JOINS = ("ASOF", "ANTI", "SEMI")  # kinds of joins, if JOIN follows
FOREIGN = {word: hint for hint, words in _HINTS.items() for word in words.split()}
