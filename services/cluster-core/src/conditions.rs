//! Computes the conditions of a cluster from an observation.

use jiff::{Timestamp, Unit};

use crate::renewal::overdue_certificates;
use crate::{
    Bootstrap, CloudObjectState, ClusterObservation, ClusterSpec, Condition, ConditionKind,
    ConditionStatus, DesiredObjects, DesiredState, GroupRole, Key, Kind, MemberName, NodeGroup,
    NodeHealth, desired_objects, members_without_revision, private_api_warning,
    single_endpoint_warning,
};

/// The outcome of one condition, before the time since when is known.
struct Verdict {
    status: ConditionStatus,
    reason: String,
    message: String,
    next_action: String,
    is_final: bool,
}

/// Computes the conditions of `spec` from an observation.
///
/// Pure: the same inputs always give the same conditions. `since` is kept from the previous conditions as long as the status does not
/// change.
pub fn conditions(
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    now: Timestamp,
) -> Vec<Condition> {
    let shape = desired_objects(spec);
    let of = |kind: ConditionKind| {
        let verdict = verdict(kind, spec, &shape, seen, now);
        let before = spec.cluster.conditions.iter().find(|it| it.kind == kind);
        let since = before.filter(|it| it.status == verdict.status).map_or(now, |it| it.since);
        let Verdict { status, reason, message, next_action, is_final } = verdict;
        Condition { kind, status, reason, message, next_action, is_final, since }
    };
    ConditionKind::ALL.map(of).to_vec()
}

fn verdict(
    kind: ConditionKind,
    spec: &ClusterSpec<'_>,
    shape: &DesiredObjects,
    seen: &ClusterObservation,
    now: Timestamp,
) -> Verdict {
    if seen.at.is_none() {
        return match &seen.problem {
            Some(_) => verdict_of_problem(seen).unwrap_or_else(not_observed),
            None => not_observed(),
        };
    }
    let verdict = match kind {
        ConditionKind::NetworkReady
        | ConditionKind::LoadBalancerReady
        | ConditionKind::InfrastructureReady
        | ConditionKind::DnsReady => objects(kind, shape, seen),
        ConditionKind::BootstrapReady => bootstrap(spec, seen),
        ConditionKind::ControlPlaneAvailable => control_plane(spec, seen),
        ConditionKind::NodesHealthy => nodes(spec, seen),
        ConditionKind::AddOnsApplied => add_ons(spec, seen),
        ConditionKind::AuthoritiesSettled => authorities(spec, seen),
        ConditionKind::CertificatesValid => certificates(spec, now),
    };
    let verdict = of_private_api(kind, spec, seen, verdict);
    match verdict.status {
        ConditionStatus::False if !verdict.is_final => verdict_of_problem(seen).unwrap_or(verdict),
        ConditionStatus::True | ConditionStatus::False | ConditionStatus::Unknown => verdict,
    }
}

/// Adds to a condition that needs an answer of the cluster's API from where the API is reachable.
fn of_private_api(
    kind: ConditionKind,
    spec: &ClusterSpec<'_>,
    seen: &ClusterObservation,
    verdict: Verdict,
) -> Verdict {
    let needs_api = match kind {
        ConditionKind::BootstrapReady
        | ConditionKind::ControlPlaneAvailable
        | ConditionKind::NodesHealthy
        | ConditionKind::AddOnsApplied => true,
        ConditionKind::NetworkReady
        | ConditionKind::LoadBalancerReady
        | ConditionKind::InfrastructureReady
        | ConditionKind::DnsReady
        | ConditionKind::AuthoritiesSettled
        | ConditionKind::CertificatesValid => false,
    };
    // During a restoration clusterd does not call the API, wherever it is.
    let is_called = seen.api_silence.is_some() && !spec.cluster.is_clearing();
    let is_silent = is_called && verdict.status == ConditionStatus::False;
    let private = private_api_warning(spec).filter(|_| needs_api && is_silent);
    let Some(private) = private else { return verdict };
    let message = format!("{}; {private}, and clusterd got no answer", verdict.message);
    let next_action = "give clusterd a route to it, or create a cluster whose API has a floating IP: by master_lb_enabled with the label \
                       master_lb_floating_ip_enabled, or by floating_ip_enabled, and with external_network_id";
    Verdict { message, next_action: next_action.to_owned(), ..verdict }
}

fn verdict_of(status: ConditionStatus, reason: &str, message: String) -> Verdict {
    Verdict {
        status,
        reason: reason.to_owned(),
        message,
        next_action: String::new(),
        is_final: false,
    }
}

fn good() -> Verdict {
    verdict_of(ConditionStatus::True, "AsRequested", String::new())
}

fn not_observed() -> Verdict {
    let message = "the cloud has not been observed for this cluster yet";
    verdict_of(ConditionStatus::Unknown, "NotObserved", message.to_owned())
}

