//! Looks up the objects that a cluster or VM uses and does not own, each at most once per turn.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_core::{ClusterObservation, DesiredObjects, Key, Reference, ResourceSpec};
use openstack::compute::flavors::{self, Flavor};
use openstack::dns::zones;
use openstack::image::images;
use openstack::network::{networks, subnets};
use openstack::{CloudError, Session};
use tokio::sync::{Mutex, OnceCell};

use super::error::{CloudWorkError, Result};

/// The cloud, as one turn uses it.
pub(crate) struct CloudLookups<'a> {
    /// clusterd's user in the project of the cluster.
    pub(crate) session: &'a Session,
    /// clusterd's user in its own project, for calls and objects that tenants may not use.
    pub(crate) own: &'a Session,
    /// The DNS zone of the cluster's names.
    zone: Option<&'a str>,
    known: Arc<LookupCache>,
}

/// Objects that were looked up.
#[derive(Default)]
pub(crate) struct LookupCache {
    external: OnceCell<String>,
    network: OnceCell<String>,
    subnet: OnceCell<String>,
    zone: OnceCell<Option<FoundZone>>,
    flavors: OnceCell<Vec<Flavor>>,
    images: Mutex<HashMap<String, String>>,
}

struct FoundZone {
    id: String,
    is_operators: bool,
}

/// A DNS zone, with the session that may write to it.
#[derive(Clone, Copy)]
pub(crate) struct Zone<'s> {
    pub(crate) session: &'s Session,
    pub(crate) id: &'s str,
}

impl<'a> CloudLookups<'a> {
    /// Makes a site. Objects in `known` are not looked up again.
    pub(crate) fn new(
        (session, own): (&'a Session, &'a Session),
        zone: Option<&'a str>,
        known: Arc<LookupCache>,
    ) -> Self {
        CloudLookups { session, own, zone, known }
    }

    /// Returns the id of the external network with this id or name.
    pub(crate) async fn external_network(&self, given: &str) -> Result<&str> {
        let look = || async move {
            let all = networks::external(self.session).await?;
            let named = all.into_iter().find(|it| it.id == given || it.name == given);
            named.map(|it| it.id).ok_or_else(|| no_such("external_network", given))
        };
        self.known.external.get_or_try_init(look).await.map(String::as_str)
    }

    pub(crate) async fn network<'s>(
        &'s self,
        of: &Reference,
        seen: &'s ClusterObservation,
    ) -> Result<&'s str> {
        let given = match of {
            Reference::Own(key) => return id_of(key, seen),
            Reference::Given(given) => given,
        };
        let look = || async move {
            if let Some(found) = networks::show(self.session, given).await? {
                return Ok(found.id);
            }
            let found = networks::find(self.session, given).await?.into_iter().next();
            found.map(|it| it.id).ok_or_else(|| no_such("fixed_network", given))
        };
        self.known.network.get_or_try_init(look).await.map(String::as_str)
    }

    pub(crate) async fn subnet<'s>(
        &'s self,
        of: &Reference,
        seen: &'s ClusterObservation,
    ) -> Result<&'s str> {
        let given = match of {
            Reference::Own(key) => return id_of(key, seen),
            Reference::Given(given) => given,
        };
        let look = || async move {
            if let Some(found) = subnets::show(self.session, given).await? {
                return Ok(found.id);
            }
            let found = subnets::find(self.session, given).await?.into_iter().next();
            found.map(|it| it.id).ok_or_else(|| no_such("fixed_subnet", given))
        };
        self.known.subnet.get_or_try_init(look).await.map(String::as_str)
    }

    pub(crate) async fn flavors(&self) -> Result<&[Flavor]> {
        let look = || async move { Ok::<_, CloudWorkError>(flavors::list(self.session).await?) };
        Ok(self.known.flavors.get_or_try_init(look).await?)
    }

    /// Returns the flavor with this id or name.
    pub(crate) async fn flavor(&self, given: &str) -> Result<&Flavor> {
        named(self.flavors().await?, given).ok_or_else(|| no_such_flavor(given))
    }

    /// Returns the id of the image with this id or name; of several with the name, the newest.
    pub(crate) async fn image(&self, given: &str) -> Result<String> {
        let mut known = self.known.images.lock().await;
        if let Some(id) = known.get(given) {
            return Ok(id.clone());
        }
        let found = match images::show(self.session, given).await? {
            Some(image) => Some(image),
            None => images::find(self.session, given).await?.into_iter().next(),
        };
        let id = found.map(|it| it.id).ok_or_else(|| no_such("image_id", given))?;
        known.insert(given.to_owned(), id.clone());
        Ok(id)
    }

    /// Looks up the images of servers early. A missing image is reported when its server is created.
    pub(crate) async fn prefetch_images(&self, shape: &DesiredObjects) {
        for object in shape.values() {
            if let ResourceSpec::Server { image, .. } = &object.thing
                && let Err(trouble) = self.image(image).await
            {
                tracing::debug!("no server can be created: {trouble}");
                return;
            }
        }
    }

    /// Returns the DNS zone: the project's own, or the one of clusterd's project that an operator offers to all. `None` when neither
    /// exists.
    pub(crate) async fn zone(&self) -> Result<Option<Zone<'_>>> {
        let Some(name) = self.zone else { return Ok(None) };
        let look = || async move {
            if let Some(theirs) = zones::find(self.session, name).await? {
                return Ok(Some(FoundZone { id: theirs.id, is_operators: false }));
            }
            let operators = operators_zone(self.own, name).await?;
            Ok::<_, CloudWorkError>(operators.map(|it| FoundZone { id: it.id, is_operators: true }))
        };
        let found = self.known.zone.get_or_try_init(look).await?.as_ref();
        Ok(found.map(|found| Zone {
            session: if found.is_operators { self.own } else { self.session },
            id: &found.id,
        }))
    }

    /// Returns the DNS zone, or an error when it does not exist.
    pub(crate) async fn needed_zone(&self, name: &str) -> Result<Zone<'_>> {
        self.zone().await?.ok_or_else(|| no_such("dns_zone", name))
    }
}

