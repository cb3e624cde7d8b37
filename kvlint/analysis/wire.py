"""The two ends of a message: what one side of the program sends and the other receives."""

from collections.abc import Iterator

from kvlint.analysis.bodies import Body
from kvlint.analysis.link import Program
from kvlint.analysis.showing import brief
from kvlint.analysis.terms import Call, Item, Literal, Sequence, Term, last_name
from kvlint.analysis.vocabulary import apis, words
from kvlint.findings import Step


class Wire:
    def __init__(self, program: Program) -> None:
        self.program = program
        self._received: dict[tuple[str, str, int], list[tuple[Body, Term, Step]]] = {}

    def received(self, body: Body, message: Term, position: int) -> list[tuple[Body, Term, Step]]:
        """What the peer, running this program too, puts at `message[position]`.

        The sender's list is the one in the same module that is sent; frames in front of
        it that the receiver strips are found by the names on both sides.
        """
        key = (body.definition.key, last_name(message), position)
        if key not in self._received:
            self._received[key] = list(self._find_received(body, message, position))
        return self._received[key]

    def _find_received(
        self, body: Body, message: Term, position: int
    ) -> Iterator[tuple[Body, Term, Step]]:
        names = _names_by_position(body, message)
        source = self.program.outline(body.definition.path)
        best: tuple[int, Body, Sequence, int, Step] | None = None
        for definition in source.definitions.values() if source else ():
            text = source.text(definition) if source else ""
            if "encode" not in text and "pack" not in text:
                continue
            sender = self.program.body(definition)
            for items, step in self._sent(sender) if sender else ():
                for offset in range(4):
                    score = _alignment(names, items, offset)
                    if position + offset < len(items.items) and (best is None or score > best[0]):
                        best = (score, sender, items, offset, step)  # type: ignore[assignment]
        if best is not None and best[0] >= 3:
            _, sender, items, offset, step = best
            value = _unpacked(items.items[position + offset])
            yield sender, value, Step(step.span, f"the peer sends {brief(value, 70)}")

    def _sent(self, body: Body) -> Iterator[tuple[Sequence, Step]]:
        for site in body.calls:
            if site.call.name in apis().sends:
                for value in site.call.values():
                    if isinstance(value, Sequence) and len(value.items) > 3:
                        yield value, Step(self.program.span(body, site.place), "sent")
        for root in body.returns:
            if isinstance(root.term, Sequence) and len(root.term.items) > 6:
                yield root.term, Step(self.program.span(body, root.place), "returned to be sent")


def _names_by_position(body: Body, message: Term) -> dict[int, set[str]]:
    """message[k] -> words of the names it is given."""
    result: dict[int, set[str]] = {}

    def note(name: str, value: Term) -> None:
        for found in value.walk():
            match found:
                case Item(of, Literal(int(position))) if of == message:
                    result.setdefault(position, set()).update(words(name))
                    return

    for site in body.calls:
        for keyword, value in site.call.keywords:
            note(keyword, value)
    for store in body.stores:
        note(store.name, store.value)
    return result


def _alignment(names: dict[int, set[str]], items: Sequence, offset: int) -> int:
    score = 0
    for position, said in names.items():
        if position + offset < len(items.items):
            sent: set[str] = set()
            for found in items.items[position + offset].walk():
                sent |= set(words(last_name(found)))
            score += len(said & sent)
    return score


def _unpacked(term: Term) -> Term:
    match term:
        case Call() as call if call.name in apis().packs and call.arguments:
            return call.arguments[-1]
    return term
