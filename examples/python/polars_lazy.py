"""The same in a lazy query of Polars: the filter is asked batch by batch as rows stream through."""

import polars as pl

import everbloom

seen = everbloom.Filter("blocked", expect=100_000, fpr="0.01%")
events = pl.LazyFrame({"id": [number % 55_301 for number in range(200_000)], "value": range(200_000)})

new = pl.col("id").map_batches(seen.add_many, return_dtype=pl.Boolean)
first = events.filter(new).select(pl.len(), pl.col("value").max().alias("last")).collect()
print(f"{first.item(0, 'len')} first events, the last is {first.item(0, 'last')}")
