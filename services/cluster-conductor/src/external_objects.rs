//! Checks the images, networks and zones that a cluster uses without owning them: its project must own them, or they must be offered to
//! everybody.
//!
//! clusterd may see more of the cloud than the caller, so ownership is always checked as the project would see it. The name is replaced by
//! the id, because a stranger may create a newer image of the same name.

use cluster_core::{Cluster, ClusterParameters, Labels, PodNetwork};
use openstack::compute::keypairs;
use openstack::dns::zones;
use openstack::image::images::{self, Image};
use openstack::network::networks::{self, Network};
use openstack::network::subnets;
use openstack::{CloudError, Session};
use secrecy::SecretString;

use crate::Conductor;
use crate::cloud::operators_zone;
use crate::tenancy::{CloudAccess, TenancyError};

/// The field of a cluster that names a keypair.
const KEYPAIR: &str = "keypair";
/// RSA keys of 16384 bits have less than 3 KiB.
const LONGEST_KEY: usize = 8 << 10;

/// The caller on whose behalf names are checked.
#[derive(Clone, Copy, Debug)]
pub struct ObjectUser<'a> {
    /// The project that the cluster is for.
    pub project: &'a str,
    /// Whether the caller is an administrator, who may use objects of any project.
    pub is_admin: bool,
}

/// Why an object may not be used.
#[derive(Debug, thiserror::Error)]
pub enum ExternalObjectError {
    /// The object does not exist, or the project may not use it. The message does not say which, to reveal nothing about other projects.
    #[error("{setting}: the cloud has no {given:?} that this project may use")]
    NotAllowed {
        /// The setting that names the object.
        setting: &'static str,
        /// The name or id, cut to 64 characters.
        given: String,
    },
    /// The caller has no keypair of this name.
    #[error(
        "keypair: Nova has no keypair {given:?} of your user, and a keypair of another user of the project is not enough: create one \
         with `openstack keypair create`"
    )]
    NoKeypair {
        /// The name, cut to 64 characters.
        given: String,
    },
    #[error("keypair: {given:?} is no SSH key: choose a keypair of the type ssh")]
    NoSshKey {
        /// The name, cut to 64 characters.
        given: String,
    },
    /// Pods with routable addresses would share a network with other projects.
    #[error("labels.pod_network: routes needs a fixed_network that this project owns")]
    SharedNetworkWithRoutes,
    /// The cloud did not answer.
    #[error(
        "{setting}: cannot check in the cloud whether this project may use it; try again later"
    )]
    Unchecked {
        /// The setting that names the object.
        setting: &'static str,
        source: CloudError,
    },
    /// clusterd cannot work in the project.
    #[error(transparent)]
    Closed(TenancyError),
}

impl Conductor {
    /// Returns `wanted` with every name that differs from `before` checked and replaced by an id. Without a cloud `wanted` is returned
    /// unchanged, because nothing can be created.
    ///
    /// # Errors
    ///
    /// An object that the caller may not use, or that cannot be checked now.
    pub async fn borrow(
        &self,
        who: ObjectUser<'_>,
        before: Option<&ClusterParameters>,
        wanted: ClusterParameters,
    ) -> Result<ClusterParameters, ExternalObjectError> {
        let Some(cloud_access) = &self.context.cloud else { return Ok(wanted) };
        let (session, own) = (&eyes(cloud_access, who).await?, cloud_access.own());
        let zone = |it: &ClusterParameters| it.labels.settings().dns_zone.clone();
        let named = zone(&wanted).filter(|it| before.and_then(zone).as_ref() != Some(it));
        if let Some(name) = named {
            own_zone((session, own), who, &name).await?;
        }
        let of = |field: fn(&ClusterParameters) -> Option<&str>| before.and_then(field);
        if let Some(given) = changed(&wanted.flavor, of(|it| it.flavor.as_deref())) {
            self.check_flavor(session, "flavor_id", given).await?;
        }
        if let Some(given) = changed(&wanted.master_flavor, of(|it| it.master_flavor.as_deref())) {
            self.check_flavor(session, "master_flavor_id", given).await?;
        }
        let mut wanted = wanted;
        if of(|it| Some(it.image.as_str())) != Some(wanted.image.as_str()) {
            let found = own_image(session, who, &wanted.image).await;
            let id = check_found("image_id", &wanted.image, found)?;
            let given = std::mem::replace(&mut wanted.image, id.clone());
            wanted.note_name(&given, &id);
        }
        borrow_networks(session, who, before, &mut wanted).await?;
        let networks = [&wanted.external_network, &wanted.fixed_network, &wanted.fixed_subnet];
        let used: Vec<String> = networks.into_iter().flatten().cloned().collect();
        let image = wanted.image.clone();
        wanted.names.retain(|id, _| *id == image || used.contains(id));
        Ok(wanted)
    }

