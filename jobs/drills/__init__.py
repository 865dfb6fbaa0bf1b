"""Drills: the golden traces, run by the real code on a throw-away database (contract §13)."""
