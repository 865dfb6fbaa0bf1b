"""How good a provider this one is, from its start to its end."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Modes:
    keys_honoured: bool = True  # else every POST charges again
    fencing: bool = False  # else fencing tokens are read and not compared

    @classmethod
    def read(cls, words: Iterable[str]) -> "Modes":
        """Return the modes of a command line; ValueError with a sentence for a word that is none."""
        keys_honoured, fencing = True, False
        for word in words:
            if word == "fencing":
                fencing = True
            elif word in ("keys=honoured", "keys=ignored"):
                keys_honoured = word == "keys=honoured"
            else:
                raise ValueError(f"{word!r} is no mode: keys=honoured, keys=ignored, fencing.")
        return cls(keys_honoured, fencing)

    def shown(self) -> dict[str, str | bool]:
        return {"keys": "honoured" if self.keys_honoured else "ignored", "fencing": self.fencing}
