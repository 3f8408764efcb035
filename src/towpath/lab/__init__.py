"""The laboratory: simulator, experiments, benchmarks, demonstration.

The simulator and the experiments need `pip install 'towpath[lab]'`; `testing` draws with hypothesis,
which comes with `dev`; the benchmarks and the demonstration need nothing that a job does not.
"""
