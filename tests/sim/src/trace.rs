//! The trace: what happened, by the virtual time; and the violations of the rules.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::sleep;

/// The events of a simulation. Clones are one trace.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    lines: Vec<String>,
    violations: Vec<String>,
    prints: bool,
}

impl Trace {
    /// Prints each line at once.
    pub(crate) fn print(&self) {
        self.inner().prints = true;
    }

    /// Notes something.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        let line = format!("{:>10.3} {}", simulated_kernel::elapsed().as_secs_f64(), text.as_ref());
        let mut inner = self.inner();
        if inner.prints {
            eprintln!("{line}");
        }
        inner.lines.push(line);
    }

    /// Notes that a rule was broken.
    pub(crate) fn violation(&self, text: impl AsRef<str>) {
        self.note(format!("VIOLATION: {}", text.as_ref()));
        self.inner().violations.push(text.as_ref().to_owned());
    }

    /// Returns when a rule was broken.
    pub(crate) async fn is_broken(&self) {
        while self.inner().violations.is_empty() {
            sleep(Duration::from_secs(5)).await;
        }
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.inner().violations.clone()
    }

    pub(crate) fn text(&self) -> String {
        self.inner().lines.join("\n")
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
