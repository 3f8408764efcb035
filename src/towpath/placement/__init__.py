"""Problems, placements, and what makes one valid."""
