//! Faults of the cloud: rules for calls, fates of objects, lags of lists.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::glob;
use crate::object::Kind;
use crate::settings::millis;

/// A fault rule: which calls it hits, and what happens to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Match only this method. `None` matches all.
    pub method: Option<String>,
    /// The path with the prefix of the service: `*` is one segment or a part of it, `**` any number of segments. The path of a call to a
    /// cluster's own API begins with `kubernetes:` instead of a slash.
    #[serde(default = "anything")]
    pub path: String,
    /// Match only calls whose body contains this text. `None` matches all.
    pub body_contains: Option<String>,
    /// How many matching calls pass before the rule hits.
    #[serde(default)]
    pub after: u32,
    /// How many calls the rule hits. `None` means no limit.
    pub times: Option<u32>,
    /// Milliseconds after which the rule ends. `None` means never.
    pub lasts_millis: Option<u32>,
    pub act: Act,
}

fn anything() -> String {
    "/**".to_owned()
}

/// The effect of a rule on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Act {
    /// The work is not done, and the client gets this answer.
    Answer {
        status: u16,
        /// Seconds for a `Retry-After` header. `None` omits the header.
        retry_after: Option<u32>,
        /// The message in the service's envelope.
        message: Option<String>,
    },
    /// The work starts `millis` late.
    Delay { millis: u32 },
    /// The work is not done and the client gets no answer. The connection closes when the rule ends.
    Hang,
    /// The work is done but the client gets no answer. The connection closes when the rule ends.
    HangAfterwards,
    /// The work is not done, and the connection is closed.
    Close,
    /// The work is done, and the connection is closed without an answer.
    LoseAnswer,
    /// The connection is closed at once, and the work is done `millis` later, as if a proxy had given up on a request that was still in
    /// progress.
    Land { millis: u32 },
    /// As `Land`, but the work is done when the rule ends.
    LandAfterwards,
}

impl Rule {
    /// A rule for a path and a method. An empty method matches all.
    pub fn new(method: &str, path: &str, act: Act) -> Rule {
        Rule {
            method: (!method.is_empty()).then(|| method.to_owned()),
            path: path.to_owned(),
            body_contains: None,
            after: 0,
            times: None,
            lasts_millis: None,
            act,
        }
    }

    /// Makes the rule hit only the n-th matching call, counted from 1.
    pub fn nth(self, number: u32) -> Rule {
        Rule { after: number.saturating_sub(1), times: Some(1), ..self }
    }

    /// Makes the rule hit only this number of calls.
    pub fn times(self, times: u32) -> Rule {
        Rule { times: Some(times), ..self }
    }

    /// Makes the rule end after this time.
    pub fn lasting(self, time: Duration) -> Rule {
        Rule { lasts_millis: Some(u32::try_from(time.as_millis()).unwrap_or(u32::MAX)), ..self }
    }
}

/// How new objects end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateOutcome {
    /// The kind: servers, load balancers, zones, recordsets, volumes, snapshots or images.
    pub kind: Kind,
    /// A pattern for names.
    #[serde(default = "any_name")]
    pub name: String,
    /// How many matching objects come up normally before the fate applies.
    #[serde(default)]
    pub after: u32,
    /// How many objects the fate applies to. `None` means no limit.
    pub times: Option<u32>,
    pub end: End,
}

fn any_name() -> String {
    "**".to_owned()
}

/// The end of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum End {
    /// The object stays in its first state.
    Stuck,
    /// The object ends in ERROR. The message is shown if the service has a field for one.
    Error(String),
    /// The server becomes ACTIVE, but its guest does nothing.
    NeverBoots,
    /// The object takes this many milliseconds instead of the usual time.
    Takes(u32),
}

/// A list that shows new objects late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lag {
    pub kind: Kind,
    /// Milliseconds until a new object appears.
    pub millis: u32,
}

#[derive(Debug)]
struct Active {
    id: u64,
    rule: Rule,
    seen: u32,
    hit: u32,
    made: Instant,
}

