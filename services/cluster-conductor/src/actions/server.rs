//! Creates servers, and the application credential of a cluster.

use std::collections::BTreeMap;

use cluster_core::{
    BootSource, CloudObject, CloudObjectDetails, CloudObjectState, Key, MemberName, ObjectOwner,
    ResourceSpec, ServerVolume, boot_source, data_volumes,
};
use openstack::compute::servers::{self, Boot, ConfigDrive, NewDisk, NewServer};
use openstack::identity::application_credentials::{self, NewApplicationCredential};

use super::action_context::ActionContext;
use crate::cloud::{CloudWorkError, Result, found, id_of};
use crate::vm_user_data;

/// The roles that a cluster's credential gets, of those that clusterd's user has: enough to attach volumes and to create load balancers.
const ROLES: [&str; 3] = ["member", "_member_", "load-balancer_member"];

/// Creates a server. Everything it depends on is in the observation, as are the addresses in its user-data.
pub(crate) async fn create(
    action_context: &ActionContext<'_>,
    (key, name, thing): (&Key, &str, &ResourceSpec),
) -> Result<CloudObject> {
    let (
        Key::Server(machine),
        ResourceSpec::Server { image, flavor, keypair, availability_zone, disks },
    ) = (key, thing)
    else {
        return Err(CloudWorkError::DependencyMissing(key.clone()));
    };
    let (site, seen) = (action_context.site, &action_context.seen);
    let flavor = flavor
        .as_deref()
        .ok_or_else(|| CloudWorkError::NoSuch { setting: "flavor_id", given: String::new() })?;
    let (image, flavor) = tokio::try_join!(site.image(image), site.flavor(flavor))?;
    let parts = owner_parts(action_context, machine).await?;
    let new = NewServer {
        name: name.to_owned(),
        tags: vec![action_context.of.tag()],
        flavor_id: flavor.id.clone(),
        boot: boot(boot_source(disks, seen), image),
        disks: data_volumes(disks).map(new_disk).collect(),
        ports: vec![id_of(&Key::Port(machine.clone()), seen)?.to_owned()],
        user_data: parts.user_data,
        config_drive: ConfigDrive::Always,
        key_name: keypair.clone(),
        availability_zone: availability_zone.clone(),
        server_group: parts.server_group,
        hints: BTreeMap::new(),
        metadata: BTreeMap::new(),
    };
    let id = servers::create(site.session, &new).await?;
    Ok(CloudObject {
        id,
        state: CloudObjectState::Working,
        address: None,
        facts: CloudObjectDetails::None,
    })
}

/// The parts of a server that depend on its owner.
struct OwnerParts {
    user_data: Option<Vec<u8>>,
    /// The id of the server group.
    server_group: Option<String>,
}

/// Returns the user-data of a server, and its server group: only members of clusters have one.
async fn owner_parts(
    action_context: &ActionContext<'_>,
    machine: &MemberName,
) -> Result<OwnerParts> {
    let (configs, seen) = (action_context.member_configs, &action_context.seen);
    match action_context.of {
        ObjectOwner::Cluster(spec) => {
            let user_data = configs.user_data(spec, machine, seen).await?;
            let group = id_of(&Key::ServerGroup(machine.group.clone()), seen)?;
            Ok(OwnerParts {
                user_data: Some(user_data.text().as_bytes().to_vec()),
                server_group: Some(group.to_owned()),
            })
        }
        ObjectOwner::Vm(vm) => {
            let user_data = vm_user_data::user_data(&configs.secrets, vm).await?;
            Ok(OwnerParts { user_data, server_group: None })
        }
    }
}

/// Returns Nova's words for the boot source; `image` is the id of the server's image.
fn boot(source: BootSource<'_>, image: String) -> Boot {
    match source {
        BootSource::RootVolume(root) => Boot::ExistingVolume { volume_id: root.id.clone() },
        BootSource::NewVolume(disk) => {
            Boot::Volume { image_id: image, size: disk.size.into(), kind: disk.kind.clone() }
        }
        BootSource::FlavorDisk => Boot::Image { id: image },
    }
}

fn new_disk(volume: &ServerVolume) -> NewDisk {
    NewDisk {
        size: volume.size.into(),
        kind: volume.kind.clone(),
        tag: Some(volume.purpose.to_owned()),
    }
}

/// Creates the cluster's application credential. Its secret is stored before the request, so that a lost answer does not lose the secret.
pub(crate) async fn credential(
    action_context: &ActionContext<'_>,
    key: &Key,
    name: &str,
) -> Result<CloudObject> {
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
