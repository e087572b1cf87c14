# %% [markdown]
# How much memory does it take to know which visitors came before? Run the cells one by one in a notebook or an editor
# that knows `# %%`, or the whole file: python notebook.py

# %%
import random

import everbloom

# %% [markdown]
# A million visitors, of whom we may take one in a thousand for somebody who came before.

# %%
plan = everbloom.plan(expect=1_000_000, fpr="0.1%")
print(plan)

# %% [markdown]
# What if there were only 256 KiB, and the stream never ended? The plan says what such a filter forgets.

# %%
small = everbloom.plan(memory="256KiB", fpr="0.1%", expect=1_000_000, stream="zipf:1")
print(small)
print(f"repeats missed: {small.forecast.predicted_fnr:.1%} of them")

# %% [markdown]
# The filter itself: `add` is True for what is new. Whole arrays, lists and columns go in at once.

# %%
draw = random.Random(1)
visits = [f"visitor-{int(draw.paretovariate(0.6)) % 1_000_000}" for _ in range(200_000)]

seen = plan.build()
new = seen.add_many(visits)
print(f"{len(visits):,} visits by {new.sum():,} visitors; a set counts {len(set(visits)):,}")

# %% [markdown]
# It can be saved, and read by the command line or another process.

# %%
again = everbloom.Filter.from_bytes(seen.to_bytes())
print(again == seen, visits[0] in again, "nobody" in again)
print(again.status())
