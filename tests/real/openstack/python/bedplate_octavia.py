"""An Octavia network driver without amphorae, but with real VIP ports in Neutron.

Octavia's own no-op network driver invents an address whose port does not exist, so no floating IP can be associated with it.
"""

from octavia.common import data_models
from octavia.network import data_models as network_models
from octavia.network.drivers.neutron.allowed_address_pairs import AllowedAddressPairsDriver
from oslo_utils import uuidutils


class RealVipPorts(AllowedAddressPairsDriver):
    def plug_aap_port(self, load_balancer, vip, amphora, subnet):
        return data_models.Amphora(
            id=amphora.id,
            compute_id=amphora.compute_id,
            vrrp_ip=vip.ip_address,
            ha_ip=vip.ip_address,
            vrrp_port_id=vip.port_id,
            ha_port_id=vip.port_id,
        )

    def plug_vip(self, load_balancer, vip):
        self.update_vip_sg(load_balancer, vip)
        subnet = self.get_subnet(vip.subnet_id)
        return [self.plug_aap_port(load_balancer, vip, amphora, subnet) for amphora in load_balancer.amphorae]

    def unplug_vip(self, load_balancer, vip):
        pass

    def unplug_aap_port(self, vip, amphora, subnet):
        pass

    def plug_network(self, compute_id, network_id):
        return network_models.Interface(
            id=uuidutils.generate_uuid(),
            compute_id=compute_id,
            network_id=network_id,
            fixed_ips=[],
            port_id=uuidutils.generate_uuid(),
        )

    def unplug_network(self, compute_id, network_id):
        pass

    def get_plugged_networks(self, compute_id):
        return []

    def wait_for_port_detach(self, amphora):
        pass
