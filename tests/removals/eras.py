"""Removals of 2026-07-28, tokens, eras and stdio, by id; a second one of an id has a word more."""

from removals.importing import Removal

HTTP = "live/test_http.py::test_"
MODERN = "live/test_modern.py::test_"
ERAS = "live/test_eras.py::test_"
IDS = "live/test_ids.py::test_"
PROTOCOL = "live/test_protocol.py::test_"
MISMATCH = MODERN + "a_header_that_differs_from_the_body_is_a_mismatch"
GONE = "live/test_unauthorized.py::test_"

OTHERS = {
    # E: 2026-07-28
    "E1": Removal(
        "proxy/endpoint.py",
        "(modern.post, MODERN_ERA) if is_modern else (handshake.post, HANDSHAKE)",
        "(modern.post, MODERN_ERA)",
        MODERN + "both_eras_work_at_once_on_one_url",
    ),
    "E2": Removal(
        "sessions/shared.py",
        'if method == "server/discover":',
        'if method == "":',
        MODERN + "discover_names_what_is_served",
    ),
    "E3": Removal(
        "proxy/modern.py",
        "if _single(request, METHOD_HEADER, client_id) != incoming.method:",
        "if False:",
        MISMATCH,
    ),
    "E4": Removal(
        "proxy/modern.py",
        "if name is None or _decoded(name) != incoming.params.get(key):",
        "if False:",
        MISMATCH,
    ),
    "E4 base64": Removal(
        "proxy/modern.py",
        "_decoded(name) != incoming.params.get(key)",
        "name != incoming.params.get(key)",
        MODERN + "header_names_have_no_case_and_names_may_be_base64",
    ),
    "E5": Removal(
        "sessions/shared.py",
        "check(found, sent)",
        "pass",
        "conformance/test_probes.py::test_a_probe_sees_what_is_right[shared-M27]",
    ),
    "E6": Removal(
        "proxy/modern.py",
        "if header is None or (stated is not None and stated != header):",
        "if header is None:",
        MISMATCH,
    ),
    "E7": Removal(
        "proxy/modern.py",
        "if stated is None or not isinstance(meta.get(META_CAPABILITIES), dict):",
        "if False:",
        MODERN + "a_modern_request_without_its_envelope_is_invalid",
    ),
    "E8": Removal(
        "sessions/exchange.py",
        "        return 404\n",
        "        return 200\n",
        MODERN + "a_method_that_the_server_lacks_is_404_with_its_own_error",
    ),
    "E9": Removal(
        "sessions/exchange.py",
        "return 400 if code in MODERN_ERRORS else 200",
        "return 200",
        "conformance/test_probes.py::test_a_probe_sees_what_is_right[shared-M20]",
    ),
    "E10": Removal(
        "proxy/endpoint.py",
        'case "GET" | "DELETE" if request.headers.get(VERSION_HEADER) == MODERN:',
        'case "HEAD":',
        HTTP + "a_modern_client_may_only_post",
    ),
    "E11": Removal(
        "proxy/modern.py",
        "    _check(request, incoming, client_id or NULL, served.conversations.versions)\n",
        "    _check(request, incoming, client_id or NULL, served.conversations.versions)\n"
        '    if "Mcp-Session-Id" in request.headers:\n'
        '        raise Refusal(error_reply(404, INVALID_REQUEST, "session not found"))\n',
        PROTOCOL + "the_modern_era_ignores_a_session_id_and_makes_none",
    ),
    "E12": Removal(
        "proxy/modern.py",
        'raise Refusal(error_reply(400, INVALID_REQUEST, "responses do not exist in 2026-07-28"))',
        "return web.Response(status=202)",
        MODERN + "a_response_as_a_modern_body_is_refused_and_a_notification_is_202",
    ),
    "E13": Removal(
        "channels/channel.py",
        "        if self._on_request(message, line):\n",
        "        for call in self.pending.values():\n            self.push(call, line)\n"
        "        if self._on_request(message, line):\n",
        ERAS + "a_servers_request_never_reaches_a_modern_stream[shared]",
    ),
    "E14": Removal(
        "sessions/exchange.py",
        'self.channel.cancel(self.call, "the client closed the response stream")',
        "pass",
        IDS + "a_modern_client_that_closes_its_stream_has_cancelled",
    ),
    "E15": Removal(
        "sessions/notices.py",
        "jsonrpc.dumps(listener.subscription)",
        'b"0"',
        ERAS + "a_listener_of_a_handshake_server_hears_what_it_asked_for",
    ),
    "E16": Removal(
        "proxy/listening.py",
        "                await response.write(event(listener.farewell()))\n",
        "",
        ERAS + "a_listener_gets_the_closing_result_when_its_server_goes",
    ),
    "E17": Removal(
        "channels/channel.py",
        '        params["progressToken"] = call.token\n',
        "",
        "conformance/test_probes.py::test_a_probe_sees_what_is_right[shared-M17]",
    ),
    "E18": Removal(
        "sessions/notices.py",
        "asked = [call for call in pending if call.log_level is not None]",
        "asked = pending",
        ERAS + "logs_of_a_handshake_server_come_to_the_call_that_asks_for_them",
    ),
    "E19": Removal(
        "sessions/shared.py",
        "            level = meta_of(sent).get(META_LOG_LEVEL)\n",
        "            level = meta_of(sent).get(META_LOG_LEVEL)\n"
        '            params_of(message).pop("requestState", None)\n',
        "conformance/test_probes.py::test_a_probe_sees_what_is_right[shared-M19]",
    ),
    "E20": Removal(
        "sessions/catalog.py",
        "if self._whose not in (None, whose):",
        "if False:",
        ERAS + "a_private_list_is_kept_for_the_token_that_got_it[private-2]",
    ),
    "E21": Removal(
        "sessions/isolated.py",
        "key = principal.digest, jsonrpc",
        'key = "", jsonrpc',
        ERAS + "modern_requests_share_a_process_of_all_or_of_one_token[isolated-False]",
    ),
    # F: tokens
    "F1": Removal(
        "proxy/replies.py",
        '{"error": "invalid_token", **hints}',
        "hints",
        GONE + "each_form_gets_one_answer_on_every_method_and_in_every_state",
    ),
    "F4": Removal(
        "proxy/endpoint.py",
        "        request.rel_url.raw_path,\n        response.status,\n",
        "        request.rel_url.raw_path_qs,\n        response.status,\n",
        "live/test_policy.py::test_a_token_never_reaches_the_server_nor_the_log",
    ),
    "F8": Removal(
        "policy/cors.py",
        '    "Mcp-Method",\n',
        "",
        "live/test_cors.py::test_a_preflight_of_a_configured_origin_needs_no_token",
    ),
    # G: eras
    "G1": Removal(
        "channels/greeting.py",
        "return await _initialize_beside(channel, probe, deadline, capabilities)",
        'raise CallError(Cause.START_FAILED, "it says nothing") from None',
        ERAS + "a_server_that_fails_the_question_for_its_era_serves_clients_of_both[shared]",
    ),
    "G2": Removal(
        "sessions/shared.py",
        "        if self.era is Era.MODERN:\n            return self._begin_dressed(",
        "        if False:\n            return self._begin_dressed(",
        ERAS + "a_process_that_takes_one_era_only_serves_clients_of_both",
    ),
    "G3": Removal(
        "sessions/shared.py",
        "                undress(params_of(message))\n",
        '                raise CallError(Cause.METHOD_DENIED, "the server speaks the handshake only")\n',
        ERAS + "a_modern_client_is_served_by_a_handshake_server[shared]",
    ),
    "G4": Removal(
        "sessions/dialects.py",
        '    info = {"name": "", "version": "", **server_info(hello)}\n',
        '    info = {"name": "", "version": "", **server_info(hello)}\n    version = ""\n',
        ERAS + "a_handshake_client_is_served_by_a_shared_modern_server_and_refused_elsewhere",
    ),
    "G5": Removal(
        "sessions/exchange.py",
        'members = b"" if "resultType" in result else COMPLETE',
        'members = b""',
        ERAS + "what_a_handshake_server_lacks_of_the_modern_era_is_added",
    ),
    "G5 code": Removal(
        "sessions/exchange.py",
        'if error.get("code") == RESOURCE_NOT_FOUND:',
        "if False:",
        ERAS + "what_a_handshake_server_lacks_of_the_modern_era_is_added",
    ),
    "G6": Removal(
        "model/versions.py",
        'return tuple(version for version in SUPPORTED if version in hello["supportedVersions"])',
        "return SUPPORTED",
        ERAS + "discover_names_the_handshake_where_it_is_served_only[isolated-modern-False]",
    ),
    # H: stdio
    "H2": Removal(
        "channels/channel.py",
        '        self._on_dropped("not_json_rpc")\n        if not self.noise:',
        "        if not self.noise:",
        "live/test_framing.py::test_noise_on_stdout_is_skipped_and_counted",
    ),
    "H4": Removal(
        "channels/instance.py",
        "death = await channel.process.stop(self.spec.timeouts.stop)",
        "death = await channel.process.stop(0)",
        "live/test_hostile.py::test_a_server_that_needs_three_seconds_to_stop_gets_them",
    ),
    "H5": Removal(
        "channels/channel.py",
        "LineSplitter(caps.line)",
        "LineSplitter(1 << 30)",
        "live/test_framing.py::test_an_answer_above_the_cap_fails_that_call_alone",
    ),
    "H6": Removal(
        "channels/channel.py",
        '        self.notify("notifications/cancelled", {"requestId": call.number, "reason": reason})\n'
        "        who",
        "        who",
        IDS + "what_a_caller_gets_after_a_missed_deadline_is_an_error_of_its_own",
    ),
    "H7": Removal(
        "channels/pipes.py",
        "return cls(both, both, duplex=True)",
        "return cls(both, both, duplex=False)",
        "unit/channels/test_pipes.py::test_lines_cross_pipes_and_a_socket_alike[one_socket]",
    ),
    "H8": Removal(
        "channels/channel.py",
        'if message["method"] == "ping":',
        "if False:",
        PROTOCOL + "a_ping_of_the_server_is_answered",
    ),
}
