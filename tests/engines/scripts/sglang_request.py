"""Prints how requests end on both sides, and which pages arrived: one object.

Arguments: `arena` puts the decode side's pool into one registered piece of memory; a number is how
many requests there are, of the same pages.
"""

import json
import os
import sys
import threading

from sglang.srt.plugins import load_plugins
from sglang_service import Service

HERE, THERE = [5, 6, 7, 100], [5, 6, 7, 100]


def main() -> None:
    load_plugins()
    service = Service(in_arena="arena" in sys.argv)
    count = max([1, *(int(one) for one in sys.argv[1:] if one.isdecimal())])
    args = service.prefill.manager.kv_args
    lengths = zip(args.kv_data_lens, args.kv_item_lens, strict=True)
    found = {
        "slots": [length // item for length, item in lengths],
        "ends": [service.request(room, HERE, THERE) for room in range(1, count + 1)],
        "right": service.right_pages(HERE, THERE),
        "written": service.written(),
        "threads": [thread.name for thread in threading.enumerate()],
    }
    print(json.dumps(found), flush=True)
    # Threads of the released managers wait for messages for good, and are no daemons.
    os._exit(0)


if __name__ == "__main__":
    main()
