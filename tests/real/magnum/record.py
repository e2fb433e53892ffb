#!/usr/bin/env python3
"""record.py WALK - sends the requests of WALK to Magnum's API, and prints them with the answers.

Magnum's own controllers, policies, objects and conductor answer, on SQLite. The cloud is a stand-in in which everything exists, and so
is the driver, which leaves each cluster complete at once. Texts of errors are left out.

"$(tests/real/venv.sh tests/real/magnum/requirements.txt)/bin/python" tests/real/magnum/record.py tests/real/magnum/walk.json \\
  > services/cluster-api/tests/wire/magnum/recorded.json
"""

import json
import logging
import re
import sys
from types import SimpleNamespace

import magnum.conf
import pecan.testing
from magnum.api import hooks
from magnum.common import clients, config, exception, rpc_service
from magnum.conductor import utils as conductor_utils
from magnum.conductor.handlers import ca_conductor, cluster_conductor, nodegroup_conductor
from magnum.db import api as dbapi
from magnum.db.sqlalchemy import models
from magnum.drivers.common import driver
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log

CONF = magnum.conf.CONF
PROJECT = "default"
COMPLETE = {"create": "CREATE_COMPLETE", "update": "UPDATE_COMPLETE"}


class Idle(driver.Driver):
    """A driver whose work is done at once."""

    provides = [{"server_type": "vm", "os": "fedora-coreos", "coe": "kubernetes"}]

    def update_cluster_status(self, context, cluster, use_admin_ctx=False):
        pass

    def create_cluster(self, context, cluster, timeout):
        rest(cluster, "create")

    def update_cluster(self, context, cluster, *args, **kwargs):
        rest(cluster, "update")

    def upgrade_cluster(self, context, cluster, *args, **kwargs):
        rest(cluster, "update")

    def delete_cluster(self, context, cluster):
        for group in cluster.nodegroups:
            group.destroy()
        cluster.destroy()
        raise exception.ClusterNotFound(cluster=cluster.uuid)

    def resize_cluster(self, context, cluster, *args, **kwargs):
        rest(cluster, "update")

    def validate_master_size(self, node_count):
        if node_count % 2 == 0 or node_count < 1:
            raise exception.MasterNGSizeInvalid(requested_size=node_count)

    def validate_master_resize(self, node_count):
        raise exception.MasterNGResizeNotSupported()

    def create_nodegroup(self, context, cluster, nodegroup):
        nodegroup.status = COMPLETE["create"]
        cluster.status = COMPLETE["update"]

    def update_nodegroup(self, context, cluster, nodegroup):
        nodegroup.status = COMPLETE["update"]
        cluster.status = COMPLETE["update"]

    def delete_nodegroup(self, context, cluster, nodegroup):
        cluster.status = COMPLETE["update"]
        cluster.save()
        nodegroup.destroy()

    def create_federation(self, context, federation):
        raise NotImplementedError

    update_federation = delete_federation = create_federation

    def rotate_ca_certificate(self, context, cluster):
        pass

    def rotate_credential(self, context, cluster):
        pass


def idle(_, server_type, os, coe, driver_name=None):
    if Idle.provides != [{"server_type": server_type, "os": os, "coe": coe}]:
        raise exception.ClusterTypeNotSupported(
            server_type=server_type, os=os, coe=coe, supported_cluster_types="(vm, fedora-coreos, kubernetes)")
    return Idle()


def rest(cluster, verb):
    cluster.status = COMPLETE[verb]
    cluster.coe_version = "v1.34.1"
    cluster.api_address = "https://192.0.2.1:6443"
    for group in cluster.nodegroups:
        group.status = COMPLETE[verb]
        group.save()


class Cloud:
    """The cloud, in which everything exists."""

    def __init__(self, context):
        pass

    def glance(self):
        return SimpleNamespace(find_image=lambda name, **_: Image(id=name, os_distro="fedora-coreos"))

    def nova(self):
        flavors = [SimpleNamespace(id=name, name=name, disk=20) for name in ("m1.small", "m1.medium")]
        return SimpleNamespace(flavors=lambda: flavors, get_keypair=lambda name: name)

    def neutron(self):
        networks = [SimpleNamespace(id="public", name="public")]
        return SimpleNamespace(networks=lambda **_: networks, subnets=lambda: [])

    def keystone(self):
        return SimpleNamespace(client=SimpleNamespace(get_project=lambda name: name))


