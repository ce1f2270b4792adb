"""What is read from the environment besides the settings themselves."""

import pytest

from headrace.base.errors import OperatorError
from headrace.base.settings import load_settings, mistyped_variables, setting_rows


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HEADRACE_PROT", "HEADRACE_PORT"),
        ("HEADRACE_DATTA", "HEADRACE_DATA"),
        ("HEADRACE_QUERY_THREAD", "HEADRACE_QUERY_THREADS"),
        ("HEADRACE_TRUSTED_PROXYS", "HEADRACE_TRUSTED_PROXIES"),
    ],
)
def test_variable_with_a_typing_error_is_noticed(variable: str, meant: str) -> None:
    assert mistyped_variables({variable: "1", "PATH": "/bin"}) == {variable: meant}


def test_variables_of_settings_and_of_other_programs_are_not_taken_for_errors() -> None:
    ours = {row.variable: "1" for row in setting_rows()}
    of_the_commands = {"HEADRACE_URL": "http://127.0.0.1", "HEADRACE_KEY": "hr_x"}
    of_kubernetes = {
        "HEADRACE_SERVICE_HOST": "10.0.0.1",
        "HEADRACE_SERVICE_PORT": "80",
        "HEADRACE_PORT_80_TCP": "tcp://10.0.0.1:80",
    }
    assert mistyped_variables(ours | of_the_commands | of_kubernetes) == {}


def test_origins_are_taken_as_people_write_them() -> None:
    origins = "https://example.com, HTTP://localhost:3000/, chrome-extension://abc, http://[::1]:80"
    settings = load_settings(environment={"HEADRACE_QUERY_ORIGINS": origins})
    assert settings.query_origins == tuple(origins.split(", "))


@pytest.mark.parametrize(
    "origin", ["example.com", "*", "https://*.example.com", "https://example.com/path", "https://"]
)
def test_what_is_no_origin_keeps_the_service_from_starting(origin: str) -> None:
    with pytest.raises(OperatorError) as refused:
        load_settings(environment={"HEADRACE_QUERY_ORIGINS": f"https://example.com,{origin}"})
    assert str(refused.value) == (
        f"HEADRACE_QUERY_ORIGINS=https://example.com, {origin} is not a valid setting:"
        f" '{origin}' is not an origin such as https://example.com or http://localhost:3000"
    )


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("HEADRACE_LOG_LEVEL", "loud", "expected debug, info, warning or error"),
        ("HEADRACE_ACK", "never", "expected log or stored"),
        ("HEADRACE_PORT", "high", "expected a whole number"),
        ("HEADRACE_QUERY_TIMEOUT_S", "nan", "expected a number > 0.0"),
    ],
)
def test_value_that_cannot_be_used_is_told_with_what_can(
    variable: str, value: str, reason: str
) -> None:
    with pytest.raises(OperatorError) as refused:
        load_settings(environment={variable: value})
    assert str(refused.value) == f"{variable}={value} is not a valid setting: {reason}"
