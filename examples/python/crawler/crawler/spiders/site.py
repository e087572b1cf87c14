import scrapy


class Site(scrapy.Spider):
    """Follows every link of a site: scrapy crawl site -a start=http://127.0.0.1:8000/ -s JOBDIR=job"""

    name = "site"

    def __init__(self, start: str, **arguments):
        super().__init__(**arguments)
        self.start_urls = [start]

    def parse(self, response):
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
