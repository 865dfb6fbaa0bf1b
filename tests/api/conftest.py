"""What the tests of the API share."""

import pytest

from jobs import handlers
from jobs.models import ApiToken
from tests.api.caller import EVERY_SCOPE, Api, operator, secret
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


@pytest.fixture
def ops(db):
    """A client whose token may do everything, of somebody who may do so too and has just logged in."""
    return Api(secret(*ApiToken.SCOPES, owner=operator()))
