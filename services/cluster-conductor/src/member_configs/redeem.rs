//! Hands out configs for claims, and records the reports of members.
//!
//! **Single use.** The first caller that shows a claim in time and from the member's address redeems it, in one statement of the store.
//! Ignition repeats a request whose answer broke off, and a server whose answer was lost would be useless. So the same address may get the
//! answer again, a few times within [`AGAIN`], until the member reports. The member reports when its first unit has succeeded or failed,
//! which is before any workload runs there. From then on a claim that is found in user-data is worthless, even to a process that shares the
//! member's address.

use std::net::IpAddr;

use cluster_bootstrap::{Reports, reporting, starting_from_backup};
use cluster_core::{ClaimUuid, Cluster, ClusterSpec, ClusterUuid, DesiredState, Ident, NodeGroup};
use cluster_store::{BootstrapReport, Claim, RedeemOutcome, Scope, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use newtype_uuid::GenericUuid;
use sealing::{DerivedToken, Purpose};
use subtle::ConstantTimeEq;
use tracing::{debug, warn};
use url::Url;

use super::claim_event::{ClaimEvent, record_event};
use super::claims::{digest_of, kept};
use super::facts::{MemberFacts, group_of, outside};
use super::own::own_config;
use super::user_data::MemberConfigs;
use super::{MemberConfigError, Result, bootstrap_data, config};
use crate::cluster_secrets::ClusterSecrets;
use crate::settings::{KubernetesSettings, MachineSettings, NodesListener, SourceAddress};

/// How long a lost answer may be requested again.
const AGAIN: SignedDuration = SignedDuration::from_secs(120);
/// A report with the same content is not written again for this time.
const SAME: SignedDuration = SignedDuration::from_secs(30);

/// The answer to a caller that shows a claim.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The config as JSON, with secrets.
    Config(String),
    /// Refused, without a reason.
    Nothing,
    /// Not possible yet: the caller may ask again in a moment.
    Later,
}

/// Redeems a claim that the caller at `from` shows.
pub(crate) async fn redeem(
    configs: &MemberConfigs,
    id: ClaimUuid,
    token: &str,
    from: IpAddr,
) -> Result<Answer> {
    let MemberConfigs { settings: MachineSettings { kubernetes, nodes }, secrets, .. } = configs;
    let now = (secrets.clock)();
    let Some(nodes) = nodes else { return Ok(Answer::Nothing) };
    let Some(claim) = authenticated(secrets, id, token, from).await? else {
        return Ok(Answer::Nothing);
    };
    let Some((cluster, groups)) = of(&secrets.store, &claim).await? else {
        return Ok(Answer::Nothing);
    };
    let spec = ClusterSpec { cluster: &cluster, groups: &groups };
    let facts: MemberFacts = serde_json::from_str(&claim.facts).map_err(kept)?;
    let sources = match nodes.source {
        SourceAddress::Machine => Some(sources(&cluster, &claim, &facts)),
        SourceAddress::Any => None,
    };
    if let Some(refused) = refusal(&claim, sources.as_deref(), from, now) {
        record_event(configs, &claim, refused, from).await?;
        return Ok(Answer::Nothing);
    }
    // The server would start with CAs that are about to be removed.
    if !cluster.authorities.is_settled() {
        return Ok(Answer::Later);
    }
    // The config is made first, so that an error does not use up the claim.
    let reports = secrets.keyring.derive(Purpose::Report, &id.to_string())?;
    let Some(config) =
        config((kubernetes, secrets), nodes, &spec, &claim, &facts, &reports).await?
    else {
        return Ok(Answer::Later);
    };
    let since = now.saturating_sub(AGAIN).unwrap_or(Timestamp::MIN);
    let outcome = secrets.store.redeem_claim(id, from, now, since, &reports.key).await?;
    record_event(configs, &claim, ClaimEvent::of(outcome), from).await?;
    match outcome {
        RedeemOutcome::First | RedeemOutcome::Again => Ok(Answer::Config(config)),
        RedeemOutcome::TooOften | RedeemOutcome::No => Ok(Answer::Nothing),
    }
}

