"""From a directive that is to blame to the entry of it that is."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


async def least(items: Sequence[T], works: Callable[[Sequence[T]], Awaitable[bool]]) -> list[T]:
    """The items that are needed, in few tries: one more than log2(len(items)) for each of them.

    All together are known to work, none is known not to. The shortest beginning that works ends in
    an item that is needed; with that one kept, the same is asked of those before it.
    """
    needed: list[T] = []
    left = list(items)
    while left and not (needed and await works(needed)):
        low, high = 0, len(left)  # the first `high` work together with what is needed
        while low < high:
            middle = (low + high) // 2
            if await works([*left[:middle], *needed]):
                high = middle
            else:
                low = middle + 1
        if high == 0:
            break
        needed.insert(0, left[high - 1])
        left = left[: high - 1]
    return needed
