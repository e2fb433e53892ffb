//! Secrets in documents: sealed before they are written, and unsealed only by the code that uses them.

use std::sync::Arc;

use baremetal_core::{DeployTemplate, InspectionRule, Node, Profile, Runbook, Stored, is_secret};
use sealing::{DecryptedSecret, Keyring, SealError, SealingKeys, id_of, is_sealed};
use secrecy::SecretString;
use serde_json::{Map, Value};
use uuid::Uuid;
use zeroize::Zeroizing;

type Object = Map<String, Value>;

/// Unseals the secrets of nodes, racks and profiles. Clones share the keys.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// The keys; `None` if nothing is sealed.
    keys: Option<Arc<Keyring>>,
}

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("must be text")]
    NotText,
}

impl Secrets {
    pub(crate) fn of(keys: Option<Arc<Keyring>>) -> Self {
        Secrets { keys }
    }

    /// Returns a text of the node's `driver_info`, unsealed if it is sealed.
    pub fn text(&self, node: &Node, key: &str) -> Result<Option<SecretString>, SecretError> {
        match node.driver_info.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => match self.opened(&driver_info(node), key, text) {
                None => Ok(Some(SecretString::from(text.as_str()))),
                Some(opened) => {
                    let text = serde_json::from_slice::<SecretString>(&opened?);
                    text.map(Some).map_err(|_| SecretError::NotText)
                }
            },
            Some(_) => Err(SecretError::NotText),
        }
    }

    /// Returns the node with the secrets of its `instance_info` unsealed.
    pub fn with_instance(&self, node: &Node) -> Result<Node, SealError> {
        let mut node = node.clone();
        let place = instance_info(&node);
        self.open_in(&place, &mut node.instance_info)?;
        Ok(node)
    }

    /// Returns the node with the secrets of its steps' arguments unsealed.
    pub fn with_steps(&self, node: &Node) -> Result<Node, SealError> {
        let mut node = node.clone();
        let place = steps(&node);
        let args = node.step_args_mut();
        args.into_iter().try_for_each(|args| self.open_in(&place, args))?;
        Ok(node)
    }

    /// Returns the deploy template with its secrets unsealed.
    pub fn with_template(&self, it: &Stored<DeployTemplate>) -> Result<DeployTemplate, SealError> {
        let mut template = it.content.clone();
        let place = resource(it.id);
        let mut args = template.steps.iter_mut().map(|it| &mut it.step.args);
        args.try_for_each(|args| self.open_in(&place, args))?;
        Ok(template)
    }

    /// Returns the runbook with its secrets unsealed.
    pub fn with_runbook(&self, it: &Stored<Runbook>) -> Result<Runbook, SealError> {
        let mut runbook = it.content.clone();
        let place = resource(it.id);
        let mut args = runbook.steps.iter_mut().map(|it| &mut it.step.args);
        args.try_for_each(|args| self.open_in(&place, args))?;
        Ok(runbook)
    }

    /// Returns the inspection rule with its secrets unsealed; of a sensitive rule these are all conditions and actions.
    pub fn with_rule(
        &self,
        it: &Stored<InspectionRule>,
    ) -> Result<Stored<InspectionRule>, SealError> {
        let broken = |_| SealError::CannotOpen;
        let mut document = serde_json::to_value(&it.content).map_err(broken)?;
        if let Value::Object(document) = &mut document {
            self.open_in(&resource(it.id), document)?;
        }
        let content = serde_json::from_value(document).map_err(broken)?;
        Ok(Stored { content, ..it.clone() })
    }

    /// Unseals the secrets in an object of a rack's document.
    pub fn open_rack(&self, name: &str, info: &mut Object) -> Result<(), SealError> {
        self.open_in(&rack(name), info)
    }

    /// Returns the profile with its secrets unsealed.
    pub fn with_profile(&self, profile: &Profile) -> Result<Profile, SealError> {
        let broken = |_| SealError::CannotOpen;
        let mut document = serde_json::to_value(profile).map_err(broken)?;
        if let Value::Object(document) = &mut document {
            self.open_in(&of_profile(profile.name.as_str()), document)?;
        }
        serde_json::from_value(document).map_err(broken)
    }

    /// Replaces unchanged secrets in the `driver_info` of `after` by their sealed form in `before`. Sealing uses a random nonce, so a node
    /// with an unchanged password would otherwise count as changed.
    pub fn keep_unchanged_seals(&self, before: &Node, after: &mut Node) {
        let place = driver_info(before);
        for (key, value) in &mut after.driver_info {
            let Some(Value::String(sealed)) = before.driver_info.get(key) else { continue };
            let Some(Ok(opened)) = self.opened(&place, key, sealed) else { continue };
            let said = serde_json::to_vec(value).map(Zeroizing::new);
            if said.is_ok_and(|said| **said == *opened) {
                *value = Value::String(sealed.clone());
            }
        }
    }

    /// Returns the unsealed value of this key, or `None` if the text is in the clear.
    fn opened(
        &self,
        place: &str,
        key: &str,
        text: &str,
    ) -> Option<Result<DecryptedSecret, SealError>> {
        let keys = self.keys.as_ref().filter(|_| is_secret(key) && is_sealed(text))?;
        Some(keys.open_sealed(&sealed_place(place, key), text))
    }

    fn open_in(&self, place: &str, object: &mut Object) -> Result<(), SealError> {
        each(object, &mut |key, value| {
            let Value::String(text) = &*value else { return Ok(()) };
            if let Some(opened) = self.opened(place, key, text) {
                *value = serde_json::from_slice(&opened?).map_err(|_| SealError::CannotOpen)?;
            }
            Ok(())
        })
    }
}

