//! Validates a hypervisor profile before it is stored.

use jiff::SignedDuration;

use crate::{
    HypervisorSettings, JoinLimits, NameSource, Profile, ProfileKind, RequestRefused, Storage,
    check_deploy, node_with_image,
};

/// The keys of `instance_info` that describe an image.
const IMAGE: [&str; 6] = [
    "image_source",
    "image_os_hash_algo",
    "image_os_hash_value",
    "image_checksum",
    "image_disk_format",
    "image_ca",
];

/// The maximum number of entries in a list.
const MAX_ENTRIES: usize = 64;

/// The maximum length of a text in bytes.
const MAX_LENGTH: usize = 255;

/// The maximum length of a public key in bytes.
const LONGEST_LINE: usize = 16 << 10;

/// The error for a profile with a wrong field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidProfile {
    pub field: String,
    /// The problem with the field. The text does not repeat the value, which may be secret.
    pub problem: String,
}

type Checked = Result<(), InvalidProfile>;

fn wrong(field: impl Into<String>, problem: impl Into<String>) -> InvalidProfile {
    InvalidProfile { field: field.into(), problem: problem.into() }
}

/// Checks that every value of the profile can be written into a machine's configuration without changing its meaning.
pub fn check_profile(profile: &Profile) -> Checked {
    if profile.description.as_ref().is_some_and(|text| text.len() > 4096) {
        return Err(wrong("description", "longer than 4096 bytes"));
    }
    installable(profile)?;
    settings(&profile.settings)?;
    if let Some(base) = &profile.settings.base_ignition {
        if profile.kind != ProfileKind::Ignition {
            return Err(wrong("settings.base_ignition", "only for profiles of kind ignition"));
        }
        url("settings.base_ignition.url", &base.url)?;
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if base.sha256.len() != 64 || !base.sha256.bytes().all(hex) {
            return Err(wrong("settings.base_ignition.sha256", "must be 64 digits of 0-9 and a-f"));
        }
    }
    limits(&profile.joining)?;
    let placement = &profile.placement;
    for (field, named) in [
        ("placement.availability_zone", &placement.availability_zone),
        ("placement.aggregate", &placement.aggregate),
    ] {
        if let Some(NameSource::Fixed(name)) = named {
            text(field, name)?;
            // Nova refuses a colon in the name of a zone, because a colon separates zone and host (nova/api/validation/parameter_types.py).
            if name.contains(':') {
                return Err(wrong(field, "must not contain a colon"));
            }
        }
    }
    Ok(())
}

fn installable(profile: &Profile) -> Checked {
    let info = &profile.instance_info;
    if let Some(key) = info.keys().find(|key| !IMAGE.contains(&key.as_str())) {
        let key: String = key.chars().take(64).collect();
        let problem = "only the keys of an image are allowed here";
        return Err(wrong(format!("instance_info.{key}"), problem));
    }
    match check_deploy(&node_with_image(info)) {
        Ok(()) => Ok(()),
        Err(RequestRefused::Field { field, problem }) => Err(InvalidProfile { field, problem }),
        Err(other) => Err(wrong("instance_info", other.to_string())),
    }
}

fn settings(settings: &HypervisorSettings) -> Checked {
    let keystone = &settings.keystone;
    url("settings.keystone.auth_url", &keystone.auth_url)?;
    for (field, value) in [
        ("username", &*keystone.username),
        ("password", keystone.password.expose()),
        ("user_domain", &keystone.user_domain),
        ("project", &keystone.project),
        ("project_domain", &keystone.project_domain),
        ("region", keystone.region.as_deref().unwrap_or("x")),
    ] {
        text(&format!("settings.keystone.{field}"), value)?;
    }
    bus(settings.message_bus.transport_url.expose())?;
    network(settings)?;
    devices(settings)?;
    for (at, argument) in
        enumerate_limited("settings.kernel_arguments", &settings.kernel_arguments)?
    {
        if let Some(problem) = argument.problem() {
            return Err(wrong(format!("settings.kernel_arguments[{at}]"), problem));
        }
    }
    for (at, pages) in enumerate_limited("settings.hugepages", &settings.hugepages)? {
        let field = || format!("settings.hugepages[{at}]");
        if pages.count == 0 {
            return Err(wrong(field(), "count: must be at least 1"));
        }
        if settings.hugepages.iter().take(at).any(|other| other.size == pages.size) {
            return Err(wrong(field(), "size: given twice"));
        }
    }
    for (at, key) in enumerate_limited("settings.ssh_keys", &settings.ssh_keys)? {
        let field = format!("settings.ssh_keys[{at}]");
        if key.is_empty() || key.len() > LONGEST_LINE || key.chars().any(char::is_control) {
            return Err(wrong(
                field,
                "must be an SSH public key on one line, as in authorized_keys",
            ));
        }
    }
    Ok(())
}

