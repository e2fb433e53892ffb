//! Resolves the image, flavor and network of a VM request to objects of the cloud.

use cluster_core::{FlavorTooSmall, Ident, Snapshot, VmFlavor, VmImage};
use cluster_store::{StoreError, VmScope};
use openstack::compute::flavors;
use openstack::image::images::{self, Image, ImageStatus};
use openstack::network::networks;
use openstack::{CloudError, Session};

use crate::cloud::flavor_size;
use crate::external_objects::{by_id, own_network};
use crate::settings::OfferedImage;
use crate::tenancy::TenancyError;
use crate::{Conductor, ExternalObjectError, ObjectUser};

/// The cloud objects that a VM request names.
#[derive(Clone, Copy, Debug)]
pub struct VmRequestObjects<'a> {
    pub who: ObjectUser<'a>,
    /// The snapshots that the caller may see. Of these, the snapshots of the caller's project can be booted.
    pub snapshots: &'a VmScope,
    /// The name or id of an offered image, or of a snapshot.
    pub image: &'a str,
    /// The name or id of a flavor.
    pub flavor: &'a str,
    /// The name or id of a network; `None`: the default network.
    pub network: Option<&'a str>,
    /// Whether the VM gets a floating IP.
    pub is_public: bool,
    /// The size of a volume to boot from, in GiB.
    pub root_volume: Option<u32>,
}

/// The cloud objects of a VM request, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedVmObjects {
    pub image: VmImage,
    pub flavor: VmFlavor,
    /// The id of the network.
    pub network: String,
    /// The id of the external network of the floating IP.
    pub public: Option<String>,
    /// The DNS zone of the VM's name.
    pub zone: Option<String>,
}

