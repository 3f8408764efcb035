"""Where streams come from: the sources of a job file, and generators of data for trials and benchmarks."""