fn network(settings: &HypervisorSettings) -> Checked {
    let mappings = &settings.neutron.bridge_mappings;
    if mappings.len() > MAX_ENTRIES {
        return Err(wrong(
            "settings.neutron.bridge_mappings",
            format!("at most {MAX_ENTRIES} entries are allowed"),
        ));
    }
    for (network, bridge) in mappings {
        let field = |of: &str| format!("settings.neutron.bridge_mappings.{network:.64}{of}");
        // Neutron's option is a list separated by commas, and a colon separates the parts of an entry.
        if !is_word(network, "._-") || network.len() > 64 {
            let problem = "a physical network has 1 to 64 letters, digits, '.', '_' and '-'";
            return Err(wrong(field(""), problem));
        }
        let interface = bridge.interface.as_ref().map(|name| (".interface", name));
        for (of, name) in [(".bridge", &bridge.bridge)].into_iter().chain(interface) {
            // Linux: IFNAMSIZ is 16 including the final zero. A leading dash would be read as an option of the command.
            if !is_word(name, "._-") || name.len() > 15 || name.starts_with(['-', '.']) {
                let problem = "an interface has 1 to 15 letters, digits, '.', '_' and '-'";
                return Err(wrong(field(of), problem));
            }
        }
    }
    Ok(())
}

fn devices(settings: &HypervisorSettings) -> Checked {
    if let Storage::Lvm(group) = &settings.storage
        && (!is_word(group, "+_.-") || group.len() > 127 || group.starts_with('-'))
    {
        let problem = "a volume group has 1 to 127 letters, digits, '+', '_', '.' and '-'";
        return Err(wrong("settings.storage.lvm", problem));
    }
    for (at, device) in enumerate_limited("settings.passthrough", &settings.passthrough)? {
        let field = |of: &str| format!("settings.passthrough[{at}].{of}");
        for (of, id) in [("vendor_id", &device.vendor_id), ("product_id", &device.product_id)] {
            let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if id.len() != 4 || !id.bytes().all(hex) {
                return Err(wrong(
                    field(of),
                    "must be four digits of 0-9 and a-f, as printed by lspci -nn",
                ));
            }
        }
        if !is_word(&device.alias, "._-") || device.alias.len() > 64 {
            return Err(wrong(field("alias"), "must be 1 to 64 letters, digits, '.', '_' and '-'"));
        }
    }
    if !settings.passthrough.is_empty() && settings.iommu.is_none() {
        return Err(wrong("settings.iommu", "passthrough needs an IOMMU: set intel or amd"));
    }
    Ok(())
}

fn limits(limits: &JoinLimits) -> Checked {
    let all = [
        ("compute_service", limits.compute_service),
        ("hypervisor", limits.hypervisor),
        ("resource_provider", limits.resource_provider),
        ("placement", limits.placement),
    ];
    match all
        .iter()
        .find(|(_, limit)| !limit.is_positive() || *limit > SignedDuration::from_hours(24))
    {
        Some((field, _)) => {
            Err(wrong(format!("joining.{field}"), "must be more than 0 and at most 24 hours"))
        }
        None => Ok(()),
    }
}

/// Returns the entries with their indexes, or an error if there are too many.
fn enumerate_limited<'a, T>(
    field: &str,
    all: &'a [T],
) -> Result<impl Iterator<Item = (usize, &'a T)>, InvalidProfile> {
    if all.len() > MAX_ENTRIES {
        return Err(wrong(field, format!("at most {MAX_ENTRIES} entries are allowed")));
    }
    Ok(all.iter().enumerate())
}

fn is_word(text: &str, more: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

/// Checks that a text fits on one line of a configuration file and is read back unchanged.
fn text(field: &str, text: &str) -> Checked {
    if text.is_empty() || text.len() > MAX_LENGTH || text.chars().any(char::is_control) {
        return Err(wrong(field, "must have 1 to 255 bytes and no control characters"));
    }
    // oslo.config strips blanks around values, and a pair of quotes.
    let edge = |c: char| c.is_whitespace() || c == '"' || c == '\'';
    if text.starts_with(edge) || text.ends_with(edge) {
        return Err(wrong(field, "must not begin or end with a blank or a quote"));
    }
    Ok(())
}

fn url(field: &str, url: &str) -> Checked {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let visible = url.len() <= 2048 && url.bytes().all(|byte| byte.is_ascii_graphic());
    if host.is_empty() || host.starts_with(':') || !visible {
        return Err(wrong(field, "must be an http or https URL"));
    }
    if host.contains('@') {
        return Err(wrong(field, "must not contain a user or a password"));
    }
    Ok(())
}

fn bus(url: &str) -> Checked {
    let field = "settings.message_bus.transport_url";
    let kinds = ["rabbit://", "amqp://", "kafka://"];
    let rest = kinds.iter().find_map(|kind| url.strip_prefix(kind)).unwrap_or_default();
    let visible = url.len() <= 2048 && url.bytes().all(|byte| byte.is_ascii_graphic());
    if rest.is_empty() || !visible {
        return Err(wrong(field, "must be a rabbit, amqp or kafka URL of oslo.messaging"));
    }
    Ok(())
}
