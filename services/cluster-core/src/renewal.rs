//! The renewal of the certificates that members hold: when it is due, and which member may renew now.
//!
//! A member renews all of its certificates at once, and restarts what reads them. Control-plane members do so one after the other, so that
//! etcd keeps its quorum. Permission is given in the record of the cluster. Of two members that ask at the same time, both with the same
//! version of the record, only one gets its permission written.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::{
    ClusterSpec, DesiredState, Event, GroupRole, LeafCertificate, MemberCertificates, MemberName,
    NodeGroup, Severity,
};

/// When a member that is not a Kubernetes node yet has to report again.
const AFTER_START: SignedDuration = SignedDuration::from_secs(60);
/// When a member that waits for other members has to report again.
const AFTER_OTHERS: SignedDuration = SignedDuration::from_secs(10);
/// How soon a member reports again when its next renewal is near.
const AT_MOST_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// How soon a member reports again when its next renewal is far away.
const AT_LEAST_EVERY: SignedDuration = SignedDuration::from_hours(6);
/// When a renewal that changed nothing is repeated.
const REPEATED_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// How long a renewal takes at most.
const RENEWS_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// How old a cluster is at least when its first certificates should have been renewed: half of the year for which kubeadm makes them.
const HALF_A_YEAR: SignedDuration = SignedDuration::from_hours(24 * 365 / 2);

/// A member's report about its certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateReport {
    /// Empty before the member has any.
    pub certificates: Vec<LeafCertificate>,
    pub stage: RenewalStage,
}

/// How far a member is in a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalStage {
    /// No renewal is in progress.
    Idle,
    /// The certificates of the control plane are renewed, and its processes restart.
    ControlPlane,
    /// Only the kubelet has not renewed its certificates. No other member depends on a kubelet.
    Kubelet,
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalAnswer {
    /// Renew all certificates now, or continue to do so.
    Renew,
    /// Report again after this time.
    ReportAgain(SignedDuration),
}

/// The decision about a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalDecision {
    pub answer: RenewalAnswer,
    /// The new record of the member's certificates. The answer counts only once the record is written. `None`: nothing is recorded.
    pub held: Option<MemberCertificates>,
    pub event: Option<Event>,
}

/// Decides about the report of `machine`. `drained` are the members that drains of hosts take out.
pub fn answer_certificates(
    spec: &ClusterSpec<'_>,
    drained: &BTreeSet<MemberName>,
    machine: &MemberName,
    report: &CertificateReport,
    now: Timestamp,
) -> RenewalDecision {
    let first = report.certificates.iter().min_by_key(|it| it.renew_at());
    let (Some(first), true) = (first, spec.cluster.nodes.contains(machine)) else {
        let answer = RenewalAnswer::ReportAgain(AFTER_START);
        return RenewalDecision { answer, held: None, event: None };
    };
    let before = spec.cluster.certificates.get(machine);
    let held = MemberCertificates {
        first: first.clone(),
        renewing_since: before.and_then(|it| it.renewing_since),
        renewed_at: before.and_then(|it| it.renewed_at),
    };
    let is_due = first.renew_at() <= now;
    let (answer, held, event) = match (report.stage, held.renewing_since) {
        (RenewalStage::ControlPlane, Some(_)) => (RenewalAnswer::Renew, held, None),
        // The answer before was lost.
        (RenewalStage::Idle, Some(since)) if is_due && has_to_begin(report, since, now) => {
            (RenewalAnswer::Renew, held, None)
        }
        (RenewalStage::Idle | RenewalStage::Kubelet, Some(_)) => {
            let held = MemberCertificates { renewing_since: None, renewed_at: Some(now), ..held };
            let event = ended(spec, machine, &held, now);
            (idle(report, &held, now), held, Some(event))
        }
        (RenewalStage::Kubelet, None) => (RenewalAnswer::Renew, held, None),
        (RenewalStage::Idle, None) if !is_due || is_without_effect(&held, now) => {
            (idle(report, &held, now), held, None)
        }
        (RenewalStage::Idle | RenewalStage::ControlPlane, None) => {
            if may_renew(spec, drained, machine, report, now) {
                let held = MemberCertificates { renewing_since: Some(now), ..held };
                (RenewalAnswer::Renew, held, None)
            } else {
                (RenewalAnswer::ReportAgain(AFTER_OTHERS), held, None)
            }
        }
    };
    RenewalDecision { answer, held: Some(held), event }
}

/// Whether a member that was permitted to renew at `since` has not begun: it holds no certificate from after that time. Later than a renewal
/// takes, the member counts as done all the same: a member that renews nothing would restart its processes without end.
fn has_to_begin(report: &CertificateReport, since: Timestamp, now: Timestamp) -> bool {
    let is_new = report.certificates.iter().any(|it| it.issued_at >= since);
    !is_new && now.duration_since(since) < RENEWS_WITHIN
}

