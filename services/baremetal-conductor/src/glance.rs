//! Images in the Glance of the configured cloud. A machine reads its image from the service, which reads it from Glance with its own token.

use agent_protocol::{ChecksumAlgorithm, DiskFormat, ImageInfo};
use baremetal_core::{
    ImageProperties, Node, NodeUuid, RequestRefused, WorkUuid, glance_image, layout_in_glance,
};
use openstack::image::download::{Download, download};
use openstack::image::images::{self, Image, ImageStatus};
use openstack::{CloudError, Session};
use serde_json::Value;
use uuid::Uuid;

use crate::boots::BootError;
use crate::cloud::problem;
use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::{Result, bad_request, chain};
use crate::served_image::{ImageOrigin, ServedImage};

/// Why a node cannot be installed with its image in Glance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlanceError {
    #[error("instance_info.image_source: image {id} was not found in Glance")]
    Missing { id: Uuid },
    #[error("instance_info.image_source: image {id} cannot be installed: {why}")]
    Unusable { id: Uuid, why: String },
    #[error(transparent)]
    Layout(RequestRefused),
    #[error("cannot look up image {id} in Glance: {cause}")]
    Unknown {
        id: Uuid,
        cause: String,
        /// Whether the same request may succeed later.
        transient: bool,
    },
}

/// The properties of an image of Glance that its installation needs.
struct Installable {
    format: DiskFormat,
    algorithm: ChecksumAlgorithm,
    value: String,
}

impl Conductor {
    /// Checks that Glance has the image that `node` is to be installed with, and that it can be written to a disk. A node whose image is not
    /// in Glance passes.
    ///
    /// # Errors
    ///
    /// Fails if the image cannot be installed, or if the cloud does not answer.
    pub async fn check_glance_image(&self, node: &Node) -> Result<(), GlanceError> {
        let Some(id) = glance_image(node).filter(|_| node.uses_agent()) else { return Ok(()) };
        let Some(cloud) = &self.context.settings.cloud else { return Ok(()) };
        let image = show(cloud, id).await?;
        installable(&image).map_err(|why| GlanceError::Unusable { id, why })?;
        layout_in_glance(node, properties(&image)).map(drop).map_err(GlanceError::Layout)
    }

    /// Checks that the image of `node` in Glance is one that `project` may use: its own, a public one, or one that is shared with it.
    ///
    /// # Errors
    ///
    /// As for an image that does not exist.
    pub async fn check_glance_access(&self, node: &Node, project: &str) -> Result<(), GlanceError> {
        let (Some(id), Some(cloud)) = (glance_image(node), &self.context.settings.cloud) else {
            return Ok(());
        };
        let image = show(cloud, id).await?;
        match is_visible(cloud, &image, project).await.map_err(|error| unknown(id, &error))? {
            true => Ok(()),
            false => Err(GlanceError::Missing { id }),
        }
    }

    /// Begins to read an image of Glance for the machine of a node. The capability is that of the boot in which the image is written.
    ///
    /// # Errors
    ///
    /// Fails if the machine may not read the image now, or if Glance does not answer.
    pub async fn glance_image(
        &self,
        id: NodeUuid,
        work: WorkUuid,
        image: Uuid,
        capability: &str,
    ) -> Result<Download, BootError> {
        let context = &self.context;
        let image = image.to_string();
        let wanted = (ImageOrigin::Glance, &*image);
        context.reader_of_image((id, work), wanted, capability).await?;
        let missing = || BootError::NotFound { what: "an image to be written" };
        let cloud = context.settings.cloud.as_ref().ok_or_else(missing)?;
        match download(cloud, &image).await {
            Ok(opened) => opened.ok_or_else(missing),
            Err(error) => Err(BootError::Glance(chain(&error))),
        }
    }
}

async fn show(cloud: &Session, id: Uuid) -> Result<Image, GlanceError> {
    let image = images::show(cloud, &id.to_string()).await;
    image.map_err(|error| unknown(id, &error))?.ok_or(GlanceError::Missing { id })
}

fn unknown(id: Uuid, error: &CloudError) -> GlanceError {
    GlanceError::Unknown { id, cause: chain(error), transient: error.is_transient() }
}

impl TurnContext {
    /// Returns the image of Glance as the agent gets it: at a URL of this service, for the current boot.
    pub(crate) async fn image_of_glance(&self, node: &Node, id: Uuid) -> Result<ImageInfo> {
        let cloud = self.settings.cloud.as_ref();
        let cloud =
            cloud.ok_or_else(|| bad_request("no cloud is configured ([cloud])".to_owned()))?;
        let image = images::show(cloud, &id.to_string()).await.map_err(|error| problem(&error))?;
        let image = image.ok_or_else(|| bad_request(GlanceError::Missing { id }.to_string()))?;
        let unusable = |why| bad_request(GlanceError::Unusable { id, why }.to_string());
        let Installable { format, algorithm, value: checksum } =
            installable(&image).map_err(unusable)?;
        let layout = layout_in_glance(node, properties(&image));
        let layout = layout.map_err(|why| bad_request(why.to_string()))?;
        let (origin, id) = (ImageOrigin::Glance, id.to_string());
        let served = ServedImage { origin, id, format, algorithm, checksum, layout };
        self.served_image(node, served).await
    }
}

/// Returns whether a project may use an image that an administrator sees.
async fn is_visible(cloud: &Session, image: &Image, project: &str) -> Result<bool, CloudError> {
    if matches!(&*image.visibility, "public" | "community") {
        return Ok(true);
    }
    if image.owner.as_deref() == Some(project) {
        return Ok(true);
    }
    if image.visibility != "shared" {
        return Ok(false);
    }
    let members = images::members(cloud, &image.id).await?;
    Ok(members.iter().any(|member| member == project))
}

/// Returns the properties that tell a partition image.
fn properties(image: &Image) -> ImageProperties<'_> {
    let text = |name: &str| image.properties.get(name).and_then(Value::as_str);
    ImageProperties {
        img_type: text("img_type"),
        kernel_id: text("kernel_id"),
        ramdisk_id: text("ramdisk_id"),
    }
}

/// Returns what the installation of an image needs, or why it is not installed. An image without a known checksum never is.
fn installable(image: &Image) -> Result<Installable, String> {
    if image.status != ImageStatus::Active {
        return Err("it is not active".to_owned());
    }
    let format = match image.disk_format.as_deref() {
        Some("raw") => DiskFormat::Raw,
        Some("qcow2") => DiskFormat::Qcow2,
        other => return Err(format!("its disk_format is {}", other.unwrap_or("unknown"))),
    };
    let (algorithm, digits) = match image.os_hash_algo.as_deref() {
        Some("sha256") => (ChecksumAlgorithm::Sha256, 64),
        Some("sha512") => (ChecksumAlgorithm::Sha512, 128),
        other => return Err(format!("its os_hash_algo is {}", other.unwrap_or("unknown"))),
    };
    let value = image.os_hash_value.as_deref().unwrap_or_default().to_ascii_lowercase();
    if value.len() != digits || !value.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("it has no valid os_hash_value".to_owned());
    }
    Ok(Installable { format, algorithm, value })
}

#[cfg(test)]
mod tests;
