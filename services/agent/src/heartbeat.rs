//! Heartbeats: the agent reports that it runs, and its address.

use std::time::Duration;

use agent_protocol::Heartbeat;
use rand::RngExt;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::commands::Commands;
use crate::conductor::Conductor;
use crate::error::chain;

/// The timing of heartbeats.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatTiming {
    timeout: Duration,
}

impl HeartbeatTiming {
    /// Makes the timing for a conductor that waits `seconds` for a heartbeat.
    pub fn new(seconds: u64) -> Self {
        HeartbeatTiming { timeout: Duration::from_secs(seconds.clamp(1, 3600)) }
    }

    /// The time until the next heartbeat: 0.3 to 0.6 of the conductor's timeout. The random part keeps the machines of a rack from sending
    /// all at once.
    fn interval(self) -> Duration {
        self.timeout.mul_f64(rand::rng().random_range(0.3..0.6))
    }

    /// The time until the next try after a failed heartbeat.
    fn after_error(self) -> Duration {
        Duration::from_secs_f64(rand::rng().random_range(5.0..10.0)).min(self.interval())
    }

    /// The shortest time between two heartbeats: one second with the usual timeout of 300 s.
    fn spacing(self) -> Duration {
        self.timeout / 300
    }
}

/// Sends heartbeats for ever: at intervals, and at once when a long command has ended.
pub async fn send_heartbeats<T>(
    conductor: &Conductor,
    node: &str,
    heartbeat: &Heartbeat,
    rhythm: HeartbeatTiming,
    commands: &Commands,
) -> T {
    loop {
        let pause = match conductor.heartbeat(node, heartbeat).await {
            Ok(()) => rhythm.interval(),
            Err(error) => {
                warn!("no heartbeat: {}", chain(&error));
                rhythm.after_error()
            }
        };
        sleep(rhythm.spacing()).await;
        let _ = timeout(pause, commands.ended.notified()).await;
    }
}
