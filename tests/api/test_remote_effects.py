"""Effects over HTTP: what a worker is told to do next, under each policy, whatever went wrong before."""

import uuid

import pytest

from jobs import effect_kinds
from jobs.effect_kinds import NotFound, effect_kind
from jobs.models import Case, EffectSlot, Evidence, Job
from tests.api.worker import Remote, enqueued, status

pytestmark = pytest.mark.django_db
PAYLOAD = {"amount": "12.50", "to": "acme"}


@pytest.fixture
def declare():
    """Registers an effect kind of a policy as this installation knows it."""

    def declare(replay, **more):
        def send(request):
            raise AssertionError("only the remote worker sends")

        kind = effect_kind("tests.far", replay=replay, amount="amount", label="to {to}", **more)(send)
        if replay == "queryable":
            kind.inquire(lambda request: NotFound())
        return kind

    yield declare
    effect_kinds.forget("tests.far")


@pytest.fixture
def remote():
    enqueued()
    return Remote()


def prepare(remote, lease, payload=None, **more):
    body = {"kind": "tests.far", "slot": "charge", "payload": PAYLOAD if payload is None else payload}
    return remote.do(lease, "effects", **(body | more))


def granted(remote, lease):
    """Get the permission to send; returns the effect and the grant's id."""
    grant_id = str(uuid.uuid4())
    answer = prepare(remote, lease, grant_id=grant_id).json()
    assert (answer["word"], answer["next"]["do"]) == ("GRANTED", "send"), answer
    return answer["effect"], grant_id


def lost(remote, lease):
    """Have the lease taken from its holder, and claim the job again."""
    epoch = Job.objects.runtime.current_epoch()
    Job.objects.raise_epoch(expected=epoch, actor="ada", reason="test")
    Job.objects.recover()
    again = Remote("far:2:b")
    return again, again.take()["lease"]


def test_prepare_grant_report_commit_and_every_later_run_gets_the_record(remote, declare):
    declare("queryable")
    lease = remote.take()["lease"]
    bound = prepare(remote, lease).json()
    effect = bound["effect"]
    assert (bound["word"], effect["payload"], effect["fencing_token"]) == ("PREPARED", PAYLOAD, 1)
    grant = {"version": bound["next"]["version"], "grant_id": str(uuid.uuid4())}
    for _ in range(2):  # the answer may be lost, and it is asked for again
        assert remote.effect(effect["id"], "grant", lease, **grant).json()["word"] == "GRANTED"
    assert remote.do(lease, "commit", result=1).json()["reason"] == "EFFECT_UNRESOLVED"
    report = {"status": "committed", "response": {"id": "ch_1"}, "reference": "ch_1"}
    told = remote.effect(effect["id"], "report", lease, grant_id=grant["grant_id"], **report).json()
    assert (told["decided"], told["next"]["do"]) == (True, "use")
    again = prepare(remote, lease).json()
    assert (again["word"], again["effect"]["response"]) == ("RECORDED", {"id": "ch_1"})
    assert remote.do(lease, "commit", result=1).status_code == 200
    assert EffectSlot.objects.get().grants == 1


def test_a_refusal_leaves_the_effect_absent_and_the_same_key_may_be_sent_again(remote, declare):
    declare("queryable")
    lease = remote.take()["lease"]
    effect, grant_id = granted(remote, lease)
    told = remote.effect(effect["id"], "report", lease, grant_id=grant_id, status="absent").json()
    assert (told["effect"]["status"], told["next"]["do"]) == ("absent", "prepare")
    assert granted(remote, lease)[0]["id"] == effect["id"]


def test_an_unknown_answer_is_inquired_before_anything_is_sent_again(remote, declare):
    declare("queryable", settle_after=60)
    lease = remote.take()["lease"]
    effect, grant_id = granted(remote, lease)
    todo = remote.effect(effect["id"], "report", lease, grant_id=grant_id, status="unknown").json()["next"]
    assert todo["do"] == "inquire"
    asked = {"version": todo["version"], "asked_at": todo["asked_at"]}
    missed = remote.effect(effect["id"], "inquired", lease, found=False, **asked).json()
    assert missed["decided"] is False  # it may come yet
    assert (missed["next"]["do"], missed["next"]["seconds"] > 50) == ("wait", True)
    found = {"found": True, "payload": PAYLOAD, "response": {"id": "ch_1"}, "reference": "ch_1"}
    answer = remote.effect(effect["id"], "inquired", lease, **asked, **found).json()
    assert (answer["decided"], answer["next"]["do"]) == (True, "use")
    assert EffectSlot.objects.get().status == "committed"


def test_what_is_found_with_another_payload_is_nobodys_proof(remote, declare):
    declare("queryable", settle_after=0)
    lease = remote.take()["lease"]
    effect, grant_id = granted(remote, lease)
    todo = remote.effect(effect["id"], "report", lease, grant_id=grant_id, status="unknown").json()["next"]
    asked = {"version": todo["version"], "asked_at": todo["asked_at"]}
    answer = remote.effect(effect["id"], "inquired", lease, found=True, payload={"a": 1}, **asked).json()
    assert (answer["decided"], answer["effect"]["status"]) == (False, "unknown")


