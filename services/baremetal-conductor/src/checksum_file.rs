//! Fetches files of checksums, such as `SHA256SUMS`, for images whose checksum a node gives by a URL.

use std::time::Duration;

use agent_protocol::ChecksumAlgorithm;
use baremetal_core::{Image, Problem, Reason, find_checksum};
use hardware::AllowedHosts;
use reqwest::{Certificate, Client, StatusCode};
use url::Url;

use crate::image_client::image_client;
use crate::problem::chain;

/// The time limit of a download.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The size limit of a file, in bytes.
const LONGEST: usize = 1 << 20;

/// Returns the checksum of `image` in the file at `url`. If `algorithm` is given, only its checksums count.
pub(crate) async fn fetch_checksum(
    allowed: &AllowedHosts,
    image: &Image,
    url: &str,
    algorithm: Option<ChecksumAlgorithm>,
) -> Result<(ChecksumAlgorithm, String), Problem> {
    // The query of a URL may contain a token.
    let shown = url.split(['?', '#']).next().unwrap_or(url);
    let about = |problem: String, transient| Problem {
        reason: Reason::BadRequest,
        cause: format!("the file of checksums at {shown}: {problem}"),
        transient,
    };
    let text = download(allowed, image, url).await;
    let text = text.map_err(|failed| about(failed.why, failed.transient))?;
    find_checksum(&text, &image.url, algorithm).map_err(|why| about(why.to_string(), false))
}

/// Why a file was not downloaded, and whether a retry may succeed.
struct Failed {
    why: String,
    transient: bool,
}

fn refused(why: impl Into<String>) -> Failed {
    Failed { why: why.into(), transient: false }
}

async fn download(allowed: &AllowedHosts, image: &Image, url: &str) -> Result<String, Failed> {
    let url = Url::parse(url).map_err(|_| refused("not a URL"))?;
    let host = url.host_str().unwrap_or_default();
    allowed.check(host).map_err(|why| refused(why.to_string()))?;
    let unreachable = |error: reqwest::Error| {
        let error = error.without_url();
        Failed { why: chain(&error), transient: !error.is_builder() }
    };
    let client = client(allowed, image.ca.as_deref()).map_err(unreachable)?;
    let mut answer = client.get(url).send().await.map_err(unreachable)?;
    let status = answer.status();
    if status != StatusCode::OK {
        let why = format!("the server answered {}", status.as_u16());
        return Err(Failed { why, transient: status.is_server_error() });
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > LONGEST {
            return Err(refused(format!("it has more than {LONGEST} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    String::from_utf8(body).map_err(|_| refused("it is not text"))
}

fn client(allowed: &AllowedHosts, ca: Option<&str>) -> Result<Client, reqwest::Error> {
    let authorities = ca.map(|pem| Certificate::from_pem_bundle(pem.as_bytes())).transpose()?;
    image_client(allowed).timeout(TIMEOUT).tls_certs_merge(authorities.unwrap_or_default()).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::answering;
    use agent_protocol::DiskFormat;
    use baremetal_core::ImageChecksum;

    fn ok(body: &str) -> String {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    async fn fetched(allowed: &AllowedHosts, answer: String) -> Result<String, Problem> {
        let url = format!("http://{}/SHA256SUMS?token=secret", answering(answer).await);
        let image = Image {
            url: "http://images/disk.raw".to_owned(),
            checksum: ImageChecksum::File { url: url.clone(), algorithm: None },
            format: DiskFormat::Raw,
            ca: None,
            config_drive: None,
        };
        fetch_checksum(allowed, &image, &url, None).await.map(|(_, value)| value)
    }

    #[tokio::test]
    async fn a_file_of_checksums_is_fetched() {
        let sum = "a1".repeat(32);
        let all = AllowedHosts::anywhere();
        assert_eq!(fetched(&all, ok(&format!("{sum}  disk.raw\n"))).await, Ok(sum));
    }

    #[tokio::test]
    async fn a_wrong_file_is_refused_with_its_address_and_without_its_token() {
        let moved = "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let busy = "HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let all = AllowedHosts::anywhere();
        for (answer, words, transient) in [
            (ok(""), "the file is empty", false),
            (ok(&"x".repeat(LONGEST + 1)), "it has more than 1048576 bytes", false),
            (moved.to_owned(), "the server answered 302", false),
            (busy.to_owned(), "the server answered 503", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx".to_owned(), "error", true),
        ] {
            let problem = fetched(&all, answer).await.unwrap_err();
            assert!(problem.cause.contains(words), "{}", problem.cause);
            assert!(problem.cause.starts_with("the file of checksums at http://127.0.0.1:"));
            assert!(!problem.cause.contains("secret"), "{}", problem.cause);
            assert_eq!(problem.transient, transient, "{}", problem.cause);
        }
    }

    #[tokio::test]
    async fn only_allowed_hosts_are_asked() {
        let problem = fetched(&AllowedHosts::default(), ok("x")).await.unwrap_err();
        assert!(problem.cause.ends_with("127.0.0.1 is a loopback address"), "{}", problem.cause);
    }
}
