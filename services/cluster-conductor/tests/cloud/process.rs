//! A conductor as if in a process of its own: with its own thread, runtime, connections and memory. The conductor shares only the cloud, the file of
//! the store and the sealing key with others.

use std::thread::JoinHandle;
use std::time::Duration;

use cluster_conductor::{Conductor, Settings};
use cluster_store::Store;
use database::Tripwire;
use sealing::SealingKeys;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::given::{ClusterFixture, session};

/// A running conductor, which also ends a moment after this is dropped.
pub(crate) struct Process {
    kill: oneshot::Sender<()>,
    stalls: mpsc::UnboundedSender<Duration>,
    thread: JoinHandle<()>,
}

impl ClusterFixture {
    /// Starts a conductor that runs until it is killed.
    pub(crate) fn process(&self) -> Process {
        self.process_with(Tripwire::default())
    }

    /// The same, with writes that report to this tripwire.
    pub(crate) fn process_with(&self, tripwire: Tripwire) -> Process {
        self.process_of(self.settings.clone(), tripwire)
    }

    /// Starts one of several conductors on the same database.
    pub(crate) fn process_as(&self, hostname: &str) -> Process {
        let (hostname, instance) = (hostname.to_owned(), hostname.to_owned());
        let settings = Settings { hostname, instance, ..self.settings.clone() };
        self.process_of(settings, Tripwire::default())
    }

    fn process_of(&self, settings: Settings, tripwire: Tripwire) -> Process {
        let url = self.scratch.as_ref().unwrap().url.clone();
        let (keys, cloud) = (SealingKeys::parse(&self.keys).unwrap(), self.cloud.clone());
        let (kill, killed) = oneshot::channel();
        let (stalls, mut stalled) = mpsc::unbounded_channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let store = Store::open(&url).await.unwrap().with_tripwire(tripwire);
                let conductor = Conductor::new(settings, store, keys, Some(session(&cloud)));
                tokio::spawn(async move {
                    // Nothing else of this conductor runs meanwhile, as if the process had been stopped.
                    while let Some(time) = stalled.recv().await {
                        std::thread::sleep(time);
                    }
                });
                tokio::select! {
                    ended = conductor.run(CancellationToken::new()) => panic!("it ended: {ended:?}"),
                    _ = killed => {}
                }
            });
            // Work in progress ends immediately.
            runtime.shutdown_background();
        });
        Process { kill, stalls, thread }
    }
}

impl Process {
    /// Stops the conductor for a while.
    pub(crate) fn stall(&self, time: Duration) {
        self.stalls.send(time).unwrap();
    }

    /// Kills the conductor, and waits until nothing of it runs any more.
    pub(crate) async fn kill(self) {
        let _ = self.kill.send(());
        tokio::task::spawn_blocking(|| self.thread.join()).await.unwrap().unwrap();
    }
}
