//! When this process last saw each conductor renew its lease, by its own clock.

use std::collections::HashMap;

use database::conductors::ConductorRow;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::fence::LASTS;
use crate::share::LivingConductor;

/// When this process last saw each conductor renew its lease, by its own clock.
///
/// The clock of the database may be set forward, and then all leases seem to have passed at once, while the fences of all conductors are
/// open. So a conductor that renewed its lease a moment ago counts as living.
#[derive(Default)]
pub(crate) struct LastRenewals(HashMap<String, (i64, Timestamp, Instant)>);

impl LastRenewals {
    /// Returns the living conductors.
    pub(crate) fn living(&mut self, rows: &[ConductorRow]) -> Vec<LivingConductor> {
        let now = Instant::now();
        let leased = rows.iter().filter(|row| row.epoch > 0);
        leased.filter(|row| self.is_living(row, now)).map(LivingConductor::of).collect()
    }

    fn is_living(&mut self, row: &ConductorRow, now: Instant) -> bool {
        match self.0.get(&row.hostname) {
            None if !row.is_alive => false,
            Some((epoch, at, since)) if (*epoch, *at) == (row.epoch, row.seen_at) => {
                let is_recent = now.duration_since(*since) < LASTS;
                row.is_alive || (is_recent && !row.is_released)
            }
            // The lease is new, or was renewed or released since the last look.
            Some(_) | None => {
                self.0.insert(row.hostname.clone(), (row.epoch, row.seen_at, now));
                !row.is_released
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    fn row(hostname: &str, renewals: i64) -> ConductorRow {
        let seen_at = Timestamp::from_second(renewals).unwrap();
        ConductorRow {
            hostname: hostname.to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            seen_at,
            is_alive: true,
            is_released: false,
            groups: vec![String::new()],
            epoch: 1,
            is_draining: false,
            settled: String::new(),
            turns: 0,
            instance: String::new(),
            installation: String::new(),
            program: String::new(),
            schema_known: 0,
        }
    }

    fn living(renewals: &mut LastRenewals, rows: &[ConductorRow]) -> Vec<String> {
        renewals.living(rows).into_iter().map(|it| it.hostname).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_forward_ends_no_lease() {
        let mut renewals = LastRenewals::default();
        let long_dead = ConductorRow { is_alive: false, ..row("c", 1) };
        let alive = [row("a", 1), row("b", 1), long_dead.clone()];
        assert_eq!(living(&mut renewals, &alive), ["a", "b"]);
        advance(Duration::from_secs(1)).await;
        let seems_dead = ConductorRow { is_alive: false, ..row("b", 1) };
        let after = [row("a", 2), seems_dead.clone(), long_dead];
        assert_eq!(living(&mut renewals, &after), ["a", "b"]);
        advance(LASTS).await;
        assert_eq!(living(&mut renewals, &after), ["a"], "it has not renewed its lease");
        // A conductor that stopped is gone at once, and one that got a new lease is back.
        let back = ConductorRow { epoch: 2, ..row("b", 9) };
        assert_eq!(living(&mut renewals, &[back]), ["b"]);
        let stopped =
            ConductorRow { is_released: true, epoch: 2, seen_at: seems_dead.seen_at, ..seems_dead };
        assert!(living(&mut renewals, &[stopped]).is_empty());
    }

    #[tokio::test]
    async fn a_conductor_without_leases_shares_nothing() {
        let alone = ConductorRow { epoch: 0, ..row("a", 1) };
        assert!(LastRenewals::default().living(&[alone]).is_empty());
    }
}
