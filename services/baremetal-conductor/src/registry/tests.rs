//! Tests of the client of registries, with a registry that answers as each test wants.

use std::net::SocketAddr;

use baremetal_core::{OciReference, PullSecret};
use serde_json::json;

use super::*;
use crate::samples::{TlsServer, answering, http};

const SECRET: &str = "YW5uOnNlc2FtZQ==";

/// Addresses of tests, and no others.
fn here() -> AllowedHosts {
    AllowedHosts::within(Some(vec!["127.0.0.0/8".parse().unwrap()]))
}

/// The image `a/b:1` in the registry at this address.
fn image_at(address: SocketAddr, certificate: Option<&str>) -> OciImage {
    OciImage {
        reference: OciReference::parse(&format!("oci://{address}/a/b:1")).unwrap(),
        secret: None,
        ca: certificate.map(str::to_owned),
        format: None,
        architecture: None,
    }
}

fn image(server: &TlsServer) -> OciImage {
    image_at(server.address, Some(&server.certificate))
}

fn with_secret(server: &TlsServer) -> OciImage {
    let secret = PullSecret {
        object: "instance_info",
        user: "ann".to_owned(),
        password: "sesame".to_owned(),
    };
    OciImage { secret: Some(secret), ..image(server) }
}

fn manifest() -> String {
    json!({"config": {"digest": "x", "mediaType": "a/b"}, "layers": []}).to_string()
}

async fn read(image: &OciImage) -> Result<OciDocument, RegistryError> {
    let allowed = here();
    Registry::new(&allowed, image)?.document(&image.reference.version).await
}

#[track_caller]
fn assert_refused(read: Result<OciDocument, RegistryError>, words: &str, is_transient: bool) {
    let why = read.unwrap_err();
    assert!(why.to_string().contains(words), "{words}: {why}");
    assert_eq!(why.is_transient(), is_transient, "{why}");
    assert!(!why.to_string().contains("sesame"), "{why}");
}

fn is_for(head: &str, path: &str) -> bool {
    head.starts_with(&format!("GET {path} "))
}

/// The value of a header in the head of a request.
fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

