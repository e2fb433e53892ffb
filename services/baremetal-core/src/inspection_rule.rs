//! The record of an inspection rule: actions that change a node after its inspection, if the inventory meets the rule's conditions.

mod action;
mod arguments;
mod attribute;
mod condition;
mod item_loop;
mod limits;
mod path;
mod problem;
mod reference;
mod rule_log;
mod run;
mod text;

use serde::{Deserialize, Serialize};

use crate::Content;

pub use action::{ActionOperator, RuleAction};
pub use condition::{Condition, ConditionOperator, Multiple, Operator};
pub use limits::MAX_INSPECTION_RULES;
pub use problem::RuleProblem;
pub use rule_log::{LogLevel, RuleLog};
pub use run::{InspectedMachine, RuleChanges, RuleFailed, apply_inspection_rules};

/// Actions that run after the inspection of each machine that meets all conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredRule", into = "StoredRule")]
pub struct InspectionRule {
    pub description: Option<String>,
    /// Rules run by descending priority.
    pub priority: u16,
    /// Whether the API hides the conditions and actions. They are sealed as a whole in the database.
    pub sensitive: bool,
    pub conditions: Vec<Condition>,
    pub actions: Vec<RuleAction>,
    /// The sealed conditions and actions of a sensitive rule, as long as they are not unsealed.
    pub sealed: Option<String>,
}

impl Content for InspectionRule {
    const KIND: &'static str = "inspection_rule";
    const SECRETS: &'static [&'static str] = &["body"];
}

/// The form of a rule in the database.
#[derive(Serialize, Deserialize)]
struct StoredRule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    priority: u16,
    body: StoredBody,
}

/// The conditions and actions; those of a sensitive rule under a key whose value the store seals.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredBody {
    Sensitive { secret: SealedOrOpen },
    Open(Operations),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SealedOrOpen {
    Sealed(String),
    Open(Operations),
}

#[derive(Default, Serialize, Deserialize)]
struct Operations {
    conditions: Vec<Condition>,
    actions: Vec<RuleAction>,
}

impl From<InspectionRule> for StoredRule {
    fn from(rule: InspectionRule) -> Self {
        let InspectionRule { description, priority, sensitive, conditions, actions, sealed } = rule;
        let body = match (sealed, sensitive) {
            (Some(sealed), _) => StoredBody::Sensitive { secret: SealedOrOpen::Sealed(sealed) },
            (None, true) => StoredBody::Sensitive {
                secret: SealedOrOpen::Open(Operations { conditions, actions }),
            },
            (None, false) => StoredBody::Open(Operations { conditions, actions }),
        };
        StoredRule { description, priority, body }
    }
}

impl From<StoredRule> for InspectionRule {
    fn from(StoredRule { description, priority, body }: StoredRule) -> Self {
        let (sensitive, sealed, operations) = match body {
            StoredBody::Open(open) => (false, None, open),
            StoredBody::Sensitive { secret: SealedOrOpen::Open(open) } => (true, None, open),
            StoredBody::Sensitive { secret: SealedOrOpen::Sealed(sealed) } => {
                (true, Some(sealed), Operations::default())
            }
        };
        let Operations { conditions, actions } = operations;
        InspectionRule { description, priority, sensitive, conditions, actions, sealed }
    }
}

#[cfg(test)]
mod tests;
