//! A running cloud, and what tests can ask of it.

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

use crate::cidr::Cidr;
use crate::errands::{self, Offers, Openings};
use crate::guest::{Guest, Progress};
use crate::kept::{Keeper, Kept};
use crate::log::Call;
use crate::misbehave::{Fate, Lag, Rule};
use crate::settings::Settings;
use crate::store::{Kind, Object};
use crate::trap::Stop;
use crate::world::World;
use crate::{keystone, seed, serve};

/// What all parts of a running cloud share.
pub(crate) struct Shared {
    pub(crate) address: SocketAddr,
    world: Mutex<World>,
    wake: Notify,
    calls: watch::Sender<u64>,
    pub(crate) guest: Arc<dyn Guest>,
    /// How far each guest is, by server.
    pub(crate) progress: Mutex<std::collections::BTreeMap<String, Progress>>,
    /// Ports that guests listen on.
    pub(crate) offers: Mutex<Offers>,
    /// Addresses that are open on this host.
    pub(crate) openings: Mutex<Openings>,
    /// Who keeps all of it in a file, where somebody does.
    keeper: Option<Keeper>,
}

impl Shared {
    /// One look at the world, or one change of it.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut World) -> T) -> T {
        look(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether all of it is kept in a file.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// Returns once the file has all that is true now, if there is one.
    pub(crate) async fn keep(self: &Arc<Shared>) {
        if let Some(keeper) = &self.keeper {
            keeper.keep(self).await;
        }
    }

    /// Something may have become due earlier than the clock knows.
    pub(crate) fn changed(&self) {
        self.wake.notify_one();
    }

    /// A call has come or gone.
    pub(crate) fn called(&self) {
        self.calls.send_modify(|number| *number += 1);
    }

    /// Waits until a rule is gone.
    pub(crate) async fn until_gone(&self, rule: u64) {
        while self.with(|world| world.misbehaviour.has(rule, Instant::now())) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the trap is opened.
    pub(crate) async fn until_opened(&self, opening: u64) {
        while self.with(|world| world.trap.holds(opening)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Lets happen what is due, when it is due.
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

/// A cloud that answers until this is dropped.
#[derive(Debug)]
pub struct Emulator {
    /// What to ask of it.
    pub cloud: Cloud,
    _tasks: JoinSet<()>,
}

impl Emulator {
    /// Starts a cloud on a free port of 127.0.0.1, with the default guest.
    pub async fn start(settings: Settings) -> io::Result<Emulator> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Emulator::start_with(settings, address, Arc::new(crate::kubernetes::Nodes::default())).await
    }

    /// Starts a cloud on `address`, whose servers run `guest`.
    pub async fn start_with(
        settings: Settings,
        address: SocketAddr,
        guest: Arc<dyn Guest>,
    ) -> io::Result<Emulator> {
        Emulator::begin(settings, address, guest, None).await
    }

    /// Starts a cloud on `address` that goes on where the one ended that kept itself in the file `path`; a new one where there is no such
    /// file. Of `settings` only times, limits and the services of others count for one that goes on.
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
            Some(path) => Kept::read(path)?,
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
                // The claim on the piece of loopback lasts as long as the cloud.
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
            keeper: path.map(Keeper::new),
        });
        shared.keep().await;
        tasks.spawn(serve::run(listener, shared.clone()));
        tasks.spawn(errands::run(todo, shared.clone()));
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

/// A piece of 127.0.0.0/8 that no other emulator on this host has, or the one that it had `before`: claimed by a port on its first address.
async fn claim_loopback(before: Option<&str>) -> io::Result<(String, TcpListener)> {
    if let Some(cidr) = before {
        let first = Cidr::parse(cidr).map(|cidr| cidr.at(1));
        let first = first.ok_or_else(|| io::Error::other(format!("{cidr} is no network")))?;
        let claim = TcpListener::bind((first, 4791)).await.map_err(|why| {
            io::Error::new(
                why.kind(),
                format!("the outside network {cidr} is somebody else's: {why}"),
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

/// Somebody who may use the cloud.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The project's name.
    pub project: String,
    /// The user's id.
    pub user_id: String,
    /// The project's id.
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

/// What tests can ask of a running cloud.
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
    /// Where all APIs and the control API answer.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// `http://ADDRESS`.
    pub fn url(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// The URL that clients authenticate at.
    pub fn auth_url(&self) -> String {
        format!("{}/identity/v3", self.url())
    }

    /// A clouds.yaml with the accounts that are there from the beginning: `admin`, `alice`, `bob` and `clusterd`.
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

    /// A user with the roles of an ordinary member in a project; both are made if they are not there.
    pub fn add_user(&self, user: &str, password: &str, project: &str) -> Account {
        self.add_user_with(user, password, project, &["member", "reader", "load-balancer_member"])
    }

    /// A user with these roles in a project; both are made if they are not there.
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

    /// Gives a user roles in the whole cloud.
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

    /// Puts a service into the catalogue; `%(project_id)s` in the URL is replaced.
    pub fn add_endpoint(&self, kind: &str, url: &str) {
        self.shared.with(|world| keystone::register(world, kind, kind, url));
    }

    /// Sets a project's limit, by the project's name and the service's name for the limit; -1 is none.
    pub fn set_quota(&self, project: &str, name: &str, limit: i64) {
        self.shared.with(|world| {
            let project = seed::project(world, project);
            world.quotas.insert((project, name.to_owned()), limit);
        });
    }

    /// Makes calls go wrong; the number is for [`Cloud::forgive`].
    pub fn misbehave(&self, rule: Rule) -> u64 {
        self.shared.with(|world| world.misbehaviour.add(rule, Instant::now()))
    }

    /// How many calls a rule has hit; none once it has ended.
    pub fn hits(&self, rule: u64) -> u32 {
        let rules = self.shared.with(|world| world.misbehaviour.rules());
        rules.iter().find(|(id, ..)| *id == rule).map_or(0, |(.., hit)| *hit)
    }

    /// Ends a rule; what hangs by it ends too.
    pub fn forgive(&self, rule: u64) {
        self.shared.with(|world| world.misbehaviour.remove(rule));
    }

    /// Ends all rules, fates and lags.
    pub fn forgive_all(&self) {
        self.shared.with(|world| world.misbehaviour.clear());
    }

    /// Stops the first call that comes, of the cloud's APIs or of a cluster's own, and has nothing done of what is asked
    /// after it: as if its client had died at that moment. [`Cloud::caught`] tells of it.
    pub fn set_trap(&self, stop: Stop) {
        self.shared.with(|world| world.trap.set(Some(stop)));
    }

    /// The call that the trap caught: method, path, and a name or what else tells it from others.
    pub fn caught(&self) -> Option<String> {
        self.shared.with(|world| world.trap.caught())
    }

    /// Stops the next call that was not caught before. Connections that hang by the trap are closed.
    pub fn open_trap(&self) {
        self.shared.with(|world| world.trap.open());
    }

    /// Stops no more calls.
    pub fn remove_trap(&self) {
        self.shared.with(|world| world.trap.set(None));
    }

    /// Decides what becomes of objects that are made from now on.
    pub fn decide(&self, fate: Fate) {
        self.shared.with(|world| world.misbehaviour.fate(fate));
    }

    /// Lets lists of a kind show new objects late.
    pub fn lag(&self, lag: Lag) {
        self.shared.with(|world| world.misbehaviour.lags.push(lag));
    }

    /// Voids every token, as a Keystone does that has changed its keys.
    pub fn void_tokens(&self) {
        self.shared.with(|world| world.tokens.clear());
    }

    /// Everything that was asked, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.with(|world| world.log.calls())
    }

    /// How many calls `want` wants.
    pub fn count(&self, want: impl Fn(&Call) -> bool) -> usize {
        self.shared.with(|world| world.log.count(want))
    }

    /// Forgets the calls; their numbers go on.
    pub fn forget_calls(&self) {
        self.shared.with(|world| world.log.clear());
    }

    /// Waits until `look` finds something, looking whenever something has happened.
    pub async fn wait_until<T>(&self, mut look: impl FnMut(&Cloud) -> Option<T>) -> T {
        let mut calls = self.shared.calls.subscribe();
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            // The sender lives as long as we do.
            let _ = calls.changed().await;
        }
    }

    /// All passwords, tokens and secrets of application credentials that there ever were, the oldest first.
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

    /// How many objects were looked at so far to find others: by lists, and by what has to know what hangs together. What is
    /// asked for by its id is not looked for.
    pub fn looked_at(&self) -> u64 {
        self.shared.with(|world| world.store.looked_at())
    }

    /// How many objects of a kind a project has.
    pub fn count_of(&self, kind: Kind, project_id: &str) -> usize {
        self.shared.with(|world| world.store.count(kind, project_id))
    }

    /// What a project has, by kind, name and id, apart from what every project has: the zero-orphan proof.
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

    /// How far each guest is, by server.
    pub fn guests(&self) -> std::collections::BTreeMap<String, Progress> {
        self.shared.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a port of a server can be reached on this host, if the guest listens there.
    pub fn guest_port(&self, server: &str, port: u16) -> Option<SocketAddr> {
        self.shared
            .offers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&(server.to_owned(), port))
            .copied()
    }

    /// Where a port of a load balancer's or floating address can be reached on this host.
    pub fn reach(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let openings = self.shared.openings.lock().unwrap_or_else(PoisonError::into_inner);
        openings.find(address, port)
    }

    /// A guest listens: connections to that port of its server go to `at`.
    pub fn offer(&self, server: &str, port: u16, at: SocketAddr) {
        let mut offers = self.shared.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.insert((server.to_owned(), port), at);
    }

    /// Adds to what a server's console shows.
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
        // Who goes on after the emulator has started again says nothing new.
        if before != Some(progress) {
            self.write_console(server, &line);
        }
        self.shared.called();
    }
}
