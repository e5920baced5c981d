"""The command line. Starting it loads click alone; each command loads what it needs."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from superarm.cli import defaults
from superarm.cli.analyse import analyse
from superarm.cli.campaign import campaign
from superarm.cli.config import config
from superarm.cli.datasets import datasets
from superarm.cli.design import design
from superarm.cli.forecast import forecast
from superarm.cli.lower_bound import lower_bound
from superarm.cli.maximise import maximise
from superarm.cli.reproduce import reproduce
from superarm.cli.serve import serve, token
from superarm.cli.simulate import simulate
from superarm.cli.store import store
from superarm.cli.study import study
from superarm.cli.verify import verify
from superarm.errors import (
    CampaignError,
    ConflictError,
    MeasurementError,
    StoreError,
    SuperarmError,
)

# Before NumPy is loaded: on our small matrices more BLAS threads only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


EXTRAS = {
    "campaign": ("alembic", "narwhals", "platformdirs", "sqlalchemy"),
    "postgresql": ("psycopg",),
}
"""Libraries that come with an extra."""


class _Conflict(click.ClickException):
    """A total contradicts one that is there."""

    exit_code = 4


class _Friendly(click.Group):
    """Turns our errors into one line on stderr and an exit code.

    That is 2 for what is wrong with the call, 4 for a total that contradicts one that is there, and
    1 for the rest: the state of a campaign or a store, a program that fails, a full disk.
    """

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            click.echo(f"Error: the system says: {error.strerror or error}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            ctx.default_map = _defaults(self)
            return super().invoke(ctx)
        except SuperarmError as error:
            raise _failure(error) from None
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        except MemoryError:
            raise click.UsageError("this takes more memory than there is", ctx=None) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)


def _defaults(group: click.Group) -> dict[str, object]:
    from superarm.config import from_files

    found = from_files()
    return defaults.apply(group, {key: setting.value for key, setting in found.items()})


def _failure(error: SuperarmError) -> click.ClickException:
    """Return what click shows of an error, with its exit code."""
    if isinstance(error, ConflictError):
        return _Conflict(str(error))
    if isinstance(error, CampaignError | StoreError | MeasurementError):
        return click.ClickException(str(error))
    return click.UsageError(str(error), ctx=None)


def _missing(error: ModuleNotFoundError) -> Exception:
    """Return what to install where an extra is missing; any other module is a fault of ours."""
    for extra, modules in EXTRAS.items():
        if (error.name or "").partition(".")[0] in modules:
            return click.ClickException(f'campaigns need: pip install "superarm[{extra}]"')
    return error


@click.group(cls=_Friendly, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="superarm", prog_name="superarm")
def main() -> None:
    """Find the best k of n arms when only the noisy total of k of them can be measured."""


main.add_command(simulate)
main.add_command(maximise)
main.add_command(forecast)
main.add_command(lower_bound)
main.add_command(design)
main.add_command(analyse)
main.add_command(campaign)
main.add_command(verify)
main.add_command(store)
main.add_command(datasets)
main.add_command(study)
main.add_command(reproduce)
main.add_command(serve)
main.add_command(token)
main.add_command(config)
defaults.listen(main)
