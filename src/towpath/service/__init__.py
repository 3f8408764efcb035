"""The service of a running job: a local HTTP API for commands that come while it runs."""