/// Returns the zone of this name, if it belongs to clusterd's own project.
pub(crate) async fn operators_zone(
    own: &Session,
    name: &str,
) -> Result<Option<zones::Zone>, CloudError> {
    let ours = own.identity().await?.project_id;
    match zones::find(own, name).await {
        Ok(found) => Ok(found.filter(|zone| ours.is_some() && zone.project_id == ours)),
        Err(CloudError::NoEndpoint { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the flavor with this id, or else with this name.
pub(crate) fn named<'f>(all: &'f [Flavor], given: &str) -> Option<&'f Flavor> {
    all.iter().find(|it| it.id == given).or_else(|| all.iter().find(|it| it.name == given))
}

pub(crate) fn no_such_flavor(given: &str) -> CloudWorkError {
    no_such("flavor_id", given)
}

fn no_such(setting: &'static str, given: &str) -> CloudWorkError {
    CloudWorkError::NoSuch { setting, given: given.to_owned() }
}

/// Returns the id of an observed object.
pub(crate) fn id_of<'s>(key: &Key, seen: &'s ClusterObservation) -> Result<&'s str> {
    let found =
        seen.objects.get(key).ok_or_else(|| CloudWorkError::DependencyMissing(key.clone()))?;
    Ok(&found.id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};

    use cluster_core::DesiredObject;
    use openstack::CloudConfig;
    use serde_json::{Value, json};

    use super::*;
    use crate::cloud::emulated::emulated_cloud;

    #[test]
    fn the_id_of_a_flavor_goes_before_the_name_of_another() {
        let flavor = |id: &str, name: &str| Flavor {
            id: id.to_owned(),
            name: name.to_owned(),
            vcpus: 1,
            ram: 1,
            disk: 1,
            extra_specs: Default::default(),
        };
        let all = [flavor("1", "2"), flavor("2", "large"), flavor("3", "large")];
        for (given, id) in
            [("1", Some("1")), ("2", Some("2")), ("large", Some("2")), ("small", None)]
        {
            assert_eq!(named(&all, given).map(|it| it.id.as_str()), id, "{given}");
        }
    }

    fn servers(images: &[&str]) -> DesiredObjects {
        let server = |(number, image): (usize, &&str)| {
            let thing = ResourceSpec::Server {
                image: (*image).to_owned(),
                flavor: None,
                keypair: None,
                availability_zone: None,
                disks: Vec::new(),
            };
            let key = format!("server/default-worker-{number}").parse().unwrap();
            (key, DesiredObject { name: String::new(), thing, needs: BTreeSet::new() })
        };
        images.iter().enumerate().map(server).collect()
    }

    #[tokio::test]
    async fn images_that_were_looked_up_early_are_not_looked_up_again() {
        let (emulator, session) = emulated_cloud().await;
        let calls = || emulator.cloud.count(|call| call.path.starts_with("/image/"));
        let image = "fedora-coreos";
        let rows: [(&[&str], bool); 4] = [
            (&[], false),
            (&[image], true),
            (&[image, image], true),
            // A missing image is no error here.
            (&[image, "absent"], true),
        ];
        for (images, is_known) in rows {
            let site = CloudLookups::new((&session, &session), None, Arc::default());
            site.prefetch_images(&servers(images)).await;
            let before = calls();
            site.image(image).await.unwrap();
            assert_eq!(calls() == before, is_known, "{images:?}");
        }
    }

    /// Answers every request with this JSON, as long as the test runs.
    fn answering(body: Value) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let body = body.to_string();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let length = body.len();
                write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn only_a_zone_of_clusterds_own_project_is_the_operators() {
        let (emulator, session) = emulated_cloud().await;
        let ours = session.identity().await.unwrap().project_id;
        let name = "example.org.";
        // Designate also lists zones that other projects share.
        let rows = [
            (ours, name, true),
            (Some("another".to_owned()), name, false),
            (None, name, false),
            (Some("another".to_owned()), "example.com.", false),
        ];
        for (project, listed, is_found) in rows {
            let zone =
                json!({"id": "1", "name": listed, "status": "ACTIVE", "project_id": project});
            let address = answering(json!({"zones": [zone], "links": {}}));
            let clouds = emulator.cloud.clouds_yaml();
            let mut clouds: Value = serde_json::from_str(&clouds).unwrap();
            clouds["clouds"]["alice"]["dns_endpoint_override"] =
                json!(format!("http://{address}/v2"));
            let config = CloudConfig::from_clouds_yaml(&clouds.to_string(), Some("alice")).unwrap();
            let found = operators_zone(&Session::new(config).unwrap(), name).await.unwrap();
            assert_eq!(found.is_some(), is_found, "{listed} of {project:?}");
        }
    }
}
