"""The folder that everything of a job is kept in, and files that survive a crash."""
