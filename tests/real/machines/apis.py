"""Calls the APIs of Neutron and Octavia as the cloud's administrator."""

import json
import time
import urllib.request


class Apis:
    def __init__(self, environment):
        self.environment = environment
        self.endpoints = {}
        self.token = None
        self.until = 0.0

    def network(self, what, **query):
        return self._list("network", f"v2.0/{what}", what, query)

    def balancer(self, what, kind=None, **query):
        return self._list("load-balancer", f"v2/lbaas/{what}", kind or what, query)

    def _list(self, service, path, key, query):
        if time.monotonic() > self.until:
            self._authenticate()
        words = [(name, value) for name, values in query.items() for value in (values if isinstance(values, list) else [values])]
        request = urllib.request.Request(f"{self.endpoints[service]}/{path}?{urllib.parse.urlencode(words)}")
        request.add_header("X-Auth-Token", self.token)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)[key]

    def _authenticate(self):
        of = self.environment
        user = {"name": of["OS_USERNAME"], "password": of["OS_PASSWORD"], "domain": {"name": of["OS_USER_DOMAIN_NAME"]}}
        project = {"name": of["OS_PROJECT_NAME"], "domain": {"name": of["OS_PROJECT_DOMAIN_NAME"]}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": {"project": project}}}
        request = urllib.request.Request(
            f"{of['OS_AUTH_URL']}/auth/tokens", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            self.token = answer.headers["X-Subject-Token"]
            catalog = json.load(answer)["token"]["catalog"]
        for service in catalog:
            for endpoint in service["endpoints"]:
                if endpoint["interface"] == "public":
                    self.endpoints[service["type"]] = endpoint["url"].rstrip("/")
        self.until = time.monotonic() + 3600
