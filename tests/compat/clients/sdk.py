"""Tests openstacksdk's bare metal proxy, through all provision states, against the service at ENDPOINT."""

import os
import unittest

import openstack
from openstack import exceptions

WAIT = 60
FAKE = {f"{kind}_interface": "fake" for kind in ("boot", "deploy", "inspect", "management", "power")}


class BareMetal(unittest.TestCase):
    """Each test deletes its nodes."""

    def setUp(self):
        """Connects as Bifrost and Ansible do: without Keystone, to one endpoint."""
        connection = openstack.connect(
            load_yaml_config=False,
            load_envvars=False,
            auth_type="none",
            endpoint=os.environ["ENDPOINT"],
            baremetal_endpoint_override=os.environ["ENDPOINT"],
        )
        self.baremetal = connection.baremetal
        self.addCleanup(connection.close)

    def node(self, name, **fields):
        """Creates a node of fake hardware that is deleted at the end of the test."""
        node = self.baremetal.create_node(name=name, driver="fake-hardware", **FAKE, **fields)
        self.addCleanup(self.remove, node.id)
        return node

    def remove(self, node):
        """Deletes a node in any provision state."""
        if self.baremetal.find_node(node) is not None:
            self.baremetal.set_node_maintenance(node)
            self.baremetal.delete_node(node)

    def available(self, name):
        """Creates a node and makes it available."""
        node = self.node(name, resource_class="baremetal")
        self.baremetal.set_node_provision_state(node, "manage", wait=True, timeout=WAIT)
        return self.baremetal.set_node_provision_state(node, "provide", wait=True, timeout=WAIT)

    def test_a_node_is_created_found_changed_and_deleted(self):
        """Create, find, change and delete a node."""
        node = self.node("sdk-node", properties={"cpus": 4}, extra={"row": 7}, driver_info={"fake_password": "x"})
        self.assertEqual(node.provision_state, "enroll")
        self.assertEqual(node.properties, {"cpus": 4})
        self.assertEqual(node.driver_info, {"fake_password": "******"})

        self.assertEqual(self.baremetal.get_node("sdk-node").id, node.id)
        self.assertEqual(self.baremetal.find_node("sdk-node").id, node.id)
        self.assertIsNone(self.baremetal.find_node("nobody"))
        with self.assertRaises(exceptions.NotFoundException):
            self.baremetal.get_node("nobody")
        some = self.baremetal.get_node(node.id, fields=["name", "extra"])
        self.assertEqual((some.name, some.extra, some.properties), ("sdk-node", {"row": 7}, None))

        node = self.baremetal.update_node(node, extra={"row": 8}, description="moved")
        self.assertEqual((node.extra, node.description), ({"row": 8}, "moved"))
        node = self.baremetal.patch_node(node, [{"op": "add", "path": "/extra/rack", "value": "r1"}])
        self.assertEqual(node.extra, {"row": 8, "rack": "r1"})
        with self.assertRaises(exceptions.BadRequestException):
            self.baremetal.patch_node(node, [{"op": "add", "path": "/colour", "value": "red"}])

        self.baremetal.delete_node(node)
        self.assertIsNone(self.baremetal.find_node(node.id))
        with self.assertRaises(exceptions.NotFoundException):
            self.baremetal.delete_node(node, ignore_missing=False)

    def test_lists_are_filtered_and_paged(self):
        """The SDK follows `next` links by itself."""
        ids = {self.node(f"sdk-list-{number}", resource_class=f"class-{number % 2}").id for number in range(5)}
        self.assertEqual({node.id for node in self.baremetal.nodes(limit=2)}, ids)
        detailed = list(self.baremetal.nodes(details=True, limit=2))
        self.assertEqual({node.id for node in detailed}, ids)
        self.assertTrue(all(node.driver == "fake-hardware" for node in detailed))
        self.assertEqual(len(list(self.baremetal.nodes(resource_class="class-1"))), 2)
        self.assertEqual(len(list(self.baremetal.nodes(provision_state="active"))), 0)
        self.assertEqual(len(list(self.baremetal.nodes(is_maintenance=True))), 0)
        self.assertEqual({node.name for node in self.baremetal.nodes(fields=["name"])}, {f"sdk-list-{n}" for n in range(5)})

    def test_a_node_goes_the_whole_road(self):
        """Go through the provision states and wait for each as Ansible's modules do."""
        node = self.available("sdk-road")
        self.assertEqual(node.provision_state, "available")
        validated = self.baremetal.validate_node(node, required=("boot", "deploy", "management", "power", "storage"))
        self.assertTrue(validated["raid"].result)
        node = self.baremetal.update_node(node, instance_info={"image_source": "http://192.0.2.1/i", "image_checksum": "0" * 64})
        node = self.baremetal.set_node_provision_state(
            node, "active", config_drive={"meta_data": {"hostname": "sdk-road"}}, wait=True, timeout=WAIT
        )
        self.assertEqual(node.provision_state, "active")
        with self.assertRaises(exceptions.BadRequestException):
            self.baremetal.set_node_provision_state(node, "provide")
        self.baremetal.set_node_provision_state(node, "deleted")
        (node,) = self.baremetal.wait_for_nodes_provision_state([node], "available", timeout=WAIT)
        self.assertEqual(node.instance_info, {})

    def test_a_node_is_inspected(self):
        """After inspection, the node is in its former provision state."""
        node = self.node("sdk-inspect")
        self.baremetal.set_node_provision_state(node, "manage", wait=True, timeout=WAIT)
        node = self.baremetal.set_node_provision_state(node, "inspect", wait=True, timeout=WAIT)
        self.assertEqual(node.provision_state, "manageable")
        self.assertIsNone(self.baremetal.get_node(node).last_error)

    def test_power_is_switched(self):
        """Switch power and wait for it."""
        node = self.available("sdk-power")
        for target, state in (("power on", "power on"), ("rebooting", "power on"), ("power off", "power off")):
            self.baremetal.set_node_power_state(node, target, wait=True, timeout=WAIT)
            self.assertEqual(self.baremetal.get_node(node).power_state, state)

    def test_maintenance_traits_and_boot_device(self):
        """Set maintenance, traits and the boot device of a node."""
        node = self.available("sdk-hung")
        self.baremetal.set_node_maintenance(node, "a fan is loud")
        self.assertEqual(self.baremetal.get_node(node).maintenance_reason, "a fan is loud")
        self.baremetal.unset_node_maintenance(node)
        self.assertFalse(self.baremetal.get_node(node).is_maintenance)

        self.baremetal.add_node_trait(node, "CUSTOM_ONE")
        self.baremetal.set_node_traits(node, ["CUSTOM_TWO", "CUSTOM_THREE"])
        self.baremetal.remove_node_trait(node, "CUSTOM_TWO")
        self.assertEqual(self.baremetal.get_node(node).traits, ["CUSTOM_THREE"])

        self.baremetal.set_node_boot_device(node, "pxe", persistent=False)
        self.assertEqual(self.baremetal.get_node_boot_device(node)["boot_device"], "pxe")
        self.assertIn("pxe", self.baremetal.get_node_supported_boot_devices(node)["supported_boot_devices"])

    def test_ports(self):
        """Find ports by id, by node and by address."""
        node = self.node("sdk-ports")
        port = self.baremetal.create_port(address="52:54:00:cc:00:01", node_id=node.id, extra={"slot": 1})
        self.assertEqual([found.id for found in self.baremetal.ports(node=node.id)], [port.id])
        self.assertEqual([found.id for found in self.baremetal.ports(address="52:54:00:cc:00:01", details=True)], [port.id])
        self.assertEqual(self.baremetal.get_port(port.id).node_id, node.id)
        self.assertEqual(self.baremetal.find_port(port.id).address, "52:54:00:cc:00:01")
        port = self.baremetal.update_port(port, is_pxe_enabled=False)
        self.assertIs(port.is_pxe_enabled, False)
        port = self.baremetal.patch_port(port, [{"op": "remove", "path": "/extra/slot"}])
        self.assertEqual(port.extra, {})
        with self.assertRaises(exceptions.BadRequestException):
            self.baremetal.create_port(address="nonsense", node_id=node.id)
        self.baremetal.delete_port(port)
        self.assertEqual(list(self.baremetal.ports(node=node.id)), [])

    def test_a_node_is_allocated(self):
        """Allocate a node as metalsmith does."""
        node = self.available("sdk-allocated")
        self.baremetal.set_node_power_state(node, "power off", wait=True, timeout=WAIT)
        allocation = self.baremetal.create_allocation(
            name="sdk-job", resource_class="baremetal", candidate_nodes=[node.id], extra={"a": 1}
        )
        allocation = self.baremetal.wait_for_allocation(allocation, timeout=WAIT)
        self.assertEqual((allocation.state, allocation.node_id), ("active", node.id))
        node = self.baremetal.get_node(node.id)
        self.assertEqual((node.allocation_id, node.instance_id), (allocation.id, allocation.id))
        self.assertEqual([found.id for found in self.baremetal.allocations(node=node.id)], [allocation.id])
        self.assertEqual(self.baremetal.get_allocation("sdk-job").id, allocation.id)
        allocation = self.baremetal.update_allocation(allocation, extra={"a": 2})
        self.assertEqual(allocation.extra, {"a": 2})

        vain = self.baremetal.create_allocation(name="sdk-vain", resource_class="baremetal")
        with self.assertRaises(exceptions.SDKException):
            self.baremetal.wait_for_allocation(vain, timeout=WAIT)
        self.assertEqual(self.baremetal.get_allocation("sdk-vain").state, "error")
        self.baremetal.delete_allocation("sdk-vain")

        self.baremetal.delete_allocation(allocation)
        self.assertEqual(list(self.baremetal.allocations()), [])
        self.assertIsNone(self.baremetal.get_node(node.id).instance_id)

    def test_drivers_and_conductors(self):
        """List drivers and conductors."""
        names = {driver.name for driver in self.baremetal.drivers()}
        self.assertLessEqual({"fake-hardware", "ipmi", "redfish"}, names)
        driver = self.baremetal.get_driver("redfish")
        self.assertEqual(driver.default_power_interface, "redfish")
        self.assertTrue(driver.hosts)
        (conductor,) = self.baremetal.conductors()
        self.assertIn("redfish", self.baremetal.get_conductor(conductor.hostname).drivers)


if __name__ == "__main__":
    unittest.main()
