"""How many of the right top-k entries were chosen."""

import torch
from torch import Tensor


def overlap(scores: Tensor, right: Tensor, k: int, room: Tensor) -> Tensor:
    """(R,) share of each row's best entries that are also best by other scores.

    scores  (R, N) by which the kernel chooses; entries of -inf are not to be chosen
    right   (R, N) the reference's
    k       entries to choose, of a row that has fewer all that it has
    room    (R,) what counts as no difference of two reference scores

    Where the reference's scores tie at the boundary, either choice is as good. Where the kernel's
    do, it may choose the wrong ones, and is taken to. A row without entries is right.
    """
    scores, right = (torch.where(one.isnan(), -torch.inf, one) for one in (scores, right))
    count = (right > -torch.inf).sum(dim=1).clamp(max=k)
    best, equal = _best(right, count, room)
    sure, open_ = _best(scores, count, torch.zeros_like(room))
    left = count - sure.sum(dim=1)
    left = left - torch.minimum((open_ & ~best & ~equal).sum(dim=1), left)
    ties = torch.minimum((open_ & equal).sum(dim=1), left)
    more = torch.minimum((open_ & best).sum(dim=1), left - ties)
    hits = (sure & best).sum(dim=1) + more
    good = hits + torch.minimum((sure & equal).sum(dim=1) + ties, count - best.sum(dim=1))
    return torch.where(count > 0, good.double() / count.clamp(min=1), 1.0)


def chosen_overlap(chosen: Tensor, right: Tensor, k: int, room: Tensor) -> Tensor:
    """(R,) likewise, where the kernel gives (R, K) indices; those below 0 are none, and one that
    comes twice or that is out of range is no choice."""
    wide = torch.full((len(right), right.shape[1] + 1), -torch.inf, dtype=right.dtype)
    wide = wide.to(right.device)
    inside = (chosen >= 0) & (chosen < right.shape[1])
    wide.scatter_(1, torch.where(inside, chosen, right.shape[1]).long(), 1.0)
    return overlap(wide[:, :-1], right, k, room)


def _best(scores: Tensor, count: Tensor, room: Tensor) -> tuple[Tensor, Tensor]:
    """Which entries are among each row's `count` best for sure, and which tie for the rest."""
    ordered = scores.sort(dim=1, descending=True).values
    last = ordered.gather(1, (count - 1).clamp(min=0)[:, None])
    some = (count > 0)[:, None] & (scores > -torch.inf)
    sure = some & (scores > last + room[:, None])
    return sure, some & ~sure & (scores >= last - room[:, None])
