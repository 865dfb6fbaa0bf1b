"""Figures and charts: from minute rows to what an SVG draws."""

import re
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pytest

from console import charts, figures
from console.pages import overview
from jobs.ledger import worker as worker_rows
from jobs.ledger.session import transact
from jobs.measures import BUCKETS, MORE
from jobs.vocabulary import JOB
from tests import build

pytestmark = pytest.mark.looks_alike

NOW = build.T0 + timedelta(seconds=30)


def write(*rows):
    values = [
        {
            "minute": build.T0 + timedelta(minutes=m),
            "measure": measure,
            "queue": queue,
            "kind": "",
            "bucket": bucket,
        }
        | {"count": n, "total": 0.0}
        for m, measure, queue, bucket, n in rows
    ]
    transact(
        lambda s: worker_rows.add_minutes(s, values),
        using="default",
        vocabulary=JOB,
        now=build.T0,
        durable=False,
        fenced=False,
    )


@pytest.mark.parametrize(
    ("histogram", "share", "seconds"),
    [
        ({}, 0.5, None),
        ({100: 10}, 0.5, 0.075),
        ({100: 10}, 1.0, 0.1),
        ({1: 1, 10_000: 1}, 0.5, 0.001),
        ({1: 95, 10_000: 5}, 0.95, 0.001),
        ({MORE: 3}, 0.5, BUCKETS[-1] / 1000),
    ],
)
def test_percentile_is_read_between_the_bounds_of_a_bucket(histogram, share, seconds):
    found = figures.percentile(histogram, share)
    assert found == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.django_db
def test_flow_adds_up_what_happened_in_its_hour_and_leaves_the_running_minute_out():
    write(
        (-61, figures.COMMITS, "", 0, 1000),
        (-60, figures.COMMITS, "", 0, 5),
        (-1, figures.COMMITS, "", 0, 7),
        (0, figures.COMMITS, "", 0, 1000),
        (-1, figures.LATENCY, "a", 100, 2),
        (-1, figures.LATENCY, "b", 100, 3),
        (-1, "refused.commit.GENERATION", "", 0, 1),
        (-2, "refused.renew.EPOCH", "", 0, 1),
        (-3, figures.CLAIMS, "", 0, 40),
        (-3, figures.EMPTY, "", 0, 4),
        (-3, figures.FAILED, "", 0, 6),
        (-3, figures.LAST_LOST, "a", 0, 1),
        (-3, figures.RETRIES, "", 0, 8),
        (-2, figures.LOST, "a", 0, 2),
        (-3, "something.else", "", 0, 99),
    )
    bins = figures.flow(NOW, hours=1)
    assert len(bins) == 60
    assert [(bins[0].commits, bins[59].commits), sum(b.commits for b in bins)] == [(5, 7), 12]
    assert bins[59].latency == {100: 5}
    assert [
        sum(getattr(b, name) for b in bins)
        for name in ("refused", "claims", "empty", "retries", "failed", "unknown")
    ] == [2, 40, 4, 10, 7, 0]


@pytest.mark.django_db
def test_day_is_sixty_bins_of_twenty_four_minutes():
    write((-24 * 60, figures.COMMITS, "", 0, 3), (-1, figures.COMMITS, "", 0, 4))
    bins = figures.flow(NOW, hours=24)
    assert (len(bins), bins[0].commits, bins[59].commits) == (60, 3, 4)


HOURS = 7 * 24
INDIA = ZoneInfo("Asia/Kolkata")
"""Half an hour beside every hour of UTC."""


@pytest.mark.django_db
@pytest.mark.parametrize("zone", [UTC, INDIA])
def test_week_is_a_bin_for_two_whole_hours_and_leaves_the_running_one_out(zone):
    hour = build.T0.replace(minute=0)
    back = -int((build.T0 - hour) / timedelta(minutes=1))  # the running hour's first minute
    first = back - HOURS * 60
    write(
        (first - 1, figures.COMMITS, "", 0, 1000),
        (first, figures.COMMITS, "", 0, 1),
        (first + 59, figures.COMMITS, "", 0, 2),
        (first + 119, figures.COMMITS, "", 0, 16),
        (first + 120, figures.COMMITS, "", 0, 4),
        (back - 1, figures.COMMITS, "", 0, 8),
        (back, figures.COMMITS, "", 0, 1000),
        (back - 1, figures.LATENCY, "a", 100, 2),
        (back - 60, figures.LATENCY, "b", 100, 3),
        (back - 3, "refused.commit.GENERATION", "", 0, 1),
        (back - 3, "something.else", "", 0, 99),
    )
    write((back - 60, figures.LATENCY, "b", 100, 3))
    bins = figures.flow((build.T0 + timedelta(seconds=30)).astimezone(zone), hours=HOURS)
    assert (len(bins), bins[0].start, bins[-1].start) == (
        HOURS / 2,
        hour - timedelta(days=7),
        hour - timedelta(hours=2),
    )
    assert [bins[0].commits, bins[1].commits, bins[-1].commits] == [19, 4, 8]
    assert sum(part.commits for part in bins) == 31
    assert (bins[-1].latency, bins[-1].refused) == ({100: 8}, 1)


@pytest.mark.django_db
def test_hours_are_no_part_of_what_is_told_by_the_minute():
    write((-1, figures.COMMITS, "", 0, 7), (-1, figures.LATENCY, "a", 100, 2))
    for hours in (1, 24):
        bins = figures.flow(NOW + timedelta(minutes=5), hours=hours)
        assert (sum(part.commits for part in bins), figures.merged(part.latency for part in bins)) == (
            7,
            {100: 2},
        )


