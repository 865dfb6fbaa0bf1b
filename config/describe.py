"""Prints docs/settings.md from the settings file: `python -m config.describe > docs/settings.md`."""

from config import settings

HEAD = """# Settings

Each is read from the environment and, where that has none, from `var/env`, which `make setup` writes. A wrong
value stops the process with a sentence that names it; so does a misspelt `INTERLOCK_…`. Switches are 1 or 0.

| name | default | meaning |
|---|---|---|
"""


def table() -> str:
    """Return the page: every setting in the order in which it is read."""
    rows = []
    for setting in settings.env.declared:
        default = (
            f"`{setting.default}`" if setting.default and setting.default != "required" else setting.default
        )
        rows.append(f"| `{setting.name}` | {default or 'empty'} | {setting.meaning} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(table(), end="")
