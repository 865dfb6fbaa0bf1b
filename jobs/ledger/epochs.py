"""An instant as seconds since 1970, from the database itself: thousands of rows are ranked without a datetime."""

from __future__ import annotations

from typing import Any

from django.db.models import FloatField, Func


class Epoch(Func):  # type: ignore[misc,unused-ignore]
    """Seconds since 1970 of a column that holds an instant, as a number; NULL stays NULL."""

    output_field = FloatField()
    template = "date_part('epoch', %(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """The same on SQLite, to the millisecond: instants are texts there."""
        template = "((julianday(%(expressions)s) - 2440587.5) * 86400.0)"
        return self.as_sql(compiler, connection, template=template, **context)
