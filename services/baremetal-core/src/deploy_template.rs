//! The record of a deploy template, and the deploy steps that templates add to a deployment.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Content, DeployStep, Node};

/// Deploy steps that run whenever a node is deployed whose instance has the trait that the template is named after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeployTemplate {
    /// A trait, such as `CUSTOM_HYPERTHREADING_ON`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The steps; their arguments may contain secrets.
    pub steps: Vec<DeployStep>,
    /// Free-form notes of the operator, ignored by the service.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl Content for DeployTemplate {
    const KIND: &'static str = "deploy_template";
    const SECRETS: &'static [&'static str] = &["steps"];

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

/// Two templates of one deployment have the same step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deploy templates {first} and {second} both have the step {step}")]
pub struct TemplatesConflict {
    pub first: String,
    pub second: String,
    pub step: String,
}

/// Returns the traits of a node's instance, which name its deploy templates.
pub fn instance_traits(node: &Node) -> Vec<&str> {
    let traits = node.instance_info.get("traits").and_then(Value::as_array);
    traits.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the steps of a deployment: the requested ones, and those of `templates` that no request replaces.
///
/// # Errors
///
/// Fails if two templates have the same step.
pub fn with_templates(
    requested: Vec<DeployStep>,
    templates: &[DeployTemplate],
) -> Result<Vec<DeployStep>, TemplatesConflict> {
    let mut of_templates: Vec<(&str, &DeployStep)> = Vec::new();
    for template in templates {
        for step in &template.steps {
            let known = of_templates.iter().find(|(_, known)| known.step.name == step.step.name);
            if let Some((first, _)) = known {
                return Err(TemplatesConflict {
                    first: (*first).to_owned(),
                    second: template.name.clone(),
                    step: step.step.name.to_string(),
                });
            }
            of_templates.push((&template.name, step));
        }
    }
    let is_free = |step: &&DeployStep| requested.iter().all(|it| it.step.name != step.step.name);
    let added: Vec<DeployStep> =
        of_templates.into_iter().map(|(_, step)| step).filter(is_free).cloned().collect();
    Ok(requested.into_iter().chain(added).collect())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{Driver, Interface, NodeUuid, RequestedStep, StepName};

    fn step(name: &str, priority: u32) -> DeployStep {
        let name = StepName { interface: Interface::Raid, step: name.to_owned() };
        DeployStep { step: RequestedStep { name, args: Map::new(), children: None }, priority }
    }

    fn template(name: &str, steps: &[DeployStep]) -> DeployTemplate {
        DeployTemplate { name: name.to_owned(), steps: steps.to_vec(), ..Default::default() }
    }

    #[test]
    fn a_requested_step_replaces_the_step_of_a_template() {
        let templates =
            [template("A", &[step("a", 90), step("b", 80)]), template("B", &[step("c", 70)])];
        let all = with_templates(vec![step("b", 0)], &templates).unwrap();
        assert_eq!(all, [step("b", 0), step("a", 90), step("c", 70)]);
        assert_eq!(with_templates(Vec::new(), &[]).unwrap(), []);
    }

    #[test]
    fn no_two_templates_have_the_same_name() {
        assert_eq!(template("CUSTOM_A", &[]).name(), Some("CUSTOM_A"));
    }

    #[test]
    fn two_templates_with_one_step_are_refused() {
        let templates = [template("A", &[step("a", 90)]), template("B", &[step("a", 70)])];
        let refused = with_templates(vec![step("a", 1)], &templates).unwrap_err();
        let want = "the deploy templates A and B both have the step raid.a";
        assert_eq!(refused.to_string(), want);
    }

    #[test]
    fn the_traits_of_an_instance_name_its_templates() {
        let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, Timestamp::UNIX_EPOCH);
        node.traits = ["CUSTOM_NODE".to_owned()].into();
        assert_eq!(instance_traits(&node), Vec::<&str>::new());
        node.instance_info.insert("traits".to_owned(), json!(["CUSTOM_A", "CUSTOM_B"]));
        assert_eq!(instance_traits(&node), ["CUSTOM_A", "CUSTOM_B"]);
    }
}
