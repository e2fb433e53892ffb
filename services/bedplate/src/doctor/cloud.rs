//! Checks the cloud: whether Keystone accepts the caller and clusterd's user, the catalogue, and the roles of clusterd's user.

use std::path::Path;
use std::time::Duration;

use openstack::{CloudConfig, CloudError, Service, Session};

use super::clocks;
use super::configured::Configured;
use super::finding::{Check, Findings};
use crate::connection::Connection;

/// The timeout of an endpoint.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The services that clusterd needs, with their purpose.
const NEEDED: [(Service, &str); 4] = [
    (Service::Identity, "authentication"),
    (Service::Compute, "servers"),
    (Service::Network, "networks"),
    (Service::Image, "images"),
];

/// The optional services, with what is missing without them.
const USEFUL: [(Service, &str); 4] = [
    (Service::LoadBalancer, "control planes with several members have no common address"),
    (Service::Dns, "clusters and VMs have no DNS names"),
    (Service::BlockStorage, "clusters have no volumes"),
    (Service::Placement, "clusterd cannot check free capacity in advance"),
];

/// The role that clusterd needs to create clusters.
const MEMBER: &str = "member";

/// Checks the caller's cloud, and the cloud in clusterd's configuration.
pub(crate) async fn look(
    connection: &Connection,
    configured: Option<&Configured>,
    findings: &mut Findings,
) {
    let mut is_looked_at = false;
    match connection.session() {
        Ok(Some(session)) => {
            is_looked_at = true;
            if enters("the caller", &session, findings).await {
                registered(&session, findings).await;
            }
        }
        Ok(None) => {}
        Err(why) => {
            let next = "check clouds.yaml and the OS_* variables";
            findings.fail(Check::Cloud, format!("cannot use the caller's cloud: {why:#}"), next);
        }
    }
    if let Some(configured) = configured.filter(|it| it.has(&["cloud"])) {
        is_looked_at = true;
        of_clusterd(configured, findings).await;
    }
    if !is_looked_at {
        findings.skipped(Check::Cloud, "no cloud is selected: set --os-cloud or OS_CLOUD for the caller, or [cloud] in clusterd's configuration");
    }
}

async fn of_clusterd(configured: &Configured, findings: &mut Findings) {
    let file = configured.text(&["cloud", "clouds_yaml"]).unwrap_or_default();
    if !Path::new(&file).exists() {
        let what = format!(
            "only clusterd can read {file}: run the doctor as clusterd's user with --os-cloud"
        );
        return findings.skipped(Check::Cloud, what);
    }
    let name = configured.text(&["cloud", "name"]);
    let config = match CloudConfig::read(Path::new(&file), name.as_deref()) {
        Ok(config) => config,
        Err(why) => {
            let what = format!("clusterd cannot use {file}: {:#}", anyhow::Error::new(why));
            return findings.fail(
                Check::Cloud,
                what,
                "correct the file, or [cloud] in clusterd.toml, which names the file and the cloud",
            );
        }
    };
    let session = match Session::new(config) {
        Ok(session) => session,
        Err(why) => {
            let what = format!("clusterd cannot use {file}: {:#}", anyhow::Error::new(why));
            return findings.fail(Check::Cloud, what, "mend it");
        }
    };
    if !enters("clusterd's user", &session, findings).await {
        return;
    }
    roles(&session, findings).await;
    let backups = configured.has(&["backups", "container"]);
    let backups = backups.then_some((Service::ObjectStore, "backups of etcd"));
    for (service, what_for) in NEEDED.into_iter().chain(backups) {
        endpoint(&session, service, findings, |findings, why| {
            let what = format!(
                "clusterd finds no {service} service, which it needs for {what_for}: {why}"
            );
            findings.fail(
                Check::Cloud,
                what,
                "register the service in clusterd's region, or configure another region",
            );
        })
        .await;
    }
    for (service, without) in USEFUL {
        endpoint(&session, service, findings, |findings, why| {
            findings.warn(
                Check::Cloud,
                format!("{without}: {why}"),
                format!("nothing, if the cloud has no {service} service"),
            );
        })
        .await;
    }
}

