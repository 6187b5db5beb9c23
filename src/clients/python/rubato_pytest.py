"""The pytest plug-in of rubato.conformance: --rubato-traces, --rubato-cases, and reports that fit a screen."""

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("rubato", "elastic training (rubato.conformance)")
    group.addoption("--rubato-traces", metavar="FILE", help="take the ranks of all cases from parts of this trace (CSV: step,batchsize[,cores])")
    group.addoption("--rubato-cases", metavar="N", type=int, help="try N cases in each check_sampler() and check_loop()")


def pytest_configure(config):
    file, cases = config.getoption("--rubato-traces"), config.getoption("--rubato-cases")
    if file is None and cases is None:
        return
    from rubato.conformance import _search, read_trace

    try:
        _search.DEFAULTS.update(trace=file and read_trace(file), cases=cases)
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--rubato-traces: {error}") from None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call):
    outcome = yield
    report = getattr(call.excinfo and call.excinfo.value, "report", None)
    if report is not None and type(call.excinfo.value).__name__ == "NonConforming":
        # The lines of the search say nothing about the code under test.
        outcome.get_result().longrepr = str(report)
