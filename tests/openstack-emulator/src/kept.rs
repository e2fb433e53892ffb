//! A cloud in a file, so that it goes on where it ended.
//!
//! A call of the cloud's APIs that changes something is answered once the file has it. What clusters' own APIs are told, and what guests
//! and the clock do, follows within [`LOOK_EVERY`]. Tokens, the log of calls and misbehaviour are not kept: clients authenticate again, as
//! after a Keystone has changed its keys. The file is there for an end of the program, not of the computer: nothing is synced to disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_blocking;
use tracing::error;

use crate::cloud::Shared;
use crate::guest::Progress;
use crate::keystone;
use crate::settings::Settings;
use crate::store::{Kind, Object};
use crate::world::{Errand, Event, Usage, World};

/// How often it is looked whether something has changed.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the file of a cloud has.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    pub(crate) external_cidr: String,
    objects: Vec<(Kind, Object)>,
    quotas: Vec<((String, String), i64)>,
    usage: HashMap<String, Usage>,
    addresses: HashMap<String, BTreeSet<IpAddr>>,
    user_data: HashMap<String, Arc<str>>,
    /// In base64.
    image_bytes: HashMap<String, String>,
    actions: HashMap<String, Vec<Value>>,
    configs: BTreeMap<String, Value>,
    fetches: BTreeMap<String, String>,
    /// What is to happen, and in how many milliseconds.
    to_come: Vec<(u64, Event)>,
    pub(crate) progress: BTreeMap<String, Progress>,
    pub(crate) guest: Value,
}

impl Kept {
    /// What a file has; none where there is no file.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Kept>> {
        let text = match std::fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        Ok(Some(serde_json::from_slice(&text)?))
    }

    fn of(shared: &Shared) -> Kept {
        // Guests first: what they say of themselves is never ahead of the cloud that made them.
        let guest = shared.guest.kept();
        let progress = shared.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shared.with(|world| Kept {
            external_cidr: world.external_cidr.clone(),
            objects: world.store.every().map(|(kind, one)| (kind, one.clone())).collect(),
            quotas: world.quotas.clone().into_iter().collect(),
            usage: world.usage.clone(),
            addresses: world
                .addresses
                .iter()
                .map(|(subnet, all)| (subnet.clone(), all.iter().copied().collect()))
                .collect(),
            user_data: world.user_data.clone(),
            image_bytes: world
                .image_bytes
                .iter()
                .map(|(image, bytes)| (image.clone(), STANDARD.encode(bytes)))
                .collect(),
            actions: world.actions.clone(),
            configs: world.configs.clone(),
            fetches: world.fetches.clone(),
            to_come: world.to_come(),
            progress,
            guest,
        })
    }

    /// The world as it was. Its machines run on, and what was about to happen happens.
    pub(crate) fn world(self, settings: Settings, errands: UnboundedSender<Errand>) -> World {
        let mut world = World::empty(settings, self.external_cidr, errands);
        for (kind, object) in self.objects {
            world.store.insert(kind, object);
        }
        world.quotas = self.quotas.into_iter().collect();
        world.usage = self.usage;
        let addresses = self.addresses.into_iter();
        world.addresses =
            addresses.map(|(subnet, all)| (subnet, all.into_iter().collect())).collect();
        world.user_data = self.user_data;
        let bytes = self.image_bytes.into_iter();
        let decoded = |text: String| STANDARD.decode(text).unwrap_or_default();
        world.image_bytes = bytes.map(|(image, text)| (image, decoded(text).into())).collect();
        world.actions = self.actions;
        world.configs = self.configs;
        world.fetches = self.fetches;
        for (left, event) in self.to_come {
            world.after(Duration::from_millis(left), event);
        }
        for (kind, url) in world.settings.endpoints.clone() {
            keystone::register(&mut world, &kind, &kind, &url);
        }
        for errand in errands_left(&world, &self.progress) {
            world.errand(errand);
        }
        world
    }
}

/// What was being done outside of the world, or has to be done again.
fn errands_left(world: &World, progress: &BTreeMap<String, Progress>) -> Vec<Errand> {
    let running = |server: &&Object| {
        !["BUILD", "SHUTOFF", "ERROR"].contains(&server.text("status"))
            && server.note("task") != "deleting"
            && !server.hidden.contains_key("never_boots")
    };
    let servers = world.store.all(Kind::Server).filter(running);
    let guests = servers.filter_map(|server| match progress.get(&server.id) {
        Some(Progress::Failed(_)) => None,
        Some(Progress::Running | Progress::Joined) if world.configs.contains_key(&server.id) => {
            Some(Errand::Resume(server.id.clone()))
        }
        Some(Progress::Running | Progress::Joined | Progress::Booting) | None => {
            Some(Errand::Boot(server.id.clone()))
        }
    });
    let fetches = world.fetches.iter();
    let fetches =
        fetches.map(|(image, url)| Errand::Fetch { image: image.clone(), url: url.clone() });
    guests.chain(fetches).chain([Errand::Reopen]).collect()
}

/// Writes the file, one at a time.
pub(crate) struct Keeper {
    path: PathBuf,
    /// The changes that the file has: of the world, and of the guests.
    has: Mutex<(u64, u64)>,
}

impl Keeper {
    pub(crate) fn new(path: PathBuf) -> Keeper {
        // Nothing yet, not even the beginning.
        Keeper { path, has: Mutex::new((u64::MAX, u64::MAX)) }
    }

    /// Writes the file, if it lacks anything of what is now.
    pub(crate) async fn keep(&self, shared: &Arc<Shared>) {
        let mut has = self.has.lock().await;
        let now = (shared.with(|world| world.changes), shared.guest.changes());
        if *has == now {
            return;
        }
        let (shared, path) = (shared.clone(), self.path.clone());
        let write = move || write(&path, &Kept::of(&shared));
        match spawn_blocking(write).await.map_err(io::Error::other).flatten() {
            Ok(()) => *has = now,
            Err(error) => error!(%error, "cannot keep the state in {}", self.path.display()),
        }
    }

    /// Follows what changes, for ever.
    pub(crate) async fn run(&self, shared: &Arc<Shared>) {
        loop {
            self.keep(shared).await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Whoever reads the file finds it whole, and nobody else reads it: it has passwords.
fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    file.persist(path)?;
    Ok(())
}

/// A moment of this process, as the milliseconds since.
pub(crate) mod age {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tokio::time::Instant;

    pub(crate) fn serialize<S: Serializer>(born: &Instant, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(born.elapsed().as_millis()).unwrap_or(u64::MAX).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        let age = Duration::from_millis(u64::deserialize(from)?);
        let now = Instant::now();
        // The computer may have been started since.
        Ok(now.checked_sub(age).unwrap_or(now))
    }
}