/// Returns the claim, if `token` is its credential.
async fn authenticated(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    token: &str,
    from: IpAddr,
) -> Result<Option<Claim>> {
    let Some(claim) = secrets.store.find_claim(id).await? else {
        debug!("{from} shows an unknown claim");
        return Ok(None);
    };
    if !bool::from(digest_of(token).as_bytes().ct_eq(claim.digest.as_bytes())) {
        warn!(cluster.id = %claim.cluster, "{from} asks for the config of {} with a wrong credential", claim.machine);
        return Ok(None);
    }
    Ok(Some(claim))
}

/// Decides why the caller at `from` may not redeem the claim at `now`. `sources` are the addresses that may, or `None` for all.
fn refusal(
    claim: &Claim,
    sources: Option<&[IpAddr]>,
    from: IpAddr,
    now: Timestamp,
) -> Option<ClaimEvent> {
    if sources.is_some_and(|sources| !sources.contains(&from)) {
        return Some(ClaimEvent::FROM_ELSEWHERE);
    }
    let is_late = claim.redeemed_at.is_none() && claim.expires_at <= now;
    is_late.then_some(ClaimEvent::EXPIRED)
}

/// A member's report about a step of its bootstrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// The step: a few letters, digits and `-`.
    pub step: String,
    /// systemd's result: `success`, `exit-code`, `timeout`.
    pub result: String,
    /// The exit status of the step's last program.
    pub status: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportResult {
    Refused,
    /// The report says nothing new, or its member was deleted.
    Old,
    News(ClusterUuid),
}

/// Records a report of a member, which authenticates with the report token in its config.
pub(crate) async fn note_report(
    secrets: &ClusterSecrets,
    id: ClaimUuid,
    token: &str,
    said: &StepReport,
) -> Result<ReportResult> {
    let plain = |text: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        text.chars().filter(|c| legal(*c)).take(64).collect::<String>()
    };
    if !secrets.keyring.verify(Purpose::Report, &id.to_string(), token) {
        return Ok(ReportResult::Refused);
    }
    let (failed, result) = (said.result != "success", plain(&said.result));
    let message = match said.status.filter(|_| failed) {
        Some(status) => format!("{result}, status {status}"),
        None => result,
    };
    let now = (secrets.clock)();
    let said = BootstrapReport { step: plain(&said.step), failed, message, at: now };
    debug!(claim.id = %id, "step {}: {}", said.step, said.message);
    let since = now.saturating_sub(SAME).unwrap_or(Timestamp::MIN);
    let noted = secrets.store.note_report(id, &said, since).await?;
    Ok(noted.map_or(ReportResult::Old, ReportResult::News))
}

/// Returns the cluster of a claim's member, if both still exist.
pub(super) async fn of(
    store: &Store,
    claim: &Claim,
) -> Result<Option<(Cluster, Vec<NodeGroup>)>, StoreError> {
    let ident = Ident::Id(claim.cluster.into_untyped_uuid());
    let found = store.find_clusters(&ident, &Scope::All).await?;
    let Some(cluster) = found.into_iter().find(|it| it.desire == DesiredState::Exist) else {
        return Ok(None);
    };
    let groups = store.groups_of(cluster.id).await?;
    let of_group = |group: &NodeGroup| {
        group.name == claim.machine.group && group.machines.contains(&claim.machine.number)
    };
    Ok(groups.iter().any(of_group).then_some((cluster, groups)))
}

/// Returns the addresses from which the member may call.
fn sources(cluster: &Cluster, claim: &Claim, facts: &MemberFacts) -> Vec<IpAddr> {
    let floating = cluster.machine_addresses.get(&claim.machine).copied();
    [Some(facts.own.address), floating, facts.router].into_iter().flatten().collect()
}

