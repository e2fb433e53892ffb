//! The state of a cloud, and its clock.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use uuid::Uuid;

use crate::containers::Containers;
use crate::log::Log;
use crate::misbehave::{End, Misbehaviour};
use crate::object::{Kind, Object, ReadFields};
use crate::request::{ApiError, ApiRequest, ApiResult};
use crate::settings::{Settings, millis};
use crate::store::Store;
use crate::trap::Trap;

/// Work that is done outside of the world's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BackgroundTask {
    /// Start the guest of a server that became ACTIVE.
    Boot(String),
    /// Continue the guest of a server that was running before the emulator started.
    Resume(String),
    /// End the guest of a server that is no longer ACTIVE.
    Halt(String),
    Fetch {
        image: String,
        url: String,
    },
    /// Update the open addresses.
    Reopen,
}

/// An event that happens later.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The build of a server ends, successfully or not.
    Built(String),
    /// A PENDING status of a load balancer and its children ends.
    Settled(String),
    /// Fields of an object change.
    Set(Kind, String, Vec<(Cow<'static, str>, Value)>),
    /// An action of a server ends with this status and power state.
    Acted(String, Cow<'static, str>, i64),
    /// A live migration of a server ends.
    Migrated(String),
    /// An image of a server reaches its next status: the server, the image, the status. `None` if the image failed.
    Imaged(String, String, Option<Cow<'static, str>>),
    /// An object is deleted.
    Gone(Kind, String),
}

impl Event {
    /// An event that changes fields of an object.
    pub(crate) fn set(kind: Kind, id: &str, fields: Vec<(&'static str, Value)>) -> Event {
        let fields = fields.into_iter().map(|(field, value)| (Cow::Borrowed(field), value));
        Event::Set(kind, id.to_owned(), fields.collect())
    }
}

/// A project's usage of Nova's quotas.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) cores: i64,
    pub(crate) ram: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) user: String,
    /// The id of the project. Empty for a token without a project scope.
    pub(crate) project: String,
    /// Whether the token has the scope of the only domain.
    pub(crate) domain: bool,
    pub(crate) roles: Vec<String>,
    pub(crate) methods: Vec<Value>,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
    pub(crate) until: Instant,
    pub(crate) audit: String,
    pub(crate) application_credential: Option<String>,
    pub(crate) trust: Option<String>,
}

/// The state beside objects and quotas.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Records {
    pub(crate) external_cidr: String,
    pub(crate) usage: HashMap<String, Usage>,
    /// Used addresses, by subnet.
    pub(crate) addresses: HashMap<String, HashSet<IpAddr>>,
    /// User data in base64, by server.
    pub(crate) user_data: HashMap<String, std::sync::Arc<str>>,
    /// The actions of servers, newest first: request id, action, time.
    pub(crate) actions: HashMap<String, Vec<Value>>,
    /// The final Ignition configs of guests, by server. Only the file of a kept cloud needs them.
    pub(crate) configs: BTreeMap<String, Value>,
    /// Images that are being downloaded, with their URLs.
    pub(crate) fetches: BTreeMap<String, String>,
}

/// The whole state of a cloud.
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) store: Store,
    pub(crate) misbehaviour: Misbehaviour,
    pub(crate) trap: Trap,
    pub(crate) log: Log,
    pub(crate) tokens: HashMap<String, Token>,
    /// All passwords, tokens and secrets that ever existed.
    pub(crate) secrets: Vec<String>,
    /// Quotas of projects, by project and name.
    pub(crate) quotas: BTreeMap<(String, String), i64>,
    pub(crate) records: Records,
    /// The data of small images.
    pub(crate) image_bytes: HashMap<String, bytes::Bytes>,
    /// The objects of Swift.
    pub(crate) containers: Containers,
    /// Counts the changes of this state.
    pub(crate) changes: u64,
    /// The pending events, by the time at which they are due and by age.
    due: BTreeMap<(Instant, u64), Event>,
    order: u64,
    queue: UnboundedSender<BackgroundTask>,
}

impl World {
    pub(crate) fn empty(
        settings: Settings,
        records: Records,
        queue: UnboundedSender<BackgroundTask>,
    ) -> World {
        World {
            settings,
            store: Store::default(),
            misbehaviour: Misbehaviour::default(),
            trap: Trap::default(),
            log: Log::new(),
            tokens: HashMap::new(),
            secrets: Vec::new(),
            quotas: BTreeMap::new(),
            records,
            image_bytes: HashMap::new(),
            containers: Containers::default(),
            changes: 0,
            due: BTreeMap::new(),
            order: 0,
            queue,
        }
    }

    /// The pending events in order, each with the milliseconds until it is due.
    pub(crate) fn to_come(&self) -> Vec<(u64, Event)> {
        let left = |at: &Instant| at.saturating_duration_since(Instant::now()).as_millis();
        let left = |at: &Instant| u64::try_from(left(at)).unwrap_or(u64::MAX);
        self.due.iter().map(|((at, _), event)| (left(at), event.clone())).collect()
    }

