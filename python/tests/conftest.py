"""What several tests ask; and skips, which are told as Rust's are: see `crates/testing`."""

import os
import re

import pytest


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


class Skips:
    """Writes skips to the file that `FARPATH_SKIPS` names. One whose need `FARPATH_REQUIRE` has is a failure.

    A reason begins with its need, `[virtual] no kernel is built`; without one, the test lacks a package of Python's.
    """

    def __init__(self):
        self.required = [name.strip() for name in os.environ.get("FARPATH_REQUIRE", "").split(",")]
        self.missing = []

    def pytest_runtest_logreport(self, report):
        self.note(report)

    def pytest_collectreport(self, report):
        self.note(report)

    def note(self, report):
        if not report.skipped:
            return
        _, _, reason = report.longrepr
        need, why = re.fullmatch(r"(?:Skipped: )?(?:\[(\w+)\] )?(.*)", " ".join(reason.split())).groups()
        need = need or "python"
        # A machine that was too busy is never a failure.
        if need in self.required or ("all" in self.required and need != "time"):
            self.missing.append(f"{report.nodeid}: FARPATH_REQUIRE has `{need}`, which is missing: {why}")
        if path := os.environ.get("FARPATH_SKIPS"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{need}\t{report.nodeid}\t{why}\n")

    def pytest_terminal_summary(self, terminalreporter):
        for line in self.missing:
            terminalreporter.write_line(f"FAILED {line}")

    def pytest_sessionfinish(self, session):
        if self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_configure(config):
    config.pluginmanager.register(Skips())
