"""Environment variables besides the settings themselves."""

import pytest

from headrace.base.errors import OperatorError
from headrace.base.settings import load_settings, setting_specs, suggest_setting_names


@pytest.mark.parametrize(
    ("variable", "suggestion"),
    [
        ("HEADRACE_PROT", "HEADRACE_PORT"),
        ("HEADRACE_DATA_DRI", "HEADRACE_DATA_DIR"),
        ("HEADRACE_QUERY_CONCURENCY", "HEADRACE_QUERY_CONCURRENCY"),
        ("HEADRACE_TRUSTED_PROXYS", "HEADRACE_TRUSTED_PROXIES"),
    ],
)
def test_variable_with_a_typing_error_is_noticed(variable: str, suggestion: str) -> None:
    assert suggest_setting_names({variable: "1", "PATH": "/bin"}) == {variable: suggestion}


def test_variables_of_settings_and_of_other_programs_are_accepted() -> None:
    ours = {row.variable: "1" for row in setting_specs()}
    of_the_commands = {"HEADRACE_URL": "http://127.0.0.1", "HEADRACE_API_KEY": "hr_x"}
    of_kubernetes = {
        "HEADRACE_SERVICE_HOST": "10.0.0.1",
        "HEADRACE_SERVICE_PORT": "80",
        "HEADRACE_PORT_80_TCP": "tcp://10.0.0.1:80",
    }
    assert suggest_setting_names(ours | of_the_commands | of_kubernetes) == {}


def test_origins_are_normalized() -> None:
    origins = "https://example.com, HTTP://localhost:3000/, chrome-extension://abc, http://[::1]:80"
    settings = load_settings(environment={"HEADRACE_QUERY_ORIGINS": origins})
    assert settings.query_origins == tuple(origins.split(", "))


@pytest.mark.parametrize(
    "origin", ["example.com", "*", "https://*.example.com", "https://example.com/path", "https://"]
)
def test_invalid_origin_prevents_startup(origin: str) -> None:
    with pytest.raises(OperatorError) as rejected:
        load_settings(environment={"HEADRACE_QUERY_ORIGINS": f"https://example.com,{origin}"})
    assert str(rejected.value) == (
        f"HEADRACE_QUERY_ORIGINS=https://example.com, {origin} is not a valid setting:"
        f" '{origin}' is not an origin such as https://example.com or http://localhost:3000"
    )


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("HEADRACE_LOG_LEVEL", "loud", "expected debug, info, warning or error"),
        ("HEADRACE_ACK_MODE", "never", "expected log or stored"),
        ("HEADRACE_PORT", "high", "expected a whole number"),
        ("HEADRACE_QUERY_TIMEOUT_S", "nan", "expected a number > 0.0"),
        ("HEADRACE_QUERY_TIMEOUT_S", "1e400", "expected a smaller number"),
        ("HEADRACE_QUERY_TIMEOUT_S", "inf", "expected a number <= 31536000.0"),
        ("HEADRACE_SHUTDOWN_TIMEOUT_S", "1e30", "expected a number <= 31536000.0"),
        ("HEADRACE_QUERY_CONCURRENCY", "1001", "expected a whole number <= 1000"),
        (
            "HEADRACE_QUERY_MAX_MEMORY_BYTES",
            "9223372036854775808",
            "expected a whole number <= 9223372036854775807",
        ),
        ("HEADRACE_ACK_MODE", "\udcff", "expected text in UTF-8"),
        ("HEADRACE_PORT", "80\udcff", "expected text in UTF-8"),
        ("HEADRACE_HOST", "", "expected an address such as 127.0.0.1, or 0.0.0.0 for all"),
        ("HEADRACE_HOST", "\udcff", "'\\udcff' is neither an address nor the name of a host"),
        ("HEADRACE_HOST", "a..ü", "'a..ü' is neither an address nor the name of a host"),
        ("HEADRACE_HOST", "[::1]", "an address of IPv6 has no brackets here, as in ::1"),
    ],
)
def test_invalid_value_is_reported_with_the_allowed_ones(
    variable: str, value: str, reason: str
) -> None:
    with pytest.raises(OperatorError) as rejected:
        load_settings(environment={variable: value})
    assert str(rejected.value) == f"{variable}={value} is not a valid setting: {reason}"


@pytest.mark.parametrize("path", ["/headrace.js", "/stats.js", "/scripts/v2/a.b-c_d.js"])
def test_path_of_the_tracker_may_be_in_a_folder(path: str) -> None:
    assert load_settings(environment={"HEADRACE_TRACKER_PATH": path}).tracker_path == path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("stats.js", "is not a path such as /scripts/stats.js"),
        ("/stats", "is not a path such as /scripts/stats.js"),
        ("/../stats.js", "is not a path such as /scripts/stats.js"),
        ("/{hash}.js", "is not a path such as /scripts/stats.js"),
        ("//stats.js", "is not a path such as /scripts/stats.js"),
        ("/v1/stats.js", "belongs to another file or endpoint of the service"),
        ("/app/stats.js", "belongs to another file or endpoint of the service"),
        ("/x/headrace-extras.js", "belongs to another file or endpoint of the service"),
        ("/x/headrace-details.js", "belongs to another file or endpoint of the service"),
    ],
)
def test_path_that_is_none_or_is_taken_prevents_startup(path: str, reason: str) -> None:
    with pytest.raises(OperatorError) as rejected:
        load_settings(environment={"HEADRACE_TRACKER_PATH": path})
    assert str(rejected.value) == (
        f"HEADRACE_TRACKER_PATH={path} is not a valid setting: {path!r} {reason}"
    )


@pytest.mark.parametrize(
    ("overrides", "environment", "source"),
    [({"data_dir": ""}, {}, "--data"), ({}, {"HEADRACE_DATA_DIR": ""}, "HEADRACE_DATA_DIR")],
    ids=["option", "environment"],
)
def test_data_directory_is_not_the_current_one_by_an_empty_text(
    overrides: dict[str, str], environment: dict[str, str], source: str
) -> None:
    with pytest.raises(OperatorError) as rejected:
        load_settings(overrides, environment)
    assert str(rejected.value) == (
        f"{source}= is not a valid setting: expected the path of a directory"
    )
