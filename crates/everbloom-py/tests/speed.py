"""How fast the package is beside its peers: `cargo xtask bench-python`.

Thread CPU time, the contenders interleaved in one process, the least of several rounds, nanoseconds a key with the loop
included. Answers are checked while they are timed. Ratios are theirs over ours: above 1, ours is faster.
"""

import argparse
import os
import subprocess
import time

import abloom
import everbloom
import numpy as np
import pyarrow as pa
import rbloom

try:
    import polars
except ImportError:
    polars = None

RATE = 0.01


def cpu(work, *arguments):
    start = time.thread_time_ns()
    result = work(*arguments)
    return time.thread_time_ns() - start, result


def adds(seen, keys):
    add = seen.add
    for key in keys:
        add(key)


def asks(seen, keys):
    found = 0
    for key in keys:
        found += key in seen
    return found


def set_idiom(keys):
    seen, new = set(), []
    for key in keys:
        if key not in seen:
            seen.add(key)
            new.append(key)
    return len(new)


def contest(rounds, contenders):
    """The least time of each, in turn."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, (prepare, work) in contenders.items():
            prepared = prepare()
            taken, _ = cpu(work, *prepared)
            best[name] = min(best[name], taken)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keys", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| keys | what | everbloom ns | rbloom ns | abloom ns | over rbloom | over abloom |")
    print("|---|---|---|---|---|---|---|")
    for count in options.keys:
        measure(count, options.rounds)
        if os.environ.get("EVERBLOOM_ROOT"):
            beside_rust(count, options.rounds)


def measure(count, rounds):
    numbers = np.random.default_rng(7).integers(0, 2**63, count).astype("u8")
    others = np.random.default_rng(8).integers(0, 2**63, count).astype("u8")
    ints, other_ints = numbers.tolist(), others.tolist()

    def ours():
        return everbloom.Filter("blocked", expect=count, fpr=RATE)

    def theirs():
        return rbloom.Bloom(count, RATE)

    def third():
        return abloom.BloomFilter(count, RATE)

    def line(what, best):
        own = best["everbloom"] / count
        rest = [best[name] / count if name in best else None for name in ("rbloom", "abloom")]
        cells = [f"{own:.1f}"] + ["–" if ns is None else f"{ns:.1f}" for ns in rest]
        ratios = ["–" if ns is None else f"{ns / own:.2f}" for ns in rest]
        print(f"| {count:,} | {what} | " + " | ".join(cells + ratios) + " |", flush=True)

    def filled(make, keys):
        seen = make()
        seen.update(keys)
        return seen

    def all_three(what, own_keys, their_keys, work, own_work=None, full=None):
        """`full`: the keys that the filters have before."""
        if full is None:
            prepare = {"everbloom": lambda: (ours(), own_keys), "rbloom": lambda: (theirs(), their_keys), "abloom": lambda: (third(), their_keys)}
        else:
            held = {"everbloom": filled(ours, full), "rbloom": filled(theirs, full), "abloom": filled(third, full)}
            prepare = {name: (lambda name=name: (held[name], own_keys if name == "everbloom" else their_keys)) for name in held}
        line(what, contest(rounds, {name: (prepare[name], own_work if name == "everbloom" and own_work else work) for name in prepare}))

    def update(seen, keys):
        seen.update(keys)

    def contains_many(seen, keys):
        return int(seen.contains_many(keys).sum())

    all_three("add(int)", ints, ints, adds)
    all_three("int in f, miss", other_ints, other_ints, asks, full=ints)
    all_three("update(list of int)", ints, ints, update)
    all_three("u64 array, insert (peers: update of its list)", numbers, numbers, lambda seen, keys: seen.update(keys.tolist()), update)
    all_three("u64 array, query (peers: a loop over its list)", others, others, lambda seen, keys: asks(seen, keys.tolist()), contains_many, full=ints)
    del ints, other_ints
    texts = [f"https://example.org/{number:012x}" for number in numbers.tolist()]
    asked = [f"https://example.org/{number:012x}" for number in others.tolist()]
    all_three("add(str)", texts, texts, adds)
    all_three("str in f, miss", asked, asked, asks, full=texts)
    all_three("update(list of str)", texts, texts, update)
    column, asked_column = pa.array(texts), pa.array(asked)
    all_three("Arrow strings, insert (peers: update of a list)", column, texts, update)
    all_three("Arrow strings, query (peers: a loop)", asked_column, asked, asks, contains_many, full=texts)
    if polars is not None:
        series, asked_series = polars.Series(texts), polars.Series(asked)
        all_three("polars strings, insert", series, texts, update)
        all_three("polars strings, query", asked_series, asked, asks, contains_many, full=texts)
    del texts, asked, column, asked_column
    stream = (np.random.default_rng(9).zipf(1.1, count) % (1 << 40)).astype("u8")
    listed = stream.tolist()
    distinct = len(set(listed))

    def verdicts(seen, keys):
        new = int(seen.add_many(keys).sum())
        # A filter of 64 MiB errs on few of them.
        assert abs(new - distinct) < 0.01 * distinct, (new, distinct)

    best = contest(
        rounds,
        {
            "everbloom": (lambda: (everbloom.Filter(memory="64MiB"), stream), verdicts),
            "set": (lambda: (listed,), set_idiom),
        },
    )
    own, other = best["everbloom"] / count, best["set"] / count
    print(f"| {count:,} | add_many of a Zipf stream, beside the `set` idiom ({other:.1f} ns) | {own:.1f} | – | – | {other / own:.2f} | – |", flush=True)


def beside_rust(count, rounds):
    """The same batches by the library itself, in a process of its own, in turn with ours."""
    numbers = np.random.default_rng(7).integers(0, 2**63, 2 * count).astype("u8")
    texts = pa.array([f"https://example.org/{number:012x}" for number in numbers.tolist()])
    command = ["cargo", "bench", "--quiet", "--package", "everbloom", "--bench", "batches", "--", str(count)]
    theirs, ours = {}, {}

    def least(times, name, taken):
        times[name] = min(times.get(name, float("inf")), taken)

    for _ in range(rounds):
        answer = subprocess.run(command, cwd=os.environ["EVERBLOOM_ROOT"], capture_output=True, text=True, check=True).stdout
        for sort, insert, query in map(str.split, answer.splitlines()):
            least(theirs, (sort, "insert"), float(insert))
            least(theirs, (sort, "query"), float(query))
        for sort, keys in (("u64", numbers), ("text", texts)):
            for _ in range(3):
                seen = everbloom.Filter("blocked", expect=count, fpr=RATE)
                least(ours, (sort, "insert"), cpu(seen.update, keys[:count])[0] / count)
                least(ours, (sort, "query"), cpu(seen.contains_many, keys[count:])[0] / count)
    for name, taken in theirs.items():
        print(f"| {count:,} | {' '.join(name)} by the batch, over Rust's ({taken:.1f} ns) | {ours[name]:.1f} | – | – | {ours[name] / taken:.2f} | – |", flush=True)


if __name__ == "__main__":
    main()
