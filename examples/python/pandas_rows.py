"""Rows of a table that did not come before, chunk by chunk: memory stays the same however long the file is."""

import io

import pandas as pd

import everbloom

# A file that does not fit into memory would be read the same way: pd.read_csv(path, chunksize=…).
rows = "\n".join(f"user{number * number % 5000},{number}" for number in range(50_000))
table = io.StringIO("user,visit\n" + rows)

seen = everbloom.Filter("blocked", expect=10_000, fpr="0.01%")
firsts = [chunk[seen.add_many(chunk["user"])] for chunk in pd.read_csv(table, chunksize=8192)]
first_visits = pd.concat(firsts)
print(f"{len(first_visits)} first visits of 50000")

# Only rows whose user is known: the other way round.
known = pd.DataFrame({"user": ["user0", "user1", "nobody"]})
print(known[seen.contains_many(known["user"])]["user"].tolist())
