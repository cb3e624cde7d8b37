"""What stands in the place of each of NIXL's methods: the watch asked before, and told after.

Arguments go through as they come. A failure of the watch is contained, and NIXL's call is made as
if nobody had looked.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

import numpy as np

from kvlint.runtime_checks.hooking import Method
from kvlint.runtime_checks.nixl.teller import Verdict
from kvlint.runtime_checks.nixl.watch import Watch
from kvlint.runtime_checks.policy import Policy
from kvlint.runtime_checks.stacks import here

_STRIDED: Final = 5


class Around:
    """One method a hook: takes NIXL's and gives back what stands in its place."""

    def __init__(self, watch: Watch, policy: Policy, module: ModuleType) -> None:
        self._watch = watch
        self._policy = policy
        # What `get_xfer_descs` has made last, for the call that it was made in.
        self._latest = threading.local()
        self._refused = module.nixlBind.nixlInvalidParamError

    def _note(self, moment: str, take: Callable[..., Any], *args: Any) -> Any:
        """What the watch has to say; None where it fails by itself, or has before."""
        if self._policy.armed(moment):
            with self._policy.contained(moment):
                return take(*args)
        return None

    def _keep(self, moment: str, take: Callable[..., Any], *args: Any) -> Any:
        """The same for what must be kept in step whatever has failed before: a handle that is
        gone and not forgotten would be taken for the next one of its identity."""
        with self._policy.contained(moment):
            return take(*args)

    @contextmanager
    def _explained(self, notes: Callable[[], list[str]]) -> Iterator[None]:
        """NIXL's own exceptions keep their type and gain what kvlint knows."""
        try:
            yield
        except Exception as error:
            for note in self._note("notes", notes) or []:
                error.add_note(f"kvlint: {note}")
            self._policy.publish()
            raise

    def _living(self, handle: Any, call: str) -> None:
        """A call with a released handle would crash the process, in every mode: it is refused as
        NIXL refuses other wrong arguments."""
        if getattr(handle, "_released", False):
            message = self._note("released-handle", self._watch.dead, handle, call)
            error = self._refused("NIXL_ERR_INVALID_PARAM")
            error.add_note(f"kvlint: {message or 'the handle was released before'}")
            raise error

    def _refuse(self, verdict: Verdict | None) -> None:
        """Raises what was found, counted first: where nothing is ever posted nothing else is."""
        if verdict is not None and verdict.raises is not None:
            self._policy.publish()
        _raise(verdict)

    def _late(self) -> None:
        """Raises what digests have shown since the last call; nothing has been done yet."""
        violation = self._note("digests", self._watch.late)
        if violation is not None:
            self._policy.publish()
            raise violation

    # nixl_agent

    def nixl_agent_init(self, original: Method) -> Method:
        def __init__(agent: Any, /, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(agent, *args, **kwargs)
            self._note("agents", self._watch.born, agent)

        return __init__

    def nixl_agent_get_agent_metadata(self, original: Method) -> Method:
        def get_agent_metadata(agent: Any, /, *args: Any, **kwargs: Any) -> Any:
            self._note("exchange", self._watch.publishing, agent)
            metadata = original(agent, *args, **kwargs)
            self._note("agents", self._watch.published, agent, metadata)
            return metadata

        return get_agent_metadata

    nixl_agent_get_partial_agent_metadata = nixl_agent_get_agent_metadata

    def nixl_agent_add_remote_agent(self, original: Method) -> Method:
        def add_remote_agent(agent: Any, /, metadata: bytes, *args: Any, **kwargs: Any) -> Any:
            name = original(agent, metadata, *args, **kwargs)
            self._note("agents", self._watch.loaded, agent, name, metadata)
            return name

        return add_remote_agent

    def nixl_agent_remove_remote_agent(self, original: Method) -> Method:
        def remove_remote_agent(agent: Any, /, name: Any) -> Any:
            result = original(agent, name)
            self._note("agents", self._watch.dropped, agent, name)
            return result

        return _named(remove_remote_agent, "agent")

    def nixl_agent_get_reg_descs(self, original: Method) -> Method:
        def get_reg_descs(agent: Any, /, descs: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(agent, descs, *args, **kwargs)
            self._note("registrations", self._watch.described, made, descs)
            return made

        return get_reg_descs

    def nixl_agent_get_xfer_descs(self, original: Method) -> Method:
        def get_xfer_descs(agent: Any, /, descs: Any, *args: Any, **kwargs: Any) -> Any:
            made = original(agent, descs, *args, **kwargs)
            self._note("lists", self._watch.rows_made, made, descs)
            self._latest.made = made
            return made

        return get_xfer_descs

    def nixl_agent_register_memory(self, original: Method) -> Method:
        def register_memory(agent: Any, /, *args: Any, **kwargs: Any) -> Any:
            registered = original(agent, *args, **kwargs)
            self._note("registrations", self._watch.registered, agent, registered)
            return registered

        return register_memory

    def nixl_agent_deregister_memory(self, original: Method) -> Method:
        def deregister_memory(agent: Any, /, dereg_list: Any, *args: Any, **kwargs: Any) -> Any:
            _raise(self._note("registrations", self._watch.deregistering, agent, dereg_list))
            result = original(agent, dereg_list, *args, **kwargs)
            self._note("registrations", self._watch.deregistered, agent, dereg_list)
            return result

        return deregister_memory

    def nixl_agent_prep_xfer_dlist(self, original: Method) -> Method:
        def prep_xfer_dlist(
            agent: Any,
            /,
            agent_name: Any,
            xfer_list: Any,
            mem_type: Any = None,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            stack = here()
            self._latest.made = None
            strided = isinstance(xfer_list, np.ndarray) and xfer_list.shape[1:] == (_STRIDED,)

            def see() -> Any:
                # Of anything but strided rows NIXL makes an object first thing.
                given = xfer_list if strided else self._latest.made
                return self._note(
                    "lists", self._watch.prepare, agent, agent_name, given, mem_type, stack
                )

            def reasons() -> list[str]:
                prepared = see()
                reason = self._watch.refused(prepared) if prepared is not None else None
                return [reason] if reason else []

            with self._explained(reasons):
                handle = original(agent, agent_name, xfer_list, mem_type, *args, **kwargs)
            prepared = see()
            self._latest.made = None
            if prepared is not None:
                violation = self._note("lists", self._watch.prepared, handle, prepared)
                if violation is not None:
                    raise violation
            return handle

        return prep_xfer_dlist

    def nixl_agent_make_prepped_xfer(self, original: Method) -> Method:
        def make_prepped_xfer(
            agent: Any,
            /,
            operation: str,
            local_xfer_side: Any,
            local_indices: Any,
            remote_xfer_side: Any,
            remote_indices: Any,
            notif_msg: Any = b"",
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            self._living(local_xfer_side, "make_prepped_xfer")
            self._living(remote_xfer_side, "make_prepped_xfer")
            self._late()
            making = self._note(
                "making",
                self._watch.making,
                agent,
                operation,
                (local_xfer_side, remote_xfer_side),
                (local_indices, remote_indices),
                notif_msg,
            )
            self._refuse(making)
            with self._explained(lambda: making.notes if making else []):
                handle = original(
                    agent,
                    operation,
                    local_xfer_side,
                    local_indices,
                    remote_xfer_side,
                    remote_indices,
                    notif_msg,
                    *args,
                    **kwargs,
                )
            return self._made(handle, making)

        return make_prepped_xfer

    def nixl_agent_initialize_xfer(self, original: Method) -> Method:
        def initialize_xfer(
            agent: Any,
            /,
            operation: str,
            local_descs: Any,
            remote_descs: Any,
            remote_agent: Any,
            notif_msg: Any = b"",
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            self._late()
            objects = (local_descs, remote_descs)
            making = self._note(
                "making",
                self._watch.describing,
                agent,
                operation,
                objects,
                remote_agent,
                notif_msg,
            )
            self._refuse(making)
            with self._explained(lambda: making.notes + self._watch.why(making) if making else []):
                handle = original(
                    agent,
                    operation,
                    local_descs,
                    remote_descs,
                    remote_agent,
                    notif_msg,
                    *args,
                    **kwargs,
                )
            return self._made(handle, making)

        return initialize_xfer

    def _made(self, handle: Any, making: Any) -> Any:
        if making is not None:
            if making.refusal is not None:
                self._policy.publish()
                raise making.refusal
            if making.transfer is not None:
                flights = self._watch.flights
                self._note("making", flights.made, handle, making.transfer, making.sides)
        return handle

    def nixl_agent_transfer(self, original: Method) -> Method:
        def transfer(
            agent: Any, /, handle: Any, notif_msg: Any = b"", *args: Any, **kwargs: Any
        ) -> Any:
            self._living(handle, "transfer")
            self._late()
            flights = self._watch.flights
            known = self._note("agents", self._watch.agent, agent)
            verdict = self._note(
                "posting", flights.posting, known, handle, notif_msg, self._watch.target
            )
            self._refuse(verdict)
            moving = verdict.transfer if verdict else None
            try:
                status = original(agent, handle, notif_msg, *args, **kwargs)
            except Exception:
                if moving is not None:
                    self._keep("posting", flights.posted, moving, None)
                raise
            if moving is not None:
                violation = self._keep("posting", flights.posted, moving, status)
                if violation is not None:
                    raise violation
            return status

        return transfer

    def nixl_agent_check_xfer_state(self, original: Method) -> Method:
        def check_xfer_state(agent: Any, /, handle: Any, *args: Any, **kwargs: Any) -> Any:
            self._living(handle, "check_xfer_state")
            self._late()
            polled = self._watch.flights.polled
            try:
                status = original(agent, handle, *args, **kwargs)
            except Exception:
                self._keep("polling", polled, handle, None)
                raise
            violation = self._keep("polling", polled, handle, status)
            if violation is not None:
                raise violation
            return status

        return check_xfer_state

    def _asks(self, original: Method, name: str) -> Method:
        def ask(agent: Any, /, handle: Any, *args: Any, **kwargs: Any) -> Any:
            self._living(handle, name)
            return original(agent, handle, *args, **kwargs)

        return ask

    def nixl_agent_get_xfer_telemetry(self, original: Method) -> Method:
        return self._asks(original, "get_xfer_telemetry")

    def nixl_agent_query_xfer_backend(self, original: Method) -> Method:
        return self._asks(original, "query_xfer_backend")

    def nixl_agent_estimate_xfer_cost(self, original: Method) -> Method:
        return _named(self._asks(original, "estimate_xfer_cost"), "req_handle")

    def nixl_agent_get_new_notifs(self, original: Method) -> Method:
        def get_new_notifs(agent: Any, /, *args: Any, **kwargs: Any) -> Any:
            self._late()
            messages = original(agent, *args, **kwargs)
            if messages:
                self._note("notifications", self._watch.notified, agent, messages)
            return messages

        return get_new_notifs

    def nixl_agent_update_notifs(self, original: Method) -> Method:
        def update_notifs(agent: Any, /, *args: Any, **kwargs: Any) -> Any:
            before = self._note("notifications", _unread, agent)
            messages = original(agent, *args, **kwargs)
            self._note("notifications", self._watch.unread, agent, before, messages)
            return messages

        return update_notifs

    def nixl_agent_check_remote_xfer_done(self, original: Method) -> Method:
        def check_remote_xfer_done(agent: Any, /, *args: Any, **kwargs: Any) -> Any:
            # The call takes the notification out that it finds, so it is seen where it arrives.
            def arrived(before: Any, after: Any) -> None:
                self._note("notifications", self._watch.unread, agent, before, after)

            return original(_Overheard(agent, arrived), *args, **kwargs)

        return check_remote_xfer_done

    # nixl_xfer_handle

    def nixl_xfer_handle_release(self, original: Method) -> Method:
        def release(handle: Any, *args: Any, **kwargs: Any) -> Any:
            flights = self._watch.flights
            _raise(self._note("releasing", flights.releasing, handle))
            result = original(handle, *args, **kwargs)
            self._keep("releasing", flights.released, handle)
            return result

        return release

    def nixl_xfer_handle_del(self, original: Method) -> Method:
        flights = self._watch.flights
        dropping = functools.partial(flights.releasing, dropped=True)

        def __del__(handle: Any) -> None:  # noqa: N807
            try:
                if not getattr(handle, "_released", True):
                    self._note("releasing", dropping, handle)
            finally:
                original(handle)
                self._keep("releasing", flights.forget, handle)

        return __del__

    # nixl_prepped_dlist_handle

    def nixl_prepped_dlist_handle_del(self, original: Method) -> Method:
        def __del__(handle: Any) -> None:  # noqa: N807
            original(handle)
            self._keep("lists", self._watch.forget_list, handle)

        return __del__


def _raise(verdict: Verdict | None) -> None:
    if verdict is not None and verdict.raises is not None:
        raise verdict.raises


class _Overheard:
    """Stands for an agent in one call of its own, and tells what notifications NIXL gave it."""

    def __init__(self, agent: Any, arrived: Callable[[Any, Any], None]) -> None:
        vars(self).update(_it=agent, _arrived=arrived, agent=self)

    def getNotifs(self, unread: Any, *args: Any) -> Any:  # noqa: N802 (NIXL's name)
        now = self._it.agent.getNotifs(unread, *args)
        self._arrived(unread, now)
        return now

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_it"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_it"], name, value)


def _unread(agent: Any) -> dict[Any, list[bytes]]:
    """A copy of the agent's collection of notifications."""
    return {sender: list(texts) for sender, texts in agent.notifs.items()}


def _named(method: Method, name: str) -> Method:
    """The method, for callers that give its first argument under NIXL's name for it."""

    def by_name(agent: Any, /, *args: Any, **kwargs: Any) -> Any:
        first = (kwargs.pop(name),) if name in kwargs else ()
        return method(agent, *first, *args, **kwargs)

    return by_name