@pytest.mark.django_db
@pytest.mark.parametrize("hours", [1, 24, HOURS])
def test_without_a_single_count_every_range_is_drawn_as_empty(hours):
    bins = figures.flow(NOW, hours=hours)
    chart = overview.commits(bins)
    assert (chart.empty, len(chart.times), overview.latency(bins).empty) == (True, 4, True)
    assert overview.events(bins, "unknown", "", "b0").bars == [("b0", [])]
    assert overview.retries(bins).bars == [("b0", []), ("bbad", [])]


def test_marks_of_several_days_name_the_day():
    starts = [NOW - timedelta(hours=n) for n in range(HOURS, 0, -1)]
    said = [tick.text for tick in charts.times(starts, NOW)]
    assert said[0] == (NOW - timedelta(days=7)).strftime("%m-%d %H:%M")
    assert said[-1] == NOW.strftime("%m-%d %H:%M")
    assert charts.times(starts[-24:], NOW)[-1].text == NOW.strftime("%H:%M")


@pytest.mark.django_db
def test_commits_of_a_week_are_told_per_minute():
    write(*((60 * -n, figures.COMMITS, "", 0, 600) for n in range(1, 4)))
    bins = figures.flow(NOW, hours=HOURS)
    assert max(part.commits for part in bins) == 1200
    assert "between 0 and 10" in overview.commits(bins).description


@pytest.mark.django_db
def test_coverage_is_what_was_checked_of_what_was_let_in_point_by_point():
    assert figures.coverage(NOW).share is None
    write(
        (-5, "fence.commit.accepted", "", 0, 90),
        (-5, "fence.commit.checked", "", 0, 100),
        (-5, "fence.renew.accepted", "", 0, 10),
        (-5, "fence.renew.checked", "", 0, 10),
        (-60 * 25, "fence.renew.accepted", "", 0, 10_000),
    )
    covered = figures.coverage(NOW)
    assert (covered.accepted, covered.checked, covered.refused, covered.share) == (100, 100, 10, 100.0)
    write((-4, "fence.stage.accepted", "", 0, 100))
    bypassed = figures.coverage(NOW)
    assert not bypassed.whole
    assert bypassed.share == 50.0


@pytest.mark.parametrize(
    "values",
    [[0.0] * 60, [1.0] * 60, [float(n) for n in range(60)], [1e12] * 60, [0.001] * 60, [None, *[5.0] * 59]],
)
def test_chart_stays_within_its_frame(values):
    top = charts.nice(max((v for v in values if v is not None), default=0))
    numbers = [float(x) for x in re.findall(r"-?\d+\.\d+", charts.line(values, top))]
    assert all(-0.1 <= x <= charts.WIDTH + 0.1 for x in numbers)
    assert len(charts.axis(top, str)) == 3


@pytest.mark.parametrize(
    ("value", "top"), [(0, 2.0), (1, 1.0), (3, 4.0), (7, 8.0), (11, 20.0), (412, 600.0), (0.03, 0.04)]
)
def test_axis_ends_at_a_round_number_above(value, top):
    assert charts.nice(value) == pytest.approx(top)


def test_line_is_broken_where_nothing_was_measured():
    assert charts.line([1.0, None, 1.0, 1.0], 2.0).count("M") == 2


@pytest.mark.django_db
def test_charts_say_in_words_what_they_draw():
    write((-1, figures.COMMITS, "", 0, 60), (-1, figures.LATENCY, "", 1000, 60))
    bins = figures.flow(NOW, hours=1)
    assert "60 commits in all" in overview.commits(bins).description
    assert "within 750 ms" in overview.latency(bins).description
    later = figures.flow(NOW + timedelta(days=9), hours=1)
    empty = overview.latency(later)
    assert (empty.empty, empty.description) == (True, "No job was committed.")
    assert overview.contention(later).empty


@pytest.mark.django_db
def test_contention_is_the_share_of_claims_that_found_nothing_and_is_not_drawn_where_none_was_made():
    write((-9, figures.CLAIMS, "", 0, 30), (-5, figures.CLAIMS, "", 0, 10), (-5, figures.EMPTY, "", 0, 1))
    chart = overview.contention(figures.flow(NOW, hours=1))
    assert (chart.headline, chart.empty) == ("2.5 %", False)
    assert chart.description == "Of 40 claims that a sign of work prompted, 2.5 % found nothing."
    assert chart.lines[0][1].count("M") == 2


@pytest.mark.django_db
@pytest.mark.parametrize("hours", [1, 24, HOURS])
def test_retries_stand_on_the_axis_and_what_failed_for_good_upon_them(hours):
    ago = {1: -1, 24: -1, HOURS: -60 * 3}[hours]
    write((ago, figures.RETRIES, "", 0, 30), (ago, figures.LOST, "q", 0, 8), (ago, figures.FAILED, "", 0, 2))
    chart = overview.retries(figures.flow(NOW, hours=hours))
    assert (chart.headline, chart.note) == ("38", "2 failed for good")
    assert chart.description.startswith(
        "38 attempts failed or lost their lease and their job was tried again;"
    )
    (_, [again]), (_, [last]) = chart.bars
    assert again.y + again.height == pytest.approx(charts.BOTTOM)
    assert last.y + last.height == pytest.approx(again.y)
    assert again.height / last.height == pytest.approx(38 / 2, rel=0.1)
