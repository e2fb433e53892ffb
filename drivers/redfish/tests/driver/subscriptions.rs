//! Tests of subscriptions to events over a real socket.

use std::sync::Arc;

use axum::response::IntoResponse;
use bmc::{BmcError, EventSubscriptions};
use hardware::{NewSubscription, Subscription};
use redfish::Auth;
use serde_json::{Value, json};

use crate::fixture::{Fixture, empty, json, refusal, silent};

/// A service with two subscriptions, whose paths end with a slash.
const TREE: &str = r##"{
  "/redfish/v1": {"EventService": {"@odata.id": "/redfish/v1/EventService"}, "Systems": {"@odata.id": "/redfish/v1/Systems"}},
  "/redfish/v1/EventService": {
    "EventTypesForSubscription": ["Alert", "StatusChange"],
    "Subscriptions": {"@odata.id": "/redfish/v1/EventService/Subscriptions/"}
  },
  "/redfish/v1/EventService/Subscriptions": {
    "@odata.id": "/redfish/v1/EventService/Subscriptions/", "@odata.type": "#EventDestinationCollection.EventDestinationCollection",
    "Name": "Event Subscriptions", "Description": "Who gets events", "Members@odata.count": 2,
    "Members": [{"@odata.id": "/redfish/v1/EventService/Subscriptions/1/"}, {"@odata.id": "/redfish/v1/EventService/Subscriptions/2/"}]
  },
  "/redfish/v1/EventService/Subscriptions/1": {"Id": "1", "Context": "", "Protocol": "Redfish", "Destination": "https://a.example/", "EventTypes": ["Alert"]},
  "/redfish/v1/EventService/Subscriptions/2": {"Id": "2", "Destination": "https://b.example/", "Oem": {"x": 1}},
  "/redfish/v1/Systems": {"Members": []}
}"##;

const NEW: &str = "/redfish/v1/EventService/Subscriptions/3";

fn events(fixture: &Fixture) -> Arc<dyn EventSubscriptions> {
    fixture.bmc(Auth::Basic).events.expect("Redfish has events")
}

fn wish() -> NewSubscription {
    NewSubscription {
        destination: "https://events.example/bmc".to_owned(),
        context: "r1u7".to_owned(),
        event_types: vec!["Alert".to_owned()],
        headers: vec![("Authorization".to_owned(), "Basic eA==".to_owned())],
    }
}

#[tokio::test]
async fn subscriptions_are_listed_and_found_by_their_ids() {
    let fixture = Fixture::serve(TREE, silent).await;
    let events = events(&fixture);
    assert_eq!(events.event_types().await.unwrap(), ["Alert", "StatusChange"]);
    let listed = events.list().await.unwrap();
    let paths = ["1", "2"].map(|id| format!("/redfish/v1/EventService/Subscriptions/{id}/"));
    assert_eq!(
        (listed.members, listed.name.as_deref()),
        (paths.to_vec(), Some("Event Subscriptions"))
    );

    let found = events.find("1").await.unwrap().unwrap();
    assert_eq!(found.destination.as_deref(), Some("https://a.example/"));
    assert_eq!(
        (found.context.as_deref(), found.event_types),
        (Some(""), Some(vec!["Alert".to_owned()]))
    );
    let bare = events.find("2").await.unwrap().unwrap();
    assert_eq!((bare.context, bare.protocol, bare.event_types), (None, None, None));
    assert_eq!(events.find("3").await.unwrap(), None);
}

#[tokio::test]
async fn an_id_leads_to_no_other_resource() {
    let fixture =
        Fixture::serve(TREE, |asked, _| (asked.method == "DELETE").then(|| empty(204))).await;
    let events = events(&fixture);
    for id in ["", ".", "..", "../../Systems", "1/", "Subscriptions", "%31", "1?x", "1#x"] {
        assert!(!events.delete(id).await.unwrap(), "{id}");
    }
    assert_eq!(fixture.changes(), "");
    assert!(events.delete("2").await.unwrap());
    assert_eq!(fixture.changes(), "DELETE /redfish/v1/EventService/Subscriptions/2/ null");
}

