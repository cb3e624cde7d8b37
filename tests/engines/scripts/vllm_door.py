"""A worker of vLLM's as plug-ins see it: they are loaded, then comes the connector."""

import json
import sys

from vllm import plugins

for _ in range(2):
    plugins.plugins_loaded = False  # a process may have got here by two ways
    plugins.load_general_plugins()

from nixl._api import nixl_agent  # noqa: E402
from vllm.distributed.kv_transfer.kv_connector.v1.nixl.base_worker import (  # noqa: E402
    NixlBaseConnectorWorker,
)

own = sorted(name for name in sys.modules if name.partition(".")[0] == "kvlint")
methods = {
    "transport": nixl_agent.transfer,
    "worker": NixlBaseConnectorWorker.register_kv_caches,
}
hooked = [name for name, method in methods.items() if hasattr(method, "__wrapped__")]
print(json.dumps({"modules": own, "hooked": hooked}))
