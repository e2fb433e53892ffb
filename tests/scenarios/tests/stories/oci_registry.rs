//! An OCI registry with one repository, which wants a token and can be told to misbehave.
//!
//! It follows the OCI distribution specification 1.1 and the "Token Authentication Specification" of the distribution project, and contains
//! none of the service's code.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bmc_emulator::{Identity, web};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_RANGE, LOCATION, RANGE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const USER: &str = "lab";
pub(crate) const PASSWORD: &str = left::canary::PULL_SECRET;

/// The token that the registry accepts.
const TOKEN: &str = "token-for-reading";
const REPOSITORY: &str = "images/debian";

pub(crate) const EMPTY_CONFIG: &str = "{}";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A running registry, which stops on drop.
pub(crate) struct OciRegistry {
    address: SocketAddr,
    certificate: String,
    state: Arc<Mutex<State>>,
    _serving: JoinSet<()>,
}

#[derive(Default)]
struct State {
    /// The manifests and blobs by their paths in the repository. Requests for one path get its objects in turn.
    objects: HashMap<String, VecDeque<Bytes>>,
    fault: RegistryFault,
}

/// How the registry misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RegistryFault {
    #[default]
    None,
    /// The registry answers 503.
    Down,
    /// A manifest has 5 MiB.
    LargeManifest,
    /// A manifest has one byte more than its digest covers.
    OtherManifest,
    /// The last byte of a blob is wrong.
    WrongBlob,
    /// A blob is at this URL.
    Redirect(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PushedDisk {
    /// The SHA-256 of the disk, in hexadecimal.
    pub(crate) checksum: String,
    pub(crate) digest: String,
}

/// A small disk with a boot sector, different for each `seed`.
pub(crate) fn bootable(seed: u8) -> Vec<u8> {
    let mut disk: Vec<u8> = (0..1 << 20).map(|at: usize| (at / 512 % 251) as u8 ^ seed).collect();
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk
}

pub(crate) fn digest(of: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(of)))
}

/// The manifest of a disk, as `oras push` makes it.
pub(crate) fn manifest_of(disk: &[u8], disktype: Option<&str>) -> Value {
    let annotations = disktype.map(|disktype| json!({"disktype": disktype}));
    json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/vnd.unknown.artifact.v1",
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(EMPTY_CONFIG), "size": EMPTY_CONFIG.len(),
        },
        "layers": [{"mediaType": "application/octet-stream", "digest": digest(disk), "size": disk.len()}],
        "annotations": annotations.unwrap_or_else(|| json!({})),
    })
}

impl OciRegistry {
    pub(crate) async fn start() -> OciRegistry {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let identity = Identity::for_addresses(&BTreeSet::from([address.ip()]));
        let identity = identity.expect("a certificate can be made");
        let state: Arc<Mutex<State>> = Arc::default();
        let (shared, acceptor) = (state.clone(), identity.acceptor);
        let mut serving = JoinSet::new();
        serving.spawn(web::run(listener, Some(acceptor), move |request| {
            let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
            let (login, range) = (header(AUTHORIZATION), header(RANGE));
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            std::future::ready(state.answer(address, request.uri(), login, range))
        }));
        let certificate = identity.pem.to_string();
        OciRegistry { address, certificate, state, _serving: serving }
    }

    /// Stores a disk, and names it by the tag. An earlier disk with this tag keeps its digest.
    pub(crate) fn push(&self, tag: &str, disktype: Option<&str>, disk: &[u8]) -> PushedDisk {
        let pushed = self.push_untagged(disktype, disk);
        let mut state = self.lock();
        let manifest = state.objects[&format!("manifests/{}", pushed.digest)].clone();
        state.objects.insert(format!("manifests/{tag}"), manifest);
        pushed
    }

    /// Stores a disk without a tag.
    pub(crate) fn push_untagged(&self, disktype: Option<&str>, disk: &[u8]) -> PushedDisk {
        let manifest = manifest_of(disk, disktype).to_string();
        let (blob, digest) = (digest(disk), digest(&manifest));
        let mut state = self.lock();
        state.put(format!("blobs/{blob}"), disk.to_vec());
        state.put(format!("manifests/{digest}"), manifest.into());
        PushedDisk { checksum: blob.trim_start_matches("sha256:").to_owned(), digest }
    }

