//! Profiles, which describe how families of BMCs differ: `profiles/*.json` and the documents that they change.

mod tree;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::account::AccountRules;
use crate::setup::ChangeTime;
use crate::template::Item;
use crate::updates::Applies;
pub(crate) use tree::{Delete, Get, Patch, Post, Row};

const GENERIC: &str = include_str!("../profiles/generic.json");

/// The profiles with their names, each as its changes of the generic profile (a merge patch, RFC 7386).
const CHANGES: [(&str, &str); 8] = [
    ("generic", "{}"),
    ("dell-idrac", include_str!("../profiles/dell-idrac.json")),
    ("hpe-ilo", include_str!("../profiles/hpe-ilo.json")),
    ("supermicro", include_str!("../profiles/supermicro.json")),
    ("lenovo-xcc", include_str!("../profiles/lenovo-xcc.json")),
    ("ami-megarac", include_str!("../profiles/ami-megarac.json")),
    ("poor", include_str!("../profiles/poor.json")),
    ("four-sessions", include_str!("../profiles/four-sessions.json")),
];

static PROFILES: LazyLock<BTreeMap<&str, Profile>> = LazyLock::new(|| {
    let read = |changes| Profile::read(changes).expect("a test reads every embedded profile");
    CHANGES.iter().map(|(name, changes)| (*name, read(changes))).collect()
});

/// The behaviour of one family, shared by all machines of the family.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// Whether links end with a slash.
    trailing_slash: bool,
    /// How a PATCH must use `If-Match`.
    pub(crate) if_match: IfMatch,
    pub(crate) sessions: SessionRules,
    pub(crate) accounts: AccountRules,
    pub(crate) reset: ResetRules,
    pub(crate) boot: BootRules,
    pub(crate) bios: BiosRules,
    pub(crate) firmware: FirmwareVersions,
    pub(crate) updates: UpdateRules,
    pub(crate) raid: RaidRules,
    pub(crate) events: EventRules,
    /// The virtual drives. `None` if there are none.
    pub(crate) media: Option<MediaRules>,
    pub(crate) ipmi: IpmiRules,
    #[serde(skip)]
    pub(crate) tree: Vec<Row>,
}

/// DSP0266 §6.5: entity tags against lost updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IfMatch {
    /// The service has no entity tags.
    Ignored,
    /// The service answers 412 to a tag that does not match.
    Honoured,
    /// The service also answers 428 to a request without a tag.
    Required,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionRules {
    pub(crate) slots: usize,
    pub(crate) timeout_seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetRules {
    /// The values of `ResetType`.
    pub(crate) types: Vec<String>,
    pub(crate) answer: ResetAnswer,
    /// The refusal if the machine has the requested state already. Without a refusal, the request succeeds.
    pub(crate) already_so: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResetAnswer {
    /// Status 204.
    NoContent,
    /// Status 200 with a success message.
    Message,
    /// Status 202 with a task and its monitor.
    Task,
}

/// A vendor's own error answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message_id: String,
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BootRules {
    /// The values of `BootSourceOverrideTarget`.
    pub(crate) targets: Vec<String>,
    /// Whether an override may be `Continuous`.
    pub(crate) continuous: bool,
    /// Whether the CD of an override is a drive in the machine, which is empty. An import of the BMC's configuration boots the virtual CD.
    pub(crate) cd_is_physical: bool,
    /// When a change of the boot mode takes effect. `None` if the mode is fixed.
    pub(crate) mode_changes: Option<ChangeTime>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BiosRules {
    /// The attributes that the settings resource shows.
    pub(crate) pending: ShownPending,
    pub(crate) secure_boot_changes: ChangeTime,
}

/// The versions of firmware before any update.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FirmwareVersions {
    pub(crate) bios: String,
    pub(crate) bmc: String,
    pub(crate) nic: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateRules {
    /// For BIOS.
    pub(crate) applies: Applies,
    /// For network adapters.
    pub(crate) adapters_apply: Applies,
}

/// How the storage controller makes and deletes volumes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RaidRules {
    /// The values of `RAIDType`; none if the controller makes no volumes.
    pub(crate) levels: Vec<String>,
    /// The values of `@Redfish.OperationApplyTime`, the default first; none if the service does not take the parameter.
    pub(crate) apply_times: Vec<String>,
    /// Whether a request may name the volume.
    pub(crate) takes_names: bool,
    /// Whether volumes have a `VolumeType` and no `RAIDType`, as before version 1.3.1 of the schema.
    pub(crate) has_volume_types: bool,
    pub(crate) answer: VolumeAnswer,
}

/// The answer to a change of volumes that happens at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VolumeAnswer {
    /// Status 201 with the new volume, or 204.
    Done,
    /// Status 202 with a task.
    Task,
}

/// How the service takes subscriptions to its events.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventRules {
    /// The values of `EventType`.
    pub(crate) types: Vec<String>,
    /// How many subscriptions there may be.
    pub(crate) most: usize,
    pub(crate) answer: SubscriptionAnswer,
}

