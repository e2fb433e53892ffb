//! A clusterd that runs in the test.

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// A clusterd without authentication and without a cloud.
pub(crate) struct Clusterd {
    pub(crate) url: String,
    pub(crate) state: TempDir,
    _running: AbortOnDropHandle<()>,
}

impl Clusterd {
    pub(crate) async fn start() -> Clusterd {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let state = tempfile::tempdir().unwrap();
        let text = format!("state_dir = {:?}\n[api]\nlisten = '127.0.0.1:0'\n", state.path());
        let service = cluster::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
        let url = format!("http://{}", service.listeners().api);
        let running = async { service.run(CancellationToken::new()).await.unwrap() };
        Clusterd { url, state, _running: AbortOnDropHandle::new(tokio::spawn(running)) }
    }
}
