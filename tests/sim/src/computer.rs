//! Simulated computers that run emulators.

use std::future::pending;
use std::sync::mpsc;
use std::thread;

use simulated_kernel::Host;
use tokio::runtime::{Builder, Handle, Runtime};

/// A computer with a runtime that lasts as long as the simulation.
#[derive(Clone)]
pub(crate) struct Computer {
    pub(crate) host: Host,
    pub(crate) runtime: Handle,
}

impl Computer {
    pub(crate) fn start() -> Computer {
        let host = Host::add();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            host.enter();
            let runtime = runtime();
            sender.send(runtime.handle().clone()).expect("the simulation waits");
            runtime.block_on(pending::<()>());
        });
        Computer { host, runtime: receiver.recv().expect("the computer starts") }
    }

    /// Runs something on this computer.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        self.runtime.spawn(work).await.expect("no emulator panics")
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime can be made")
}
