"""Every guarded statement of the ledger, with the cases of its predicates."""

from __future__ import annotations

from tests.matrix.case_statements import CASES
from tests.matrix.claim_statements import CLAIMS
from tests.matrix.cluster_statements import CLUSTER
from tests.matrix.effect_statements import EFFECTS
from tests.matrix.held_statements import HELD
from tests.matrix.inquiry_statements import INQUIRIES
from tests.matrix.people_statements import PEOPLE

STATEMENTS = (*HELD, *CLAIMS, *PEOPLE, *EFFECTS, *INQUIRIES, *CASES, *CLUSTER)
