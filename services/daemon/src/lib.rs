#![doc = include_str!("../README.md")]

mod api_listener;
mod bodies;
mod client_counts;
mod connections;
mod database;
mod files;
mod host;
mod metrics_listener;
mod parts;
mod program;
mod proxy_header;
mod serve;
mod timeouts;
mod tls;

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use tracing_subscriber::EnvFilter;

pub use api_listener::{ApiListener, ApiListenerConfig, ApiListenerError};
pub use connections::ConnectionLimits;
pub use database::DatabaseConfig;
pub use files::{
    create_private_folder, instance_name, lock_state, read_or_create, replace_file, write_listeners,
};
pub use metrics_listener::{MetricsConfig, MetricsListener, MetricsListenerError, ScrapeCounts};
pub use parts::stop_together;
pub use program::{Program, VERSION};
pub use serve::{serve, serve_api, serve_tls};
pub use tls::{Tls, TlsError, TlsFiles};

/// Why the configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not a valid configuration: {}", path.display(), source.to_string().trim_end())]
    Invalid {
        path: PathBuf,
        /// Line, column and the mistake.
        source: Box<toml::de::Error>,
    },
}

/// Reads a TOML file into a configuration. Deserializing also validates, so a loaded configuration is a valid one.
pub fn load<C: DeserializeOwned>(path: &Path) -> Result<C, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let invalid = |source| ConfigError::Invalid { path: path.to_owned(), source: Box::new(source) };
    toml::from_str(&text).map_err(invalid)
}

/// Tells systemd that the service listens, if systemd has set `NOTIFY_SOCKET`: sd_notify(3).
pub fn notify_ready() {
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        warn!("cannot notify systemd that the service is ready: {error}");
    }
}

/// The format of the logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Logs to standard error. `RUST_LOG` selects the level; the default is `info`.
pub fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = io::IsTerminal::is_terminal(&io::stderr());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(colours);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

/// Returns a token that is cancelled on SIGTERM or SIGINT.
///
/// # Errors
///
/// The process cannot register the signal handlers.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let reported = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => info!("stopping on SIGTERM"),
            _ = interrupt.recv() => info!("stopping on SIGINT"),
        }
        reported.cancel();
    });
    Ok(stop)
}
