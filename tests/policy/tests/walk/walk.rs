//! The walk: every caller tries each step, and each result is compared with the policy table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uuid::Uuid;

use crate::people::{ROLES, Relation, TestCaller};
use crate::service::{Answer, Service};

/// The resource that a step uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepSubject {
    /// No resource of anybody.
    Nobodys,
    /// Lists the resources that the caller may see.
    List,
    /// A resource of project A that is lent to project L, named in the path or the body.
    Thing,
    /// Lists resources of persons.
    PersonsList,
    /// A resource of one person in project A. Of the other members of the project, only those who manage the project may access it.
    Persons,
    /// A resource of project A without a lessee.
    Own,
    /// Lists resources without lessees.
    OwnList,
    /// The quota of project A. The existence of the project is no secret.
    Project,
}

impl StepSubject {
    /// How the caller is related to the resource of this step.
    fn standing(self, person: &TestCaller) -> Relation {
        let is_persons = matches!(self, StepSubject::Persons | StepSubject::PersonsList);
        match (self, person.standing) {
            (StepSubject::Own | StepSubject::OwnList, Relation::Lessee(role)) => {
                Relation::Stranger(role)
            }
            // The resource belongs to another person, and the caller does not manage the project.
            (_, Relation::Owner(role @ ("reader" | "member")))
                if is_persons && person.name != OWNER =>
            {
                Relation::Stranger(role)
            }
            (_, of) => of,
        }
    }
}

/// A request that tries a route.
pub(crate) struct Step {
    pub(crate) method: &'static str,
    /// The path as in the table; names in braces are replaced by the resource or the word of that name.
    pub(crate) path: &'static str,
    /// A text `"{name}"` in the body is replaced in the same way.
    pub(crate) body: Value,
    pub(crate) about: StepSubject,
}

/// Words for path parameters that name no resource.
const WORDS: [(&str, &str); 13] = [
    ("backup", "none"),
    ("discovery", "02:00:00:00:00:02"),
    ("driver", "fake-hardware"),
    ("host", "r1u07"),
    ("indicator", "led@system"),
    ("key", "none"),
    ("method", "third_method_sync"),
    ("nodegroup", "default-worker"),
    ("resource", "Cluster"),
    ("setting", "none"),
    ("thing", "none"),
    ("trait", "CUSTOM_FAST"),
    ("user", "ann"),
];

/// Routes that are not `GET` and are not recorded: a plan only predicts a change, and agents report at short intervals without a user.
const UNRECORDED: [&str; 5] = [
    "/bedplate/v1/clusters/{cluster}/upgrade/plan",
    "/bedplate/v1/plan",
    "/v1/continue_inspection",
    "/v1/heartbeat",
    "/v1/heartbeat/{node}",
];

/// The path parameters that name resources of the bare metal service. As in Ironic, it answers 404 to callers of a project who do not see
/// the resource, even if they lack the role.
const HIDDEN: [&str; 7] =
    ["allocation", "connector", "node", "port", "portgroup", "runbook", "target"];

/// Ids of resources by the names of their path parameters.
pub(crate) type ResourceIds = BTreeMap<&'static str, String>;

