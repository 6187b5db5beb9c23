"""Tests of elastic training, yours or anybody's, without a GPU (docs/conformance.md).

    from rubato.conformance import check_loop

    def test_loop():
        check_loop(train)     # train(job, phase, state) trains a tiny model and returns its state

Nothing here needs the rest of rubato, or torch. The searches need Hypothesis.
"""

from ._cases import Case, Phase
from ._checks import CHECKS, Check, Violation
from ._job import Job, current_job
from ._ranks import Ranks, Stuck, on_threads
from ._search import NonConforming, Report, check_loop, check_resume, check_sampler
from ._traces import read_trace

__all__ = ["CHECKS", "Case", "Check", "Job", "NonConforming", "Phase", "Ranks", "Report", "Stuck", "Violation", "check_loop",
           "check_resume", "check_sampler", "current_job", "on_threads", "read_trace"]