class Image(dict):
    def __getattr__(self, name):
        return self.get(name)

    def to_dict(self):
        return dict(self)


def of_context(api, context=None, **_):
    api._context = context


def conduct(api, method, **arguments):
    """Answers a call of the API to the conductor, in this process."""
    for module in (cluster_conductor, nodegroup_conductor, ca_conductor):
        work = getattr(module.Handler(), method, None)
        if work is not None:
            return work(api._context, **arguments)
    raise AttributeError(method)


def cast(api, method, **arguments):
    try:
        conduct(api, method, **arguments)
    except Exception as why:  # A cast has no answer.
        logging.debug("%s: %s", method, why)


def application():
    CONF.set_default("host", "here")
    CONF.set_default("connection", "sqlite://", group="database")
    CONF.set_default("sqlite_synchronous", False, group="database")
    log.register_options(CONF)
    config.parse_args(["record"], default_config_files=[])
    CONF.set_override("cert_manager_type", "x509keypair", group="certificates")
    dbapi.get_instance()
    models.Base.metadata.create_all(enginefacade.writer.get_engine())
    driver.Driver.load_entry_points = classmethod(lambda _: [(SimpleNamespace(name="k8s"), Idle)])
    driver.Driver.get_driver = classmethod(idle)
    clients.OpenStackClients = Cloud
    rpc_service.API.__init__ = of_context
    rpc_service.API._call = conduct
    rpc_service.API._cast = cast
    conductor_utils.notify_about_cluster_operation = lambda *_, **__: None
    app = {
        "root": "magnum.api.controllers.root.RootController",
        "modules": ["magnum.api"],
        "hooks": [hooks.ContextHook(), hooks.RPCHook(), hooks.NoExceptionTracebackHook()],
    }
    return pecan.testing.load_test_app({"app": app})


def lasting(value):
    """The answer without the values that differ in each recording."""
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items()}
    if isinstance(value, list):
        return [lasting(one) for one in value]
    if isinstance(value, str):
        value = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", value)
        value = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.+]*", "TIME", value)
        value = re.sub(r"-----BEGIN[^\0]*-----\n?", "PEM", value)
    return value


def at(answer, pointer):
    for part in pointer.strip("/").split("/"):
        answer = answer[int(part)] if isinstance(answer, list) else answer[part]
    return answer


def filled(value, kept):
    text = json.dumps(value)
    return json.loads(re.sub(r"\{(\w+)\}", lambda it: kept.get(it[1], it[0]), text))


def ask(app, step, version, kept):
    method, path = filled(step["ask"], kept).split(" ")
    headers = {"X-Project-Id": PROJECT, "X-User-Id": "anonymous", "X-Roles": "admin", "Accept": "application/json"}
    if version:
        headers["OpenStack-API-Version"] = f"container-infra {version}"
    body = step.get("body")
    body = json.dumps(filled(body, kept)) if body is not None else ""
    if body:
        headers["Content-Type"] = "application/json"
    answer = app.request(path, method=method, headers=headers, body=body.encode(), expect_errors=True)
    content = answer.json if answer.body and answer.status_int < 400 else None
    if answer.status_int < 300:
        kept.update({name: at(content, pointer) for name, pointer in step.get("keep", {}).items()})
    return {"status": answer.status_int, "body": lasting(content)}


def main():
    logging.disable(logging.CRITICAL)
    with open(sys.argv[1], encoding="utf-8") as file:
        walk = json.load(file)
    app, kept, recorded = application(), {}, []
    for step in walk:
        for version in step.get("at", ["latest"]):
            recorded.append({**step, "at": version, "answer": ask(app, step, version, kept)})
    print("[" + ",\n".join(json.dumps(one) for one in recorded) + "]")


main()
