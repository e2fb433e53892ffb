//! The libraries of CloudEvents and Standard Webhooks read the notifications of both services.

use std::fs;
use std::time::Duration;

use compat::receiver::Receiver;
use compat::wait::wait_for;
use compat::wire::Request;
use compat::{CommandLine, Service};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::coe::TEMPLATE;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A webhook with the file of its secrets.
struct Webhook {
    receiver: Receiver,
    folder: TempDir,
}

impl Webhook {
    fn start() -> Webhook {
        let receiver = Receiver::start("webhooks-requirements.txt", "webhook.py", &[SECRET]);
        let folder = tempfile::tempdir().expect("a folder can be made");
        let secrets = format!("{OTHER_SECRET}\n{SECRET}\n");
        fs::write(folder.path().join("secret"), secrets).expect("a file can be written");
        Webhook { receiver, folder }
    }

    /// The tables of a daemon that sends these events to the webhook.
    fn tables(&self, kinds: &str) -> String {
        let (url, secret) = (&self.receiver.url, self.folder.path().join("secret"));
        format!(
            "[events]\nretry_first = '100ms'\nlook_every = '50ms'\n[[events.webhooks]]\nname = 'cmdb'\nurl = '{url}'\n\
             secret_file = '{}'\ntypes = ['{kinds}']\nallow_local = true\n",
            secret.display()
        )
    }

    /// Waits until the webhook has taken an event of this type with this value in its data. Returns all events so far, each attempt counted.
    #[track_caller]
    fn until(&self, kind: &str, at: &str, value: &str) -> Vec<Value> {
        let mut all = Vec::new();
        self.receiver.until(kind, |event| {
            all.push(event.clone());
            let is_it = event["type"] == kind && event["data"].pointer(at) == Some(&json!(value));
            (is_it && event["taken"] == true).then_some(())
        });
        all
    }
}

/// Asserts that the events of one object came one after the other, and each again until it was taken.
#[track_caller]
fn assert_in_order(attempts: &[Value]) {
    for pair in attempts.chunks(2) {
        let [refused, taken] = pair else { panic!("{pair:?}") };
        assert_eq!((&refused["taken"], &taken["taken"]), (&json!(false), &json!(true)));
        let same = ["id", "type", "sequence", "data"].iter().all(|key| refused[key] == taken[key]);
        assert!(same, "{refused} is not {taken}");
    }
    let sequence = |event: &Value| event["sequence"].as_str().expect("it has a number").to_owned();
    assert!(attempts.windows(2).all(|two| sequence(&two[0]) <= sequence(&two[1])));
}

#[test]
fn a_webhook_reads_each_change_of_a_node_in_order() {
    let webhook = Webhook::start();
    let service = Service::machines_with(&webhook.tables("baremetal.node.*"));
    let node = json!({"driver": "fake-hardware", "name": "n", "driver_info": {"fake_password": "very-private"}});
    let node = Request::new("POST", "/v1/nodes").version("1.80").json(&node).send(&service.url);
    let node = node.expect(201).json()["uuid"].as_str().expect("a node has a UUID").to_owned();
    let verb = Request::new("PUT", "/v1/nodes/n/states/provision").version("1.80");
    verb.json(&json!({"target": "manage"})).send(&service.url).expect(202);

    let field = "/ironic_object.data/provision_state";
    let attempts = webhook.until("baremetal.node.provision_set.end", field, "manageable");
    assert_in_order(&attempts);
    let created = &attempts[0];
    assert_eq!(created["type"], "baremetal.node.create.end");
    assert_eq!(created["data"]["ironic_object.name"], "NodeCRUDPayload");
    assert_eq!(created["data"]["ironic_object.data"]["name"], "n");
    let states: Vec<&Value> = attempts
        .iter()
        .filter(|it| it["taken"] == true && it["type"].as_str().unwrap().contains("provision_set"))
        .map(|it| &it["data"]["ironic_object.data"]["provision_state"])
        .collect();
    assert_eq!(states, ["verifying", "manageable"]);
    for event in &attempts {
        assert_eq!((&event["subject"], &event["level"]), (&json!(node), &json!("info")));
        assert!(event["source"].as_str().unwrap().starts_with("/baremetald/"), "{event}");
        assert!(!event.to_string().contains("very-private"), "{event}");
    }

    // The last event may still be removed.
    let shown = wait_for("no event to wait", Duration::from_secs(30), || {
        let shown = service.ask("GET", "/bedplate/v1/webhooks").expect(200).json();
        (shown["webhooks"][0]["waiting"] == 0).then_some(shown)
    });
    assert_eq!(shown["webhooks"][0]["name"], "cmdb");
    assert_eq!(shown["webhooks"][0]["last_dead"], json!([]));
}

#[test]
fn a_webhook_reads_the_life_of_a_cluster() {
    let webhook = Webhook::start();
    let service = Service::clusters_with(&webhook.tables("magnum.*"));
    let mut client = CommandLine::coe(&service.url);
    client.done(TEMPLATE);
    client.done(&["cluster", "create", "c", "--cluster-template", "t"]);
    client.done(&["cluster", "delete", "c"]);
    let attempts = webhook.until("magnum.cluster.delete", "/outcome", "success");
    assert_in_order(&attempts);
    let created = &attempts[0];
    let action = (&created["type"], &created["data"]["outcome"]);
    assert_eq!(action, (&json!("magnum.cluster.create"), &json!("pending")));
    assert_eq!(created["data"]["target"]["name"], "c");
    assert_eq!(created["data"]["target"]["id"], created["subject"]);
    assert!(created["source"].as_str().unwrap().starts_with("/clusterd/"), "{created}");
}
