"""Where spans go: host.toml before the variables, and each variable that cannot be done by name."""

import pytest

from autobot_mcp_bridge.config.tracing import trace_export, tracing_relations
from autobot_mcp_bridge.model.host import Tracing

URL = "https://collector.example:4318"
SECRET = "S3cret-of-the-test"
ON = {"OTEL_EXPORTER_OTLP_ENDPOINT": URL}


def export(environ=ON, **tracing):
    found, problems = trace_export(Tracing(**tracing), environ)
    assert problems == ()
    return found


def wrong(**environ):
    found, problems = trace_export(Tracing(), {**ON, **environ})
    assert found is None
    assert SECRET not in repr(problems)
    return {problem.path for problem in problems}


def test_without_an_endpoint_nothing_goes_anywhere_and_nothing_is_wrong():
    assert trace_export(Tracing(), {"OTEL_TRACES_SAMPLER": "xray"}) == (None, ())


def test_a_base_url_gets_the_path_and_the_url_of_traces_stays():
    assert export().url == f"{URL}/v1/traces"
    assert export(endpoint="http://localhost:4318/").url == "http://localhost:4318/v1/traces"
    own = {**ON, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{URL}/own"}
    assert export(own).url == f"{URL}/own"
    assert export(own, endpoint=URL).url == f"{URL}/v1/traces"


@pytest.mark.parametrize(
    "url",
    [
        "collector:4318",
        "ftp://c",
        "http://",
        "http://u:p@c",
        "http://c/?k=1",
        "http://c:x",
        "http://c d",
    ],
)
def test_an_endpoint_that_is_none_is_named(url):
    assert wrong(OTEL_EXPORTER_OTLP_ENDPOINT=url) == {"OTEL_EXPORTER_OTLP_ENDPOINT"}
    assert [loc for loc, _, _ in tracing_relations(Tracing(endpoint=url))] == [
        ("tracing", "endpoint")
    ]


@pytest.mark.parametrize("off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}])
def test_the_words_for_off(off):
    assert export({**ON, **off}, endpoint=URL) is None


@pytest.mark.parametrize(
    ("name", "argument", "follows", "ratio"),
    [
        ("", "", True, 1.0),
        ("always_on", "", False, 1.0),
        ("always_off", "", False, 0.0),
        ("traceidratio", "0.25", False, 0.25),
        ("parentbased_always_off", "", True, 0.0),
        ("parentbased_traceidratio", "0.5", True, 0.5),
        ("parentbased_traceidratio", "", True, 1.0),
    ],
)
def test_samplers(name, argument, follows, ratio):
    found = export({**ON, "OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": argument})
    assert (found.follows, found.ratio) == (follows, ratio)
    assert export({**ON, "OTEL_TRACES_SAMPLER": name or "always_on"}, ratio=0.1).ratio == 0.1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", f"/{SECRET}"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_PROPAGATORS", "b3"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a"),
        ("OTEL_RESOURCE_ATTRIBUTES", f"a={'x' * 300}"),
        ("OTEL_EXPORTER_OTLP_HEADERS", SECRET),
        ("OTEL_EXPORTER_OTLP_HEADERS", f"a b={SECRET}"),
        ("OTEL_EXPORTER_OTLP_HEADERS", f"key={SECRET}%0d%0aother: x"),
    ],
)
def test_what_cannot_be_done_is_named_without_its_value(name, value):
    assert wrong(**{name: value}) == {name}


@pytest.mark.parametrize("share", ["2", "-1", "half", "nan"])
def test_a_share_that_is_none(share):
    sampler = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": share}
    assert wrong(**sampler) == {"OTEL_TRACES_SAMPLER_ARG"}


def test_what_is_for_other_signals_is_nobodys_mistake():
    assert export({**ON, "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc"}) is not None
    assert export({**ON, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}) is not None


def test_headers_are_read_and_never_shown():
    found = export({**ON, "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{SECRET},a=b"})
    assert found.headers == {"authorization": f"Bearer {SECRET}", "a": "b"}
    assert SECRET not in repr(found)


def test_a_credential_counts_before_the_variable(tmp_path):
    (tmp_path / "otlp-headers").write_text(f"a={SECRET}\n")
    found = export(
        {**ON, "CREDENTIALS_DIRECTORY": str(tmp_path), "OTEL_EXPORTER_OTLP_HEADERS": "a=b"}
    )
    assert found.headers == {"a": SECRET}


def test_headers_do_not_travel_in_the_open():
    headers = {"OTEL_EXPORTER_OTLP_HEADERS": f"a={SECRET}"}
    plain = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example"}
    assert wrong(**headers, **plain) == {"OTEL_EXPORTER_OTLP_HEADERS"}
    assert export(plain).headers == {}
    assert export({**headers, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://[::1]:4318"}).headers


def test_the_resource_and_who_names_the_service():
    said = {**ON, "OTEL_RESOURCE_ATTRIBUTES": "a=b%20c,service.name=first"}
    assert export(said).resource["a"] == "b c"
    assert export(said).resource["service.name"] == "first"
    second = {**said, "OTEL_SERVICE_NAME": "second"}
    assert export(second).resource["service.name"] == "second"
    assert export(second, service_name="third").resource["service.name"] == "third"
    assert export().resource["service.name"] == "mcp-bridge"


def test_the_collector_is_shown_without_its_path():
    assert export(endpoint=f"{URL}/{SECRET}").shown == URL
