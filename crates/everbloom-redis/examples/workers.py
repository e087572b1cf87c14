"""Ten workers share one memory of what was seen; important keys are remembered longer; a window forgets what is old.

    pip install redis
    python workers.py [redis://127.0.0.1:6379]

The server has the module: `cargo xtask redis`, or `loadmodule libeverbloom_redis.so` in a server of your own.
"""

import random
import sys
import threading
import time

import redis

URL = sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379"


def shared_dedup():
    """Each line is handled by one worker, whoever sees it first."""
    client = redis.Redis.from_url(URL)
    client.delete("seen")
    events = [f"event-{number}" for number in range(20_000)]
    handled, lock = [], threading.Lock()

    def worker(number):
        own = redis.Redis.from_url(URL)
        # The first worker makes the filter; the others find it. It never takes more than a mebibyte, however long this runs.
        own.execute_command("EB.RESERVE", "seen", "auto", "MEMORY", "1mb", "FPR", "0.1%", "NX")
        # A queue that delivers more than once: each event goes to five of the ten workers, in an order of their own.
        mine = [event for index, event in enumerate(events) if (index + number) % 10 < 5]
        random.Random(number).shuffle(mine)
        for start in range(0, len(mine), 500):
            batch = mine[start : start + 500]
            new = own.execute_command("EB.MADD", "seen", *batch)
            with lock:
                handled.extend(event for event, is_new in zip(batch, new) if is_new)

    workers = [threading.Thread(target=worker, args=(number,)) for number in range(10)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    # One in a thousand new events may be taken for a repeat. A repeat is taken for new where more keys than a word of the
    # filter has room for meet in it, which with so few keys happens in one run of forty, to a handful of events.
    print(f"{len(handled)} of {len(events)} events were handled, {len(handled) - len(set(handled))} of them twice")
    assert len(handled) - len(set(handled)) < 0.001 * len(events), "events were handled twice"
    assert len(handled) > 0.99 * len(events)


def importance():
    """In little memory, what is remembered is what matters."""
    client = redis.Redis.from_url(URL)
    client.delete("alerts")
    client.execute_command("EB.RESERVE", "alerts", "auto", "MEMORY", "16kb", "FPR", "1%", "IMPORTANCE", "100")
    for start in range(0, 50_000, 500):
        pairs = []
        for number in range(start, start + 500):
            # One in fifty is an outage; the rest is chatter.
            pairs += [f"alert-{number}", 100 if number % 50 == 0 else 1]
        client.execute_command("EB.IADD", "alerts", *pairs)
    outages = [f"alert-{number}" for number in range(0, 50_000, 50)]
    chatter = [f"alert-{number}" for number in range(1, 50_000, 50)]
    kept = [sum(client.execute_command("EB.MEXISTS", "alerts", *keys)) / len(keys) for keys in (outages, chatter)]
    print(f"of the outages {kept[0]:.0%} are remembered, of the chatter {kept[1]:.0%}")
    assert kept[0] > 2 * kept[1]


def window():
    """Each visitor once in a while: two seconds here, by the server's clock."""
    client = redis.Redis.from_url(URL)
    client.delete("visits")
    client.execute_command("EB.RESERVE", "visits", "auto", "MEMORY", "256kb", "FPR", "1%", "WINDOW", "2s")
    assert client.execute_command("EB.ADD", "visits", "alice")
    assert not client.execute_command("EB.ADD", "visits", "alice")
    deadline = time.time() + 60
    while client.execute_command("EB.EXISTS", "visits", "alice"):
        assert time.time() < deadline, "the window does not turn"
        time.sleep(0.1)
        # Windows turn when something is added: reading changes nothing.
        client.execute_command("EB.ADD", "visits", "bob")
    print("alice is new again")


def as_before():
    """What RedisBloom's users have works as it did."""
    client = redis.Redis.from_url(URL)
    client.delete("users")
    bloom = client.bf()
    bloom.reserve("users", 0.01, 1000)
    assert bloom.add("users", "alice") and not bloom.add("users", "alice")
    print(f"BF.CARD says {bloom.card('users')}")


if __name__ == "__main__":
    shared_dedup()
    importance()
    window()
    as_before()