/// Whether Keystone issues a token. Also compares Keystone's clock.
async fn enters(who: &str, session: &Session, findings: &mut Findings) -> bool {
    let url = session.config().auth_url.to_string();
    if let Some((theirs, ours)) = clocks::of_server(session.client(), &url).await {
        clocks::compare(&format!("Keystone at {url}"), Some(theirs), ours, findings);
    }
    match session.identity().await {
        Ok(identity) => {
            let project = identity.project_name.unwrap_or_else(|| "no project".to_owned());
            findings.ok(
                Check::Cloud,
                format!("Keystone authenticates {who}: {} in {project}", identity.user_name),
            );
            true
        }
        Err(why) => {
            let next = match &why {
                CloudError::Unreachable { .. } => {
                    "check that Keystone runs and that this machine can reach it"
                }
                CloudError::Untrusted { .. } => {
                    "set its CA certificate: cacert in clouds.yaml, or --cacert"
                }
                CloudError::Unauthorized(_) => {
                    "check user name, password, project and domains in clouds.yaml"
                }
                CloudError::Busy { .. }
                | CloudError::Failed(_)
                | CloudError::Forbidden(_)
                | CloudError::NotFound(_)
                | CloudError::Conflict(_)
                | CloudError::QuotaExceeded(_)
                | CloudError::Refused(_)
                | CloudError::Malformed { .. }
                | CloudError::NoEndpoint { .. }
                | CloudError::InvalidId { .. } => "check the log of Keystone",
            };
            let what = format!("Keystone at {url} refuses {who}: {:#}", anyhow::Error::new(why));
            findings.fail(Check::Cloud, what, next);
            false
        }
    }
}

/// Checks that baremetald and clusterd are in the catalogue.
async fn registered(session: &Session, findings: &mut Findings) {
    for (service, option) in
        [(Service::BareMetal, "--baremetald"), (Service::ContainerInfra, "--clusterd")]
    {
        endpoint(session, service, findings, |findings, why| {
            let what = format!("the catalogue has no {service} service: {why}");
            findings.warn(Check::Cloud, what, format!("if it runs, register it with `bedplate --os-cloud admin setup keystone {option} URL`"));
        })
        .await;
    }
}

async fn roles(session: &Session, findings: &mut Findings) {
    // The session has cached the identity, so this call does not fail.
    let Ok(identity) = session.identity().await else { return };
    let may = identity.roles.iter().any(|role| role == MEMBER || role == "admin");
    let (user, roles) = (&identity.user_name, identity.roles.join(", "));
    if may {
        return findings.ok(
            Check::Cloud,
            format!("clusterd's user {user} may create clusters with its roles {roles}"),
        );
    }
    let project = identity.project_name.as_deref().unwrap_or("its project");
    let what = format!(
        "clusterd's user {user} cannot create anything in {project}: its roles are {roles}, and {MEMBER} is required"
    );
    let next = format!(
        "grant the role with `bedplate --os-cloud admin setup keystone --tenant {project} --service-user {user}`"
    );
    findings.fail(Check::Cloud, what, next);
}

/// Checks that the catalogue has an endpoint of a service, and that the endpoint answers.
async fn endpoint(
    session: &Session,
    service: Service,
    findings: &mut Findings,
    missing: impl FnOnce(&mut Findings, String),
) {
    let url = match session.endpoint(service).await {
        Ok(url) => url,
        Err(why) => return missing(findings, why.to_string()),
    };
    let asked = session.client().get(url.clone()).timeout(ANSWER_TIMEOUT).send().await;
    match asked {
        Ok(answer) if !answer.status().is_server_error() => {
            findings.ok(Check::Cloud, format!("the {service} service answers at {url}"));
        }
        Ok(answer) => {
            let what = format!("the {service} service answers {} at {url}", answer.status());
            findings.fail(Check::Cloud, what, "check the log of the service");
        }
        Err(why) => {
            let what = format!(
                "the {service} service does not answer at its endpoint {url}: {:#}",
                anyhow::Error::new(why)
            );
            findings.fail(
                Check::Cloud,
                what,
                "start the service, correct the endpoint, or allow this machine to reach it",
            );
        }
    }
}
