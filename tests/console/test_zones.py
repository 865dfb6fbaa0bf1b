"""The time zone of a person: kept with the account, said beside UTC on facts, and by no row of a list."""

import pytest
from django.urls import reverse

from jobs.models import Job, Preference
from jobs.operations.preferences import zones
from jobs.status import JobStatus
from tests import build
from tests.console import matters
from tests.console.people import log_in

pytestmark = pytest.mark.django_db


def page(client, lease):
    return client.get(reverse("admin:job", args=[build.id_of(lease)])).content.decode()


def test_zone_is_kept_with_the_account_and_holds_after_the_next_log_in(viewer, client, django_user_model):
    lease = build.job(JobStatus.SUCCEEDED)
    assert "local" not in page(viewer, lease).partition('id="job"')[2]
    answer = viewer.post(reverse("admin:preferences"), {"zone": "Europe/Vienna"}, follow=True)
    assert "Times are shown in UTC and in Europe/Vienna." in answer.content.decode()
    assert Preference.objects.get().zone == "Europe/Vienna"
    log_in(client, django_user_model.objects.get(username="viewer-1"))
    for browser in (viewer, client):
        assert "03-01 12:00 UTC, 13:00 local" in page(browser, lease)


def test_day_is_said_where_it_is_another_one_there(viewer):
    lease = build.job(JobStatus.SUCCEEDED)
    viewer.post(reverse("admin:preferences"), {"zone": "Pacific/Auckland"})
    assert "03-01 12:00 UTC, 03-02 01:00 local" in page(viewer, lease)


def test_zone_is_read_once_for_each_session(viewer, django_assert_max_num_queries):
    url = reverse("admin:preferences")
    viewer.get(url)
    with django_assert_max_num_queries(30) as asked:
        viewer.get(url)
    assert not any("jobs_preference" in query["sql"] for query in asked.captured_queries)


def test_one_persons_zone_is_not_anothers(viewer, browse):
    viewer.post(reverse("admin:preferences"), {"zone": "Asia/Kathmandu"})
    other = browse("operator")
    assert "Asia/Kathmandu" not in other.get(reverse("admin:index")).content.decode()


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "x" * 500, "../etc/passwd"])
def test_zone_that_this_machine_does_not_know_is_refused(viewer, zone):
    answer = viewer.post(reverse("admin:preferences"), {"zone": zone}, follow=True)
    assert "This machine knows no time zone" in answer.content.decode()
    assert not Preference.objects.exists()


def test_zone_that_this_machine_knows_no_more_is_none(viewer, django_user_model):
    user = django_user_model.objects.get(username="viewer-1")
    Preference.objects.create(user=user, zone="Mars/Olympus")
    assert viewer.get(reverse("admin:index")).status_code == 200
    session = viewer.session
    session["zone"] = "Mars/Olympus"  # from before this machine's update
    session.save()
    assert viewer.get(reverse("admin:index")).status_code == 200
    assert "Time zone: UTC" in " ".join(viewer.get(reverse("admin:index")).content.decode().split())


def test_rows_of_a_list_say_utc_alone(viewer):
    build.job(JobStatus.SUCCEEDED)
    viewer.post(reverse("admin:preferences"), {"zone": "Europe/Vienna"})
    table = viewer.get(
        reverse("admin:jobs"), headers={"HX-Request": "true", "HX-Target": "table"}
    ).content.decode()
    assert Job.objects.exists()
    assert " local<" not in table


def test_utc_is_the_first_zone_and_one_of_many():
    assert zones()[0] == "UTC"
    assert "Europe/Vienna" in zones()


def test_browsers_own_zone_is_offered_until_one_is_chosen(viewer):
    url = reverse("admin:preferences")
    assert "data-guess-zone" in viewer.get(url).content.decode()
    viewer.post(url, {"zone": "UTC"})
    assert "data-guess-zone" not in viewer.get(url).content.decode()


def test_facts_of_a_case_say_the_persons_own_time_too(viewer):
    case = matters.open_case(sla=3600)
    viewer.post(reverse("admin:preferences"), {"zone": "Europe/Vienna"})
    html = viewer.get(reverse("admin:case", args=[case.pk])).content.decode()
    assert "03-01 12:00 UTC, 13:00 local" in html
    assert "03-01 13:00 UTC, 14:00 local" in html
