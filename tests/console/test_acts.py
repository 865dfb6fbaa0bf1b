"""Operations from the console: offered where legal, refused where the world moved, told truthfully."""

import html
import re
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from console import moves
from jobs import audit
from jobs.ledger.clock import clock
from jobs.models import AuditEntry, EffectSlot, Job, Queue, Scheduler
from jobs.models.audit import Source
from jobs.operations import jobwork
from jobs.outcomes import Refused
from jobs.status import JobStatus
from jobs.verbs import audited
from tests import build
from tests.console import matters

pytestmark = [pytest.mark.django_db, pytest.mark.looks_alike]


@pytest.fixture
def operator(browse):
    return browse("operator")


@pytest.fixture
def admin(browse):
    return browse("admin")


def text_of(answer):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))


def found(pattern, page):
    """Return the first group of what must be there."""
    match = re.search(pattern, page, re.DOTALL)
    assert match
    return match[1]


def act(client, name, job_id, follow=False, **sent):
    version = Job.objects.get(pk=job_id).state_version
    data = {"version": version, "reason": "my own words", **sent}
    return client.post(reverse(f"admin:job-{name}", args=[job_id]), data, follow=follow)


def forget_log_in(client):
    """The person logged in long ago."""
    session = client.session
    session["proved_at"] = 1
    session.save()


def test_every_button_is_for_what_would_be_accepted_and_changes_something(django_user_model):
    user = django_user_model.objects.create_superuser("root")
    cases = [(status, False) for status in JobStatus] + [(JobStatus.PENDING, True), (JobStatus.FAILED, True)]
    for status, held in cases:
        job = Job.objects.get(pk=build.id_of(build.job(status, held=held)))
        offered = moves.by_people(job)
        for verb in ("cancel", "force_cancel", "retry", "revise", "hold", "unhold"):
            more: dict[str, Any] = {"arguments": {}} if verb == "revise" else {}
            with build.undone():
                try:
                    getattr(jobwork, verb)(
                        job.id, actor=user, reason="r", seen_version=job.state_version, **more
                    )
                except Refused:
                    pass
                changed = Job.objects.get(pk=job.id).state_version != job.state_version
            # A force cancel of what nobody runs is legal, and a plain one does the same.
            assert changed == (verb in offered) or verb == "force_cancel", (status, held, verb)
            assert changed or verb not in offered


def test_viewer_sees_no_button_and_an_operator_those_of_the_status(viewer, operator):
    job_id = build.enqueue()
    url = reverse("admin:job", args=[job_id])
    assert 'id="acts"' not in viewer.get(url).content.decode()
    shown = found(r'id="acts">(.*?)</div>', operator.get(url).content.decode())
    names = re.findall(r"/jobs/[^/]+/([a-z-]+)/", shown)
    assert names == ["hold", "revise", "cancel"]


def test_force_cancel_asks_who_this_is_and_says_what_became_of_it(operator, django_user_model):
    from axes.models import AccessAttempt

    user = django_user_model.objects.get(username="operator-1")
    user.set_password("a password")
    user.save()
    operator.force_login(user)
    lease = build.running()
    build.effect(lease, status="executing")
    job_id = build.id_of(lease)
    forget_log_in(operator)
    url = reverse("admin:job-force-cancel", args=[job_id])
    page = text_of(operator.get(url))
    assert "Its code may still be running" in page
    assert "1 outside effect is open" in page
    assert "asks once more who you are" in page

    asked = act(operator, "force-cancel", job_id)
    assert "Say once more who you are" in text_of(asked)
    sent = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', asked.content.decode()))
    sent.pop("csrfmiddlewaretoken", None)
    assert sent["reason"] == "my own words"
    wrong = operator.post(url, {**sent, "password": "wrong"})
    assert "This is not your password" in text_of(wrong)
    kept = AccessAttempt.objects.get()
    assert "wrong" not in kept.post_data + kept.get_data
    assert "my own words" not in kept.post_data
    again = operator.post(url, {**sent, "password": "a password"})
    assert "my own words" in again.content.decode()
    assert Job.objects.get(pk=job_id).status == "running"

    done = act(operator, "force-cancel", job_id, follow=True)
    assert "It is uncertain, not cancelled" in text_of(done)
    assert Job.objects.get(pk=job_id).status == "uncertain"
    assert EffectSlot.objects.get(job_id=job_id).status == "unknown"
    entry = AuditEntry.objects.latest("seq")
    assert (entry.action, entry.source, entry.user) == ("force_cancel", "console", "operator-1")
    assert "Open the case" in text_of(done)