impl Active {
    fn is_over(&self, now: Instant) -> bool {
        self.rule.lasts_millis.is_some_and(|lasts| now >= self.made + millis(lasts))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Misbehaviour {
    rules: Vec<Active>,
    fates: Vec<(CreateOutcome, u32)>,
    pub(crate) lags: Vec<Lag>,
    next: u64,
}

impl Misbehaviour {
    pub(crate) fn add(&mut self, rule: Rule, now: Instant) -> u64 {
        self.next += 1;
        self.rules.push(Active { id: self.next, rule, seen: 0, hit: 0, made: now });
        self.next
    }

    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let before = self.rules.len();
        self.rules.retain(|active| active.id != id);
        self.rules.len() < before
    }

    pub(crate) fn clear(&mut self) {
        *self = Misbehaviour { next: self.next, ..Misbehaviour::default() };
    }

    pub(crate) fn has(&self, id: u64, now: Instant) -> bool {
        self.rules.iter().any(|active| active.id == id && !active.is_over(now))
    }

    /// Each rule with its id, the number of matching calls, and the number of hits.
    pub(crate) fn rules(&self) -> Vec<(u64, Rule, u32, u32)> {
        let row = |active: &Active| (active.id, active.rule.clone(), active.seen, active.hit);
        self.rules.iter().map(row).collect()
    }

    /// The effect on a call. Every matching rule counts the call, and the first rule that hits decides.
    pub(crate) fn on_call(
        &mut self,
        now: Instant,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Option<(u64, Act)> {
        let mut hit = None;
        for active in &mut self.rules {
            let rule = &active.rule;
            let matches = !active.is_over(now)
                && rule.method.as_deref().is_none_or(|only| only.eq_ignore_ascii_case(method))
                && glob::matches(&rule.path, path)
                && rule.body_contains.as_deref().is_none_or(|text| contains(body, text.as_bytes()));
            if !matches {
                continue;
            }
            active.seen += 1;
            let due = active.seen > rule.after && rule.times.is_none_or(|times| active.hit < times);
            if due && hit.is_none() {
                active.hit += 1;
                hit = Some((active.id, rule.act.clone()));
            }
        }
        hit
    }

    pub(crate) fn fate(&mut self, fate: CreateOutcome) {
        self.fates.push((fate, 0));
    }

    /// The fate of a new object. `None` means the usual.
    pub(crate) fn on_create(&mut self, kind: Kind, name: &str) -> Option<End> {
        for (fate, seen) in &mut self.fates {
            if fate.kind != kind || !glob::matches(&fate.name, name) {
                continue;
            }
            *seen += 1;
            let number = *seen;
            let times = fate.times.unwrap_or(u32::MAX);
            if number > fate.after && number - fate.after <= times {
                return Some(fate.end.clone());
            }
        }
        None
    }
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_hits_the_nth_call_that_matches_and_no_other() {
        let now = Instant::now();
        let mut all = Misbehaviour::default();
        let act = Act::Answer { status: 503, retry_after: None, message: None };
        all.add(Rule::new("POST", "/compute/v2.1/servers", act.clone()).nth(2), now);
        let mut call = |method, path| all.on_call(now, method, path, b"").map(|(_, act)| act);
        assert_eq!(call("POST", "/compute/v2.1/servers"), None);
        assert_eq!(call("GET", "/compute/v2.1/servers"), None);
        assert_eq!(call("POST", "/compute/v2.1/servers"), Some(act));
        assert_eq!(call("POST", "/compute/v2.1/servers"), None);
    }

    #[test]
    fn a_rule_ends_when_its_time_is_over() {
        let now = Instant::now();
        let mut all = Misbehaviour::default();
        let rule = Rule::new("", "/dns/**", Act::Close).lasting(Duration::from_secs(60));
        all.add(rule, now);
        assert!(all.on_call(now, "GET", "/dns/v2/zones", b"").is_some());
        assert!(all.on_call(now + Duration::from_secs(60), "GET", "/dns/v2/zones", b"").is_none());
    }

    #[test]
    fn a_fate_takes_the_objects_it_names_and_counts_them() {
        let mut all = Misbehaviour::default();
        let end = End::Error("no".into());
        all.fate(CreateOutcome {
            kind: Kind::Server,
            name: "w-*".into(),
            after: 1,
            times: Some(1),
            end,
        });
        assert_eq!(all.on_create(Kind::Server, "w-1"), None);
        assert_eq!(all.on_create(Kind::Volume, "w-2"), None);
        assert_eq!(all.on_create(Kind::Server, "w-2"), Some(End::Error("no".into())));
        assert_eq!(all.on_create(Kind::Server, "w-3"), None);
    }
}