/// Returns the config; `None` while an address that it needs is unknown.
async fn config(
    (kubernetes, secrets): (&KubernetesSettings, &ClusterSecrets),
    nodes: &NodesListener,
    spec: &ClusterSpec<'_>,
    claim: &Claim,
    facts: &MemberFacts,
    reports: &DerivedToken,
) -> Result<Option<String>> {
    let group = group_of(spec, &claim.machine)?;
    if let Some(own) = own_config(secrets, spec.cluster, group).await? {
        return Ok(Some(own.json()));
    }
    let outside = match outside(spec, None) {
        Err(MemberConfigError::Waits(_)) => return Ok(None),
        outside => outside?,
    };
    let token = bootstrap_data::renewed(secrets, spec.cluster).await?.token()?;
    let node =
        config::render((kubernetes, secrets), spec, &claim.machine, (facts, &outside), token)
            .await?;
    let id = claim.id.to_string();
    let reboots = match group.labels.settings().os_updates {
        true => Some(fleet_lock(nodes, &id, &secrets.keyring.derive(Purpose::Reboot, &id)?)),
        false => None,
    };
    let reports = Reports {
        url: nodes.url.join("v1/reports").expect("it is a path"),
        authorities: nodes.url.join(&format!("v1/authorities/{id}")).expect("an id is a path"),
        certificates: nodes.url.join(&format!("v1/certificates/{id}")).expect("an id is a path"),
        backups: nodes.url.join(&format!("v1/backups/{id}")).expect("an id is a path"),
        // The end of a restoration counts it, and a member that it created has nothing to refresh.
        restores: spec.cluster.restores + u32::from(facts.starts_from.is_some()),
        holds: spec.cluster.authorities.revision,
        token: reports.token.as_str().into(),
        claim: id,
        reboots,
        authority: nodes.authority.clone(),
    };
    let node = reporting(&node, &reports);
    let node = match facts.starts_from {
        Some(backup) => starting_from_backup(&node, &backup.to_string()),
        None => node,
    };
    Ok(Some(ignition::json(&node.config)))
}

/// Returns the URL with the credential at which a member asks whether it may reboot. FleetLock's clients send credentials of the URL only.
fn fleet_lock(nodes: &NodesListener, id: &str, token: &DerivedToken) -> Url {
    let mut url = nodes.url.join("v1/fleet-lock/").expect("it is a path");
    let is_set =
        url.set_username(id).is_ok() && url.set_password(Some(token.token.as_str())).is_ok();
    debug_assert!(is_set, "a URL with a host takes a credential");
    url
}

#[cfg(test)]
mod tests {
    use cluster_core::ClusterUuid;

    use super::*;

    #[test]
    fn a_claim_is_redeemed_in_time_and_from_an_address_of_its_member() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let claim = |redeemed_at: Option<i64>| Claim {
            id: ClaimUuid::nil(),
            cluster: ClusterUuid::nil(),
            machine: "worker-0".parse().unwrap(),
            digest: String::new(),
            facts: String::new(),
            expires_at: at(100),
            redeemed_at: redeemed_at.map(at),
            redeemed_by: None,
        };
        let own: IpAddr = [10, 0, 0, 5].into();
        let other: IpAddr = [10, 0, 0, 6].into();
        let (early, late) = (at(99), at(100));
        let members = Some(&[own][..]);
        let table = [
            (members, own, early, None, None),
            (members, other, early, None, Some("ClaimFromElsewhere")),
            (members, other, late, None, Some("ClaimFromElsewhere")),
            (None, other, early, None, None),
            (members, own, late, None, Some("ClaimExpired")),
            (None, other, late, None, Some("ClaimExpired")),
            // The store decides whether a redeemed claim may be redeemed again.
            (members, own, late, Some(90), None),
        ];
        for (number, (sources, from, now, redeemed_at, want)) in table.into_iter().enumerate() {
            let refused = refusal(&claim(redeemed_at), sources, from, now);
            assert_eq!(refused.map(|it| it.reason), want, "row {number}");
        }
    }
}
