"""towpath from Python: check, explain, run, read and watch a job."""
