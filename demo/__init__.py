"""The demonstration: document conversion on real files."""
