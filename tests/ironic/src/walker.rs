//! Sends the requests of a walk to a service.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use compat::wire::{self, Reply};
use serde_json::Value;

use crate::answer::{Answer, Names, Status};
use crate::walk::{NEWEST, Request, Step, Wait, Walk};

/// The answers to a request, one for each of its versions.
pub type Answers = Vec<(u8, Answer)>;

/// The answers to a walk, by the files of its requests.
pub type Answered = BTreeMap<String, Vec<(String, Answers)>>;

/// The answer of a wait that ended with its states.
pub const REACHED: &str = "reached";

/// The answer of a wait that ended without its states.
pub const NOT_REACHED: &str = "not reached";

/// The answer of a request that was not sent, because the recorded service failed with an internal error.
pub const OMITTED: &str = "omitted";

/// How the internal errors of the recorded service are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InternalErrors {
    /// The service has the same errors: it is the recorded one.
    Same,
    /// The errors are defects, so the service must not have them, and every other answer is right. A change that ended with an internal error
    /// is not requested: the recorded service did not make it, and every later answer would differ.
    Defects,
}

/// The interval between two checks of a resource.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The fields of a node that a wait also records, because a lock that is free does not tell where the node is.
const STATES: [&str; 2] = ["provision_state", "target_provision_state"];

/// A service that gets the requests of a walk.
#[derive(Debug)]
pub struct Walker {
    names: Names,
    patience: Duration,
}

impl Walker {
    /// Makes a walker for the service at `url`, `http://HOST:PORT`. A wait takes at most `patience`.
    pub fn new(url: &str, patience: Duration) -> Walker {
        let url = url.trim_end_matches('/').to_owned();
        let mut walker = Walker { names: Names { url, ..Names::default() }, patience };
        // A service answers before its conductor has registered.
        let end = Instant::now() + patience;
        while walker.names.conductor.is_none() && Instant::now() < end {
            let reply = walker.send("GET", "/v1/conductors", NEWEST, |request| request);
            let conductors: Value = serde_json::from_str(&reply.body).unwrap_or_default();
            let name = conductors["conductors"][0]["hostname"].as_str();
            walker.names.conductor = name.map(str::to_owned);
            sleep(LOOK_EVERY);
        }
        walker
    }

    /// Sends all requests, in order. A wait ends in the states that are recorded, if there is a recording.
    ///
    /// A request is not sent if no answer contained the value of its variable. Its answer then tells this.
    pub fn walk(&mut self, walk: &Walk, recorded: &Answered, errors: InternalErrors) -> Answered {
        let mut answered = Answered::new();
        for (subject, steps) in walk {
            let recorded = recorded.get(subject).map(Vec::as_slice).unwrap_or_default();
            let of_step = |(at, step): (usize, &Step)| {
                let recorded = recorded.get(at).map(|it| &it.1);
                let answers = match step {
                    Step::Request(request) => {
                        let defects = recorded.filter(|_| errors == InternalErrors::Defects);
                        self.requests(request, defects)
                    }
                    Step::Wait(wait) => vec![(NEWEST, self.wait(wait, recorded))],
                };
                (step.line(), answers)
            };
            answered.insert(subject.clone(), steps.iter().enumerate().map(of_step).collect());
        }
        answered
    }

    /// Sends a request in each of its versions, except where it would make a change that ended with a defect.
    fn requests(&mut self, request: &Request, defects: Option<&Answers>) -> Answers {
        let failed = |version: u8| {
            let found = defects.and_then(|it| it.iter().find(|(at, _)| *at == version));
            let is_change = !request.line.starts_with("GET ");
            is_change && found.is_some_and(|it| matches!(it.1.status, Status::Http(500..)))
        };
        let mut answers = Answers::new();
        for version in request.options.versions() {
            let answer = match failed(version) {
                true => Answer::other(OMITTED),
                false => self.request(request, version),
            };
            answers.push((version, answer));
        }
        answers
    }

    fn request(&mut self, request: &Request, version: u8) -> Answer {
        let reply = self.reply(request, version);
        let body = reply.as_ref().ok().and_then(|it| serde_json::from_str(&it.body).ok());
        let body: Value = body.unwrap_or_default();
        for (name, pointer) in &request.options.keep {
            match body.pointer(pointer) {
                Some(Value::String(value)) => {
                    self.names.variables.insert(name.clone(), value.clone())
                }
                Some(value) => self.names.variables.insert(name.clone(), value.to_string()),
                None => self.names.variables.remove(name),
            };
        }
        match reply {
            Ok(reply) => Answer::of(&reply, &self.names),
            Err(variable) => not_run(&variable),
        }
    }

    fn reply(&self, request: &Request, version: u8) -> Result<Reply, String> {
        let line = self.names.filled(&request.line)?;
        let (method, path) = line.split_once(' ').unwrap_or_default();
        let options = &request.options;
        let body = options.body.as_ref().map(|body| self.names.filled_body(body)).transpose()?;
        let mut headers = Vec::new();
        for (name, value) in &options.headers {
            headers.push((name, self.names.filled(value)?));
        }
        Ok(self.send(method, path, version, |mut sent| {
            for (name, value) in &headers {
                sent = sent.header(name, value);
            }
            match (&body, &options.raw) {
                (Some(body), _) => sent.json(body),
                (None, Some(raw)) => {
                    sent.body(raw.text.as_bytes()).header("Content-Type", &raw.content_type)
                }
                (None, None) => sent,
            }
        }))
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        version: u8,
        complete: impl FnOnce(wire::Request) -> wire::Request,
    ) -> Reply {
        let request = wire::Request::new(method, path).header("Accept", "application/json");
        let request = match version {
            0 => request,
            minor => request.version(&format!("1.{minor}")),
        };
        complete(request).send(&self.names.url)
    }

    fn wait(&self, wait: &Wait, recorded: Option<&Answers>) -> Answer {
        let path = match self.names.filled(&wait.path) {
            Ok(path) => path,
            Err(variable) => return not_run(&variable),
        };
        let recorded = recorded.and_then(|it| it.first()).and_then(|it| it.1.body.as_object());
        let wanted = recorded.unwrap_or(&wait.fields);
        let end = Instant::now() + self.patience;
        loop {
            let reply = self.send("GET", &path, NEWEST, |request| request);
            let seen: Value = serde_json::from_str(&reply.body).unwrap_or_default();
            let is_reached = wanted.iter().all(|(name, value)| seen.get(name) == Some(value));
            if is_reached || reply.status != 200 || Instant::now() > end {
                let names = wait.fields.keys().map(String::as_str).chain(STATES);
                let fields = names.filter_map(|it| Some((it.to_owned(), seen.get(it)?.clone())));
                let status = if is_reached { REACHED } else { NOT_REACHED };
                return Answer { body: Value::Object(fields.collect()), ..Answer::other(status) };
            }
            sleep(LOOK_EVERY);
        }
    }
}

fn not_run(variable: &str) -> Answer {
    Answer::other(format!("not run: no earlier answer contained {{{variable}}}"))
}