/// The answer with a new subscription, of status 201.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SubscriptionAnswer {
    /// The subscription and its address.
    Whole,
    /// The subscription alone.
    Document,
    /// The address alone.
    Address,
    /// The address and a success message.
    Message,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShownPending {
    /// All, with their values after the next start.
    All,
    /// The attributes that change at the next start.
    Changed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaRules {
    pub(crate) drives: Vec<MediaDrive>,
    /// The refusal of an image for a drive that holds one. Without a refusal, the new image replaces the old one.
    pub(crate) full: Option<Refusal>,
    /// The refusal to eject from an empty drive. Without a refusal, the request succeeds.
    pub(crate) empty: Option<Refusal>,
}

/// A virtual drive of the BMC.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaDrive {
    pub(crate) id: String,
    /// `MediaType` of the VirtualMedia schema (DSP8010).
    pub(crate) types: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IpmiRules {
    /// The IANA enterprise number of the manufacturer.
    pub(crate) manufacturer_id: u32,
    pub(crate) product_id: u16,
    pub(crate) firmware: (u8, u8),
    pub(crate) cipher_suites: Vec<u8>,
    pub(crate) session_slots: usize,
    /// §6.12.15: 60 seconds, give or take three.
    pub(crate) session_timeout_seconds: u64,
    /// How long boot flags stay valid without a chassis command (table 28-14, parameter 3). 0 means for ever.
    pub(crate) boot_flags_timeout_seconds: u64,
    /// Serial over LAN. `None` if the BMC does not support it.
    pub(crate) serial: Option<SerialRules>,
}

/// How a BMC passes on the serial port (chapter 15).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SerialRules {
    /// The longest payload in each direction, including its header of four bytes.
    pub(crate) payload_bytes: u16,
    /// How often an unacknowledged packet is sent again, and after how many milliseconds (table 26-5, parameter 4).
    pub(crate) retries: u8,
    pub(crate) retry_millis: u16,
}

impl Profile {
    pub(crate) fn find(name: &str) -> Option<&'static Profile> {
        PROFILES.get(name)
    }

    /// All names, for an error message.
    pub(crate) fn names() -> String {
        CHANGES.map(|(name, _)| name).join(", ")
    }

    /// The generic profile with `changes`.
    fn read(changes: &str) -> Result<Profile, serde_json::Error> {
        let mut changes: Item = serde_json::from_str(changes)?;
        // A merge drops the nulls of the changes, which leave out generic resources.
        let resources = changes.remove("resources").unwrap_or_else(|| Item::new().into());
        let mut merged: Value = serde_json::from_str(GENERIC)?;
        json_patch::merge(&mut merged, &changes.into());
        let mut take = |name| merged.as_object_mut().and_then(|merged| merged.remove(name));
        take("about");
        let constants: Item = serde_json::from_value(take("constants").unwrap_or_default())?;
        let mut profile: Profile = serde_json::from_value(merged)?;
        profile.tree = tree::rows(&resources, &constants, profile.trailing_slash)?;
        Ok(profile)
    }
}

impl MediaDrive {
    pub(crate) fn is_cd(&self) -> bool {
        self.types.iter().any(|media_type| media_type == "CD")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_profile_can_be_read() {
        for (name, changes) in CHANGES {
            let read = Profile::read(changes);
            assert!(read.is_ok(), "profiles/{name}.json: {}", read.unwrap_err());
        }
    }

    #[test]
    fn a_link_goes_with_its_resource() {
        let paths = |profile: &str, part: &str| {
            let tree = &Profile::find(profile).unwrap().tree;
            tree.iter().filter(|row| format!("{row:?}").contains(part)).count()
        };
        assert!(paths("generic", "/Sensors") >= 3);
        assert_eq!(paths("hpe-ilo", "/Sensors"), 0);
        assert_eq!(paths("poor", "/Processors"), 0);
    }

    #[test]
    fn every_profile_can_switch_on_and_off_and_boot_the_network() {
        for (name, _) in CHANGES {
            let profile = Profile::find(name).unwrap();
            assert!(profile.reset.types.iter().any(|reset| reset == "On"), "{name}");
            assert!(profile.reset.types.iter().any(|reset| reset == "ForceOff"), "{name}");
            assert!(profile.boot.targets.iter().any(|target| target == "Pxe"), "{name}");
            assert!(profile.ipmi.cipher_suites.contains(&17), "{name}");
        }
    }
}
