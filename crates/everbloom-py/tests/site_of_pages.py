"""A site of generated pages on loopback, and crawls of it by processes of their own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SPIDER = '''
import scrapy


class Pages(scrapy.Spider):
    name = "pages"

    def __init__(self, start=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [start]

    def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)

    def closed(self, reason):
        import json
        with open("stats.json", "w") as file:
            json.dump(self.crawler.stats.get_stats(), file, default=str)
'''

SETTINGS = {
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "INFO",
}

EVERBLOOM = {"DUPEFILTER_CLASS": "everbloom.scrapy.DupeFilter"}


def links(page: int, pages: int) -> list[int]:
    """Two that reach every page within a few steps, and eleven at random."""
    others = random.Random(page)
    return [link % pages for link in (2 * page + 1, 2 * page + 2)] + [others.randrange(pages) for _ in range(11)]


class Site:
    """Serves pages 0 to `pages` and counts what is asked for."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.asked: Counter[str] = Counter()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                name = self.path.rsplit("/", 1)[1]
                if not name.isdecimal():
                    self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    return
                site.asked[self.path] += 1
                page = int(name)
                body = "".join(f'<a href="/page/{link}">{link}</a>\n' for link in links(page, pages)).encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
                self.wfile.write(head.encode() + body)

        class Server(ThreadingHTTPServer):
            def handle_error(self, request, client_address) -> None:
                """A crawl that was killed leaves its connections as they are."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.root = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> Site:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def url(self, page: int) -> str:
        return f"{self.root}/page/{page}"

    def take_asked(self) -> Counter[str]:
        """What was asked for since the last time."""
        asked, self.asked = self.asked, Counter()
        return asked


class Crawl:
    """A crawl by a process of its own; leaving it ends the process."""

    def __init__(self, site: Site, folder: Path, **settings: object) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "spider.py").write_text(SPIDER)
        (folder / "stats.json").unlink(missing_ok=True)
        self.folder = folder
        options = [part for name, value in (SETTINGS | settings).items() for part in ("-s", f"{name}={value}")]
        self.log = open(folder / "log.txt", "w+b")
        command = [sys.executable, "-m", "scrapy", "runspider", "spider.py", "-a", f"start={site.url(0)}", *options]
        # The folder of the package has a module called scrapy: Python must not look for others there.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self) -> Crawl:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def until(self, done, seconds: float = 600) -> None:
        """Waits for something that the crawl does."""
        end = time.monotonic() + seconds
        while not done():
            assert self.process.poll() is None, f"the crawl ended before that:\n{self.text()}"
            assert time.monotonic() < end, f"the crawl takes too long:\n{self.text()}"
            time.sleep(0.01)

    def send(self, signal_number: signal.Signals) -> int:
        """Sends a signal, waits for the end."""
        self.process.send_signal(signal_number)
        return self.process.wait(timeout=600)

    def end(self) -> int:
        return self.process.wait(timeout=1200)

    def text(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")

    def stats(self) -> dict:
        return json.loads((self.folder / "stats.json").read_text())
