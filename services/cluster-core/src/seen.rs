//! What was seen of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;

use serde::{Deserialize, Serialize};

use crate::{AuthoritiesSeen, Failure, Held, Key, MachineRef, Rule, ServerFacts};

/// What was seen of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// When the cloud was last looked at; `None` where it never was.
    pub at: Option<Timestamp>,
    /// What the cloud has of it.
    pub objects: BTreeMap<Key, Found>,
    /// What its machines and its Kubernetes said.
    pub machines: BTreeMap<MachineRef, MachineSeen>,
    /// What runs in it, where its Kubernetes answers.
    pub add_ons: Option<AddOnsSeen>,
    /// Which authorities machines hold.
    pub authorities: AuthoritiesSeen,
    /// Its machines that drains of hosts take out.
    pub drained: BTreeSet<MachineRef>,
    /// What the cloud failed at.
    pub failures: BTreeMap<Key, Failure>,
    /// What is not asked for yet, for the cloud failed at it before.
    pub held: BTreeMap<Key, Held>,
    /// Why nothing is known of its Kubernetes, where it was asked and gave no answer that can be used.
    pub api_silence: Option<String>,
    /// Why things do not go on, where somebody knows.
    pub problem: Option<Problem>,
}

/// What runs in a cluster of what is to be applied there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddOnsSeen {
    /// Those that are not there as they should be, and why.
    pub missing: BTreeMap<String, String>,
    /// The generation of the credential that they use.
    pub credential: Option<u32>,
}

/// An object that the cloud has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its id in the cloud.
    pub id: String,
    /// How it is.
    pub state: FoundState,
    /// Its address: a port's, a floating one's.
    pub address: Option<IpAddr>,
    /// What of it may change.
    pub facts: Facts,
}

/// How an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundState {
    /// The cloud is at work on it.
    Working,
    /// It is as it should be.
    Ready,
    /// The cloud gave up on it, saying this.
    Failed(String),
    /// It is being deleted.
    Leaving,
}

/// What of an object may change after it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Facts {
    /// Nothing.
    #[default]
    None,
    /// A security group's rules.
    Rules(BTreeSet<Rule>),
    /// The addresses behind a load balancer, or in a DNS record.
    Addresses(BTreeSet<IpAddr>),
    /// What a server is doing.
    Server(ServerFacts),
}

/// Why things do not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// One word: `QuotaExceeded`, `CloudUnreachable`.
    pub reason: String,
    /// What happened, for people.
    pub message: String,
    /// What to do about it.
    pub next_action: String,
    /// Whether it will not pass by itself.
    pub is_final: bool,
}

/// What a machine and its Kubernetes said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSeen {
    /// How far it has come in becoming a node.
    pub bootstrap: Bootstrap,
    /// What Kubernetes says of it.
    pub node: NodeHealth,
    /// Whether it is a member of etcd.
    pub is_etcd_member: bool,
    /// Whether its pods have been moved away.
    pub is_drained: bool,
    /// When its server was asked for.
    pub asked_at: Option<Timestamp>,
}

/// How far a machine has come in becoming a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bootstrap {
    /// It has not been heard of.
    Silent,
    /// It is at this step.
    At(String),
    /// It is a node.
    Done,
    /// It cannot become one, for this reason.
    Failed(String),
}

/// What Kubernetes says of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeHealth {
    /// It does not answer.
    Unknown,
    /// It does not know it.
    Absent,
    /// It is ready.
    Ready,
    /// It has not been ready since.
    NotReady {
        /// Since when.
        since: Timestamp,
    },
}

impl Default for MachineSeen {
    fn default() -> Self {
        MachineSeen {
            bootstrap: Bootstrap::Silent,
            node: NodeHealth::Absent,
            is_etcd_member: false,
            is_drained: false,
            asked_at: None,
        }
    }
}

impl Found {
    /// Whether it is as it should be.
    pub fn is_ready(&self) -> bool {
        self.state == FoundState::Ready
    }
}
