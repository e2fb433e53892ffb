//! `bedplate setup`: registers the services in Keystone, and grants clusterd its roles.

mod catalogue;
mod tenants;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use openstack::identity::endpoints::NewEndpoint;
use openstack::identity::{endpoints, regions, services};
use openstack::{CloudError, Service, Session};
use url::Url;

use self::catalogue::{CatalogueChange, CatalogueEntries, DesiredEndpoints, plan};
use crate::connection::Connection;
use crate::output::{line, plain};

/// The subcommands of `bedplate setup`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Register the services in the Keystone catalogue, and grant clusterd its roles in the projects of tenants. Requires an administrator
    /// of the cloud. Repeating the command changes nothing; a new address moves the endpoint.
    Keystone(Box<Options>),
}

/// The desired content of the catalogue.
#[derive(Args)]
pub(crate) struct Options {
    /// Public URL of baremetald, for example `https://api.example:6385`.
    #[arg(long, value_name = "URL", value_parser = address, required_unless_present_any = ["clusterd", "tenant"])]
    baremetald: Option<Url>,
    /// Internal URL; default: the public URL.
    #[arg(long, value_name = "URL", value_parser = address, requires = "baremetald")]
    baremetald_internal: Option<Url>,
    /// Admin URL; default: the internal URL.
    #[arg(long, value_name = "URL", value_parser = address, requires = "baremetald")]
    baremetald_admin: Option<Url>,
    /// Public URL of clusterd, for example `https://api.example:9511`.
    #[arg(long, value_name = "URL", value_parser = address)]
    clusterd: Option<Url>,
    /// Internal URL; default: the public URL.
    #[arg(long, value_name = "URL", value_parser = address, requires = "clusterd")]
    clusterd_internal: Option<Url>,
    /// Admin URL; default: the internal URL.
    #[arg(long, value_name = "URL", value_parser = address, requires = "clusterd")]
    clusterd_admin: Option<Url>,
    /// Region; default: the region of clouds.yaml or OS_REGION_NAME, or the only region.
    #[arg(long)]
    region: Option<String>,
    /// Project in which clusterd may create clusters, by name or id: clusterd's user gets the role member, and load-balancer_member if the
    /// cloud has that role. Repeatable.
    #[arg(long, value_name = "PROJECT")]
    tenant: Vec<String>,
    /// User of clusterd in the cloud, by name or id.
    #[arg(long, value_name = "USER", default_value = "clusterd")]
    service_user: String,
    /// Only print the changes.
    #[arg(long)]
    dry_run: bool,
}

/// Parses a URL that the catalogue can give to clients.
fn address(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|why| format!("not a valid URL: {why}"))?;
    let is_plain = url.query().is_none() && url.fragment().is_none();
    let is_nobodys = url.username().is_empty() && url.password().is_none();
    match url.scheme() {
        "http" | "https" if url.has_host() && is_plain && is_nobodys => Ok(url),
        "http" | "https" => Err("must have a host, and no user, query or fragment".to_owned()),
        _ => Err("must begin with https:// or http://".to_owned()),
    }
}

pub(crate) async fn run(command: Command, connection: &Connection) -> anyhow::Result<()> {
    let Command::Keystone(options) = command;
    let Some(session) = connection.session()? else {
        bail!(
            "no cloud is selected: set --os-cloud or OS_CLOUD, or OS_AUTH_URL and the other OS_* variables, for an administrator"
        );
    };
    let wanted = options.wanted();
    if !wanted.is_empty() {
        let region = region(&session, options.region.as_deref()).await?;
        for wanted in wanted {
            register(&session, &wanted, &region, options.dry_run).await?;
        }
    }
    if !options.tenant.is_empty() {
        tenants::grant_roles(&session, &options.service_user, &options.tenant, options.dry_run)
            .await?;
    }
    if options.dry_run { line("--dry-run: nothing was changed") } else { Ok(()) }
}

