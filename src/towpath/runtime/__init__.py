"""The seams between deciding and doing: carriers of one node, and fragments over many nodes."""
