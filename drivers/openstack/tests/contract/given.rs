//! The cloud under test, and helpers for every story.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use openstack::compute::flavors::{self, Flavor};
use openstack::image::images::{self, Image};
use openstack::network::networks::{self, Network, NewNetwork};
use openstack::network::subnets::{self, NewSubnet, Subnet};
use openstack::{CloudConfig, CloudError, Service, Session};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::tidy::Tidy;

/// How long a cloud may take for any operation: test clouds have few processors.
pub(crate) const LONGEST: Duration = Duration::from_secs(120);
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Returns the configuration of a cloud; `None`, after a message, if no clouds.yaml is given.
pub(crate) fn config(name: &str) -> Option<CloudConfig> {
    let Some(path) = std::env::var_os("BEDPLATE_TEST_OPENSTACK") else {
        peers::skip("the contract of clouds", "BEDPLATE_TEST_OPENSTACK names no clouds.yaml");
        return None;
    };
    Some(CloudConfig::read(&PathBuf::from(path), Some(name)).unwrap())
}

/// Opens a session as `alice`, `bob` or `admin`.
pub(crate) fn session(name: &str) -> Option<Session> {
    Some(Session::new(config(name)?).unwrap())
}

/// Opens a session if the cloud has this service; prints a message otherwise.
pub(crate) async fn with(name: &str, service: Service) -> Option<Session> {
    let session = session(name)?;
    if !session.has(service).await.unwrap() {
        peers::skip("the contract of clouds", format_args!("this one has no {service} service"));
        return None;
    }
    Some(session)
}

pub(crate) fn name() -> String {
    format!("contract-{}", &Uuid::new_v4().simple().to_string()[..12])
}

/// Returns a name for objects of this user, which are deleted if the story fails.
pub(crate) fn named(user: &'static str) -> (String, Tidy) {
    let name = name();
    let tidy = Tidy::of(user, &name);
    (name, tidy)
}

/// Calls `look` until it returns a value, or until the time is up.
pub(crate) async fn until<T, F>(what: &str, look: impl Fn() -> F) -> T
where
    F: Future<Output = Result<Option<T>, CloudError>>,
{
    let end = Instant::now() + LONGEST;
    loop {
        if let Some(found) = look().await.unwrap() {
            return found;
        }
        assert!(Instant::now() < end, "timed out: {what}");
        sleep(LOOK_EVERY).await;
    }
}

/// Calls `look` until the object is gone.
pub(crate) async fn until_gone<T, F>(what: &str, look: impl Fn() -> F)
where
    F: Future<Output = Result<Option<T>, CloudError>>,
{
    until(what, || async { Ok(look().await?.is_none().then_some(())) }).await;
}

/// Repeats `attempt` while it is a conflict, because a dependent object is still being deleted.
pub(crate) async fn until_free<F>(what: &str, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), CloudError>>,
{
    until(what, || async {
        match attempt().await {
            Err(error) if error.is_conflict() || error.is_transient() => Ok(None),
            other => other.map(Some),
        }
    })
    .await;
}

/// Returns the smallest flavor.
pub(crate) async fn flavor(session: &Session) -> Flavor {
    let all = flavors::list(session).await.unwrap();
    all.into_iter().min_by_key(|flavor| (flavor.ram, flavor.vcpus)).expect("a flavor")
}

/// Returns an image that everyone can use.
pub(crate) async fn image(session: &Session) -> Image {
    let all = images::list(session).await.unwrap();
    all.into_iter().find(|image| image.visibility == "public").expect("a public image")
}

/// Creates a network of this name with a subnet.
pub(crate) async fn network(session: &Session, name: &str, cidr: &str) -> (Network, Subnet) {
    let new = NewNetwork { name: name.to_owned(), ..NewNetwork::default() };
    let network = networks::create(session, &new).await.unwrap();
    let new = NewSubnet {
        name: name.to_owned(),
        network_id: network.id.clone(),
        cidr: cidr.to_owned(),
        dns_nameservers: Vec::new(),
    };
    let subnet = subnets::create(session, &new).await.unwrap();
    (network, subnet)
}

/// Deletes a network once the objects on it are gone.
pub(crate) async fn remove_network(session: &Session, id: &str) {
    until_free("a network that is free", || networks::delete(session, id)).await;
}
