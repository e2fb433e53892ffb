//! Keeps a cloud in a file, so that it continues after a restart.
//!
//! A call that changes something is answered only after the change is in the file. Changes in the clusters' own APIs, by guests and by the
//! clock follow within [`LOOK_EVERY`]. Tokens, the log of calls and faults are not kept: clients authenticate again, as after a change of
//! Keystone's keys. The file survives the end of the program but not a crash of the host: nothing is synced to disk.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_blocking;
use tracing::error;

use crate::containers::Objects;
use crate::guest::{Guest, Progress};
use crate::keystone;
use crate::locks::lock;
use crate::object::{Kind, Object};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::world::{BackgroundTask, Event, Records, World};

/// How often the keeper checks whether something has changed.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The contents of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredCloud {
    pub(crate) records: Records,
    objects: Vec<(Kind, Object)>,
    quotas: Vec<((String, String), i64)>,
    /// Image data in base64, by the id of the image.
    image_bytes: HashMap<String, String>,
    /// Objects of Swift in base64: the project, the container, and the objects by name.
    #[serde(default)]
    containers: Vec<(String, String, BTreeMap<String, String>)>,
    /// Pending events, each with the milliseconds until it is due.
    to_come: Vec<(u64, Event)>,
    pub(crate) progress: BTreeMap<String, Progress>,
    pub(crate) guest: Value,
}

impl StoredCloud {
    /// Reads the file. `None` if the file does not exist.
    pub(crate) fn read(path: &Path) -> io::Result<Option<StoredCloud>> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        Ok(Some(serde_json::from_slice(&text)?))
    }

    fn of(shared: &Shared, guest: &dyn Guest) -> StoredCloud {
        // The guests are read first, so that their state never refers to objects that the file lacks.
        let guest = guest.kept();
        let progress = lock(&shared.progress).clone();
        let encode = |(id, bytes): (&String, &bytes::Bytes)| (id.clone(), STANDARD.encode(bytes));
        shared.with(|world| StoredCloud {
            records: world.records.clone(),
            objects: world.store.every().map(|(kind, one)| (kind, one.clone())).collect(),
            quotas: world.quotas.clone().into_iter().collect(),
            image_bytes: world.image_bytes.iter().map(encode).collect(),
            containers: world.containers.iter().map(encode_container).collect(),
            to_come: world.to_come(),
            progress,
            guest,
        })
    }

    /// Restores the world. Running servers keep running, and pending events happen.
    pub(crate) fn world(self, settings: Settings, queue: UnboundedSender<BackgroundTask>) -> World {
        let mut world = World::empty(settings, self.records, queue);
        for (kind, object) in self.objects {
            world.store.insert(kind, object);
        }
        world.quotas = self.quotas.into_iter().collect();
        let bytes = self.image_bytes.into_iter();
        let decoded = |text: String| STANDARD.decode(text).unwrap_or_default();
        world.image_bytes = bytes.map(|(image, text)| (image, decoded(text).into())).collect();
        for (project, container, objects) in self.containers {
            let objects = objects.into_iter().map(|(name, text)| (name, decoded(text).into()));
            world.containers.insert((project, container), objects.collect());
        }
        for (left, event) in self.to_come {
            world.after(Duration::from_millis(left), event);
        }
        for (kind, url) in world.settings.endpoints.clone() {
            keystone::register(&mut world, &kind, &kind, &url);
        }
        for task in unfinished_tasks(&world, &self.progress) {
            world.start(task);
        }
        world
    }
}

fn encode_container(
    ((project, container), objects): (&(String, String), &Objects),
) -> (String, String, BTreeMap<String, String>) {
    let encode = |(name, bytes): (&String, &bytes::Bytes)| (name.clone(), STANDARD.encode(bytes));
    (project.clone(), container.clone(), objects.iter().map(encode).collect())
}

/// The background tasks that were in progress, and those that must be repeated after a restart.
fn unfinished_tasks(world: &World, progress: &BTreeMap<String, Progress>) -> Vec<BackgroundTask> {
    let running = |server: &&Object| {
        !["BUILD", "SHUTOFF", "ERROR"].contains(&server.text("status"))
            && server.note("task") != "deleting"
            && !server.hidden.contains_key("never_boots")
    };
    let servers = world.store.all(Kind::Server).filter(running);
    let guests = servers.filter_map(|server| match progress.get(&server.id) {
        Some(Progress::Failed(_)) => None,
        Some(Progress::Running | Progress::Joined)
            if world.records.configs.contains_key(&server.id) =>
        {
            Some(BackgroundTask::Resume(server.id.clone()))
        }
        Some(Progress::Running | Progress::Joined | Progress::Booting) | None => {
            Some(BackgroundTask::Boot(server.id.clone()))
        }
    });
    let fetches = world.records.fetches.iter();
    let fetches = fetches
        .map(|(image, url)| BackgroundTask::Fetch { image: image.clone(), url: url.clone() });
    guests.chain(fetches).chain([BackgroundTask::Reopen]).collect()
}

/// Writes the file. A lock allows one write at a time.
pub(crate) struct StateFile {
    path: PathBuf,
    guest: Arc<dyn Guest>,
    shared: Arc<Shared>,
    /// The change counters of the world and of the guests at the last write.
    has: Mutex<(u64, u64)>,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf, guest: Arc<dyn Guest>, shared: Arc<Shared>) -> StateFile {
        // No counter reaches this value, so the first call writes the file.
        StateFile { path, guest, shared, has: Mutex::new((u64::MAX, u64::MAX)) }
    }

    /// Writes the file if the state has changed since the last write.
    pub(crate) async fn keep(&self) {
        let mut has = self.has.lock().await;
        let now = (self.shared.with(|world| world.changes), self.guest.changes());
        if *has == now {
            return;
        }
        let (shared, guest, path) = (self.shared.clone(), self.guest.clone(), self.path.clone());
        let write = move || write(&path, &StoredCloud::of(&shared, &*guest));
        match spawn_blocking(write).await.map_err(io::Error::other).flatten() {
            Ok(()) => *has = now,
            Err(error) => error!(%error, "cannot keep the state in {}", self.path.display()),
        }
    }

    /// Writes the file after changes, for ever.
    pub(crate) async fn run(&self) {
        loop {
            self.keep().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Writes the file atomically. Only the owner can read it, because it contains passwords.
fn write(path: &Path, kept: &StoredCloud) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    file.persist(path)?;
    Ok(())
}
