//! The links of a service root, and the links that were found so far.

use std::sync::Arc;

use serde_json::Value;
use url::Url;

use crate::document::Document;
use crate::origin::Origin;

/// The links that were found so far. They are forgotten when one of their addresses answers 404.
#[derive(Debug, Default)]
pub(crate) struct Links {
    pub(crate) root: Option<Arc<Root>>,
    pub(crate) system: Option<Url>,
    pub(crate) drive: Option<Url>,
    /// Whether the system was read and has no link to a SecureBoot resource.
    pub(crate) lacks_secure_boot: bool,
}

/// The service root (DSP0268 `ServiceRoot`).
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) systems: Option<Url>,
    pub(crate) managers: Option<Url>,
    pub(crate) chassis: Option<Url>,
    pub(crate) update_service: Option<Url>,
    /// The AccountService.
    pub(crate) accounts: Option<Url>,
    /// The EventService.
    pub(crate) events: Option<Url>,
    /// The TaskService.
    pub(crate) tasks: Option<Url>,
    pub(crate) registries: Option<Url>,
    pub(crate) session_service: Option<Url>,
    pub(crate) sessions: Option<Url>,
    /// The query that makes a collection include its members as whole resources.
    pub(crate) expand: Option<&'static str>,
}

impl Root {
    pub(crate) fn read(root: &Value, origin: &Origin) -> Self {
        let follow = |link: Option<&str>| origin.follow(link?).ok();
        Root {
            systems: follow(root.link("Systems")),
            managers: follow(root.link("Managers")),
            chassis: follow(root.link("Chassis")),
            update_service: follow(root.link("UpdateService")),
            accounts: follow(root.link("AccountService")),
            events: follow(root.link("EventService")),
            tasks: follow(root.link("Tasks")),
            registries: follow(root.link("Registries")),
            session_service: follow(root.link("SessionService")),
            sessions: follow(root.at("Links").link("Sessions")),
            expand: expand(root.at("ProtocolFeaturesSupported").at("ExpandQuery")),
        }
    }
}

/// DSP0266 §7.3.1: `.` expands what a resource contains, `*` also what it refers to.
fn expand(supported: &Value) -> Option<&'static str> {
    let has = |name| supported.truth(name) == Some(true);
    match (has("NoLinks"), has("ExpandAll"), has("Levels")) {
        (true, _, true) => Some("$expand=.($levels=1)"),
        (true, _, false) => Some("$expand=."),
        (false, true, true) => Some("$expand=*($levels=1)"),
        (false, true, false) => Some("$expand=*"),
        (false, false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(features: Value, want: Option<&str>) {
        assert_eq!(expand(&features), want);
    }

    #[test]
    fn the_cheapest_expansion_is_asked_for() {
        check(json!({"NoLinks": true, "Levels": true}), Some("$expand=.($levels=1)"));
        check(json!({"NoLinks": true}), Some("$expand=."));
        check(json!({"ExpandAll": true, "NoLinks": false}), Some("$expand=*"));
        check(json!({"Links": true, "Levels": true}), None);
        check(json!(null), None);
    }

    #[test]
    fn a_root_of_nonsense_has_no_links() {
        let origin = Origin::of(&"http://bmc/".parse().unwrap());
        let root = Root::read(
            &json!({"Systems": 7, "Links": [], "Managers": {"@odata.id": "http://x/"}}),
            &origin,
        );
        assert!(root.systems.is_none() && root.managers.is_none() && root.sessions.is_none());
    }
}
