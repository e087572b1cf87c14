"""Bytes, files, pickles, views: the same everywhere, and never trusted."""

import mmap
import multiprocessing
import os
import pickle
import stat
from multiprocessing import shared_memory

import everbloom
import numpy as np
import pytest
from everbloom import Filter, View


def some(spec="bloom", **goal):
    seen = Filter(spec, **(goal or {"expect": 200}))
    seen.update(range(100), ["a", "b"])
    return seen


@pytest.mark.parametrize("spec", sorted(set(everbloom.kinds()) - {"popularity", "stacked"}))
def test_a_copy_goes_on_as_the_original_would(spec, tmp_path):
    seen = some(spec, **({"expect": 200} if everbloom.kinds()[spec].never_forgets else {"memory": "1KiB"}), fpr=0.05)
    path = tmp_path / "seen.ebf"
    seen.save(path)
    assert path.read_bytes() == seen.to_bytes()
    copies = [Filter.load(str(path)), Filter.from_bytes(bytearray(seen.to_bytes())), seen.copy()]
    copies += [Filter.from_bytes(seen.to_bytes(compress=True))]
    copies += [pickle.loads(pickle.dumps(seen, protocol)) for protocol in range(2, 6)]
    later = list(range(50, 3000)) + ["a", "z"]
    wanted = seen.add_many(later)
    for one in copies:
        assert np.array_equal(one.add_many(later), wanted) and one.to_bytes() == seen.to_bytes()


def test_pickles_go_out_of_band():
    seen, buffers = some(expect=100_000), []
    data = pickle.dumps(seen, protocol=5, buffer_callback=buffers.append)
    assert len(data) < 500 and len(buffers) == 1
    assert pickle.loads(data, buffers=buffers) == seen
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(Filter("bloom", expect=9, secret=bytes(16)))


def test_errors_can_be_pickled():
    with pytest.raises(everbloom.ParameterError) as caught:
        Filter(memory="64 apples")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.remedy, again.given) == (str(caught.value), caught.value.remedy, caught.value.given)


@pytest.mark.parametrize("spec", ["bloom", "exact", "counting"])
def test_bytes_cut_at_every_length_are_refused(spec):
    whole = some(spec, expect=50).to_bytes()
    for length in range(len(whole)):
        with pytest.raises(everbloom.CorruptError) as caught:
            Filter.from_bytes(whole[:length])
        assert caught.value.remedy
        with pytest.raises(everbloom.CorruptError):
            View(whole[:length])
    with pytest.raises(everbloom.CorruptError):
        Filter.from_bytes(whole + b"x")


def test_bytes_flipped_anywhere_are_refused():
    whole = some(expect=50).to_bytes()
    for place in range(len(whole)):
        with pytest.raises(everbloom.Error):
            Filter.from_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])


def test_pickles_cut_at_every_length_are_refused():
    data = pickle.dumps(some(expect=50))
    for length in range(len(data)):
        with pytest.raises(Exception) as caught:
            pickle.loads(data[:length])
        assert isinstance(caught.value, Exception)


@pytest.mark.parametrize("wrong", [None, 7, "text", [1, 2], np.zeros(0, "u1")], ids=repr)
def test_what_are_no_bytes_is_refused(wrong):
    with pytest.raises((TypeError, everbloom.Error)):
        Filter.from_bytes(wrong)
    with pytest.raises((TypeError, everbloom.Error)):
        View(wrong)


def test_a_compressed_filter_unpacks_as_far_as_it_is_told():
    sparse = Filter("bloom", expect=100_000, compressed=True)
    sparse.add(1)
    data = sparse.to_bytes(compress=True)
    assert len(data) < len(sparse.to_bytes()) / 10 and Filter.from_bytes(data) == sparse
    with pytest.raises(everbloom.ParameterError, match="limit"):
        Filter.from_bytes(data, limit="1KiB")


