import pytest

from kvlint.findings import Span


@pytest.mark.parametrize(("line", "column"), [(1, 0), (0, 1), (3, -1)])
def test_a_span_that_does_not_count_from_1_is_refused(line, column):
    with pytest.raises(ValueError, match=rf"^a span counts .* not a\.py:{line}:{column}$"):
        Span("a.py", line, column, line, column + 4)
