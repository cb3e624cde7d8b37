import pytest

from kvlint.engine.globs import Globs


@pytest.mark.parametrize(
    ("pattern", "covered", "others"),
    [
        ("vendor", ["vendor", "vendor/a.py", "x/vendor/y/a.py"], ["vendors/a.py", "a.vendor"]),
        ("*_pb2.py", ["a_pb2.py", "x/y/b_pb2.py"], ["a_pb2.pyi"]),
        ("gen/", ["gen/a.py", "x/gen/a.py"], ["gen", "x/gen"]),
        ("src/gen", ["src/gen/a.py", "src/gen"], ["x/src/gen/a.py"]),
        ("/gen", ["gen/a.py"], ["x/gen/a.py"]),
        ("./gen", ["gen/a.py"], ["x/gen/a.py"]),
        ("/top/gen", ["gen/a.py"], ["x/gen/a.py"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py"]),
        ("src/*", ["src/a.py", "src/x/a.py"], ["src", "a/src/b.py"]),
        ("src/**/gen", ["src/gen/a.py", "src/x/y/gen/a.py"], ["src/xgen/a.py"]),
        ("**/gen/*.py", ["gen/a.py", "x/gen/a.py"], ["gen/x/a.py"]),
        ("src/**", ["src/a.py", "src/x/a.py"], ["src"]),
        ("v?.py", ["v1.py", "x/v2.py"], ["v12.py", "v.py"]),
        ("v[1-3].py", ["v2.py"], ["v4.py"]),
        ("v[!1-3].py", ["v4.py"], ["v2.py"]),
        ("{a,b.c}/x.py", ["a/x.py", "b.c/x.py"], ["bxc/x.py"]),
        ("a,b.py", ["a,b.py"], ["a"]),
        (r"\[a].py", ["[a].py"], ["a.py"]),
        ("[]a].py", ["].py", "a.py"], ["b.py"]),
    ],
)
def test_patterns_mean_what_they_mean_in_gitignore(pattern, covered, others):
    globs = Globs.of([pattern], "/top")
    assert [path for path in covered if not globs.cover(f"/top/{path}")] == []
    assert [path for path in others if globs.cover(f"/top/{path}")] == []


def test_a_bare_name_has_no_place_and_a_path_has_one():
    globs = Globs.of(["name.py", "pkg/a.py"], "/top")
    assert globs.cover("/elsewhere/name.py")
    assert not globs.cover("/elsewhere/pkg/a.py")
    assert not Globs.of(["top"], "/top").cover("/top/a.py")
    assert Globs.of(["pkg/a.py"], "/").cover("/pkg/a.py")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("", "'' names nothing"),
        ("/", "'/' names nothing"),
        ("../a", "'../a' leads out of its folder"),
        ("a[", r"'a\[' is no pattern: \[ without ]"),
        ("[z-a]", "no such set of letters"),
        ("{a", "{ without }"),
        ("{a{b}}", "{ in {"),
        ("a\\", r"\\ at its end"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern, message):
    with pytest.raises(ValueError, match=message):
        Globs.of(["good", pattern], "/top")
