"""Reads the page of metrics at PAGE with Prometheus' own parser, and prints the name, type and unit of each family."""

import os
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

with urllib.request.urlopen(os.environ["PAGE"], timeout=30) as answer:
    kind = answer.headers["content-type"]
    page = answer.read().decode()
assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", kind
for family in text_string_to_metric_families(page):
    assert family.documentation, family
    assert family.samples, family
    print(family.name, family.type, family.unit)
