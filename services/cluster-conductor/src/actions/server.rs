//! Creates servers, and the application credential of a cluster.

use std::collections::BTreeMap;

use cluster_core::{
    CloudObject, CloudObjectDetails, CloudObjectState, Key, ObjectOwner, ResourceSpec,
};
use openstack::compute::servers::{self, Boot, ConfigDrive, NewDisk, NewServer};
use openstack::identity::application_credentials::{self, NewApplicationCredential};

use super::action_context::ActionContext;
use crate::cloud::{CloudWorkError, found, id_of};
use crate::vm_user_data;

/// The roles that a cluster's credential gets, of those that clusterd's user has: enough to attach volumes and to create load balancers.
const ROLES: [&str; 3] = ["member", "_member_", "load-balancer_member"];

/// Creates a server. Everything it depends on is in the observation, as are the addresses in its user-data.
pub(crate) async fn create(
    action_context: &ActionContext<'_>,
    (key, name, thing): (&Key, &str, &ResourceSpec),
) -> Result<CloudObject, CloudWorkError> {
    let lacks = || CloudWorkError::DependencyMissing(key.clone());
    let (
        Key::Server(machine),
        ResourceSpec::Server { image, flavor, keypair, availability_zone, disks },
    ) = (key, thing)
    else {
        return Err(lacks());
    };
    let flavor = flavor
        .as_deref()
        .ok_or_else(|| CloudWorkError::NoSuch { setting: "flavor_id", given: String::new() })?;
    let (image, flavor) =
        tokio::try_join!(action_context.site.image(image), action_context.site.flavor(flavor))?;
    let root = action_context.seen.objects.get(&Key::RootVolume);
    let boot = disks.iter().find(|disk| disk.purpose == "boot");
    let boot = match (boot, root) {
        (_, Some(root)) => Boot::ExistingVolume { volume_id: root.id.clone() },
        (None, None) => Boot::Image { id: image },
        (Some(disk), None) => {
            Boot::Volume { image_id: image, size: disk.size.into(), kind: disk.kind.clone() }
        }
    };
    let others = disks.iter().filter(|disk| disk.purpose != "boot");
    let (user_data, server_group) = match action_context.of {
        ObjectOwner::Cluster(spec) => {
            let seen = &action_context.seen;
            let user_data = action_context.member_configs.user_data(spec, machine, seen).await?;
            let group = Key::ServerGroup(machine.group.clone());
            let group = id_of(&group, seen)?.to_owned();
            (Some(user_data.text().as_bytes().to_vec()), Some(group))
        }
        ObjectOwner::Vm(vm) => {
            (vm_user_data::user_data(&action_context.member_configs.secrets, vm).await?, None)
        }
    };
    let new = NewServer {
        name: name.to_owned(),
        tags: vec![action_context.of.tag()],
        flavor_id: flavor.id.clone(),
        boot,
        disks: others
            .map(|disk| NewDisk {
                size: disk.size.into(),
                kind: disk.kind.clone(),
                tag: Some(disk.purpose.to_owned()),
            })
            .collect(),
        ports: vec![id_of(&Key::Port(machine.clone()), &action_context.seen)?.to_owned()],
        user_data,
        config_drive: ConfigDrive::Always,
        key_name: keypair.clone(),
        availability_zone: availability_zone.clone(),
        server_group,
        hints: BTreeMap::new(),
        metadata: BTreeMap::new(),
    };
    let id = servers::create(action_context.site.session, &new).await?;
    Ok(CloudObject {
        id,
        state: CloudObjectState::Working,
        address: None,
        facts: CloudObjectDetails::None,
    })
}

/// Creates the cluster's application credential. Its secret is stored before the request, so that a lost answer does not lose the secret.
pub(crate) async fn credential(
    action_context: &ActionContext<'_>,
    key: &Key,
    name: &str,
) -> Result<CloudObject, CloudWorkError> {
    let (Key::Credential(generation), ObjectOwner::Cluster(spec)) = (key, action_context.of) else {
        return Err(CloudWorkError::DependencyMissing(key.clone()));
    };
    let session = action_context.site.session;
    let secret =
        action_context.member_configs.secrets.credential(spec.cluster, *generation).await?;
    let identity = session.identity().await?;
    let roles: Vec<String> =
        identity.roles.into_iter().filter(|role| ROLES.contains(&role.as_str())).collect();
    // Keystone gives all roles of the user when the request names none.
    if roles.is_empty() {
        return Err(CloudWorkError::Roleless { roles: ROLES.join(", ") });
    }
    let new = NewApplicationCredential {
        name: name.to_owned(),
        description: action_context.of.tag(),
        secret,
        roles,
        access_rules: Vec::new(),
        expires_at: None,
    };
    match application_credentials::create(session, &new).await {
        Ok(made) => Ok(found::credential(&made)),
        Err(error) if error.is_conflict() => {
            // An earlier request, whose answer was lost, created the credential with the stored secret.
            let found = application_credentials::find(session, name).await?;
            found.map(|it| found::credential(&it)).ok_or_else(|| error.into())
        }
        Err(error) => Err(error.into()),
    }
}
