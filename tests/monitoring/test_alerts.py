"""Each alert fires for what it is for, and is silent beside it; promtool evaluates the real rules."""

import json

import pytest

from monitoring.rules import RULES, alerts, rules, run

HOST = 'job="mcp-bridge",instance="mcp1:8766"'
UP = {f"up{{{HOST}}}": "1x90"}
SERVER = f'{HOST},server="files"'
MINUTES = 60  # when the alerts are looked at, with a scrape a minute


def calls(**outcomes):
    return {
        f'mcp_bridge_calls_total{{{SERVER},outcome="{outcome}"}}': values
        for outcome, values in outcomes.items()
    }


def crashes(cause, values):
    return {f'mcp_bridge_crashes_total{{{SERVER},cause="{cause}"}}': values}


def state(word, values):
    return {f'mcp_bridge_server_state{{{SERVER},state="{word}"}}': values}


def dropped(values):
    return {f'mcp_bridge_dropped_lines_total{{{SERVER},reason="not_json_rpc"}}': values}


def refused(reason, values):
    return {f'mcp_bridge_egress_refusals_total{{{SERVER},reason="{reason}"}}': values}


def refusals(**reasons):
    return {
        f'mcp_bridge_refusals_total{{{HOST},reason="{reason}"}}': values
        for reason, values in reasons.items()
    }


NEW = "_x50 1x30"  # a counter that is not there before its first event, ten minutes ago
STEADY = "7x90"
# Alert: the series with which it fires, and the nearest with which it must not.
CASES = {
    "McpBridgeDown": ({f"up{{{HOST}}}": "1x50 0x30"}, {f"up{{{HOST}}}": "1x58 0x30"}),
    "McpBridgeConfigBroken": (
        {f"mcp_bridge_config_ok{{{HOST}}}": "1x50 0x30"},
        {f"mcp_bridge_config_ok{{{HOST}}}": "1x57 0x30"},
    ),
    "McpBridgeHostUnenforced": (
        {f'mcp_bridge_host_enforces{{{HOST},promise="memory"}}': "1x40 0x40"},
        {
            f'mcp_bridge_host_enforces{{{HOST},promise="memory"}}': "1x90",
            f'mcp_bridge_host_enforces{{{HOST},promise="io_weight"}}': "0x90",
        },
    ),
    "McpBridgeIssuerDown": (
        {f"mcp_bridge_issuer_ok{{{HOST}}}": "1x40 0x40"},
        {f"mcp_bridge_issuer_ok{{{HOST}}}": "1x55 0x30"},
    ),
    # promtool's clock begins at 0.
    "McpBridgeCertificateExpires": (
        {f"mcp_bridge_tls_expires_timestamp_seconds{{{HOST}}}": f"{13 * 86400}x90"},
        {f"mcp_bridge_tls_expires_timestamp_seconds{{{HOST}}}": f"{15 * 86400}x90"},
    ),
    "McpBridgeCertificateRefused": (
        {f"mcp_bridge_tls_ok{{{HOST}}}": "1x50 0x30"},
        {f"mcp_bridge_tls_ok{{{HOST}}}": "1x57 0x30"},
    ),
    "McpBridgeAuditFailing": (
        {f"mcp_bridge_audit_ok{{{HOST}}}": "1x50 0x30"},
        {f"mcp_bridge_audit_ok{{{HOST}}}": "1x59 0x30"},
    ),
    "McpBridgeAuditLost": (
        {f"mcp_bridge_audit_lost_total{{{HOST}}}": "0x50 5x30"},
        {f"mcp_bridge_audit_lost_total{{{HOST}}}": "0x30 5x50"},
    ),
    "McpBridgeUnauthorizedBurst": (
        {f"mcp_bridge_unauthorized_bursts_total{{{HOST}}}": "0x50 1x30"},
        {
            f"mcp_bridge_unauthorized_bursts_total{{{HOST}}}": "1x90",
            f"mcp_bridge_unauthorized_total{{{HOST}}}": "0+4x90",
        },
    ),
    "McpBridgeKnownCallerRefused": (
        refusals(mcp_server_project_mismatch="0+1x90"),
        refusals(
            mcp_server_project_mismatch="0x50 6x30",
            role_required="0x50 6x30",
            no_credential="0+9x90",
        ),
    ),
    "McpBridgeInternalErrors": (
        calls(ok="0+9x90", internal=NEW),
        calls(ok="0+9x90", internal="1x90"),
    ),
    "McpBridgeLimitsOutOfBand": (
        {f"mcp_bridge_limits_out_of_band{{{SERVER}}}": "0x40 1x40"},
        {f"mcp_bridge_limits_out_of_band{{{SERVER}}}": "0x55 1x30"},
    ),
    "McpBridgeBreakerOpen": (
        {f"mcp_bridge_breaker_open{{{SERVER}}}": "0x50 1x30"},
        {f"mcp_bridge_breaker_open{{{SERVER}}}": "1x50 0x30"},
    ),
    "McpBridgeCrashing": (crashes("exit", "_x50 1+1x30"), crashes("exit", "_x50 2x30")),
    "McpBridgeMemoryKill": (crashes("memory", NEW), crashes("memory", STEADY)),
    "McpBridgeInstallFailed": (
        state("install_failed", "0x50 1x30"),
        state("install_failed", "0x57 1x30"),
    ),
    "McpBridgeSecretMissing": (
        state("credential_missing", "0x50 1x30"),
        state("credential_missing", "0x57 1x30"),
    ),
    "McpBridgeDefinitionRefused": (
        {f"mcp_bridge_definition_ok{{{SERVER}}}": "1x50 0x30"},
        {f"mcp_bridge_definition_ok{{{SERVER}}}": "1x57 0x30"},
    ),
    "McpBridgeToolsHeld": (
        {f'mcp_bridge_tools_unaccepted{{{SERVER},drift="hold"}}': "0x50 1x30"},
        {
            f'mcp_bridge_tools_unaccepted{{{SERVER},drift="hold"}}': "0x57 1x30",
            f'mcp_bridge_tools_unaccepted{{{SERVER},drift="warn"}}': "5x90",
        },
    ),
    "McpBridgeInstallSlow": (state("installing", "0x20 1x70"), state("installing", "0x40 1x50")),
    "McpBridgeCallsRefused": (calls(queue_full=NEW), calls(queue_full=STEADY)),
    "McpBridgeCallsTimeOut": (
        calls(ok="0+10x90", call_timeout="0+1x90"),
        calls(ok="0+100x90", call_timeout="0+1x90"),
    ),
    "McpBridgeCallsFailing": (
        calls(ok="0+10x90", server_crashed="0+1x90"),
        calls(ok="0+100x90", server_crashed="0+1x90", tool_denied="0+50x90"),
    ),
    "McpBridgeLinesDropped": (
        dropped("0+100x90"),
        dropped("0+1x90")
        | {f'mcp_bridge_dropped_lines_total{{{SERVER},reason="no_stream"}}': "0+100x90"},
    ),
    "McpBridgeEgressRefused": (
        refused("not_listed", "_x50 20x30"),
        refused("not_listed", "20x90") | refused("connect_failed", "0+20x90"),
    ),
}


