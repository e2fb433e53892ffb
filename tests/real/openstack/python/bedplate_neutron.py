"""Neutron plugins for a cloud without real hypervisors: they do immediately what agents would do.

PortsWithoutAgents binds every port on any host and reports it ACTIVE. RoutersWithoutAgents is the reference router
service, with floating IPs ACTIVE as soon as they have a port and DOWN while they have none.
"""

from neutron.services.l3_router import l3_router_plugin
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api


class PortsWithoutAgents(api.MechanismDriver):
    def initialize(self):
        pass

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def bind_port(self, context):
        for segment in context.segments_to_bind:
            context.set_binding(
                segment[api.ID],
                portbindings.VIF_TYPE_OVS,
                {portbindings.CAP_PORT_FILTER: True},
                status=constants.PORT_STATUS_ACTIVE,
            )
            return

    # ports of routers have no host and are up as soon as they exist
    def create_port_postcommit(self, context):
        port = context.current
        if port["device_owner"].startswith("network:") and port["status"] != constants.PORT_STATUS_ACTIVE:
            plugin = directory.get_plugin()
            plugin.update_port_status(context._plugin_context, port["id"], constants.PORT_STATUS_ACTIVE)

    update_port_postcommit = create_port_postcommit


class RoutersWithoutAgents(l3_router_plugin.L3RouterPlugin):
    def create_floatingip(self, context, floatingip):
        return self._settle(context, super().create_floatingip(context, floatingip))

    def update_floatingip(self, context, id, floatingip):
        return self._settle(context, super().update_floatingip(context, id, floatingip))

    def _settle(self, context, floating_ip):
        attached = floating_ip["port_id"]
        status = constants.FLOATINGIP_STATUS_ACTIVE if attached else constants.FLOATINGIP_STATUS_DOWN
        if floating_ip["status"] != status:
            self.update_floatingip_status(context.elevated(), floating_ip["id"], status)
            floating_ip["status"] = status
        return floating_ip
