//! The durations of leases that an owner may ask for.

use cluster_core::{Owner, QuotaScope};
use lease::Terms;

use crate::app::App;
use crate::error::Result;

impl App {
    /// The default and maximum duration of the owner's leases: the configured `terms`, shortened to the limits of the project and the owner.
    pub(crate) async fn lease_terms(&self, terms: Terms, owner: &Owner) -> Result<Terms> {
        let project = QuotaScope { project: owner.project.clone(), person: None };
        let person = QuotaScope { person: Some(owner.user.clone()), ..project.clone() };
        let mut terms = terms;
        for whose in [project, person] {
            let account = self.store.account(&whose, &self.settings.quotas).await?;
            terms = terms.limited_to(account.limits.longest_lease());
        }
        Ok(terms)
    }
}
