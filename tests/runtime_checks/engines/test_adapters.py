"""What arming asks of every adapter, before its engine is there."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kvlint.runtime_checks.engines import ADAPTERS, engine_of
from kvlint.runtime_checks.requiring import check_names

ROOT = Path(__file__).parents[3]


@pytest.fixture(params=ADAPTERS, ids=engine_of)
def adapter(request):
    return import_module(request.param)


def test_lines_are_told_after_modules_that_are_awaited(adapter):
    awaited = ADAPTERS[adapter.__name__]
    assert adapter.STAGES
    assert set(adapter.STAGES) <= set(awaited)
    assert all(name.startswith(f"{engine_of(adapter.__name__)}.") for name in awaited)


def test_hooks_that_every_version_has_may_be_required(adapter):
    assert adapter.SURE
    check_names(adapter.SURE, nixl=True)
    engine = engine_of(adapter.__name__)
    for wrong in (f"{engine}.Some.method", f"{engine}.{adapter.SURE[0].rpartition('.')[2]}"):
        with pytest.raises(ValueError, match="no hook has the name"):
            check_names([wrong], nixl=True)


def test_importing_adapters_imports_no_engine_and_no_torch():
    script = f"""
import sys
from importlib import import_module
for adapter in {list(ADAPTERS)}:
    import_module(adapter)
print({{name.partition(".")[0] for name in sys.modules}} & {{"sglang", "vllm", "torch", "nixl"}})
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "set()\n"
