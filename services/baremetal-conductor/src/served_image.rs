//! Images that the service reads elsewhere, with its own login, and passes on to a machine. The machine gets a URL of this service with a
//! capability for one image and one boot, which is good only while the image is being written.

use agent_protocol::{ChecksumAlgorithm, DiskFormat, DiskLayout, ImageInfo};
use baremetal_core::{AgentCommand, Node, NodeIdent, NodeUuid, Task, Work, WorkUuid};
use hardware::AllowedHosts;
use url::Url;

use crate::agent_command::image_type;
use crate::boots::BootError;
use crate::context::TurnContext;
use crate::problem::{Result, bad_request};
use crate::secrets::Purpose;

/// The service that has an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageOrigin {
    Glance,
    Registry,
}

impl ImageOrigin {
    const fn purpose(self) -> Purpose {
        match self {
            ImageOrigin::Glance => Purpose::GlanceImage,
            ImageOrigin::Registry => Purpose::OciBlob,
        }
    }

    /// The first part of the path at which the provisioning listener serves the images.
    const fn path(self) -> &'static str {
        match self {
            ImageOrigin::Glance => "glance",
            ImageOrigin::Registry => "oci",
        }
    }
}

/// An image that the service can read.
pub(crate) struct ServedImage {
    pub(crate) origin: ImageOrigin,
    /// The id or digest of the image at its origin.
    pub(crate) id: String,
    pub(crate) format: DiskFormat,
    pub(crate) algorithm: ChecksumAlgorithm,
    pub(crate) checksum: String,
    /// The partitions to make, if the image is one of a partition.
    pub(crate) layout: Option<DiskLayout>,
}

/// Returns the only host that an agent may fetch an image from: this service, wherever it is.
pub(crate) fn only_host_of(url: &Url) -> AllowedHosts {
    let own = url.host_str().and_then(|host| {
        host.trim_start_matches('[').trim_end_matches(']').to_owned().try_into().ok()
    });
    AllowedHosts::new(own.map(|own| vec![own]))
}

impl TurnContext {
    /// Returns the image as the agent of `node` gets it: at a URL of this service, for the current boot.
    pub(crate) async fn served_image(&self, node: &Node, image: ServedImage) -> Result<ImageInfo> {
        let ServedImage { origin, id, format, algorithm, checksum, layout } = image;
        let Some(boot) = self.boot_of_work(node).await? else {
            return Err(bad_request("the agent has not reported".to_owned()).into());
        };
        let (node_id, work) = (boot.node.to_string(), boot.work.to_string());
        let capability = self.key.derive(origin.purpose(), &[&node_id, &work, &id, &boot.nonce]);
        let path = format!("{}/{node_id}/{work}/{id}/{capability}", origin.path());
        let url = self.provisioning(&path).ok_or_else(|| {
            bad_request("the image needs a provisioning address; set [provisioning] in the service's configuration".to_owned())
        })?;
        Ok(ImageInfo {
            id,
            image_hosts: only_host_of(&url),
            urls: vec![url.to_string()],
            disk_format: format,
            os_hash_algo: algorithm,
            os_hash_value: checksum,
            node_uuid: node.id.to_string(),
            image_type: image_type(layout.as_ref()),
            layout,
            stream_raw_images: true,
            image_ca: None,
        })
    }

    /// Returns the node whose machine shows `capability` and is to write the image now.
    ///
    /// # Errors
    ///
    /// Fails if the machine may not read the image now.
    pub(crate) async fn reader_of_image(
        &self,
        (id, work): (NodeUuid, WorkUuid),
        (origin, image): (ImageOrigin, &str),
        capability: &str,
    ) -> Result<Node, BootError> {
        let missing = || BootError::NotFound { what: "an image to be written" };
        let boot = self.store.find_boot(id).await?.filter(|boot| boot.work == work);
        let boot = boot.ok_or_else(missing)?;
        let parts = [&*id.to_string(), &*work.to_string(), image, &*boot.nonce];
        if !self.key.verify(origin.purpose(), &parts, capability) {
            return Err(BootError::Forbidden);
        }
        let node = self.store.find_node(&NodeIdent::Id(id)).await?;
        let writes = |at_hand: &Work| {
            at_hand.id == work && at_hand.task() == Some(&Task::Agent(AgentCommand::WriteImage))
        };
        node.filter(|node| node.work.as_ref().is_some_and(writes)).ok_or_else(missing)
    }
}
