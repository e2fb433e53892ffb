//! A cluster template in a response.

use cluster_core::{Template, VolumeDriver};
use openstack_api::{JsonShape, Links, Origin, Time};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::body::joined;

/// A cluster template with all fields.
pub(crate) struct View<'a> {
    pub(crate) template: &'a Template,
    pub(crate) origin: &'a Origin,
}

const NULL: Option<()> = None;

/// The response schema of a cluster template.
pub(crate) fn shape() -> JsonShape {
    let maybe = || JsonShape::text().or_null();
    let named = JsonShape::object([
        ("uuid", JsonShape::text()),
        ("name", maybe()),
        ("coe", JsonShape::text()),
        ("image_id", JsonShape::text()),
        ("flavor_id", maybe()),
        ("master_flavor_id", maybe()),
        ("dns_nameserver", maybe()),
        ("keypair_id", maybe()),
        ("external_network_id", maybe()),
        ("fixed_network", maybe()),
        ("fixed_subnet", maybe()),
        ("network_driver", JsonShape::text()),
        ("volume_driver", maybe()),
        ("apiserver_port", JsonShape::integer().or_null()),
        ("docker_volume_size", JsonShape::integer().or_null()),
        ("docker_storage_driver", JsonShape::text()),
        ("cluster_distro", JsonShape::text()),
    ]);
    named.and([
        ("http_proxy", maybe()),
        ("https_proxy", maybe()),
        ("no_proxy", maybe()),
        ("registry_enabled", JsonShape::boolean()),
        ("insecure_registry", JsonShape::null()),
        ("labels", JsonShape::map(JsonShape::text())),
        ("tls_disabled", JsonShape::boolean()),
        ("public", JsonShape::boolean()),
        ("hidden", JsonShape::boolean()),
        ("tags", maybe()),
        ("driver", JsonShape::null()),
        ("server_type", JsonShape::text()),
        ("master_lb_enabled", JsonShape::boolean()),
        ("floating_ip_enabled", JsonShape::boolean()),
        ("project_id", JsonShape::text()),
        ("user_id", JsonShape::text()),
        ("created_at", JsonShape::text()),
        ("updated_at", maybe()),
        ("links", JsonShape::links()),
    ])
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Template {
            id,
            project,
            user,
            name,
            created_at,
            updated_at,
            public,
            hidden,
            tags,
            blueprint,
            version: _,
        } = self.template;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("uuid", id)?;
        object.serialize_entry("name", name)?;
        object.serialize_entry("coe", "kubernetes")?;
        object.serialize_entry("image_id", &blueprint.image)?;
        object.serialize_entry("flavor_id", &blueprint.flavor)?;
        object.serialize_entry("master_flavor_id", &blueprint.master_flavor)?;
        object.serialize_entry("dns_nameserver", &joined(&blueprint.dns_nameservers))?;
        object.serialize_entry("keypair_id", &blueprint.keypair)?;
        object.serialize_entry("external_network_id", &blueprint.external_network)?;
        object.serialize_entry("fixed_network", &blueprint.fixed_network)?;
        object.serialize_entry("fixed_subnet", &blueprint.fixed_subnet)?;
        object.serialize_entry("network_driver", blueprint.network_driver.as_str())?;
        let volume_driver = blueprint.volume_driver.map(|VolumeDriver::Cinder| "cinder");
        object.serialize_entry("volume_driver", &volume_driver)?;
        object.serialize_entry("apiserver_port", &blueprint.apiserver_port)?;
        object.serialize_entry("docker_volume_size", &blueprint.docker_volume_size)?;
        object.serialize_entry("docker_storage_driver", "overlay2")?;
        object.serialize_entry("cluster_distro", "fedora-coreos")?;
        object.serialize_entry("http_proxy", &blueprint.http_proxy)?;
        object.serialize_entry("https_proxy", &blueprint.https_proxy)?;
        object.serialize_entry("no_proxy", &blueprint.no_proxy)?;
        object.serialize_entry("registry_enabled", &false)?;
        object.serialize_entry("insecure_registry", &NULL)?;
        object.serialize_entry("labels", blueprint.labels.raw())?;
        object.serialize_entry("tls_disabled", &false)?;
        object.serialize_entry("public", public)?;
        object.serialize_entry("hidden", hidden)?;
        object.serialize_entry("tags", tags)?;
        object.serialize_entry("driver", &NULL)?;
        object.serialize_entry("server_type", "vm")?;
        object.serialize_entry("master_lb_enabled", &blueprint.master_lb_enabled)?;
        object.serialize_entry("floating_ip_enabled", &blueprint.floating_ip_enabled)?;
        object.serialize_entry("project_id", project)?;
        object.serialize_entry("user_id", user)?;
        object.serialize_entry("created_at", &Time(*created_at))?;
        object.serialize_entry("updated_at", &Time::some(*updated_at))?;
        let links =
            Links { origin: self.origin, collection: "clustertemplates", id: *id, part: "" };
        object.serialize_entry("links", &links)?;
        object.end()
    }
}
