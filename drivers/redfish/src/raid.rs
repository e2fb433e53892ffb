//! Volumes of storage controllers (DSP0268 `Storage`, `StorageController`, `Drive`, `Volume`), made and deleted at once or at the next start
//! of the machine (DSP0266 §7.11, `@Redfish.OperationApplyTime`).

use async_trait::async_trait;
use bmc::{BmcError, RaidVolumes, Result};
use hardware::{
    ApplyTime, BmcTask, DriveMedia, NewVolume, RaidDrive, RaidLevel, RaidVolume, StorageController,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use url::Url;

use crate::answer::Answer;
use crate::document::Document;
use crate::inspection::is_present;
use crate::quirks;
use crate::service::{Resource, Service};

const APPLY_TIME: &str = "@Redfish.OperationApplyTime";
const APPLY_TIMES: &str = "@Redfish.OperationApplyTimeSupport";
/// The most storage subsystems, and the most drives of one.
const MOST_PARTS: usize = 256;
/// The most pages of volumes that are read.
const MOST_PAGES: usize = 64;
/// The most forms of one request: without the name, and with `VolumeType`.
const MOST_FORMS: usize = 3;

#[async_trait]
impl RaidVolumes for Service {
    async fn controllers(&self) -> Result<Vec<StorageController>> {
        let system = self.system().await?.body;
        let nothing = || cannot("make RAID volumes: it shows no storage");
        let all = self.link(&system, "Storage").ok_or_else(nothing)?;
        let listed = self.list(&all, MOST_PARTS).await?.ok_or_else(nothing)?;
        let mut controllers = Vec::new();
        for entry in listed {
            let Some(path) = self.path(&entry) else { continue };
            let Some(storage) = self.whole(entry).await? else { continue };
            if is_present(&storage) && storage.link("Volumes").is_some() {
                controllers.push(self.controller(path, &storage).await?);
            }
        }
        Ok(controllers)
    }

    async fn volumes(&self, storage: &str) -> Result<Vec<RaidVolume>> {
        let (_, volumes) = self.volume_collection(storage).await?;
        self.listed_volumes(volumes).await
    }

    async fn tasks(&self) -> Result<Option<Vec<String>>> {
        self.listed_tasks().await
    }

    async fn change_since(&self, storage: &str, known: &[String]) -> Result<Option<String>> {
        let (volumes, _) = self.volume_collection(storage).await?;
        let is_change = |task: &Value| {
            let Some(target) = task.at("Payload").at("TargetUri").as_str() else { return true };
            let target = self.origin.follow(target);
            target.is_ok_and(|url| url.path().starts_with(volumes.path().trim_end_matches('/')))
        };
        self.task_since(known, is_change).await
    }

    async fn create(&self, volume: &NewVolume) -> Result<Option<String>> {
        let (url, _) = self.volume_collection(&volume.storage).await?;
        let drives: Vec<Value> =
            volume.drives.iter().map(|drive| json!({"@odata.id": drive})).collect();
        let mut body = json!({
            "RAIDType": raid_type(volume.level), "Links": {"Drives": drives}, "Name": volume.name,
        });
        if let Some(bytes) = volume.size_bytes {
            body["CapacityBytes"] = json!(bytes);
        }
        if let Some(time) = apply_time(volume.applies) {
            body[APPLY_TIME] = json!(time);
        }
        let mut answer = self.post(&url, body.clone()).await?;
        for _ in 1..MOST_FORMS {
            let older = quirks::older_services_know_fewer_properties_of_volumes(
                &answer.messages(),
                &body,
                volume.name_is_optional,
            );
            let Some(older) = older.filter(|_| answer.status.is_client_error()) else { break };
            body = older;
            answer = self.post(&url, body.clone()).await?;
        }
        self.change_of(answer)
    }

    async fn delete(&self, volume: &str, applies: ApplyTime) -> Result<Option<String>> {
        let body = apply_time(applies).map(|time| json!({APPLY_TIME: time}));
        let answer = self.delete_resource(&self.origin.follow(volume)?, body).await?;
        if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return Ok(None);
        }
        self.change_of(answer)
    }

    async fn task(&self, task: &str) -> Result<BmcTask> {
        self.task_state(task).await
    }
}

impl Service {
    /// Returns the path of the resource that `entry` is or refers to.
    fn path(&self, entry: &Value) -> Option<String> {
        self.origin.follow(entry.id()?).ok().map(|url| url.path().to_owned())
    }

    async fn controller(&self, path: String, storage: &Value) -> Result<StorageController> {
        let mut drives = Vec::new();
        for entry in storage.items("Drives").iter().take(MOST_PARTS) {
            let Some(path) = self.path(entry) else { continue };
            let Some(drive) = self.whole(entry.clone()).await? else { continue };
            drives.extend(read_drive(path, &drive));
        }
        let (_, volumes) = self.volume_collection(&path).await?;
        let times = volumes.body.at(APPLY_TIMES).words("SupportedValues").unwrap_or_default();
        let applies = match times {
            times if times.contains(&"Immediate") => ApplyTime::Immediate,
            times if times.contains(&"OnReset") => ApplyTime::OnReset,
            _ => ApplyTime::Untold,
        };
        Ok(StorageController {
            id: storage.text("Id").unwrap_or_else(|| path.clone()),
            levels: self.levels(storage).await?,
            applies,
            drives,
            volumes: self.listed_volumes(volumes).await?,
            path,
        })
    }

