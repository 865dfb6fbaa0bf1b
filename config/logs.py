"""Builds the logging set-up: one line an event on stderr, as JSON or as text, ours and Django's alike."""

from typing import Any

import structlog

SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    # Only `extra=` of stdlib calls: without this their ids would be lost.
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    structlog.processors.StackInfoRenderer(),
]


def configure(*, style: str, level: str) -> dict[str, Any]:
    """Point structlog at the standard library's loggers and return their dictConfig.

    Both ways of logging end in one formatter, so that a line of a library looks like a line of ours.
    """
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": structlog.stdlib.ProcessorFormatter, **_formatter(style)}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        # Django adds handlers of its own to these; one line an event means ours only.
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # A line for each time a page refreshes itself would bury the transitions; a proxy logs requests.
            "gunicorn.error": {"handlers": [], "level": "WARNING", "propagate": True},
            "gunicorn.access": {"handlers": [], "level": "WARNING", "propagate": True},
            # It tells of each log-in in four lines; a lock-out is a warning.
            "axes": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }


def _formatter(style: str) -> dict[str, Any]:
    if style == "json":
        last = [
            # As text: the structured form would write every local variable, secrets included.
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ]
    else:
        last = [structlog.dev.ConsoleRenderer(colors=False, timestamp_key="at")]
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return {"foreign_pre_chain": SHARED, "processors": [remove, *last]}
