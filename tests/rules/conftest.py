"""What a rule says of one small module."""

from collections.abc import Callable
from textwrap import dedent

import pytest

from kvlint.engine.check import check
from kvlint.engine.registry import all_rules
from kvlint.findings import Finding


@pytest.fixture
def found_by(project) -> Callable[[str, str], list[Finding]]:
    """All that the rule of this code finds in a module, whatever becomes of it."""

    def run(code: str, source: str) -> list[Finding]:
        root = project({"pool.py": dedent(source)})
        report = check(root, [root], all_rules())
        assert not report.faults
        return [finding for finding in report.findings if finding.code == code]

    return run
