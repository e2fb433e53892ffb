//! A collector that is made of OpenTelemetry's own classes reads the traces of both services.

use std::collections::BTreeMap;

use compat::Service;
use compat::receiver::Receiver;
use compat::wire::Request;
use serde_json::{Value, json};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// A span as OTLP has it in JSON: ids in base64, attributes by their names.
struct Span {
    name: String,
    kind: String,
    id: String,
    parent: String,
    attributes: BTreeMap<String, Value>,
    json: String,
}

fn collector() -> Receiver {
    Receiver::start("traces-requirements.txt", "collector.py", &[])
}

/// The configuration of a daemon that records only the traces of callers.
fn tables(collector: &Receiver) -> String {
    format!("[traces]\nendpoint = '{}'\nsample = 0\n", collector.url)
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let pairs = of["attributes"].as_array().into_iter().flatten();
    let pairs = pairs.map(|it| {
        let value = it["value"].as_object().and_then(|value| value.values().next()).cloned();
        (it["key"].as_str().unwrap_or_default().to_owned(), value.unwrap_or_default())
    });
    pairs.collect()
}

/// Returns the spans of a request to the collector.
fn spans(request: &Value) -> Vec<Span> {
    let resources = request["resourceSpans"].as_array().into_iter().flatten();
    let scopes = resources.flat_map(|it| it["scopeSpans"].as_array().into_iter().flatten());
    let spans = scopes.flat_map(|it| it["spans"].as_array().into_iter().flatten());
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    spans
        .map(|it| Span {
            name: text(it, "name"),
            kind: text(it, "kind"),
            id: text(it, "spanId"),
            parent: text(it, "parentSpanId"),
            attributes: attributes(it),
            json: it.to_string(),
        })
        .collect()
}

/// The bytes of hexadecimal digits in base64, as Python's JSON shows them.
fn base64(hex: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("the id is hex");
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(digits).collect();
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = three.iter().fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[test]
fn a_collector_reads_the_trace_of_a_request_and_of_the_work_that_follows() {
    let collector = collector();
    let service = Service::machines_with(&tables(&collector));
    let ask = |method: &str, path: &str| {
        let parent = format!("00-{TRACE}-{CALLER}-01");
        Request::new(method, path).version("1.80").header("traceparent", &parent)
    };
    let node = json!({"driver": "fake-hardware", "name": "very-private"});
    // Nobody asked for a trace of this request.
    let node = Request::new("POST", "/v1/nodes").version("1.80").json(&node).send(&service.url);
    let node = node.expect(201).json()["uuid"].as_str().expect("a node has a UUID").to_owned();
    let verb = ask("PUT", "/v1/nodes/very-private/states/provision");
    let verb = verb.json(&json!({"target": "manage"})).send(&service.url).expect(202);
    let request_id = verb.header("openstack-request-id").expect("an answer has an id").to_owned();

    let mut all = Vec::new();
    let turn = collector.until("a turn", |request| {
        let resource = attributes(&request["resourceSpans"][0]["resource"]);
        assert_eq!(resource["service.name"], "baremetald");
        all.extend(spans(request));
        all.iter().position(|span| span.name == "node turn")
    });
    let by_name = |name: &str| all.iter().find(|span| span.name == name).expect(name);
    let server = by_name("PUT /v1/nodes/{node}/states/provision");
    assert_eq!((&*server.kind, &*server.parent), ("SPAN_KIND_SERVER", &*base64(CALLER)));
    assert_eq!(server.attributes["http.response.status_code"], "202");
    assert_eq!(server.attributes["bedplate.request.id"], json!(request_id));
    let turn = &all[turn];
    assert_eq!((&turn.kind[..], &turn.parent), ("SPAN_KIND_CONSUMER", &server.id));
    assert_eq!(turn.attributes["bedplate.node.id"], json!(node));
    let write = by_name("update_node");
    assert_eq!(write.attributes["db.system.name"], "sqlite");
    assert!([&server.id, &turn.id].contains(&&write.parent), "{}", write.json);
    for span in &all {
        assert!(span.json.contains(&base64(TRACE)), "{}", span.json);
        assert!(!span.json.contains("very-private"), "{}", span.json);
    }
}

#[test]
fn clusterd_traces_its_requests() {
    let collector = collector();
    let service = Service::clusters_with(&tables(&collector));
    let parent = format!("00-{TRACE}-{CALLER}-01");
    Request::new("GET", "/v1/clusters").header("traceparent", &parent).send(&service.url);
    let span = collector.until("a request", |request| {
        let resource = attributes(&request["resourceSpans"][0]["resource"]);
        assert_eq!(resource["service.name"], "clusterd");
        spans(request).pop()
    });
    assert_eq!((&*span.name, &*span.parent), ("GET /v1/clusters", &*base64(CALLER)));
}
