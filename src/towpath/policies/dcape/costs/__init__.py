"""Cost models: what the workload of a processor is. One file each, with `cost(known)` that makes the cost table."""
