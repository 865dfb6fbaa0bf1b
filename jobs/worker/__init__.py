"""The worker: claims jobs, runs their handlers, commits their results."""
