"""A removal for most lines of the protocol, by id; a second one of an id has a word more."""

from removals.importing import Removal

HTTP = "live/test_http.py::test_"
SESSIONS = "live/test_sessions.py::test_"
MODERN = "live/test_modern.py::test_"
ERAS = "live/test_eras.py::test_"
RESUME = "live/test_resume.py::test_"
IDS = "live/test_ids.py::test_"
PROTOCOL = "live/test_protocol.py::test_"
MISMATCH = MODERN + "a_header_that_differs_from_the_body_is_a_mismatch"
GONE = "live/test_unauthorized.py::test_"

REMOVALS = {
    # A: plain HTTP
    "A2": Removal(
        "proxy/endpoint.py",
        'return not_allowed("GET, POST, DELETE")',
        "return web.Response(status=400)",
        HTTP + "another_method_is_405_and_told_what_is_allowed",
    ),
    "A3": Removal(
        "proxy/endpoint.py",
        "if origin is not None and not self._origins.origin_allowed(origin):",
        "if origin is None and not self._origins.origin_allowed(str(origin)):",
        HTTP + "a_foreign_origin_is_403_with_or_without_a_token",
    ),
    "A4": Removal(
        "proxy/endpoint.py",
        'if not self._origins.host_allowed(single(request, "Host")):',
        "if False:",
        HTTP + "a_foreign_host_is_421_before_anything_else",
    ),
    "A5": Removal(
        "config/relations.py",
        "elif not address.is_loopback and not host.listen.beyond_loopback:",
        "elif False:",
        "unit/config/test_load.py::test_host_settings_that_must_not_be_are_refused",
    ),
    "A6": Removal(
        "proxy/endpoint.py",
        "        self.check_origin(request)\n        if request.method",
        "        await self._authenticate(request)\n"
        "        self.check_origin(request)\n        if request.method",
        GONE + "foreign_hosts_and_origins_come_before_the_token",
    ),
    "A7": Removal(
        "proxy/incoming.py",
        "if content_type != JSON and",
        "if not content_type and",
        HTTP + "a_post_that_is_not_declared_as_json_is_415",
    ),
    "A8": Removal(
        "proxy/incoming.py",
        "if not accepts.json and not accepts.stream:",
        "if False:",
        HTTP + "a_client_that_takes_neither_form_is_406",
    ),
    "A9": Removal(
        "proxy/handshake.py",
        "if not accepts_of(request).stream:",
        "if False:",
        SESSIONS + "a_get_that_takes_no_stream_is_406",
    ),
    "A10": Removal(
        "proxy/incoming.py",
        "error_reply(400, PARSE_ERROR, text)",
        "error_reply(400, INVALID_REQUEST, text)",
        HTTP + "a_body_that_is_no_json_is_a_parse_error",
    ),
    "A11": Removal(
        "proxy/handshake.py",
        "if session.version != BATCH_VERSION:",
        "if False:",
        SESSIONS + "a_batch_is_refused_where_the_version_has_none",
    ),
    "A12": Removal(
        "proxy/handshake.py",
        "[read_message(document) for document in documents]",
        "[read_message(document) for document in documents[:1]]",
        SESSIONS + "each_request_of_a_batch_is_answered_at_2025_03_26",
    ),
    "A13 chunked": Removal(
        "proxy/incoming.py",
        "if size > cap:",
        "if False:",
        HTTP + "a_chunked_body_over_the_cap_is_413_before_it_ends",
    ),
    "A13 headers": Removal(
        "proxy/incoming.py",
        "> MAX_HEADERS:",
        "> 1 << 30:",
        HTTP + "headers_over_the_limit_are_refused",
    ),
    "A14": Removal(
        "proxy/handshake.py",
        "incoming)\n        return web.Response(status=202)",
        "incoming)\n        return web.Response(status=200)",
        SESSIONS + "notifications_and_responses_are_202_and_empty",
    ),
    "A15": Removal(
        "proxy/streams.py",
        "if accepts.stream and (not accepts.json or",
        "if accepts.stream and (accepts.json and not",
        HTTP + "a_client_that_takes_only_a_stream_gets_one",
    ),
    "A16": Removal(
        "proxy/incoming.py",
        "jsonrpc.dumps(identifier)",
        "jsonrpc.dumps(str(identifier))",
        IDS + "an_id_comes_back_with_its_value_and_type",
    ),
    "A17": Removal(
        "proxy/streams.py",
        '"X-Accel-Buffering": "no",',
        "",
        HTTP + "a_client_that_takes_only_a_stream_gets_one",
    ),
    "A18": Removal(
        "sessions/exchange.py",
        "return 200, answer.encode(client_id)\n",
        "return _status(answer) + answer.is_error, answer.encode(client_id)\n",
        PROTOCOL + "an_error_of_the_server_rides_on_200_in_a_session",
    ),
    "A19": Removal(
        "channels/channel.py",
        "        return jsonrpc.dumps(message)\n",
        '        return jsonrpc.dumps(message).replace("\\u2028".encode(), b"")\n',
        "live/test_framing.py::test_text_of_any_kind_comes_back_as_it_went",
    ),
    # B: sessions
    "B1": Removal(
        "sessions/session.py",
        "secrets.token_urlsafe(24)",
        "secrets.token_urlsafe(6)",
        SESSIONS + "each_handshake_version_is_served",
    ),
    "B2": Removal(
        "sessions/dialects.py",
        'return {**hello, "protocolVersion": version}',
        'return {**hello, "protocolVersion": version, "capabilities": '
        '{**hello["capabilities"], "completions": {}}}',
        SESSIONS + "initialize_invents_no_capability",
    ),
    "B3": Removal(
        "proxy/handshake.py",
        'is required; initialize first"\n        raise Refusal(error_reply(400,',
        'is required; initialize first"\n        raise Refusal(error_reply(404,',
        SESSIONS + "a_request_without_its_session_is_400",
    ),
    "B4": Removal(
        "proxy/handshake.py",
        "error_reply(404, SESSION_UNKNOWN",
        "error_reply(400, SESSION_UNKNOWN",
        SESSIONS + "an_unknown_session_is_404_on_every_method",
    ),
    "B5": Removal(
        "sessions/session.py",
        "if session is None or session.principal.digest != principal.digest:",
        "if session is None:",
        SESSIONS + "a_session_is_unknown_to_another_token_of_the_same_server",
    ),
    "B6": Removal(
        "proxy/handshake.py",
        "sessions.end(find_session(request, served, principal, NULL))",
        "sessions.find(find_session(request, served, principal, NULL).id, principal)",
        SESSIONS + "a_deleted_session_is_404_and_its_stream_ends",
    ),
    "B7": Removal(
        "sessions/session.py",
        "if held >= self._limits.sessions_per_token:",
        "if False:",
        "live/test_idle.py::test_sessions_above_the_limit_are_refused_with_when_to_retry",
    ),
    "B8": Removal(
        "proxy/handshake.py",
        "if SESSION_HEADER in request.headers:",
        "if False:",
        SESSIONS + "initialize_inside_a_session_is_refused",
    ),
    "B9": Removal(
        "proxy/handshake.py",
        "if version is not None and version not in HANDSHAKE:",
        "if False:",
        SESSIONS + "an_unsupported_version_header_is_400",
    ),
    "B10": Removal(
        "proxy/handshake.py",
        "    session = served.conversations.sessions.find(session_id, principal)\n",
        "    session = served.conversations.sessions.find(session_id, principal)\n"
        "    if VERSION_HEADER not in request.headers:\n        session = None\n",
        SESSIONS + "without_a_version_header_the_negotiated_one_counts",
    ),
    "B13": Removal(
        "proxy/served.py",
        "self._isolated(sessions) if is_isolated(spec) else",
        "self._isolated(sessions) if False else",
        ERAS + "each_session_of_an_isolated_server_has_a_process_of_its_own[isolated-False]",
    ),
    # C: streams
    "C1": Removal(
        "channels/channel.py",
        "        self.push(call, line)\n\n    def push",
        "        self._loop.call_later(0.5, self.push, call, line)\n\n    def push",
        SESSIONS + "what_belongs_to_a_call_comes_on_its_stream_before_the_answer",
    ),
    "C2": Removal(
        "sessions/notices.py",
        "            else:\n                session.outbox.push(line)\n",
        "            else:\n                session.outbox.push(line)\n"
        "                session.outbox.push(line)\n",
        SESSIONS + "a_change_reaches_the_get_stream_of_every_session_once",
    ),
    "C4": Removal(
        "proxy/handshake.py",
        "if reader is not None and not reader.peer.lost():",
        "if reader is not None and reader.peer.lost():",
        SESSIONS + "a_session_has_one_get_stream",
    ),
    "C5": Removal(
        "sessions/notices.py",
        "            else:\n                session.outbox.push(line)\n",
        "            elif session.outbox.taken:\n                session.outbox.push(line)\n",
        SESSIONS + "a_notification_waits_for_the_get_stream",
    ),
    "C6": Removal(
        "sessions/events.py",
        'return f"{stream.name}.{self.place}", event',
        'return f"{stream.name}.1", event',
        RESUME + "ids_are_unique_in_a_session_and_name_their_stream",
    ),
    "C7": Removal(
        "proxy/streams.py",
        "await response.write(primer(reader) if session.primed else COMMENT)",
        "await response.write(COMMENT)",
        RESUME + "a_stream_begins_with_an_id_and_no_data_at_2025_11_25",
    ),
    "C7 older": Removal(
        "proxy/streams.py",
        "await response.write(primer(reader) if session.primed else COMMENT)",
        "await response.write(primer(reader))",
        RESUME + "an_older_client_gets_no_event_without_data",
    ),
    "C8": Removal(
        "proxy/handshake.py",
        "reader = stream.read(place, Connection(request))",
        "reader = stream.read(place and place + 1, Connection(request))",
        RESUME + "each_event_after_the_last_is_replayed_and_no_other",
    ),
    "C9": Removal(
        "proxy/handshake.py",
        "return error_reply(400, INVALID_REQUEST, text)\n    return await tell",
        "return error_reply(500, INVALID_REQUEST, text)\n    return await tell",
        RESUME + "an_id_that_was_never_made_is_400",
    ),
    "C10": Removal(
        "sessions/streams.py",
        "            self._answered[stream.name] = now\n",
        "            self._answered[stream.name] = now\n            self._forget(stream.name)\n",
        RESUME + "a_dropped_call_goes_on_and_its_answer_can_be_fetched",
    ),
    "C11": Removal(
        "proxy/streams.py",
        "\\nretry: {RETRY_MS}\\n",
        "\\n",
        RESUME + "a_stream_that_ends_with_the_proxy_says_when_to_come_back",
    ),
    "C12": Removal(
        "channels/instance.py",
        "        elif channel is not None:\n            channel.fail(error)\n",
        "",
        RESUME + "a_call_whose_server_dies_unwatched_has_its_error_kept",
    ),
    # D: routing
    "D1": Removal(
        "channels/channel.py",
        '                meta["progressToken"] = number\n',
        "",
        IDS + "progress_with_equal_tokens_and_ids_reaches_each_owner_only",
    ),
    "D2": Removal(
        "sessions/shared.py",
        "if call is not None and channel is not None:\n            channel.cancel(call, str(",
        "if False:\n            channel.cancel(call, str(",
        IDS + "cancelling_an_id_ends_that_call_alone",
    ),
    "D3": Removal(
        "channels/channel.py",
        'self.pass_on({"jsonrpc": "2.0", "id": message["id"], "error": error})',
        "del error",
        IDS + "requests_of_the_server_are_refused_where_sessions_share_it",
    ),
    "D4": Removal(
        "sessions/shared.py",
        "if not allowed(method, HANDSHAKE_REQUESTS, self.spec.methods.allow):",
        "if False:",
        "live/test_policy.py::test_an_unknown_method_is_denied_before_the_server_sees_it",
    ),
    "D6": Removal(
        "sessions/shared.py",
        "self._tasks.check(principal, params)",
        "pass",
        PROTOCOL + "a_task_is_unknown_to_every_caller_but_its_own",
    ),
    "D7": Removal(
        "sessions/dialects.py",
        "            meta.pop(key, None)\n",
        "            meta.clear()\n",
        PROTOCOL + "trace_context_and_unknown_meta_keys_reach_the_server",
    ),
    # E: 2026-07-28
    "E1": Removal(
        "proxy/endpoint.py",
        "modern.post if modern.is_modern(request, incoming) else handshake.post",
        "modern.post",
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
        "check(found, params)",
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
        "    _check(request, incoming, client_id or NULL)\n",
        "    _check(request, incoming, client_id or NULL)\n"
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
        "tagged(message, listener.subscription)",
        "tagged(message, 0)",
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
        "        level = meta_of(params).get(META_LOG_LEVEL)\n",
        "        level = meta_of(params).get(META_LOG_LEVEL)\n"
        '        params.pop("requestState", None)\n',
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
        'request.remote or "-",',
        'request.headers.get("Authorization", "-"),',
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
        "            undress(params)\n",
        '            raise CallError(Cause.METHOD_DENIED, "the server speaks the handshake only")\n',
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
        "sessions/dialects.py",
        'spoken = SUPPORTED if shared else hello["supportedVersions"]',
        "spoken = SUPPORTED",
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
