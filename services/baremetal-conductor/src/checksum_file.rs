//! Fetches files of checksums, such as `SHA256SUMS`, for images whose checksum a node gives by a URL.

use agent_protocol::ChecksumAlgorithm;
use baremetal_core::{Image, Problem, find_checksum};
use hardware::AllowedHosts;

use crate::text_file::TextFile;

/// The size limit of a file, in bytes.
const LONGEST: usize = 1 << 20;

/// Returns the checksum of `image` in the file at `url`. If `algorithm` is given, only its checksums count.
pub(crate) async fn fetch_checksum(
    allowed: &AllowedHosts,
    image: &Image,
    url: &str,
    algorithm: Option<ChecksumAlgorithm>,
) -> Result<(ChecksumAlgorithm, String), Problem> {
    let ca = image.ca.as_deref();
    let file = TextFile { what: "the file of checksums", url, ca, longest: LONGEST };
    let text = file.fetch(allowed).await?;
    let found = find_checksum(&text, &image.url, algorithm);
    found.map_err(|why| file.problem(&why.to_string(), false))
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
