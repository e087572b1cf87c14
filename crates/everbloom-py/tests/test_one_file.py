"""Same verdicts, same bytes: a file of every kind goes through the library, the command line, a server and this package."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import time
from pathlib import Path

import everbloom
import pytest
from everbloom import Filter, Scheme

ROOT = os.environ.get("EVERBLOOM_ROOT")
KINDS = sorted(everbloom.kinds())

KEYS = [f"user-{number}" for number in range(5000)]
ASKED = [f"user-{number}" for number in range(4000, 9000)]


def missing(what: str) -> None:
    if os.environ.get("EVERBLOOM_CI"):
        pytest.fail(what)
    pytest.skip(f"SKIPPED: {what}")


def built(*arguments: str, made: str, named: str) -> Path:
    """What cargo makes of the same sources, once; `cargo xtask test` has it already and says where."""
    if there := os.environ.get(named):
        return Path(there)
    if not ROOT:
        missing("run by cargo xtask python, which knows the sources")
    done = subprocess.run(["cargo", "build", "--quiet", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    program = Path(os.environ.get("CARGO_TARGET_DIR", Path(ROOT) / "target")) / "debug" / made
    if done.returncode or not program.exists():
        missing(f"{made} does not build: {done.stderr[-1000:]}")
    return program


@pytest.fixture(scope="module")
def command_line() -> Path:
    return built("--package", "everbloom-cli", "--no-default-features", made="everbloom", named="EVERBLOOM_BINARY")


@pytest.fixture(scope="module")
def library() -> Path:
    """A program of a few lines in Rust."""
    return built("--package", "everbloom", "--example", "verdicts", made="examples/verdicts", named="EVERBLOOM_VERDICTS")


class Server:
    """A Redis with the module, asked over a plain socket."""

    def __init__(self, program: Path, module: Path, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), "--loadmodule", str(module)]
        self.log = (folder / "server.log").open("w+")
        self.process = subprocess.Popen([program, *words], stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((folder / "server.log").read_text()) from None
                time.sleep(0.05)
        self.answers = self.socket.makefile("rb")

    def __call__(self, *words: str | bytes):
        parts = [word.encode() if isinstance(word, str) else word for word in words]
        text = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self.socket.sendall(text)
        return self.read()

    def read(self):
        line = self.answers.readline()
        sort, rest = line[:1], line[1:-2]
        if sort == b"*":
            return [self.read() for _ in range(int(rest))]
        if sort == b"$":
            return self.answers.read(int(rest) + 2)[:-2]
        if sort == b"-":
            raise RuntimeError(rest.decode())
        return int(rest) if sort == b":" else rest

    def close(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(60)
        self.log.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = Path(os.environ.get("EVERBLOOM_SERVERS") or Path(ROOT or ".") / "target" / "servers")
    program = folder / "redis-server"
    if not program.exists():
        missing(f"there is no {program}: cargo xtask redis --fetch fetches it")
    module = built("--package", "everbloom-redis", made="libeverbloom_redis.so", named="EVERBLOOM_MODULE")
    server = Server(program, module, tmp_path_factory.mktemp("server"))
    yield server
    server.close()


def goal_of(kind: str) -> dict[str, object]:
    """What makes one of this kind with which some of the keys are found, and some others are not."""
    return {"expect": 5000, "fpr": "1%", **({} if everbloom.kinds()[kind].never_forgets else {"memory": "8KiB"})}


def made(kind: str, folder: Path) -> tuple[Filter, list[str]]:
    """A filter with the keys, and the options by which the command line makes it."""
    goal = goal_of(kind)
    if kind != "popularity":
        seen = Filter(kind, **goal)
        seen.update(KEYS)
        return seen, ["--filter", kind, *(word for name, value in goal.items() for word in (f"--{name}", str(value)))]
    log = [f"user-{6000 + number * number % 307}" for number in range(20_000)]
    tuned = everbloom.tune(KEYS, log, memory="4KiB")
    tuned.scheme.save(folder / "scheme.ebs")
    return tuned.scheme.build(KEYS), []


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_through_the_command_line(kind, tmp_path, command_line):
    (tmp_path / "keys.txt").write_text("".join(f"{key}\n" for key in KEYS))
    (tmp_path / "ask.txt").write_text("".join(f"{key}\n" for key in ASKED))

    def run(*arguments):
        ran = subprocess.run([command_line, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
        # query ends with 1 if nothing is found, and here something is.
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    seen, options = made(kind, tmp_path)
    scheme = ["--scheme", "scheme.ebs"] if kind == "popularity" else []
    seen.save(tmp_path / "py.ebf")
    found = [key for key, inside in zip(ASKED, seen.contains_many(ASKED)) if inside]
    assert 0 < len(found) < len(ASKED)
    assert run("query", *scheme, "py.ebf", "ask.txt").split() == found
    if options:
        run("build", *options, "-o", "cli.ebf", "keys.txt")
        theirs = Filter.load(tmp_path / "cli.ebf")
        assert seen.to_bytes() == theirs.to_bytes() == (tmp_path / "cli.ebf").read_bytes()
        theirs.save(tmp_path / "again.ebf")
        assert (tmp_path / "again.ebf").read_bytes() == (tmp_path / "cli.ebf").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_through_the_library(kind, tmp_path, library):
    if kind == "popularity":
        pytest.skip("its scheme comes by itself: the command line's test has both")
    seen, _ = made(kind, tmp_path)
    seen.save(tmp_path / "py.ebf")
    # Keys of every sort that a line can hold.
    drawn = random.Random(7)
    odd = [bytes(drawn.randrange(256) for _ in range(drawn.randrange(300))).replace(b"\n", b"") for _ in range(500)]
    asked = [key.encode() for key in ASKED] + odd
    told = subprocess.run([library, "py.ebf", "copy.ebf"], cwd=tmp_path, input=b"\n".join([*asked, b""]), capture_output=True, check=True)
    assert told.stdout.decode().strip() == "".join("01"[int(inside)] for inside in seen.contains_many(asked))
    assert (tmp_path / "copy.ebf").read_bytes() == (tmp_path / "py.ebf").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_through_a_server(kind, tmp_path, server):
    seen, _ = made(kind, tmp_path)
    if kind == "popularity":
        with pytest.raises(RuntimeError):
            server("EB.LOAD", kind, seen.to_bytes())
        return
    server("EB.LOAD", kind, seen.to_bytes())
    assert server("EB.DUMP", kind) == seen.to_bytes()
    assert server("EB.MEXISTS", kind, *ASKED) == seen.contains_many(ASKED).tolist()
    # Both go on alike.
    more = [f"user-{number}" for number in range(8500, 9500)]
    told = server("EB.MADD", kind, *more)
    assert [bool(new) for new in told] == seen.add_many(more).tolist()
    # A filter that can remove takes a repeat once more here, so that each arrival can be taken back; a server does not.
    if "remove keys" not in everbloom.kinds()[kind].abilities:
        assert server("EB.DUMP", kind) == seen.to_bytes()
    server("DEL", kind)