/// Why a request for a VM fails.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    #[error("image: {given:?} is neither an offered image nor a usable snapshot")]
    NotOffered {
        /// Cut to 64 characters.
        given: String,
    },
    #[error("flavor: the cloud has no {given:?}")]
    NoFlavor {
        /// Cut to 64 characters.
        given: String,
    },
    #[error("flavor: {0}")]
    TooSmall(#[from] FlavorTooSmall),
    #[error(transparent)]
    Network(#[from] ExternalObjectError),
    #[error("network: name a network, because clusterd has no default network configured")]
    NoNetwork,
    #[error("public_address: clusterd has no external network configured for floating IPs")]
    NoExternalNetwork,
    /// clusterd cannot work in the project.
    #[error(transparent)]
    Closed(#[from] TenancyError),
    #[error("the VM has no server")]
    NoServer,
    #[error("clusterd has no cloud configured")]
    NoCloud,
    #[error(transparent)]
    Cloud(#[from] CloudError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl VmError {
    /// Whether the caller has to change the request: a retry of the same request fails again.
    pub fn is_caller_error(&self) -> bool {
        match self {
            VmError::NotOffered { .. }
            | VmError::NoFlavor { .. }
            | VmError::TooSmall(_)
            | VmError::NoNetwork
            | VmError::NoExternalNetwork => true,
            VmError::Network(error) => matches!(error, ExternalObjectError::NotAllowed { .. }),
            VmError::NoServer
            | VmError::NoCloud
            | VmError::Closed(_)
            | VmError::Cloud(_)
            | VmError::Store(_) => false,
        }
    }
}

impl Conductor {
    /// Resolves a VM request, and checks that its parts fit together.
    ///
    /// # Errors
    ///
    /// When a part does not exist, may not be used or is too small, or the cloud does not answer.
    pub async fn resolve_vm(
        &self,
        order: VmRequestObjects<'_>,
    ) -> Result<ResolvedVmObjects, VmError> {
        let settings = &self.context.settings.vms;
        let project = order.who.project;
        let sessions = self.context.session_for(project, None).await?;
        let (session, own) = sessions.ok_or(VmError::NoCloud)?;
        let (session, ours) = (&session, own.identity().await?.project_id);
        let flavor = self.vm_flavor(project, order.flavor).await?;
        let image = self.vm_image((session, ours.as_deref()), &order).await?;
        image.check(&flavor, order.root_volume)?;
        let network = match (order.network, &settings.network) {
            (Some(given), _) => own_network(session, order.who, given).await?,
            (None, Some(ours)) => our_network(session, ours).await?.ok_or(VmError::NoNetwork)?,
            (None, None) => return Err(VmError::NoNetwork),
        };
        let public = match (order.is_public, &settings.external_network) {
            (false, _) => None,
            (true, None) => return Err(VmError::NoExternalNetwork),
            (true, Some(given)) => {
                let all = networks::external(session).await?;
                let named = all.into_iter().find(|it| it.id == *given || it.name == *given);
                Some(named.ok_or(VmError::NoExternalNetwork)?.id)
            }
        };
        Ok(ResolvedVmObjects { image, flavor, network, public, zone: settings.zone.clone() })
    }

    /// Returns the flavor with this name or id.
    ///
    /// # Errors
    ///
    /// When it does not exist, or the cloud does not answer.
    pub async fn vm_flavor(&self, project: &str, given: &str) -> Result<VmFlavor, VmError> {
        let sessions = self.context.session_for(project, None).await?;
        let (session, _) = sessions.ok_or(VmError::NoCloud)?;
        let found = flavors::find(&session, given).await?;
        let missing = || VmError::NoFlavor { given: given.chars().take(64).collect() };
        let flavor = found.ok_or_else(missing)?;
        Ok(VmFlavor { size: flavor_size(&flavor), id: flavor.id, name: flavor.name })
    }

    /// Returns the offered images that exist in the cloud.
    ///
    /// # Errors
    ///
    /// When the cloud does not answer.
    pub async fn offered_images(&self, project: &str) -> Result<Vec<VmImage>, VmError> {
        let sessions = self.context.session_for(project, None).await?;
        // Without a cloud no image can be booted.
        let Some((session, own)) = sessions else { return Ok(Vec::new()) };
        let ours = own.identity().await?.project_id;
        let mut all = Vec::new();
        for offered in &self.context.settings.vms.images {
            all.extend(as_offered((&session, ours.as_deref()), offered).await?);
        }
        Ok(all)
    }

    /// Returns the offered image with this name or id, or a snapshot of the project that the caller may see: a VM that boots it can read
    /// its content.
    async fn vm_image(
        &self,
        place: (&Session, Option<&str>),
        order: &VmRequestObjects<'_>,
    ) -> Result<VmImage, VmError> {
        let given = order.image;
        for offered in &self.context.settings.vms.images {
            let is_named = offered.name == given;
            // Any offered image may have this id.
            if (is_named || uuid::Uuid::parse_str(given).is_ok())
                && let Some(image) = as_offered(place, offered).await?
                && (is_named || image.id == given)
            {
                return Ok(image);
            }
        }
        if let Ok(ident) = given.parse::<Ident>() {
            let found = self.context.store.find_snapshots(&ident, order.snapshots).await?;
            let mut theirs = found.iter().filter(|it| it.project == order.who.project);
            if let Some(image) = theirs.find_map(Snapshot::bootable) {
                return Ok(image);
            }
        }
        Err(VmError::NotOffered { given: given.chars().take(64).collect() })
    }
}

/// Returns the newest image of the name that is public or belongs to clusterd's project. Images that other projects gave the same name are
/// never offered.
async fn as_offered(
    (session, ours): (&Session, Option<&str>),
    offered: &OfferedImage,
) -> Result<Option<VmImage>, CloudError> {
    let named = images::find(session, &offered.name).await?;
    let is_offered = |image: &Image| {
        let own = image.owner.is_some() && image.owner.as_deref() == ours;
        image.status == ImageStatus::Active && (image.visibility == "public" || own)
    };
    Ok(named.into_iter().find(is_offered).map(|image| VmImage {
        min_disk_gib: offered.min_disk_gib.max(image.min_disk),
        min_ram_mib: offered.min_ram_mib.max(image.min_ram),
        id: image.id,
        name: offered.name.clone(),
        user_data_format: offered.user_data_format,
    }))
}

/// Returns the network with this id or name, from the configuration.
async fn our_network(session: &Session, given: &str) -> Result<Option<String>, CloudError> {
    if let Some(found) = by_id(networks::show(session, given).await)? {
        return Ok(Some(found.id));
    }
    Ok(networks::find(session, given).await?.into_iter().next().map(|it| it.id))
}
