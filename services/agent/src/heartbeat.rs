//! Heartbeats: the agent says that it is there, and where.

use std::time::Duration;

use agent_protocol::Heartbeat;
use rand::RngExt;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::commands::Commands;
use crate::conductor::Conductor;
use crate::error::chain;

/// When to send heartbeats.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    timeout: Duration,
}

impl Rhythm {
    /// For a conductor that waits so many seconds.
    pub fn new(seconds: u64) -> Self {
        Rhythm { timeout: Duration::from_secs(seconds.clamp(1, 3600)) }
    }

    /// Until the next one: 0.3 to 0.6 of what the conductor waits, so that a whole rack does not beat as one.
    fn interval(self) -> Duration {
        self.timeout.mul_f64(rand::rng().random_range(0.3..0.6))
    }

    /// After one that failed: soon, but not at once.
    fn after_error(self) -> Duration {
        Duration::from_secs_f64(rand::rng().random_range(5.0..10.0)).min(self.interval())
    }

    /// Between any two: a second with the customary timeout of 300 s.
    fn spacing(self) -> Duration {
        self.timeout / 300
    }
}

/// Sends heartbeats for ever: in rhythm, and at once when a long command has ended.
pub async fn beat<T>(
    conductor: &Conductor,
    node: &str,
    heartbeat: &Heartbeat,
    rhythm: Rhythm,
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