def test_stale_form_writes_nothing_and_says_what_changed_by_whom(operator):
    job_id = build.enqueue()
    seen = Job.objects.get(pk=job_id).state_version
    Job.objects.hold(job_id, actor="someone else", reason="wait for me")
    answer = act(operator, "cancel", job_id, version=seen, reason="the words I typed")
    page = text_of(answer)
    assert answer.status_code == 409
    assert "Nothing was written" in page
    assert re.search(r"someone else put it on hold at \d\d:\d\d:\d\d", page)
    assert "the words I typed" in page
    job = Job.objects.get(pk=job_id)
    assert job.status == "pending"
    assert f'name="version" value="{job.state_version}"' in answer.content.decode()


def test_form_for_what_has_ended_meanwhile_comes_back_without_a_button(operator):
    lease = build.running()
    job_id = build.id_of(lease)
    seen = Job.objects.get(pk=job_id).state_version
    assert Job.objects.commit(lease, {}, now=build.at(1)).landed
    answer = act(operator, "cancel", job_id, version=seen)
    assert answer.status_code == 409
    assert "The job has already ended: its status is succeeded" in text_of(answer)
    assert '<button class="button danger"' not in answer.content.decode()


def test_cancel_of_a_running_job_is_told_as_asked_for_not_as_done(operator):
    job_id = build.id_of(build.running())
    page = text_of(act(operator, "cancel", job_id, follow=True))
    assert "It is not cancelled yet" in page
    assert "asked for a cancel" in page


def test_input_is_revised_as_json_and_a_secret_never_reaches_the_form(operator):
    job_id = build.enqueue({"n": 1, "card": {"password": "hunter2"}})
    url = reverse("admin:job-revise", args=[job_id])
    page = operator.get(url).content.decode()
    assert "hunter2" not in page
    assert "type all of it anew" in page
    broken = act(operator, "revise", job_id, arguments='{"n": 2')
    assert broken.status_code == 400
    assert "This cannot be read: not JSON: line" in text_of(broken)
    assert act(operator, "revise", job_id, arguments='{"n": 2}').status_code == 302
    assert Job.objects.get(pk=job_id).input == '{"n":2}'
    assert '"n": 2' in html.unescape(operator.get(url).content.decode())


def test_queue_is_paused_until_a_time_and_resumed_with_a_reason(operator):
    url = reverse("admin:queue-pause") + "?queue=mail"
    sent = {"queue": "mail", "reason": "provider is down", "length": "until", "until": ""}
    assert "Say the time until which" in text_of(operator.post(url, sent))
    past = operator.post(url, sent | {"until": "2001-01-02T03:04"})
    assert "an instant that is still to come" in text_of(past)
    assert not Queue.objects.filter(paused_at__isnull=False).exists()
    page = text_of(operator.post(url, sent | {"until": "2999-01-02T03:04"}, follow=True))
    assert "Queue mail is paused until 2999-01-02 03:04 UTC" in page
    paused = Queue.objects.filter(paused_by="operator-1", paused_until="2999-01-02T03:04:00Z")
    assert paused.get().name == "mail"
    url = reverse("admin:queue-resume") + "?queue=mail"
    page = operator.get(url)
    assert "provider is down" in text_of(page)
    sent = {"queue": "mail", "reason": "it is up", "seen": _seen(page)}
    Job.objects.pause_queue("mail", actor="another", reason="no, wait")
    stale = operator.post(url, sent)
    assert stale.status_code == 409
    assert "another has paused the queue mail anew" in text_of(stale)
    assert "no, wait" in text_of(stale)
    assert "it is up" in text_of(stale)
    done = operator.post(url, sent | {"seen": _seen(stale)}, follow=True)
    assert "is open again" in text_of(done)
    assert "The queue is open" in text_of(operator.get(url))


