"""What the tests of the API share."""

import pytest

from jobs import handlers
from tests.api.caller import EVERY_SCOPE, Api, secret
from tests.build import KIND


@pytest.fixture(autouse=True)
def _known_kind():
    """A kind that this installation knows; its argument `hidden` is not for people's eyes."""

    @handlers.job(KIND, queue="default", redact=["hidden"])
    def known(**arguments):
        pass


@pytest.fixture
def api(db):
    """A client whose token may do everything that the API has."""
    return Api(secret(*EVERY_SCOPE))
