"""What is remembered: nothing that a change makes doubtful, and never anything but data."""

import os
import pickle
import time
from dataclasses import fields

import pytest

from kvlint.analysis.bodies import Body
from kvlint.engine import cache, facts
from kvlint.engine.cache import TICK, Cache
from kvlint.engine.check import check_files
from kvlint.engine.discover import discover
from kvlint.engine.registry import all_rules
from kvlint.tree import Tree

LIB = """
def slots_of(lens, item_lens):
    return [n // l for n, l in zip(lens, item_lens, strict=True)]


def prepare(agent, kv_ptrs, kv_item_lens, pages, device):
    page_bytes = stride(kv_item_lens)
    blocks = []
    for base_ptr in kv_ptrs:
        for page in pages:
            blocks.append((base_ptr + page * page_bytes, page_bytes, device))
    return agent.get_xfer_descs(blocks, "VRAM")


def stride(kv_item_lens):
    return kv_item_lens[0]
"""
CALLER = """
from lib import prepare


class Sender:
    def __init__(self, kv_ptrs, kv_item_lens):
        self.kv_ptrs, self.kv_item_lens = kv_ptrs, kv_item_lens
        self.kv_item_len = kv_item_lens[0]

    def send(self, agent, pages):
        size = self.kv_item_len
        blocks = [(p + page * size, size, 0) for p in self.kv_ptrs for page in pages]
        return agent.get_xfer_descs(blocks, "VRAM")
"""
OTHER = "num_slots = 1\n"


@pytest.fixture
def tree(project):
    return project({"lib.py": LIB, "caller.py": CALLER, "other.py": OTHER, "plain.py": "x = 1\n"})


@pytest.fixture
def run(tree, monkeypatch):
    """Checks paths of the tree with a cache, and tells what it had to ask about."""

    def check(*paths, cached=True):
        asked = []
        from kvlint.engine import check as engine

        real = engine.unit
        monkeypatch.setattr(
            engine, "unit", lambda p, r, path: asked.append(path) or real(p, r, path)
        )
        files = discover(tree, [tree / path for path in paths] or [tree])
        cache = (lambda: Cache(tree / ".kvlint_cache", tree, all_rules())) if cached else None
        report = check_files(files, all_rules(), cache_at=cache)
        monkeypatch.setattr(engine, "unit", real)
        return report, sorted(asked)

    return check


def age(tree):
    """Let the clock tick: files that were just written prove nothing."""
    old = time.time() - 10 * TICK / 1e9
    for path in tree.glob("*.py"):
        os.utime(path, (old, old))


def same(report, fresh):
    return repr(report) == repr(fresh)


def test_an_unchanged_tree_is_not_asked_about_again(tree, run):
    first, asked = run()
    assert asked == ["caller.py", "lib.py", "other.py"]
    assert first.findings
    again, asked = run()
    assert asked == []
    assert same(again, first)


def test_a_change_costs_the_file_and_what_rests_on_it(tree, run):
    run()
    (tree / "other.py").write_text("xfer = 2\n")
    report, asked = run()
    assert asked == ["other.py"]
    assert same(report, run(cached=False)[0])
    (tree / "lib.py").write_text(LIB.replace("[0]", "[1]"))
    report, asked = run()
    assert "lib.py" in asked
    assert same(report, run(cached=False)[0])


def test_a_guard_that_comes_in_another_file_is_seen(tree, run):
    """The finding lies in a file that did not change."""
    text = CALLER.replace(
        "self.kv_item_len = ", "same_lengths(kv_item_lens)\n        self.kv_item_len = "
    )
    (tree / "caller.py").write_text(text.replace("import prepare", "import prepare, same_lengths"))
    before, _ = run()
    (tree / "lib.py").write_text(
        LIB + "\n\ndef same_lengths(kv_item_lens):\n"
        "    if len(set(kv_item_lens)) != 1:\n        raise ValueError(kv_item_lens)\n"
    )
    after, asked = run()
    assert "caller.py" in asked
    assert same(after, run(cached=False)[0])
    assert before.findings != after.findings


def test_a_file_that_comes_or_goes_changes_what_names_mean(tree, run):
    run()
    (tree / "lib.py").unlink()
    assert same(run()[0], run(cached=False)[0])
    (tree / "lib.py").write_text(LIB)
    assert same(run()[0], run(cached=False)[0])


def test_paths_in_any_order_and_alone_say_the_same(tree, run):
    whole, _ = run(cached=False)
    for paths in (("caller.py",), ("other.py", "lib.py"), ("lib.py",), ()):
        report, _ = run(*paths)
        shown = {f.span.path for f in whole.findings} & set(paths or ("caller.py", "lib.py"))
        assert list(report.findings) == [f for f in whole.findings if f.span.path in shown]


