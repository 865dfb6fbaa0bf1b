"""The product's settings, and the kinds of work that only the benchmark knows."""

from config.settings import *  # noqa: F403  (a settings module is read as one namespace)
from config.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]
