//! The critical path of recorded calls: each call takes as long as it took, and begins when the objects that it names exist.
//!
//! A cloud on a few processors answers eight calls of a kind one after the other, even when they arrive together. The median of the eight
//! then says little about the last. So nothing is averaged here. A call depends on the calls that made the objects whose ids are in its
//! path or body.

use super::listen::RecordedCall;

/// The earliest time, in seconds from the request, at which the last server could have been accepted. `fits` is when the quotas were known.
pub(crate) fn last_server(calls: &[RecordedCall], fits: f64) -> f64 {
    let balancers = calls.iter().filter(|it| is(it, "/load-balancer/", "/loadbalancers"));
    // A server's user data names the address of the API, not the id of the load balancer's port, so this dependency is added here.
    let addresses: Vec<&RecordedCall> = balancers.flat_map(|it| needs(it, calls)).collect();
    let servers = calls.iter().filter(|it| is(it, "/compute/", "/servers"));
    let done = servers.map(|server| {
        let needs = needs(server, calls).chain(addresses.iter().copied());
        let begun = needs.map(|it| answered(it, calls, fits)).fold(fits, f64::max);
        begun + took(server)
    });
    done.fold(0.0, f64::max)
}

fn is(heard: &RecordedCall, begin: &str, end: &str) -> bool {
    let call = &heard.call;
    call.method == "POST" && call.path.starts_with(begin) && call.path.ends_with(end)
}

/// The earliest time at which this call could have been answered.
fn answered(heard: &RecordedCall, calls: &[RecordedCall], fits: f64) -> f64 {
    let begun = needs(heard, calls).map(|it| answered(it, calls, fits)).fold(fits, f64::max);
    begun + took(heard)
}

/// The calls that made the objects named in this call.
fn needs<'a>(
    heard: &'a RecordedCall,
    calls: &'a [RecordedCall],
) -> impl Iterator<Item = &'a RecordedCall> {
    calls.iter().filter(|it| {
        it.call.method == "POST"
            && it.call.answered_millis() <= Some(heard.call.at_millis)
            && it.made.as_deref().is_some_and(|made| heard.says.contains(made))
    })
}

fn took(heard: &RecordedCall) -> f64 {
    heard.call.took_millis.unwrap_or_default() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::super::cloud::LoggedCall;
    use super::*;

    /// A POST at a time, with a duration, both in milliseconds.
    fn heard(path: &str, (at, took): (u64, u64), says: &str, made: &str) -> RecordedCall {
        let call = LoggedCall {
            at_millis: at,
            took_millis: Some(took),
            method: "POST".to_owned(),
            path: path.to_owned(),
            status: Some(201),
        };
        RecordedCall { call, says: says.to_owned(), made: Some(made.to_owned()) }
    }

    fn calls() -> Vec<RecordedCall> {
        vec![
            heard("/network/v2.0/networks", (0, 100), "", "net"),
            heard("/network/v2.0/ports", (500, 300), "net", "port-a"),
            heard("/network/v2.0/ports", (500, 700), "net", "port-b"),
            heard("/network/v2.0/ports", (500, 200), "net", "vip"),
            heard("/load-balancer/v2/lbaas/loadbalancers", (2000, 5000), "vip", "balancer"),
            heard("/compute/v2.1/servers", (3000, 400), "port-a", "server-a"),
            heard("/compute/v2.1/servers", (3000, 100), "port-b", "server-b"),
        ]
    }

    fn check(calls: &[RecordedCall], want: f64) {
        let path = last_server(calls, 1.0);
        assert!((path - want).abs() < 1e-9, "{path} instead of {want}");
    }

    #[test]
    fn the_longest_chain_of_named_objects_counts() {
        // The path is network, port b, its server. Waiting between calls does not count, and neither does the load balancer.
        check(&calls(), 1.0 + 0.1 + 0.7 + 0.1);
    }

    #[test]
    fn a_server_waits_for_the_address_of_the_api() {
        let mut calls = calls();
        calls[3].call.took_millis = Some(900);
        check(&calls, 1.0 + 0.1 + 0.9 + 0.4);
    }

    #[test]
    fn a_call_answered_later_was_not_needed() {
        let mut calls = calls();
        calls.push(heard("/network/v2.0/ports", (2900, 900), "net", "port-a"));
        check(&calls, 1.0 + 0.1 + 0.7 + 0.1);
    }
}
