//! The body of requests about cluster templates.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cluster_core::{
    ClusterParameters, Labels, Name, NetworkDriver, Owner, Template as Record, TemplateUuid,
    VolumeDriver, check_template,
};
use newtype_uuid::GenericUuid;
use openstack_api::{ApiError, Caller, Operation, apply_patch};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::Error;
use crate::lenient::{count, flag, labels, text};

/// The body of a cluster template. A field that is null or missing has its default value.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Template {
    #[serde(deserialize_with = "text")]
    name: Option<String>,
    /// Id or name of an image of Fedora CoreOS.
    #[serde(deserialize_with = "text")]
    image_id: Option<String>,
    #[serde(deserialize_with = "text")]
    keypair_id: Option<String>,
    #[serde(deserialize_with = "text")]
    external_network_id: Option<String>,
    /// Only `kubernetes` is supported.
    #[serde(deserialize_with = "text")]
    coe: Option<String>,
    #[serde(deserialize_with = "text")]
    fixed_network: Option<String>,
    #[serde(deserialize_with = "text")]
    fixed_subnet: Option<String>,
    /// `flannel`, or `calico` if the label `pod_network` is `routes`.
    #[serde(deserialize_with = "text")]
    network_driver: Option<String>,
    /// Only `cinder` is supported.
    #[serde(deserialize_with = "text")]
    volume_driver: Option<String>,
    /// Only null is supported.
    #[serde(deserialize_with = "text")]
    driver: Option<String>,
    /// Addresses, separated by commas.
    #[serde(deserialize_with = "text")]
    dns_nameserver: Option<String>,
    #[serde(deserialize_with = "text")]
    flavor_id: Option<String>,
    #[serde(deserialize_with = "text")]
    master_flavor_id: Option<String>,
    /// The size in GiB.
    #[serde(deserialize_with = "count")]
    docker_volume_size: Option<u32>,
    /// Only `overlay2` is supported.
    #[serde(deserialize_with = "text")]
    docker_storage_driver: Option<String>,
    #[serde(deserialize_with = "text")]
    http_proxy: Option<String>,
    #[serde(deserialize_with = "text")]
    https_proxy: Option<String>,
    #[serde(deserialize_with = "text")]
    no_proxy: Option<String>,
    #[serde(deserialize_with = "labels")]
    labels: Option<BTreeMap<String, String>>,
    /// Only false is supported.
    #[serde(deserialize_with = "flag")]
    tls_disabled: Option<bool>,
    #[serde(deserialize_with = "flag")]
    public: Option<bool>,
    /// Only false is supported.
    #[serde(deserialize_with = "flag")]
    registry_enabled: Option<bool>,
    /// Only null is supported.
    #[serde(deserialize_with = "text")]
    insecure_registry: Option<String>,
    /// Only `vm` is supported.
    #[serde(deserialize_with = "text")]
    server_type: Option<String>,
    #[serde(deserialize_with = "flag")]
    master_lb_enabled: Option<bool>,
    #[serde(deserialize_with = "flag")]
    floating_ip_enabled: Option<bool>,
    #[serde(deserialize_with = "flag")]
    hidden: Option<bool>,
    #[serde(deserialize_with = "text")]
    tags: Option<String>,
    #[serde(deserialize_with = "count")]
    apiserver_port: Option<u32>,
}

impl Template {
    /// Makes a new template from the body.
    pub(crate) fn into_new(self, app: &App, caller: &Caller) -> Result<Record, Error> {
        let id = TemplateUuid::from_untyped_uuid((app.ids)());
        let owner = Owner::new(app.project(caller)?, app.user(caller));
        let name = named("template", self.name.as_deref(), &id.to_string())?;
        let record =
            Record::new(id, owner, name, ClusterParameters::new(String::new()), (app.clock)());
        self.written_to(record)
    }

    /// Replaces all fields of `record` that clients can write.
    fn written_to(self, record: Record) -> Result<Record, Error> {
        self.check()?;
        let name = match self.name.as_deref() {
            None => record.name,
            Some(name) => name.parse()?,
        };
        let image = self.image_id.ok_or_else(|| ApiError::bad_field("image_id", "is required"))?;
        let blueprint = ClusterParameters {
            keypair: self.keypair_id,
            external_network: self.external_network_id,
            fixed_network: self.fixed_network,
            fixed_subnet: self.fixed_subnet,
            network_driver: network_driver(self.network_driver.as_deref())?,
            volume_driver: volume_driver(self.volume_driver.as_deref())?,
            dns_nameservers: match self.dns_nameserver {
                None => ClusterParameters::new(String::new()).dns_nameservers,
                Some(raw) => addresses("dns_nameserver", &raw)?,
            },
            flavor: self.flavor_id,
            master_flavor: self.master_flavor_id,
            docker_volume_size: self.docker_volume_size.filter(|size| *size > 0),
            http_proxy: self.http_proxy,
            https_proxy: self.https_proxy,
            no_proxy: self.no_proxy,
            apiserver_port: port(self.apiserver_port)?,
            floating_ip_enabled: self.floating_ip_enabled.unwrap_or(true),
            master_lb_enabled: self.master_lb_enabled.unwrap_or(false),
            labels: Labels::try_from(self.labels.unwrap_or_default())?,
            ..ClusterParameters::new(image)
        };
        check_template(&blueprint)?;
        Ok(Record {
            name,
            public: self.public.unwrap_or(false),
            hidden: self.hidden.unwrap_or(false),
            tags: self.tags,
            blueprint,
            ..record
        })
    }

