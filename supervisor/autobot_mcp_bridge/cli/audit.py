"""`mcp-bridge audit`: the records of calls, checked and shown."""

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson

from autobot_mcp_bridge.cli.common import Subparsers, note, places_of, print_json, printable
from autobot_mcp_bridge.config.errors import DataError, MissingError
from autobot_mcp_bridge.config.places import Places
from autobot_mcp_bridge.model.errors import UsageError
from autobot_mcp_bridge.policy.audit.files import files
from autobot_mcp_bridge.policy.audit.outcome import Status
from autobot_mcp_bridge.policy.audit.reading import following, lines
from autobot_mcp_bridge.policy.audit.show import Wanted, point_in_time, row
from autobot_mcp_bridge.policy.audit.verify import Verdict, noted_head, torn_files, verify

# How often `show -f` looks for more.
POLL = 0.2
_FILTERS = ("tenant", "server", "tool", "status", "principal")


def add_parser(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("audit", help="check and show the records of calls")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    check = verbs.add_parser(
        "verify",
        help="check that no record was changed or removed",
        epilog="Whoever may write the files can make a whole chain anew: note the last line's "
        "number and digest elsewhere, and give them with --expect.",
    )
    check.add_argument("files", nargs="*", type=Path, metavar="FILE", help="default: all, in order")
    check.add_argument(
        "--expect", metavar="SEQ:HASH", type=_head, help="a line that must be among them"
    )
    check.add_argument("--json", action="store_true", help="for programs")
    show = verbs.add_parser("show", help="show records")
    for name in _FILTERS:
        choices = [*Status] if name == "status" else None
        metavar = None if choices else name.upper()
        show.add_argument(f"--{name}", metavar=metavar, choices=choices)
    show.add_argument("--since", metavar="TIME", help="a date, a time, or how long ago (2h)")
    show.add_argument("--until", metavar="TIME", help="the same")
    show.add_argument("-f", "--follow", action="store_true", help="go on as calls end")
    show.add_argument("--json", action="store_true", help="the lines as they stand in the file")


def run(args: argparse.Namespace) -> int:
    places = places_of(args)
    return _verify(args, places) if args.verb == "verify" else _show(args, places)


def _head(text: str) -> tuple[int, str]:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise argparse.ArgumentTypeError("allowed is SEQ:HASH, as `audit verify` prints them")
    return int(number), digest


def _paths(places: Places) -> list[Path]:
    found = files(places.audit_d)
    if not found:
        raise MissingError(f"no calls are recorded in {places.audit_d} (audit.file in host.toml)")
    return found


# ---- verify ----


def _verify(args: argparse.Namespace, places: Places) -> int:
    head = None if args.files else noted_head(places.audit_d)
    verdict = verify(args.files or _paths(places), head, args.expect)
    if not args.files:
        verdict.torn = torn_files(places.audit_d)
    if args.json:
        print_json(_as_data(verdict))
    else:
        _print(verdict)
    return 0 if verdict.clean else DataError.exit_code


def _print(verdict: Verdict) -> None:
    for fault in verdict.faults:
        print(fault)
    if verdict.more:
        print(f"and {verdict.more} more")
    for name in verdict.torn:
        note(f"{name} holds the beginning of a line that was never written whole")
    if verdict.first > 1:
        note(f"the chain begins with line {verdict.first}: older files are no longer kept")
    if verdict.clean:
        seq, digest = verdict.last
        print(f"{verdict.lines} lines, as they were written; the last is {seq}:{digest}")


def _as_data(verdict: Verdict) -> dict[str, object]:
    return {
        "clean": verdict.clean,
        "lines": verdict.lines,
        "first": verdict.first,
        "last": {"seq": verdict.last[0], "hash": verdict.last[1]},
        "faults": [
            {"file": fault.file, "line": fault.line, "what": fault.what} for fault in verdict.faults
        ],
        "more": verdict.more,
        "torn": verdict.torn,
    }


# ---- show ----


def _show(args: argparse.Namespace, places: Places) -> int:
    wanted = Wanted(
        {name: text for name in _FILTERS if (text := getattr(args, name)) is not None},
        _time(args.since),
        _time(args.until),
    )
    for data in _lines(places, follow=args.follow):
        try:
            record = orjson.loads(data)
        except ValueError:
            note("a line is no record; `mcp-bridge audit verify` says which")
            continue
        if not isinstance(record, dict) or not wanted.is_met(record):
            continue
        text = data.decode() if args.json else "  ".join(row(record)).rstrip()
        print(text if args.json else printable(text), flush=args.follow)
    return 0


def _time(text: str | None) -> str:
    if text is None:
        return ""
    try:
        return point_in_time(text, datetime.now(UTC))
    except ValueError as error:
        raise UsageError(f"{text}: {error}") from None


def _lines(places: Places, *, follow: bool) -> Iterator[bytes]:
    paths = _paths(places)
    if not follow:
        for path in paths:
            yield from (line.data for line in lines(path) if line.whole)
        return
    sys.stdout.flush()
    for data in following(places.audit_d):
        if data is None:
            time.sleep(POLL)
        else:
            yield data
