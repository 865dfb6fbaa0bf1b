"""How fast the console's pages are over a large ledger (`python -m bench.console`, docs/benchmarks.md)."""
