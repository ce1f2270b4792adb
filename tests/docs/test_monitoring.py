"""The alert rules and the dashboard read metrics and labels that the service has."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not in the lock file
from msgspec import Struct

from headrace.base.metrics import METRICS, MetricKind
from headrace.base.settings import Settings
from headrace.http.endpoints import ENDPOINTS
from headrace.model.log_records import EventKind
from headrace.query.execution import FAILED, OUTCOMES, SUCCEEDED
from testing.service import Service

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "headrace.rules.yaml"
DASHBOARD = DEPLOY / "grafana" / "headrace.json"
GUIDE = DEPLOY.parent / "docs" / "guides" / "monitoring.md"

TARGET_LABELS: Final = frozenset({"instance", "job"})
"""Prometheus adds them to each series that it reads."""

LABEL_VALUES: Mapping[str, frozenset[str]] = {
    "job": frozenset({"headrace"}),
    "endpoint": frozenset(spec.name for spec in ENDPOINTS),
    "stream": frozenset(kind.value for kind in EventKind),
    "outcome": frozenset(
        {*OUTCOMES.values(), SUCCEEDED, FAILED, "accepted", "repeated", "expired", "quarantined"}
    ),
    "process": frozenset({"worker", "engine"}),
    "status": frozenset({"4..", "5..", "503"}),
    "instance": frozenset({"$instance"}),
}

FUNCTIONS: Final = frozenset(
    {
        *("absent", "histogram_quantile", "increase", "max", "min", "min_over_time"),
        *("predict_linear", "rate", "sum"),
    }
)
KEYWORDS: Final = frozenset({"and", "by", "offset", "or", "unless"})

_DURATION: Final = r"[0-9]+(?:ms|[smhdwy])"
_SUFFIXES: Final = {
    MetricKind.COUNTER: ("",),
    MetricKind.GAUGE: ("",),
    MetricKind.HISTOGRAM: ("_bucket", "_count", "_sum"),
}


def series() -> dict[str, frozenset[str]]:
    """Return the labels of each series that Prometheus stores of a service."""
    found = {"up": TARGET_LABELS}
    for metric in METRICS:
        for suffix in _SUFFIXES[metric.kind]:
            le = {"le"} if suffix == "_bucket" else set[str]()
            found[f"{metric.name}{suffix}"] = TARGET_LABELS | le | set(metric.labels)
    return found


SERIES: Final = series()


class Selector(Struct, frozen=True):
    """A series that an expression reads, and the values of labels that it selects."""

    name: str
    matchers: tuple[tuple[str, str], ...]


class Expression(Struct, frozen=True):
    """What an expression reads, and the labels by which it groups."""

    selectors: tuple[Selector, ...]
    groupings: tuple[str, ...]


def parse(text: str) -> Expression:
    """Return what a PromQL expression reads. Raises `ValueError` where this cannot tell."""
    left = text.replace("$__rate_interval", "5m")
    groupings = [
        label.strip()
        for labels in re.findall(r"\bby \(([^)]*)\)", left)
        for label in labels.split(",")
    ]
    left = re.sub(r"\bby \([^)]*\)", "", left)
    selectors: list[Selector] = []

    def take(match: re.Match[str]) -> str:
        matchers = re.findall(r'(\w+)(?:=~|!~|!=|=)"([^"]*)"', match[2] or "")
        selectors.append(Selector(match[1], tuple(matchers)))
        return " "

    left = re.sub(r"\b((?:headrace_\w+|up)\b)(?:\{([^}]*)\})?", take, left)
    left = re.sub(rf"\[{_DURATION}\]|\boffset {_DURATION}", "", left)
    unknown = set(re.findall(r"[a-zA-Z_$]\w*", left)) - FUNCTIONS - KEYWORDS
    if unknown or left.count("(") != left.count(")") or not selectors:
        raise ValueError(f"cannot read {text!r}: {sorted(unknown)}")
    return Expression(tuple(selectors), tuple(groupings))


def faults(text: str) -> Iterator[str]:
    """Yield what an expression reads that no service has."""
    expression = parse(text)
    for selector in expression.selectors:
        if selector.name not in SERIES:
            yield f"no series {selector.name}"
            continue
        for label, value in selector.matchers:
            if label not in SERIES[selector.name]:
                yield f"{selector.name} has no label {label}"
            elif unknown := set(value.split("|")) - LABEL_VALUES[label]:
                yield f"{label} is never {sorted(unknown)}"
        for label in expression.groupings:
            if label not in SERIES[selector.name]:
                yield f"{selector.name} has no label {label}"


def labels_of_result(text: str) -> frozenset[str]:
    """Return the labels that the result of an expression has."""
    expression = parse(text)
    if expression.groupings:
        return frozenset(expression.groupings) - {"le"}
    return SERIES[expression.selectors[0].name] if not text.startswith("absent(") else frozenset()


def groups() -> Sequence[Mapping[str, Any]]:
    read: Mapping[str, Any] = yaml.safe_load(RULES.read_text())
    assert read.keys() == {"groups"}
    found: Sequence[Mapping[str, Any]] = read["groups"]
    return found


ALERTS: Final[Sequence[Mapping[str, Any]]] = [rule for group in groups() for rule in group["rules"]]
DASHBOARD_JSON: Final[Mapping[str, Any]] = json.loads(DASHBOARD.read_text())
PANELS: Final[Sequence[Mapping[str, Any]]] = [
    panel for panel in DASHBOARD_JSON["panels"] if panel["type"] != "row"
]


def name_of(alert: Mapping[str, Any]) -> str:
    return str(alert["alert"])


def title_of(panel: Mapping[str, Any]) -> str:
    return str(panel["title"])


def test_groups_have_names_of_their_own_and_rules() -> None:
    assert [set(group) for group in groups()] == [{"name", "rules"}] * len(groups())
    for names in ([group["name"] for group in groups()], list(map(name_of, ALERTS))):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_alert_has_the_keys_that_prometheus_takes(alert: Mapping[str, Any]) -> None:
    assert set(alert) - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert re.fullmatch(r"Headrace[A-Z][A-Za-z]+", alert["alert"])
    assert re.fullmatch(_DURATION, alert.get("for", "0s"))
    assert alert["labels"] in ({"severity": "critical"}, {"severity": "warning"})


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_alert_says_what_it_means_and_what_to_do(alert: Mapping[str, Any]) -> None:
    annotations = alert["annotations"]
    assert list(annotations) == ["summary", "description", "runbook"]
    assert not annotations["summary"].endswith(".")
    assert annotations["description"].endswith(".")
    assert annotations["runbook"].endswith(".")
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(annotations.values())))
    assert used <= labels_of_result(alert["expr"])


@pytest.mark.parametrize("alert", ALERTS, ids=name_of)
def test_alert_reads_what_services_have(alert: Mapping[str, Any]) -> None:
    assert list(faults(alert["expr"])) == []


def test_alert_on_refused_events_has_all_ingestion_endpoints() -> None:
    (alert,) = [alert for alert in ALERTS if alert["alert"] == "HeadraceEventsUnavailable"]
    (selector,) = parse(alert["expr"]).selectors
    ingestion = [spec.name for spec in ENDPOINTS if spec.is_ingestion]
    assert dict(selector.matchers)["endpoint"].split("|") == ingestion


def test_limits_that_alerts_name_are_the_defaults() -> None:
    settings = Settings()
    shown = {
        "HEADRACE_MIN_FREE_BYTES": f"{settings.min_free_bytes >> 20} MiB",
        "HEADRACE_MAX_BACKLOG_BYTES": f"{settings.max_backlog_bytes >> 30} GiB",
        "HEADRACE_QUERY_TIMEOUT_S": f"{settings.query_timeout_s:.0f} seconds",
    }
    text = " ".join(alert["annotations"]["description"] for alert in ALERTS)
    assert dict(re.findall(r"(HEADRACE_\w+) \(([^)]*)\)", text)) == shown
    (fills_up,) = [alert for alert in ALERTS if alert["alert"] == "HeadraceDiskFillsUp"]
    assert fills_up["expr"].endswith(f" < {settings.min_free_bytes}")


def test_guide_lists_all_alerts_with_their_severity() -> None:
    listed = re.findall(r"^\| `(Headrace\w+)` \| (\w+) \|", GUIDE.read_text(), re.MULTILINE)
    assert listed == [(alert["alert"], alert["labels"]["severity"]) for alert in ALERTS]


@pytest.mark.parametrize("panel", PANELS, ids=title_of)
def test_panel_reads_what_services_have(panel: Mapping[str, Any]) -> None:
    for target in panel["targets"]:
        assert list(faults(target["expr"])) == []
        legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert legend <= labels_of_result(target["expr"])


@pytest.mark.parametrize("panel", PANELS, ids=title_of)
def test_panel_reads_the_chosen_machines_of_the_chosen_data_source(
    panel: Mapping[str, Any],
) -> None:
    source = {"type": "prometheus", "uid": "${datasource}"}
    assert panel["datasource"] == source
    assert panel["description"].endswith(".")
    for target in panel["targets"]:
        assert target["datasource"] == source
        for selector in parse(target["expr"]).selectors:
            assert dict(selector.matchers)["instance"] == "$instance"


def test_dashboard_shows_every_metric() -> None:
    read = {
        selector.name
        for panel in PANELS
        for target in panel["targets"]
        for selector in parse(target["expr"]).selectors
    }
    lacking = [
        metric.name for metric in METRICS if not {metric.name, f"{metric.name}_bucket"} & read
    ]
    assert lacking == []


def test_dashboard_can_be_imported() -> None:
    """What an import reads: an id that is free, ids and places of panels, and the variables."""
    panels = DASHBOARD_JSON["panels"]
    assert (DASHBOARD_JSON["id"], DASHBOARD_JSON["uid"]) == (None, "headrace")
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) == 23
    variables = {one["name"]: one["type"] for one in DASHBOARD_JSON["templating"]["list"]}
    assert variables == {"datasource": "datasource", "instance": "query"}
    machines = DASHBOARD_JSON["templating"]["list"][1]["query"]["query"]
    matched = re.fullmatch(r"label_values\((\w+), instance\)", machines)
    assert matched is not None
    assert matched[1] in SERIES


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("headrace_disk_bytes < 1", "no series headrace_disk_bytes"),
        ("rate(headrace_load_seconds[5m]) > 1", "no series headrace_load_seconds"),
        ('headrace_items_total{table="events"} > 1', "headrace_items_total has no label table"),
        ('headrace_items_total{outcome=~"accepted|lost"} > 1', "outcome is never ['lost']"),
        ("sum by (reason) (up)", "up has no label reason"),
    ],
    ids=["metric", "histogram", "label", "value", "grouping"],
)
def test_wrong_expressions_are_found(expression: str, fault: str) -> None:
    assert list(faults(expression)) == [fault]


def test_services_have_the_series_that_exist_from_the_start(service: Service) -> None:
    """Series with labels appear with their first count, which the alerts on them allow for.

    The alert on unreadable logs needs none before the first of them.
    """
    labelled = {metric.name for metric in METRICS if metric.labels}
    shown = set(re.findall(r"^(\w+)[{ ]", service.get("/metrics").text, re.MULTILINE))
    from_the_start = {name for name in SERIES if name not in labelled} - {"up"}
    assert from_the_start - shown == {"headrace_logs_unreadable"}


def test_prometheus_takes_the_rules_and_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed on this machine")
    expressions = [target["expr"] for panel in PANELS for target in panel["targets"]]
    rules = [
        {"record": f"panel:{index}", "expr": text.replace("$__rate_interval", "5m")}
        for index, text in enumerate(expressions)
    ]
    recorded = tmp_path / "panels.yaml"
    recorded.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [program, "check", "rules", RULES, recorded], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [f"SUCCESS: {len(found)} rules found" in done.stdout for found in (ALERTS, rules)] == [
        True,
        True,
    ]


COUNTED_ONCE: Final = {
    "HeadraceServerErrors": 'headrace_http_requests_total{endpoint="track",status="500"}',
    "HeadraceItemsQuarantined": 'headrace_items_total{stream="events",outcome="quarantined"}',
}
"""Alerts that fire for one count of a series, also where it is the first one."""


@pytest.mark.parametrize("alert", COUNTED_ONCE)
@pytest.mark.parametrize(
    ("values", "fires"),
    [("_x9 1x30", True), ("1x12 2x20", True), ("2x60", False)],
    ids=["first count", "next count", "counted long ago"],
)
def test_alert_fires_for_one_count(alert: str, values: str, fires: bool, tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed on this machine")
    case = {
        "rule_files": [str(RULES)],
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": COUNTED_ONCE[alert], "values": values}],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{alert}"}}) or vector(0)',
                        "eval_time": "15m" if fires else "61m",
                        "exp_samples": [{"labels": "{}", "value": int(fires)}],
                    }
                ],
            }
        ],
    }
    file = tmp_path / "case.yaml"
    file.write_text(json.dumps(case))
    done = subprocess.run(
        [program, "test", "rules", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