def test_moved_lines_move_the_findings(tree, run):
    before, _ = run()
    (tree / "caller.py").write_text("# one\n# two\n" + CALLER)
    after, asked = run()
    assert "caller.py" in asked
    assert same(after, run(cached=False)[0])
    assert [f.span.line for f in after.findings if f.span.path == "caller.py"] == [
        f.span.line + 2 for f in before.findings if f.span.path == "caller.py"
    ]


def test_a_change_within_one_tick_of_the_clock_is_seen(tree, run):
    run()
    text = (tree / "lib.py").read_text()
    changed = text.replace("kv_item_lens[0]", "kv_item_lens[1]")
    assert len(changed) == len(text)
    (tree / "lib.py").write_text(changed)
    assert same(run()[0], run(cached=False)[0])


def test_a_byte_that_changed_on_disk_is_seen(tree, run):
    first, _ = run()
    (record,) = (tree / ".kvlint_cache").rglob("*.record")
    data = record.read_bytes()
    changed = data.replace(b"KV1", b"KV2")
    assert changed != data
    record.write_bytes(changed)
    assert same(run()[0], first)


@pytest.mark.parametrize(
    "left", [b"", b"nonsense", pickle.dumps({"files": 1})], ids=["no", "bad", "foreign"]
)
def test_a_record_that_is_damaged_costs_only_time(tree, run, left):
    first, _ = run()
    for file in (tree / ".kvlint_cache").rglob("*"):
        if file.is_file() and file.parent != tree / ".kvlint_cache":
            file.write_bytes(left)
    report, asked = run()
    assert asked == ["caller.py", "lib.py", "other.py"]
    assert same(report, first)


class Evil:
    def __reduce__(self):
        return os.mkdir, (f"{os.environ['EVIL']}/made",)


def test_a_record_never_runs_anything(tree, run, tmp_path, monkeypatch):
    monkeypatch.setenv("EVIL", str(tmp_path))
    run()
    for file in (tree / ".kvlint_cache").rglob("*"):
        if file.is_file() and file.parent != tree / ".kvlint_cache":
            file.write_bytes(pickle.dumps(Evil()))
    run()
    assert not (tmp_path / "made").exists()


def test_a_cache_that_cannot_be_written_is_no_error(tree, run):
    first, _ = run(cached=False)
    (tree / ".kvlint_cache").write_text("a file stands in its way")
    assert same(run()[0], first)


def test_the_cache_says_what_it_is(tree, run):
    run()
    folder = tree / ".kvlint_cache"
    assert (
        (folder / "CACHEDIR.TAG")
        .read_text()
        .startswith("Signature: 8a477f597d28d172789f06886806bc55")
    )
    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_file_that_changes_during_the_run_is_not_believed(tree, run, monkeypatch):
    from kvlint.engine import check as engine

    age(tree)
    real = engine.look

    def change(tree_, path):
        if path == "caller.py":
            (tree / "caller.py").write_text(CALLER.replace("[0]", "[1]"))
        return real(tree_, path)

    monkeypatch.setattr(engine, "look", change)
    run()
    monkeypatch.setattr(engine, "look", real)
    assert same(run()[0], run(cached=False)[0])


def test_a_file_that_changed_during_a_run_and_was_restored_is_asked_about_again(
    tree, run, monkeypatch
):
    from kvlint.engine import check as engine

    real = engine.unit

    def change(program, rules, path):
        (tree / "caller.py").write_text(f"# one\n# two\n{CALLER}")
        return real(program, rules, path)

    monkeypatch.setattr(engine, "unit", change)
    run()
    monkeypatch.setattr(engine, "unit", real)
    (tree / "caller.py").write_text(CALLER)
    assert same(run()[0], run(cached=False)[0])


def test_comments_that_changed_during_a_run_and_were_restored_are_read_again(
    tree, run, monkeypatch
):
    """The run before knew the file and had not been asked for it."""
    from kvlint.engine import check as engine

    monkeypatch.setattr(cache, "TICK", -TICK)  # long ago
    run("lib.py")
    real = engine.look

    def change(tree_, path):
        (tree / "plain.py").write_text("x = 1  # kvlint: ignore[KV101] why\n")
        return real(tree_, path)

    monkeypatch.setattr(engine, "look", change)
    run("plain.py")
    monkeypatch.setattr(engine, "look", real)
    (tree / "plain.py").write_text("x = 1\n")
    assert same(run("plain.py")[0], run("plain.py", cached=False)[0])


def test_whether_a_file_can_be_read_is_asked_each_time(tree):
    """Another user may, or the same one after a mount, and the file looks the same."""
    looks = (1, 2, 3, 4)
    record = cache.Record()
    record.update(Tree(tree), ["unreadable.py"], lambda _: looks, lambda _: True)
    assert not record.files["unreadable.py"].looks(looks)


def test_all_that_lowering_finds_out_of_a_body_is_kept():
    """What an analysis works out anew is left behind; a fact that is lost changes answers."""
    made_anew = {"definition", "places", "entries", "quantities", "_known"}
    assert {part.name for part in fields(Body)} - made_anew == set(facts._PARTS)