/// Answers as a registry that wants a token, and as its token server, which gives a token to everybody, or for this `secret` alone.
fn with_tokens(at: SocketAddr, head: &str, secret: Option<&str>) -> Vec<u8> {
    let authorization = header(head, "authorization").unwrap_or_default();
    if head.starts_with("GET /token?") {
        return match secret.is_none_or(|secret| authorization == format!("Basic {secret}")) {
            true => http("200 OK", r#"{"token": "for-reading", "expires_in": 60}"#),
            false => http("401 Unauthorized", ""),
        };
    }
    if authorization == "Bearer for-reading" {
        return http("200 OK", manifest());
    }
    let realm = format!("https://{at}/token?from=registry");
    let scope = "repository:other:push";
    let challenge = format!(r#"Bearer realm="{realm}",service="reg.example",scope="{scope}""#);
    http(&format!("401 Unauthorized\nWWW-Authenticate: {challenge}"), "")
}

#[tokio::test]
async fn an_anonymous_token_is_for_reading_this_repository_alone() {
    let server = TlsServer::start(|at, head| with_tokens(at, head, None)).await;
    read(&image(&server)).await.unwrap();
    let heads = server.heads();
    let [first, token, second] = &heads[..] else { panic!("{heads:#?}") };
    for request in [first, second] {
        assert!(is_for(request, "/v2/a/b/manifests/1"), "{request}");
        assert_eq!(header(request, "accept"), Some(OCI_MEDIA_TYPES));
    }
    let query = "from=registry&service=reg.example&scope=repository%3Aa%2Fb%3Apull";
    assert!(is_for(token, &format!("/token?{query}")), "{token}");
    assert_eq!((header(first, "authorization"), header(token, "authorization")), (None, None));
    assert_eq!(header(second, "authorization"), Some("Bearer for-reading"));
}

#[tokio::test]
async fn the_secret_goes_to_the_token_server_alone() {
    let server = TlsServer::start(|at, head| with_tokens(at, head, Some(SECRET))).await;
    read(&with_secret(&server)).await.unwrap();
    let logins: Vec<_> =
        server.heads().iter().map(|it| header(it, "authorization").map(str::to_owned)).collect();
    let basic = format!("Basic {SECRET}");
    assert_eq!(logins, [None, Some(basic), Some("Bearer for-reading".to_owned())]);

    assert_refused(read(&image(&server)).await, "wants a login, or has no such repository", false);
    let mut wrong = with_secret(&server);
    wrong.secret = Some(PullSecret {
        object: "instance_info",
        user: String::new(),
        password: "sesame".to_owned(),
    });
    assert_refused(read(&wrong).await, "refused instance_info.image_pull_secret", false);
}

#[tokio::test]
async fn a_registry_may_want_the_secret_itself() {
    let server = TlsServer::start(|_, head| match header(head, "authorization") {
        Some(login) if login == format!("Basic {SECRET}") => http("200 OK", manifest()),
        Some(_) | None => http("401 Unauthorized\nWWW-Authenticate: Basic realm=\"reg\"", ""),
    })
    .await;
    read(&with_secret(&server)).await.unwrap();
    assert_refused(read(&image(&server)).await, "wants a login, or has no such repository", false);
    let mut wrong = with_secret(&server);
    wrong.secret = Some(PullSecret {
        object: "instance_info",
        user: "ann".to_owned(),
        password: "wrong".to_owned(),
    });
    assert_refused(read(&wrong).await, "refused instance_info.image_pull_secret", false);
}

#[tokio::test]
async fn a_wrong_answer_is_refused_with_its_reason() {
    let digest = |of: &[u8]| format!("sha256:{}", hex::encode(Sha256::digest(of)));
    for (head, body, words, is_transient) in [
        ("404 Not Found", String::new(), "has no a/b/manifests/1", false),
        ("403 Forbidden", String::new(), "wants a login, or has no such repository", false),
        ("401 Unauthorized", String::new(), "wants a login of an unknown kind", false),
        ("429 Too Many", String::new(), "answered 429", true),
        ("503 Busy", String::new(), "answered 503", true),
        ("400 Bad", String::new(), "answered 400", false),
        ("200 OK", "<html>".to_owned(), "it is neither a manifest nor an index", false),
        ("200 OK", " ".repeat(LARGEST_OCI_DOCUMENT + 1), "more than 4194304 bytes", false),
        (
            "401 Unauthorized\nWWW-Authenticate: Bearer realm=\"http://127.0.0.1/token\"",
            String::new(),
            "wants a login of an unknown kind",
            false,
        ),
        (
            "401 Unauthorized\nWWW-Authenticate: Bearer realm=\"https://10.0.0.1/token\"",
            String::new(),
            "10.0.0.1 is not in the list of allowed hosts; allow the host with images.hosts",
            false,
        ),
    ] {
        let server = TlsServer::start(move |_, _| http(head, &body)).await;
        assert_refused(read(&image(&server)).await, words, is_transient);
    }
    let server = TlsServer::start(|_, _| http("200 OK", manifest())).await;
    let mut exact = image(&server);
    exact.reference.version = OciVersion::Digest(digest(manifest().as_bytes()).parse().unwrap());
    read(&exact).await.unwrap();
    exact.reference.version = OciVersion::Digest(digest(b"other").parse().unwrap());
    assert_refused(read(&exact).await, "sent a manifest with another digest than sha256:", false);
}

#[tokio::test]
async fn a_token_server_that_gives_no_token_is_refused() {
    for (head, body, words, is_transient) in [
        ("200 OK", "{}", "sent no token", false),
        ("200 OK", "[", "sent no token", false),
        ("200 OK", r#"{"token": "a\r\nX: b"}"#, "sent no token", false),
        ("200 OK", r#"{"token": ""}"#, "sent no token", false),
        ("500 Broken", "", "answered 500", true),
        ("302 Found\nLocation: http://127.0.0.1:1/token", "", "redirects to a URL", false),
    ] {
        let server =
            TlsServer::start(move |at, request| match request.starts_with("GET /token?") {
                true => http(head, body),
                false => with_tokens(at, request, None),
            })
            .await;
        assert_refused(read(&image(&server)).await, words, is_transient);
    }
    let server = TlsServer::start(|at, head| match head.starts_with("GET /token?") {
        true => http("200 OK", r#"{"access_token": "for-reading"}"#),
        false => with_tokens(at, head, None),
    })
    .await;
    read(&image(&server)).await.unwrap();
}

#[tokio::test]
async fn a_redirect_leads_to_allowed_hosts_only_and_carries_no_login() {
    for (location, words) in [
        ("https://10.0.0.1/blob", "10.0.0.1 is not in the list of allowed hosts; allow the host"),
        ("http://127.0.0.1:1/blob", "redirects to a URL that is not read"),
        ("/loop", "redirects to a URL that is not read"),
    ] {
        let head = format!("307 Temporary Redirect\nLocation: {location}");
        let server = TlsServer::start(move |_, _| http(&head, "")).await;
        assert_refused(read(&image(&server)).await, words, false);
    }

    let storage = TlsServer::start(|_, head| match head.contains("open") {
        true => http("200 OK", manifest()),
        false => http("401 Unauthorized\nWWW-Authenticate: Basic realm=\"reg\"", ""),
    })
    .await;
    let to = |path: &str| {
        let location = format!("https://{}/{path}?signature=sesame", storage.address);
        let moved = http(&format!("307 Temporary Redirect\nLocation: {location}"), "");
        move |_: SocketAddr, head: &str| match header(head, "authorization") {
            Some(_) => moved.clone(),
            None => http("401 Unauthorized\nWWW-Authenticate: Basic realm=\"reg\"", ""),
        }
    };
    for (path, want) in
        [("open", None), ("closed", Some("refused instance_info.image_pull_secret"))]
    {
        let server = TlsServer::start(to(path)).await;
        let mut image = with_secret(&server);
        image.ca = Some(format!("{}{}", server.certificate, storage.certificate));
        match want {
            None => drop(read(&image).await.unwrap()),
            Some(words) => assert_refused(read(&image).await, words, false),
        }
        let heads = storage.heads();
        assert_eq!(heads.len(), 1, "{heads:#?}");
        assert_eq!(header(&heads[0], "authorization"), None);
    }
}

#[tokio::test]
async fn a_server_that_the_registry_redirects_to_gets_no_secret_for_its_own_challenge() {
    let storage = TlsServer::start(|_, _| {
        http("401 Unauthorized\nWWW-Authenticate: Basic realm=\"mine\"", "")
    })
    .await;
    let location = format!("https://{}/blob", storage.address);
    let moved = format!("307 Temporary Redirect\nLocation: {location}");
    let server = TlsServer::start(move |_, _| http(&moved, "")).await;
    let mut image = with_secret(&server);
    image.ca = Some(format!("{}{}", server.certificate, storage.certificate));
    assert_refused(read(&image).await, "refused instance_info.image_pull_secret", false);
    let all = [server.heads(), storage.heads()].concat();
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(all.iter().all(|head| header(head, "authorization").is_none()), "{all:#?}");
}

#[tokio::test]
async fn only_allowed_hosts_with_a_trusted_certificate_are_asked() {
    let server = TlsServer::start(|_, _| http("200 OK", manifest())).await;
    let at = server.address;
    assert_refused(
        read(&image_at(at, None)).await,
        "is not trusted; set instance_info.image_ca",
        false,
    );
    let wrong = read(&image_at(at, Some("-----BEGIN CERTIFICATE-----"))).await;
    assert_refused(wrong, "cannot make a TLS client; check instance_info.image_ca", false);
    let plain = answering("HTTP/1.1 200 OK\r\n\r\n".to_owned()).await;
    assert_refused(read(&image_at(plain, None)).await, "cannot speak TLS with", false);
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    assert_refused(read(&image_at(closed, None)).await, "cannot reach 127.0.0.1:1", true);

    server.heads();
    let (elsewhere, image) = (AllowedHosts::default(), image(&server));
    let mut registry = Registry::new(&elsewhere, &image).unwrap();
    let refused = registry.document(&image.reference.version).await;
    assert_refused(refused, "127.0.0.1 is a loopback address", false);
    assert_eq!(server.heads(), [""; 0]);
}

#[tokio::test]
async fn a_blob_is_read_as_it_is_stored_and_in_ranges() {
    let digest: OciDigest = format!("sha256:{}", "a".repeat(64)).parse().unwrap();
    let server = TlsServer::start(|_, head| match header(head, "range") {
        Some("bytes=0-3") => http("206 Partial Content\nContent-Range: bytes 0-3/9", "the "),
        Some(_) | None => http("200 OK", "the whole"),
    })
    .await;
    let (allowed, image) = (here(), image(&server));
    let mut registry = Registry::new(&allowed, &image).unwrap();
    assert_eq!(registry.start_of(&digest, 4).await.unwrap(), b"the ");
    // A registry without ranges sends the whole blob, and a short blob is no error.
    assert_eq!(registry.start_of(&digest, 5).await.unwrap(), b"the whole");
    assert_eq!(registry.start_of(&digest, 500).await.unwrap(), b"the whole");
    let whole = registry.blob(&digest, None).await.unwrap();
    assert_eq!(whole.bytes().await.unwrap(), "the whole");
    let heads = server.heads();
    for head in &heads {
        assert!(is_for(head, &format!("/v2/a/b/blobs/{digest}")), "{head}");
        assert_eq!(header(head, "accept-encoding"), Some("identity"), "{head}");
    }
    assert_eq!(heads.len(), 4);
}
