//! The web console, which shows the demonstration in a browser.

use tokio::net::TcpStream;

use crate::output::line;

use super::children::{Children, START_TIMEOUT};
use super::options::Options;

/// The console's address, the same as in console.toml.
pub(super) const ADDRESS: &str = "127.0.0.1:9510";

/// Starts consoled, before the services that it shows.
pub(super) async fn start(options: &Options, children: &mut Children) -> anyhow::Result<()> {
    line(&format!("Starting consoled: open http://{ADDRESS}/ in a browser"))?;
    children.start("consoled", &options.log("consoled"), |command| {
        command.arg("--config").arg(options.from.join("console.toml"));
    })?;
    children.ready(START_TIMEOUT, || async { TcpStream::connect(ADDRESS).await.is_ok() }).await
}
