//! What a cluster is to use that is in the cloud already: only what its project has, or everybody.
//!
//! clusterd may see more of the cloud than who asks it for a cluster. So what a project names is looked at in that project, where its
//! clusters are made there, and always as the project would see it; and it is kept by its id: of two images with one name the other may
//! be a stranger's, and newer.

use cluster_core::{Blueprint, Cluster, Labels, PodNetwork};
use openstack::compute::keypairs;
use openstack::dns::zones;
use openstack::image::images::{self, Image};
use openstack::network::networks::{self, Network};
use openstack::network::subnets;
use openstack::{CloudError, Session};

use crate::Conductor;
use crate::cloud::operators_zone;
use crate::tenancy::{Premises, TenancyError};

/// Who names what a cluster is to use.
#[derive(Clone, Copy, Debug)]
pub struct Borrower<'a> {
    /// The project that it is for.
    pub project: &'a str,
    /// Whether an administrator of the cloud names it, who may name what is of anybody.
    pub is_admin: bool,
}

/// Why something is not used.
#[derive(Debug, thiserror::Error)]
pub enum BorrowError {
    /// It is not there, or not for this project; which, is not told.
    #[error("{setting}: the cloud has no {given:?} that this project may use")]
    NotTheirs {
        /// Where it was named.
        setting: &'static str,
        /// By what.
        given: String,
    },
    /// Pods' own addresses would be on somebody else's network.
    #[error("labels.pod_network: with routes, fixed_network has to be a network of this project")]
    BarePods,
    /// The cloud does not say whose it is.
    #[error("{setting}: the cloud cannot be asked now whose it is; try again in a while")]
    Away {
        /// Where it was named.
        setting: &'static str,
        /// Why not.
        source: CloudError,
    },
    /// Nothing can be looked at in the project.
    #[error(transparent)]
    Closed(TenancyError),
}

impl Conductor {
    /// `wanted`, with the ids of what it names otherwise than `before`. Without a cloud nothing can be made of it, and it stays as
    /// it is.
    ///
    /// # Errors
    ///
    /// What the borrower may not use, or nobody can tell of.
    pub async fn borrow(
        &self,
        who: Borrower<'_>,
        before: Option<&Blueprint>,
        wanted: Blueprint,
    ) -> Result<Blueprint, BorrowError> {
        let Some(premises) = &self.world.cloud else { return Ok(wanted) };
        let (session, own) = (&eyes(premises, who).await?, premises.own());
        let of = |field: fn(&Blueprint) -> Option<&str>| before.and_then(field);
        let zone = |it: &Blueprint| it.labels.settings().dns_zone.clone();
        let named = zone(&wanted).filter(|it| before.and_then(zone).as_ref() != Some(it));
        if let Some(name) = named {
            own_zone((session, own), who, &name).await?;
        }
        let image = match of(|it| Some(it.image.as_str())) == Some(wanted.image.as_str()) {
            true => wanted.image,
            false => told("image_id", &wanted.image, own_image(session, who, &wanted.image).await)?,
        };
        let (mut network, mut subnet) = (wanted.fixed_network, wanted.fixed_subnet);
        let mut external = wanted.external_network;
        if let Some(given) = changed(&network, of(|it| it.fixed_network.as_deref())) {
            network = Some(own_network(session, who, given).await?);
        }
        let routes = |it: &Labels| it.settings().pod_network == PodNetwork::Routes;
        let routed = before.filter(|it| routes(&it.labels));
        if routes(&wanted.labels)
            && let Some(id) = changed(&network, routed.and_then(|it| it.fixed_network.as_deref()))
        {
            own_for_pods(session, who, id).await?;
        }
        if let Some(given) = changed(&subnet, of(|it| it.fixed_subnet.as_deref())) {
            subnet = Some(own_subnet(session, who, given).await?);
        }
        if let Some(given) = changed(&external, of(|it| it.external_network.as_deref())) {
            external = Some(external_network(session, given).await?);
        }
        if let Some(given) = changed(&wanted.keypair, of(|it| it.keypair.as_deref())) {
            // Machines are made as clusterd's own user: its keypairs, which Nova keeps by user, are those that an operator offers to all.
            let found = by_id(keypairs::find(session, given).await);
            told("keypair", given, found.map(|found| found.map(drop)))?;
        }
        Ok(Blueprint {
            image,
            fixed_network: network,
            fixed_subnet: subnet,
            external_network: external,
            ..wanted
        })
    }

    /// The id of an image that the borrower may use for machines of this cluster.
    ///
    /// # Errors
    ///
    /// As [`Conductor::borrow`].
    pub async fn borrow_image(
        &self,
        who: Borrower<'_>,
        cluster: &Cluster,
        given: &str,
    ) -> Result<String, BorrowError> {
        let sessions = self.world.sessions(cluster, false).await.map_err(closed)?;
        let Some((session, _)) = sessions else { return Ok(given.to_owned()) };
        told("image_id", given, own_image(&session, who, given).await)
    }
}

/// The cloud as the borrower sees it.
async fn eyes(premises: &Premises, who: Borrower<'_>) -> Result<Session, BorrowError> {
    premises.eyes(who.project).await.map_err(closed)
}

