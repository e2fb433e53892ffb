//! The critical path of a cluster: how long a client needs that makes every call at the earliest possible moment.
//!
//! The dependencies between calls are those of OpenStack and written down here. The durations of calls are measured. Neither is taken from
//! what clusterd did or plans to do.

use std::collections::BTreeMap;

use anyhow::Context;
use openstack_emulator::Times;

use super::cloud::LoggedCall;

/// A kind of call that a cluster needs.
struct Step {
    name: &'static str,
    method: &'static str,
    /// The first and the last part of the path of the call.
    path: (&'static str, &'static str),
    /// The names of the steps that must be answered before this call can be made.
    after: &'static [&'static str],
}

/// Every kind of call for a cluster with a load balancer, a floating IP and DNS names. Calls of one kind run in parallel, so each kind
/// takes as
/// long as one call.
#[rustfmt::skip]
const STEPS: &[Step] = &[
    step("token", "POST", ("/identity/", "/auth/tokens"), &[]),
    // No object is created before the quotas are known to suffice.
    step("flavors", "GET", ("/compute/", "/flavors/detail"), &["token"]),
    step("limits", "GET", ("/compute/", "/limits"), &["token"]),
    step("quotas", "GET", ("/network/v2.0/quotas/", ""), &["token"]),
    step("network", "POST", ("/network/", "/networks"), FITS),
    step("subnet", "POST", ("/network/", "/subnets"), &["network"]),
    step("router", "POST", ("/network/", "/routers"), FITS),
    step("leg", "PUT", ("/network/", "/add_router_interface"), &["router", "subnet"]),
    step("security group", "POST", ("/network/", "/security-groups"), FITS),
    step("rule", "POST", ("/network/", "/security-group-rules"), &["security group"]),
    step("port", "POST", ("/network/", "/ports"), &["subnet", "security group"]),
    step("server group", "POST", ("/compute/", "/os-server-groups"), FITS),
    // The user data of a server names the address of the API, which is the address of a port.
    step("server", "POST", ("/compute/", "/servers"), &["port", "server group"]),
    step("balancer", "POST", ("/load-balancer/", "/loadbalancers"), &["port"]),
    // Neutron accepts a floating IP only if a router connects the port's subnet to the external network.
    step("floating address", "POST", ("/network/", "/floatingips"), &["port", "leg"]),
    step("record", "POST", ("/dns/", "/recordsets"), &["floating address"]),
    step("credential", "POST", ("/identity/", "/application_credentials"), FITS),
];

const FITS: &[&str] = &["flavors", "limits", "quotas"];

const fn step(
    name: &'static str,
    method: &'static str,
    path: (&'static str, &'static str),
    after: &'static [&'static str],
) -> Step {
    Step { name, method, path, after }
}

impl Step {
    fn is(&self, call: &LoggedCall) -> bool {
        let (begin, end) = self.path;
        call.method == self.method && call.path.starts_with(begin) && call.path.ends_with(end)
    }
}

/// The shortest possible times, in seconds from the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CriticalPath {
    /// Until the last server is accepted.
    pub(crate) asked: f64,
    /// Until every member is ready, with a load balancer and a DNS name.
    pub(crate) ready: f64,
}

impl CriticalPath {
    /// Computes the path from the median duration of each kind of call, and from `times` for objects to come up.
    pub(crate) fn of(calls: &[LoggedCall], times: &Times) -> anyhow::Result<CriticalPath> {
        let done = done(calls, STEPS)?;
        let at = |name: &str, later: u32| done[name] + f64::from(later) / 1000.0;
        let ready = [
            at("server", times.server_build + times.guest_boot),
            at("balancer", times.load_balancer),
            at("record", times.recordset),
            at("rule", 0),
            at("credential", 0),
        ];
        Ok(CriticalPath { asked: at("server", 0), ready: ready.into_iter().fold(0.0, f64::max) })
    }
}

/// When each of these steps is done, in seconds from the request.
fn done(calls: &[LoggedCall], steps: &[Step]) -> anyhow::Result<BTreeMap<&'static str, f64>> {
    let mut done: BTreeMap<&str, f64> = BTreeMap::new();
    // Each step stands after the steps that it waits for.
    for step in steps {
        let begun = step.after.iter().filter_map(|before| done.get(before)).copied();
        let begun = begun.fold(0.0, f64::max);
        let took = median(calls.iter().filter(|call| step.is(call)));
        let took = took.with_context(|| format!("no {} was requested", step.name))?;
        done.insert(step.name, begun + took);
    }
    Ok(done)
}

