"""The WSGI application that a web server loads."""

import os

from django.core.wsgi import get_wsgi_application

from config import garbage

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
application = get_wsgi_application()
garbage.settle()
