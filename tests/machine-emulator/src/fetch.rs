//! HTTP downloads of boot loaders and BMCs.

use std::time::Duration;

use reqwest::{Client, Response};
use url::Url;

use crate::machine::Machine;

/// The longest boot script, in bytes.
const LONGEST_SCRIPT: usize = 1 << 20;
/// A download fails after this time without data.
const PATIENCE: Duration = Duration::from_secs(30);

/// The reasons why a download failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("cannot fetch {url}")]
    Unreachable { url: Url, source: reqwest::Error },
    #[error("{url} is answered with {status}")]
    Refused { url: Url, status: u16 },
    #[error("{url} broke off")]
    BrokeOff { url: Url },
    #[error("{url} is larger than a script may be")]
    TooLarge { url: Url },
}

/// Makes a plain HTTP client for all machines of a rack.
pub(crate) fn client() -> reqwest::Result<Client> {
    Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .redirect(reqwest::redirect::Policy::none())
        .read_timeout(PATIENCE)
        .pool_max_idle_per_host(64)
        .build()
}

pub(crate) async fn get(client: &Client, url: &Url) -> Result<Response, FetchError> {
    let unreachable = |source: reqwest::Error| FetchError::Unreachable {
        url: shown(url),
        source: source.without_url(),
    };
    let response = client.get(url.clone()).send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(FetchError::Refused { url: shown(url), status: response.status().as_u16() });
    }
    Ok(response)
}

pub(crate) async fn text(client: &Client, url: &Url) -> Result<String, FetchError> {
    let mut response = get(client, url).await?;
    let mut bytes = Vec::new();
    while let Some(chunk) = next(&mut response, url).await? {
        bytes.extend(chunk);
        if bytes.len() > LONGEST_SCRIPT {
            return Err(FetchError::TooLarge { url: shown(url) });
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Downloads a file at the rate that the machine's faults permit; `see` gets each piece.
pub(crate) async fn download(
    machine: &Machine,
    client: &Client,
    url: &Url,
    mut see: impl FnMut(&[u8]),
) -> Result<u64, FetchError> {
    let mut response = get(client, url).await?;
    let mut bytes = 0;
    while let Some(chunk) = next(&mut response, url).await? {
        bytes += chunk.len() as u64;
        see(&chunk);
        throttle(machine, chunk.len()).await;
    }
    Ok(bytes)
}

/// Returns the next piece of a response.
pub(crate) async fn next(
    response: &mut Response,
    url: &Url,
) -> Result<Option<bytes::Bytes>, FetchError> {
    response.chunk().await.map_err(|_| FetchError::BrokeOff { url: shown(url) })
}

/// Waits as long as a slow line needs for `bytes`.
pub(crate) async fn throttle(machine: &Machine, bytes: usize) {
    if let Some(rate) = machine.faults().download_rate {
        tokio::time::sleep(Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64)).await;
    }
}

/// Returns the URL in a form that may be logged: paths of boot scripts and media hold capabilities.
fn shown(url: &Url) -> Url {
    let mut shown = url.clone();
    if let Some(file) = url.path_segments().and_then(|mut segments| segments.next_back()) {
        shown.set_path(&format!("…/{file}"));
    }
    shown.set_query(None);
    shown
}
