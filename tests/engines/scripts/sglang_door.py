"""A process of SGLang's as plug-ins see it: they are loaded, then come its modules."""

import json
import sys

from sglang.srt import plugins

for _ in range(2):
    plugins._plugins_loaded = False  # a process may have got here by two ways
    plugins.load_plugins()

from nixl._api import nixl_agent  # noqa: E402
from sglang.srt.disaggregation.nixl.conn import NixlKVManager  # noqa: E402
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool  # noqa: E402

own = sorted(name for name in sys.modules if name.partition(".")[0] == "kvlint")
methods = {
    "transport": nixl_agent.transfer,
    "pool": MHATokenToKVPool.get_contiguous_buf_infos,
    "manager": NixlKVManager.register_buffer_to_engine,
}
hooked = [name for name, method in methods.items() if hasattr(method, "__wrapped__")]
print(json.dumps({"modules": own, "hooked": hooked}))
