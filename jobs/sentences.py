"""Sentences for people: every refusal and every "why is this job where it is" is a code with parameters.

One catalogue makes the sentences, so that the console, the API and the commands say the same, in the
reader's language.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext_lazy

CATALOGUE: dict[str, Any] = {
    # refusals of a person's verb
    "NOT_FOUND": gettext_noop("There is no job %(job_id)s."),
    "ALREADY_ENDED": gettext_noop("The job has already ended: its status is %(status)s."),
    "SUCCEEDED": gettext_noop("The job has succeeded; its result stands."),
    "NOT_ENDED": gettext_noop("The job has not ended: it is %(status)s."),
    "UNCERTAIN": gettext_noop("The job is uncertain: its open effect must be settled first."),
    "VERSION": gettext_noop(
        "The job has changed since you looked: you saw version %(seen)s, it is at %(found)s."
    ),
    "KEY_CONFLICT": gettext_noop(
        "The unique key %(key)s belongs to job %(job_id)s, which has another input."
    ),
    "KEY_TAKEN": gettext_noop("The unique key %(key)s is held by job %(job_id)s."),
    "KEY_CONTENDED": gettext_noop("The unique key %(key)s changes hands all the time; try again."),
    "PARENT_CANCELLED": gettext_noop("The parent %(parent_id)s is cancelled."),
    "DEADLINE_PASSED": gettext_noop("The job's deadline has passed; give a new one."),
    "EFFECT_ABANDONED": gettext_noop(
        "An effect that may have been sent was abandoned; the job cannot run again."
    ),
    "EFFECT_OPEN": gettext_noop("An effect's outcome is open; the input cannot change before it is settled."),
    "EFFECTS_COMMITTED": gettext_noop("Effects have taken place: say whether to repeat or to keep them."),
    "CONTRADICTION": gettext_noop("Evidence contradicts what was recorded; the case must be closed first."),
    "EPOCH_MOVED": gettext_noop("The epoch is %(found)s, not %(expected)s: somebody raised it first."),
    "WORKER_UNKNOWN": gettext_noop("There is no worker %(worker)s."),
    "WORKER_FENCED": gettext_noop("The worker %(worker)s was fenced already, by %(by)s."),
    "SCHEDULER_HELD": gettext_noop("A transaction holds the scheduler up, so nothing was changed: %(who)s."),
    "NOT_CONFIRMED": gettext_noop("Nothing was changed: it was not confirmed by typing “%(words)s”."),
    "QUEUE_OPEN": gettext_noop("The queue %(queue)s is not paused."),
    "QUEUE_MOVED": gettext_noop("Since you looked, %(by)s has paused the queue %(queue)s anew."),
    "CLAIMS_MOVED": gettext_noop("Since you looked, %(by)s has closed claims or raised the epoch."),
    "TIMELINE_MOVED": gettext_noop(
        "The database is another one than its claims were made in: raise the epoch with a floor first."
    ),
    "DRILL_JUST_BEGUN": gettext_noop("A drill has just been begun; the next one may begin in %(seconds)s s."),
    "USER_UNKNOWN": gettext_noop("There is no user %(user)s."),
    "USER_INACTIVE": gettext_noop("The account of %(user)s is closed."),
    "NOT_PERMITTED": gettext_noop("%(user)s may not do this; it takes the permission %(permission)s."),
    "LOGIN_NOT_RECENT": gettext_noop(
        "This takes a log-in that is at most %(minutes)s minutes old: say once more who you are."
    ),
    "SECOND_FACTOR_WRONG": gettext_noop(
        "This is not the code that your app shows now; it changes every 30 seconds, and each is good once."
    ),
    "SECOND_FACTOR_THERE": gettext_noop("You have a second factor already."),
    "SECOND_FACTOR_NONE": gettext_noop("%(user)s has no second factor."),
    "TOKEN_NAME": gettext_noop("A token's name has 1 to %(limit)s printable characters."),
    "TOKEN_SCOPES": gettext_noop("Give one scope or more, of %(known)s."),
    "TOKEN_QUEUES": gettext_noop("“%(queue)s” is no name of a queue."),
    "TOKEN_DAYS": gettext_noop("A token is good for 1 to %(most)s days."),
    "TOKEN_LACKS": gettext_noop(
        "%(user)s lacks the permission %(permissions)s, which these scopes need: grant it first, or leave "
        "the scope out."
    ),
    "TOKEN_ABOVE": gettext_noop("%(user)s may do more than you; only himself can issue his tokens."),
    "TOKEN_PERSONAL": gettext_noop("A token of the scope %(scope)s is issued by its owner only."),
    "TOKEN_UNKNOWN": gettext_noop("There is no live token %(token)s."),
    "RAISE_NEEDS_SECOND": gettext_noop(
        "Raising the epoch takes two people here: ask for it, and another confirms."
    ),
    "RAISE_NEEDS_NOBODY": gettext_noop("Raising the epoch takes one person here: nobody needs to be asked."),
    "RAISE_ASKED": gettext_noop(
        "%(by)s has asked for a raise already, at %(at)s: confirm or decline that one."
    ),
    "RAISE_UNKNOWN": gettext_noop("Nobody has asked for the raise %(proposal_id)s."),
    "RAISE_DECIDED": gettext_noop(
        "This raise is not to be decided any more: it was answered, or has run out."
    ),
    "REASON_MISSING": gettext_noop("Say why, in your own words."),
    "REASON_TOO_LONG": gettext_noop("A reason has at most %(limit)s characters."),
    # refusals of a mass action
    "PLAN_NOT_FOUND": gettext_noop("There is no plan %(plan_id)s."),
    "PLAN_FILTER_EMPTY": gettext_noop("A plan for all jobs is not made: give a filter, or pick the jobs."),
    "PLAN_EMPTY": gettext_noop("None of these jobs is in a state for it."),
    "PLAN_TOO_LARGE": gettext_noop("More than %(most)s jobs match; narrow the filter."),
    "PLAN_SEARCH_LONG": gettext_noop("Looking for the jobs takes too long; narrow the filter."),
    "PLAN_NOT_TYPED": gettext_noop("Nothing was begun: confirm by typing the number of jobs, %(rows)s."),
    "PLAN_EXPIRED": gettext_noop("The plan has expired at %(at)s; make it anew, on the jobs as they are."),
    "PLAN_STARTED": gettext_noop("The plan was executed already, by %(by)s; it can be executed once."),
    "PLAN_ENDED": gettext_noop("The plan has ended: it is %(state)s."),
    # refusals of a ruling, and what stands against a verdict
    "CASE_NOT_FOUND": gettext_noop("There is no case %(case_id)s."),
    "CASE_CLOSED": gettext_noop("The case is closed (%(how)s) since %(at)s."),
    "CASE_TAKEN": gettext_noop("The case is %(by)s's until %(until)s."),
    "CASE_NOT_YOURS": gettext_noop("The case is not yours to give back."),
    "PARK_PAST": gettext_noop("A case is parked until a time that is still to come."),
    "PARK_FAR": gettext_noop("A case is parked for at most %(days)s days."),
    "PARK_WHY_LONG": gettext_noop("Why it is parked is said in at most %(limit)s characters."),
    "MINUTES": gettext_noop("A case is taken for 1 to %(most)s minutes."),
    "COMMENT_MISSING": gettext_noop("The comment is empty."),
    "COMMENT_TOO_LONG": gettext_noop("A comment has at most %(limit)s characters."),
    "MOVED": gettext_noop("The case has changed since you looked: %(what)s Nothing was written."),
    "MOVED_RULED": gettext_noop("%(by)s ruled %(verdict)s at %(at)s."),
    "MOVED_ASKED": gettext_noop("%(by)s asked for %(verdict)s at %(at)s."),
    "MOVED_COMMENT": gettext_noop("%(by)s commented at %(at)s."),
    "MOVED_EVIDENCE": gettext_noop("%(by)s brought new evidence (%(outcome)s) at %(at)s."),
    "MOVED_CANCEL": gettext_noop("%(by)s asked to cancel the job at %(at)s."),
    "MOVED_MOOT": gettext_noop("the job ended as %(status)s at %(at)s."),
    "MOVED_SLOT": gettext_noop("the effect became %(status)s at %(at)s."),
    "VERDICT_UNKNOWN": gettext_noop("There is no verdict %(verdict)s."),
    "NOT_OFFERED": gettext_noop("%(verdict)s is no ruling on a case of the kind %(kind)s."),
    "REASON_CODE": gettext_noop("For %(verdict)s the reason is one of: %(known)s."),
    "REFERENCE_FORMAT": gettext_noop("The provider's reference does not look like %(pattern)s."),
    "REFERENCE_TOO_LONG": gettext_noop("A reference has at most %(limit)s characters."),
    "RESPONSE_INVALID": gettext_noop("The response is not what can be kept: %(problem)s"),
    "ARGUMENTS_MISSING": gettext_noop("A revision needs the new arguments."),
    "ARGUMENTS_INVALID": gettext_noop("The new arguments are not accepted: %(problem)s"),
    "NOT_UNCERTAIN": gettext_noop("The job is not uncertain any more: its status is %(status)s."),
    "SLOT_STATUS": gettext_noop("The effect is %(status)s; there is nothing to rule on."),
    "EFFECT_EXECUTING": gettext_noop("It is being sent by attempt %(attempt)s; wait for its end."),
    "EFFECT_KIND_UNKNOWN": gettext_noop("The effect kind %(kind)s is not known here any more."),
    "SENDER_RUNNING": gettext_noop("The sender still holds its lease, until %(until)s."),
    "IN_FLIGHT": gettext_noop(
        "What was sent may still be under way until %(until)s, unless you attest that the sender is dead."
    ),
    "IN_FLIGHT_UNKNOWN": gettext_noop(
        "Nobody here knows how long a %(kind)s may be under way; attest that the sender is dead."
    ),
    "NOT_SETTLED": gettext_noop("The provider may still come to know of it until %(until)s."),
    "IN_FLIGHT_AFTER": gettext_noop("That counts from the end of the sender, for %(seconds)s s."),
    "NOT_SETTLED_AFTER": gettext_noop("That counts from the end of the sender, for %(seconds)s s."),
    "KEY_WAS_GRANTED": ngettext_lazy(
        "The key may have been sent (permitted %(grants)s time); it is never bound to another payload.",
        "The key may have been sent (permitted %(grants)s times); it is never bound to another payload.",
        "grants",
    ),
    "APPROVED_ALREADY": gettext_noop("%(by)s approved it; the approval is good until %(until)s."),
    "NOTHING_ASKED": gettext_noop("No approval is asked for at the moment."),
    "ASKED_ALREADY": gettext_noop(
        "%(by)s asked for %(verdict)s at %(at)s; a second person decides that first."
    ),
    "SELF_APPROVAL": gettext_noop("%(user)s asked for it; another person must approve."),
    "SEND_IS_ABANDONED": gettext_noop(
        "A sending is not rejected: rule `abandon`, so that its job learns it."
    ),
    "PROPOSAL_NOT_FOUND": gettext_noop("There is no proposal %(proposal_id)s."),
    "PROPOSAL_EXPIRED": gettext_noop("The proposal has expired at %(at)s; it must be asked for anew."),
    "NOT_INQUIRABLE": gettext_noop("A %(kind)s cannot be asked for at its provider."),
    "INQUIRY_ASKED": gettext_noop("%(by)s asked for an inquiry at %(at)s; no worker has taken it up yet."),
    "ZONE_UNKNOWN": gettext_noop("This machine knows no time zone %(zone)s."),
    "VIEW_NAME": gettext_noop("A saved view needs a name of at most %(most)s characters."),
    "VIEW_QUERY": gettext_noop("The filters of a saved view have at most %(most)s characters."),
    "VIEWS_FULL": gettext_noop("There are %(most)s views of yours already; forget one first."),
    "VIEW_NOT_FOUND": gettext_noop("There is no such view of yours."),
    "COOL_DOWN": gettext_noop("The provider was asked a moment ago; ask again from %(until)s on."),
    # what must hold before a verdict takes effect
    "GUARD_OPEN": gettext_noop("The case is open"),
    "GUARD_PERMITTED": gettext_noop("You hold the permission"),
    "GUARD_ANOTHER": gettext_noop("Somebody else asked for it"),
    "GUARD_UNKNOWN": gettext_noop("Nobody knows the outcome"),
    "GUARD_SENDER_OVER": gettext_noop("The sender’s attempt is over"),
    "GUARD_ATTESTED": gettext_noop("Somebody vouches that the sender is dead"),
    "GUARD_IN_FLIGHT": gettext_noop("%(seconds)s s in flight are over"),
    "GUARD_IN_FLIGHT_KNOWN": gettext_noop("The time in flight is known and over"),
    "GUARD_SETTLED": gettext_noop("Settle-by is past"),
    "GUARD_CONFLICT": gettext_noop("Two payloads stand against each other"),
    "GUARD_NOT_SENDING": gettext_noop("Nobody is sending it"),
    "GUARD_NEVER_SENT": gettext_noop("The key was never sent"),
    "GUARD_KIND_KNOWN": gettext_noop("The effect kind is known here"),
    "GUARD_NO_OPEN_EFFECT": gettext_noop("No effect of the job is open"),
    "GUARD_SENDABLE": gettext_noop("It can still be sent"),
    "GUARD_NOT_APPROVED": gettext_noop("Nobody has approved it yet"),
    "GUARD_ASKED": gettext_noop("Its approval is asked for"),
    "GUARD_AS_ASKED": gettext_noop("The effect is as it was asked about"),
    # what a verdict will do
    "WILL_HAPPENED": gettext_noop(
        "Records that %(what)s took place. Nothing is sent; the job goes on with it."
    ),
    "WILL_DID_NOT_HAPPEN": gettext_noop("Will send %(what)s once more, under the same key %(key)s…"),
    "WILL_ABANDON": gettext_noop("Gives %(what)s up: it is never sent again, and the job fails."),
    "WILL_USE_RECORDED": gettext_noop(
        "Keeps the recorded payload of %(what)s; what the job brought later is ignored."
    ),
    "WILL_REBIND": gettext_noop("Binds the key %(key)s… of %(what)s to the new payload; it was never sent."),
    "WILL_REVISE": gettext_noop("Gives the job a new input; %(what)s gets a new key, this one is closed."),
    "WILL_SEND": gettext_noop("Permits one sending of %(what)s within 24 hours."),
    "WILL_ACKNOWLEDGE": gettext_noop("Closes the contradiction about %(what)s; no record is changed."),
    # why a fenced write was refused
    "RESULT_CONFLICT": gettext_noop("This attempt has committed another result."),
    "EPOCH": gettext_noop("The epoch was raised; this claim is over."),
    "TIMELINE": gettext_noop("The database is another one than this claim was made in."),
    "GENERATION": gettext_noop("A newer claim has taken the job over."),
    "ATTEMPT": gettext_noop("Another attempt holds the job."),
    "OWNER": gettext_noop("Another worker holds the job."),
    "STATUS": gettext_noop("The job is not running any more."),
    "CANCELLED": gettext_noop("A cancel was requested."),
    "STALE_INPUT": gettext_noop("The input was revised."),
    "LEASE_EXPIRED": gettext_noop("The lease has run out."),
    "DEADLINE": gettext_noop("The deadline has passed."),
    "HELD": gettext_noop("The job is on hold."),
    "EFFECT_UNRESOLVED": gettext_noop("An effect's outcome is open."),
    "NOT_STAGED": gettext_noop("No result with this digest was staged."),
    # why a job is where it is
    "WHY_SUCCEEDED": gettext_noop("Committed by generation %(generation)s."),
    "WHY_FAILED": gettext_noop("Failed with %(error_code)s: %(error_message)s"),
    "WHY_FAILED_SPENT": ngettext_lazy(
        "Failed with %(error_code)s, its only attempt used: %(error_message)s",
        "Failed with %(error_code)s, all %(max_attempts)s attempts used: %(error_message)s",
        "max_attempts",
    ),
    "WHY_CANCELLED": gettext_noop("Cancelled by %(by)s."),
    "WHY_SKIPPED": gettext_noop("Skipped with %(error_code)s."),
    "WHY_RUNNING": gettext_noop("Running on %(worker)s, lease until %(until)s."),
    "WHY_CANCEL_REQUESTED": gettext_noop("Cancel requested by %(by)s, still running on %(worker)s."),
    "WHY_EXPIRED": gettext_noop(
        "The lease of %(worker)s has run out; it is taken back at the next recovery pass."
    ),
    "WHY_OLD_EPOCH": gettext_noop(
        "Claimed under epoch %(claimed)s, which was raised to %(epoch)s; it is taken back next."
    ),
    "WHY_UNCERTAIN": ngettext_lazy(
        "The outcome of %(effect)s is unknown; a person must rule.",
        "The outcomes of %(open)s outside effects are unknown, one of them %(effect)s; a person must rule.",
        "open",
    ),
    "WHY_UNCERTAIN_CANCEL": ngettext_lazy(
        "Cancel requested, but the outcome of %(effect)s is unknown; a person must rule.",
        "Cancel requested, but the outcomes of %(open)s outside effects are unknown, one of them %(effect)s; "
        "a person must rule.",
        "open",
    ),
    "WHY_CONFLICT": gettext_noop(
        "Payload conflict: what the job brought for %(effect)s is not what was recorded; a person must rule."
    ),
    "WHY_DEADLINE_PASSED": gettext_noop("Its deadline passed at %(at)s; the next recovery pass ends it."),
    "WHY_HELD": gettext_noop("On hold (%(hold)s) until a person lifts it."),
    "WHY_HELD_BY": gettext_noop("On hold (%(hold)s) since %(at)s by %(by)s: %(reason)s"),
    "WHY_BLOCKED": ngettext_lazy(
        "Waits for %(edges)s predecessor.", "Waits for %(edges)s predecessors.", "edges"
    ),
    "WHY_CLAIMS_CLOSED": gettext_noop("Claims are closed by %(by)s: %(reason)s"),
    "WHY_QUEUE_PAUSED": gettext_noop("Due since %(since)s, queue %(queue)s paused by %(by)s: %(reason)s"),
    "WHY_QUEUE_PAUSED_UNTIL": gettext_noop(
        "Due since %(since)s, queue %(queue)s paused until %(until)s by %(by)s: %(reason)s"
    ),
    "WHY_SCHEDULED": gettext_noop("Scheduled for %(at)s."),
    "WHY_RETRY": gettext_noop("Attempt %(next)s is due at %(at)s after %(error_code)s."),
    "WHY_WAITING": gettext_noop("Waits for %(what)s until %(at)s."),
    "WHY_WAITING_APPROVAL": gettext_noop("Waits for a person's approval of %(effect)s; it has no due time."),
    "WHY_UNKNOWN_KIND": gettext_noop("No live worker knows the kind %(kind)s."),
    "WHY_NO_WORKER": gettext_noop("No live worker serves the queue %(queue)s."),
    "WHY_READY": gettext_noop("Ready since %(since)s, waits for a free worker."),
}


def sentence(code: str, params: Mapping[str, Any]) -> str:
    """Return the catalogue's sentence in the active language; an unknown code is said as it is."""
    text = CATALOGUE.get(code)
    if text is None:
        return code
    shown = {name: _shown(value) for name, value in params.items()}
    try:
        said: str = (_(text) if isinstance(text, str) else text) % shown
    except KeyError:
        return code
    return said


def _shown(value: Any) -> Any:
    return value.strftime("%Y-%m-%d %H:%M:%S UTC") if isinstance(value, datetime) else value