/// The value of `sealed_by` in rows without secrets.
pub(crate) const NO_SECRETS: &str = "-";

/// Seals every secret of a node that is in the clear, and re-encrypts the secrets that another key than the first has sealed.
pub(crate) fn seal_node(keys: &SealingKeys, node: &mut Node) -> Result<(), SealError> {
    let (driver, instance, steps) = (driver_info(node), instance_info(node), steps(node));
    seal_in(keys, &driver, &mut node.driver_info)?;
    // In the place of the present password, which it replaces as it is.
    if let Some(rotation) = &mut node.password_rotation {
        seal_in(keys, &driver, &mut rotation.wanted)?;
    }
    seal_in(keys, &instance, &mut node.instance_info)?;
    let mut args = node.step_args_mut();
    args.try_for_each(|args| seal_in(keys, &steps, args))
}

/// Returns the key that sealed the node's secrets: [`NO_SECRETS`] if the node has no secrets, and `None` if one is in the clear.
pub(crate) fn node_sealed_by(node: &Node) -> Option<&str> {
    let mut by = Some(NO_SECRETS);
    let args = node.step_args();
    let infos = [&node.driver_info, &node.instance_info].into_iter().chain(wanted(node));
    for info in infos.chain(args) {
        look_in(info, &mut by);
    }
    by
}

/// Like [`node_sealed_by`], for any document.
pub(crate) fn sealed_by(document: &Value) -> Option<&str> {
    let mut by = Some(NO_SECRETS);
    look_at(document, &mut by);
    by
}

/// Like [`node_sealed_by`], for a resource's document, of which only the fields `parts` contain secrets.
pub(crate) fn resource_sealed_by<'a>(document: &'a Value, parts: &[&str]) -> Option<&'a str> {
    let mut by = Some(NO_SECRETS);
    parts.iter().filter_map(|part| document.get(part)).for_each(|part| look_at(part, &mut by));
    by
}

fn look_in<'a>(object: &'a Object, by: &mut Option<&'a str>) {
    for (key, value) in object {
        if !is_secret(key) {
            look_at(value, by);
        } else if !value.is_null() {
            let sealed = value.as_str().filter(|text| is_sealed(text));
            *by = by.and_then(|_| id_of(sealed?));
        }
    }
}

