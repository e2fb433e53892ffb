//! What somebody asks for, as the cloud has it: images that are offered, flavors, networks.

use cluster_core::{Ident, Snapshot};
use cluster_core::{NotSmaller, Told, VmFlavor, VmImage};
use cluster_store::{StoreError, VmScope};
use openstack::compute::flavors;
use openstack::image::images::{self, Image, ImageStatus};
use openstack::network::networks;
use openstack::{CloudError, Session};

use crate::borrow::{by_id, own_network};
use crate::cloud::flavor_size;
use crate::tenancy::TenancyError;
use crate::{BorrowError, Borrower, Conductor};

/// An image that machines may boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedImage {
    /// Its name in the cloud: a public image, or one of clusterd's own project.
    pub name: String,
    /// How the system on it is told who may log in.
    pub told: Told,
    /// The least disk it runs with, in GiB, whatever the image says.
    pub min_disk_gib: u64,
    /// The least memory it runs with, in MiB, whatever the image says.
    pub min_ram_mib: u64,
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug)]
pub struct VmOrder<'a> {
    /// For whom.
    pub who: Borrower<'a>,
    /// The snapshots that they may see; of those, the project's can be booted.
    pub snapshots: &'a VmScope,
    /// An image that is offered, by its name or id, or a snapshot.
    pub image: &'a str,
    /// A flavor, by its name or id.
    pub flavor: &'a str,
    /// A network, by its name or id; the one of all, where there is none.
    pub network: Option<&'a str>,
    /// Whether it gets a floating address.
    pub is_public: bool,
    /// The size of a volume to boot from, in GiB.
    pub root_volume: Option<u32>,
}

/// What was asked for, as the cloud has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmFound {
    /// What it boots.
    pub image: VmImage,
    /// How large it is.
    pub flavor: VmFlavor,
    /// The id of its network.
    pub network: String,
    /// The id of the network that its floating address is of.
    pub public: Option<String>,
    /// The zone of its name.
    pub zone: Option<String>,
}

/// Why somebody does not get what they ask for.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    /// No such image is offered.
    #[error(
        "image: no {given:?} is offered, and there is no snapshot of that name that can be used"
    )]
    NotOffered {
        /// What was given.
        given: String,
    },
    /// There is no such flavor.
    #[error("flavor: the cloud has no {given:?}")]
    NoFlavor {
        /// What was given.
        given: String,
    },
    /// The image wants more.
    #[error("flavor: {0}")]
    TooSmall(#[from] NotSmaller),
    /// The network is not theirs.
    #[error(transparent)]
    Network(#[from] BorrowError),
    /// Nobody said which network.
    #[error("network: one has to be named, for this clusterd has none for all")]
    NoNetwork,
    /// There are no floating addresses.
    #[error("public_address: this clusterd has no network to take floating addresses of")]
    NoWayOut,
    /// There is no way into their project of the cloud.
    #[error(transparent)]
    Closed(#[from] TenancyError),
    /// It has no server.
    #[error("it has no server")]
    NoServer,
    /// There is no cloud.
    #[error("this clusterd was given no cloud")]
    NoCloud,
    /// The cloud does not do as asked.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl VmError {
    /// Whether who asked has to ask otherwise.
    pub fn is_asked_wrong(&self) -> bool {
        match self {
            VmError::NotOffered { .. }
            | VmError::NoFlavor { .. }
            | VmError::TooSmall(_)
            | VmError::NoNetwork
            | VmError::NoWayOut => true,
            VmError::Network(error) => matches!(error, BorrowError::NotTheirs { .. }),
            VmError::NoServer
            | VmError::NoCloud
            | VmError::Closed(_)
            | VmError::Cloud(_)
            | VmError::Store(_) => false,
        }
    }
}

impl Conductor {
    /// What somebody asked for, as the cloud has it, if they may have it and it goes together.
    ///
    /// # Errors
    ///
    /// What does not suit, or that nobody can tell now.
    pub async fn order_vm(&self, order: VmOrder<'_>) -> Result<VmFound, VmError> {
        let settings = &self.world.settings.vms;
        let project = order.who.project;
        let sessions = self.world.session_for(project, None).await?;
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
            (true, None) => return Err(VmError::NoWayOut),
            (true, Some(given)) => {
                let all = networks::external(session).await?;
                let named = all.into_iter().find(|it| it.id == *given || it.name == *given);
                Some(named.ok_or(VmError::NoWayOut)?.id)
            }
        };
        Ok(VmFound { image, flavor, network, public, zone: settings.zone.clone() })
    }

    /// The flavor of this name or id.
    ///
    /// # Errors
    ///
    /// When there is none, or the cloud cannot be asked.
    pub async fn vm_flavor(&self, project: &str, given: &str) -> Result<VmFlavor, VmError> {
        let sessions = self.world.session_for(project, None).await?;
        let (session, _) = sessions.ok_or(VmError::NoCloud)?;
        let found = flavors::find(&session, given).await?;
        let missing = || VmError::NoFlavor { given: given.chars().take(64).collect() };
        let flavor = found.ok_or_else(missing)?;
        Ok(VmFlavor { size: flavor_size(&flavor), id: flavor.id, name: flavor.name })
    }

    /// The images that are offered to a project, as the cloud has them. What it does not have is not among them.
    ///
    /// # Errors
    ///
    /// When the cloud cannot be asked.
    pub async fn offered_images(&self, project: &str) -> Result<Vec<VmImage>, VmError> {
        let sessions = self.world.session_for(project, None).await?;
        // Without a cloud there is nothing to boot, and nobody to ask.
        let Some((session, own)) = sessions else { return Ok(Vec::new()) };
        let ours = own.identity().await?.project_id;
        let mut all = Vec::new();
        for offered in &self.world.settings.vms.images {
            all.extend(as_offered((&session, ours.as_deref()), offered).await?);
        }
        Ok(all)
    }

    /// What is offered by that name or id, or a snapshot of the project's that who asks may see: whoever boots it reads it.
    async fn vm_image(
        &self,
        place: (&Session, Option<&str>),
        order: &VmOrder<'_>,
    ) -> Result<VmImage, VmError> {
        let given = order.image;
        for offered in &self.world.settings.vms.images {
            let is_named = offered.name == given;
            // By its id it may be any of them.
            if (is_named || uuid::Uuid::parse_str(given).is_ok())
                && let Some(image) = as_offered(place, offered).await?
                && (is_named || image.id == given)
            {
                return Ok(image);
            }
        }
        if let Ok(ident) = given.parse::<Ident>() {
            let found = self.world.store.find_snapshots(&ident, order.snapshots).await?;
            let mut theirs = found.iter().filter(|it| it.project == order.who.project);
            if let Some(image) = theirs.find_map(Snapshot::bootable) {
                return Ok(image);
            }
        }
        Err(VmError::NotOffered { given: given.chars().take(64).collect() })
    }
}

/// The newest image of that name that is everybody's or ours: what others call by the same name is not what is offered.
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
        told: offered.told,
    }))
}

/// The network of this id or name that an administrator configured.
async fn our_network(session: &Session, given: &str) -> Result<Option<String>, CloudError> {
    if let Some(found) = by_id(networks::show(session, given).await)? {
        return Ok(Some(found.id));
    }
    Ok(networks::find(session, given).await?.into_iter().next().map(|it| it.id))
}
