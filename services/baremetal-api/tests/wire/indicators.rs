//! Wire tests of indicators.

use baremetal_core::Driver;

use crate::api::{Api, ID, NEWEST};

#[tokio::test]
async fn indicators_are_listed_and_shown() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/management/indicators");
    let one = |name: &str, component: &str, readonly: bool, states: &str| {
        format!(
            r#"{{"component": "{component}", "name": "{name}", "readonly": {readonly}, "states": {states}, "links": [
                {{"href": "http://api:6385/v1/nodes/{ID}/management/indicators/{name}", "rel": "self"}},
                {{"href": "http://api:6385/nodes/{ID}/management/indicators/{name}", "rel": "bookmark"}}
            ]}}"#
        )
    };
    let chassis = one("led-0@chassis", "chassis", true, r#"["off", "on"]"#);
    let system = one("led@system", "system", false, r#"["blinking", "off", "on"]"#);
    let all = format!(r#"{{"indicators": [{chassis}, {system}]}}"#);
    // Ironic requires no version.
    api.send("GET", &path, "1.1", "").await.has(200).is(&all);
    api.get(&path).await.has(200).is(&all);
    for name in ["led@system", "led-0@chassis"] {
        api.get(&format!("{path}/{name}")).await.has(200).is(r#"{"state": "on"}"#);
    }
    for name in ["led", "led@zz", "zz@system"] {
        let why =
            format!("node \"{ID}\" has no indicator \"{name}\"; it has led-0@chassis, led@system");
        api.get(&format!("{path}/{name}")).await.refuses(400, &why);
    }
    api.get("/v1/nodes/zz/management/indicators").await.has(404);
}

#[tokio::test]
async fn an_indicator_of_a_fake_machine_cannot_be_set() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/management/indicators/led@system");
    let why =
        format!("node \"{ID}\" has the management interface fake, which cannot set indicators");
    api.send("PUT", &path, NEWEST, r#"{"state": "on"}"#).await.refuses(400, &why);
    for wrong in ["{}", r#"{"state": 1}"#] {
        api.send("PUT", &path, NEWEST, wrong).await.has(400);
    }
    api.edit(|node| node.driver = Driver::Ipmi).await;
    let why =
        format!("node \"{ID}\" has the management interface ipmitool, which knows no indicators");
    api.send("PUT", &path, NEWEST, r#"{"state": "on"}"#).await.refuses(400, &why);
    api.get(&format!("/v1/nodes/{ID}/management/indicators")).await.refuses(400, &why);
}
