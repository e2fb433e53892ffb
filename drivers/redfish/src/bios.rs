//! The settings of the firmware (DSP0268 `Bios`), and their descriptions in the attribute registry (DSP0268 `AttributeRegistry`).

use std::collections::BTreeMap;

use async_trait::async_trait;
use bmc::{Bios, BmcError, Result};
use hardware::{BiosAttribute, BiosValue, BiosValues};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use url::Url;

use crate::document::{Document, one_line};
use crate::service::{Resource, Service};

const RESET: &str = "#Bios.ResetBios";
const MOST_SETTINGS: usize = 4096;
/// The longest name of a setting, in bytes.
const LONGEST_NAME: usize = 255;
/// The most files of registries that are read to find the one of the firmware.
const MOST_FILES: usize = 8;

#[async_trait]
impl Bios for Service {
    async fn values(&self) -> Result<BiosValues> {
        let bios = self.bios().await?;
        let settings = self.bios_settings(&bios).await?;
        let pending = settings.map(|it| values(it.body.at("Attributes"))).unwrap_or_default();
        Ok(BiosValues {
            current: values(bios.body.at("Attributes")),
            pending,
            messages: failures(bios.body.at("@Redfish.Settings")),
        })
    }

    async fn attributes(&self) -> Result<BTreeMap<String, BiosAttribute>> {
        let bios = self.bios().await?;
        let registry = match bios.body.text("AttributeRegistry") {
            Some(id) => self.registry(&id).await?,
            None => None,
        };
        let registry = registry.unwrap_or_default();
        let entries = registry.at("RegistryEntries").items("Attributes");
        Ok(entries.iter().take(MOST_SETTINGS).filter_map(attribute).collect())
    }

    async fn request(&self, values: &BTreeMap<String, BiosValue>) -> Result<()> {
        let bios = self.bios().await?;
        let nothing = || cannot("change BIOS settings: it has no settings resource");
        let settings = self.bios_settings(&bios).await?.ok_or_else(nothing)?;
        let values: Map<String, Value> =
            values.iter().map(|(name, value)| (name.clone(), written(value))).collect();
        let mut change = json!({"Attributes": values});
        let times = bios.body.at("@Redfish.Settings").words("SupportedApplyTimes");
        if times.is_some_and(|times| times.contains(&"OnReset")) {
            // DSP0266 §9.10: without a time, the service may apply the change at another time.
            change["@Redfish.SettingsApplyTime"] = json!({"@odata.type": "#Settings.v1_0_0.PreferredApplyTime", "ApplyTime": "OnReset"});
        }
        self.patch_for_next_start(&settings, change).await
    }

    async fn request_reset(&self) -> Result<()> {
        let bios = self.bios().await?;
        let nothing = || cannot("reset BIOS settings: it has no action ResetBios");
        let action = self.action(&bios.body, RESET).ok_or_else(nothing)?;
        // Some BMCs refuse an action without a body, so a body is always sent (sushy, `reset_bios`).
        let answer = self.post(&action, json!({})).await?.accepted(&self.origin.host())?;
        self.watch_for_next_start(answer).await
    }
}

impl Service {
    async fn bios(&self) -> Result<Resource> {
        let system = self.system().await?;
        let nothing = || cannot("show BIOS settings: it has no Bios resource");
        let url = self.link(&system.body, "Bios").ok_or_else(nothing)?;
        let answer = self.fetch(&url).await?;
        let is_missing = [StatusCode::NOT_FOUND, StatusCode::NOT_IMPLEMENTED];
        if is_missing.contains(&answer.status) {
            return Err(nothing());
        }
        self.resource(&url, answer)
    }

    /// Reads the resource that accepts changes (`@Redfish.Settings`, DSP0266 §9.10).
    async fn bios_settings(&self, bios: &Resource) -> Result<Option<Resource>> {
        match self.link(bios.body.at("@Redfish.Settings"), "SettingsObject") {
            Some(url) => self.get(&url).await.map(Some),
            None => Ok(None),
        }
    }

    /// Reads the attribute registry `id`; `None` if the BMC does not have the registry.
    async fn registry(&self, id: &str) -> Result<Option<Value>> {
        let Some(files) = self.root().await?.registries.clone() else { return Ok(None) };
        let Some(mut files) = self.list(&files, usize::MAX).await? else { return Ok(None) };
        files.sort_by_key(|file| distance(file, id));
        for file in files.into_iter().take(MOST_FILES) {
            let Some(file) = self.whole(file).await? else { continue };
            let Some(location) = self.location(&file) else { continue };
            let answer = self.fetch_large(&location).await?;
            let Ok(registry) = self.resource(&location, answer) else { continue };
            let names = [file.word("Id"), file.word("Registry"), registry.body.word("Id")];
            if names.iter().any(|name| is_same_registry(name, id)) {
                return Ok(Some(registry.body));
            }
        }
        Ok(None)
    }

    /// Returns the address of a registry in English, or in any language if there is none in English.
    fn location(&self, file: &Value) -> Option<Url> {
        let locations = file.items("Location");
        let english = locations.iter().find(|it| it.word("Language").starts_with("en"));
        let uri = english.or(locations.first())?.at("Uri");
        self.origin.follow(uri.as_str().or_else(|| uri.id())?).ok()
    }
}

fn cannot(what: &str) -> BmcError {
    BmcError::Unsupported { what: what.to_owned() }
}

/// Ranks the link to a registry's file: servers have dozens of registries, and each is large.
fn distance(file: &Value, id: &str) -> u8 {
    let link = file.id().unwrap_or_default();
    let name = link.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    match name {
        name if is_same_registry(name, id) => 0,
        _ if lower.contains("bios") => 1,
        _ if lower.contains("attribute") => 2,
        _ => 3,
    }
}

