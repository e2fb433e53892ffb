//! A running cloud, and the functions by which tests inspect and change it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::background::{self, Offers, Openings};
use crate::cidr;
use crate::guest::{Guest, Progress};
use crate::kept::{StateFile, StoredCloud};
use crate::log::Call;
use crate::misbehave::{CreateOutcome, Lag, Rule};
use crate::object::{Kind, Object};
use crate::settings::Settings;
use crate::trap::Stop;
use crate::world::World;
use crate::{keystone, seed, serve};

/// The state that all parts of a running cloud share.
pub(crate) struct Shared {
    pub(crate) address: SocketAddr,
    world: Mutex<World>,
    wake: Notify,
    calls: watch::Sender<u64>,
    pub(crate) guest: Arc<dyn Guest>,
    /// The progress of each guest, by the id of its server.
    pub(crate) progress: Mutex<std::collections::BTreeMap<String, Progress>>,
    /// The ports on which guests listen.
    pub(crate) offers: Mutex<Offers>,
    /// The addresses that are open on this host.
    pub(crate) openings: Mutex<Openings>,
    /// Writes the cloud to a file. `None` if the cloud is not kept in a file.
    keeper: Option<StateFile>,
}

impl Shared {
    /// Reads or changes the world under its lock.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the cloud is kept in a file.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Waits until the file holds the current state. Returns at once if there is no file.
    pub(crate) async fn keep(self: &Arc<Shared>) {
        if let Some(keeper) = &self.keeper {
            keeper.keep(self).await;
        }
    }

    /// Wakes the clock, because a new event may be due before the one it waits for.
    pub(crate) fn changed(&self) {
        self.wake.notify_one();
    }

    /// Wakes `wait_until`, because a call arrived or ended.
    pub(crate) fn called(&self) {
        self.calls.send_modify(|number| *number += 1);
    }

