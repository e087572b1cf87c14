"""What errors cost, and how often they happen: costs in plans, audits beside filters."""

import copy
import pickle

import everbloom
import pytest
from everbloom import Filter, plan


def stream(count, keys, seed=1):
    state = seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 33) % keys


def counted(filter, keys):
    """Both rates, counted: of new keys taken for repeats, of repeats taken for new."""
    seen, new, repeats = set(), [0, 0], [0, 0]
    for key in keys:
        is_new = filter.add(key)
        counts, wrong = (repeats, is_new) if key in seen else (new, not is_new)
        counts[0] += 1
        counts[1] += wrong
        seen.add(key)
    return new[1] / new[0], repeats[1] / repeats[0]


def test_an_audit_measures_what_is_counted():
    small = {"spec": "stable", "memory": "4KiB", "fpr": "1%"}
    audited = Filter(**small, audit="4MiB")
    fpr, fnr = counted(audited, stream(30_000, 8_000))
    found = audited.audit()
    assert found.one_in == 1 and found.arrivals == 30_000
    for interval, truth in ((found.fpr, fpr), (found.fnr, fnr)):
        assert interval.low == pytest.approx(truth) == interval.high == interval.rate
    assert sum(lag.fnr.of for lag in found.by_lag) == pytest.approx(found.fnr.of)
    assert found.breach is None and audited.status().promise == "kept"
    plain = Filter(**small)
    assert plain.audit() is None and plain == Filter(**small, audit=False)
    plain.update(stream(30_000, 8_000))
    assert plain == audited, "it answers as it would alone"
    assert audited.memory_bytes - plain.memory_bytes == 4 << 20


def test_an_audit_goes_where_its_filter_goes(tmp_path):
    audited = Filter("stable", memory="4KiB", fpr="1%", audit="16KiB")
    audited.add_many(list(stream(50_000, 20_000)))
    found = repr(audited.audit())
    assert audited.audit().one_in > 1
    audited.save(tmp_path / "a.ebf")
    audited.save(tmp_path / "b.ebf", compress=True)
    copies = [
        audited.copy(),
        copy.deepcopy(audited),
        pickle.loads(pickle.dumps(audited, protocol=5)),
        Filter.from_bytes(audited.to_bytes()),
        Filter.load(tmp_path / "a.ebf"),
        Filter.load(tmp_path / "b.ebf"),
    ]
    for same in copies:
        assert repr(same.audit()) == found and same.to_bytes() == audited.to_bytes()
    audited.clear()
    assert audited.audit().arrivals == 0


def test_shards_that_were_copied_while_empty_are_audited_as_one():
    empty = Filter("bloom", expect=5_000, fpr="1%", audit=True)
    one, other = empty.copy(), empty.copy()
    one.update(range(3_000))
    other.update(range(2_000, 5_000))
    both = one | other
    assert both.audit().arrivals == 6_000 and both.memory_bytes == empty.memory_bytes
    stranger = Filter("bloom", expect=5_000, fpr="1%", audit=True)
    with pytest.raises(everbloom.MismatchError, match="audits"):
        one |= stranger
    assert one.audit().arrivals == 3_000


def test_a_broken_promise_is_seen_by_the_audit():
    audited = Filter("bloom", expect=1_000, fpr="1%", audit=True)
    audited.update(range(1_000))
    # Whoever knows the seed sends only new keys that are taken for repeats: the filter itself sees nothing of it.
    made = [key for key in range(1_000, 300_000) if key in audited][:500]
    audited.update(made)
    assert audited.status().promise == "broken"
    assert "of new keys were taken for repeats" in audited.audit().breach


def test_windows_are_audited_by_what_they_promise():
    for goal in ({"window": 1000, "fpr": "1%"}, {"window": "1000s", "expect": 2000, "fpr": "1%"}):
        recent = Filter(**goal, audit="1MiB")
        for at, key in enumerate(stream(20_000, 3_000)):
            recent.add(key, **({"at": at} if goal["window"] == "1000s" else {}))
        found = recent.audit()
        assert found.fnr.rate == 0 and found.fpr.of > 3_000 and found.breach is None, goal


def test_what_cannot_be_audited_is_refused():
    for size, problem in (("1B", "from 4KiB"), ("much", "size"), (object(), "64MiB"), ("10GiB", "from 4KiB")):
        with pytest.raises((everbloom.ParameterError, TypeError), match=problem):
            Filter(memory="64KiB", audit=size)
    counting = Filter("counting", expect=100, audit=True)
    counting.add("key")
    with pytest.raises(everbloom.UnsupportedError, match="without an audit"):
        counting.remove("key")


def test_costs_decide_which_filter_is_taken():
    goal = {"memory": "4KiB", "expect": 20_000, "stream": "zipf:0.9"}
    cheap, dear = plan(**goal, cost_fp=1, cost_fn=20), plan(**goal, cost_fp=20, cost_fn=1)
    assert cheap.forecast.predicted_fpr > dear.forecast.predicted_fpr
    assert cheap.forecast.predicted_fnr < dear.forecast.predicted_fnr
    for planned in (cheap, dear):
        assert 0 < planned.cost <= planned.runners_up[0].cost and planned.cost < planned.cost_without_filter
        costs = [cost for _, cost in planned.cost_curve]
        assert costs[0] > costs[-1] and planned.to_dict()["cost"] == planned.cost
    assert Filter(**goal, cost_fp=1, cost_fn=20).spec == cheap.spec
    limited = plan(**goal, cost_fp=1, cost_fn=20, fpr="1%")
    assert limited.promise.fpr <= 0.01 and limited.cost > cheap.cost
    assert plan(expect=1000).cost is None and plan(expect=1000).cost_curve == []


def test_costs_that_are_none_are_refused():
    for costs, problem in (
        ({"cost_fp": 1}, "cost_fn"),
        ({"cost_fn": 1}, "cost_fp"),
        ({"memory_cost": 1}, "cost_fp"),
        ({"cost_fp": -1, "cost_fn": 1}, "cost_fp"),
        ({"cost_fp": 0, "cost_fn": 0}, "cost_fp"),
        ({"cost_fp": "much", "cost_fn": 1}, "cost_fp must be a number"),
        ({"cost_fp": True, "cost_fn": 1}, "cost_fp must be a number"),
    ):
        with pytest.raises((everbloom.ParameterError, TypeError), match=problem):
            plan(memory="64KiB", **costs)