#[tokio::test]
async fn a_subscription_that_vanishes_is_not_there() {
    let fixture =
        Fixture::serve(TREE, |asked, _| (asked.method == "DELETE").then(|| empty(404))).await;
    assert!(!events(&fixture).delete("2").await.unwrap());
}

/// A service that answers a new subscription with this location and this body.
async fn answering(location: Option<&'static str>, body: Value) -> Fixture {
    Fixture::serve(TREE, move |asked, tree| {
        if asked.method != "POST" {
            return None;
        }
        let mut made = asked.body.clone();
        made["Id"] = json!("3");
        tree.insert(NEW.to_owned(), made);
        let answer = json(201, body.clone());
        Some(match location {
            Some(location) => ([("location", location)], answer).into_response(),
            None => answer,
        })
    })
    .await
}

#[tokio::test]
async fn a_new_subscription_is_read_from_whichever_answer_the_bmc_gives() {
    let document =
        json!({"Id": "3", "Destination": "https://events.example/bmc", "Context": "r1u7"});
    let message = json!({"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.4.Created"}]}});
    for (location, body) in [
        (Some(NEW), json!({})),
        (Some(NEW), message.clone()),
        (None, document.clone()),
        // The address has the BMC's own name.
        (Some("https://bmc.example/redfish/v1/EventService/Subscriptions/3"), document),
        (None, json!({"@odata.id": NEW})),
    ] {
        let fixture = answering(location, body.clone()).await;
        let made: Subscription = events(&fixture).create(&wish()).await.unwrap();
        assert_eq!(made.id.as_deref(), Some("3"), "{body}");
        assert_eq!(made.destination.as_deref(), Some("https://events.example/bmc"));
        let sent = r#"{"Context":"r1u7","Destination":"https://events.example/bmc","EventTypes":["Alert"],"HttpHeaders":[{"Authorization":"Basic eA=="}],"Protocol":"Redfish"}"#;
        let changes = fixture.changes();
        assert_eq!(changes, format!("POST /redfish/v1/EventService/Subscriptions/ {sent}"));
    }
    let fixture = answering(None, message).await;
    let error = events(&fixture).create(&wish()).await.unwrap_err();
    assert!(matches!(error, BmcError::Malformed { .. }), "{error:?}");
}

#[tokio::test]
async fn a_refusal_of_the_bmc_is_passed_on_without_the_headers() {
    let fixture = Fixture::serve(TREE, |asked, _| {
        let wrong = || refusal(400, "Base.1.13.PropertyValueFormatError", "not Basic eA==, please");
        (asked.method == "POST").then(wrong)
    })
    .await;
    let error = events(&fixture).create(&wish()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the BMC refused POST /redfish/v1/EventService/Subscriptions/: 400 Bad Request: not ***, please"
    );
    assert!(!format!("{error:?}").contains("eA=="));
}

#[tokio::test]
async fn a_bmc_without_an_event_service_has_no_events() {
    let none = |tree: &mut std::collections::BTreeMap<String, Value>| {
        tree.get_mut("/redfish/v1").unwrap().as_object_mut().unwrap().remove("EventService");
    };
    let fixture = Fixture::serve(TREE, move |_, tree| {
        none(tree);
        None
    })
    .await;
    let error = events(&fixture).list().await.unwrap_err();
    assert_eq!(error.to_string(), "this BMC cannot send its events to others");

    let fixture = Fixture::serve(TREE, |_, tree| {
        let service = tree.get_mut("/redfish/v1/EventService").unwrap();
        service.as_object_mut().unwrap().remove("EventTypesForSubscription");
        None
    })
    .await;
    assert!(events(&fixture).event_types().await.unwrap().contains(&"MetricReport".to_owned()));
}
