"""What was decided, kept in SQLite."""
