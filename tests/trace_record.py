"""A pytest plugin: write which test claims which requirement, and how it went, to a file.

pytest -p trace_record --trace-to=FILE; tests/trace.py reads the file.
"""

import json
from pathlib import Path

import pytest

MARKER = "requirement"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--trace-to", type=Path, help="write requirements and results to this file")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--trace-to"):
        config.pluginmanager.register(Recorder(path))


class Recorder:
    """Collects claims at collection time and the worst outcome of each test's phases."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._claims: dict[str, list[str]] = {}
        self._results: dict[str, str] = {}

    # After every other plugin has deselected what it does not want.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            claims = [str(ident) for mark in item.iter_markers(MARKER) for ident in mark.args]
            if claims:
                self._claims[item.nodeid] = claims

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worse = report.when == "call" or report.outcome != "passed"
        if worse and self._results.get(report.nodeid) != "failed":
            self._results[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        found = [
            {"test": test, "claims": claims, "result": self._results.get(test, "not run")}
            for test, claims in self._claims.items()
        ]
        self._path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
