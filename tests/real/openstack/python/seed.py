"""Fills a new cloud. seed.py ADDRESS identity | cloud | wait-computes HOST... | wait-volumes | forget-compute HOST"""

import sys
import time

import openstack

PASSWORD = "bedplate"
ENDPOINTS = [  # name, type, port, path
    ("placement", "placement", 8778, ""),
    ("glance", "image", 9292, ""),
    ("nova", "compute", 8774, "/v2.1"),
    ("neutron", "network", 9696, ""),
    ("octavia", "load-balancer", 9876, ""),
    ("designate", "dns", 9001, ""),
    ("cinder", "volumev3", 8776, "/v3/%(project_id)s"),
    ("swift", "object-store", 6203, "/v1/AUTH_%(project_id)s"),
]
ROLES = ("service", "load-balancer_member", "load-balancer_admin")
TENANT = ("member", "load-balancer_member")
ACCOUNTS = [  # project, user, roles
    ("service", "service", ("admin", "service")),
    ("tenant-a", "alice", TENANT),
    ("tenant-b", "bob", TENANT),
]
FLAVORS = [  # name, processors, MiB, GiB
    ("m1.tiny", 1, 512, 1),
    ("m1.small", 1, 2048, 20),
    ("m1.medium", 2, 4096, 40),
    ("m1.large", 4, 8192, 80),
]


def identity(cloud, address):
    for name, kind, port, path in ENDPOINTS:
        service = cloud.identity.create_service(name=name, type=kind)
        for interface in ("public", "internal", "admin"):
            cloud.identity.create_endpoint(
                service_id=service.id, interface=interface, url=f"http://{address}:{port}{path}", region_id="RegionOne"
            )
    roles = {role.name: role for role in cloud.identity.roles()}
    for name in ROLES:
        if name not in roles:
            roles[name] = cloud.identity.create_role(name=name)
    for project_name, user_name, granted in ACCOUNTS:
        project = cloud.identity.create_project(name=project_name, domain_id="default")
        user = cloud.identity.create_user(name=user_name, password=PASSWORD, default_project_id=project.id)
        for name in granted:
            cloud.identity.assign_project_role_to_user(project.id, user.id, roles[name].id)


def resources(cloud):
    for name, processors, memory, disk in FLAVORS:
        cloud.compute.create_flavor(name=name, vcpus=processors, ram=memory, disk=disk)
    network = cloud.network.create_network(
        name="public", is_router_external=True, provider_network_type="flat", provider_physical_network="public"
    )
    cloud.network.create_subnet(
        name="public", network_id=network.id, ip_version=4, cidr="198.18.0.0/22", gateway_ip="198.18.0.1", is_dhcp_enabled=False
    )
    path = "/state/glance/tiny.img"
    with open(path, "wb") as image:
        image.write(b"an image that nothing boots\n".ljust(64 * 1024, b"\0"))
    cloud.create_image("tiny", filename=path, disk_format="raw", container_format="bare", visibility="public", wait=True)


def wait_computes(cloud, hosts):
    """Waits until each host is up in Nova, mapped to the cell and known to Placement."""
    end = time.monotonic() + 60
    missing = set(hosts)
    while missing and time.monotonic() < end:
        up = {service.host for service in cloud.compute.services(binary="nova-compute") if service.state == "up"}
        mapped = {hypervisor.name for hypervisor in cloud.compute.hypervisors(details=True)}
        placed = {provider.name for provider in cloud.placement.resource_providers()}
        missing = set(hosts) - (up & mapped & placed)
        time.sleep(0.5)
    if missing:
        sys.exit(f"not up in time: {missing}")


def wait_volumes(cloud):
    """Waits until Cinder's scheduler knows a storage pool: before that, new volumes fail at once."""
    end = time.monotonic() + 60
    while not cloud.block_storage.get("/scheduler-stats/get_pools").json().get("pools"):
        if time.monotonic() > end:
            sys.exit("no place for volumes in time")
        time.sleep(0.5)


def forget_compute(cloud, host):
    for service in cloud.compute.services(binary="nova-compute", host=host):
        cloud.compute.delete(f"/os-services/{service.id}", microversion="2.53").raise_for_status()


if __name__ == "__main__":
    address, what, *names = sys.argv[1:]
    admin = openstack.connect(cloud="admin")
    if what == "identity":
        identity(admin, address)
    elif what == "cloud":
        resources(admin)
    elif what == "wait-computes":
        wait_computes(admin, names)
    elif what == "wait-volumes":
        wait_volumes(admin)
    elif what == "forget-compute":
        forget_compute(admin, names[0])