impl Step {
    /// Whether the step needs the resource of this path parameter. A list must show every resource that the caller may see.
    pub(crate) fn needs(&self, name: &str) -> bool {
        let name = format!("{{{name}}}");
        let is_list = matches!(
            self.about,
            StepSubject::List | StepSubject::OwnList | StepSubject::PersonsList
        );
        is_list || self.path.contains(&name) || self.body.to_string().contains(&name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Unknown,
    Forbidden,
    /// 404 or a similar answer: for this caller the resource does not exist.
    Hidden,
    /// None of the other results.
    LetIn,
}

/// The walk with a real Keystone tries every fifth step: its tokens and roles are the same on all routes, and the walk with an emulated
/// Keystone tries each route.
pub(crate) const WITH_KEYSTONE: usize = 5;

/// Lets every caller try every `every`-th step. `make` creates new resources that the step needs, because a step may delete its resource.
pub(crate) async fn walk(
    service: &Service,
    steps: &[Step],
    every: usize,
    make: impl AsyncFn(&Step) -> ResourceIds,
) {
    let table = service.ask_as("system-admin", "GET", "/bedplate/v1/policy", &Value::Null).await;
    let table = table.has(200).json();
    let rows = table["policy"].as_array().unwrap();
    // Every other route that changes something must be recorded.
    let silent = rows.iter().filter(|row| row["method"] != "GET" && row["recorded"] != true);
    let silent: Vec<&str> = silent.map(|row| row["path"].as_str().unwrap()).collect();
    assert!(silent.iter().all(|path| UNRECORDED.contains(path)), "{silent:?}");
    let routes = rows.iter().map(|row| {
        (row["method"].as_str().unwrap().to_owned(), row["path"].as_str().unwrap().to_owned())
    });
    let walked = steps.iter().map(|step| (step.method.to_owned(), step.path.to_owned()));
    assert_eq!(
        routes.collect::<BTreeSet<_>>(),
        walked.collect::<BTreeSet<_>>(),
        "left: the table's routes, right: the walk's"
    );

    let mut wrong = Vec::new();
    for step in steps.iter().step_by(every) {
        let mut things = make(step).await;
        let is_it = |row: &&Value| row["method"] == step.method && row["path"] == step.path;
        let row = rows.iter().find(is_it).unwrap();
        for person in &service.people {
            let answer = tried(service, step, person, &things).await;
            let standing = step.about.standing(person);
            let (want, got) = (expected(row, step, standing), outcome(&answer, &things));
            let mut why = (want != got).then(|| format!("{got:?}, the table says {want:?}"));
            if got == Outcome::Hidden
                && !is_indistinguishable_from_missing(service, step, person, &things).await
            {
                why = Some("what is not there is answered otherwise".to_owned());
            }
            if got == Outcome::LetIn
                && matches!(
                    step.about,
                    StepSubject::List | StepSubject::OwnList | StepSubject::PersonsList
                )
            {
                let shown = things.values().any(|id| answer.text.contains(id.as_str()));
                if shown != sees(row, standing) {
                    why = Some(format!("the list shows it: {shown}"));
                }
            }
            if let Some(why) = why {
                let Step { method, path, .. } = step;
                let Answer { status, text } = &answer;
                wrong.push(format!("{method} {path} by {}: {why}: {status} {text}", person.name));
            }
            if step.method != "GET" && answer.status < 400 {
                things = make(step).await;
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn tried(
    service: &Service,
    step: &Step,
    person: &TestCaller,
    things: &ResourceIds,
) -> Answer {
    let (path, body) = (filled(step.path, things), filled(&step.body.to_string(), things));
    let body = serde_json::from_str(&body).unwrap();
    let answer = service.ask(person.token.as_deref(), step.method, &path, &body).await;
    // A service that cannot reach its cloud answers 503.
    let is_broken = answer.status >= 500 && answer.status != 503;
    assert!(!is_broken, "{} {path} {body}: {}", step.method, answer.text);
    answer
}

/// Whether a missing resource and a hidden one get the same answer.
async fn is_indistinguishable_from_missing(
    service: &Service,
    step: &Step,
    person: &TestCaller,
    things: &ResourceIds,
) -> bool {
    let others: ResourceIds =
        things.keys().map(|name| (*name, Uuid::new_v4().to_string())).collect();
    let there = tried(service, step, person, things).await;
    let absent = tried(service, step, person, &others).await;
    there.status == absent.status && outcome(&absent, &others) == Outcome::Hidden
}

fn filled(text: &str, things: &ResourceIds) -> String {
    let things = things.iter().map(|(name, id)| (*name, id.as_str()));
    things
        .chain(WORDS)
        .fold(text.to_owned(), |it, (name, id)| it.replace(&format!("{{{name}}}"), id))
}

fn outcome(answer: &Answer, things: &ResourceIds) -> Outcome {
    let missing = |id: &String| answer.text.contains(&format!("{id} could not be found"));
    match answer.status {
        401 => Outcome::Unknown,
        403 => Outcome::Forbidden,
        400 | 404 if things.values().any(missing) => Outcome::Hidden,
        _ => Outcome::LetIn,
    }
}

/// Whether a caller with this relation must find the resource in a list.
fn sees(row: &Value, standing: Relation) -> bool {
    match standing {
        Relation::Service => row["services"] == true,
        Relation::Cloud(_) | Relation::Owner(_) | Relation::Lessee(_) => true,
        Relation::Unknown | Relation::Stranger(_) | Relation::Nothing => false,
    }
}

/// The caller in project A who owns the personal resources.
pub(crate) const OWNER: &str = "project-a-member";

/// The result that `row` of the table requires.
fn expected(row: &Value, step: &Step, standing: Relation) -> Outcome {
    let rank = |role: &str| ROLES.iter().position(|it| *it == role).unwrap();
    let needed = |column: &str| row[column].as_str().map(rank);
    let enough = |role: &str, needed: Option<usize>| match needed {
        Some(needed) if rank(role) >= needed => Outcome::LetIn,
        Some(_) | None => Outcome::Forbidden,
    };
    let least = needed("owner").into_iter().chain(needed("lessee")).min();
    let hides = HIDDEN.iter().any(|name| step.path.contains(&format!("{{{name}}}")));
    let in_project = |role: &str, relation: Option<&str>| {
        let gate = enough(role, least);
        match (gate, step.about, relation) {
            (_, StepSubject::Thing | StepSubject::Own, None) if hides => Outcome::Hidden,
            (
                Outcome::LetIn,
                StepSubject::Thing | StepSubject::Own | StepSubject::Persons,
                None,
            ) => Outcome::Hidden,
            (Outcome::LetIn, StepSubject::Project, None) => Outcome::Forbidden,
            (
                Outcome::LetIn,
                StepSubject::Thing | StepSubject::Own | StepSubject::Persons,
                Some(column),
            ) => enough(role, needed(column)),
            (gate, ..) => gate,
        }
    };
    match standing {
        _ if row["public"] == true => Outcome::LetIn,
        Relation::Unknown => Outcome::Unknown,
        Relation::Nothing => Outcome::Forbidden,
        Relation::Cloud(role) => enough(role, needed("cloud")),
        Relation::Service if row["services"] == true => Outcome::LetIn,
        Relation::Service => in_project("member", None),
        Relation::Owner(role) => in_project(role, Some("owner")),
        Relation::Lessee(role) => in_project(role, Some("lessee")),
        Relation::Stranger(role) => in_project(role, None),
    }
}
