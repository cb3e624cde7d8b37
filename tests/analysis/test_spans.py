import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from kvlint.analysis.spans import places

SOURCE = """
class Pool:
    @property
    def slots(self):  # comment
        if (
            self.lens[0]
            // self.items [ 0 ]
        ) : return [x for x in (1, 2) if x], "é" + f"{self.a!r}"
\tpass_ = 1
""".replace("\tpass_", "    pass_")


def test_every_place_is_the_position_providers():
    module = cst.parse_module(SOURCE)
    ours = places(module)
    theirs = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    expressions = {n: p for n, p in theirs.items() if isinstance(n, cst.BaseExpression)}
    assert len(expressions) > 15
    for node, position in expressions.items():
        start, end = position.start, position.end
        assert ours[id(node)] == (start.line, start.column + 1, end.line, end.column + 1)


def test_a_method_keeps_its_lines_and_columns(program):
    text = "class Pool:\n    def first(self):\n        return self.lens[0]\n"
    one = program(module=text)
    body = one.body(one.outline("module.py").definitions["Pool.first"])
    (returned,) = body.returns
    assert body.at(returned.place) == (3, 16, 3, 28)
