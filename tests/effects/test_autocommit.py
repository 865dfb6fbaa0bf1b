"""A permission to send is final before anything leaves, or nothing leaves."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction

from jobs.handlers import job
from jobs.models import EffectSlot
from tests.effects.outside import Outside, the_job
from tests.worker.running import Running


def by_autocommit() -> None:
    transaction.set_autocommit(False)


def by_block() -> None:
    transaction.atomic().__enter__()


def by_statement() -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("begin", [by_autocommit, by_block, by_statement])
def test_a_handler_in_a_transaction_of_its_own_sends_nothing_and_is_told_why(
    outside: Outside, begin: Any
) -> None:
    outside.kind("idempotent")

    def bill(ctx: Any) -> Any:
        begin()
        return ctx.effect("tests.charge", "charge", outside.payload)

    bill.__qualname__ = "bill-in-a-transaction"
    job("tests.bill", max_attempts=1)(bill).enqueue()
    run = Running(kinds=["tests.bill"], drain=True, concurrency=1)
    run.start()
    assert run.join() == 0
    assert (the_job().status, the_job().error_code) == ("failed", "RUNTIME_HANDLER_EXCEPTION")
    assert not outside.done
    assert not EffectSlot.objects.exists()
