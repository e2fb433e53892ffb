//! RAID by the storage controllers of a machine.

use async_trait::async_trait;
use hardware::{ApplyTime, BmcTask, NewVolume, RaidVolume, StorageController};

use crate::BmcError;

/// The volumes of one machine's storage controllers. Controllers, drives and volumes are named by their paths.
#[async_trait]
pub trait RaidVolumes: Send + Sync {
    /// Reads the storage controllers that can have volumes.
    async fn controllers(&self) -> Result<Vec<StorageController>, BmcError>;

    /// Reads the volumes of the storage controller at `storage`.
    async fn volumes(&self, storage: &str) -> Result<Vec<RaidVolume>, BmcError>;

    /// Lists the tasks that the BMC knows; `None` if the BMC has no list of tasks.
    async fn tasks(&self) -> Result<Option<Vec<String>>, BmcError>;

    /// Returns a task that changes volumes of the controller at `storage` and is not in `known`, which [`RaidVolumes::tasks`] listed before.
    async fn change_since(
        &self,
        storage: &str,
        known: &[String],
    ) -> Result<Option<String>, BmcError>;

    /// Requests a new volume and returns the task, or `None` if the BMC has none.
    ///
    /// Not idempotent: a second request can make a second volume.
    async fn create(&self, volume: &NewVolume) -> Result<Option<String>, BmcError>;

    /// Requests the deletion of a volume and returns the task, or `None` if the BMC has none.
    ///
    /// Idempotent: deleting a volume that is not there succeeds.
    async fn delete(&self, volume: &str, applies: ApplyTime) -> Result<Option<String>, BmcError>;

    /// Reads the state of a task.
    async fn task(&self, task: &str) -> Result<BmcTask, BmcError>;
}