def test_hidden_input_is_revealed_once_with_a_reason_to_who_may_see_it(browse):
    job_id = build.enqueue({"n": 1, "card": {"password": "hunter2"}})
    job, url = reverse("admin:job", args=[job_id]), reverse("admin:job-reveal", args=[job_id])
    assert url not in browse("viewer").get(job).content.decode()
    assert browse("viewer").get(url).status_code == 403
    client = browse("adjudicator")
    assert url in client.get(job).content.decode()
    assert "hunter2" not in client.get(url).content.decode()
    assert client.post(url, {"reason": " "}).status_code == 400
    assert not AuditEntry.objects.exists()
    shown = client.post(url, {"reason": "the customer disputes it"})
    assert "hunter2" in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    assert "hunter2" not in client.get(url).content.decode()
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.object_id) == ("reveal", str(job_id))
    assert entry.reason == "the customer disputes it"


def test_paused_queue_is_listed_with_its_depth_however_many_queues_there_are(viewer, monkeypatch):
    from console.pages import queues

    monkeypatch.setattr(queues, "SHOWN", 3)
    for name in ("a", "b", "c", "d", "zz", "zz"):
        build.enqueue(queue=name)
    Job.objects.pause_queue("zz", actor="ann", reason="r")
    page = text_of(viewer.get(reverse("admin:queues")))
    assert re.search(r"zz paused .*?by ann.*? 2 ", page)
    assert "Only the first 3 queues are shown" in page


def test_pause_until_a_time_that_has_passed_is_refused_at_its_field(operator):
    url = reverse("admin:queue-pause") + "?queue=mail"
    sent = {"queue": "mail", "reason": "my clock is another", "length": "until", "until": "2001-01-02T03:04"}
    answer = operator.post(url, sent)
    assert answer.status_code == 400
    assert "an instant that is still to come" in text_of(answer)
    assert "my clock is another" in text_of(answer)
    assert not Queue.objects.exists()


def _seen(page):
    """Return what the page's form says that was seen."""
    return found(r'name="seen" value="([^"]*)"', page.content.decode())


def test_pause_of_another_that_was_not_seen_is_not_replaced(operator):
    url = reverse("admin:queue-pause") + "?queue=mail"
    sent = {"queue": "mail", "seen": "", "reason": "a short maintenance", "length": "15"}
    Job.objects.pause_queue("mail", actor="ann", reason="till I have looked")
    refused = operator.post(url, sent)
    assert refused.status_code == 409
    assert "ann has paused the queue mail anew" in text_of(refused)
    assert "till I have looked" in text_of(refused)
    assert "a short maintenance" in text_of(refused)
    assert Queue.objects.get().paused_until is None
    Job.objects.pause_queue("mail", actor="ann", reason="longer than I thought")
    again = operator.post(url, sent | {"seen": _seen(refused)})
    assert again.status_code == 409
    assert "longer than I thought" in text_of(again)
    assert operator.post(url, sent | {"seen": _seen(again)}).status_code == 302
    assert Queue.objects.get().paused_by == "operator-1"


def test_claims_that_another_closed_since_are_not_opened(admin):
    url = reverse("admin:claims-open")
    Job.objects.close_claims(actor="ann", reason="release")
    seen = _seen(admin.get(url))
    Job.objects.open_claims(actor="ann", reason="released")
    Job.objects.close_claims(actor="bob", reason="it loses money")
    refused = admin.post(url, {"seen": seen, "reason": "the release is over"})
    assert refused.status_code == 409
    assert "Since you looked, bob has closed claims" in text_of(refused)
    assert "it loses money" in text_of(refused)
    assert not Scheduler.objects.get().claims_open
    assert admin.post(url, {"seen": _seen(refused), "reason": "he agrees"}).status_code == 302
    assert Scheduler.objects.get().claims_open


def test_worker_that_no_database_could_name_is_not_found(operator):
    sent = {"worker": "a\0b", "reason": "my own words"}
    assert operator.post(reverse("admin:worker-fence"), sent).status_code == 404


def test_worker_is_fenced_after_its_price_was_told(operator):
    lease = build.running(now=clock())
    build.effect(lease, status="executing", amount="42.00", currency="EUR")
    worker = Job.objects.get(pk=build.id_of(lease)).worker_id
    build.register(worker)
    url = reverse("admin:worker-fence") + f"?worker={worker}"
    page = text_of(operator.get(url))
    assert re.search(r"Attempts lost 1 .*Effects that become unknown 1 .*42.00 EUR", page)
    done = operator.post(url, {"worker": worker, "reason": "it hangs"}, follow=True)
    assert "is fenced; 1 lease was ended" in text_of(done)
    assert "operator-1 fenced it" in text_of(operator.get(url))