def fires(program, folder, series, alert):
    """Whether this alert, and no other rule, made it to firing with these series."""
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    found = {"labels": f'{{alertname="{alert}"}}', "value": 1} if alert else None
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in {**UP, **series}.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": expression,
                        "eval_time": f"{MINUTES}m",
                        "exp_samples": [found] if found else [],
                    }
                ],
            }
        ],
    }
    path = folder / "case.yml"
    path.write_text(json.dumps(test), encoding="utf-8")  # JSON is YAML
    run(program, "test", "rules", path)


def test_promtool_has_nothing_to_say_of_the_rules(need):
    assert f"{len(rules())} rules found" in run(need("promtool"), "check", "rules", RULES)


def test_every_alert_is_tried():
    assert set(CASES) == set(alerts())


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_alone(need, tmp_path, alert):
    fires(need("promtool"), tmp_path, CASES[alert][0], alert)


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_is_silent_beside_what_it_is_for(need, tmp_path, alert):
    fires(need("promtool"), tmp_path, CASES[alert][1], None)


def test_old_crashes_are_no_news_to_a_prometheus_that_begins_now(need, tmp_path):
    """Without a look at the host before, nobody knows when they were."""
    begins = {f"up{{{HOST}}}": "_x55 1x30", **crashes("memory", "_x55 7x30")}
    fires(need("promtool"), tmp_path, begins, None)


def test_a_crash_after_a_restart_of_the_proxy_counts(need, tmp_path):
    fires(need("promtool"), tmp_path, crashes("memory", "7x48 _x2 1x40"), "McpBridgeMemoryKill")


@pytest.mark.parametrize("alert", alerts())
def test_an_alert_says_what_is_so_and_what_to_type(alert):
    rule = alerts()[alert]

    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["for"]
    assert {"summary", "description"} == set(rule["annotations"])
    assert "$labels.instance" in rule["annotations"]["summary"]
    assert "type:" in rule["annotations"]["description"]
