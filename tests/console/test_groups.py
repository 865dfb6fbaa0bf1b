"""The ready-made groups."""

import pytest
from django.contrib.auth.models import Group, Permission

from console import groups

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


def held(name):
    return set(Group.objects.get(name=name).permissions.values_list("codename", flat=True))


def test_groups_hold_what_is_written_and_nothing_else():
    Group.objects.all().delete()
    groups.lay("default")
    assert {group.name: held(group.name) for group in Group.objects.all()} == {
        name: set(codenames) for name, codenames in groups.GROUPS.items()
    }


def test_laying_again_changes_nothing():
    groups.lay("default")
    before = {name: held(name) for name in groups.GROUPS}
    groups.lay("default")
    assert {name: held(name) for name in groups.GROUPS} == before


def test_what_an_installation_added_to_a_group_stays():
    groups.lay("default")
    extra = Permission.objects.get(codename="raise_epoch")
    Group.objects.get(name="viewer").permissions.add(extra)
    groups.lay("default")
    assert "raise_epoch" in held("viewer")


def test_every_permission_of_a_job_is_in_some_group_and_only_looking_in_viewer():
    from jobs.models import Job

    known = {codename for codenames in groups.GROUPS.values() for codename in codenames}
    assert {codename for codename, _ in Job._meta.permissions} <= known
    assert all(
        codename.startswith("view_") and codename != "view_payload" for codename in groups.GROUPS["viewer"]
    )


def test_groups_are_laid_where_permissions_are_not_there_yet():
    Permission.objects.filter(content_type__app_label="jobs").delete()
    Group.objects.all().delete()
    groups.lay("default")
    assert held("admin") == set(groups.GROUPS["admin"])
