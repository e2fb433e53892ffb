//! The fields of a cluster template.

use std::net::IpAddr;

use cluster_core::{
    Labels, Refusal, Template, TemplateSort, api_port, name_servers, network_driver, volume_driver,
};

use crate::field::{Field, Read, Resource, put, refuse_if_sent};
use crate::input::Input;
use crate::shown::Kind::{Boolean, Links, MaybeInteger, MaybeText, Null, Text, TextMap};
use crate::shown::{Kind, Shown};

impl Resource for Template {
    const BODY: &'static str =
        "The body of a cluster template. A field that is null or missing has its default value.";
    const MISSING_IS_NULL: bool = true;
    const FIELDS: &'static [Field<Template>] = FIELDS;
    type Record<'a> = &'a Template;
    type New = Template;
    type Change = Template;
    type Sort = TemplateSort;
}

const fn field(name: &'static str, kind: Kind, read: Read<Template>) -> Field<Template> {
    Field::<Template>::new(name, kind, read)
}

impl Field<Template> {
    /// A client may set the field of a new template and change it.
    const fn write(self, input: Input<Template>) -> Self {
        self.create(input).change(input)
    }
}

#[rustfmt::skip]
const FIELDS: &[Field<Template>] = &[
    field("uuid", Text, |it, _| it.id.into())
        .sort(TemplateSort::Id),
    field("name", MaybeText, |it, _| it.name.as_str().into())
        .write(Input::Text(|it, _, name| match name {
            Some(name) => put(&mut it.name, name.parse().map_err(Refusal::from)),
            None => Ok(()),
        }))
        .sort(TemplateSort::Name),
    field("coe", Text, |_, _| "kubernetes".into())
        .write(Input::Text(|_, name, coe| match coe {
            None => Err(Refusal::Field { field: name, why: "is required".to_owned() }),
            coe => only(name, coe, "kubernetes"),
        }))
        .required()
        .about("Only `kubernetes` is supported."),
    field("image_id", Text, |it, _| it.blueprint.shown(&it.blueprint.image).into())
        .write(Input::Text(|it, _, image| put(&mut it.blueprint.image, Ok(image.unwrap_or_default()))))
        .about("Id or name of an image of Fedora CoreOS."),
    field("flavor_id", MaybeText, |it, _| (&it.blueprint.flavor).into())
        .write(Input::Text(|it, _, flavor| put(&mut it.blueprint.flavor, Ok(flavor)))),
    field("master_flavor_id", MaybeText, |it, _| (&it.blueprint.master_flavor).into())
        .write(Input::Text(|it, _, flavor| put(&mut it.blueprint.master_flavor, Ok(flavor)))),
    field("dns_nameserver", MaybeText, |it, _| joined(&it.blueprint.dns_nameservers).into())
        .write(Input::Text(|it, _, raw| put(&mut it.blueprint.dns_nameservers, name_servers(raw.as_deref()))))
        .about("Addresses, separated by commas."),
    field("keypair_id", MaybeText, |it, _| (&it.blueprint.keypair).into())
        .write(Input::Text(|it, _, key| put(&mut it.blueprint.keypair, Ok(key)))),
    field("external_network_id", MaybeText, |it, _| it.blueprint.external_network.as_deref().map(|id| it.blueprint.shown(id)).into())
        .write(Input::Text(|it, _, id| put(&mut it.blueprint.external_network, Ok(id)))),
    field("fixed_network", MaybeText, |it, _| it.blueprint.fixed_network.as_deref().map(|id| it.blueprint.shown(id)).into())
        .write(Input::Text(|it, _, id| put(&mut it.blueprint.fixed_network, Ok(id)))),
    field("fixed_subnet", MaybeText, |it, _| it.blueprint.fixed_subnet.as_deref().map(|id| it.blueprint.shown(id)).into())
        .write(Input::Text(|it, _, id| put(&mut it.blueprint.fixed_subnet, Ok(id)))),
    field("network_driver", Text, |it, _| it.blueprint.network_driver.as_str().into())
        .write(Input::Text(|it, _, driver| put(&mut it.blueprint.network_driver, network_driver(driver.as_deref()))))
        .about("`flannel`, or `calico` if the label `pod_network` is `routes`."),
    field("volume_driver", MaybeText, |it, _| it.blueprint.volume_driver.map(|driver| driver.as_str()).into())
        .write(Input::Text(|it, _, driver| put(&mut it.blueprint.volume_driver, volume_driver(driver.as_deref()))))
        .about("Only `cinder` is supported."),
    field("apiserver_port", MaybeInteger, |it, _| it.blueprint.apiserver_port.into())
        .write(Input::Count(|it, _, port| put(&mut it.blueprint.apiserver_port, api_port(port)))),
    field("docker_volume_size", MaybeInteger, |it, _| it.blueprint.docker_volume_size.into())
        .write(Input::Count(|it, _, size| put(&mut it.blueprint.docker_volume_size, Ok(size.filter(|size| *size > 0)))))
        .about("The size in GiB."),
    field("docker_storage_driver", Text, |_, _| "overlay2".into())
        .write(Input::Text(|_, name, driver| only(name, driver, "overlay2")))
        .about("Only `overlay2` is supported."),
    field("cluster_distro", Text, |_, _| "fedora-coreos".into())
        .write(Input::Text(|_, name, distro| only(name, distro, "fedora-coreos")))
        .about("Only `fedora-coreos` is supported."),
    field("http_proxy", MaybeText, |it, _| (&it.blueprint.http_proxy).into())
        .write(Input::Text(|it, _, proxy| put(&mut it.blueprint.http_proxy, Ok(proxy)))),
    field("https_proxy", MaybeText, |it, _| (&it.blueprint.https_proxy).into())
        .write(Input::Text(|it, _, proxy| put(&mut it.blueprint.https_proxy, Ok(proxy)))),
    field("no_proxy", MaybeText, |it, _| (&it.blueprint.no_proxy).into())
        .write(Input::Text(|it, _, hosts| put(&mut it.blueprint.no_proxy, Ok(hosts)))),
    field("registry_enabled", Boolean, |_, _| false.into())
        .write(Input::Flag(|_, name, is_on| off(name, is_on, "clusterd installs no registry in clusters")))
        .about("Only false is supported."),
    field("insecure_registry", Null, |_, _| Shown::Null)
        .write(Input::Text(|_, name, registry| refuse_if_sent(name, registry, "registries need TLS")))
        .about("Only null is supported."),
    field("labels", TextMap, |it, _| it.blueprint.labels.raw().into())
        .write(Input::TextMap(|it, _, raw| put(&mut it.blueprint.labels, Labels::try_from(raw.unwrap_or_default()).map_err(Refusal::from)))),
    field("tls_disabled", Boolean, |_, _| false.into())
        .write(Input::Flag(|_, name, is_on| off(name, is_on, "Kubernetes always uses TLS")))
        .about("Only false is supported."),
    field("public", Boolean, |it, _| it.public.into())
        .write(Input::Flag(|it, _, is_public| put(&mut it.public, Ok(is_public.unwrap_or(false))))),
    field("hidden", Boolean, |it, _| it.hidden.into())
        .write(Input::Flag(|it, _, is_hidden| put(&mut it.hidden, Ok(is_hidden.unwrap_or(false))))),
    field("tags", MaybeText, |it, _| (&it.tags).into())
        .write(Input::Text(|it, _, tags| put(&mut it.tags, Ok(tags)))),
    field("driver", Null, |_, _| Shown::Null)
        .write(Input::Text(|_, name, driver| refuse_if_sent(name, driver, "must be null: there is only one driver")))
        .about("Only null is supported."),
    field("server_type", Text, |_, _| "vm".into())
        .write(Input::Text(|_, name, kind| only(name, kind, "vm")))
        .about("Only `vm` is supported."),
    field("master_lb_enabled", Boolean, |it, _| it.blueprint.master_lb_enabled.into())
        .write(Input::Flag(|it, _, is_on| put(&mut it.blueprint.master_lb_enabled, Ok(is_on.unwrap_or(false))))),
    field("floating_ip_enabled", Boolean, |it, _| it.blueprint.floating_ip_enabled.into())
        .write(Input::Flag(|it, _, is_on| put(&mut it.blueprint.floating_ip_enabled, Ok(is_on.unwrap_or(true))))),
    field("project_id", Text, |it, _| (&it.project).into()),
    field("user_id", Text, |it, _| (&it.user).into()),
    field("created_at", Text, |it, _| it.created_at.into())
        .sort(TemplateSort::CreatedAt),
    field("updated_at", MaybeText, |it, _| it.updated_at.into()),
    field("links", Links, |it, look| look.links("clustertemplates", it.id)),
];

/// Refuses every value but `one`.
fn only(field: &'static str, sent: Option<String>, one: &str) -> Result<(), Refusal> {
    match sent {
        Some(sent) if sent != one => {
            Err(Refusal::Field { field, why: format!("only {one} is supported") })
        }
        Some(_) | None => Ok(()),
    }
}

/// Refuses true.
fn off(field: &'static str, sent: Option<bool>, why: &str) -> Result<(), Refusal> {
    refuse_if_sent(field, sent.filter(|is_on| *is_on), why)
}

/// Joins addresses with commas.
fn joined(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}
