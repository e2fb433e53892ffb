"""Creates, lists, shows, changes and deletes one object of each kind with openstacksdk. An exception is a failure."""

import openstack

alice = openstack.connect(cloud="alice")
admin = openstack.connect(cloud="admin")
QUICK = {"interval": 0.1, "wait": 20}


def refused(kind, call):
    """Checks that the call fails with this exception."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"not refused: {kind}")


def names(things):
    return [thing.name for thing in things]


def network():
    outside = alice.network.find_network("public")
    net = alice.network.create_network(name="net")
    subnet = alice.network.create_subnet(name="sub", network_id=net.id, cidr="10.1.0.0/24", ip_version=4)
    assert alice.network.find_subnet("sub").gateway_ip == "10.1.0.1"
    router = alice.network.create_router(name="router", external_gateway_info={"network_id": outside.id})
    alice.network.add_interface_to_router(router, subnet_id=subnet.id)
    group = alice.network.create_security_group(name="group")
    rule = {"security_group_id": group.id, "direction": "ingress", "protocol": "tcp", "port_range_min": 22, "port_range_max": 22}
    alice.network.create_security_group_rule(**rule)
    refused(openstack.exceptions.ConflictException, lambda: alice.network.create_security_group_rule(**rule))
    fixed = [{"subnet_id": subnet.id, "ip_address": "10.1.0.50"}]
    port = alice.network.create_port(name="port", network_id=net.id, security_group_ids=[group.id], fixed_ips=fixed)
    alice.network.set_tags(port, ["a", "b"])
    assert names(alice.network.ports(tags="a,b")) == ["port"]
    floating = alice.network.create_ip(floating_network_id=outside.id, port_id=port.id)
    assert alice.network.get_quota(alice.current_project_id, details=True).floating_ips["used"] == 1
    return net, subnet, router, group, port, floating


def compute(port):
    alice.compute.create_keypair(name="key", public_key="ssh-ed25519 AAAA somebody")
    group = alice.compute.create_server_group(name="apart", policy="soft-anti-affinity")
    server = alice.compute.create_server(
        name="server",
        image_id=alice.image.find_image("cirros").id,
        flavor_id=alice.compute.find_flavor("m1.small").id,
        networks=[{"port": port.id}],
        key_name="key",
        scheduler_hints={"group": group.id},
        user_data="aGVsbG8=",
        config_drive=True,
    )
    server = alice.compute.wait_for_server(server, **QUICK)
    assert server.addresses["net"][0]["addr"] == "10.1.0.50", server.addresses
    assert alice.compute.find_server("server").id == server.id
    assert alice.compute.get_server_group(group.id).member_ids == [server.id]
    alice.compute.stop_server(server)
    alice.compute.wait_for_server(server, status="SHUTOFF", **QUICK)
    alice.compute.start_server(server)
    alice.compute.wait_for_server(server, **QUICK)
    assert [action.action for action in alice.compute.server_actions(server)] == ["start", "stop", "create"]
    assert "guest: joined" in alice.compute.get_server_console_output(server)["output"]
    assert alice.compute.create_console(server, "novnc")["url"].startswith("http")
    assert len(list(alice.compute.server_interfaces(server))) == 1
    alice.compute.add_tag_to_server(server, "worker")
    assert names(alice.compute.servers(tags="worker")) == ["server"]
    alice.compute.set_server_metadata(server, role="worker")
    image = alice.compute.create_server_image(server, "snapshot", wait=True)
    assert image.status == "active"
    alice.image.delete_image(image)
    assert alice.compute.get_limits().absolute.instances_used == 1
    assert "nova" in names(alice.compute.availability_zones())
    return server, group


def volumes(server):
    volume = alice.block_storage.create_volume(name="volume", size=1)
    alice.block_storage.wait_for_status(volume, "available", **QUICK)
    alice.compute.create_volume_attachment(server, volume_id=volume.id)
    alice.block_storage.wait_for_status(volume, "in-use", **QUICK)
    alice.compute.delete_volume_attachment(server, volume.id)
    alice.block_storage.wait_for_status(volume, "available", **QUICK)
    snapshot = alice.block_storage.create_snapshot(volume_id=volume.id, name="snapshot")
    alice.block_storage.wait_for_status(snapshot, "available", **QUICK)
    refused(openstack.exceptions.BadRequestException, lambda: alice.block_storage.delete_volume(volume, ignore_missing=False))
    assert names(alice.block_storage.snapshots()) == ["snapshot"]
    alice.block_storage.delete_snapshot(snapshot)
    alice.block_storage.wait_for_delete(snapshot, **QUICK)
    alice.block_storage.delete_volume(volume)


def load_balancer(subnet):
    monitor = {"type": "TCP", "delay": 5, "timeout": 3, "max_retries": 3}
    member = {"address": "10.1.0.50", "protocol_port": 6443, "subnet_id": subnet.id}
    pool = {"name": "pool", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [member], "healthmonitor": monitor}
    listener = {"name": "api", "protocol": "TCP", "protocol_port": 6443, "default_pool": pool}
    lb = alice.load_balancer
    balancer = lb.create_load_balancer(name="balancer", vip_subnet_id=subnet.id, listeners=[listener])
    lb.wait_for_load_balancer(balancer.id, **QUICK)
    pool = list(lb.pools(loadbalancer_id=balancer.id))[0]
    assert [one.address for one in lb.members(pool)] == ["10.1.0.50"]
    assert [one.type for one in lb.health_monitors()] == ["TCP"]
    lb.create_member(pool, name="second", address="10.1.0.51", protocol_port=6443)
    refused(
        openstack.exceptions.ConflictException,
        lambda: lb.create_member(pool, name="third", address="10.1.0.52", protocol_port=6443),
    )
    lb.wait_for_load_balancer(balancer.id, **QUICK)
    assert names(lb.flavors()) == ["single"]
    lb.delete_load_balancer(balancer.id, cascade=True)
    lb.wait_for_delete(balancer, **QUICK)


def names_and_people(floating):
    zone = alice.dns.create_zone(name="example.org.", email="hostmaster@example.org")
    alice.dns.create_recordset(zone, name="api.example.org.", type="A", records=["192.0.2.1"])
    assert sorted(one.type for one in alice.dns.recordsets(zone)) == ["A", "NS", "SOA"]
    assert alice.dns.find_zone("example.org.").id == zone.id
    alice.dns.update_floating_ip(f"RegionOne:{floating.id}", ptrdname="api.example.org.")
    assert [one.ptrdname for one in alice.dns.floating_ips()] == ["api.example.org."]
    alice.dns.delete_zone(zone)

    me = alice.current_user_id
    credential = alice.identity.create_application_credential(me, "credential", roles=[{"name": "member"}])
    auth = {
        "auth_url": alice.config.auth["auth_url"],
        "application_credential_id": credential.id,
        "application_credential_secret": credential.secret,
    }
    lesser = openstack.connect(auth_type="v3applicationcredential", auth=auth, region_name="RegionOne")
    assert names(lesser.compute.servers()) == ["server"]
    refused(openstack.exceptions.ForbiddenException, lambda: lesser.identity.create_application_credential(me, "more"))
    alice.identity.delete_application_credential(me, credential)


def images():
    image = alice.create_image("image", container_format="bare", disk_format="raw", data=b"x" * 100_000, wait=True)
    image = alice.image.get_image(image.id)
    assert (image.status, image.size) == ("active", 100_000)
    assert len(alice.image.download_image(image).content) == 100_000
    alice.image.delete_image(image.id)


def administration():
    assert names(admin.placement.resource_providers()) == [f"compute-{number}" for number in range(1, 5)]
    assert "tenant-a" in names(admin.identity.projects())
    assert len(list(admin.compute.hypervisors(details=True))) == 4
    assert admin.get_compute_quotas("tenant-a").cores == 20


def main():
    net, subnet, router, group, port, floating = network()
    server, apart = compute(port)
    volumes(server)
    load_balancer(subnet)
    names_and_people(floating)
    images()
    administration()
    alice.network.delete_ip(floating)
    alice.compute.delete_server(server)
    alice.compute.wait_for_delete(server, **QUICK)
    refused(openstack.exceptions.ConflictException, lambda: alice.network.delete_network(net))
    alice.network.delete_port(port)
    alice.network.remove_interface_from_router(router, subnet_id=subnet.id)
    alice.network.delete_router(router)
    alice.network.delete_network(net)
    alice.network.delete_security_group(group)
    alice.compute.delete_server_group(apart)
    alice.compute.delete_keypair("key")


if __name__ == "__main__":
    main()
