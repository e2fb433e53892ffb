//! Chooses the blob of a disk in the documents of an OCI registry: the manifest of a disk, or an index of manifests.
//!
//! The documents are those of the OCI image specification 1.1 ("Image Manifest", "Image Index"). The rules are those of Ironic
//! (`OciImageService` in `ironic/common/image_service.py`): the annotation `disktype` tells the format; `raw` and `applehv` come before
//! `qcow2` and `qemu`; entries for another architecture are left out; and the manifest of a disk has exactly one layer.

use agent_protocol::DiskFormat;
use serde::Deserialize;

use crate::oci_reference::OciDigest;

/// The media types that a registry may send, for the header `Accept`. Docker's types are listed so that a container image is recognized.
pub const OCI_MEDIA_TYPES: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// The size limit of a document in bytes. The distribution specification lets a registry refuse larger ones ("Pushing Manifests").
pub const LARGEST_OCI_DOCUMENT: usize = 4 << 20;

/// How many manifests of one index are read until the manifest of a disk is found.
const MAX_CANDIDATES: usize = 16;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER: &str = "application/vnd.docker.";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// The media types of the configuration of a container. A manifest with another configuration is an artifact ("Guidelines for Artifact
/// Usage" in the image specification).
const CONTAINER_CONFIGS: [&str; 2] =
    ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];

/// How the media type of a compressed blob ends.
const COMPRESSIONS: [&str; 3] = ["zstd", "gzip", "xz"];

/// The first bytes of a qcow2 image.
const QCOW2: &[u8] = b"QFI\xfb";

/// Why a document of a registry leads to no disk that can be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OciRefused {
    #[error("neither a manifest nor an index of the OCI image specification")]
    Malformed,
    #[error(
        "a container image, such as bootc installs; the deploy interface direct installs a whole disk, which is an artifact with one layer"
    )]
    Container,
    #[error("an artifact with {count} layers; a disk is a single one")]
    Layers { count: usize },
    #[error("an artifact of disktype {word:?}; raw, applehv, qcow2 and qemu are installed")]
    DiskType {
        /// The annotation, cut to 32 characters.
        word: String,
    },
    #[error(
        "a compressed qcow2 image; store it uncompressed, or store a raw disk, which may be compressed"
    )]
    CompressedQcow2,
    #[error("an artifact whose layer has no sha256 or sha512 digest")]
    Digest,
    #[error("an index without a manifest of a disk{}", of_architecture(.architecture))]
    NoDisk { architecture: Option<String> },
}

fn of_architecture(architecture: &Option<String>) -> String {
    let of = |it: &String| format!(" for {it}, the cpu_arch of the node");
    architecture.as_ref().map(of).unwrap_or_default()
}

/// A document of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciDocument {
    Index(OciIndex),
    Manifest(OciManifest),
}

/// A list of manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciIndex {
    entries: Vec<Descriptor>,
}

/// The list of the blobs of one artifact or container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciManifest {
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Vec<Descriptor>,
    annotations: Option<Annotations>,
}

/// An entry of an index that may be the manifest of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciCandidate {
    pub digest: OciDigest,
    disk_type: Option<DiskType>,
    is_artifact: bool,
}

/// The blob of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciDisk {
    pub digest: OciDigest,
    /// The format that an annotation tells.
    format: Option<DiskFormat>,
    is_compressed: bool,
}

/// The annotation `disktype`, in the order of preference. The agent writes a raw disk while it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DiskType {
    Raw,
    AppleHv,
    Qcow2,
    Qemu,
}