    /// Waits until a rule has ended.
    pub(crate) async fn until_gone(&self, rule: u64) {
        while self.with(|world| world.misbehaviour.has(rule, Instant::now())) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the trap is opened again.
    pub(crate) async fn until_opened(&self, opening: u64) {
        while self.with(|world| world.trap.holds(opening)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Runs the events of the world when they are due.
    async fn clock(&self) {
        loop {
            let next = self.with(|world| {
                world.settle();
                world.next_due()
            });
            self.called();
            match next {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = self.wake.notified() => {}
                },
                None => self.wake.notified().await,
            }
        }
    }
}

/// A running cloud. Dropping the value stops it.
#[derive(Debug)]
pub struct Emulator {
    /// The functions for tests.
    pub cloud: Cloud,
    _tasks: JoinSet<()>,
}

impl Emulator {
    /// Starts a cloud on a free port of 127.0.0.1 with the default guest.
    pub async fn start(settings: Settings) -> io::Result<Emulator> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Emulator::start_with(settings, address, Arc::new(crate::kubernetes::Nodes::default())).await
    }

    /// Starts a cloud on `address` whose servers run `guest`.
    pub async fn start_with(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
    ) -> io::Result<Emulator> {
        Emulator::begin(settings, address, guest, None).await
    }

    /// Starts a cloud on `address` that continues from the state in the file `path` and keeps its state there. Without the file, the cloud
    /// is
    /// new. A cloud that continues takes only times, limits and endpoints from `settings`.
    pub async fn start_kept(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
        path: PathBuf,
    ) -> io::Result<Emulator> {
        Emulator::begin(settings, address, guest, Some(path)).await
    }

    async fn begin(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
        path: Option<PathBuf>,
    ) -> io::Result<Emulator> {
        let mut kept = match &path {
            Some(path) => StoredCloud::read(path)?,
            None => None,
        };
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (errands, todo) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let external = match (&kept, &settings.external_cidr) {
            (None, Some(cidr)) => cidr.clone(),
            (Some(kept), Some(_)) => kept.external_cidr.clone(),
            (_, None) => {
                let before = kept.as_ref().map(|kept| kept.external_cidr.as_str());
                let (cidr, claim) = claim_loopback(before).await?;
                // The task holds the listener, so that no other emulator takes the range while the cloud runs.
                tasks.spawn(async move {
                    let _claim = claim;
                    std::future::pending::<()>().await;
                });
                cidr
            }
        };
        let mut progress = std::collections::BTreeMap::new();
        let world = match kept.take() {
            Some(mut kept) => {
                progress.clone_from(&kept.progress);
                guest.take_up(kept.guest.take())?;
                kept.world(settings, errands)
            }
            None => World::new(settings, external, errands),
        };
        let shared = Arc::new(Shared {
            address,
            world: Mutex::new(world),
            wake: Notify::new(),
            calls: watch::Sender::new(0),
            guest,
            progress: Mutex::new(progress),
            offers: Mutex::default(),
            openings: Mutex::default(),
            keeper: path.map(StateFile::new),
        });
        shared.keep().await;
        tasks.spawn(serve::run(listener, shared.clone()));
        tasks.spawn(background::run(todo, shared.clone()));
        let clock = shared.clone();
        tasks.spawn(async move { clock.clock().await });
        let follower = shared.clone();
        tasks.spawn(async move {
            if let Some(keeper) = &follower.keeper {
                keeper.run(&follower).await;
            }
        });
        Ok(Emulator { cloud: Cloud { shared }, _tasks: tasks })
    }
}

/// Claims a part of 127.0.0.0/8 by listening on a port of its first address: the part `before` if given, otherwise one that no other
/// emulator
/// on this host has.
async fn claim_loopback(before: Option<&str>) -> io::Result<(String, TcpListener)> {
    if let Some(cidr) = before {
        let first = cidr::parse(cidr).map(|cidr| cidr::at(cidr, 1));
        let first = first
            .ok_or_else(|| io::Error::other(format!("{cidr} is not a network in CIDR notation")))?;
        let claim = TcpListener::bind((first, 4791)).await.map_err(|why| {
            io::Error::new(
                why.kind(),
                format!(
                    "cannot claim the external network {cidr}, another emulator may use it: {why}"
                ),
            )
        })?;
        return Ok((cidr.to_owned(), claim));
    }
    for _ in 0..200 {
        let [second, third, ..] = *uuid::Uuid::new_v4().as_bytes();
        let (second, third) = (second | 0x40, third & 0xfc);
        let gateway = SocketAddr::from((Ipv4Addr::new(127, second, third, 1), 4791));
        if let Ok(claim) = TcpListener::bind(gateway).await {
            return Ok((format!("127.{second}.{third}.0/22"), claim));
        }
    }
    Err(io::Error::other("no piece of 127.0.0.0/8 is free for an outside network"))
}

/// A user's account in a project.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    pub user: String,
    pub password: String,
    pub project: String,
    pub user_id: String,
    pub project_id: String,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("user", &self.user)
            .field("project", &self.project)
            .finish_non_exhaustive()
    }
}

/// A running cloud, as tests see it.
#[derive(Clone)]
pub struct Cloud {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for Cloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cloud").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

impl Cloud {
    /// The address of all APIs and of the control API.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The URL of the cloud, `http://ADDRESS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// The URL of Keystone.
    pub fn auth_url(&self) -> String {
        format!("{}/identity/v3", self.url())
    }

    /// A clouds.yaml with the accounts that exist from the start: `admin`, `alice`, `bob` and `clusterd`.
    pub fn clouds_yaml(&self) -> String {
        let accounts = [
            ("admin", "admin"),
            ("alice", "tenant-a"),
            ("bob", "tenant-b"),
            ("clusterd", "service"),
        ];
        let cloud = |(user, project): (&str, &str)| {
            let auth = json!({
                "auth_url": self.auth_url(), "username": user, "password": format!("{user}-secret"), "project_name": project,
                "user_domain_name": "Default", "project_domain_name": "Default",
            });
            (
                user.to_owned(),
                json!({"auth": auth, "region_name": self.shared.with(|world| world.settings.region.clone()), "identity_api_version": "3"}),
            )
        };
        let clouds: serde_json::Map<String, Value> = accounts.into_iter().map(cloud).collect();
        // JSON is YAML.
        format!("{:#}\n", json!({"clouds": clouds}))
    }

