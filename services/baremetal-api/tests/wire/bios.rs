//! Wire tests of BIOS settings and firmware components.

use baremetal_core::NewBiosSetting;
use hardware::{BiosAttribute, Firmware};

use crate::api::{Api, ID, NEWEST};

/// An API whose node has two settings.
async fn with_settings() -> Api {
    let api = Api::start().await;
    api.enroll("").await;
    let setting = |name: &str, value: Option<&str>| NewBiosSetting {
        name: name.to_owned(),
        value: value.map(str::to_owned),
        attribute: BiosAttribute::default(),
    };
    let mut mode = setting("BootMode", Some("Uefi"));
    mode.attribute = BiosAttribute {
        attribute_type: Some("Enumeration".to_owned()),
        allowable_values: vec!["Bios".to_owned(), "Uefi".to_owned()],
        reset_required: Some(true),
        ..BiosAttribute::default()
    };
    let at = "2026-01-02T03:04:05Z".parse().unwrap();
    let settings = [mode, setting("Asset", None)];
    api.store.apply_bios_settings(ID.parse().unwrap(), &settings, at).await.unwrap();
    api
}

/// A setting with links, times and these fields.
fn shown(name: &str, fields: &str) -> String {
    format!(
        r#"{{"created_at": "2026-01-02T03:04:05.000000+00:00", "updated_at": null, "links": [
            {{"href": "http://api:6385/v1/nodes/{ID}/bios/{name}", "rel": "self"}},
            {{"href": "http://api:6385/nodes/{ID}/bios/{name}", "rel": "bookmark"}}
        ], {fields}}}"#
    )
}

const ASSET: &str = r#""name": "Asset", "value": null"#;
const MODE: &str = r#""name": "BootMode", "value": "Uefi""#;
const NOTHING_TOLD: &str = r#""attribute_type": null, "allowable_values": [], "lower_bound": null, "upper_bound": null,
    "min_length": null, "max_length": null, "read_only": null, "reset_required": null, "unique": null"#;
const MODE_TOLD: &str = r#""attribute_type": "Enumeration", "allowable_values": ["Bios", "Uefi"], "lower_bound": null,
    "upper_bound": null, "min_length": null, "max_length": null, "read_only": null, "reset_required": true, "unique": null"#;

#[tokio::test]
async fn settings_are_listed_with_the_selected_fields() {
    let api = with_settings().await;
    let path = format!("/v1/nodes/{ID}/bios");
    let all = |asset: &str, mode: &str| {
        format!(r#"{{"bios": [{}, {}]}}"#, shown("Asset", asset), shown("BootMode", mode))
    };
    let brief = all(ASSET, MODE);
    api.send("GET", &path, "1.39", "").await.has(404);
    api.send("GET", &path, "1.40", "").await.has(200).is(&brief);
    api.get(&path).await.has(200).is(&brief);
    api.get(&format!("{path}?detail=false")).await.has(200).is(&brief);
    let [asset, mode] =
        [(ASSET, NOTHING_TOLD), (MODE, MODE_TOLD)].map(|(one, more)| format!("{one}, {more}"));
    api.get(&format!("{path}?detail=true")).await.has(200).is(&all(&asset, &mode));
    let selected = all(
        r#""name": "Asset", "reset_required": null"#,
        r#""name": "BootMode", "reset_required": true"#,
    );
    let query = "fields=name,reset_required,links";
    api.get(&format!("{path}?{query}")).await.has(200).is(&selected);

    for query in ["detail=true", query] {
        api.send("GET", &format!("{path}?{query}"), "1.73", "").await.has(400);
    }
    let why = "fields: a setting has no field \"zz\"";
    api.get(&format!("{path}?fields=zz")).await.refuses(400, why);
    let why = "fields: cannot be used together with detail";
    api.get(&format!("{path}?fields=name&detail=true")).await.refuses(400, why);
}

#[tokio::test]
async fn one_setting_is_shown() {
    let api = with_settings().await;
    let path = format!("/v1/nodes/{ID}/bios/BootMode");
    let brief = format!(r#"{{"BootMode": {}}}"#, shown("BootMode", MODE));
    api.send("GET", &path, "1.39", "").await.has(404);
    api.send("GET", &path, "1.73", "").await.has(200).is(&brief);
    let whole =
        format!(r#"{{"BootMode": {}}}"#, shown("BootMode", &format!("{MODE}, {MODE_TOLD}")));
    api.get(&path).await.has(200).is(&whole);
    let why = format!("node {ID} has no BIOS setting \"zz\"");
    api.get(&format!("/v1/nodes/{ID}/bios/zz")).await.refuses(404, &why);
    api.get("/v1/nodes/zz/bios/BootMode").await.has(404);

    api.store.reset_bios_settings(ID.parse().unwrap()).await.unwrap();
    api.get(&format!("/v1/nodes/{ID}/bios")).await.has(200).is(r#"{"bios": []}"#);
}

#[tokio::test]
async fn firmware_components_are_listed_with_their_versions() {
    let api = Api::start().await;
    api.enroll("").await;
    let read =
        |version: &str| [Firmware { component: "bmc".to_owned(), version: version.to_owned() }];
    let at = |time: &str| time.parse().unwrap();
    api.edit(|node| {
        let first = node.with_firmware(&read("7.10"), at("2026-01-02T03:04:05Z"));
        *node = first.with_firmware(&read("7.20"), at("2026-02-02T03:04:05Z"));
    })
    .await;
    let path = format!("/v1/nodes/{ID}/firmware");
    let times = r#""created_at": "2026-01-02T03:04:05.000000+00:00", "updated_at": "2026-02-02T03:04:05.000000+00:00""#;
    let versions = r#""component": "bmc", "initial_version": "7.10", "current_version": "7.20", "last_version_flashed": "7.20""#;
    let identity = r#""vendor": null, "model": null, "serial_number": null"#;
    let old = format!(r#"{{"firmware": [{{{times}, {versions}}}]}}"#);
    api.send("GET", &path, "1.86", "").await.has(200).is(&old);
    let new = format!(r#"{{"firmware": [{{{times}, {versions}, {identity}}}]}}"#);
    api.get(&path).await.has(200).is(&new);
    let one = format!(r#"{{"firmware": [{{{times}, "current_version": "7.20"}}]}}"#);
    let path = format!("{path}?fields=current_version,created_at");
    api.get(&path).await.has(200).is(&one);
}

#[tokio::test]
async fn firmware_has_no_components() {
    let api = Api::start().await;
    api.enroll("").await;
    let path = format!("/v1/nodes/{ID}/firmware");
    let nothing = r#"{"firmware": []}"#;
    api.send("GET", &path, "1.85", "").await.has(404);
    api.send("GET", &path, "1.86", "").await.has(200).is(nothing);
    api.get(&format!("{path}?fields=component,vendor")).await.has(200).is(nothing);
    let why = "fields: in this version, a component has no field \"vendor\"";
    api.send("GET", &format!("{path}?fields=vendor"), "1.113", "").await.refuses(400, why);
    api.send("GET", &format!("{path}?detail=true"), NEWEST, "").await.has(400);
    api.get("/v1/nodes/zz/firmware").await.has(404);
}