    /// Refuses a flavor that the project of the session may not use.
    async fn check_flavor(
        &self,
        session: &Session,
        setting: &'static str,
        given: &str,
    ) -> Result<(), ExternalObjectError> {
        let found = self.context.flavors.has(session, given).await;
        check_found(setting, given, found.map(|has| has.then_some(())))
    }

    /// Returns the public key of the caller's keypair; `None` without a cloud. Nova keeps keypairs by user, so the keypair is looked up with
    /// the caller's token.
    ///
    /// # Errors
    ///
    /// A keypair that the caller does not have, that is no SSH key, or that cannot be looked up now.
    pub async fn callers_key(
        &self,
        project: &str,
        token: &SecretString,
        name: &str,
    ) -> Result<Option<String>, ExternalObjectError> {
        let Some(cloud_access) = &self.context.cloud else { return Ok(None) };
        let session = cloud_access.session_as_seen_by(project).await.map_err(closed)?;
        let found = by_id(keypairs::find_of_user(&session, token, name).await);
        let found =
            found.map_err(|source| ExternalObjectError::Unchecked { setting: KEYPAIR, source })?;
        let given = || name.chars().take(64).collect::<String>();
        let found = found.ok_or_else(|| ExternalObjectError::NoKeypair { given: given() })?;
        let key = found.public_key.trim();
        match is_ssh_key(key) {
            true => Ok(Some(key.to_owned())),
            false => Err(ExternalObjectError::NoSshKey { given: given() }),
        }
    }

    /// Returns the id of an image that the caller may use for servers of this cluster.
    ///
    /// # Errors
    ///
    /// As [`Conductor::borrow`].
    pub async fn borrow_image(
        &self,
        who: ObjectUser<'_>,
        cluster: &Cluster,
        given: &str,
    ) -> Result<String, ExternalObjectError> {
        let sessions = self.context.sessions(cluster, false).await.map_err(closed)?;
        let Some((session, _)) = sessions else { return Ok(given.to_owned()) };
        check_found("image_id", given, own_image(&session, who, given).await)
    }

    /// Refuses a flavor that servers of this cluster cannot have.
    ///
    /// # Errors
    ///
    /// As [`Conductor::borrow`].
    pub async fn check_flavor_of(
        &self,
        cluster: &Cluster,
        given: &str,
    ) -> Result<(), ExternalObjectError> {
        let sessions = self.context.sessions(cluster, false).await.map_err(closed)?;
        let Some((session, _)) = sessions else { return Ok(()) };
        self.check_flavor(&session, "flavor_id", given).await
    }
}

/// Replaces the names of networks and subnets that differ from `before` by ids.
async fn borrow_networks(
    session: &Session,
    who: ObjectUser<'_>,
    before: Option<&ClusterParameters>,
    wanted: &mut ClusterParameters,
) -> Result<(), ExternalObjectError> {
    let of = |field: fn(&ClusterParameters) -> Option<&str>| before.and_then(field);
    if let Some(given) = changed(&wanted.fixed_network, of(|it| it.fixed_network.as_deref())) {
        let (given, id) = (given.to_owned(), own_network(session, who, given).await?);
        wanted.note_name(&given, &id);
        wanted.fixed_network = Some(id);
    }
    let routes = |it: &Labels| it.settings().pod_network == PodNetwork::Routes;
    let routed = before.filter(|it| routes(&it.labels)).and_then(|it| it.fixed_network.as_deref());
    if routes(&wanted.labels)
        && let Some(id) = changed(&wanted.fixed_network, routed)
    {
        own_for_pods(session, who, id).await?;
    }
    if let Some(given) = changed(&wanted.fixed_subnet, of(|it| it.fixed_subnet.as_deref())) {
        let (given, id) = (given.to_owned(), own_subnet(session, who, given).await?);
        wanted.note_name(&given, &id);
        wanted.fixed_subnet = Some(id);
    }
    if let Some(given) = changed(&wanted.external_network, of(|it| it.external_network.as_deref()))
    {
        let (given, id) = (given.to_owned(), external_network(session, given).await?);
        wanted.note_name(&given, &id);
        wanted.external_network = Some(id);
    }
    Ok(())
}

/// Whether a public key is one line as `sshd` reads it, and no X.509 certificate, which Nova also keeps as keypairs.
fn is_ssh_key(key: &str) -> bool {
    let kinds = ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"];
    let is_known = kinds.iter().any(|kind| key.starts_with(kind));
    is_known && key.len() <= LONGEST_KEY && !key.chars().any(char::is_control)
}

