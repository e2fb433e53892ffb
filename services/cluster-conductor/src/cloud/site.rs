//! What a cluster uses and does not own: looked up when it is needed, and not again in the same turn.

use std::collections::HashMap;
use std::sync::Arc;

use cluster_core::{Blueprint, Key, Reference, Seen, Shape, Thing};
use openstack::Session;
use openstack::compute::flavors::{self, Flavor};
use openstack::dns::zones;
use openstack::image::images;
use openstack::network::{networks, subnets};
use tokio::sync::{Mutex, OnceCell};

use super::trouble::Trouble;

/// The cloud as one turn of a cluster uses it.
pub(crate) struct Site<'a> {
    /// Who we are there.
    pub(crate) session: &'a Session,
    /// What the cluster is to be.
    pub(crate) blueprint: &'a Blueprint,
    known: Arc<LookedUp>,
}

/// What was looked up for a cluster.
#[derive(Default)]
pub(crate) struct LookedUp {
    external: OnceCell<String>,
    network: OnceCell<String>,
    subnet: OnceCell<String>,
    zone: OnceCell<Option<String>>,
    flavors: OnceCell<Vec<Flavor>>,
    images: Mutex<HashMap<String, String>>,
}

impl<'a> Site<'a> {
    /// What is `known` is not looked up again.
    pub(crate) fn new(
        session: &'a Session,
        blueprint: &'a Blueprint,
        known: Arc<LookedUp>,
    ) -> Self {
        Site { session, blueprint, known }
    }

    /// The id of the external network of this id or name.
    pub(crate) async fn external_network(&self, given: &str) -> Result<&str, Trouble> {
        let look = || async move {
            let all = networks::external(self.session).await?;
            let named = all.into_iter().find(|it| it.id == given || it.name == given);
            named.map(|it| it.id).ok_or_else(|| no_such("external_network", given))
        };
        self.known.external.get_or_try_init(look).await.map(String::as_str)
    }

    /// The id of a network.
    pub(crate) async fn network<'s>(
        &'s self,
        of: &Reference,
        seen: &'s Seen,
    ) -> Result<&'s str, Trouble> {
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

    /// The id of a subnet.
    pub(crate) async fn subnet<'s>(
        &'s self,
        of: &Reference,
        seen: &'s Seen,
    ) -> Result<&'s str, Trouble> {
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

    /// All flavors.
    pub(crate) async fn flavors(&self) -> Result<&[Flavor], Trouble> {
        let look = || async move { Ok::<_, Trouble>(flavors::list(self.session).await?) };
        Ok(self.known.flavors.get_or_try_init(look).await?)
    }

    /// The flavor of this id or name.
    pub(crate) async fn flavor(&self, given: &str) -> Result<&Flavor, Trouble> {
        named(self.flavors().await?, given).ok_or_else(|| no_such_flavor(given))
    }

    /// The id of the image of this id or name: of several with one name, the newest.
    pub(crate) async fn image(&self, given: &str) -> Result<String, Trouble> {
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

    /// Looks up the images of servers before their turn comes. Of one that is not found, the server's turn tells.
    pub(crate) async fn look_ahead(&self, shape: &Shape) {
        for object in shape.values() {
            if let Thing::Server { image, .. } = &object.thing
                && let Err(trouble) = self.image(image).await
            {
                tracing::debug!("no server will be asked for: {trouble}");
                return;
            }
        }
    }

    /// The id of the cluster's zone; `None` where there is no such zone of ours.
    pub(crate) async fn zone(&self) -> Result<Option<&str>, Trouble> {
        let Some(name) = &self.blueprint.labels.settings().dns_zone else { return Ok(None) };
        let look = || async move {
            let found = zones::find(self.session, name).await?;
            Ok::<_, Trouble>(found.map(|it| it.id))
        };
        Ok(self.known.zone.get_or_try_init(look).await?.as_deref())
    }

    /// The id of the cluster's zone, which has to be there.
    pub(crate) async fn needed_zone(&self, name: &str) -> Result<&str, Trouble> {
        self.zone().await?.ok_or_else(|| no_such("dns_zone", name))
    }
}

/// The one of these flavors that has this id or name.
pub(crate) fn named<'f>(all: &'f [Flavor], given: &str) -> Option<&'f Flavor> {
    all.iter().find(|it| it.id == given).or_else(|| all.iter().find(|it| it.name == given))
}

pub(crate) fn no_such_flavor(given: &str) -> Trouble {
    no_such("flavor_id", given)
}

fn no_such(setting: &'static str, given: &str) -> Trouble {
    Trouble::NoSuch { setting, given: given.to_owned() }
}

/// The id of an object of the cluster's own.
pub(crate) fn id_of<'s>(key: &Key, seen: &'s Seen) -> Result<&'s str, Trouble> {
    let found = seen.objects.get(key).ok_or_else(|| Trouble::Lacks(key.clone()))?;
    Ok(&found.id)
}
