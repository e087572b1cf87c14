"""A function of DuckDB that is true for what did not come before."""

import duckdb

import everbloom

seen = everbloom.Filter("blocked", expect=100_000, fpr="0.01%")
connection = duckdb.connect()
# It changes the filter, so DuckDB must not leave calls out.
connection.create_function("unseen", lambda ids: seen.add_many(ids), ["BIGINT"], "BOOLEAN", type="arrow", side_effects=True)
connection.execute("CREATE TABLE events AS SELECT range % 55301 AS id FROM range(200000)")

new = connection.execute("SELECT count(*) FROM events WHERE unseen(id)").fetchone()[0]
again = connection.execute("SELECT count(*) FROM events WHERE unseen(id)").fetchone()[0]
print(f"{new} ids; {again} the second time")
connection.close()
