"""One sentence for each step: why the runtime answered as it did."""

from django.utils.translation import gettext_noop as mark

REGISTERED = mark("The job is in the table: registered, which is not done.")
CLAIMED = mark("A takes the pending job: generation 1, and a lease of 30 seconds until t=31.")
CLAIMED_AT_ONCE = mark("A takes it at once: generation 1, and a lease of 30 seconds until t=30.")
DONE_FIRST = mark("Generation 1 is current and t=8 lies before t=31: the result counts, the lease ends.")
DUPLICATE = mark("A job that is done is not claimable, so the second delivery runs nothing.")
REOPENED = mark("A is gone; the reopened database still holds the status, the generation and the lease.")
STILL_LEASED = mark("t=30 lies before t=31: the lease keeps the job, whether or not anybody is behind it.")
STILL_LEASED_20 = mark("The lease has 20 seconds to go, so there is nothing for B.")
TAKEN_OVER = mark(
    "At t=31 exactly the lease is over and B takes the job, generation 2; A may still be at work."
)
TAKEN_OVER_30 = mark("At t=30 exactly the lease is over, so B takes the job with generation 2.")
SUPERSEDED = mark("A presents generation 1 and the row says 2: refused, and nothing of B's is touched.")
LATE = mark("A's late result carries generation 1, which is no longer current: refused.")
DONE_SECOND = mark("Generation 2 is current and its lease lives, so the result of the second run counts.")
OVER = mark("The job is done; claiming it again yields nothing.")
ACTED = mark("The outside ledger counts one action; A sees a time-out, which says neither yes nor no.")
SAID_UNKNOWN = mark("Within its lease A records that the outcome is unknown, and gives the lease up.")
UNKNOWN_KEPT = mark("The reopened database still says uncertain: what nobody knows is kept as such.")
UNKNOWN_STAYS = mark("The old lease would be over by now, but an uncertain job is not claimable.")
UNKNOWN_WAITS = mark("Waiting repeats nothing: the outside count stays 1 until somebody settles the matter.")
LOOKED = mark("Somebody looks: the action took place once; the job still waits for a decision.")
DIED_SILENT = mark("A dies before it records anything: the row says running and knows of no outside action.")
NO_EVIDENCE = mark("The lease still keeps the job; it is no evidence of what happened outside.")
TAKEN_BLIND = mark(
    "The lease is over and B may take the job; the table cannot know that the action took place."
)
REPEATED = mark("B acts again and the outside count is 2: no lease prevents this, an effect slot does.")
DONE_TWICE = mark("B's result counts; that the job is done proves nothing about how often it acted outside.")
RENEWED = mark("A microsecond before its end the lease can be renewed: 30 seconds from that instant.")
NOT_RENEWED = mark("At its end it cannot: the owner's verbs need an instant strictly before it.")
NOT_DONE = mark("Nor does a result count at that instant.")
SAME_INSTANT = mark("That very instant belongs to the next claim: there is none that both or neither own.")
