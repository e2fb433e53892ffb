//! Applies fault rules and the trap between a call and its answer.

use std::io;
use std::sync::Arc;

use tokio::time::{Instant, sleep};

use crate::glob;
use crate::misbehave::Act;
use crate::settings::millis;
use crate::shared::Shared;
use crate::trap::Stop;

/// The parts of a call that rules match.
pub(crate) struct MatchedCall<'c> {
    pub(crate) method: &'c str,
    pub(crate) path: &'c str,
    pub(crate) query: &'c str,
    pub(crate) body: &'c [u8],
}

/// The answer of a rule in place of the service: status, seconds for `Retry-After`, message.
pub(crate) type Instead = (u16, Option<u32>, Option<String>);

/// Runs `work` for a call, unless a rule or the trap decides otherwise. An error closes the connection without an answer.
pub(crate) async fn meddle<T: Send + 'static>(
    shared: &Arc<Shared>,
    met: &MatchedCall<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    instead: impl FnOnce(Instead) -> T,
) -> io::Result<T> {
    let (stopped, act, wait) = shared.with(|world| {
        let stopped = world.trap.on_call(met.method, met.path, met.query, met.body);
        let now = Instant::now();
        let act = match stopped {
            Some(_) => None,
            None => world.misbehaviour.on_call(now, met.method, met.path, met.body),
        };
        let latency = world.settings.latencies.iter().find(|latency| {
            latency.method.as_ref().is_none_or(|only| only.eq_ignore_ascii_case(met.method))
                && glob::matches(&latency.path, met.path)
        });
        (stopped, act, latency.map(|latency| latency.millis))
    });
    shared.called();
    if let Some(wait) = wait {
        sleep(millis(wait)).await;
    }
    let closed = || io::Error::from(io::ErrorKind::ConnectionAborted);
    if let Some(stopped) = stopped {
        if stopped.stop == Stop::After {
            work();
        }
        shared.with(|world| world.trap.hold(&stopped));
        shared.called();
        shared.until_opened(stopped.opening).await;
        return Err(closed());
    }
    match act {
        None => Ok(work()),
        Some((_, Act::Answer { status, retry_after, message })) => {
            Ok(instead((status, retry_after, message)))
        }
        Some((_, Act::Delay { millis: late })) => {
            sleep(millis(late)).await;
            Ok(work())
        }
        Some((id, Act::Hang)) => {
            shared.until_gone(id).await;
            Err(closed())
        }
        Some((id, Act::HangAfterwards)) => {
            work();
            shared.called();
            shared.until_gone(id).await;
            Err(closed())
        }
        Some((_, Act::Close)) => Err(closed()),
        Some((_, Act::LoseAnswer)) => {
            work();
            Err(closed())
        }
        Some((_, Act::Land { millis: late })) => {
            let shared = shared.clone();
            tokio::spawn(async move {
                sleep(millis(late)).await;
                work();
                shared.called();
            });
            Err(closed())
        }
        Some((id, Act::LandAfterwards)) => {
            let shared = shared.clone();
            tokio::spawn(async move {
                shared.until_gone(id).await;
                work();
                shared.called();
            });
            Err(closed())
        }
    }
}