def test_epoch_is_raised_by_typed_words_only_and_not_by_one_who_saw_another(admin):
    lease = build.running()
    build.effect(lease, status="executing", amount="42.00", currency="EUR")
    epoch = Scheduler.objects.get().epoch
    url = reverse("admin:epoch-raise")
    page = text_of(admin.get(url))
    assert re.search(
        r"Workers fenced 1 Attempts lost 1 Effects that become unknown 1 Amount at risk 42.00 EUR", page
    )
    assert "Would less do?" in page
    place = found(r"raise \d+ in (\w+)", page)
    sent = {"epoch": epoch, "reason": "two owners", "typed": f"raise {epoch} in MOON"}
    assert admin.post(url, sent).status_code == 400
    build.raise_epoch()
    stale = admin.post(url, sent | {"typed": f"raise {epoch} in {place}"})
    assert stale.status_code == 409
    assert "somebody raised it first" in text_of(stale)
    assert "two owners" in text_of(stale)
    sent |= {"epoch": epoch + 1, "typed": f"raise {epoch + 1} in {place}", "close_claims": "on"}
    done = text_of(admin.post(url, sent, follow=True))
    assert f"Epoch {epoch + 2} rules" in done
    assert "Leases not yet taken back 1" in done
    assert not Scheduler.objects.get().claims_open


def test_drain_says_what_the_command_says(admin, viewer):
    from jobs.operations import drain

    url = reverse("admin:drain")
    lease = build.running()
    page = text_of(viewer.get(url))
    assert drain.look().verdict == "BLOCKED"
    assert "BLOCKED" in page
    assert "Close claims" not in page.replace("Close claims, so", "")
    admin.post(reverse("admin:claims-close") + "?from=drain", {"reason": "release"}, follow=True)
    assert re.search(r"WAIT 1 of 9 checks", text_of(viewer.get(url)))
    assert Job.objects.commit(lease, {}, now=build.at(1)).landed
    assert "SAFE Everything is at zero" in text_of(viewer.get(url))


def test_drain_says_why_claims_are_closed_and_what_the_workers_run(admin, viewer):
    from tests.commands.test_drain import beating, two_versions

    url = reverse("admin:drain")
    assert "Workers of another version" in text_of(viewer.get(url))
    two_versions()
    beating("host:3:c", "8.4.1", started_at=build.T0)
    admin.post(reverse("admin:claims-close") + "?from=drain", {"reason": "release 41"}, follow=True)
    answer = viewer.get(url)
    page = text_of(answer)
    assert re.search(r"claims closed by admin-1 \d+ s ago: release 41", page)
    assert "2 of 3 are 8.4.1." in page
    assert "host:2 another version 8.4.0" in page
    assert 'href="?version=8.4.0"' in answer.content.decode()
    assert "1 of 3 are 8.4.0." in text_of(viewer.get(url + "?version=8.4.0"))


def test_drain_names_who_has_a_case_only_while_he_has_it(viewer):
    case = matters.open_case()
    matters.alter(case, owner="ada", owned_until=clock() + timedelta(minutes=5))
    assert "ada has the case" in text_of(viewer.get(reverse("admin:drain")))
    matters.alter(case, owned_until=clock() - timedelta(seconds=1))
    assert "nobody has taken the case" in text_of(viewer.get(reverse("admin:drain")))


def test_audit_shows_what_changed_page_by_page_and_marks_what_was_tampered_with(operator, viewer):
    from console.pages import audit

    job_id = build.enqueue()
    for n in range(3):
        Job.objects.hold(job_id, actor=f"person-{n}", reason=f"reason {n}")
        Job.objects.unhold(job_id, actor=f"person-{n}", reason="done")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit, "SIZE", 4)
        page = viewer.get(reverse("admin:audit"), {"object_type": "job", "object_id": str(job_id)})
        older = html.unescape(found(r'href="(\?[^"]*before=\d+)"', page.content.decode()))
        rest = text_of(viewer.get(reverse("admin:audit") + older))
    assert "person-2 lifted the hold done" in text_of(page)
    assert "reason 0" in rest
    assert "person-2" not in rest
    assert re.search(r"<dt>hold_reason</dt><dd><del>operator</del> *</dd>", page.content.decode())
    assert "is not the seal" not in text_of(page)
    assert text_of(viewer.get(reverse("admin:audit"), {"actor": "nobody"})).count("No entry matches") == 1
    with build.unguarded():
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_auditentry SET reason = 'another' WHERE reason = 'reason 1'")
    assert "its seal is not the seal of this" in text_of(viewer.get(reverse("admin:audit")))