/// Both kinds of documents.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    annotations: Option<Annotations>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    artifact_type: Option<String>,
    platform: Option<Platform>,
    annotations: Option<Annotations>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Platform {
    architecture: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Annotations {
    disktype: Option<String>,
}

impl OciDocument {
    /// Reads a document. A document with the fields of both kinds is refused, because two programs could read two images in it.
    pub fn parse(bytes: &[u8]) -> Result<OciDocument, OciRefused> {
        let document = serde_json::from_slice(bytes).map_err(|_| OciRefused::Malformed)?;
        let Document { media_type, artifact_type, config, layers, manifests, annotations } =
            document;
        let is = |wanted| media_type.as_deref().is_none_or(|named| named == wanted);
        if media_type.as_ref().is_some_and(|named| named.starts_with(DOCKER)) {
            return Err(OciRefused::Container);
        }
        match (manifests, layers) {
            (Some(entries), None) if config.is_none() && is(INDEX) => {
                Ok(OciDocument::Index(OciIndex { entries }))
            }
            (None, Some(layers)) if is(MANIFEST) => Ok(OciDocument::Manifest(OciManifest {
                artifact_type,
                config,
                layers,
                annotations,
            })),
            _ => Err(OciRefused::Malformed),
        }
    }
}

impl OciIndex {
    /// Returns the entries that may be the manifest of a disk for a machine of this architecture, in the order in which they are to be read.
    pub fn candidates(&self, architecture: Option<&str>) -> Result<Vec<OciCandidate>, OciRefused> {
        let mut candidates: Vec<OciCandidate> =
            self.entries.iter().filter_map(|entry| entry.candidate(architecture)).collect();
        if candidates.is_empty() {
            return Err(OciRefused::NoDisk { architecture: architecture.map(str::to_owned) });
        }
        candidates.sort_by_key(|candidate| (candidate.disk_type.is_none(), candidate.disk_type));
        candidates.truncate(MAX_CANDIDATES);
        Ok(candidates)
    }
}

impl OciManifest {
    /// Returns the disk that the manifest describes; `entry` is the entry of the index that led to the manifest.
    pub fn disk(&self, entry: Option<&OciCandidate>) -> Result<OciDisk, OciRefused> {
        let disk_type = match entry.and_then(|entry| entry.disk_type) {
            Some(named) => Some(named),
            None => disk_type(self.annotations.as_ref())?,
        };
        let is_artifact = self.is_artifact() || entry.is_some_and(|entry| entry.is_artifact);
        if disk_type.is_none() && !is_artifact {
            return Err(OciRefused::Container);
        }
        let [layer] = &self.layers[..] else {
            return Err(OciRefused::Layers { count: self.layers.len() });
        };
        let digest = layer.digest.parse().map_err(|_| OciRefused::Digest)?;
        let is_compressed = COMPRESSIONS.iter().any(|it| layer.media_type.ends_with(it));
        let format = disk_type.map(DiskType::format);
        if format == Some(DiskFormat::Qcow2) && is_compressed {
            return Err(OciRefused::CompressedQcow2);
        }
        Ok(OciDisk { digest, format, is_compressed })
    }

    fn is_artifact(&self) -> bool {
        let config = self.config.as_ref().map(|config| &*config.media_type);
        is_named(&self.artifact_type)
            || config.is_some_and(|kind| !kind.is_empty() && !CONTAINER_CONFIGS.contains(&kind))
    }
}

impl OciDisk {
    /// Returns the format of the disk: as an annotation tells, or else as the node asks (`wanted`), or else as the first bytes of the blob
    /// (`start`) tell. The agent refuses a raw disk that is qcow2, and a qcow2 image that refers to other files.
    pub fn format(
        &self,
        wanted: Option<DiskFormat>,
        start: &[u8],
    ) -> Result<DiskFormat, OciRefused> {
        let found = if start.starts_with(QCOW2) { DiskFormat::Qcow2 } else { DiskFormat::Raw };
        let format = self.format.or(wanted).unwrap_or(found);
        match format == DiskFormat::Qcow2 && self.is_compressed {
            true => Err(OciRefused::CompressedQcow2),
            false => Ok(format),
        }
    }
}

impl Descriptor {
    /// Returns the entry of an index as the manifest of a disk, unless it certainly is none for a machine of this architecture.
    fn candidate(&self, architecture: Option<&str>) -> Option<OciCandidate> {
        let is_index = [INDEX, DOCKER_INDEX].contains(&&*self.media_type);
        let of = self.platform.as_ref().and_then(|platform| platform.architecture.as_deref());
        let is_other = match (architecture, of) {
            (Some(wanted), Some(of)) => canonical(wanted) != canonical(of),
            (None, _) | (_, None) => false,
        };
        if is_index || is_other {
            return None;
        }
        Some(OciCandidate {
            digest: self.digest.parse().ok()?,
            disk_type: disk_type(self.annotations.as_ref()).ok()?,
            is_artifact: is_named(&self.artifact_type),
        })
    }
}

impl DiskType {
    const fn format(self) -> DiskFormat {
        match self {
            DiskType::Raw | DiskType::AppleHv => DiskFormat::Raw,
            DiskType::Qcow2 | DiskType::Qemu => DiskFormat::Qcow2,
        }
    }
}

fn disk_type(annotations: Option<&Annotations>) -> Result<Option<DiskType>, OciRefused> {
    match annotations.and_then(|all| all.disktype.as_deref()) {
        None | Some("") => Ok(None),
        Some("raw") => Ok(Some(DiskType::Raw)),
        Some("applehv") => Ok(Some(DiskType::AppleHv)),
        Some("qcow2") => Ok(Some(DiskType::Qcow2)),
        Some("qemu") => Ok(Some(DiskType::Qemu)),
        Some(other) => Err(OciRefused::DiskType { word: other.chars().take(32).collect() }),
    }
}

fn is_named(kind: &Option<String>) -> bool {
    kind.as_ref().is_some_and(|kind| !kind.is_empty())
}

/// Returns one name for the two names of an architecture: Go's, which the image specification wants, and that of the Linux kernel.
fn canonical(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

#[cfg(test)]
mod tests;
