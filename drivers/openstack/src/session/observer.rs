//! Tells a program about each call of a session, for its metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::CloudError;
use crate::service::Service;

/// A function that is told about each call that ended: the service, the outcome as one of a few words, and the time that the call took.
#[derive(Clone, Default)]
pub struct CallObserver(Option<Arc<Observe>>);

type Observe = dyn Fn(Service, &'static str, Duration) + Send + Sync;

impl CallObserver {
    /// Makes an observer, which must return at once.
    pub fn new(observe: impl Fn(Service, &'static str, Duration) + Send + Sync + 'static) -> Self {
        CallObserver(Some(Arc::new(observe)))
    }

    /// Begins to observe a call.
    pub(super) fn begin(&self, service: Service) -> ObservedCall {
        let outcome = "abandoned";
        ObservedCall { observer: self.clone(), service, outcome, begun: Instant::now() }
    }
}

impl fmt::Debug for CallObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "CallObserver(set)" } else { "CallObserver" })
    }
}

/// A call in progress. The observer is told when this value is dropped, so also if the caller no longer waits.
pub(super) struct ObservedCall {
    observer: CallObserver,
    service: Service,
    outcome: &'static str,
    begun: Instant,
}

impl ObservedCall {
    /// Ends the call; `error` is its error if it failed.
    pub(super) fn ended(mut self, error: Option<&CloudError>) {
        self.outcome = error.map_or("ok", CloudError::kind);
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        if let CallObserver(Some(observe)) = &self.observer {
            observe(self.service, self.outcome, self.begun.elapsed());
        }
    }
}
