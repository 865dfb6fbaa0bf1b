"""`python -m config.openapi` writes docs/openapi.yaml and what the documentation page shows."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


def main() -> None:
    """Write both files anew."""
    django.setup()
    from jobs.api import openapi

    made = openapi.document()
    openapi.YAML.write_text(openapi.as_yaml(made), "utf-8")
    openapi.JSON.parent.mkdir(parents=True, exist_ok=True)
    openapi.JSON.write_text(openapi.as_json(made), "utf-8")


if __name__ == "__main__":
    main()
