"""Several processes ask one filter. It lies in a file that all of them map, so it is in memory once."""

import multiprocessing
import tempfile
from pathlib import Path

import everbloom

view = None


def begin(path: str) -> None:
    global view
    view = everbloom.View.open(path)


def known(keys: list[str]) -> int:
    return int(view.contains_many(keys).sum())


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "members.ebf")
        members = everbloom.Filter("blocked", expect=100_000, fpr="0.01%")
        members.update(f"member-{number}" for number in range(100_000))
        members.save(path)

        batches = [[f"member-{number}" for number in range(start, start + 1000)] for start in range(0, 8000, 1000)]
        batches.append([f"stranger-{number}" for number in range(1000)])
        # Not forked: a thread of this process might hold a lock just then.
        context = multiprocessing.get_context("spawn")
        with context.Pool(2, initializer=begin, initargs=(path,)) as pool:
            print(pool.map(known, batches))


if __name__ == "__main__":
    main()
