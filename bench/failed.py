"""The one way in which a measurement ends early."""


class BenchFailed(Exception):
    """Something that is measured did not do what it should; the text is the sentence for people."""