/// Whether both names are the same registry, also if one of them lacks the version: `BiosAttributeRegistry.v1_0_0`.
fn is_same_registry(one: &str, other: &str) -> bool {
    let stem = |name: &str| name.split(".v").next().unwrap_or_default().to_owned();
    !one.is_empty() && (one == other || stem(one) == other || one == stem(other))
}

fn values(attributes: &Value) -> BTreeMap<String, BiosValue> {
    let attributes = attributes.as_object().into_iter().flatten();
    let named = attributes.filter(|(name, _)| is_name(name)).take(MOST_SETTINGS);
    named.map(|(name, read)| (name.clone(), value(read))).collect()
}

/// Whether a setting can have this name. Annotations are no settings (DSP0266 §9.1).
fn is_name(name: &str) -> bool {
    let is_clean = !name.contains(|c: char| c.is_control() || c == '@');
    is_clean && !name.is_empty() && name.len() <= LONGEST_NAME
}

fn value(read: &Value) -> BiosValue {
    match read {
        Value::Bool(on) => BiosValue::Boolean(*on),
        Value::Number(number) => match number.as_i64() {
            Some(number) => BiosValue::Integer(number),
            None => BiosValue::Text(number.to_string()),
        },
        Value::String(text) => BiosValue::Text(one_line(text)),
        Value::Null | Value::Array(_) | Value::Object(_) => BiosValue::Unknown,
    }
}

fn written(value: &BiosValue) -> Value {
    match value {
        BiosValue::Unknown => Value::Null,
        BiosValue::Boolean(on) => json!(on),
        BiosValue::Integer(number) => json!(number),
        BiosValue::Text(text) => json!(text),
    }
}

/// Reads an entry of the registry: the name of the setting, and its description.
fn attribute(entry: &Value) -> Option<(String, BiosAttribute)> {
    let name = entry.word("AttributeName");
    let number = |name: &str| entry.number(name).map(|number| number as i64);
    let words = entry.items("Value").iter();
    let words = words.filter_map(|it| it.text("ValueName").or_else(|| it.text("ValueDisplayName")));
    let described = BiosAttribute {
        attribute_type: entry.text("Type"),
        allowable_values: words.collect(),
        lower_bound: number("LowerBound"),
        upper_bound: number("UpperBound"),
        min_length: number("MinLength"),
        max_length: number("MaxLength"),
        read_only: entry.truth("ReadOnly"),
        reset_required: entry.truth("ResetRequired"),
        unique: entry.truth("IsSystemUniqueProperty"),
    };
    is_name(name).then(|| (name.to_owned(), described))
}

/// Returns the messages about values that the firmware did not take.
fn failures(settings: &Value) -> Vec<String> {
    let is_failure = |message: &&Value| {
        let severity = message.text("MessageSeverity").or_else(|| message.text("Severity"));
        severity.is_some_and(|severity| severity != "OK")
    };
    let messages = settings.items("Messages").iter().filter(is_failure).take(MOST_FILES);
    messages.filter_map(|message| message.text("Message")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_keep_their_types() {
        let read = values(&json!({
            "A": "Enabled", "B": true, "C": -3, "D": null, "E": 1.5, "F": [], "X@odata.type": "", "": "x"
        }));
        let want = [
            ("A", BiosValue::Text("Enabled".to_owned())),
            ("B", BiosValue::Boolean(true)),
            ("C", BiosValue::Integer(-3)),
            ("D", BiosValue::Unknown),
            ("E", BiosValue::Text("1.5".to_owned())),
            ("F", BiosValue::Unknown),
        ];
        assert_eq!(read, want.map(|(name, value)| (name.to_owned(), value)).into());
    }

    #[test]
    fn a_registry_is_found_by_its_name_with_or_without_a_version() {
        let id = "BiosAttributeRegistry.v1_0_0";
        assert!(is_same_registry(id, id));
        assert!(is_same_registry("BiosAttributeRegistry", id));
        assert!(!is_same_registry("BiosAttributeRegistry.v1_0_1", id));
        assert!(!is_same_registry("", ""));
        let file = |name: &str| json!({"@odata.id": format!("/redfish/v1/Registries/{name}")});
        let mut files = ["Base.1.0", "NetworkAttributeRegistry", "BiosRegistry", id].map(file);
        files.sort_by_key(|file| distance(file, id));
        assert_eq!(files, [id, "BiosRegistry", "NetworkAttributeRegistry", "Base.1.0"].map(file));
    }

    #[test]
    fn an_entry_of_the_registry_is_read() {
        let entry = json!({
            "AttributeName": "Delay", "Type": "Integer", "LowerBound": 0, "UpperBound": "255", "ReadOnly": false,
            "ResetRequired": true, "Value": [{"ValueName": "a"}, {"ValueDisplayName": "b"}, {}, 7],
        });
        let want = BiosAttribute {
            attribute_type: Some("Integer".to_owned()),
            allowable_values: vec!["a".to_owned(), "b".to_owned()],
            lower_bound: Some(0),
            upper_bound: Some(255),
            read_only: Some(false),
            reset_required: Some(true),
            ..BiosAttribute::default()
        };
        assert_eq!(attribute(&entry), Some(("Delay".to_owned(), want)));
        assert_eq!(attribute(&json!({"Type": "String"})), None);
    }

    proptest! {
        #[test]
        fn no_registry_panics(name: String, bound: f64, words in proptest::collection::vec(".*", 0..3)) {
            let words: Vec<Value> = words.iter().map(|word| json!({"ValueName": word})).collect();
            attribute(&json!({"AttributeName": name, "LowerBound": bound, "Value": words}));
            values(&json!({name: bound}));
        }
    }
}
