import pytest

from kvlint.rule import parse_documentation

TEXT = """Regions have one slot count.

    More, indented.

    ## What it assumes
    That n is
    the same.

    ## Example
    ## References
    - a link
    """


def test_a_docstring_is_a_summary_and_sections():
    parsed = parse_documentation(TEXT)
    assert parsed.summary == "Regions have one slot count."
    assert dict(parsed.sections) == {
        "What it assumes": "That n is\nthe same.",
        "Example": "",
        "References": "- a link",
    }


def test_without_headings_there_is_a_summary_only():
    assert parse_documentation("One\nsentence.").summary == "One sentence."
    assert parse_documentation("").summary == ""


def test_a_heading_that_occurs_twice_is_refused():
    with pytest.raises(ValueError, match="'Example' occurs twice"):
        parse_documentation("A.\n\n## Example\n\n## Example\n")
