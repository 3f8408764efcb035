"""The control plane: a pure controller, the journal of its decisions, and the engine that does all input and output."""