    /// Creates a user with the roles of an ordinary member in a project. User and project are created if they are missing.
    pub fn add_user(&self, user: &str, password: &str, project: &str) -> Account {
        self.add_user_with(user, password, project, &["member", "reader", "load-balancer_member"])
    }

    /// Creates a user with these roles in a project. User and project are created if they are missing.
    pub fn add_user_with(
        &self,
        user: &str,
        password: &str,
        project: &str,
        roles: &[&str],
    ) -> Account {
        let (user_id, project_id) =
            self.shared.with(|world| seed::user(world, user, password, project, roles));
        Account {
            user: user.into(),
            password: password.into(),
            project: project.into(),
            user_id,
            project_id,
        }
    }

    /// Grants a user roles on the whole cloud (scope `system`).
    pub fn grant_system(&self, user_id: &str, roles: &[&str]) {
        self.shared.with(|world| {
            for name in roles {
                let role = world.store.find(Kind::Role, |role| role.text("name") == *name);
                if let Some(role) = role.map(|role| role.id.clone()) {
                    keystone::grant(world, user_id, keystone::SYSTEM, &role);
                }
            }
        });
    }

    /// Adds a service to the catalog. `%(project_id)s` in the URL is replaced.
    pub fn add_endpoint(&self, kind: &str, url: &str) {
        self.shared.with(|world| keystone::register(world, kind, kind, url));
    }

    /// Sets a quota of a project, given the project's name and the service's name of the quota. -1 means unlimited.
    pub fn set_quota(&self, project: &str, name: &str, limit: i64) {
        self.shared.with(|world| {
            let project = seed::project(world, project);
            world.quotas.insert((project, name.to_owned()), limit);
        });
    }

    /// Adds a fault rule for calls. Pass the returned id to [`Cloud::end_rule`].
    pub fn misbehave(&self, rule: Rule) -> u64 {
        self.shared.with(|world| world.misbehaviour.add(rule, Instant::now()))
    }

    /// How many calls a rule has hit. Returns 0 once the rule has ended.
    pub fn hits(&self, rule: u64) -> u32 {
        let rules = self.shared.with(|world| world.misbehaviour.rules());
        rules.iter().find(|(id, ..)| *id == rule).map_or(0, |(.., hit)| *hit)
    }

    /// Ends a rule, and the calls that hang because of it.
    pub fn end_rule(&self, rule: u64) {
        self.shared.with(|world| world.misbehaviour.remove(rule));
    }

    /// Ends all rules, fates and lags.
    pub fn forgive_all(&self) {
        self.shared.with(|world| world.misbehaviour.clear());
    }

    /// Stops the next call, whether to a cloud API or to the API of a cluster, and does none of the work requested afterwards: the client
    /// looks
    /// as if it had died at that moment. [`Cloud::caught`] returns the call.
    pub fn set_trap(&self, stop: Stop) {
        self.shared.with(|world| world.trap.set(Some(stop)));
    }

    /// The call in the trap: method, path, and a name or hash that tells calls of one path apart.
    pub fn caught(&self) -> Option<String> {
        self.shared.with(|world| world.trap.caught())
    }

    /// Opens the trap for the next call that was not caught before. Connections held by the trap are closed.
    pub fn open_trap(&self) {
        self.shared.with(|world| world.trap.open());
    }

    /// Removes the trap.
    pub fn remove_trap(&self) {
        self.shared.with(|world| world.trap.set(None));
    }

    /// Sets how objects end that are created from now on.
    pub fn set_fate(&self, fate: CreateOutcome) {
        self.shared.with(|world| world.misbehaviour.fate(fate));
    }

    /// Delays new objects in lists of a kind.
    pub fn lag(&self, lag: Lag) {
        self.shared.with(|world| world.misbehaviour.lags.push(lag));
    }

    /// Invalidates every token, as Keystone does when its keys change.
    pub fn void_tokens(&self) {
        self.shared.with(|world| world.tokens.clear());
    }

    /// All calls, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.with(|world| world.log.calls())
    }

    /// The number of calls that `want` accepts.
    pub fn count(&self, want: impl Fn(&Call) -> bool) -> usize {
        self.shared.with(|world| world.log.count(want))
    }