fn closed(why: TenancyError) -> BorrowError {
    match why {
        TenancyError::Away(source) => BorrowError::Away { setting: "project", source },
        closed @ (TenancyError::Roleless { .. }
        | TenancyError::Bound { .. }
        | TenancyError::Nowhere) => BorrowError::Closed(closed),
    }
}

/// What is named, where that is not what it was before.
fn changed<'a>(now: &'a Option<String>, before: Option<&str>) -> Option<&'a str> {
    now.as_deref().filter(|now| before != Some(*now))
}

fn told<T>(
    setting: &'static str,
    given: &str,
    found: Result<Option<T>, CloudError>,
) -> Result<T, BorrowError> {
    let found = found.map_err(|source| BorrowError::Away { setting, source })?;
    let missing = || BorrowError::NotTheirs { setting, given: given.chars().take(64).collect() };
    found.ok_or_else(missing)
}

/// What was found under an id. A name such as `debian/12` cannot be an id: nothing is found under it, and nothing was asked.
pub(crate) fn by_id<T>(found: Result<Option<T>, CloudError>) -> Result<Option<T>, CloudError> {
    match found {
        Err(CloudError::InvalidId { .. }) => Ok(None),
        found => found,
    }
}

/// Their own first, then what is for everybody, then what others share with them.
async fn own_image(
    session: &Session,
    who: Borrower<'_>,
    given: &str,
) -> Result<Option<String>, CloudError> {
    let named = match by_id(images::show(session, given).await)? {
        Some(image) => vec![image],
        None => images::find(session, given).await?,
    };
    let is_own = |image: &&Image| image.owner.as_deref() == Some(who.project);
    let is_for_all = |image: &&Image| image.visibility == "public";
    if let Some(image) = named.iter().find(is_own).or_else(|| named.iter().find(is_for_all)) {
        return Ok(Some(image.id.clone()));
    }
    for image in &named {
        // What a community offers is used by its id: anybody may give it any name.
        let offered = image.visibility == "community" && image.id == given;
        let shared = image.visibility == "shared"
            && images::members(session, &image.id).await?.iter().any(|it| it == who.project);
        if offered || shared || (who.is_admin && image.id == given) {
            return Ok(Some(image.id.clone()));
        }
    }
    Ok(None)
}

pub(crate) async fn own_network(
    session: &Session,
    who: Borrower<'_>,
    given: &str,
) -> Result<String, BorrowError> {
    const SETTING: &str = "fixed_network";
    let named = match by_id(networks::show(session, given).await) {
        Ok(Some(network)) => Ok(vec![network]),
        Ok(None) => networks::find(session, given).await,
        Err(why) => Err(why),
    };
    let found = named.map(|named| {
        let theirs = named.into_iter().find(|network| may_use(who, network, given));
        theirs.map(|network| network.id)
    });
    told(SETTING, given, found)
}

fn may_use(who: Borrower<'_>, network: &Network, given: &str) -> bool {
    let own = network.project_id.as_deref() == Some(who.project);
    own || network.is_shared || (who.is_admin && network.id == given)
}

/// Machines that let out packets of pods as they are could take any of their addresses: on a network that is shared, those of others.
async fn own_for_pods(session: &Session, who: Borrower<'_>, id: &str) -> Result<(), BorrowError> {
    let found = by_id(networks::show(session, id).await);
    let away = |source| BorrowError::Away { setting: "fixed_network", source };
    let is_own = |network: Network| network.project_id.as_deref() == Some(who.project);
    let own = found.map_err(away)?.is_some_and(is_own);
    if own || who.is_admin { Ok(()) } else { Err(BorrowError::BarePods) }
}

/// A subnet is theirs, or of a network that they may use.
async fn own_subnet(
    session: &Session,
    who: Borrower<'_>,
    given: &str,
) -> Result<String, BorrowError> {
    let look = async {
        let named = match by_id(subnets::show(session, given).await)? {
            Some(subnet) => vec![subnet],
            None => subnets::find(session, given).await?,
        };
        for subnet in named {
            if subnet.project_id.as_deref() == Some(who.project) {
                return Ok(Some(subnet.id));
            }
            let network = networks::show(session, &subnet.network_id).await?;
            if network
                .is_some_and(|it| may_use(who, &it, "") || (who.is_admin && subnet.id == given))
            {
                return Ok(Some(subnet.id));
            }
        }
        Ok(None)
    };
    told("fixed_subnet", given, look.await)
}

/// External networks are there for all to get addresses from.
async fn external_network(session: &Session, given: &str) -> Result<String, BorrowError> {
    let found = networks::external(session).await.map(|all| {
        let named = all.into_iter().find(|it| it.id == given || it.name == given);
        named.map(|it| it.id)
    });
    told("external_network_id", given, found)
}

/// A zone is theirs, or clusterd's own, in which an operator offers names to all.
async fn own_zone(
    (session, own): (&Session, &Session),
    who: Borrower<'_>,
    name: &str,
) -> Result<(), BorrowError> {
    let look = async {
        let theirs = zones::find(session, name)
            .await?
            .filter(|zone| who.is_admin || zone.project_id.as_deref() == Some(who.project));
        match theirs {
            Some(_) => Ok(Some(())),
            None => Ok(operators_zone(own, name).await?.map(drop)),
        }
    };
    told("labels.dns_zone", name, look.await)
}
