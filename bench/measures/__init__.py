"""What is measured: each a function of a ground and a side that returns its figures by name."""