fn look_at<'a>(value: &'a Value, by: &mut Option<&'a str>) {
    match value {
        Value::Object(object) => look_in(object, by),
        Value::Array(values) => values.iter().for_each(|value| look_at(value, by)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns one sealed secret of the node that this key has sealed, with the place that it was sealed for.
pub(crate) fn sample_of_node(node: &Node, key: &str) -> Option<(String, String)> {
    let infos =
        [(&node.driver_info, driver_info(node)), (&node.instance_info, instance_info(node))];
    let args = node.step_args();
    let wanted = wanted(node).map(|wanted| (wanted, driver_info(node)));
    let all = infos.into_iter().chain(wanted).chain(args.map(|args| (args, steps(node))));
    all.into_iter().find_map(|(info, place)| sample_in(info, &place, key))
}

/// Like [`sample_of_node`], for a rack's document.
pub(crate) fn sample_of_rack(name: &str, document: &Value, key: &str) -> Option<(String, String)> {
    sample_in(document.as_object()?, &rack(name), key)
}

/// Like [`sample_of_node`], for a profile's document.
pub(crate) fn sample_of_profile(
    name: &str,
    document: &Value,
    key: &str,
) -> Option<(String, String)> {
    sample_in(document.as_object()?, &of_profile(name), key)
}

fn sample_in(object: &Object, place: &str, key: &str) -> Option<(String, String)> {
    object.iter().find_map(|(name, value)| {
        if !is_secret(name) {
            return sample_within(value, place, key);
        }
        let sealed = value.as_str().filter(|text| is_sealed(text) && id_of(text) == Some(key));
        sealed.map(|sealed| (sealed_place(place, name), sealed.to_owned()))
    })
}

fn sample_within(value: &Value, place: &str, key: &str) -> Option<(String, String)> {
    match value {
        Value::Object(object) => sample_in(object, place, key),
        Value::Array(values) => values.iter().find_map(|value| sample_within(value, place, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Seals every secret of a rack's document.
pub(crate) fn seal_rack(
    keys: &SealingKeys,
    name: &str,
    document: &mut Value,
) -> Result<(), SealError> {
    seal_document(keys, &rack(name), document)
}

/// Seals every secret of a profile's document.
pub(crate) fn seal_profile(
    keys: &SealingKeys,
    name: &str,
    document: &mut Value,
) -> Result<(), SealError> {
    seal_document(keys, &of_profile(name), document)
}

/// Seals every secret in the fields `parts` of a resource's document.
pub(crate) fn seal_resource(
    keys: &SealingKeys,
    id: Uuid,
    document: &mut Value,
    parts: &[&str],
) -> Result<(), SealError> {
    let place = resource(id);
    for part in parts {
        if let Some(part) = document.get_mut(part) {
            each_within(part, &mut |key, value| seal_value(keys, &place, key, value))?;
        }
    }
    Ok(())
}

/// Like [`sample_of_node`], for a resource's document.
pub(crate) fn sample_of_resource(
    id: Uuid,
    document: &Value,
    key: &str,
) -> Option<(String, String)> {
    sample_within(document, &resource(id), key)
}

fn seal_document(keys: &SealingKeys, place: &str, document: &mut Value) -> Result<(), SealError> {
    match document {
        Value::Object(document) => seal_in(keys, place, document),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Ok(())
        }
    }
}

fn seal_in(keys: &SealingKeys, place: &str, object: &mut Object) -> Result<(), SealError> {
    each(object, &mut |key, value| seal_value(keys, place, key, value))
}

/// Seals the value of a secret's key, or re-encrypts it if another key than the first has sealed it.
fn seal_value(
    keys: &SealingKeys,
    place: &str,
    key: &str,
    value: &mut Value,
) -> Result<(), SealError> {
    let place = sealed_place(place, key);
    let sealed = match value.as_str().filter(|text| is_sealed(text)) {
        Some(text) if !keys.needs_reseal(text) => return Ok(()),
        Some(text) => keys.seal(&place, &keys.open(&place, text)?)?,
        None => {
            let plain = serde_json::to_vec(value).map_err(|_| SealError::CannotOpen)?;
            keys.seal(&place, &Zeroizing::new(plain))?
        }
    };
    *value = Value::String(sealed);
    Ok(())
}

/// Calls `work` for every non-null value of a secret's key, at any depth.
fn each(
    object: &mut Object,
    work: &mut impl FnMut(&str, &mut Value) -> Result<(), SealError>,
) -> Result<(), SealError> {
    for (key, value) in object {
        if is_secret(key) {
            if !value.is_null() {
                work(key, value)?;
            }
        } else {
            each_within(value, work)?;
        }
    }
    Ok(())
}

fn each_within(
    value: &mut Value,
    work: &mut impl FnMut(&str, &mut Value) -> Result<(), SealError>,
) -> Result<(), SealError> {
    match value {
        Value::Object(object) => each(object, work),
        Value::Array(values) => values.iter_mut().try_for_each(|value| each_within(value, work)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

/// Returns the wanted password of the BMC account, under its key of `driver_info`.
fn wanted(node: &Node) -> Option<&Object> {
    node.password_rotation.as_ref().map(|rotation| &rotation.wanted)
}

fn driver_info(node: &Node) -> String {
    format!("nodes/{}/driver_info", node.id)
}

fn instance_info(node: &Node) -> String {
    format!("nodes/{}/instance_info", node.id)
}

/// The place of the secrets in the arguments of all steps of a node.
fn steps(node: &Node) -> String {
    format!("nodes/{}/steps", node.id)
}

fn of_profile(name: &str) -> String {
    format!("hypervisor_profiles/{name}")
}

fn rack(name: &str) -> String {
    format!("racks/{name}")
}

fn resource(id: Uuid) -> String {
    format!("resources/{id}")
}

/// Names the place that a secret is sealed for. The place contains the key without its path, because positions in a list move when an
/// earlier entry is removed.
fn sealed_place(place: &str, key: &str) -> String {
    format!("{place}/{key}")
}

#[cfg(test)]
mod tests {
    use baremetal_core::{
        AccountPassword, AfterDrain, DrainRequest, DrainStage, Driver, Interface, NodeUuid,
        PasswordRotation, RequestedStep, RotationStage, Step, StepKind, StepName, StepRunner, Task,
        WantedSteps, Work, WorkUuid,
    };
    use jiff::Timestamp;
    use secrecy::ExposeSecret;
    use serde_json::json;

    use super::*;

    fn keys(ids: &[&str]) -> String {
        let line = SealingKeys::generate().unwrap();
        let bytes = line.split_once(':').unwrap().1;
        ids.iter().map(|id| format!("{id}:{bytes}")).collect()
    }

    fn ring_of(text: &str) -> SealingKeys {
        SealingKeys::parse(text).unwrap()
    }

    /// Formats both objects with secrets as they are.
    fn infos(node: &Node) -> String {
        format!("{:?} {:?}", node.driver_info, node.instance_info)
    }

    fn node() -> Node {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        let info = json!({
            "redfish_address": "https://bmc", "redfish_password": "hunter2", "agent_token": 5, "ipmi_password": null,
            "nested": [{"snmp_secret": {"deep": "hunter3"}}],
        });
        node.driver_info = info.as_object().unwrap().clone();
        node.instance_info =
            json!({"configdrive": {"user_data": "hunter4"}}).as_object().unwrap().clone();
        node
    }

    #[test]
    fn secrets_are_sealed_and_other_values_are_not() {
        let text = keys(&["1"]);
        let ring = SealingKeys::parse(&text).unwrap();
        let mut sealed = node();
        assert_eq!(node_sealed_by(&sealed), None);
        seal_node(&ring, &mut sealed).unwrap();
        assert_eq!(node_sealed_by(&sealed), Some("1"));
        assert!(!infos(&sealed).contains("hunter"));
        assert_eq!(sealed.driver_info["redfish_address"], "https://bmc");
        assert_eq!(sealed.driver_info["ipmi_password"], Value::Null);
        let again = {
            let mut again = sealed.clone();
            seal_node(&ring, &mut again).unwrap();
            again
        };
        assert_eq!(again, sealed);

        let secrets = Secrets::of(Some(Arc::new(ring.into())));
        let password = secrets.text(&sealed, "redfish_password").unwrap().unwrap();
        assert_eq!(password.expose_secret(), "hunter2");
        assert!(matches!(secrets.text(&sealed, "agent_token"), Err(SecretError::NotText)));
        assert_eq!(secrets.with_instance(&sealed).unwrap().instance_info, node().instance_info);
        let mut settled = node();
        secrets.keep_unchanged_seals(&sealed, &mut settled);
        assert_eq!(settled.driver_info["redfish_password"], sealed.driver_info["redfish_password"]);

        let (place, sample) = sample_of_node(&sealed, "1").unwrap();
        assert!(ring_of(&text).open(&place, &sample).is_ok());
        assert_eq!(sample_of_node(&sealed, "2"), None);

        let stolen = Node { id: NodeUuid::new_v4(), ..sealed };
        assert!(secrets.text(&stolen, "redfish_password").is_err());
    }

    #[test]
    fn a_wanted_password_is_sealed_for_the_place_of_the_present_one() {
        let text = keys(&["1"]);
        let rotation = PasswordRotation {
            wanted: json!({"redfish_password": "hunter9"}).as_object().unwrap().clone(),
            stage: RotationStage::Made,
            since: Timestamp::UNIX_EPOCH,
        };
        let mut sealed = Node { password_rotation: Some(rotation), ..node() };
        let bare = |node: &Node| Node {
            driver_info: Map::new(),
            instance_info: Map::new(),
            ..node.clone()
        };
        assert_eq!(node_sealed_by(&bare(&sealed)), None);
        seal_node(&ring_of(&text), &mut sealed).unwrap();
        assert_eq!(node_sealed_by(&bare(&sealed)), Some("1"));
        let wanted = &sealed.password_rotation.as_ref().unwrap().wanted;
        assert!(!format!("{wanted:?}").contains("hunter"));
        let (place, sample) = sample_of_node(&bare(&sealed), "1").unwrap();
        assert!(ring_of(&text).open(&place, &sample).is_ok());
        let secrets = Secrets::of(Some(Arc::new(ring_of(&text).into())));
        let password = |which| {
            let node = sealed.with_account_password(which);
            let text = secrets.text(&node, "redfish_password").unwrap().unwrap();
            text.expose_secret().to_owned()
        };
        assert_eq!(password(AccountPassword::Present), "hunter2");
        assert_eq!(password(AccountPassword::Wanted), "hunter9");
    }

    #[test]
    fn a_new_first_key_reencrypts_old_secrets() {
        let old = keys(&["1"]);
        let both = SealingKeys::parse(&format!("{}{old}", keys(&["2"]))).unwrap();
        let mut node = node();
        seal_node(&SealingKeys::parse(&old).unwrap(), &mut node).unwrap();
        seal_node(&both, &mut node).unwrap();
        let text = infos(&node);
        assert!(text.contains("sealed:v1:2:") && !text.contains("sealed:v1:1:"));
    }

    #[test]
    fn the_secrets_of_steps_are_sealed() {
        let args = |password: &str| {
            let args = json!({"settings": [{"password": password}], "n": 1});
            args.as_object().unwrap().clone()
        };
        let name = StepName { interface: Interface::Bios, step: "apply".to_owned() };
        let wanted = RequestedStep { name: name.clone(), args: args("wanted"), children: None };
        let apply = name.clone();
        let (kind, runner) = (StepKind::Clean, StepRunner::Agent);
        let args_of_step = args("planned");
        let planned = Step {
            kind,
            runner,
            name,
            args: args_of_step,
            priority: 0,
            reboots: false,
            children: None,
        };
        let planned = Task::Step(planned);
        let mut work = Work::new(WorkUuid::nil(), vec![planned], Timestamp::UNIX_EPOCH);
        work.steps = WantedSteps::Requested(vec![wanted]);
        let (host, then) = ("h1".to_owned(), AfterDrain::Service);
        let steps = Some(WantedSteps::Service(vec![RequestedStep {
            name: apply,
            args: args("later"),
            children: None,
        }]));
        let (asked_at, stage) = (Timestamp::UNIX_EPOCH, DrainStage::Wanted);
        let leaving = DrainRequest {
            host,
            then,
            steps,
            disables_ramdisk: true,
            forced: vec![],
            asked_by: None,
            project: None,
            asked_at,
            stage,
        };
        let plain = Node { work: Some(work), leaving: Some(leaving), ..node() };
        let mut sealed = plain.clone();
        let text = keys(&["1"]);
        seal_node(&ring_of(&text), &mut sealed).unwrap();
        let document = format!("{:?} {:?}", sealed.work, sealed.leaving);
        for secret in ["planned", "wanted", "later"] {
            assert!(!document.contains(&format!("{secret:?}")), "{document}");
        }
        assert_eq!((node_sealed_by(&plain), node_sealed_by(&sealed)), (None, Some("1")));
        let secrets = Secrets::of(Some(Arc::new(ring_of(&text).into())));
        let unsealed = secrets.with_steps(&sealed).unwrap();
        assert_eq!((unsealed.work, unsealed.leaving), (plain.work, plain.leaving));

        let bare = Node { driver_info: Map::new(), instance_info: Map::new(), ..sealed };
        let (place, sample) = sample_of_node(&bare, "1").unwrap();
        assert!(ring_of(&text).open(&place, &sample).is_ok());
    }

    #[test]
    fn a_document_without_secrets_stays_unchanged() {
        let ring = SealingKeys::parse(&keys(&["1"])).unwrap();
        let mut plain = Node { driver_info: Map::new(), instance_info: Map::new(), ..node() };
        seal_node(&ring, &mut plain).unwrap();
        assert_eq!(node_sealed_by(&plain), Some(NO_SECRETS));
        let mut secret = json!({"goal": [{"instance_info": {"configdrive": "x"}}]});
        seal_rack(&ring, "r", &mut secret).unwrap();
        let (place, sample) = sample_of_rack("r", &secret, "1").unwrap();
        assert!(ring.open(&place, &sample).is_ok());
        let mut document = json!({"goal": {"instance_info": {"image_source": "http://x"}}});
        seal_rack(&ring, "r", &mut document).unwrap();
        assert_eq!(sealed_by(&document), Some(NO_SECRETS));
    }
}