    /// Reads the levels of the first controller of a storage subsystem, which newer services describe in a resource of its own.
    async fn levels(&self, storage: &Value) -> Result<Option<Vec<RaidLevel>>> {
        let mut first = storage.items("StorageControllers").first().cloned();
        if first.is_none()
            && let Some(controllers) = self.link(storage, "Controllers")
        {
            first = self.members(&controllers).await?.into_iter().next();
        }
        let words = first.as_ref().and_then(|first| first.words("SupportedRAIDTypes"));
        let known = |words: Vec<&str>| words.into_iter().filter_map(level).collect();
        Ok(words.map(known))
    }

    /// Reads the collection of volumes of the storage subsystem at `storage`.
    async fn volume_collection(&self, storage: &str) -> Result<(Url, Resource)> {
        let storage = self.get(&self.origin.follow(storage)?).await?.body;
        let nothing = || cannot("make RAID volumes: its storage controller lists none");
        let url = self.link(&storage, "Volumes").ok_or_else(nothing)?;
        let volumes = self.get(&url).await?;
        Ok((url, volumes))
    }

    /// Reads the volumes of a collection. Unlike for an inventory, a volume that cannot be read is an error, because a volume that is not
    /// listed counts as deleted.
    async fn listed_volumes(&self, mut page: Resource) -> Result<Vec<RaidVolume>> {
        let mut volumes = Vec::new();
        for _ in 0..MOST_PAGES {
            for entry in page.body.items("Members") {
                let Some(path) = self.path(entry) else { continue };
                let url = self.origin.follow(&path)?;
                let answer = self.fetch(&url).await?;
                if answer.status != StatusCode::NOT_FOUND {
                    volumes.push(self.read_volume(path, &self.resource(&url, answer)?.body));
                }
            }
            let next = page.body.at("Members@odata.nextLink").as_str();
            let Some(next) = next.and_then(|link| self.origin.follow(link).ok()) else { break };
            page = self.get(&next).await?;
        }
        Ok(volumes)
    }

    fn read_volume(&self, path: String, volume: &Value) -> RaidVolume {
        let drives: Vec<String> =
            volume.at("Links").items("Drives").iter().filter_map(|it| self.path(it)).collect();
        let (is_raid, level) = kind(volume, drives.len());
        RaidVolume {
            id: volume.text("Id").unwrap_or_else(|| path.clone()),
            name: volume.text("Name"),
            is_raid,
            level,
            size_bytes: volume.count("CapacityBytes"),
            drives,
            path,
        }
    }

    /// Returns the task of a change that the BMC accepted; `None` if the BMC has made the change, or tells no task.
    fn change_of(&self, answer: Answer) -> Result<Option<String>> {
        let answer = answer.accepted(&self.origin.host())?;
        let is_pending = answer.status == StatusCode::ACCEPTED;
        Ok(is_pending.then(|| self.task_of(&answer)).flatten())
    }
}

/// Reads a drive; `None` without a size.
fn read_drive(path: String, drive: &Value) -> Option<RaidDrive> {
    let size_bytes = drive.count("CapacityBytes").filter(|bytes| *bytes > 0)?;
    let is_spare = !matches!(drive.word("HotspareType"), "" | "None");
    let is_failing = drive.truth("FailurePredicted") == Some(true)
        || drive.at("Status").word("Health") == "Critical";
    let protocol = drive.word("Protocol").to_ascii_lowercase();
    Some(RaidDrive {
        id: drive.text("Id").unwrap_or_else(|| path.clone()),
        size_bytes,
        media: match drive.word("MediaType") {
            "HDD" | "SMR" => Some(DriveMedia::Hdd),
            "SSD" => Some(DriveMedia::Ssd),
            _ => None,
        },
        protocol: (!protocol.is_empty()).then_some(protocol),
        is_usable: is_present(drive) && !is_spare && !is_failing,
        path,
    })
}

/// Tells whether a volume is a RAID, and of which level. Services before Volume v1.3.1 have `VolumeType` alone, with which a single drive is
/// `NonRedundant` too.
fn kind(volume: &Value, drives: usize) -> (bool, Option<RaidLevel>) {
    match (volume.word("RAIDType"), volume.word("VolumeType")) {
        ("" | "None", "Mirrored") => (true, Some(RaidLevel::Raid1)),
        ("" | "None", "StripedWithParity") => (true, Some(RaidLevel::Raid5)),
        ("" | "None", "SpannedMirrors") => (true, Some(RaidLevel::Raid10)),
        ("" | "None", "SpannedStripesWithParity") => (true, Some(RaidLevel::Raid50)),
        ("" | "None", "NonRedundant") if drives > 1 => (true, Some(RaidLevel::Raid0)),
        ("" | "None", _) => (false, None),
        (told, _) => (true, level(told)),
    }
}

fn level(raid_type: &str) -> Option<RaidLevel> {
    RaidLevel::ALL.into_iter().find(|level| self::raid_type(*level) == raid_type)
}

/// Returns the `RAIDType` of a level (DSP0268 `Volume`).
fn raid_type(level: RaidLevel) -> &'static str {
    match level {
        RaidLevel::Raid0 => "RAID0",
        RaidLevel::Raid1 => "RAID1",
        RaidLevel::Raid5 => "RAID5",
        RaidLevel::Raid6 => "RAID6",
        RaidLevel::Raid10 => "RAID10",
        RaidLevel::Raid50 => "RAID50",
        RaidLevel::Raid60 => "RAID60",
    }
}

fn apply_time(applies: ApplyTime) -> Option<&'static str> {
    match applies {
        ApplyTime::Untold => None,
        ApplyTime::Immediate => Some("Immediate"),
        ApplyTime::OnReset => Some("OnReset"),
    }
}

fn cannot(what: &str) -> BmcError {
    BmcError::Unsupported { what: what.to_owned() }
}