/// Returns a session that sees the cloud as the caller's project does.
async fn eyes(
    cloud_access: &CloudAccess,
    who: ObjectUser<'_>,
) -> Result<Session, ExternalObjectError> {
    cloud_access.session_as_seen_by(who.project).await.map_err(closed)
}

fn closed(why: TenancyError) -> ExternalObjectError {
    match why {
        TenancyError::KeystoneFailed(source) => {
            ExternalObjectError::Unchecked { setting: "project", source }
        }
        closed @ (TenancyError::Roleless { .. }
        | TenancyError::Bound { .. }
        | TenancyError::Nowhere) => ExternalObjectError::Closed(closed),
    }
}

/// Returns the new value when it differs from the old one.
fn changed<'a>(now: &'a Option<String>, before: Option<&str>) -> Option<&'a str> {
    now.as_deref().filter(|now| before != Some(*now))
}

fn check_found<T>(
    setting: &'static str,
    given: &str,
    found: Result<Option<T>, CloudError>,
) -> Result<T, ExternalObjectError> {
    let found = found.map_err(|source| ExternalObjectError::Unchecked { setting, source })?;
    let missing =
        || ExternalObjectError::NotAllowed { setting, given: given.chars().take(64).collect() };
    found.ok_or_else(missing)
}

/// Returns the object that a request by id found. A name such as `debian/12` cannot be part of a URL path, so the driver refuses the
/// request: nothing was found by id.
pub(crate) fn by_id<T>(found: Result<Option<T>, CloudError>) -> Result<Option<T>, CloudError> {
    match found {
        Err(CloudError::InvalidId { .. }) => Ok(None),
        found => found,
    }
}

/// Returns an image that the project owns, else a public one, else one that is shared with the project.
async fn own_image(
    session: &Session,
    who: ObjectUser<'_>,
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
        // Community images are accepted only by id, because anybody can publish one under any name.
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
    who: ObjectUser<'_>,
    given: &str,
) -> Result<String, ExternalObjectError> {
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
    check_found(SETTING, given, found)
}

fn may_use(who: ObjectUser<'_>, network: &Network, given: &str) -> bool {
    let own = network.project_id.as_deref() == Some(who.project);
    own || network.is_shared || (who.is_admin && network.id == given)
}

/// Ports of a cluster with routes may send from any address of the pods' range. On a shared network they could take over addresses of other
/// projects.
async fn own_for_pods(
    session: &Session,
    who: ObjectUser<'_>,
    id: &str,
) -> Result<(), ExternalObjectError> {
    let found = by_id(networks::show(session, id).await);
    let away = |source| ExternalObjectError::Unchecked { setting: "fixed_network", source };
    let is_own = |network: Network| network.project_id.as_deref() == Some(who.project);
    let own = found.map_err(away)?.is_some_and(is_own);
    if own || who.is_admin { Ok(()) } else { Err(ExternalObjectError::SharedNetworkWithRoutes) }
}

/// A subnet may be used when the project owns it, or may use its network.
async fn own_subnet(
    session: &Session,
    who: ObjectUser<'_>,
    given: &str,
) -> Result<String, ExternalObjectError> {
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
    check_found("fixed_subnet", given, look.await)
}

/// Any project may take floating IPs from an external network.
async fn external_network(session: &Session, given: &str) -> Result<String, ExternalObjectError> {
    let found = networks::external(session).await.map(|all| {
        let named = all.into_iter().find(|it| it.id == given || it.name == given);
        named.map(|it| it.id)
    });
    check_found("external_network_id", given, found)
}

/// A zone may be used when the project owns it, or when it belongs to clusterd's own project, where an operator offers it to all.
async fn own_zone(
    (session, own): (&Session, &Session),
    who: ObjectUser<'_>,
    name: &str,
) -> Result<(), ExternalObjectError> {
    let look = async {
        let theirs = zones::find(session, name)
            .await?
            .filter(|zone| who.is_admin || zone.project_id.as_deref() == Some(who.project));
        match theirs {
            Some(_) => Ok(Some(())),
            None => Ok(operators_zone(own, name).await?.map(drop)),
        }
    };
    check_found("labels.dns_zone", name, look.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_line_of_an_ssh_key_is_taken() {
        for key in
            ["ssh-ed25519 AAAA me", "ecdsa-sha2-nistp256 AAAA", "sk-ssh-ed25519@openssh.com AAAA"]
        {
            assert!(is_ssh_key(key), "{key}");
        }
        let long = format!("ssh-rsa {}", "A".repeat(LONGEST_KEY));
        let certificate = "-----BEGIN CERTIFICATE-----";
        for key in ["", certificate, "ssh-rsa AAAA\nssh-rsa BBBB", "command=\"x\" ssh-rsa A", &long]
        {
            assert!(!is_ssh_key(key), "{key}");
        }
    }
}
