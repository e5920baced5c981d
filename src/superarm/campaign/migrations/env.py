"""What Alembic runs: the migrations, on the connection that `migrate` gives it."""

from __future__ import annotations

from alembic import context

from superarm.campaign.migrate import VERSION_TABLE
from superarm.campaign.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()