impl Options {
    fn wanted(&self) -> Vec<DesiredEndpoints> {
        let machines = [&self.baremetald, &self.baremetald_internal, &self.baremetald_admin];
        let clusters = [&self.clusterd, &self.clusterd_internal, &self.clusterd_admin];
        let wanted = [
            (Service::BareMetal, "Bedplate's bare metal service", machines),
            (Service::ContainerInfra, "Bedplate's container infrastructure service", clusters),
        ];
        let wanted =
            wanted.into_iter().filter_map(|(service, about, [public, internal, admin])| {
                let public = public.as_ref()?;
                let internal = internal.as_ref().unwrap_or(public);
                let admin = admin.as_ref().unwrap_or(internal);
                Some(DesiredEndpoints::new(service, about, [public, internal, admin]))
            });
        wanted.collect()
    }
}

/// The region of the endpoints, which has to exist.
async fn region(session: &Session, said: Option<&str>) -> anyhow::Result<String> {
    let known = regions::list(session).await.context("cannot list the regions of Keystone")?;
    let known: Vec<String> = known.into_iter().map(|region| region.id).collect();
    match (said.or(session.config().region.as_deref()), known.as_slice()) {
        (Some(said), known) if known.iter().any(|one| one == said) => Ok(said.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (Some(said), known) => {
            bail!("Keystone has no region {said:?}; its regions are {}", named(known))
        }
        (None, known) => {
            bail!("Keystone has the regions {}: select one with --region", named(known))
        }
    }
}

fn named(regions: &[String]) -> String {
    if regions.is_empty() { "none".to_owned() } else { plain(&regions.join(", ")) }
}

async fn register(
    session: &Session,
    wanted: &DesiredEndpoints,
    region: &str,
    dry_run: bool,
) -> anyhow::Result<()> {
    let (kind, seen) = (wanted.kind, look(session, wanted.kind).await?);
    let steps = plan(wanted, &seen, region)?;
    if steps.is_empty() {
        return line(&format!("{kind}: unchanged"));
    }
    let mut service = seen.services.first().map(|service| service.id.clone());
    for step in steps {
        if !dry_run {
            take(session, wanted, &step, region, &mut service).await.map_err(explain)?;
        }
        line(&plain(&format!("{kind}: {}", step.said(dry_run))))?;
    }
    Ok(())
}

async fn look(session: &Session, kind: &str) -> anyhow::Result<CatalogueEntries> {
    let services = services::find(session, kind).await.map_err(explain)?;
    let mut seen = CatalogueEntries { services, endpoints: Vec::new() };
    for service in &seen.services {
        let mut own = endpoints::list(session, &service.id).await.map_err(explain)?;
        seen.endpoints.append(&mut own);
    }
    Ok(seen)
}

async fn take(
    session: &Session,
    wanted: &DesiredEndpoints,
    step: &CatalogueChange,
    region: &str,
    service: &mut Option<String>,
) -> Result<(), CloudError> {
    match step {
        CatalogueChange::Add => {
            let DesiredEndpoints { kind, name, description, .. } = wanted;
            *service = Some(services::create(session, kind, name, description).await?.id);
        }
        CatalogueChange::Show { service } => services::enable(session, service).await?,
        CatalogueChange::AddEndpoint { interface, url } => {
            let new = NewEndpoint {
                service_id: service.clone().unwrap_or_default(),
                interface: *interface,
                region_id: region.to_owned(),
                url: url.clone(),
            };
            endpoints::create(session, &new).await?;
        }
        CatalogueChange::Move { endpoint, to: url, .. }
        | CatalogueChange::ShowEndpoint { endpoint, url, .. } => {
            endpoints::set_url(session, endpoint, url).await?;
        }
    }
    Ok(())
}

fn explain(why: CloudError) -> anyhow::Error {
    let is_forbidden = matches!(why, CloudError::Forbidden(_));
    let why = anyhow::Error::new(why);
    if is_forbidden {
        return why.context("only administrators of the cloud may change the catalogue. Hint: use the cloud entry of an administrator");
    }
    why.context(
        "cannot complete Keystone's catalogue; finished changes stay. Hint: repeat the command to continue",
    )
}