/// Returns the answer to a member that has no permission, and needs none for what it still does.
fn idle(report: &CertificateReport, held: &MemberCertificates, now: Timestamp) -> RenewalAnswer {
    if report.stage == RenewalStage::Kubelet {
        return RenewalAnswer::Renew;
    }
    if is_without_effect(held, now) {
        return RenewalAnswer::ReportAgain(AT_LEAST_EVERY);
    }
    let until = held.first.renew_at().duration_since(now);
    RenewalAnswer::ReportAgain(until.clamp(AT_MOST_EVERY, AT_LEAST_EVERY))
}

/// Whether the last renewal left a certificate that was due already, as happens when the clock of the member is wrong. Repeating it at once
/// would restart the control plane without end.
fn is_without_effect(held: &MemberCertificates, now: Timestamp) -> bool {
    held.renewed_at
        .is_some_and(|at| held.first.renew_at() <= at && now.duration_since(at) < REPEATED_AFTER)
}

/// Whether the member may restart its processes now.
///
/// A worker always may. A control-plane member may while all others are ready, none of them renews or reboots, and no upgrade replaces
/// members. A member whose certificate has ended does not wait for others: nobody accepts the certificate, so the member can only gain.
fn may_renew(
    spec: &ClusterSpec<'_>,
    drained: &BTreeSet<MemberName>,
    machine: &MemberName,
    report: &CertificateReport,
    now: Timestamp,
) -> bool {
    let ClusterSpec { cluster, groups } = spec;
    if !cluster.authorities.is_settled() || cluster.is_off() {
        return false;
    }
    let masters = groups.iter().filter(|group| group.role == GroupRole::Master);
    let masters: BTreeSet<MemberName> = masters.flat_map(NodeGroup::refs).collect();
    if !masters.contains(machine) || report.certificates.iter().any(|it| it.ends_at <= now) {
        return true;
    }
    let is_available = |other: &MemberName| {
        cluster.nodes.contains(other)
            && !cluster.unready.contains(other)
            && !cluster.is_renewing(other)
    };
    masters.is_disjoint(drained)
        && !cluster.is_rolling()
        && cluster.reboot.as_ref().is_none_or(|it| !masters.contains(&it.machine))
        && masters.iter().filter(|other| *other != machine).all(is_available)
}

/// Returns the event of a member that completed a renewal.
fn ended(
    spec: &ClusterSpec<'_>,
    machine: &MemberName,
    held: &MemberCertificates,
    now: Timestamp,
) -> Event {
    let LeafCertificate { name, ends_at, .. } = &held.first;
    let (severity, reason, message) = if held.first.renew_at() <= now {
        let message = format!(
            "member {machine} renewed its certificates, but {name} ends at {ends_at} and is due again: the clock of \
             the member may be wrong, or kubeadm does not renew this certificate"
        );
        (Severity::Warning, "CertificatesNotRenewed", message)
    } else {
        let message =
            format!("member {machine} renewed its certificates; {name} ends first, at {ends_at}");
        (Severity::Info, "CertificatesRenewed", message)
    };
    Event::new(spec.cluster.id, severity, reason, message, now)
}

/// The members whose certificates nothing renewed in time, each with its certificate.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OverdueCertificates {
    pub(crate) ended: Vec<String>,
    /// Members that do not complete a renewal, for which other members wait.
    pub(crate) stuck: Vec<String>,
    pub(crate) overdue: Vec<String>,
    /// Members that have never reported, of a cluster that is old enough for a renewal.
    pub(crate) silent: Vec<String>,
}

/// Returns the members of a running cluster whose certificates nothing renewed in time.
pub(crate) fn overdue_certificates(spec: &ClusterSpec<'_>, now: Timestamp) -> OverdueCertificates {
    let mut found = OverdueCertificates::default();
    if spec.cluster.desire == DesiredState::Gone || spec.cluster.is_off() {
        return found;
    }
    let is_old = now.duration_since(spec.cluster.created_at) >= HALF_A_YEAR;
    let members = spec.groups.iter().flat_map(NodeGroup::refs);
    for machine in members.filter(|machine| spec.cluster.nodes.contains(machine)) {
        let Some(held) = spec.cluster.certificates.get(&machine) else {
            if is_old {
                found.silent.push(machine.to_string());
            }
            continue;
        };
        let late = held.renewing_since.filter(|at| now.duration_since(*at) >= RENEWS_WITHIN);
        found.stuck.extend(late.map(|at| format!("{machine} (since {at})")));
        let LeafCertificate { name, ends_at, .. } = &held.first;
        if *ends_at <= now {
            found.ended.push(format!("{name} of {machine} (at {ends_at})"));
        } else if held.first.overdue_at() <= now {
            found.overdue.push(format!("{name} of {machine} (ends at {ends_at})"));
        }
    }
    found
}

#[cfg(test)]
mod tests;
