"""A consumer that handles every message of the last day once, and can be killed at any time.

The filter and the offsets must be of one moment: otherwise messages between them are handled twice or never. So the file
of the filter is named after the offset, and only then the offset is committed. Whoever starts again loads the filter of
the committed offset; what was handled after it is judged again, by the same filter, and handled again.

With confluent-kafka, `messages` is `consumer.poll()`, `commit` is `consumer.commit(offsets=…, asynchronous=False)` and
`committed` is `consumer.committed(…)`. Here a list stands for a partition and a file for the broker's offsets.
"""

import os
import sys
from pathlib import Path

import everbloom

SAVE_EVERY = 1000


class Partition:
    """What a broker keeps: messages, and the offset that a group committed."""

    def __init__(self, folder: Path) -> None:
        self.offsets = folder / "offset"
        # Every key comes two or three times within an hour.
        self.log = [(f"order-{(number * 7919) % 4000}", 1_700_000_000 + number * 0.36) for number in range(10_000)]

    def committed(self) -> int:
        return int(self.offsets.read_text()) if self.offsets.exists() else 0

    def commit(self, offset: int) -> None:
        aside = self.offsets.with_suffix(".new")
        aside.write_text(str(offset))
        os.replace(aside, self.offsets)

    def messages(self, start: int):
        return enumerate(self.log[start:], start)


def state(folder: Path, offset: int) -> Path:
    return folder / f"seen-{offset}.ebf"


def consume(folder: Path, handle, stop_after: int | None = None) -> None:
    partition = Partition(folder)
    start = partition.committed()
    if start:
        seen = everbloom.Filter.load(state(folder, start))
    else:
        seen = everbloom.Filter(window="24h", memory="1MiB", fpr="0.01%")
    for offset, (key, time) in partition.messages(start):
        if stop_after is not None and offset >= stop_after:
            os._exit(9)  # as a kill does: nothing is saved
        if seen.add(key, at=time):
            handle(offset, key)
        if (offset + 1) % SAVE_EVERY == 0:
            seen.save(state(folder, offset + 1))
            before = partition.committed()
            partition.commit(offset + 1)
            state(folder, before).unlink(missing_ok=True)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with open(folder / "handled", "a", buffering=1) as handled:
        stop = int(sys.argv[2]) if len(sys.argv) > 2 else None
        consume(folder, lambda offset, key: print(offset, key, file=handled), stop)
    print("done")
