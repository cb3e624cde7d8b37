"""The companion armed, as for the tests of its hooks in NIXL."""

from tests.runtime_checks.nixl.conftest import arm

__all__ = ["arm"]
