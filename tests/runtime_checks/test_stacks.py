"""Where a call came from, taken cheaply and told late."""

import gc
import weakref

from kvlint.runtime_checks.stacks import FOLDER, here


def outer(depth=32):
    return inner(depth)


def inner(depth):
    return here(depth=depth)


def test_frames_are_told_with_file_line_and_function_innermost_last():
    *_, caller, called = outer().lines()
    line = inner.__code__.co_firstlineno + 1
    assert called == f"{__file__}:{line} in inner"
    assert caller == f"{__file__}:{line - 4} in outer"


def test_innermost_frames_can_be_left_out():
    def taken():
        return here(skip=1)

    assert taken().lines()[-1].endswith("in test_innermost_frames_can_be_left_out")
    assert here(skip=10_000).lines() == []


def test_only_the_innermost_frames_are_kept():
    assert len(outer(depth=2).frames) == 2


def test_a_call_in_a_loop_is_one_place_and_two_calls_are_two():
    looped = [outer().key for _ in range(2)]
    assert looped[0] == looped[1]
    assert outer().key != outer().key


def test_the_place_is_the_innermost_of_the_program():
    scope: dict[str, object] = {"call": here}
    for file in (f"{FOLDER}x.py", "/v/nixl_cu13/_api.py", "/v/disaggregation/nixl/conn.py"):
        source = "def f(call=call):\n    return call()\n"
        exec(compile(source, file, "exec"), scope)
        scope["call"] = scope["f"]
    stack = scope["call"]()
    assert stack.place() == "/v/disaggregation/nixl/conn.py:2"
    assert not [line for line in stack.lines() if line.startswith(FOLDER)]


def test_a_function_that_has_returned_is_told_and_is_no_place():
    stack = outer()
    after = stack.after(inner)
    assert after.lines() == [*stack.lines(), f"{__file__}:{inner.__code__.co_firstlineno} in inner"]
    assert after.place() == stack.place()
    for library in (len, None, 7, int.from_bytes):
        assert stack.after(library) is stack


def test_no_local_is_kept_alive():
    class Cache:
        pass

    def call():
        held = Cache()
        return here(), weakref.ref(held)

    stack, held = call()
    gc.collect()
    assert stack.frames
    assert held() is None
