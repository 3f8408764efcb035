"""Reference tables: what a job file says of them, what their sources hold, and the versions that carriers read."""