    /// Clears the log of calls. The numbering continues.
    pub fn forget_calls(&self) {
        self.shared.with(|world| world.log.clear());
    }

    /// Waits until `look` returns a value. `look` runs again after every call and change.
    pub async fn wait_until<T>(&self, mut look: impl FnMut(&Cloud) -> Option<T>) -> T {
        let mut calls = self.shared.calls.subscribe();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            // An error is impossible: the sender lives as long as the cloud.
            let _ = calls.changed().await;
        }
    }

    /// All passwords, tokens and application credential secrets that ever existed, the oldest first.
    pub fn secrets(&self) -> Vec<String> {
        self.shared.with(|world| world.secrets.clone())
    }

    /// A copy of all objects of a kind, the oldest first.
    pub fn objects(&self, kind: Kind) -> Vec<Object> {
        self.shared.with(|world| {
            world.settle();
            world.store.all(kind).cloned().collect()
        })
    }

    /// How many objects were visited so far in order to find others. Lookups by id do not count.
    pub fn looked_at(&self) -> u64 {
        self.shared.with(|world| world.store.looked_at())
    }

    /// The number of objects of a kind in a project.
    pub fn count_of(&self, kind: Kind, project_id: &str) -> usize {
        self.shared.with(|world| world.store.count(kind, project_id))
    }

    /// The kind, name and id of all objects in a project, without those that every project has. Tests use the list to prove that nothing is
    /// left.
    pub fn belongings(&self, project_id: &str) -> Vec<(Kind, String, String)> {
        const KINDS: [Kind; 18] = [
            Kind::ApplicationCredential,
            Kind::Trust,
            Kind::Server,
            Kind::ServerGroup,
            Kind::Network,
            Kind::Subnet,
            Kind::Router,
            Kind::Port,
            Kind::SecurityGroup,
            Kind::FloatingIp,
            Kind::LoadBalancer,
            Kind::Listener,
            Kind::Pool,
            Kind::Member,
            Kind::HealthMonitor,
            Kind::Zone,
            Kind::Volume,
            Kind::Snapshot,
        ];
        self.shared.with(|world| {
            world.settle();
            let store = &world.store;
            let all = KINDS
                .into_iter()
                .flat_map(|kind| store.all(kind).map(move |object| (kind, object)));
            let mine = all.filter(|(kind, object)| {
                object.project == project_id
                    && !(*kind == Kind::SecurityGroup && object.text("name") == "default")
            });
            mine.map(|(kind, object)| (kind, object.text("name").to_owned(), object.id.clone()))
                .collect()
        })
    }

    /// The progress of each guest, by the id of its server.
    pub fn guests(&self) -> std::collections::BTreeMap<String, Progress> {
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The address on this host of a port of a server. `None` if the guest does not listen there.
    pub fn guest_port(&self, server: &str, port: u16) -> Option<SocketAddr> {
        self.shared
            .offers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&(server.to_owned(), port))
            .copied()
    }

    /// The address on this host of a port of a load balancer or floating IP.
    pub fn reach(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let openings = self.shared.openings.lock().unwrap_or_else(PoisonError::into_inner);
        openings.find(address, port)
    }

    /// Forwards connections to a port of a server to `at`. Guests call this when they listen.
    pub fn offer(&self, server: &str, port: u16, at: SocketAddr) {
        let mut offers = self.shared.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.insert((server.to_owned(), port), at);
    }

    /// Appends a line to the console output of a server.
    pub fn write_console(&self, server: &str, line: &str) {
        self.shared.with(|world| {
            world.changes += 1;
            if let Some(server) = world.store.get_mut(Kind::Server, server) {
                let text = format!("{}{line}\n", server.note("console"));
                server.keep("console", text);
            }
        });
    }

    pub(crate) fn report(&self, server: &str, progress: Progress) {
        let line = progress.to_string();
        let before = {
            let mut all = self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner);
            all.insert(server.to_owned(), progress.clone())
        };
        // A guest that continues after a restart of the emulator repeats its progress.
        if before != Some(progress) {
            self.write_console(server, &line);
        }
        self.shared.called();
    }
}
