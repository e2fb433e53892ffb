//! Images in OCI registries. A machine reads its image from the service, which reads it from the registry with the node's login.
//!
//! A tag may name another image later, so it is resolved once, when the agent gets the command: the command contains the digest of the blob,
//! as part of the URL and as the checksum.

use std::time::Duration;

use agent_protocol::{DiskFormat, ImageInfo};
use baremetal_core::{
    DeployMethod, Node, NodeUuid, OciDigest, OciDisk, OciDocument, OciImage, OciIndex,
    OciReference, OciRefused, OciVersion, PULL_SECRET, Problem, Reason, RequestRefused, WorkUuid,
    layout_in_registry, oci_image,
};
use bytes::Bytes;
use futures::{Stream, TryStreamExt};
use hardware::AllowedHosts;
use reqwest::header::{CONTENT_RANGE, HeaderValue};
use reqwest::{Response, StatusCode};
use secrecy::ExposeSecret;
use tokio::time::timeout;
use tracing::info;

use crate::allowed::check_image;
use crate::boots::BootError;
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::{Result, bad_request};
use crate::registry::{Registry, RegistryError};
use crate::served_image::{ImageOrigin, ServedImage};

/// The time limit for finding the blob of an image.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(60);

/// How many bytes of a blob are read to recognize its format.
const START: usize = 512;

/// Why a node cannot be installed with its image in an OCI registry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instance_info.image_source: {reference}: {cause}")]
pub struct OciImageError {
    /// The image, as the node names it.
    pub reference: String,
    pub cause: String,
    /// Whether the same request may succeed later.
    pub transient: bool,
}

/// A blob of a registry, or a range of it, which arrives as it is read.
#[derive(Debug)]
pub struct OciBlob {
    response: Response,
}

/// The blob that a reference names now.
struct ResolvedDisk {
    digest: OciDigest,
    format: DiskFormat,
}

impl OciBlob {
    /// Returns the number of bytes, if the registry tells it.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Returns the header `Content-Range` of a range; `None` for the whole blob.
    pub fn range(&self) -> Option<HeaderValue> {
        let is_range = self.response.status() == StatusCode::PARTIAL_CONTENT;
        self.response.headers().get(CONTENT_RANGE).filter(|_| is_range).cloned()
    }

    /// Returns the bytes as they arrive. The registry is not read faster than the stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static {
        // The query of the URL may be a credential.
        self.response.bytes_stream().map_err(reqwest::Error::without_url)
    }
}

impl Conductor {
    /// Checks that the registry has the image that `node` is to be installed with, and that it is a disk. A node whose image is not in an
    /// OCI registry passes, and so does a node with a malformed image, which [`Conductor::check_deploy`] refuses.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be installed, or if the registry does not answer.
    pub async fn check_oci_image(&self, node: &Node) -> Result<(), OciImageError> {
        let context = &self.context;
        if node.deploy_method() != DeployMethod::Direct {
            return Ok(());
        }
        let Ok(Some(image)) = context.oci_image(node) else { return Ok(()) };
        find_disk(&context.settings.image_hosts, &image).await.map(drop)
    }

    /// Begins to read a blob of a registry for the machine of a node: the whole blob, or a range if the registry offers ranges. The
    /// capability is that of the boot in which the image is written.
    ///
    /// # Errors
    ///
    /// Fails if the machine may not read the blob now, or if the registry does not send it.
    pub async fn oci_blob(
        &self,
        (node, work): (NodeUuid, WorkUuid),
        digest: &OciDigest,
        capability: &str,
        range: Option<HeaderValue>,
    ) -> Result<OciBlob, BootError> {
        let context = &self.context;
        let blob = digest.to_string();
        let wanted = (ImageOrigin::Registry, &*blob);
        let node = context.reader_of_image((node, work), wanted, capability).await?;
        let image = context.oci_image(&node)?;
        let image = image.ok_or(BootError::NotFound { what: "an image to be written" })?;
        let range = range.filter(is_one_range);
        let opened = async {
            Registry::new(&context.settings.image_hosts, &image)?.blob(digest, range).await
        };
        let opened = timeout(RESOLVE_TIMEOUT, opened).await.unwrap_or_else(|_| Err(slow(&image)));
        match opened {
            Ok(response) => Ok(OciBlob { response }),
            Err(error) => Err(BootError::Registry(error.to_string())),
        }
    }
}

