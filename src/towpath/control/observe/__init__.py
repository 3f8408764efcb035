"""What a running job does, as figures that decisions are made from."""
