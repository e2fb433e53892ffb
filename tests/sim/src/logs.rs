//! The logs of the services, with virtual times. The trace of a seed is the same with and without them.

use std::fmt;
use std::thread;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// Starts the logs that `RUST_LOG` asks for, before the simulation begins.
pub(crate) fn start() {
    if std::env::var_os("RUST_LOG").is_none() {
        return;
    }
    // A filter has maps, whose keys are random numbers of the thread that makes them. The simulation goes on with those of this thread.
    let started = thread::spawn(|| {
        let filter = EnvFilter::from_default_env();
        let logs = tracing_subscriber::fmt().with_env_filter(filter).with_timer(VirtualTime);
        logs.with_writer(std::io::stderr).init();
    });
    started.join().expect("the logs start");
}

/// The virtual time, as in the trace. A look at a clock would move it.
struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:>10.3}", simulated_kernel::elapsed().as_secs_f64())
    }
}
