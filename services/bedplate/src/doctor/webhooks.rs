//! Checks that the webhooks of a service take their events.

use api_client::shared::Webhook;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::finding::{Check, Findings};
use crate::api::Api;

/// How long an event may wait before the doctor calls its webhook slow.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

#[derive(Deserialize)]
struct Webhooks {
    webhooks: Vec<Webhook>,
}

/// Asks a service for its webhooks. A caller who may not see them, and an earlier version of the service, find nothing.
pub(crate) async fn look(program: &str, api: &Api, findings: &mut Findings) {
    if let Ok(Webhooks { webhooks }) = api.get("/bedplate/v1/webhooks").await {
        judge(program, &webhooks, Timestamp::now(), findings);
    }
}

fn judge(program: &str, webhooks: &[Webhook], now: Timestamp, findings: &mut Findings) {
    for webhook in webhooks {
        let Webhook { name, configured, waiting, waiting_since, dead, last_dead } = webhook;
        let is_late = waiting_since.is_some_and(|since| now.duration_since(since) > PATIENCE);
        if !configured {
            let what =
                format!("{program} has events for the webhook {name}, which is not configured");
            let next = "add the webhook to [events] again; otherwise its events are deleted when they are old";
            findings.warn(Check::Services, what, next);
        } else if let Some(newest) = last_dead.first() {
            let what = format!(
                "{program} gave up {dead} events for the webhook {name}, last {} of {}: {}",
                newest.event_type, newest.subject, newest.problem
            );
            let next = "check the receiver, and have it read the current state from the API, because these events are not sent again";
            findings.warn(Check::Services, what, next);
        } else if is_late {
            let what = format!("{waiting} events of {program} wait for the webhook {name}");
            let next =
                format!("check the receiver, and the log of {program} for the webhook's answers");
            findings.warn(Check::Services, what, next);
        } else {
            findings
                .ok(Check::Services, format!("the webhook {name} takes the events of {program}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::lines;

    fn judged(change: impl Fn(Webhook) -> Webhook) -> Vec<String> {
        let webhook = Webhook {
            name: "cmdb".to_owned(),
            configured: true,
            waiting: 0,
            waiting_since: None,
            dead: 0,
            last_dead: Vec::new(),
        };
        let mut findings = Findings::default();
        judge("baremetald", &[change(webhook)], Timestamp::UNIX_EPOCH, &mut findings);
        lines(&findings)
    }

    #[test]
    fn webhooks_that_take_nothing_are_doubtful() {
        let since = |ago| Some(Timestamp::UNIX_EPOCH - SignedDuration::from_secs(ago));
        let fine = ["fine: the webhook cmdb takes the events of baremetald"];
        assert_eq!(judged(|it| it), fine);
        assert_eq!(judged(|it| Webhook { waiting: 1, waiting_since: since(60), ..it }), fine);
        let late = judged(|it| Webhook { waiting: 7, waiting_since: since(3600), ..it });
        assert_eq!(late, ["doubtful: 7 events of baremetald wait for the webhook cmdb"]);
        let dead = judged(|it| {
            let event = api_client::shared::DeadEvent {
                event_type: "baremetal.node.create.end".to_owned(),
                subject: "n".to_owned(),
                problem: "the webhook answered 400 Bad Request".to_owned(),
            };
            Webhook { dead: 3, last_dead: vec![event], ..it }
        });
        assert!(dead[0].starts_with("doubtful: baremetald gave up 3 events for the webhook cmdb"));
        let other = judged(|it| Webhook { configured: false, ..it });
        assert!(other[0].ends_with("which is not configured"), "{other:?}");
    }
}
