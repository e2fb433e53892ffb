//! Why an inspection rule cannot be stored or applied.

/// Why a condition or an action is malformed, or cannot be carried out on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleProblem(String);

impl RuleProblem {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        RuleProblem(problem.into())
    }
}
