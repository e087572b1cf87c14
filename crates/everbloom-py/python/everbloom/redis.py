"""One filter on Redis or Valkey servers, shared by many processes and machines.

The servers need everbloom's module; a single server and a cluster work the same.

.. code-block:: python

    from everbloom.redis import Filter

    clicks = Filter("clicks", "redis://localhost:6379", memory="1GiB", fpr="1%")
    new = rows[clicks.add_many(rows["id"])]
"""

from ._errors import ExistsError, NotFoundError, ServerError, UsageError
from ._everbloom import RedisFilter as Filter

__all__ = ["ExistsError", "Filter", "NotFoundError", "ServerError", "UsageError"]
