//! A trap that stops a client at each of its calls in turn, so that a test can kill the client there.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The point of a call at which the client is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Before the work is done.
    Before,
    /// After the work is done and before the answer.
    After,
}

pub(crate) struct Stopped {
    pub(crate) stop: Stop,
    /// The identity of the caught call. `None` for a call that only came after the caught one.
    call: Option<String>,
    /// The opening of the trap that the call waits for.
    pub(crate) opening: u64,
}

/// Stops every `every`-th call once. After that, no work is done until the trap is opened again, as if the client had died at that moment.
#[derive(Debug, Default)]
pub(crate) struct Trap {
    stop: Option<Stop>,
    every: usize,
    known: BTreeSet<String>,
    is_shut: bool,
    caught: Option<String>,
    openings: u64,
}

impl Trap {
    /// Resets the trap. No call is known then.
    pub(crate) fn set(&mut self, stop: Option<Stop>, every: usize) {
        *self = Trap { stop, every, openings: self.openings + 1, ..Trap::default() };
    }

    /// Releases the caught call and waits for the next new call.
    pub(crate) fn open(&mut self) {
        (self.is_shut, self.caught) = (false, None);
        self.openings += 1;
    }

    /// The call in the trap. With [`Stop::After`], its work is done.
    pub(crate) fn caught(&self) -> Option<String> {
        self.caught.clone()
    }

    /// Whether the trap has not been opened since `opening`.
    pub(crate) fn holds(&self, opening: u64) -> bool {
        self.openings == opening
    }

    /// Decides whether a call is stopped.
    pub(crate) fn on_call(
        &mut self,
        method: &str,
        path: &str,
        query: &str,
        body: &[u8],
    ) -> Option<Stopped> {
        let stop = self.stop?;
        let opening = self.openings;
        if self.is_shut {
            return Some(Stopped { stop: Stop::Before, call: None, opening });
        }
        let call = identity(method, path, query, body);
        if !self.known.insert(call.clone()) || !(self.known.len() - 1).is_multiple_of(self.every) {
            return None;
        }
        self.is_shut = true;
        Some(Stopped { stop, call: Some(call), opening })
    }

    /// Records the caught call, after its work was done if it is stopped afterwards.
    pub(crate) fn hold(&mut self, stopped: &Stopped) {
        if self.holds(stopped.opening) && stopped.call.is_some() {
            self.caught.clone_from(&stopped.call);
        }
    }
}

/// A key that is equal for a repeated call. Only the name in the body counts, because other contents may change with time.
fn identity(method: &str, path: &str, query: &str, body: &[u8]) -> String {
    let mut text = format!("{method} {path}");
    if !query.is_empty() {
        text = format!("{text}?{query}");
    }
    match serde_json::from_slice::<Value>(body).ok().as_ref().and_then(name) {
        Some(name) => format!("{text} {name}"),
        // The body of a delete only has preconditions, such as the uid of the object.
        None if body.is_empty() || method == "DELETE" => text,
        None => {
            let digest = Sha256::digest(body);
            let hash: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{text} {hash}")
        }
    }
}

/// The name in a body, or in the object that the body wraps.
fn name(body: &Value) -> Option<&str> {
    let own = |value: &'_ Value| value.get("name").is_some_and(|it| it.as_str() != Some(""));
    let map = body.as_object()?;
    let found = if own(body) { body } else { map.values().find(|value| own(value))? };
    found["name"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(trap: &mut Trap, body: &str) -> Option<Stop> {
        let stopped = trap.on_call("POST", "/network/v2.0/ports", "", body.as_bytes())?;
        trap.hold(&stopped);
        Some(stopped.stop)
    }

    #[test]
    fn deletes_with_other_preconditions_are_the_same_call() {
        let delete = |uid: &str| {
            let body = format!(r#"{{"preconditions":{{"uid":"{uid}"}}}}"#);
            identity("DELETE", "/api/v1/namespaces/a/pods/b", "", body.as_bytes())
        };
        assert_eq!(delete("1"), delete("2"));
        assert_ne!(identity("PUT", "/a", "", b"1"), identity("PUT", "/a", "", b"2"));
    }

    #[test]
    fn each_call_is_stopped_once_and_so_are_all_later_calls() {
        let mut trap = Trap::default();
        let (one, two) = (r#"{"port":{"name":"a","n":1}}"#, r#"{"port":{"name":"b"}}"#);
        assert_eq!(call(&mut trap, one), None);
        trap.set(Some(Stop::After), 1);
        assert_eq!(call(&mut trap, one), Some(Stop::After));
        assert_eq!(call(&mut trap, two), Some(Stop::Before));
        assert_eq!(trap.caught().as_deref(), Some("POST /network/v2.0/ports a"));
        trap.open();
        assert_eq!(trap.caught(), None);
        assert_eq!(call(&mut trap, r#"{"port":{"name":"a","n":2}}"#), None);
        assert_eq!(call(&mut trap, two), Some(Stop::After));
        trap.set(None, 1);
        assert_eq!(call(&mut trap, two), None);
    }

    #[test]
    fn every_third_call_is_stopped_from_the_first_on() {
        let mut trap = Trap::default();
        trap.set(Some(Stop::Before), 3);
        for (name, is_stopped) in
            [("a", true), ("b", false), ("b", false), ("c", false), ("d", true)]
        {
            let body = format!(r#"{{"port":{{"name":"{name}"}}}}"#);
            assert_eq!(call(&mut trap, &body).is_some(), is_stopped, "{name}");
            trap.open();
        }
    }
}
