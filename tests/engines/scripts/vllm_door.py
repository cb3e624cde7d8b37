"""A process of vLLM's as plug-ins see it: they are loaded, then NIXL is imported."""

import json
import sys

from vllm import plugins

for _ in range(2):
    plugins.plugins_loaded = False  # a process may have got here by two ways
    plugins.load_general_plugins()

from nixl._api import nixl_agent  # noqa: E402

own = sorted(name for name in sys.modules if name.partition(".")[0] == "kvlint")
hooked = ["transport"] if hasattr(nixl_agent.transfer, "__wrapped__") else []
print(json.dumps({"modules": own, "hooked": hooked}))
