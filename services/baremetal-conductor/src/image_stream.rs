//! Downloads an image and passes it on at the same time, so that no file and little memory are needed.

use std::io;
use std::time::Duration;

use baremetal_core::{Problem, Reason};
use bmc::ImageStream;
use hardware::AllowedHosts;
use reqwest::{Client, Response, StatusCode};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use url::Url;

use crate::image_client::image_client;
use crate::problem::chain;

/// The time limit of a connection, and of each pause between two parts of an image.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The size limit of an image in bytes, if the BMC does not tell any.
const LARGEST: u64 = 4 << 30;

/// How many parts of an image wait for the BMC.
const WAITING_PARTS: usize = 4;

pub(crate) struct Download(JoinHandle<Option<Problem>>);

impl Download {
    /// Returns why the download is incomplete. Call this once the reader of the image has ended.
    pub(crate) async fn problem(self) -> Option<Problem> {
        self.0.await.ok().flatten()
    }
}

/// Begins the download of the image at `url`, which must not be larger than `largest`.
pub(crate) async fn download(
    allowed: &AllowedHosts,
    url: Url,
    largest: Option<u64>,
) -> Result<(ImageStream, Download), Problem> {
    let shown = format!("{}{}", url.origin().ascii_serialization(), url.path());
    let refuse = |why: String, transient| about(&shown, &why, transient);
    allowed
        .check(url.host_str().unwrap_or_default())
        .map_err(|why| refuse(why.to_string(), false))?;
    let name = url.path_segments().and_then(|mut path| path.next_back()).unwrap_or_default();
    let name = if name.is_empty() { "image" } else { name }.to_owned();
    let unreachable = |error: reqwest::Error| {
        let error = error.without_url();
        refuse(chain(&error), !error.is_builder())
    };
    let answer = client(allowed).map_err(unreachable)?.get(url).send().await;
    let answer = answer.map_err(unreachable)?;
    let status = answer.status();
    if status != StatusCode::OK {
        let why = format!("the server answered {}", status.as_u16());
        return Err(refuse(why, status.is_server_error()));
    }
    let nothing = || refuse("the server does not tell the size of the image".to_owned(), false);
    let length = answer.content_length().ok_or_else(nothing)?;
    let most = largest.unwrap_or(LARGEST).min(LARGEST);
    if length == 0 || length > most {
        let why = format!("it has {length} bytes, and the BMC takes 1 to {most} bytes");
        return Err(refuse(why, false));
    }
    let (parts, bytes) = mpsc::channel(WAITING_PARTS);
    let passing = tokio::spawn(pass_on(answer, length, parts, shown));
    Ok((ImageStream { name, length, bytes }, Download(passing)))
}

/// Passes an image on until it ends, or nobody reads it any more.
async fn pass_on(
    mut answer: Response,
    length: u64,
    parts: mpsc::Sender<io::Result<bytes::Bytes>>,
    shown: String,
) -> Option<Problem> {
    let mut passed = 0;
    let why = loop {
        match answer.chunk().await {
            Ok(Some(part)) => {
                passed += part.len() as u64;
                if parts.send(Ok(part)).await.is_err() {
                    return None;
                }
            }
            Ok(None) if passed == length => return None,
            Ok(None) => break format!("it ended after {passed} of {length} bytes"),
            Err(error) => break chain(&error.without_url()),
        }
    };
    // The reader may be gone, which does not matter.
    let _ = parts.send(Err(io::Error::other("the image is incomplete"))).await;
    Some(about(&shown, &why, true))
}

/// The problem of the image at `shown`, a URL without its query, which may contain a token.
fn about(shown: &str, why: &str, transient: bool) -> Problem {
    let cause = format!("the image at {shown}: {why}");
    Problem { reason: Reason::BadRequest, cause, transient }
}

fn client(allowed: &AllowedHosts) -> Result<Client, reqwest::Error> {
    image_client(allowed).connect_timeout(TIMEOUT).read_timeout(TIMEOUT).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::answering;

    /// Answers each request with `answer`, and returns the URL of an image on the server.
    async fn server(answer: String) -> Url {
        let at = answering(answer).await;
        format!("http://{at}/images/bios-2.bin?token=secret").parse().unwrap()
    }

    fn ok(length: usize, body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }

    /// Downloads an image of at most 100 bytes; returns its name, its bytes and the problem of the download.
    async fn downloaded(answer: String) -> Result<(String, Vec<u8>, Option<Problem>), Problem> {
        let (allowed, url) = (AllowedHosts::anywhere(), server(answer).await);
        let (mut image, download) = download(&allowed, url, Some(100)).await?;
        let mut whole = Vec::new();
        while let Some(Ok(part)) = image.bytes.recv().await {
            whole.extend_from_slice(&part);
        }
        Ok((image.name, whole, download.problem().await))
    }

    #[tokio::test]
    async fn an_image_is_passed_on_with_its_name() {
        let (name, whole, problem) = downloaded(ok(5, "image")).await.unwrap();
        assert_eq!((&*name, &*whole, problem), ("bios-2.bin", &b"image"[..], None));
    }

    #[tokio::test]
    async fn an_incomplete_image_is_a_problem_that_may_pass() {
        let (_, _, problem) = downloaded(ok(50, "image")).await.unwrap();
        let problem = problem.unwrap();
        assert!(problem.transient && !problem.cause.contains("secret"), "{problem:?}");
        assert!(problem.cause.contains("/images/bios-2.bin: "), "{problem:?}");
    }

    #[tokio::test]
    async fn a_wrong_answer_is_refused_with_the_address_and_without_its_token() {
        let head = "Content-Length: 0\r\nConnection: close\r\n\r\n";
        for (answer, words, transient) in [
            (ok(0, ""), "it has 0 bytes, and the BMC takes 1 to 100 bytes", false),
            (ok(101, ""), "it has 101 bytes, and the BMC takes 1 to 100 bytes", false),
            (
                "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nimage".to_owned(),
                "the server does not tell the size of the image",
                false,
            ),
            (
                format!("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/x\r\n{head}"),
                "the server answered 302",
                false,
            ),
            (format!("HTTP/1.1 503 No\r\n{head}"), "the server answered 503", true),
        ] {
            let problem = downloaded(answer).await.unwrap_err();
            assert!(problem.cause.ends_with(words), "{}", problem.cause);
            assert!(!problem.cause.contains("secret"), "{}", problem.cause);
            assert_eq!(problem.transient, transient, "{}", problem.cause);
        }
    }

    #[tokio::test]
    async fn only_allowed_hosts_are_asked() {
        let url = server(ok(5, "image")).await;
        let problem = download(&AllowedHosts::default(), url, None).await.map(|_| ()).unwrap_err();
        assert!(problem.cause.ends_with("127.0.0.1 is a loopback address"), "{}", problem.cause);
    }
}
