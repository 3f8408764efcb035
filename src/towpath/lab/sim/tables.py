"""The records that the data plane works on. Everything is a number, so that compiled code can read and write it.

A "point" is a stream or an operator, streams first, as in placement/index.py. A "place" is a fragment on a node: each
copy of a fragment has two, because it is on two nodes while it moves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

FOREVER = np.iinfo(np.int64).max  # as a version: never
NOBODY = -1

NODE = np.dtype(
    [
        ("cpu", "f8"),
        ("bandwidth_in", "f8"),
        ("bandwidth_out", "f8"),
        ("transfer_cost", "f8"),
        ("transfers", "f8"),  # work for tuples that came and went, still to be done
        ("in_free", "f8"),  # when what it receives, or sends, has passed
        ("out_free", "f8"),
        ("free", "f8"),  # when what it serves is finished
        ("busy", "f8"),  # seconds of service begun so far
        ("bytes_in", "f8"),
        ("bytes_out", "f8"),
        ("queued", "i8"),  # tuples that wait, the one in service included
        ("queued_bytes", "f8"),
        ("queued_since", "f8"),  # when that changed last,
        ("waited", "f8"),  # and the seconds that tuples spent there before, summed
        ("lives", "i8"),  # how often it was started: what was begun in an earlier life does not end
        ("first", "i8"),  # parcel at the head of its queue
        ("last", "i8"),
        ("made_first", "i8"),  # parcels that leave when the service ends
        ("made_last", "i8"),
        ("alive", "i8"),
        ("serving", "i8"),
        ("errand", "i8"),  # the number to report when the service ends
    ]
)
LINK = np.dtype(
    [
        ("latency", "f8"),
        ("bandwidth", "f8"),
        ("free", "f8"),
        ("arrives", "f8"),  # when the last parcel arrives: links keep the order
        ("bytes", "f8"),  # of tuples
        ("result_bytes", "f8"),  # of results on the way to their sinks
        ("up", "i8"),
    ]
)
POINT = np.dtype([("bytes", "f8"), ("first_reader", "i8"), ("end_reader", "i8")])
READER = np.dtype([("fragment", "i8"), ("operator", "i8")])
STREAM = np.dtype(
    [
        ("node", "i8"),
        ("rate", "f8"),
        ("seed", "u8"),
        ("poisson", "i8"),
        ("tuples", "i8"),
        ("segment", "i8"),  # of its profile, now
        ("end_segment", "i8"),
    ]
)
SEGMENT = np.dtype([("factor", "f8"), ("until", "f8")])
OPERATOR = np.dtype(
    [
        ("fragment", "i8"),
        ("seed", "u8"),
        ("cost", "f8"),
        ("service", "i8"),
        ("whole", "i8"),  # selectivity: that many tuples surely, and one more with the chance `part`
        ("part", "f8"),
        ("state_bytes", "f8"),  # what its windows hold when they are full
        ("shared", "i8"),  # the number of its signature, if others have it too
        ("join", "i8"),  # the number of its window join, if its cost follows from its state
        ("query", "i8"),  # whose result it makes, or NOBODY
        ("first_child", "i8"),  # operators of the same fragment that read it
        ("end_child", "i8"),
    ]
)
JOIN = np.dtype(
    [
        ("left", "i8"),  # the point that is its first input
        ("window", "f8"),  # seconds
        ("bucket", "f8"),  # seconds of event time that are kept and dropped together
        ("work", "f8"),  # for a tuple, whatever the state
        ("pair", "f8"),  # for a tuple of the other side's state
        ("purge", "f8"),  # for a tuple of the whole state
    ]
)
SIDE = np.dtype([("tuples", "i8"), ("newest", "f8"), ("dropped", "i8")])  # dropped: buckets before this one
PLACE = np.dtype(
    [
        ("node", "i8"),
        ("since", "i8"),  # takes in what was sent from this version on,
        ("until", "i8"),  # and before this one,
        ("emits", "i8"),  # and emits what comes of tuples sent from this version on
        ("waiting", "i8"),  # for its state: tuples are held
        ("first", "i8"),  # the held parcels
        ("last", "i8"),
    ]
)
COUNT = np.dtype([("taken", "i8"), ("given", "i8"), ("work", "f8"), ("state", "f8")])  # of an operator at a place
QUERY = np.dtype([("sink", "i8"), ("results", "i8"), ("undelivered", "i8"), ("first_path", "i8"), ("end_path", "i8")])
PATH = np.dtype(  # of a stream's tuples through a query; sums over those that led to results
    [
        ("stream", "i8"),
        ("tuples", "i8"),
        ("delay", "f8"),
        ("most", "f8"),  # the longest delay
        ("measured", "i8"),  # tuples with any processing time
        ("ratio", "f8"),
        ("delivered", "i8"),
        ("delivery", "f8"),  # delay at the sink
    ]
)
PARCEL = np.dtype(  # tuples that come of one tuple of a stream and travel together
    [
        ("kind", "i8"),
        ("point", "i8"),
        ("position", "i8"),  # the reader that comes next,
        ("end", "i8"),  # and where readers end
        ("node", "i8"),  # where it is or goes to
        ("place", "i8"),  # of those who made it
        ("version", "i8"),  # of the placement by which it was sent
        ("tuples", "i8"),
        ("key", "u8"),
        ("stream", "i8"),
        ("born", "f8"),  # when the stream's tuple arrived
        ("work", "f8"),  # p so far; or how long an errand takes
        ("errand", "i8"),
        ("next", "i8"),
    ]
)
EVENT = np.dtype([("time", "f8"), ("order", "i8"), ("kind", "i8"), ("subject", "i8"), ("life", "i8")])
CLOCK = np.dtype(
    [
        ("now", "f8"),
        ("medium", "f8"),  # bytes per second that all nodes together can send
        ("medium_free", "f8"),  # when it has carried what was sent so far
        ("order", "i8"),
        ("version", "i8"),  # of the placement
        ("events", "i8"),  # in the heap
        ("free", "i8"),  # first unused parcel
        ("unused", "i8"),
        ("room", "i8"),  # parcels and events that one event can need
        ("stamp", "i8"),
        ("done", "i8"),  # events so far
        ("executed", "i8"),  # tuples times operators so far
        ("reports", "i8"),
        ("lost_at_nodes", "i8"),  # tuples that waited at a node that died, or came to it afterwards
        ("lost_on_links", "i8"),
        ("lost_at_entry", "i8"),  # tuples of a stream whose delegation node was dead
    ]
)
STACKED = np.dtype(
    [("operator", "i8"), ("key", "u8"), ("tuples", "i8"), ("work", "f8"), ("bytes", "f8"), ("point", "i8")]
)

Array = Any  # of records: their fields are attributes


class Tables(NamedTuple):
    clock: Array
    nodes: Array
    links: Array  # by source and target
    points: Array
    readers: Array  # of other fragments than the point's own
    streams: Array
    segments: Array
    operators: Array
    children: Array
    joins: Array
    sides: Array  # of the state, by join, place and input
    buckets: Array  # by join, place, input and bucket: tuples
    places: Array  # by fragment and place
    counts: Array  # by operator and place
    queries: Array
    paths: Array
    parcels: Array
    events: Array
    stack: Array
    marks: Array  # by node: the stamp of the last tuple that was sent there
    seen: Array  # by shared signature and node: the key of the last tuple that it processed there
    sent: Array  # by shared signature and node: the key of the last tuple of it that was sent there
    reports: Array  # errands that ended


def records(kind: np.dtype[Any], *shape: int) -> Array:
    return np.zeros(shape, kind).view(np.recarray)