def test_audit_shows_the_digest_of_what_a_person_was_shown_short_and_whole_on_hovering(viewer):
    job_id = build.enqueue()
    digest = "5d02" + "0" * 56 + "a9e1"
    with audit.through(Source.CONSOLE, snapshot=digest):
        Job.objects.hold(job_id, actor="ann", reason="seen")
    Job.objects.unhold(job_id, actor="ann", reason="not shown anything")
    page = viewer.get(reverse("admin:audit"))
    assert text_of(page).count("evidence 5d0200…a9e1") == 1
    assert f'title="{digest}: the digest of what the person was shown"' in page.content.decode()


@pytest.mark.parametrize("typed", ["2026-02-30T25:00:00+00:00", "٢٠٢٦-01-01T00:00:00+00:00"])
def test_audit_shows_what_only_looks_like_an_instant(viewer, typed):
    audited.append(
        "default", "issue_token", "token", 1, actor="ann", reason="r", before=None, after={"name": typed}
    )
    answer = viewer.get(reverse("admin:audit"))
    assert answer.status_code == 200
    assert typed in text_of(answer)
    assert typed in b"".join(viewer.get(reverse("admin:audit-export"))).decode()


@pytest.mark.parametrize(
    ("query", "name"),
    [("actr=ann", "actr"), ("actor=ann&actor=bob", "actor"), ("before=x", "before"), ("before=-1", "before")],
)
def test_filter_of_the_audit_that_cannot_be_applied_is_named_and_nothing_is_listed(viewer, query, name):
    Job.objects.hold(build.enqueue(), actor="ann", reason="nobody reads this")
    url = reverse("admin:audit") + "?" + query
    for headers in ({}, {"HX-Request": "true", "HX-Target": "table"}):
        answer = viewer.get(url, headers=headers)
        assert answer.status_code == 400
        assert f"<code>{name}</code>" in answer.content.decode()
        assert "nobody reads this" not in text_of(answer)
    assert viewer.get(reverse("admin:audit-export") + "?" + query).url == url
    assert viewer.get(reverse("admin:audit") + "?actor=ann&action=&object_id=").status_code == 200


def test_guessed_password_locks_the_name_out_and_the_page_says_until_when(
    client, django_user_model, settings
):
    django_user_model.objects.create_user("ada", password="right", is_staff=True)
    url = reverse("admin:login")
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        assert client.post(url, {"username": "ada", "password": "no"}).status_code == 200
    for password in ("no", "right"):
        answer = client.post(url, {"username": "ada", "password": password})
        assert answer.status_code == 429
        assert re.search(r"It opens by itself: in (15|14) min", text_of(answer))
        assert 0 < int(answer["Retry-After"]) <= 900
    django_user_model.objects.create_user("bob", password="right", is_staff=True)
    assert client.post(url, {"username": "bob", "password": "right"}).status_code == 302


def test_audit_says_what_was_done_to_plans_and_tokens_in_words(admin, viewer, django_user_model):
    from jobs.models.plan import PlanAction
    from jobs.operations import plans, tokens

    person = django_user_model.objects.get(username="admin-1")
    build.enqueue()
    for end in (plans.abort, plans.begin):
        end(
            plans.prepare(
                PlanAction.HOLD, Job.objects.all(), actor=person, reason="r", filters=[("q", "")]
            ).id,
            actor=person,
        )
    given = {"actor": person, "reason": "r"}
    token, _secret = tokens.issue("ci", owner=person, scopes=["ops"], **given)
    tokens.revoke(token.pk, **given)
    page = text_of(viewer.get(reverse("admin:audit")))
    for action in ("planned", "executed", "stopped"):
        assert f"{action} a mass action" in page
    assert "issued an API token" in page
    assert "revoked an API token" in page
    assert not re.search(r"\b[a-z]+_(plan|token)\b", page)
