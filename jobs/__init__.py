"""The durable job runtime: every table and every operation."""
