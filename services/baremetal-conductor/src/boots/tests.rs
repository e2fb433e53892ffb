//! The parameters of a virtual CD.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use baremetal_core::BootInterface;
use baremetal_store::AddressPool;
use pxe::{Listen, Prober};

use crate::Leases;
use crate::samples::{SampleMachine, conductor, settings};

#[tokio::test]
async fn a_machine_that_boots_by_virtual_cd_is_told_its_leased_address() {
    let first = [127, 9, 0, 1].into();
    let leases = |router: Option<[u8; 4]>| Leases {
        pool: AddressPool {
            first,
            last: first,
            reserved: Vec::new(),
            stranger_lease_time: Duration::from_secs(60),
        },
        prober: Prober::new(&Listen::Socket(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))),
        prefix: 24,
        router: router.map(Into::into),
    };
    for (leases, want) in [
        (None, None),
        (Some(leases(None)), Some("127.9.0.1/24")),
        (Some(leases(Some([127, 9, 0, 254]))), Some("127.9.0.1/24,127.9.0.254")),
    ] {
        let conductor = conductor(crate::Settings { leases, ..settings() }).await;
        let machine = SampleMachine::start().await;
        let (mut node, port) = machine.node();
        node.interfaces.boot = Some(BootInterface::VirtualMedia);
        let store = &conductor.context.store;
        store.insert_node(&node).await.unwrap();
        store.insert_port(&port).await.unwrap();
        let url = conductor.context.medium(&node).await.unwrap();
        let capability = url.path_segments().unwrap().nth_back(1).unwrap();
        let work = node.work.as_ref().unwrap().id;
        let given = conductor.medium_parameters(node.id, work, capability).await.unwrap();
        let address = given.iter().find(|(key, _)| key == "bedplate.address");
        assert_eq!(address.and_then(|(_, value)| value.as_deref()), want);
    }
}
