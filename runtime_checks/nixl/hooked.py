"""Which methods of NIXL's classes are hooked, by class. Known where NIXL is not imported."""

from collections.abc import Mapping
from typing import Final

HOOKED: Final[Mapping[str, tuple[str, ...]]] = {
    "nixl_agent": (
        "__init__",
        "register_memory",
        "deregister_memory",
        "get_reg_descs",
        "get_xfer_descs",
        "prep_xfer_dlist",
        "make_prepped_xfer",
        "initialize_xfer",
        "transfer",
        "check_xfer_state",
        "get_xfer_telemetry",
        "query_xfer_backend",
        "estimate_xfer_cost",
        "get_new_notifs",
        "update_notifs",
        "check_remote_xfer_done",
        "get_agent_metadata",
        "get_partial_agent_metadata",
        "add_remote_agent",
        "remove_remote_agent",
    ),
    "nixl_xfer_handle": ("release", "__del__"),
    "nixl_prepped_dlist_handle": ("__del__",),
}
