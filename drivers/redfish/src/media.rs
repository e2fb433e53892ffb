//! The virtual drives (DSP0268 `VirtualMedia`).

use async_trait::async_trait;
use bmc::{BmcError, VirtualDrive, VirtualMedia};
use hardware::MediaKind;
use serde_json::{Value, json};
use url::Url;

use crate::document::Document;
use crate::quirks;
use crate::service::{Resource, Service};

const INSERT: &str = "#VirtualMedia.InsertMedia";
const EJECT: &str = "#VirtualMedia.EjectMedia";
/// The insertion is tried with the image alone, and then again with each parameter that a BMC may report as missing.
const INSERT_TRIES: usize = 4;

#[async_trait]
impl VirtualMedia for Service {
    async fn insert(&self, url: &Url) -> Result<(), BmcError> {
        let mut drive = self.drive().await?;
        if holds(&drive.body, url) {
            return Ok(());
        }
        if is_full(&drive.body) {
            self.empty(&drive).await?;
            drive = self.get(&drive.url).await?;
        }
        match self.action(&drive.body, INSERT) {
            Some(action) => self.insert_by_action(&action, url).await,
            None => {
                // Lenovo's SD530 attaches nothing without `Inserted` (sushy, `fix-insert-media-payload`).
                let image = json!({"Image": url, "Inserted": true, "WriteProtected": true});
                self.patch(&drive, image).await
            }
        }
    }

    async fn eject(&self) -> Result<(), BmcError> {
        let drive = self.drive().await?;
        if is_full(&drive.body) { self.empty(&drive).await } else { Ok(()) }
    }

    async fn eject_all(&self, kind: Option<MediaKind>) -> Result<(), BmcError> {
        let mut found = false;
        for drive in self.drives().await? {
            if kind.is_some_and(|kind| !takes(&drive, kind)) {
                continue;
            }
            found = true;
            if is_full(&drive) {
                let url = self.origin.follow(drive.id().unwrap_or_default())?;
                // The collection may be older than the drive.
                self.empty(&self.get(&url).await?).await?;
            }
        }
        let name = kind.map(|kind| format!("{} ", kind.as_str())).unwrap_or_default();
        let nothing = || BmcError::Unsupported { what: format!("offer a virtual {name}drive") };
        found.then_some(()).ok_or_else(nothing)
    }

    async fn content(&self) -> Result<VirtualDrive, BmcError> {
        let drive = self.drive().await?.body;
        let types = drive.words("MediaTypes").unwrap_or_default();
        let image = drive.word("Image");
        Ok(VirtualDrive {
            media_types: types.into_iter().map(str::to_owned).collect(),
            inserted: is_full(&drive),
            image: (!image.is_empty()).then(|| image.to_owned()),
        })
    }
}

impl Service {
    async fn insert_by_action(&self, action: &Url, url: &Url) -> Result<(), BmcError> {
        let mut body = json!({"Image": url});
        let mut answer = self.post(action, body.clone()).await?;
        for _ in 1..INSERT_TRIES {
            if answer.status.is_success() {
                break;
            }
            match quirks::missing_from_insert(&answer.messages(), &body) {
                Some(fuller) => body = fuller,
                None => break,
            }
            answer = self.post(action, body.clone()).await?;
        }
        let answer = answer.accepted(&self.origin.host())?;
        self.finish(answer).await
    }

    async fn empty(&self, drive: &Resource) -> Result<(), BmcError> {
        let done = match self.action(&drive.body, EJECT) {
            // HPE's iLO answers 415 to an action without a body, even an empty one (sushy, `fix-eject-media-empty-dict`).
            Some(action) => {
                match self.post(&action, json!({})).await?.accepted(&self.origin.host()) {
                    Ok(answer) => self.finish(answer).await,
                    Err(error) => Err(error),
                }
            }
            None => self.patch(drive, json!({"Image": null, "Inserted": false})).await,
        };
        match done {
            // Many BMCs refuse a second ejection, so the state of the drive decides.
            Err(refusal @ BmcError::Refused { .. }) => match self.get(&drive.url).await {
                Ok(drive) if !is_full(&drive.body) => Ok(()),
                Ok(_) | Err(_) => Err(refusal),
            },
            done => done,
        }
    }

    /// Reads the drive's current state.
    async fn drive(&self) -> Result<Resource, BmcError> {
        let known = self.links().drive.clone();
        if let Some(known) = known {
            return self.get(&known).await;
        }
        let url = self.find_drive().await?;
        let nothing = || BmcError::Unsupported { what: "offer a virtual CD drive".to_owned() };
        let drive = self.get(&url.ok_or_else(nothing)?).await?;
        self.links().drive = Some(drive.url.clone());
        Ok(drive)
    }

