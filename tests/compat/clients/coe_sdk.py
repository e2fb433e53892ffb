"""Tests openstacksdk's container infrastructure proxy against the service at ENDPOINT."""

import os
import unittest

import openstack
from openstack import exceptions


class ContainerInfra(unittest.TestCase):
    """Each test deletes its template and its cluster."""

    def setUp(self):
        """Connects without Keystone, to one endpoint."""
        endpoint = os.environ["ENDPOINT"] + "/v1"
        connection = openstack.connect(
            load_yaml_config=False,
            load_envvars=False,
            auth_type="none",
            endpoint=endpoint,
            container_infrastructure_management_endpoint_override=endpoint,
            container_infra_endpoint_override=endpoint,
        )
        self.coe = connection.container_infrastructure_management
        self.addCleanup(connection.close)

    def template(self, name, **fields):
        """Creates a template that is deleted at the end of the test."""
        template = self.coe.create_cluster_template(
            name=name, coe="kubernetes", image_id="fcos", flavor_id="m1.large", external_network_id="public", **fields
        )
        self.addCleanup(self.coe.delete_cluster_template, template)
        return template

    def gone(self, cluster):
        """Waits until a cluster is deleted."""
        self.coe.wait_for_delete(cluster, interval=0.1, wait=30)

    def test_a_template_is_created_found_and_deleted(self):
        """Create, find and delete a template."""
        template = self.template("sdk-template", labels={"kube_tag": "v1.33.0"}, is_master_lb_enabled=True)
        self.assertEqual((template.coe, template.labels), ("kubernetes", {"kube_tag": "v1.33.0"}))
        self.assertIs(template.is_master_lb_enabled, True)
        self.assertEqual(self.coe.get_cluster_template("sdk-template").uuid, template.uuid)
        self.assertEqual(self.coe.find_cluster_template("sdk-template").uuid, template.uuid)
        self.assertIsNone(self.coe.find_cluster_template("nobody"))
        self.assertIn(template.uuid, [found.uuid for found in self.coe.cluster_templates()])
        with self.assertRaises(exceptions.BadRequestException) as refused:
            self.template("sdk-refused", labels={"coredns_tag": "1.9.4"})
        (error,) = refused.exception.response.json()["errors"]
        self.assertEqual(error["detail"], "labels/coredns_tag: its version is set by kube_tag; remove it")

    def test_a_cluster_is_asked_for_and_its_end_too(self):
        """Create, find and delete a cluster."""
        self.template("sdk-clusters")
        cluster = self.coe.create_cluster(name="sdk-cluster", cluster_template_id="sdk-clusters", node_count=2)
        found = self.coe.get_cluster(cluster.uuid)
        self.assertEqual((found.name, found.node_count, found.master_count), ("sdk-cluster", 2, 1))
        self.assertEqual(found.status, "CREATE_IN_PROGRESS")
        self.assertEqual(self.coe.find_cluster("sdk-cluster").uuid, cluster.uuid)
        self.assertIn(cluster.uuid, [listed.uuid for listed in self.coe.clusters()])

        authority = self.coe.get_cluster_certificate(cluster.uuid)
        self.assertIn("BEGIN CERTIFICATE", authority.pem)
        self.coe.delete_cluster(found)
        self.gone(found)
        self.assertIsNone(self.coe.find_cluster("sdk-cluster"))

    def test_services_are_listed(self):
        """List the services."""
        (service,) = self.coe.services()
        self.assertEqual((service.binary, service.state), ("magnum-conductor", "up"))


if __name__ == "__main__":
    unittest.main()