def test_an_inquiry_of_the_future_proves_nothing(remote, declare):
    declare("queryable", settle_after=3600)
    lease = remote.take()["lease"]
    effect, grant_id = granted(remote, lease)
    todo = remote.effect(effect["id"], "report", lease, grant_id=grant_id, status="unknown").json()["next"]
    asked = {"version": todo["version"], "asked_at": "2999-01-01T00:00:00Z"}
    assert remote.effect(effect["id"], "inquired", lease, found=False, **asked).json()["decided"] is False


@pytest.mark.parametrize(
    ("replay", "do"), [("idempotent", "grant"), ("queryable", "inquire"), ("non_replayable", "uncertain")]
)
def test_the_next_holder_is_told_what_may_be_done_about_an_open_effect(remote, declare, replay, do):
    declare(replay, **({"approval": "never"} if replay == "non_replayable" else {}))
    lease = remote.take()["lease"]
    granted(remote, lease)
    if replay == "non_replayable":
        # Nobody but a person can say: the job is not run again at all.
        Job.objects.raise_epoch(expected=Job.objects.runtime.current_epoch(), actor="ada", reason="test")
        Job.objects.recover()
        assert status(uuid.UUID(lease["job_id"])) == "uncertain"
        return
    again, second = lost(remote, lease)
    answer = prepare(again, second).json()
    assert (answer["word"], answer["next"]["do"]) == ("OPEN", do)
    if do == "grant":
        body = {"version": answer["next"]["version"], "grant_id": str(uuid.uuid4())}
        assert again.effect(answer["effect"]["id"], "grant", second, **body).json()["word"] == "GRANTED"
    else:
        # Somebody asks already.
        assert prepare(again, second).json()["next"]["do"] == "wait"


def test_a_late_report_of_a_lost_lease_is_kept_and_decides_what_is_still_open(remote, declare):
    declare("queryable")
    lease = remote.take()["lease"]
    effect, grant_id = granted(remote, lease)
    _again, second = lost(remote, lease)
    refused = remote.do(lease, "commit", result=1)
    assert (refused.status_code, refused.json()["reason"]) == (409, "EPOCH")
    report = {"status": "committed", "response": 1, "reference": "ch_1"}
    told = remote.effect(effect["id"], "report", lease, grant_id=grant_id, **report)
    assert (told.status_code, told.json()["decided"]) == (200, True)
    other = remote.effect(effect["id"], "report", lease, grant_id=str(uuid.uuid4()), status="absent")
    assert (other.status_code, other.json()["decided"]) == (200, False)
    assert Evidence.objects.filter(source="report").count() == 2
    assert EffectSlot.objects.get().status == "committed"
    # The other worker's effect is nobody else's to report on.
    assert remote.effect(effect["id"], "report", second, grant_id=grant_id, **report).status_code == 403


@pytest.mark.parametrize("other", [{"amount": "99.00", "to": "acme"}, None])
def test_another_payload_for_the_same_key_sends_nothing_and_asks_a_person(remote, declare, other):
    declare("idempotent")
    lease = remote.take()["lease"]
    granted(remote, lease)
    again, second = lost(remote, lease)
    answer = again.do(second, "effects", kind="tests.far", slot="charge", payload=other).json()
    assert (answer["word"], answer["next"]["do"]) == ("CONFLICT", "uncertain")
    body = {"effect_id": answer["next"]["effect_id"], "payload": other}
    assert again.do(second, "uncertain", **body).json()["status"] == "uncertain"
    assert Case.objects.filter(closed_at=None).get().kind == "conflict"
    assert EffectSlot.objects.get().grants == 1


def test_what_needs_approval_is_waited_for_by_its_effect(remote, declare):
    declare("non_replayable", approval="always")
    lease = remote.take()["lease"]
    answer = prepare(remote, lease, grant_id=str(uuid.uuid4())).json()
    assert (answer["word"], answer["next"]["do"]) == ("APPROVAL", "wait")
    body = {"reason": "approval", "effect_id": answer["next"]["effect_id"]}
    assert remote.do(lease, "wait", **body).json()["status"] == "waiting"
    assert Case.objects.get().kind == "approval"


def test_an_effect_of_another_job_or_none_is_not_found(remote, declare):
    declare("queryable")
    lease = remote.take()["lease"]
    effect, grant_id = granted(remote, lease)
    enqueued()
    other = remote.take()["lease"]
    body = {"grant_id": grant_id, "status": "absent"}
    assert remote.effect(effect["id"], "report", other, **body).status_code == 404
    for name in ("x", "0" * 64, "%00"):
        assert remote.effect(name, "report", lease, **body).status_code == 404
    forged = lease | {"attempt_id": str(uuid.uuid4())}
    assert remote.effect(effect["id"], "report", forged, **body).status_code == 400
