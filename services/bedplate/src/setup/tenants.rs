//! Grants clusterd's user its roles in the projects of its tenants.

use anyhow::{Context, bail};
use openstack::identity::projects::Named;
use openstack::identity::roles::{self, Role};
use openstack::identity::{projects, users};
use openstack::{CloudError, Session};

use crate::output::{line, plain};

/// The role that is needed to create clusters.
const NEEDED: &str = "member";
/// The role that is needed to create load balancers, if the cloud has such a role.
const BALANCES: &str = "load-balancer_member";

/// Grants `user` its roles in each of `tenants`. Looks all of them up before the first change.
pub(super) async fn grant_roles(
    session: &Session,
    user: &str,
    tenants: &[String],
    dry_run: bool,
) -> anyhow::Result<()> {
    let found = (users::show(session, user).await, users::named(session, user).await);
    let user = only("user", user, found)?;
    let mut places = Vec::new();
    for tenant in tenants {
        let found = (projects::show(session, tenant).await, projects::named(session, tenant).await);
        places.push(only("project", tenant, found)?);
    }
    let member = roles::find(session, NEEDED).await.map_err(explain)?;
    let member = member.with_context(|| format!("Keystone has no role {NEEDED}"))?;
    let balances = roles::find(session, BALANCES).await.map_err(explain)?;
    let all: Vec<Role> = [member].into_iter().chain(balances).collect();
    for place in &places {
        for role in &all {
            let whose = (user.id.as_str(), place.id.as_str());
            let is_given = roles::is_given(session, whose, &role.id).await.map_err(explain)?;
            let said = match (is_given, dry_run) {
                (true, _) => "has",
                (false, true) => "would be granted",
                (false, false) => {
                    roles::assign(session, whose, &role.id).await.map_err(explain)?;
                    "was granted"
                }
            };
            line(&plain(&format!("{}: {} {said} the role {}", place.name, user.name, role.name)))?;
        }
    }
    Ok(())
}

/// The object with this id, or the only one with this name.
fn only(
    what: &str,
    given: &str,
    (by_id, named): (Result<Option<Named>, CloudError>, Result<Vec<Named>, CloudError>),
) -> anyhow::Result<Named> {
    let by_id = match by_id {
        // Keystone refuses an id with certain characters, such as a slash, so the text can only be a name.
        Err(CloudError::InvalidId { .. }) => None,
        by_id => by_id.map_err(explain)?,
    };
    let mut named = named.map_err(explain)?;
    match (by_id, named.pop(), named.is_empty()) {
        (Some(one), ..) | (None, Some(one), true) => Ok(one),
        (None, None, _) => bail!("Keystone has no {what} {given:?}"),
        (None, Some(_), false) => {
            bail!("several domains have a {what} {given:?}: use its id")
        }
    }
}

fn explain(why: CloudError) -> anyhow::Error {
    let is_forbidden = matches!(why, CloudError::Forbidden(_));
    let why = anyhow::Error::new(why);
    if is_forbidden {
        return why.context("only administrators of the cloud may grant roles. Hint: use the cloud entry of an administrator");
    }
    why.context(
        "cannot grant all roles to clusterd's user; granted roles stay. Hint: repeat the command to continue",
    )
}
