//! Machines that people ask for.

mod errand;
mod event;
mod lease;
mod phase;
mod plan;
mod request;
mod server;
mod shape;
mod snapshot;
mod takes;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ::lease::{Lease, MailAddress};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Desire, FlavorSize, Key, Name, Owner, Problem, Setback, SnapshotUuid, VmUuid};

pub use errand::{Arrival, Asker, Errand, ErrandKind, Sent};
pub use event::VmEvent;
pub use phase::VmPhase;
pub use plan::vm_plan;
pub use request::{NotSmaller, VmRefusal};
pub use server::{Idle, IdleBy, ServerFacts, ServerIs, ServerSeen};
pub use shape::{VmMachine, vm_machine, vm_shape, vm_tag};
pub use snapshot::{
    Snapshot, SnapshotNext, SnapshotRules, SnapshotSeen, SnapshotState, SnapshotWhy, snapshot_turn,
};
pub use turn::{Look as VmLook, Turned, VmAsk, VmRules, vm_turn};

/// A machine as it was asked for, and what was last concluded of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vm {
    /// Its id.
    pub id: VmUuid,
    /// Counts its changes.
    pub version: i64,
    /// Whose it is.
    pub project: String,
    /// Who of it asked for it.
    pub user: String,
    /// The cloud's project that it is made in, once that was decided.
    pub cloud_project: Option<String>,
    /// Its name, of which there is one in a project.
    pub name: Name,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was changed by somebody who asked for something.
    pub updated_at: Option<Timestamp>,
    /// What it boots.
    pub image: VmImage,
    /// How large it is.
    pub flavor: VmFlavor,
    /// Who may log in: public keys, one a line as in `authorized_keys`.
    pub ssh_keys: Vec<String>,
    /// The size of the volume that it boots from, in GiB; it boots from its flavor's disk where there is none.
    pub root_volume: Option<u32>,
    /// The id of the network that it is on.
    pub network: String,
    /// The id of the network that its floating address is of, if it has one.
    pub public: Option<String>,
    /// The DNS zone that its name is in.
    pub zone: Option<String>,
    /// Where it is put.
    pub availability_zone: Option<String>,
    /// What its owner told it besides.
    pub user_data: Option<UserData>,
    /// Until when it is lent; without end, where there is none.
    pub lease: Option<Lease>,
    /// A mail address that is told of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<MailAddress>,
    /// Whether it is to be.
    pub desire: Desire,
    /// What is to be done to it.
    pub errand: Option<Errand>,
    /// Whether it is off for its lease ended, and is started when that is undone.
    pub off_by_lease: bool,
    /// When it could not be shut off though its lease ended.
    pub ending_failed_at: Option<Timestamp>,
    /// The copy that is kept of it because its lease ended.
    pub copy: Option<SnapshotUuid>,
    /// When its server was there as it should be for the first time.
    pub built_at: Option<Timestamp>,
    /// What was last seen of its server.
    pub server: Option<ServerSeen>,
    /// Its address in its network, once known.
    pub address: Option<IpAddr>,
    /// Its floating address, once known.
    pub public_address: Option<IpAddr>,
    /// What the cloud failed at.
    pub setbacks: BTreeMap<Key, Setback>,
    /// Why things do not go on, where somebody knows.
    pub problem: Option<Problem>,
    /// Whether it seems to be used.
    pub idle: Option<Idle>,
}

/// What a machine boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmImage {
    /// Its id in the cloud.
    pub id: String,
    /// As its owner named it.
    pub name: String,
    /// How the system on it is told who may log in.
    pub told: Told,
    /// The least disk it runs with, in GiB.
    pub min_disk_gib: u64,
    /// The least memory it runs with, in MiB.
    pub min_ram_mib: u64,
}

/// How a system is told who may log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// By cloud-init.
    #[default]
    CloudInit,
    /// By Ignition: Fedora CoreOS.
    Ignition,
}

impl Told {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Told::CloudInit => "cloud-init",
            Told::Ignition => "ignition",
        }
    }
}

/// How large a machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmFlavor {
    /// Its id in the cloud.
    pub id: String,
    /// Its name there.
    pub name: String,
    /// What it gave a machine when it was asked for.
    pub size: FlavorSize,
}

/// What an owner told a machine. The bytes themselves are sealed, and kept only until it is built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserData {
    /// `SALT:SHA-256` of the salt and the bytes, in hex: what tells whether it was the same.
    pub digest: String,
    /// Whether the sealed bytes are still there.
    pub is_kept: bool,
}

impl Vm {
    /// A machine that was just asked for, without anything that may be left out.
    pub fn new(
        id: VmUuid,
        owner: Owner,
        name: Name,
        (image, flavor, network): (VmImage, VmFlavor, String),
        now: Timestamp,
    ) -> Self {
        Vm {
            id,
            version: 1,
            project: owner.project,
            user: owner.user,
            cloud_project: None,
            name,
            created_at: now,
            updated_at: None,
            image,
            flavor,
            ssh_keys: Vec::new(),
            root_volume: None,
            network,
            public: None,
            zone: None,
            availability_zone: None,
            user_data: None,
            lease: None,
            notify: None,
            desire: Desire::Exist,
            errand: None,
            off_by_lease: false,
            ending_failed_at: None,
            copy: None,
            built_at: None,
            server: None,
            address: None,
            public_address: None,
            setbacks: BTreeMap::new(),
            problem: None,
            idle: None,
        }
    }

    /// Its name in DNS, without the dot at the end, where it has one.
    pub fn host(&self) -> Option<String> {
        let zone = self.zone.as_deref()?.trim_end_matches('.');
        Some(format!("{}.{zone}", self.name.label(63)))
    }

    /// The zone of its name as DNS services have it, with the dot at the end.
    pub fn zone_name(&self) -> Option<String> {
        let zone = self.zone.as_deref()?.trim_end_matches('.');
        Some(format!("{zone}."))
    }

    /// The size of the disk that it boots from, in GiB.
    pub fn disk_gib(&self) -> u64 {
        self.root_volume.map_or(self.flavor.size.disk_gib, u64::from)
    }
}
