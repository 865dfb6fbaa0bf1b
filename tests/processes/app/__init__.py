"""Kinds for the process tests: they leave traces in files, which is what an outside world is."""
