"""From a checked query to what carriers run.

Query -> operators (build) -> rewrites -> pipeline (normal form, signature) -> template and assignment rows;
fragments cut the same operators into the units of placement. `show` puts all of it into words.
"""