/// Returns the problem that stops all work as a verdict.
fn verdict_of_problem(seen: &ClusterObservation) -> Option<Verdict> {
    let problem = seen.problem.as_ref()?;
    let next_action = problem.next_action.clone();
    let verdict = verdict_of(ConditionStatus::False, &problem.reason, problem.message.clone());
    Some(Verdict { next_action, is_final: problem.is_final, ..verdict })
}

/// How many names a message lists at most.
const NAMED: usize = 3;

fn list(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names[..names.len().min(NAMED)].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn objects(kind: ConditionKind, shape: &DesiredObjects, seen: &ClusterObservation) -> Verdict {
    let (mut missing, mut working, mut failed, mut extra) = (vec![], vec![], vec![], vec![]);
    for key in shape.keys().filter(|key| kind.speaks_of(key)) {
        match seen.objects.get(key).map(|found| &found.state) {
            None => missing.push(key.to_string()),
            Some(CloudObjectState::Working | CloudObjectState::Deleting) => {
                working.push(key.to_string())
            }
            Some(CloudObjectState::Failed(why)) => failed.push(format!("{key} ({why})")),
            Some(CloudObjectState::Ready) => {}
        }
    }
    let is_left = |key: &&Key| {
        let stays = key.is_made_inside() && !shape.is_empty();
        kind.speaks_of(key) && !shape.contains_key(*key) && !stays
    };
    for key in seen.objects.keys().filter(is_left) {
        extra.push(key.to_string());
    }
    if !failed.is_empty() {
        let verdict = verdict_of(
            ConditionStatus::False,
            "CloudFailed",
            format!("failed in the cloud: {}", list(&failed)),
        );
        let next_action =
            "clusterd deletes and creates them again; if they keep failing, look at the cloud's own logs"
                .to_owned();
        return Verdict { next_action, ..verdict };
    }
    if let Some(verdict) = backing_off(kind, seen) {
        return verdict;
    }
    let waits = [
        ("Creating", "the cloud is working on", working),
        ("NotCreated", "not created yet:", missing),
        ("Deleting", "not deleted yet:", extra),
    ];
    let first = waits.into_iter().find(|(_, _, keys)| !keys.is_empty());
    first.map_or_else(good, |(reason, words, keys)| {
        verdict_of(ConditionStatus::False, reason, format!("{words} {}", list(&keys)))
    })
}

/// Returns a verdict about the objects whose next attempt is not due yet.
fn backing_off(kind: ConditionKind, seen: &ClusterObservation) -> Option<Verdict> {
    let all: Vec<_> = seen.held.iter().filter(|(key, _)| kind.speaks_of(key)).collect();
    let (key, held) = all.iter().min_by_key(|(_, held)| held.until)?;
    let times = match held.times {
        1 => "once".to_owned(),
        times => format!("{times} times"),
    };
    let more = match all.len() - 1 {
        0 => String::new(),
        more => format!("; {more} more are waiting"),
    };
    let until = held.until.round(Unit::Second).unwrap_or(held.until);
    let message = format!(
        "the cloud failed to create {key} ({}), {times} so far; next attempt at {until}{more}",
        held.why
    );
    let next_action =
        "look at the cloud's own logs; clusterd applies a change of the cluster at once";
    let verdict = verdict_of(ConditionStatus::False, "BackingOff", message);
    Some(Verdict { next_action: next_action.to_owned(), ..verdict })
}

fn bootstrap(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Verdict {
    let (mut failed, mut waiting) = (vec![], vec![]);
    for machine in wanted(spec).flat_map(NodeGroup::refs) {
        match seen.machines.get(&machine).map(|said| &said.bootstrap) {
            Some(Bootstrap::Done) => {}
            Some(Bootstrap::Failed(why)) => failed.push(format!("{machine} ({why})")),
            Some(Bootstrap::At(step)) => waiting.push(format!("{machine} (at {step})")),
            Some(Bootstrap::Silent) | None => waiting.push(format!("{machine} (no report yet)")),
        }
    }
    if !failed.is_empty() {
        return verdict_of(
            ConditionStatus::False,
            "BootstrapFailed",
            format!("failed to become Kubernetes nodes: {}", list(&failed)),
        );
    }
    match waiting.is_empty() {
        true => good(),
        false => verdict_of(
            ConditionStatus::False,
            "WaitingForMachines",
            format!("not Kubernetes nodes yet: {}", list(&waiting)),
        ),
    }
}

fn control_plane(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Verdict {
    let masters = wanted(spec).filter(|group| group.role == GroupRole::Master);
    let all: Vec<_> = masters.flat_map(NodeGroup::refs).collect();
    let is_ready = |machine: &MemberName| {
        seen.machines.get(machine).is_some_and(|said| said.node == NodeHealth::Ready)
    };
    let ready = all.iter().filter(|machine| is_ready(machine)).count();
    let needed = all.len() / 2 + 1;
    if all.is_empty() || ready >= needed {
        let lone = single_endpoint_warning(spec).filter(|_| !all.is_empty());
        return lone.map_or_else(good, |why| {
            verdict_of(ConditionStatus::True, "LoneEndpoint", why.to_owned())
        });
    }
    let message = format!(
        "{ready} of {} control-plane members are ready, and a quorum needs {needed}",
        all.len()
    );
    verdict_of(ConditionStatus::False, "NoQuorum", message)
}

fn nodes(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Verdict {
    let is_ready = |machine: &MemberName| {
        seen.machines.get(machine).is_some_and(|said| said.node == NodeHealth::Ready)
    };
    let unready: Vec<String> = wanted(spec)
        .flat_map(NodeGroup::refs)
        .filter(|machine| !is_ready(machine))
        .map(|machine| machine.to_string())
        .collect();
    match unready.is_empty() {
        true => good(),
        false => verdict_of(
            ConditionStatus::False,
            "NodesNotReady",
            format!("not ready: {}", list(&unready)),
        ),
    }
}

fn add_ons(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Verdict {
    if spec.cluster.desire == DesiredState::Gone {
        return good();
    }
    let Some(add_ons) = &seen.add_ons else {
        let message = match &seen.api_silence {
            Some(why) => format!("the cluster's API does not answer: {why}"),
            None => "the cluster's API does not answer yet".to_owned(),
        };
        return verdict_of(ConditionStatus::False, "ApiSilent", message);
    };
    let missing: Vec<String> =
        add_ons.missing.iter().map(|(name, why)| format!("{name} ({why})")).collect();
    match missing.is_empty() {
        true => good(),
        false => verdict_of(
            ConditionStatus::False,
            "NotApplied",
            format!("not applied yet: {}", list(&missing)),
        ),
    }
}

/// Returns the step of the CA rotation and what it waits for.
fn authorities(spec: &ClusterSpec<'_>, seen: &ClusterObservation) -> Verdict {
    let now = spec.cluster.authorities;
    if now.is_settled() || spec.cluster.desire == DesiredState::Gone {
        return good();
    }
    let waits: Vec<String> =
        members_without_revision(spec, seen).iter().map(ToString::to_string).collect();
    let waits = if !waits.is_empty() {
        format!("waiting for {}", list(&waits))
    } else if now.is_renewed(seen) {
        "all members have done so".to_owned()
    } else {
        let why = seen.authorities.trouble.as_deref();
        format!("waiting for kube-system: {}", why.unwrap_or("its pods are being restarted"))
    };
    let message = format!("{} ({waits})", now.step().describe());
    verdict_of(ConditionStatus::False, now.step().as_str(), message)
}

/// Names the certificates that nothing renewed in time. The condition is false only for certificates that have ended.
fn certificates(spec: &ClusterSpec<'_>, now: Timestamp) -> Verdict {
    use ConditionStatus::{False, True};

    let found = overdue_certificates(spec, now);
    let verdict = if !found.ended.is_empty() {
        verdict_of(False, "Ended", format!("have ended: {}", list(&found.ended)))
    } else if !found.stuck.is_empty() {
        let message = format!("do not complete a renewal, and others wait: {}", list(&found.stuck));
        verdict_of(True, "RenewalStuck", message)
    } else if !found.overdue.is_empty() {
        verdict_of(True, "NotRenewed", format!("not renewed in time: {}", list(&found.overdue)))
    } else if !found.silent.is_empty() {
        let message = format!(
            "have never reported their certificates, which end a year after a member has started: {}",
            list(&found.silent)
        );
        verdict_of(True, "NotReported", message)
    } else {
        return good();
    };
    let next_action = "look at the log of bedplate-authorities.service on the members, or replace them: a new \
                       member has new certificates";
    Verdict { next_action: next_action.to_owned(), ..verdict }
}

/// Returns the groups that should have members: none when the cluster is to be deleted.
fn wanted<'a>(spec: &ClusterSpec<'a>) -> impl Iterator<Item = &'a NodeGroup> {
    let exist = spec.cluster.desire == DesiredState::Exist;
    spec.groups.iter().filter(move |_| exist)
}

impl ConditionKind {
    /// Whether the condition depends on this object.
    fn speaks_of(self, key: &Key) -> bool {
        match (self, key.kind()) {
            (
                ConditionKind::NetworkReady,
                Kind::Network
                | Kind::Subnet
                | Kind::Router
                | Kind::RouterInterface
                | Kind::SecurityGroup,
            )
            | (
                ConditionKind::InfrastructureReady,
                Kind::Server | Kind::ServerGroup | Kind::Credential | Kind::Volume,
            ) => true,
            (ConditionKind::LoadBalancerReady, Kind::LoadBalancer | Kind::ServiceBalancer)
            | (ConditionKind::DnsReady, Kind::Record) => true,
            (ConditionKind::LoadBalancerReady, Kind::Port | Kind::FloatingIp) => {
                matches!(key, Key::VipPort(_) | Key::BalancerAddress(_))
            }
            (ConditionKind::InfrastructureReady, Kind::Port | Kind::FloatingIp) => {
                matches!(key, Key::Port(_) | Key::MachineAddress(_))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
