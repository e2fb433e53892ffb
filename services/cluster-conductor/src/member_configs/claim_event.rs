//! Events about claims, as the cluster's owner sees them.

use std::net::IpAddr;

use cluster_core::{Event, Severity};
use cluster_store::{Claim, RedeemOutcome};
use tracing::info;

use super::Result;
use super::user_data::MemberConfigs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimEvent {
    pub(super) severity: Severity,
    pub(super) reason: &'static str,
    /// Continues a sentence that begins with the caller's address.
    message: &'static str,
}

impl ClaimEvent {
    pub(super) const FROM_ELSEWHERE: ClaimEvent = ClaimEvent {
        severity: Severity::Warning,
        reason: "ClaimFromElsewhere",
        message: "tried to fetch the config, but is not an address of that member; source_address in [nodes] of \
                  clusterd's configuration can allow other addresses",
    };
    pub(super) const EXPIRED: ClaimEvent = ClaimEvent {
        severity: Severity::Warning,
        reason: "ClaimExpired",
        message: "tried to fetch the config after the claim expired; repair replaces the member",
    };
    const REDEEMED: ClaimEvent = ClaimEvent {
        severity: Severity::Info,
        reason: "ClaimRedeemed",
        message: "fetched the config",
    };
    const REDEEMED_AGAIN: ClaimEvent = ClaimEvent {
        severity: Severity::Info,
        reason: "ClaimRedeemedAgain",
        message: "fetched the config again, as after a lost answer",
    };
    const ASKED_TOO_OFTEN: ClaimEvent = ClaimEvent {
        severity: Severity::Warning,
        reason: "ClaimAskedTooOften",
        message: "tried to fetch the config too often; repair replaces the member",
    };
    const REUSED: ClaimEvent = ClaimEvent {
        severity: Severity::Warning,
        reason: "ClaimReused",
        message: "tried to fetch the config, which was handed out before: somebody may have read the member's user-data",
    };

    /// Returns the event of an attempt to redeem a claim.
    pub(super) fn of(outcome: RedeemOutcome) -> ClaimEvent {
        match outcome {
            RedeemOutcome::First => ClaimEvent::REDEEMED,
            RedeemOutcome::Again => ClaimEvent::REDEEMED_AGAIN,
            RedeemOutcome::TooOften => ClaimEvent::ASKED_TOO_OFTEN,
            RedeemOutcome::No => ClaimEvent::REUSED,
        }
    }
}

/// Records an event about a claim that the caller at `from` showed. The same event is suppressed for a while, because the holder of a claim
/// could otherwise flood the cluster's events.
pub(super) async fn record_event(
    configs: &MemberConfigs,
    claim: &Claim,
    what: ClaimEvent,
    from: IpAddr,
) -> Result<()> {
    let ClaimEvent { severity, reason, message } = what;
    let now = (configs.secrets.clock)();
    let message = format!("{from} {message} ({})", claim.machine);
    info!(cluster.id = %claim.cluster, claim.id = %claim.id, event.reason = reason, "{message}");
    if severity != Severity::Info && !configs.limiter.lets(claim.id, reason, now) {
        return Ok(());
    }
    let event = Event::new(claim.cluster, severity, reason, message, now);
    Ok(configs.secrets.store.append_events(claim.cluster, &[event]).await?)
}
