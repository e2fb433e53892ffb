//! A running cloud, and the functions by which tests inspect and change it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::guest::Progress;
use crate::locks::lock;
use crate::log::Call;
use crate::misbehave::{CreateOutcome, Lag, Rule};
use crate::object::{Kind, Object};
use crate::shared::Shared;
use crate::trap::Stop;
use crate::world::{BackgroundTask, stamp};
use crate::{clock, keystone, octavia, seed};

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
                if let Some(role) = world.store.named(Kind::Role, name).map(|it| it.id.clone()) {
                    keystone::grant(world, user_id, keystone::SYSTEM, &role);
                }
            }
        });
    }

    /// Sets a quota of a project, given the project's name and the service's name of the quota. -1 means unlimited.
    pub fn set_quota(&self, project: &str, name: &str, limit: i64) {
        self.shared.with(|world| seed::set_quota(world, project, name, limit));
    }

    /// Lets Octavia forget the children of this load balancer: they stay PENDING_CREATE, although the load balancer is ACTIVE.
    pub fn forget_load_balancer_children(&self, id: &str) {
        self.shared.with(|world| octavia::forget_children(world, id));
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
    /// looks as if it had died at that moment. [`Cloud::caught`] returns the call.
    pub fn set_trap(&self, stop: Stop) {
        self.set_trap_at(stop, 1);
    }

    /// Like [`Cloud::set_trap`], at every `every`-th call that is not a repetition, from the first on.
    pub fn set_trap_at(&self, stop: Stop, every: usize) {
        self.shared.with(|world| world.trap.set(Some(stop), every));
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
        self.shared.with(|world| world.trap.set(None, 1));
    }

    /// Sets how objects end that are created from now on.
    pub fn set_fate(&self, fate: CreateOutcome) {
        self.shared.with(|world| world.misbehaviour.fate(fate));
    }

    /// Lets a server fail, as after an error of its host: its guest stops, and its status is ERROR.
    pub fn break_server(&self, server: &str) {
        self.shared.with(|world| {
            let message = "the host has lost the server";
            let fault = json!({"code": 500, "created": stamp(), "message": message, "details": ""});
            world.changes += 1;
            world.store.set(Kind::Server, server, "status", "ERROR");
            world.store.keep(Kind::Server, server, "task", "");
            world.store.keep(Kind::Server, server, "fault", fault);
            world.start(BackgroundTask::Halt(server.to_owned()));
        });
        self.shared.called();
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
        let mut calls = self.shared.calls();
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
            clock::settle(world);
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

    /// The objects in Swift, as `CONTAINER/NAME`.
    pub fn stored(&self) -> Vec<String> {
        self.shared.with(|world| {
            let names = world.containers.iter().flat_map(|((_, container), objects)| {
                objects.keys().map(move |name| format!("{container}/{name}"))
            });
            names.collect()
        })
    }

    /// The kind, name and id of all objects in a project, without those that every project has. Tests use the list to prove that nothing is
    /// left.
    pub fn objects_of(&self, project_id: &str) -> Vec<(Kind, String, String)> {
        #[rustfmt::skip]
        const KINDS: [Kind; 18] = [
            Kind::ApplicationCredential, Kind::Trust, Kind::Server, Kind::ServerGroup, Kind::Network, Kind::Subnet, Kind::Router, Kind::Port,
            Kind::SecurityGroup, Kind::FloatingIp, Kind::LoadBalancer, Kind::Listener, Kind::Pool, Kind::Member, Kind::HealthMonitor,
            Kind::Zone, Kind::Volume, Kind::Snapshot,
        ];
        self.shared.with(|world| {
            clock::settle(world);
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
    pub fn guests(&self) -> BTreeMap<String, Progress> {
        lock(&self.shared.progress).clone()
    }

    /// The address on this host of a port of a server. `None` if the guest does not listen there.
    pub fn guest_port(&self, server: &str, port: u16) -> Option<SocketAddr> {
        lock(&self.shared.offers).get(&(server.to_owned(), port)).copied()
    }

    /// The address on this host of a port of a load balancer or floating IP.
    pub fn reach(&self, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let openings = lock(&self.shared.openings);
        openings.find(address, port)
    }

    /// Forwards connections to a port of a server to `at`. Guests call this when they listen.
    pub fn offer(&self, server: &str, port: u16, at: SocketAddr) {
        let mut offers = lock(&self.shared.offers);
        offers.insert((server.to_owned(), port), at);
    }

    /// Appends a line to the console output of a server.
    pub fn write_console(&self, server: &str, line: &str) {
        self.shared.with(|world| {
            world.changes += 1;
            world.store.change(Kind::Server, server, |server| {
                let text = format!("{}{line}\n", server.note("console"));
                server.keep("console", text);
            });
        });
    }

    pub(crate) fn report(&self, server: &str, progress: Progress) {
        let line = progress.to_string();
        let before = {
            let mut all = lock(&self.shared.progress);
            all.insert(server.to_owned(), progress.clone())
        };
        // A guest that continues after a restart of the emulator repeats its progress.
        if before != Some(progress) {
            self.write_console(server, &line);
        }
        self.shared.called();
    }
}
