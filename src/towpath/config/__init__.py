"""What people write: durations, YAML, sections of the job file, files of SQL. Nothing here knows what for."""
