"""Removals of keys and projects, by id; a second one of an id has a word more."""

from removals.importing import Removal

PROJECTS = "policy/test_projects.py::test_"
V1 = "policy/test_v1.py::test_"
ONLY = PROJECTS + "a_projects_server_is_called_from_that_project_only"

PRINCIPALS = {
    "NV-24": Removal(
        "policy/projects.py",
        "    if project in (None, context):\n        return\n",
        "    if project != {}:\n        return\n",
        f"{ONLY}[key of shop-handshake]",
    ),
    "NV-24 header": Removal(
        "policy/projects.py",
        "if key.project is not None and named != key.project:",
        "if False:",
        f"{ONLY}[key of web that says shop-modern]",
    ),
    "NV-25": Removal(
        "proxy/authenticate.py",
        "raise Mismatch(CallError(Cause.PROJECT_MISMATCH, str(error))) from None",
        "self.bridge.loaded += 0",
        f"{ONLY}[key of shop-modern]",
    ),
    "NV-26": Removal(
        "proxy/v1/api.py",
        "if route.changes or not may_view(key, server.project, context):",
        "if route.changes:",
        V1 + "from_another_project_every_route_about_a_server_is_403[files]",
    ),
    "NV-26 delete": Removal(
        "proxy/v1/api.py",
        "if route.changes or not may_view(key, server.project, context):",
        "if not route.changes and not may_view(key, server.project, context):",
        V1 + "from_another_project_every_route_about_a_server_is_403[nobody]",
    ),
    "NV-27 counted": Removal(
        "proxy/refusals.py",
        "self.counts[it.reason] += 1",
        "self.counts[it.reason] += 0",
        f"{ONLY}[key of the tenant-modern]",
    ),
    "NV-27 logged": Removal(
        "proxy/refusals.py", "log.info(", "log.debug(", f"{ONLY}[key of the tenant-handshake]"
    ),
    "NV-28": Removal(
        "policy/projects.py",
        "    if project in (None, context):\n        return\n",
        "    if project == context:\n        return\n",
        f"{ONLY}[key of web-handshake]",
    ),
    "NV-29": Removal(
        "policy/projects.py",
        "return context is None and not OVERSEERS.isdisjoint(key.roles)",
        "return False",
        V1 + "who_sees_which_servers[security_officer]",
    ),
    "NV-29 others": Removal(
        "policy/projects.py",
        "return context is None and not OVERSEERS.isdisjoint(key.roles)",
        "return context is None",
        V1 + "who_sees_which_servers[member]",
    ),
    "NV-29 context": Removal(
        "policy/projects.py",
        "return context is None and not OVERSEERS.isdisjoint(key.roles)",
        "return not OVERSEERS.isdisjoint(key.roles)",
        V1 + "who_sees_which_servers[tenant_admin]",
    ),
    "NV-30": Removal(
        "config/keys.py",
        "label=order.label,",
        "label=key,",
        "policy/test_keys.py::test_no_key_stands_in_the_log_or_the_state",
    ),
    "SM-01": Removal(
        "model/agents.py",
        "return _ID.fullmatch(text) is not None",
        "return _ID.match(text) is not None",
        "unit/policy/test_keys.py::test_what_the_patterns_do_not_match_whole_is_refused",
    ),
    "SM-01 both": Removal(
        "cli/key.py",
        "    if lacking:\n",
        "    if len(lacking) == 1:\n",
        "unit/cli/test_key.py::test_a_key_names_its_agent_and_what_is_missing_is_told_at_once",
    ),
}