    /// Refuses values of Magnum that this service does not support.
    fn check(&self) -> Result<(), ApiError> {
        let only = |field: &str, value: Option<&str>, one: &str| match value {
            Some(value) if value != one => {
                Err(ApiError::bad_field(field, format!("only {one} is supported")))
            }
            Some(_) | None => Ok(()),
        };
        let off = |field: &str, value: Option<bool>, why: &str| match value {
            Some(true) => Err(ApiError::bad_field(field, why)),
            Some(false) | None => Ok(()),
        };
        if self.coe.is_none() {
            return Err(ApiError::bad_field("coe", "is required"));
        }
        only("coe", self.coe.as_deref(), "kubernetes")?;
        only("server_type", self.server_type.as_deref(), "vm")?;
        only("docker_storage_driver", self.docker_storage_driver.as_deref(), "overlay2")?;
        off("tls_disabled", self.tls_disabled, "Kubernetes always uses TLS")?;
        off(
            "registry_enabled",
            self.registry_enabled,
            "clusterd installs no registry in clusters",
        )?;
        if self.insecure_registry.is_some() {
            return Err(ApiError::bad_field("insecure_registry", "registries need TLS"));
        }
        if self.driver.is_some() {
            return Err(ApiError::bad_field("driver", "must be null: there is only one driver"));
        }
        Ok(())
    }

    /// The body that a client would have to send to get `record`.
    fn of(record: &Record) -> Self {
        let blueprint = record.blueprint.clone();
        Template {
            name: Some(record.name.to_string()),
            image_id: Some(blueprint.image),
            keypair_id: blueprint.keypair,
            external_network_id: blueprint.external_network,
            coe: Some("kubernetes".to_owned()),
            fixed_network: blueprint.fixed_network,
            fixed_subnet: blueprint.fixed_subnet,
            network_driver: Some(blueprint.network_driver.as_str().to_owned()),
            volume_driver: blueprint.volume_driver.map(|VolumeDriver::Cinder| "cinder".to_owned()),
            dns_nameserver: Some(joined(&blueprint.dns_nameservers)),
            flavor_id: blueprint.flavor,
            master_flavor_id: blueprint.master_flavor,
            docker_volume_size: blueprint.docker_volume_size,
            http_proxy: blueprint.http_proxy,
            https_proxy: blueprint.https_proxy,
            no_proxy: blueprint.no_proxy,
            labels: Some(blueprint.labels.raw().clone()),
            public: Some(record.public),
            master_lb_enabled: Some(blueprint.master_lb_enabled),
            floating_ip_enabled: Some(blueprint.floating_ip_enabled),
            hidden: Some(record.hidden),
            tags: record.tags.clone(),
            apiserver_port: blueprint.apiserver_port.map(u32::from),
            ..Template::default()
        }
    }
}

/// Returns `record` after `patch`.
pub(crate) fn patched(record: &Record, patch: Vec<Operation>) -> Result<Record, Error> {
    let broken = |_| ApiError::broken("a template cannot be written as JSON");
    let Value::Object(mut document) = serde_json::to_value(Template::of(record)).map_err(broken)?
    else {
        return Err(ApiError::broken("a template is not an object").into());
    };
    for operation in &patch {
        let field = operation.field()?;
        if !document.contains_key(field) {
            let field: String = field.chars().take(64).collect();
            return Err(ApiError::bad_field(&field, "cannot be changed").into());
        }
    }
    apply_patch(&mut document, patch)?;
    let body: Template = read(document)?;
    body.written_to(record.clone())
}

/// Reads a document after a patch.
fn read(document: Map<String, Value>) -> Result<Template, ApiError> {
    let mut body = Map::new();
    for (field, value) in document {
        // Each field is read by itself, so that the error names the field.
        let one = Map::from_iter([(field.clone(), value.clone())]);
        serde_json::from_value::<Template>(Value::Object(one))
            .map_err(|why| ApiError::bad_field(&field, why))?;
        body.insert(field, value);
    }
    serde_json::from_value(Value::Object(body)).map_err(|why| ApiError::bad_field("body", why))
}

/// The name in the request, or a name made from the id.
pub(crate) fn named(what: &str, given: Option<&str>, id: &str) -> Result<Name, Error> {
    match given {
        Some(name) => Ok(name.parse()?),
        None => Ok(format!("{what}-{}", &id[..8]).parse()?),
    }
}

/// Parses addresses that are separated by commas.
fn addresses(field: &str, raw: &str) -> Result<Vec<IpAddr>, ApiError> {
    let parse = |one: &str| one.trim().parse::<IpAddr>();
    let read: Result<Vec<_>, _> = raw.split(',').map(parse).collect();
    read.map_err(|_| ApiError::bad_field(field, "must be addresses separated by commas"))
}

/// Joins addresses with commas.
pub(crate) fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

fn network_driver(raw: Option<&str>) -> Result<NetworkDriver, ApiError> {
    match raw {
        None | Some("flannel") => Ok(NetworkDriver::Flannel),
        Some("calico") => Ok(NetworkDriver::Calico),
        Some(_) => Err(ApiError::bad_field("network_driver", "must be flannel or calico")),
    }
}

fn volume_driver(raw: Option<&str>) -> Result<Option<VolumeDriver>, ApiError> {
    match raw {
        None => Ok(None),
        Some("cinder") => Ok(Some(VolumeDriver::Cinder)),
        Some(_) => Err(ApiError::bad_field("volume_driver", "must be cinder")),
    }
}

fn port(raw: Option<u32>) -> Result<Option<u16>, ApiError> {
    let fits = |port: &u16| *port >= 1024;
    match raw.map(|port| u16::try_from(port).ok().filter(fits)) {
        None => Ok(None),
        Some(Some(port)) => Ok(Some(port)),
        Some(None) => Err(ApiError::bad_field("apiserver_port", "must be between 1024 and 65535")),
    }
}
