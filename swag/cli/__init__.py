"""The command line. A user's mistake is one line on stderr and exit code 2; a defect of ours is a traceback."""

import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from swag import __version__
from swag.durable.atomic_file import reason
from swag.errors import SwagError

WIDTH = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}


class Whole(click.IntRange):
    """A whole number, called so in messages."""

    name = "integer"


class File(click.ParamType):
    """The name of a file. What is there, if anything, is looked at by who reads or writes it."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not str(value) or "\0" in str(value):
            self.fail(f"{str(value)!r} is not the name of a file.", param, ctx)
        return Path(value)


FILE = File()


class Commands(click.Group):
    """A group that guesses what a misspelt command was meant to be."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A misspelt command is refused with the names of all commands, and the nearest one as a hint."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], known, n=1)
            hint = f"swag {close[0]}" if close else "swag --help"
            raise click.UsageError(f'there is no command "{args[0]}"; there are: {", ".join(known)}. Hint: {hint}')
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings=WIDTH, no_args_is_help=False, invoke_without_command=True)
@click.version_option(__version__, prog_name="swag", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Hundreds of sliding-window queries over one stream, answered from a few shared structures."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command(short_help="400 windows over a stream of trades, and what sharing saved.")
@click.option("--events", default=1_000_000, show_default=True, type=Whole(1000), help="Trades to generate.")
@click.option("--symbols", default=2000, show_default=True, type=Whole(10, 100_000), help="Symbols that are traded.")
@click.option("--seed", default=7, show_default=True, type=Whole(0), help="The same seed, the same trades.")
def demo(events: int, symbols: int, seed: int) -> None:
    """400 windows over a stream of trades: answers, the plan, and what sharing saved.

    Half a minute, and a little longer on the first run, to compile the kernels. Needs no files and no network.
    """
    from swag.cli.demo import show

    show(events, symbols, seed)


@cli.command(short_help="Compile everything, on all cores.")
def warm() -> None:
    """Compile everything that swag may need, on all cores, so that nobody waits for it later.

    The compiled kernels are kept in $SWAG_CACHE_DIR, or in swag's folder in the user's cache.
    """
    from swag.cli.warming import show

    show()


EVENTS = click.option(
    "--events", required=True, multiple=True, metavar="PATH",
    help="Parquet, CSV or Arrow, by its ending; with * in it, or several times, for several files.",
)  # fmt: skip
INLINE = click.option("-e", "inline", metavar="STATEMENT", multiple=True, help="A statement, in place of a file.")
TS = click.option("--ts", default="ts", show_default=True, help="The column of time.")
KEY = click.option(
    "--key", multiple=True, help="A column of the key; several times for several. If not said: those of GROUP BY."
)
CHUNK = click.option("--chunk", default=1_000_000, show_default=True, type=Whole(1), help="Events in memory at a time.")
STREAM = click.option(
    "--stream", "streams", multiple=True, metavar="NAME=PATH",
    help="Another stream, which frames are filled from (FILL FROM NAME): a file, read as a whole.",
)  # fmt: skip
OUT = click.option("--out", type=FILE, help="Parquet, CSV or Arrow, by its ending. Without it, answers are shown.")


def _files(paths: Iterable[str]) -> Any:
    from swag.files.files import Files, found

    return Files([file for path in paths for file in found(path)])


def _streams(said: Iterable[str]) -> dict[str, Any]:
    """The files of each stream, by its name."""
    paths: dict[str, list[str]] = {}
    for each in said:
        name, equals, path = each.partition("=")
        if not (name and equals and path):
            raise click.UsageError(f"--stream {each!r} is no name and a file. Hint: --stream messages=messages.parquet")
        paths.setdefault(name, []).append(path)
    return {name: _files(each) for name, each in paths.items()}


@cli.command(short_help="Answer SQL over files of events.")
@click.argument("queries", type=FILE, required=False)
@INLINE
@EVENTS
@TS
@KEY
@OUT
@click.option("--at", metavar="PATH", help="A file of requests: a row of answers for each, as of its time (and key).")
@click.option("--engine", default="embedded", show_default=True, type=click.Choice(["embedded", "spark"]))
@STREAM
@CHUNK
def run(queries: Path | None, inline: tuple[str, ...], events: tuple[str, ...], ts: str, key: tuple[str, ...],
        out: Path | None, at: str | None, engine: str, streams: tuple[str, ...], chunk: int) -> None:  # fmt: skip
    """Answer the statements in QUERIES over files of events: a row per event, or per request.

    Events in order of time are read chunk by chunk, in bounded memory.
    """
    from swag.cli import answering
    from swag.cli.files import check_apart

    rows, requests, others = _files(events), None if at is None else _files([at]), _streams(streams)
    read = {"--events": rows.paths, "--at": [] if requests is None else requests.paths}
    read |= {f"--stream {name}": files.paths for name, files in others.items()}
    check_apart({"QUERIES": [queries] if queries else []} | read, {"--out": out})
    asked = answering.statements(queries, inline)
    answering.check_streams(asked, others)
    if engine == "spark":
        from swag.cli.on_spark import run_on_spark

        run_on_spark(asked, rows, ts, key, out, requests, others)
    else:
        answering.run(asked, rows, ts, key, out, requests, chunk, others)


@cli.command(short_help="Find frames in a file of events.")
@click.argument("spec")
@EVENTS
@TS
@KEY
@OUT
@click.option("--plot", type=FILE, help="A picture of the frames, e.g. frames.png.")
@click.option(
    "--y", metavar="COLUMN", help="The column that --plot shows. If not said: the one that frames are cut by."
)
@STREAM
@CHUNK
def frames(spec: str, events: tuple[str, ...], ts: str, key: tuple[str, ...], out: Path | None, plot: Path | None,
           y: str | None, streams: tuple[str, ...], chunk: int) -> None:  # fmt: skip
    """Find frames by SPEC, a FRAME clause ("DELTA fl 0.05") or a statement that has one.

    A clause alone gives the frames; a statement also what it selects of each.
    """
    from swag.cli import answering

    if y is not None and plot is None:
        raise click.UsageError(f'--y "{y}" is what a picture shows, and there is none. Hint: --plot frames.png')
    answering.frames(spec, _files(events), ts, key, out, plot, chunk, _streams(streams), y)


@cli.command(short_help="What a file of SQL means, and what its queries would share.")
@click.argument("queries", type=FILE, required=False)
@INLINE
def explain(queries: Path | None, inline: tuple[str, ...]) -> None:
    """Read the statements in QUERIES and say what they would share. Needs no events."""
    from swag.cli.answering import statements
    from swag.cli.show import explain as explained

    click.echo(explained(statements(queries, inline)))


@cli.command(
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
    short_help="Measure swag against its peers (in a checkout).",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Measure swag against its peers (from a checkout of the repository)."""
    if not arguments:
        raise click.UsageError(
            "say what to measure. Hint: swag bench micro --quick; swag bench --help lists the others"
        )
    if importlib.util.find_spec("bench") is None:
        raise click.UsageError(
            "the benchmarks are not installed with swag. Hint: in a checkout of the repository, make bench"
        )
    try:
        run = importlib.import_module("bench").main
    except ImportError as why:
        if why.name is None or why.name.split(".")[0] in ("bench", "swag", "kernels", "frames"):
            raise
        raise click.UsageError(f'the benchmarks need "{why.name}". Hint: pip install -e ".[bench]"') from None
    except AttributeError:
        raise click.UsageError(
            'the package "bench" found here is not swag\'s. Hint: in a checkout, make bench'
        ) from None
    sys.exit(run(list(arguments)))


def main(arguments: list[str] | None = None) -> int:
    """The entry point; returns the exit code."""
    _open_what_is_closed()
    try:
        result: Any = cli.main(arguments, prog_name="swag", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.MissingParameter as mistake:
        of_events = mistake.param is not None and mistake.param.name == "events"
        instead = (
            "--events trades.parquet" if of_events or mistake.ctx is None else f"{mistake.ctx.command_path} --help"
        )
        return _refuse(f"{mistake.format_message()} Hint: {instead}")
    except click.ClickException as mistake:
        return _refuse(mistake.format_message())
    except SwagError as mistake:
        return _refuse(str(mistake))
    except MemoryError:
        return _refuse("there is not enough memory. Hint: a smaller --chunk, fewer columns or shorter windows")
    except (click.Abort, KeyboardInterrupt):
        _complain("stopped.")
        return 130
    except OSError as why:
        return _without_output(why)


def _without_output(why: OSError) -> int:
    """What could not be printed is dropped; else Python tries it again at its end, and complains itself."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    if isinstance(why, BrokenPipeError):  # swag demo | head: quiet, and 1, as click and rich end there as well
        return 1
    return _refuse(f"{why.filename or 'standard output'} can not be written: {reason(why)}.")


def _open_what_is_closed() -> None:
    """Standard streams that the caller has closed: what is printed fails, and no file is opened in their place."""
    for handle in (0, 1, 2):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if handle == 2 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def _refuse(message: str) -> int:
    _complain(" ".join(message.split()))
    return 2


def _complain(message: str) -> None:
    """Names and values come from files, and may hold what a terminal would obey."""
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in message)
    with suppress(OSError):  # nobody is there to be told
        click.echo(f"swag: {shown}", err=True)
