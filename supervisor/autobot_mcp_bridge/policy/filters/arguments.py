"""Filters over what a call brings along (SM-19, SM-58)."""

import logging
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from autobot_mcp_bridge.model.errors import CallError, Cause
from autobot_mcp_bridge.policy.filters.decoding import forms
from autobot_mcp_bridge.policy.filters.patterns import Pattern, any_of, compiled
from autobot_mcp_bridge.policy.filters.texts import texts_of
from autobot_mcp_bridge.policy.manifest.model import ArgumentFilter

log = logging.getLogger(__name__)


class ArgumentFilters:
    """The filters of one manifest; those that block are asked before those that only tell.

    Strings are looked at however deep they lie in an argument (scoped-mcp: on its top level only),
    and so are the keys beside them; `fields` name the argument.
    """

    def __init__(self, filters: tuple[ArgumentFilter, ...]) -> None:
        ordered = sorted(filters, key=lambda each: each.action != "block")
        groups: dict[tuple[Any, ...], list[ArgumentFilter]] = defaultdict(list)
        for each in ordered:
            groups[each.action, each.fields, each.decode].append(each)
        # One search for all filters that look at the same texts; only if it finds something, each.
        self._groups = [
            (any_of([(f.pattern, f.case_insensitive) for f in group]), fields, decode, group)
            for (_, fields, decode), group in groups.items()
        ]

    def check(self, arguments: dict[str, Any], instance: str, what: object) -> None:
        """Look at all of them.

        Raises:
            CallError: one blocks; it names neither filter nor field.
        """
        for detector, fields, decode, group in self._groups:
            for field, text in _fields(arguments, fields):
                for number, form in enumerate(forms(text, decode)):
                    if detector.search(form) is not None:
                        _report(group, form, field, "decoded" if number else "raw", instance, what)


def _report(
    group: list[ArgumentFilter], text: str, field: str, form: str, instance: str, what: object
) -> None:
    """Never the value: only which filter, which argument, and whether it had to be decoded."""
    for each in group:
        if _pattern(each).search(text) is None:
            continue
        said = f"{instance}: {what}: argument {field!r} ({form}) matches filter {each.name!r}"
        log.warning("%s: %s", said, each.action, extra={"MCP_INSTANCE": instance})
        if each.action == "block":
            raise CallError(Cause.ARGUMENTS_REFUSED, "the arguments are not allowed")


def _pattern(each: ArgumentFilter) -> Pattern:
    return compiled(each.pattern, case_insensitive=each.case_insensitive)


def _fields(arguments: dict[str, Any], fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, value in arguments.items():
        if "*" in fields or name in fields:
            for text in texts_of(value):
                yield name, text
