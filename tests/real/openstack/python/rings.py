"""Makes Swift's rings of one device. rings.py ADDRESS FOLDER"""

import sys

from swift.common.ring import RingBuilder

PORTS = {"object": 6200, "container": 6201, "account": 6202}

address, folder = sys.argv[1:]
for name, port in PORTS.items():
    builder = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
    place = {"ip": address, "port": port, "replication_ip": address, "replication_port": port}
    builder.add_dev({"region": 1, "zone": 1, "weight": 1.0, "device": "d1", "meta": "", **place})
    builder.rebalance()
    builder.get_ring().save(f"{folder}/{name}.ring.gz")
