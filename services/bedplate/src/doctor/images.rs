//! Checks that images match their checksums: downloads each image and computes the checksum.

use std::collections::BTreeMap;
use std::time::Duration;

use api_client::baremetald::Node;
use reqwest::Client;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256, Sha512};

use super::finding::{Check, Findings};

/// How long an image server may send nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// The number of users of an image that are named.
const NAMED: usize = 3;

/// An image with its expected checksum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Image {
    url: String,
    algorithm: String,
    checksum: String,
}

/// Downloads every image that a node is to be installed with.
pub(crate) async fn look(nodes: &[Node], findings: &mut Findings) {
    let mut wanted: BTreeMap<Image, Vec<String>> = BTreeMap::new();
    for node in nodes {
        if let Some(image) = image(&node.instance_info) {
            wanted.entry(image).or_default().push(format!("node {}", node.label()));
        }
    }
    if wanted.is_empty() {
        return findings.skipped(Check::Images, "no rack and no node has an image to install");
    }
    let client = Client::builder().no_proxy().read_timeout(SILENCE).build();
    let Ok(client) = client else {
        return findings
            .skipped(Check::Images, "images are not checked: cannot set up an HTTP client");
    };
    for (image, users) in wanted {
        let users: Vec<&str> = users.iter().take(NAMED).map(String::as_str).collect();
        check(&client, &image, &users.join(", "), findings).await;
    }
}

/// The image of a Bare Metal API `instance_info`. Images of Glance and of OCI registries are left out, which keep
/// the checksums, and so are images whose checksum is in a file.
fn image(info: &Map<String, Value>) -> Option<Image> {
    let text = |key: &str| info.get(key)?.as_str().map(str::to_owned);
    let url = text("image_source").filter(|url| url.starts_with("http"))?;
    let checksum = text("image_os_hash_value").filter(|sum| !sum.contains("://"))?;
    let algorithm = text("image_os_hash_algo")?;
    Some(Image { url, algorithm, checksum })
}

async fn check(client: &Client, image: &Image, users: &str, findings: &mut Findings) {
    let Image { url, algorithm, checksum } = image;
    let computed = match algorithm.as_str() {
        "sha256" => compute::<Sha256>(client, url).await,
        "sha512" => compute::<Sha512>(client, url).await,
        other => {
            let what = format!(
                "{url} ({users}) has a checksum of type {other}, which the doctor does not support"
            );
            return findings.skipped(Check::Images, what);
        }
    };
    match computed {
        Ok(computed) if computed.eq_ignore_ascii_case(checksum) => {
            findings.ok(Check::Images, format!("{url} matches its checksum"));
        }
        Ok(computed) => {
            let what = format!(
                "{url} does not match the checksum of {users}: its {algorithm} is {computed} instead of {checksum}"
            );
            let next = "correct the checksum, or replace the image: machines refuse an image with another checksum";
            findings.fail(Check::Images, what, next);
        }
        Err(why) => {
            let what = format!("cannot download {url} ({users}): {:#}", anyhow::Error::new(why));
            let next = "start the server, or correct the URL; machines download from the provisioning network, which may differ from this machine's network";
            findings.fail(Check::Images, what, next);
        }
    }
}

async fn compute<D: Digest>(client: &Client, url: &str) -> Result<String, reqwest::Error> {
    let mut answer = client.get(url).send().await?.error_for_status()?;
    let mut digest = D::new();
    while let Some(chunk) = answer.chunk().await? {
        digest.update(&chunk);
    }
    Ok(hex::encode(digest.finalize()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::doctor::tests::lines;

    /// A server that sends the image `abc` once.
    async fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc";
            stream.write_all(answer).await.unwrap();
        });
        format!("http://{address}/disk.raw")
    }

    async fn checked(url: &str, checksum: &str) -> Vec<String> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let info = json!({"image_source": url, "image_os_hash_algo": "sha256", "image_os_hash_value": checksum});
        let mut findings = Findings::default();
        let client = Client::builder().no_proxy().build().unwrap();
        check(&client, &image(info.as_object().unwrap()).unwrap(), "rack r1", &mut findings).await;
        lines(&findings)
    }

    #[tokio::test]
    async fn an_image_that_differs_from_its_checksum_is_a_problem() {
        // The example of FIPS 180-4.
        let abc = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
        let url = server().await;
        assert_eq!(checked(&url, abc).await, [format!("fine: {url} matches its checksum")]);
        let url = server().await;
        let [line] = &checked(&url, &"0".repeat(64)).await[..] else { panic!() };
        assert!(
            line.starts_with(&format!(
                "wrong: {url} does not match the checksum of rack r1: its sha256 is ba78"
            )),
            "{line}"
        );
    }

    #[tokio::test]
    async fn an_image_that_cannot_be_downloaded_is_a_problem() {
        let [line] = &checked("http://127.0.0.1:1/disk.raw", "00").await[..] else { panic!() };
        assert!(
            line.starts_with("wrong: cannot download http://127.0.0.1:1/disk.raw (rack r1)"),
            "{line}"
        );
    }
}
