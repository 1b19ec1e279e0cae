"""Random fits end with finite numbers and a certificate that holds, or with a sentence that says why not.

``SKMARGIN_FUZZ_FITS`` sets how many fits there are (``make fuzz``); the default is short and always the same.
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from .cases import cases
from .judge import judge
from .machines import MACHINES

N = int(os.environ.get("SKMARGIN_FUZZ_FITS", "600"))
LONG = "SKMARGIN_FUZZ_FITS" in os.environ
EACH = max(1, N // len(MACHINES))
SETTINGS = settings(
    max_examples=EACH, deadline=None, derandomize=not LONG, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("machine", sorted(MACHINES))
def test_no_false_certificate(machine):
    @SETTINGS
    @given(cases(machine))
    def run(case):
        judge(case)

    run()
