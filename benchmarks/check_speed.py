"""Times `kvlint check` on whole trees, and on single files, against other tools, in turn.

    python benchmarks/check_speed.py TREE [TREE ...] [--runs 5] [--all] [--tools BIN] [--write FILE]

Every round runs every contender once (A B C, A B C, ...), so that all of them see the same
noise. What is timed is the whole process with its children: wall time, CPU time of user and
system, and the peak memory of the biggest process. A ratio is the median of the rounds'
ratios. Trees are linked into a temporary folder, where one file is changed between calls. The
slow tools of `--all`, and libcst, run once; these and semgrep over all trees together.
"""

import argparse
import datetime
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = (sys.executable, "-P")  # -P: a tree may hold a folder named as a module of ours
KVLINT = (*PYTHON, "-m", "kvlint", "check")
USUAL = ("ruff==0.17.6", "semgrep")
SLOW = ("pylint", "flake8", "flake8-bugbear", "fixit")

# Each is one process that parses every Python file below the working directory.
PARSE = """
import sys, warnings
from pathlib import Path
{name}
warnings.simplefilter("ignore")
for path in Path().rglob("*.py"):
    try:
        {parse}(path.read_bytes())
    except Exception as error:
        print(path, error, file=sys.stderr)
"""
AST = PARSE.format(name="import ast", parse="ast.parse")
LIBCST = PARSE.format(name="import libcst", parse="libcst.parse_module")

# A small call is about a transfer file of this many lines, and a file of this many without
# anything to judge.
CHANGED_LINES, SILENT_LINES = 3500, 500
TRANSFER = (b"register_memory", b"xfer")


@dataclass(frozen=True)
class Sample:
    wall: float  # seconds
    cpu: float  # seconds, user and system
    peak: float  # MiB, of the biggest process


@dataclass
class Contender:
    """A command that is timed; `before` is run, untimed, ahead of each run."""

    name: str
    command: Sequence[str]
    folder: Path
    once: bool = False
    before: Callable[[], None] | None = None
    samples: list[Sample] = field(default_factory=list)

    def run(self) -> None:
        if self.before is not None:
            self.before()
        self.samples.append(timed(self.command, self.folder))

    def median(self, what: str) -> float:
        return statistics.median(getattr(sample, what) for sample in self.samples)

    def ratio(self, other: "Contender") -> float:
        """How many times the wall time of `other` this takes."""
        pairs = zip(self.samples, other.samples, strict=False)  # one may have run but once
        return statistics.median(own.wall / its.wall for own, its in pairs)


