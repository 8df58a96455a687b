"""Removals of HTTP, sessions, streams and routing, by id; a second one of an id has a word more."""

from removals.importing import Removal

HTTP = "live/test_http.py::test_"
SESSIONS = "live/test_sessions.py::test_"
ERAS = "live/test_eras.py::test_"
RESUME = "live/test_resume.py::test_"
IDS = "live/test_ids.py::test_"
PROTOCOL = "live/test_protocol.py::test_"
GONE = "live/test_unauthorized.py::test_"

TRANSPORT = {
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
        "policy/chain.py",
        "if not allowed(asked.method, asked.known, self._spec.methods.allow):",
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
}
