"""The command line. Starting it loads click alone; each command loads what it needs."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from superarm.cli.analyse import analyse
from superarm.cli.datasets import datasets
from superarm.cli.design import design
from superarm.cli.forecast import forecast
from superarm.cli.lower_bound import lower_bound
from superarm.cli.maximise import maximise
from superarm.cli.reproduce import reproduce
from superarm.cli.simulate import simulate
from superarm.cli.study import study
from superarm.errors import SuperarmError

# Before NumPy is loaded: on our small matrices more BLAS threads only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class _Friendly(click.Group):
    """Turns our errors into one line on stderr and exit code 2; a full disk, say, into 1."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            click.echo(f"Error: the system says: {error.strerror or error}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SuperarmError as error:
            raise click.UsageError(str(error), ctx=None) from None
        except MemoryError:
            raise click.UsageError("this takes more memory than there is", ctx=None) from None
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)


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
main.add_command(datasets)
main.add_command(study)
main.add_command(reproduce)