impl TurnContext {
    /// Returns the image in a registry that `node` is to be installed with, with the login that the registry gets.
    pub(crate) fn oci_image(&self, node: &Node) -> Result<Option<OciImage>, RequestRefused> {
        let Some(image) = oci_image(&self.with_instance(node)?)? else { return Ok(None) };
        if !image.wants_operators_secret(&self.settings.pull_secret_registries) {
            return Ok(Some(image));
        }
        let secret = self.store.secrets().text(node, PULL_SECRET);
        let secret = secret.map_err(|why| RequestRefused::Field {
            field: format!("driver_info.{PULL_SECRET}"),
            problem: why.to_string(),
        })?;
        let secret = secret.filter(|secret| !secret.expose_secret().is_empty());
        Ok(Some(match secret {
            Some(secret) => image.with_operators_secret(secret.expose_secret()),
            None => image,
        }))
    }

    /// Returns the image in a registry as the agent gets it: at a URL of this service, for the current boot.
    pub(crate) async fn image_of_registry(
        &self,
        node: &Node,
        image: &OciImage,
    ) -> Result<ImageInfo> {
        let allowed = &self.settings.image_hosts;
        check_image(allowed, &node.instance_info).map_err(|why| bad_request(why.to_string()))?;
        let finding = find_disk(allowed, image);
        let found = self.store.tripwire().around("image: registry", finding).await;
        let ResolvedDisk { digest, format } = found.map_err(|error| Problem {
            reason: Reason::BadRequest,
            cause: error.to_string(),
            transient: error.transient,
        })?;
        info!(node.id = %node.id, "the image {} is the blob {digest} now", image.reference);
        let served = ServedImage {
            origin: ImageOrigin::Registry,
            id: digest.to_string(),
            format,
            algorithm: digest.algorithm(),
            checksum: digest.hex().to_owned(),
            layout: layout_in_registry(node).map_err(|why| bad_request(why.to_string()))?,
        };
        self.served_image(node, served).await
    }
}

/// Finds the blob that an image is now, and its format.
async fn find_disk(
    allowed: &AllowedHosts,
    image: &OciImage,
) -> Result<ResolvedDisk, OciImageError> {
    let found = timeout(RESOLVE_TIMEOUT, resolve(allowed, image)).await;
    found.unwrap_or_else(|_| Err(slow(image))).map_err(|error| OciImageError {
        reference: image.reference.to_string(),
        cause: error.to_string(),
        transient: error.is_transient(),
    })
}

async fn resolve(allowed: &AllowedHosts, image: &OciImage) -> Result<ResolvedDisk, RegistryError> {
    let mut registry = Registry::new(allowed, image)?;
    let disk = match registry.document(&image.reference.version).await? {
        OciDocument::Manifest(manifest) => manifest.disk(None)?,
        OciDocument::Index(index) => choose(&mut registry, &index, image).await?,
    };
    // The blob is opened even if its format is known: an image that cannot be read is refused before the machine is erased.
    let start = registry.start_of(&disk.digest, START).await?;
    let format = disk.format(image.format, &start)?;
    Ok(ResolvedDisk { digest: disk.digest, format })
}

/// Returns the first disk of an index. If there is none, the error tells about the entry that was tried first.
async fn choose(
    registry: &mut Registry<'_>,
    index: &OciIndex,
    image: &OciImage,
) -> Result<OciDisk, RegistryError> {
    let architecture = image.architecture.as_deref();
    let mut first = None;
    for entry in index.candidates(architecture)? {
        let version = OciVersion::Digest(entry.digest.clone());
        let tried = match registry.document(&version).await {
            Ok(OciDocument::Manifest(manifest)) => manifest.disk(Some(&entry)),
            Ok(OciDocument::Index(_)) => Err(OciRefused::Malformed),
            Err(RegistryError::Refused(why)) => Err(why),
            Err(error) => return Err(error),
        };
        match tried {
            Ok(disk) => return Ok(disk),
            Err(why) => {
                first.get_or_insert(RegistryError::EntryRefused { digest: entry.digest, why });
            }
        }
    }
    let none = || OciRefused::NoDisk { architecture: architecture.map(str::to_owned) };
    Err(first.unwrap_or_else(|| none().into()))
}

fn slow(image: &OciImage) -> RegistryError {
    let OciReference { registry, .. } = &image.reference;
    RegistryError::Slow { host: registry.clone() }
}

/// Whether a header `Range` asks for one range with a known beginning (RFC 9110 §14.1.2). Others are answered with the whole blob.
fn is_one_range(range: &HeaderValue) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let text = range.to_str().ok().and_then(|text| text.strip_prefix("bytes="));
    text.and_then(|text| text.split_once('-'))
        .is_some_and(|(first, last)| !first.is_empty() && is_number(first) && is_number(last))
}

#[cfg(test)]
mod tests;
