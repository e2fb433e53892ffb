//! A drain in a response.

use cluster_core::{Drain, OwnServer, RemainingServer};
use openstack_api::{JsonShape, Time, shaped};
use serde::Serialize;

shaped! {
    #[derive(Serialize)]
    struct ShownLeft<'a> {
        server_id: &'a str,
        name: &'a str,
        cluster_uuid: Option<String>,
        machine: Option<String>,
        vm_uuid: Option<String>,
        fate: &'static str = JsonShape::enumeration(["waits", "moves", "off", "emptied", "stays"]),
        why: &'a str,
    }
}

shaped! {
    #[derive(Serialize)]
    pub(super) struct Shown<'a> {
        host: &'a str,
        state: &'static str = JsonShape::enumeration(["draining", "drained", "stuck", "ending"]),
        asked_at: Time,
        asked_by: &'a str,
        /// The clusters that may lose their quorum.
        forced: Vec<String>,
        /// The servers of clusterd that are still on the host.
        left: Vec<ShownLeft<'a>>,
        /// The number of other servers on the host.
        foreign: u32,
        problem: Option<&'a str>,
    }
}

pub(super) fn shown(drain: &Drain) -> Shown<'_> {
    Shown {
        host: drain.host.as_str(),
        state: drain.phase.as_str(),
        asked_at: Time(drain.asked_at),
        asked_by: &drain.asked_by,
        forced: drain.forced.iter().map(ToString::to_string).collect(),
        left: drain.left.iter().map(left).collect(),
        foreign: drain.foreign,
        problem: drain.problem.as_deref(),
    }
}

fn left(left: &RemainingServer) -> ShownLeft<'_> {
    let (member, vm) = match &left.what {
        OwnServer::Member(member) => (Some(member), None),
        OwnServer::Vm(vm) => (None, Some(vm)),
    };
    ShownLeft {
        server_id: &left.server,
        name: &left.name,
        cluster_uuid: member.map(|member| member.cluster.to_string()),
        machine: member.map(|member| member.machine.to_string()),
        vm_uuid: vm.map(ToString::to_string),
        fate: left.fate.as_str(),
        why: &left.why,
    }
}