    /// Stores an index of disks, each with an architecture and an annotation `disktype`.
    pub(crate) fn push_index(&self, tag: &str, entries: &[(&PushedDisk, &str, &str)]) {
        let entry = |(disk, architecture, disktype): &(&PushedDisk, &str, &str)| {
            json!({
                "mediaType": MANIFEST, "digest": disk.digest, "size": 1,
                "platform": {"os": "linux", "architecture": architecture}, "annotations": {"disktype": disktype},
            })
        };
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
        self.lock().put(format!("manifests/{tag}"), index.to_string().into());
    }

    /// Stores a document under a tag.
    pub(crate) fn push_document(&self, tag: &str, document: &Value) {
        self.lock().put(format!("manifests/{tag}"), document.to_string().into());
    }

    /// Moves a tag at every request: each request for it gets the next of these disks.
    pub(crate) fn move_tag(&self, tag: &str, disks: &[&PushedDisk]) {
        let mut state = self.lock();
        let manifest = |disk: &&PushedDisk| {
            state.objects[&format!("manifests/{}", disk.digest)].front().cloned()
        };
        let manifests = disks.iter().filter_map(manifest).collect();
        state.objects.insert(format!("manifests/{tag}"), manifests);
    }

    /// Sets how the registry misbehaves from now on.
    pub(crate) fn misbehave(&self, fault: RegistryFault) {
        self.lock().fault = fault;
    }

    /// The `instance_info` of a node that gets the image with this `:TAG` or `@DIGEST`.
    pub(crate) fn instance_info(&self, version: &str) -> Value {
        json!({
            "image_source": format!("oci://{}/{REPOSITORY}{version}", self.address),
            "image_pull_secret": format!("{USER}:{PASSWORD}"), "image_ca": self.certificate,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, path: String, object: Vec<u8>) {
        self.objects.insert(path, VecDeque::from([object.into()]));
    }

    fn answer(
        &mut self,
        address: SocketAddr,
        uri: &http::Uri,
        login: Option<&str>,
        range: Option<&str>,
    ) -> Response<Full<Bytes>> {
        if uri.path() == "/token" {
            let secret = STANDARD.encode(format!("{USER}:{PASSWORD}"));
            return match login == Some(&*format!("Basic {secret}")) {
                true => web::json(StatusCode::OK, &json!({"token": TOKEN})),
                false => empty(StatusCode::UNAUTHORIZED),
            };
        }
        if login != Some(&*format!("Bearer {TOKEN}")) {
            let mut answer = empty(StatusCode::UNAUTHORIZED);
            let challenge = format!(r#"Bearer realm="https://{address}/token",service="lab""#);
            answer.headers_mut().insert(WWW_AUTHENTICATE, value(&challenge));
            return answer;
        }
        let path = uri.path().strip_prefix(&format!("/v2/{REPOSITORY}/")).unwrap_or_default();
        let is_blob = path.starts_with("blobs/");
        let Some(objects) = self.objects.get_mut(path) else {
            return empty(StatusCode::NOT_FOUND);
        };
        objects.rotate_left(1);
        let mut object = objects.back().cloned().unwrap_or_default().to_vec();
        match self.fault {
            RegistryFault::Down => return empty(StatusCode::SERVICE_UNAVAILABLE),
            RegistryFault::LargeManifest if !is_blob => object.resize(5 << 20, b' '),
            RegistryFault::OtherManifest if !is_blob => object.push(b' '),
            RegistryFault::WrongBlob if is_blob => *object.last_mut().expect("it has bytes") ^= 1,
            RegistryFault::Redirect(to) if is_blob => {
                let mut answer = empty(StatusCode::TEMPORARY_REDIRECT);
                answer.headers_mut().insert(LOCATION, value(to));
                return answer;
            }
            RegistryFault::None
            | RegistryFault::LargeManifest
            | RegistryFault::OtherManifest
            | RegistryFault::WrongBlob
            | RegistryFault::Redirect(_) => {}
        }
        part(object, range)
    }
}

/// The answer with an object, or with one range of it (RFC 9110 §14).
fn part(object: Vec<u8>, range: Option<&str>) -> Response<Full<Bytes>> {
    let length = object.len();
    let bounds = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let bounds = bounds.and_then(|(first, last)| {
        let end = if last.is_empty() { length } else { last.parse::<usize>().ok()? + 1 };
        Some((first.parse().ok()?, end.min(length)))
    });
    let Some((first, end)) = bounds.filter(|(first, end): &(usize, usize)| first < end) else {
        return Response::new(Full::new(object.into()));
    };
    let mut answer = Response::new(Full::new(Bytes::copy_from_slice(&object[first..end])));
    *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
    let range = format!("bytes {first}-{}/{length}", end - 1);
    answer.headers_mut().insert(CONTENT_RANGE, value(&range));
    answer
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("it is a legal value")
}
