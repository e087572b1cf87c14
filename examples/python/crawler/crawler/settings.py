BOT_NAME = "crawler"
SPIDER_MODULES = ["crawler.spiders"]
ROBOTSTXT_OBEY = True

# The one line: 64 MiB for ever, and at most one new page in 10,000 is lost.
DUPEFILTER_CLASS = "everbloom.scrapy.DupeFilter"

# Pages near the start are remembered longest, should memory ever be short.
EVERBLOOM_IMPORTANCE = "depth"
