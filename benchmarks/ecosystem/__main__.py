"""Compares what is found in pinned releases with what the snapshots beside this file tell.

    python -m benchmarks.ecosystem [--write] [RELEASE ...]

Run in the root of a clone, whose kvlint is asked about the whole tree of each release
(`name==version`; default: all), with nothing configured and every rule. Exits with 1 where a
snapshot differs. `--write` brings the snapshots up to date instead.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.downloads import NoWheelError, unpacked
from benchmarks.ecosystem.snapshot import difference, render, summary
from kvlint.engine.check import check
from kvlint.engine.registry import all_rules

HERE = Path(__file__).parent
RELEASES = (
    "sglang==0.5.21",
    "sglang==0.5.22",
    "sglang==0.5.23",
    "vllm==0.33.0",
    "lmcache==0.5.6",
    "kvbm==1.6.1",
)


def kept(release: str) -> Path:
    return HERE / f"{release.replace('==', '-')}.txt"


def compare(release: str, tree: Path, snapshot: Path, *, write: bool) -> bool:
    """Whether what is found in the tree differs from its snapshot; prints how."""
    old = snapshot.read_text(encoding="utf-8") if snapshot.exists() else ""
    new = render(release, check(tree, [tree], all_rules()), all_rules())
    print(difference(old, new, snapshot.name), end="")
    print(f"{release}: {summary(old, new)}", flush=True)
    if write:
        snapshot.write_text(new, encoding="utf-8")
    return new != old


def main() -> None:
    parser = argparse.ArgumentParser("ecosystem", description=__doc__.partition("\n")[0])
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="default: all of them")
    parser.add_argument("--write", action="store_true", help="bring the snapshots up to date")
    options = parser.parse_args()
    unknown = [release for release in options.releases if release not in RELEASES]
    if unknown:
        parser.error(f"no snapshot of {', '.join(unknown)}; there are {', '.join(RELEASES)}")
    differs = False
    for release in options.releases or RELEASES:
        try:
            tree = unpacked(release)
        except NoWheelError as error:
            print(f"{release}: not compared, {error}", file=sys.stderr)
        except RuntimeError as error:
            sys.exit(str(error))
        else:
            differs |= compare(release, tree, kept(release), write=options.write)
    sys.exit(differs and not options.write)


if __name__ == "__main__":
    main()
