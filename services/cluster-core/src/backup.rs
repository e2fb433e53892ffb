//! The record of a backup of a cluster's etcd.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{BackupUuid, KubernetesVersion, MemberName};

/// How often members may fail to take or to test a backup before it is given up.
const MOST_FAILURES: u32 = 4;
/// Why a member failed that neither reported a result nor sent a snapshot.
pub(crate) const NOT_IN_TIME: &str = "it did not finish in time";

/// A backup of a cluster's etcd, kept in the record of the cluster.
///
/// The record is written before the store gets an object, and removed once the store has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    pub id: BackupUuid,
    pub origin: BackupOrigin,
    pub requested_at: Timestamp,
    pub state: BackupState,
    /// The member that takes or tests the backup now.
    #[serde(default)]
    pub work: Option<BackupWork>,
    /// How often members failed at the step that is due.
    #[serde(default)]
    pub failures: u32,
    /// Why the last member failed.
    #[serde(default)]
    pub last_error: Option<String>,
    /// When the last member failed. Its snapshot may still reach the store for a while.
    #[serde(default)]
    pub failed_at: Option<Timestamp>,
    /// Whether the store may have an object of the backup.
    #[serde(default)]
    pub has_object: bool,
    /// The contents, once the store has all of them.
    #[serde(default)]
    pub contents: Option<BackupContents>,
    /// When a member restored the stored object into an empty folder.
    #[serde(default)]
    pub tested_at: Option<Timestamp>,
}

words::words! {
    /// Why a backup was made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BackupOrigin {
        Requested = "requested",
        Scheduled = "scheduled",
    }
}

words::words! {
    /// How far a backup is, with its name in the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BackupState {
        /// The store does not have all of it yet.
        Wanted = "wanted",
        Stored = "stored",
        /// No member could take it.
        Failed = "failed",
        Deleting = "deleting",
    }
}

/// The work of a member on a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupWork {
    pub member: MemberName,
    pub since: Timestamp,
}

/// The contents of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupContents {
    pub stored_at: Timestamp,
    /// The size of the snapshot in bytes.
    pub size: u64,
    /// The SHA-256 of the snapshot, in hexadecimal.
    pub sha256: String,
    /// etcd's revision at the time of the snapshot.
    pub revision: u64,
    /// The version of etcd.
    pub etcd: String,
    pub kubernetes: KubernetesVersion,
    /// The generation of the certificate authorities that signed at that time.
    pub authorities: u32,
}

words::words! {
    /// A step that a member carries out for a backup, with its name in the API and for members.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BackupStep {
        /// Take a snapshot and send it.
        Save = "save",
        /// Fetch the stored snapshot and restore it into an empty folder.
        Test = "test",
    }
}

impl Backup {
    /// Makes a backup that a member has to take.
    pub fn new(id: BackupUuid, origin: BackupOrigin, now: Timestamp) -> Self {
        Backup {
            id,
            origin,
            requested_at: now,
            state: BackupState::Wanted,
            work: None,
            failures: 0,
            last_error: None,
            failed_at: None,
            has_object: false,
            contents: None,
            tested_at: None,
        }
    }

    /// Returns what a member has to do next; `None`: nothing.
    pub fn step(&self) -> Option<BackupStep> {
        match self.state {
            BackupState::Wanted => Some(BackupStep::Save),
            BackupState::Stored if self.tested_at.is_none() => {
                (self.failures < MOST_FAILURES).then_some(BackupStep::Test)
            }
            BackupState::Stored | BackupState::Failed | BackupState::Deleting => None,
        }
    }

    /// Whether the store has the whole backup.
    pub fn is_stored(&self) -> bool {
        self.state == BackupState::Stored
    }

    /// Whether a member was handed this backup and has not finished.
    pub fn is_worked_on_by(&self, member: &MemberName) -> bool {
        self.work.as_ref().is_some_and(|work| work.member == *member)
    }

    /// Hands the step that is due to a member. From now on the store may have an object. A member that had the step before and did not finish
    /// in time has failed, and with that the backup may be given up.
    pub(crate) fn begin(&mut self, member: &MemberName, now: Timestamp) {
        if self.work.is_some() {
            self.fail(NOT_IN_TIME.to_owned());
        }
        if self.step().is_some() {
            self.work = Some(BackupWork { member: member.clone(), since: now });
            self.has_object = true;
        }
    }

    /// Records that the store has all of the backup.
    pub(crate) fn store(&mut self, contents: BackupContents) {
        (self.state, self.contents) = (BackupState::Stored, Some(contents));
        (self.work, self.failures, self.last_error) = (None, 0, None);
    }

    /// Records that the stored object was restored.
    pub(crate) fn pass(&mut self, now: Timestamp) {
        (self.tested_at, self.work, self.last_error) = (Some(now), None, None);
    }

    /// Records that a member failed at the step. A backup at which members fail again and again is given up.
    pub(crate) fn fail(&mut self, why: String) {
        (self.work, self.last_error) = (None, Some(why));
        self.failures += 1;
        if self.state == BackupState::Wanted && self.failures >= MOST_FAILURES {
            self.state = BackupState::Failed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    fn backup() -> Backup {
        Backup::new(BackupUuid::nil(), BackupOrigin::Requested, at(0))
    }

    #[test]
    fn a_state_and_an_origin_have_the_same_names_in_json_and_in_the_api() {
        for state in BackupState::ALL {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("{:?}", state.as_str()));
        }
        for origin in BackupOrigin::ALL {
            assert_eq!(serde_json::to_string(&origin).unwrap(), format!("{:?}", origin.as_str()));
        }
    }

    #[test]
    fn a_backup_at_which_members_fail_again_and_again_is_given_up() {
        let mut backup = backup();
        for failures in 1..=MOST_FAILURES {
            assert_eq!(backup.step(), Some(BackupStep::Save), "after {} failures", failures - 1);
            backup.fail("no space left".to_owned());
        }
        assert_eq!((backup.state, backup.step()), (BackupState::Failed, None));
        assert_eq!(backup.last_error.as_deref(), Some("no space left"));
    }

    #[test]
    fn a_member_that_does_not_finish_in_time_has_failed() {
        let (mut backup, member) = (backup(), "default-master-0".parse().unwrap());
        backup.begin(&member, at(1));
        assert_eq!((backup.failures, backup.has_object), (0, true));
        backup.begin(&"default-master-1".parse().unwrap(), at(2));
        assert_eq!(backup.failures, 1);
        assert!(!backup.is_worked_on_by(&member));
        for failures in 2..=MOST_FAILURES {
            backup.begin(&member, at(3));
            assert_eq!(backup.failures, failures);
        }
        assert_eq!((backup.state, backup.work), (BackupState::Failed, None));
    }
}
