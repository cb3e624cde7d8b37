"""What the ledger finds, in words. Pure."""

from kvlint.runtime_checks.checks import (
    EARLY_READ,
    PAGE_CHANGED,
    PAGE_MISPLACED,
    PAGE_REUSED,
    Breach,
    Place,
)
from kvlint.runtime_checks.stages.notes import Early, Finding, Note, Page, Stage


def told(finding: Finding | Early) -> Breach:
    """As the policy takes it."""
    return _early(finding) if isinstance(finding, Early) else _changed(finding)


def _changed(finding: Finding) -> Breach:
    page, before, holder = finding.page, finding.before, finding.holder
    then, now = before.note, page.note
    moved = (then.memory, before.slot) != (now.memory, page.slot)
    early = now.stage is Stage.READ and then.stage is Stage.SEND and moved
    check = EARLY_READ if early else PAGE_MISPLACED if holder else PAGE_CHANGED
    what = (
        f"was read before an arrival of it was noted: at {_stage(before, moved)} it held "
        f"{_hex(before)}, the read found {_hex(page)}"
        if early
        else f"changed between {_stage(before, moved)} and {_stage(page, moved)}: from "
        f"{_hex(before)} to {_hex(page)}"
    )
    owners = {"owner": now.owner}
    if then.owner != now.owner:
        what += f"; the bytes are those of {_whose(then)}, which noted them at {then.stage}"
        owners["owner before"] = then.owner
    if holder is not None:
        what += f"; it holds what belongs to {_named(holder, page)}"
        owners["holds that of"] = holder.note.owner
    if finding.writer is not None:
        other = finding.writer
        what += (
            f"; in between, {_stage(other, True)}, page {other.ordinal} of {_whose(other.note)} "
            "was put there"
        )
        owners["put there by"] = other.note.owner
    return Breach(
        check,
        f"{_place(page)} {what}{_more(finding.pages)}",
        {f"at {then.stage}": _hex(before), f"at {_other(now, then)}": _hex(page), **owners},
        place(page),
    )


def _early(early: Early) -> Breach:
    page, read = early.page, early.read
    return Breach(
        EARLY_READ,
        f"{_place(page)} was read before it had arrived: the read found {_hex(read)}, what arrived "
        f"is {_hex(page)}{_more(early.pages)}",
        {"at read": _hex(read), "at arrival": _hex(page), "owner": page.note.owner},
        place(page),
    )


def in_flight(page: Page, transfer: str, *, writes: bool, owner: Page | None) -> Breach:
    """A transfer that is not over uses the page.

    page    as it is noted now; its digest is not known yet
    writes  whether the transfer writes it; else it reads it
    owner   the page that was there before, where another request is known to own that
    """
    note = page.note
    values = {"transfer": transfer, "owner": note.owner}
    if not note.writes:
        return Breach(
            EARLY_READ,
            f"{_place(page)} is taken at {note.stage} while transfer {transfer}, of which nobody "
            "has seen the end, still writes it",
            values,
            place(page),
        )
    whose = ""
    if owner is not None:
        whose = f" page {owner.ordinal} of {_whose(owner.note)}, noted there at {owner.note.stage},"
        values["owner before"] = owner.note.owner
    verb = "writes" if writes else "reads"
    return Breach(
        PAGE_REUSED,
        f"{_place(page)} is put there at {note.stage} while transfer {transfer}, of which nobody "
        f"has seen the end, still {verb}{whose or ' what is there'}".rstrip(","),
        values,
        place(page),
    )


def place(page: Page) -> Place:
    region = page.note.memory.regions[page.region]
    return Place("local", page.region, region.name, region.layer, page.slot)


def _place(page: Page) -> str:
    note = page.note
    called = f"{note.memory.called(page.region)} slot {page.slot}"
    return f"{called} (page {page.ordinal} of {_whose(note)})"


def _named(holder: Page, page: Page) -> str:
    region = holder.note.memory.called(holder.region)
    if holder.note.owner == page.note.owner:
        return f"page {holder.ordinal} of {region}"
    return f"page {holder.ordinal} of {_whose(holder.note)} ({region})"


def _whose(note: Note) -> str:
    return f"request {note.owner}" if note.request else note.owner


def _stage(page: Page, moved: bool) -> str:
    return f"{page.note.stage}{f' ({page.note.memory.pool} slot {page.slot})' if moved else ''}"


def _other(now: Note, then: Note) -> str:
    return f"{now.stage} again" if now.stage is then.stage else now.stage


def _hex(page: Page) -> str:
    return f"{page.digest:016x}"


def _more(pages: int) -> str:
    return "" if pages == 1 else f" (and {pages - 1} more page{'s' if pages > 2 else ''})"