def test_files_are_replaced_as_a_whole(tmp_path):
    path = tmp_path / "seen.ebf"
    some().save(path)
    os.chmod(path, 0o640)
    link = tmp_path / "link.ebf"
    link.symlink_to(path)
    some(expect=5000).save(link)
    assert link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640 and sorted(os.listdir(tmp_path)) == ["link.ebf", "seen.ebf"]
    for call in (lambda: some().save(tmp_path / "none" / "x"), lambda: Filter.load(tmp_path / "none"), lambda: View.open(tmp_path / "none")):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        assert "none" in str(caught.value.filename)
    with pytest.raises(OSError):
        Filter.load(tmp_path)
    with pytest.raises(OSError):
        some().save(tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(everbloom.CorruptError):
        Filter.load(tmp_path / "empty")
    with pytest.raises((everbloom.CorruptError, OSError)):
        View.open(tmp_path / "empty")


def ask(view, start):
    return view.contains_many(np.arange(start, start + 50)).tolist()


@pytest.mark.parametrize("spec", ["bloom", "blocked"])
def test_views_answer_as_the_filter_does(spec, tmp_path):
    seen = Filter(spec, expect=1000)
    seen.update(range(0, 2000, 3), ["é"])
    path = tmp_path / "seen.ebf"
    seen.save(path)
    asked = list(range(3000)) + ["é", ("a", 1)]
    shared = shared_memory.SharedMemory(create=True, size=len(seen.to_bytes()))
    try:
        shared.buf[: len(seen.to_bytes())] = seen.to_bytes()
        part = shared.buf[: len(seen.to_bytes())]
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            views = [View.open(path), View(seen.to_bytes()), View(part), View(mapped)]
            for view in views:
                view.verify()
                assert view.spec == seen.spec and np.array_equal(view.contains_many(asked), seen.contains_many(asked))
                assert [key in view for key in asked] == seen.contains_many(asked).tolist()
            del views, view
        part.release()
    finally:
        shared.close()
        shared.unlink()
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        answers = pool.starmap(ask, [(View.open(path), start) for start in (0, 100)])
    assert answers == [seen.contains_many(np.arange(start, start + 50)).tolist() for start in (0, 100)]
    with pytest.raises(TypeError):
        pickle.dumps(View(seen.to_bytes()))


def test_views_refuse_what_they_cannot_ask(tmp_path):
    with pytest.raises(everbloom.UnsupportedError):
        View(some("exact").to_bytes())
    damaged = bytearray(some(expect=5000).to_bytes())
    damaged[-100] ^= 1
    view = View(damaged)
    with pytest.raises(everbloom.CorruptError):
        view.verify()
    path = tmp_path / "seen.ebf"
    some(expect=100_000).save(path)
    view = View.open(path)
    os.truncate(path, 4096)
    with pytest.raises(ValueError, match="cut short"):
        view.contains_many([1])


def test_schemes_and_what_they_build(tmp_path):
    members = [f"m{number}" for number in range(1000)]
    log = [f"q{time * time % 307}" for time in range(20_000)]
    tuned = everbloom.tune(members, log, memory="1KiB")
    assert tuned.winner.fpr < tuned.standard.fpr and tuned.winner in tuned.contenders or tuned.contenders
    assert 0 <= tuned.lower_bound <= tuned.standard.fpr and tuned.holdout_queries > 0
    tuned.scheme.save(tmp_path / "s.ebs")
    scheme = everbloom.Scheme.load(tmp_path / "s.ebs")
    assert scheme == tuned.scheme == pickle.loads(pickle.dumps(scheme)) and scheme.id == tuned.scheme.id
    built = scheme.build(members)
    assert built.contains_many(members).all()
    assert pickle.loads(pickle.dumps(built)).contains_many(members).all()
    assert Filter.from_bytes(built.to_bytes(), scheme=scheme) == built
    for length in range(len(scheme.to_bytes())):
        with pytest.raises(everbloom.Error):
            everbloom.Scheme.from_bytes(scheme.to_bytes()[:length])
    several = everbloom.tune([members[:500], members[500:]], log, memory=512)
    assert several.scheme.build(members[:500], memory=512).contains_many(members[:500]).all()
    with pytest.raises(everbloom.ParameterError):
        everbloom.tune([], log, memory=1024)