    /// Reads the drives of the system and of the BMCs that manage it: `VirtualMedia` moved from the manager to the system in Redfish 2020.3.
    async fn drives(&self) -> Result<Vec<Value>, BmcError> {
        let system = self.system().await?.body;
        let mut collections: Vec<Url> = self.link(&system, "VirtualMedia").into_iter().collect();
        for manager in self.managers(&system).await? {
            let manager = self.find(&manager).await?;
            collections.extend(manager.and_then(|m| self.link(&m.body, "VirtualMedia")));
        }
        let mut drives = Vec::new();
        for collection in collections {
            drives.extend(self.members(&collection).await?);
        }
        Ok(drives)
    }

    /// Finds the best CD drive.
    async fn find_drive(&self) -> Result<Option<Url>, BmcError> {
        let mut best: Option<(u8, Url)> = None;
        for drive in self.drives().await? {
            let url = drive.id().and_then(|id| self.origin.follow(id).ok());
            let found = fitness(&drive).zip(url);
            best = match (best, found) {
                (Some(best), Some(found)) if found.0 > best.0 => Some(found),
                (None, found) => found,
                (best, _) => best,
            };
        }
        Ok(best.map(|(_, url)| url))
    }
}

/// Whether a drive takes media of `kind` (`MediaType` of the VirtualMedia schema). The drive of Cisco's blades takes CDs and says DVD (ironic,
/// bug 2039042).
fn takes(drive: &Value, kind: MediaKind) -> bool {
    let words: &[&str] = match kind {
        MediaKind::Cd => &["CD", "DVD"],
        MediaKind::Dvd => &["DVD"],
        MediaKind::Usb => &["USBStick"],
        MediaKind::Floppy => &["Floppy"],
    };
    drive.words("MediaTypes").unwrap_or_default().iter().any(|taken| words.contains(taken))
}

/// Ranks a drive by how well it serves as a CD drive; `None` if the drive cannot serve as one.
fn fitness(drive: &Value) -> Option<u8> {
    let writable = !quirks::openbmc_drive_takes_no_address(drive);
    match drive.words("MediaTypes") {
        Some(types) if types.contains(&"CD") || types.contains(&"DVD") => {
            Some(if writable { 3 } else { 1 })
        }
        Some(types) if !types.is_empty() => None,
        // A drive without a list of media types may still take a CD.
        Some(_) | None => Some(if writable { 2 } else { 0 }),
    }
}

fn holds(drive: &Value, url: &Url) -> bool {
    is_full(drive) && drive.word("Image") == url.as_str()
}

/// Whether the drive holds an image. Some BMCs show this only by the image's name.
fn is_full(drive: &Value) -> bool {
    drive.truth("Inserted").unwrap_or_else(|| !drive.word("Image").is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(drive: Value, want: Option<u8>) {
        assert_eq!(fitness(&drive), want);
    }

    #[test]
    fn a_cd_drive_that_accepts_a_url_is_best() {
        let insert = json!({INSERT: {"target": "/x"}});
        check(json!({"MediaTypes": ["CD", "DVD"], "Actions": insert}), Some(3));
        check(json!({"Actions": insert}), Some(2));
        check(json!({"MediaTypes": ["DVD"]}), Some(1));
        check(json!({"MediaTypes": ["Floppy", "USBStick"], "Actions": insert}), None);
    }

    #[test]
    fn a_drive_is_full_if_inserted_or_if_it_names_an_image() {
        assert!(is_full(&json!({"Inserted": true})));
        assert!(!is_full(&json!({"Inserted": false, "Image": "http://old"})));
        assert!(is_full(&json!({"Image": "http://x/a.iso"})));
        assert!(!is_full(&json!({"Image": null, "Inserted": null})));
    }

    #[test]
    fn only_the_same_image_is_the_same() {
        let url: Url = "http://10.0.0.1/a.iso".parse().unwrap();
        assert!(holds(&json!({"Inserted": true, "Image": "http://10.0.0.1/a.iso"}), &url));
        assert!(!holds(&json!({"Inserted": true, "Image": "http://10.0.0.1/b.iso"}), &url));
        assert!(!holds(&json!({"Inserted": false, "Image": "http://10.0.0.1/a.iso"}), &url));
    }
}
