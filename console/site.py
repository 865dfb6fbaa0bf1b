"""The console's site: an admin site that lists its pages itself."""

from django.contrib.admin import AdminSite
from django.utils.translation import gettext_lazy as _


class ConsoleSite(AdminSite):
    """The admin site at the root of the server."""

    site_title = site_header = _("Interlock")
    index_title = _("Overview")


# Named as the admin's own site is, so that templates and reverse("admin:…") find it.
site = ConsoleSite(name="admin")
