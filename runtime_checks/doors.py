"""What SGLang and vLLM call in each of their processes: the plug-ins that this distribution names
under `sglang.srt.plugins` and `vllm.general_plugins`.

Engines import this module whether kvlint is armed or not, so it imports next to nothing. SGLang
only logs what a plug-in raises, and goes on; vLLM lets it end the worker. So nothing is raised
here but SystemExit(78), which both let through, where KVLINT_REQUIRE is set.
"""

import os
import sys

from kvlint.runtime_checks import arm_from_environment


def sglang() -> None:
    """For SGLang, which calls it in servers, schedulers, detokenizers and controllers."""
    _arm()


def vllm() -> None:
    """For vLLM, which calls it in front ends, engine cores, workers and model registries."""
    _arm()


def _arm() -> None:
    """Armed already, by another door or an earlier call, nothing happens."""
    try:
        arm_from_environment()
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        if sys.stderr is not None:
            print(f"kvlint: not armed: {text}", file=sys.stderr)
        if os.environ.get("KVLINT_REQUIRE"):
            raise SystemExit(78) from None
