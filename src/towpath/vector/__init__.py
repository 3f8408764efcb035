"""The vectorised engine of universal carriers: pipelines of any shape over one batch of rows, without Spark."""