    /// Builds an object without storing it.
    pub(crate) fn object(&self, project: &str, body: Value) -> Object {
        let body = if let Value::Object(map) = body { map } else { Map::new() };
        let id = body.text_of("id").map_or_else(new_id, str::to_owned);
        let mut object = Object {
            id,
            project: project.to_owned(),
            born: Instant::now(),
            body,
            hidden: Map::new(),
        };
        let id = object.id.clone();
        object.set("id", id);
        object
    }

    /// Stores an object with this body and returns its id.
    pub(crate) fn add(&mut self, kind: Kind, project: &str, body: Value) -> String {
        let object = self.object(project, body);
        let id = object.id.clone();
        self.store.insert(kind, object);
        id
    }

    pub(crate) fn later(&mut self, delay: u32, event: Event) {
        self.after(millis(delay), event);
    }

    pub(crate) fn after(&mut self, delay: Duration, event: Event) {
        self.order += 1;
        self.due.insert((Instant::now() + delay, self.order), event);
    }

    /// Drops the end of the action of a server that is in progress.
    pub(crate) fn forget_action(&mut self, server: &str) {
        self.due.retain(|_, event| !matches!(event, Event::Acted(of, ..) if of.as_str() == server));
    }

    pub(crate) fn start(&self, task: BackgroundTask) {
        // The receiver is gone while the emulator is being dropped.
        let _ = self.queue.send(task);
    }

    /// The time of the next event.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next event that is due, which then is no longer pending.
    pub(crate) fn take_due(&mut self) -> Option<Event> {
        self.next_due().filter(|at| *at <= Instant::now())?;
        self.due.pop_first().map(|(_, event)| event)
    }

    /// Whether lists show `object` already.
    pub(crate) fn listed(&self, kind: Kind, object: &Object) -> bool {
        let lag = self.misbehaviour.lags.iter().find(|lag| lag.kind == kind);
        lag.is_none_or(|lag| object.born.elapsed() >= Duration::from_millis(lag.millis.into()))
    }

    /// Schedules the end of a new object's first status: `ready` after `usual` milliseconds, or the object's fate.
    pub(crate) fn fated(
        &mut self,
        kind: Kind,
        id: &str,
        usual: u32,
        ready: Vec<(&'static str, Value)>,
        failed: Vec<(&'static str, Value)>,
    ) {
        let name = self.store.get(kind, id).map(|object| object.text("name").to_owned());
        if let Some((time, error)) = self.first_end(kind, &name.unwrap_or_default(), usual) {
            self.later(time, Event::set(kind, id, if error.is_some() { failed } else { ready }));
        }
    }

    /// When the first status of a new object ends, in milliseconds, and the message of its error if it fails. `None` if it never ends.
    pub(crate) fn first_end(
        &mut self,
        kind: Kind,
        name: &str,
        usual: u32,
    ) -> Option<(u32, Option<String>)> {
        match self.misbehaviour.on_create(kind, name) {
            Some(End::Stuck) => None,
            Some(End::Error(message)) => Some((usual, Some(message))),
            Some(End::Takes(time)) => Some((time, None)),
            Some(End::NeverBoots) | None => Some((usual, None)),
        }
    }

    /// The quota of a project, or `default` if none is set. -1 means unlimited.
    pub(crate) fn quota(&self, project: &str, name: &str, default: i64) -> i64 {
        let own = self.quotas.get(&(project.to_owned(), name.to_owned()));
        own.or_else(|| self.settings.quotas.get(name)).copied().unwrap_or(default)
    }

    /// The object with this id, if the caller may see it.
    pub(crate) fn seen(&self, kind: Kind, id: &str, asked: &ApiRequest) -> Option<&Object> {
        self.store.get(kind, id).filter(|object| asked.sees(&object.project))
    }

    /// The object with this id for changes, or `missing` if the caller may not see it.
    pub(crate) fn own(
        &mut self,
        kind: Kind,
        id: &str,
        asked: &ApiRequest,
        missing: impl FnOnce() -> ApiError,
    ) -> ApiResult<&mut Object> {
        match self.store.get_mut(kind, id) {
            Some(object) if asked.sees(&object.project) => Ok(object),
            _ => Err(missing()),
        }
    }
}

pub(crate) fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// A new UUID without dashes, as Keystone uses.
pub(crate) fn short_id() -> String {
    Uuid::new_v4().simple().to_string()
}

/// The current time in the format of Nova, Neutron and Glance.
pub(crate) fn stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The current time in the format of Octavia.
pub(crate) fn bare_stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// The current time in the format of Cinder and Designate.
pub(crate) fn fine_stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6f").to_string()
}