/// When the quotas are known to suffice, in seconds from the request.
pub(crate) fn fits(calls: &[LoggedCall]) -> anyhow::Result<f64> {
    let done = done(calls, &STEPS[..=FITS.len()])?;
    Ok(FITS.iter().filter_map(|step| done.get(step)).copied().fold(0.0, f64::max))
}

/// The median duration of these calls, in seconds.
fn median<'a>(calls: impl Iterator<Item = &'a LoggedCall>) -> Option<f64> {
    let mut took: Vec<u64> = calls.filter_map(|call| call.took_millis).collect();
    took.sort_unstable();
    took.get(took.len() / 2).map(|millis| *millis as f64 / 1000.0)
}

/// The minimum of calls for a cluster of this number of servers: one of each kind, but one port and one server for each member, all the
/// security group rules, one port for the load balancer, two security groups and two DNS names.
pub(crate) fn fewest(calls: &[LoggedCall], machines: usize) -> MinimumCalls {
    let rules = calls.iter().filter(|call| call.path.ends_with("/security-group-rules")).count();
    let number = |step: &Step| match step.name {
        "port" => machines + 1,
        "server" => machines,
        "rule" => rules,
        "security group" | "server group" | "record" => 2,
        _ => 1,
    };
    let of = |changes: bool| {
        let some = STEPS.iter().filter(|step| (step.method != "GET") == changes);
        some.map(number).sum::<usize>()
    };
    MinimumCalls { changes: of(true), looks: of(false) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinimumCalls {
    /// Calls that change something.
    pub(crate) changes: usize,
    /// Calls that only read, without the ones that poll the state of an object.
    pub(crate) looks: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One call of each kind, each of 100 ms.
    fn each() -> Vec<LoggedCall> {
        let call = |step: &Step| LoggedCall {
            at_millis: 0,
            took_millis: Some(100),
            method: step.method.to_owned(),
            path: [step.path.0, step.path.1].concat(),
            status: Some(200),
        };
        STEPS.iter().map(call).collect()
    }

    fn no_times() -> Times {
        let none = serde_json::json!({
            "server_build": 0, "guest_boot": 0, "load_balancer": 0, "recordset": 0,
        });
        serde_json::from_value(none).unwrap()
    }

    #[track_caller]
    fn check(slow: &str, times: Times, want: (f64, f64)) {
        let mut calls = each();
        let at = STEPS.iter().position(|step| step.name == slow).unwrap();
        calls[at].took_millis = Some(1100);
        let path = CriticalPath::of(&calls, &times).unwrap();
        let round = |seconds: f64| (seconds * 10.0).round() / 10.0;
        assert_eq!((round(path.asked), round(path.ready)), want);
    }

    #[test]
    fn every_step_waits_for_steps_before_it() {
        for (at, step) in STEPS.iter().enumerate() {
            let known = |name: &&str| STEPS[..at].iter().any(|before| before.name == *name);
            assert!(step.after.iter().all(known), "{}", step.name);
        }
    }

    #[test]
    fn the_longest_chain_counts() {
        // Servers: token, quotas, network, subnet, port, server. Names: the path by way of the floating IP.
        check("credential", no_times(), (0.6, 1.3));
        check("subnet", no_times(), (1.6, 1.7));
        check("server", no_times(), (1.6, 1.6));
        check("router", no_times(), (0.6, 1.6));
        check("server group", no_times(), (1.4, 1.4));
    }

    #[test]
    fn an_object_comes_up_after_the_api_accepted_it() {
        check("server", Times { server_build: 4000, guest_boot: 8000, ..no_times() }, (1.6, 13.6));
        check("server", Times { load_balancer: 9000, ..no_times() }, (1.6, 9.6));
    }

    #[test]
    fn a_path_needs_a_call_of_each_kind() {
        let why = CriticalPath::of(&each()[1..], &no_times()).unwrap_err();
        assert_eq!(why.to_string(), "no token was requested");
    }

    #[test]
    fn each_machine_needs_two_calls() {
        let (one, nine) = (fewest(&each(), 1), fewest(&each(), 9));
        assert_eq!((nine.changes - one.changes, nine.looks), (16, one.looks));
    }
}
