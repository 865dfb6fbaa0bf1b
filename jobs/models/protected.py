"""Rows that only the ledger writes.

A read-modify-save is how two workers both win, so it is refused here rather than hoped against;
the triggers refuse what goes around Python (contract §4, last paragraph).
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from django.db import models

M = TypeVar("M", bound=models.Model)


class LedgerOnly(TypeError):
    """This table is written by the ledger only: use a verb of Job.objects."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class ProtectedQuerySet(models.QuerySet[M]):
    """Reads only: every writing method of a query set raises LedgerOnly."""

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise LedgerOnly

    create = update = delete = bulk_create = bulk_update = _refuse
    get_or_create = update_or_create = acreate = aupdate = adelete = _refuse
    abulk_create = abulk_update = aget_or_create = aupdate_or_create = _refuse
    # The collector deletes through this one; leaving it open would make a parent's delete a back door.
    _raw_delete = _refuse


class Protected(models.Model):
    """Base of the protocol tables: `save` and `delete` raise LedgerOnly."""

    class Meta:
        abstract = True

    def save(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise LedgerOnly

    # What loads fixtures writes rows without calling `save`.
    def _save_table(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise LedgerOnly

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise LedgerOnly