def timed(command: Sequence[str], folder: Path) -> Sample:
    """Exits when the command does not end with 0 or 1 (linters: nothing or something found).

    A peak cannot come out lower than our own, which a process has until it becomes another.
    """
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=_ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1, *_BITS.get(Path(command[0]).name, ())):
            errors.seek(0)
            sys.exit(f"{' '.join(command[:6])} failed: {errors.read().decode()[-500:]}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


# Installed tools come compiled, and so must ours be after the first call.
_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
_BITS = {"pylint": range(32)}  # pylint exits with a bit for each kind of message


# -- what is timed


def whole_tree(
    folder: Path, work: Path, tools: Path, *, every: bool, slow: bool
) -> list[Contender]:
    """The contenders on all that lies below `folder`; with `every` semgrep and libcst, too, the
    latter once."""
    ruff = [str(tools / "ruff"), *shlex.split("check --isolated --no-cache --select B905 -q .")]
    semgrep = [
        *(str(tools / "semgrep"), "--config", str(HERE / "zip_without_strict.yml")),
        *shlex.split("--metrics off --disable-version-check --quiet ."),
    ]
    usual = {
        "kvlint, cold": (*KVLINT, "--project", ".", "--no-cache", "."),
        "kvlint, warm": (*KVLINT, "--project", ".", *cache(work, folder), "."),
        "ruff, B905": ruff,
        "ast.parse of all": (*PYTHON, "-c", AST),
    }
    found = [Contender(name, command, folder) for name, command in usual.items()]
    if every:
        found.append(Contender("semgrep, one rule", semgrep, folder))
        parse = (*PYTHON, "-c", LIBCST)
        found.append(Contender("libcst.parse_module of all", parse, folder, once=True))
    if slow:
        files = work / "files.txt"
        files.write_text("\n".join(map(str, sorted(folder.rglob("*.py")))))
        all_of_them = {
            "pylint, one checker": (
                *(str(tools / "pylint"), "--rcfile", os.devnull, "--disable", "all"),
                *shlex.split("--enable unused-import --recursive y ."),
            ),
            "flake8 + bugbear": (str(tools / "flake8"), *shlex.split("--isolated --select B905 .")),
            "fixit, built-in rules": (str(tools / "fixit"), "--quiet", "lint", "."),
        }
        found += [Contender(name, line, folder, True) for name, line in all_of_them.items()]
    return found


def cache(work: Path, folder: Path) -> tuple[str, ...]:
    return ("--cache-dir", str(work / "caches" / folder.parent.name / folder.name))


def small_calls(folder: Path, work: Path) -> list[Contender]:
    """Calls as a commit hook makes them: one file, within its project, with a filled cache."""
    words = triggers()
    changed = nearest(folder, CHANGED_LINES, lambda text: all(word in text for word in TRANSFER))
    silent = nearest(folder, SILENT_LINES, lambda text: not any(word in text for word in words))
    text = changed.read_text()
    alone = work / "alone"
    alone.mkdir()
    shutil.copyfile(silent, alone / silent.name)
    number = iter(range(1_000_000))

    def call(path: Path, root: Path) -> tuple[str, ...]:
        name = str(path.relative_to(root))
        return (*KVLINT, "--project", ".", *cache(work, root), name)

    timed((*KVLINT, "--project", ".", *cache(work, folder), "."), folder)  # fills the cache

    def change() -> None:
        write_anew(changed, with_a_number(text, next(number)))

    return [
        Contender("python, `import click`", (*PYTHON, "-c", "import click"), folder),
        Contender("python, `import libcst`", (*PYTHON, "-c", "import libcst"), folder),
        Contender(f"a changed file, {shown(changed, folder)}", call(changed, folder), folder,
                  before=change),
        Contender(f"no candidate, {shown(silent, folder)}", call(silent, folder), folder),
        Contender("the same file, a project of its own", call(alone / silent.name, alone), alone),
    ]  # fmt: skip


def nearest(folder: Path, lines: int, fits: Callable[[bytes], bool]) -> Path:
    """The fitting file whose number of lines is nearest to `lines`."""
    best: tuple[int, Path] | None = None
    for path in sorted(folder.rglob("*.py")):
        text = path.read_bytes()  # one at a time: see `timed` about our own memory
        distance = abs(text.count(b"\n") - lines)
        if (best is None or distance < best[0]) and fits(text):
            best = distance, path
    return best[1] if best else sys.exit("the first tree has no file for the small calls")


def shown(path: Path, folder: Path) -> str:
    lines = path.read_bytes().count(b"\n")
    return f"`{path.relative_to(folder)}` ({lines:,} lines)"


def triggers() -> list[bytes]:
    from kvlint.analysis import vocabulary

    return [word.encode() for word in vocabulary.triggers()]


def with_a_number(text: str, number: int) -> str:
    """The file with one more statement in a function near its middle."""
    inside = re.compile(r"^( +)return\b", re.M).search(text, len(text) // 2)
    if inside is None:
        sys.exit("the file for the small calls has no function near its end")
    at = inside.start()
    return f"{text[:at]}{inside.group(1)}turn_of_the_benchmark = {number}\n{text[at:]}"


def write_anew(path: Path, text: str) -> None:
    """The file may be a link to the user's own: replace it, never write into it."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)


# -- the table


def rows(contenders: Sequence[Contender]) -> Iterator[str]:
    by_name = {contender.name: contender for contender in contenders}
    ruff, semgrep = by_name.get("ruff, B905"), by_name.get("semgrep, one rule")
    for each in contenders:
        ratios = [f"{each.ratio(other):.2f}" if other else "" for other in (ruff, semgrep)]
        name = f"{each.name} (one run)" if each.once else each.name
        figures = f"{each.median('wall'):.2f} | {each.median('cpu'):.2f}"
        yield f"| {name} | {figures} | {each.median('peak'):.0f} | {' | '.join(ratios)} |"


def table(groups: dict[str, list[Contender]]) -> str:
    head = "wall s | CPU s | peak MiB of one process | x ruff | x semgrep |"
    lines = [f"| | {head}", "|---|---|---|---|---|---|"]
    for title, contenders in groups.items():
        lines += [f"| **{title}** | | | | | |", *rows(contenders)]
    return "\n".join(lines)


def circumstances(tools: Path, trees: Sequence[Path], runs: int, slow: bool) -> str:
    # As anybody can repeat it: where the trees and the tools lie here is nobody's business.
    command = ["python", "benchmarks/check_speed.py", *(tree.name for tree in trees)]
    command += ["--runs", str(runs), *(["--all"] if slow else [])]
    names = ["ruff", "semgrep", *(["pylint", "flake8", "fixit"] if slow else [])]
    versions = [
        f"python {platform.python_version()}",
        f"libcst {metadata.version('libcst')}",
        f"kvlint at {said('git', '-C', str(HERE), 'describe', '--always', '--dirty')}",
        # flake8 and fixit say more than a number
        *(f"{name} {said(str(tools / name), '--version')[:40]}" for name in names),
    ]
    return (
        f"{datetime.date.today()}, {processor()}, {os.cpu_count()} cores; {'; '.join(versions)}.\n"
        f"Medians of {runs}, one interleaved run:\n\n    {shlex.join(command)}"
    )


def said(*command: str) -> str:
    # Off line, semgrep would wait for its makers' word on what is newest.
    quiet = os.environ | {"SEMGREP_ENABLE_VERSION_CHECK": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=quiet)
    return " ".join(done.stdout.split())


def processor() -> str:
    information = Path("/proc/cpuinfo")
    for line in information.read_text().splitlines() if information.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


# -- the run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", type=Path, nargs="+", metavar="TREE")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="pylint, flake8 and fixit, once each")
    parser.add_argument("--tools", type=Path, metavar="BIN", help="where the other tools are")
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the table there, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvlint-speed-") as made:
        work = Path(made)
        tools = options.tools.resolve() if options.tools else install(work, options.all)
        groups = {}
        folders = linked(options.trees, work / "trees")
        for title, folder in folders.items():
            last = folder == [*folders.values()][-1]
            groups[title] = whole_tree(folder, work, tools, every=last, slow=last and options.all)
        single = work / "single" / options.trees[0].name
        shutil.copytree(options.trees[0], single, symlinks=True, copy_function=link)
        groups["single files, cache filled"] = small_calls(single, work)
        contend([each for group in groups.values() for each in group], options.runs)
    text = f"{circumstances(tools, options.trees, options.runs, options.all)}\n\n{table(groups)}\n"
    print(text)
    if options.write:
        options.write.write_text(f"# How long `kvlint check` takes\n\n{text}")


def contend(contenders: Sequence[Contender], runs: int) -> None:
    """One round that counts for nothing (it fills caches), then the rounds."""
    for turn in range(runs + 1):
        for each in contenders:
            if each.once and turn != 1:
                continue
            print(f"{turn}/{runs} {each.folder.name}: {each.name}", file=sys.stderr)
            each.run()
            if turn == 0:
                each.samples.clear()


def linked(trees: Sequence[Path], top: Path) -> dict[str, Path]:
    """Each tree under its name in `top`, and all of them together, if there are several."""
    found = {}
    for tree in trees:
        shutil.copytree(tree, top / tree.name, symlinks=True, copy_function=link)
        # semgrep would leave out tests and the like; here everybody reads everything.
        (top / tree.name / ".semgrepignore").touch()
        found[tree.name] = top / tree.name
    (top / ".semgrepignore").touch()
    if len(trees) > 1:
        found[" + ".join(found)] = top
    return found


def link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def install(work: Path, slow: bool) -> Path:
    """The other tools in an environment of their own."""
    venv.create(work / "tools", with_pip=True)
    tools = work / "tools" / "bin"
    names = (*USUAL, *(SLOW if slow else ()))
    subprocess.run([str(tools / "python"), "-m", "pip", "install", "-q", *names], check=True)
    return tools


if __name__ == "__main__":
    main()
