"""What follows from what is known: pure functions and state, without clocks, threads, files or Spark."""
