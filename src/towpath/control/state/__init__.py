"""What the controller knows: records, and the lists it looks them up in."""
