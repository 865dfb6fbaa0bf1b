"""The REST API, and the addresses that machines watch."""
