"""uv is told what pip would have read."""

from autobot_mcp_bridge.units.packages.pip_settings import pip_settings, uv_environment


def environ(tmp_path, text="", **more):
    file = tmp_path / "own.conf"
    file.write_text(text)
    home = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), "PIP_CONFIG_FILE": str(file)}
    return {**home, **more}


def test_index_certificate_and_timeout_of_pip_become_uvs(tmp_path):
    text = "[global]\nindex-url = https://mirror.test/simple\ncert = /ca.pem\ntimeout = 77\n"
    found = uv_environment(environ(tmp_path, text))

    assert found["UV_DEFAULT_INDEX"] == "https://mirror.test/simple"
    assert found["SSL_CERT_FILE"] == "/ca.pem"
    assert found["UV_HTTP_TIMEOUT"] == "77"


def test_a_variable_wins_over_a_file_and_uvs_own_over_both(tmp_path):
    text = "[install]\nindex-url = https://file.test/\n"
    env = environ(tmp_path, text, PIP_INDEX_URL="https://variable.test/")

    assert uv_environment(env)["UV_DEFAULT_INDEX"] == "https://variable.test/"
    env["UV_DEFAULT_INDEX"] = "https://own.test/"
    assert uv_environment(env)["UV_DEFAULT_INDEX"] == "https://own.test/"


def test_several_indexes_count_alike_as_with_pip(tmp_path):
    text = "[global]\nextra-index-url =\n  https://a.test/\n  https://b.test/\n"
    found = uv_environment(environ(tmp_path, text))

    assert found["UV_INDEX"] == "https://a.test/ https://b.test/"
    assert found["UV_INDEX_STRATEGY"] == "unsafe-best-match"


def test_pips_files_can_be_switched_off(tmp_path):
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text("[global]\ncert = /x\n")
    env = environ(tmp_path)

    assert pip_settings(env)["cert"] == "/x"
    assert "cert" not in pip_settings({**env, "PIP_CONFIG_FILE": "/dev/null"})
