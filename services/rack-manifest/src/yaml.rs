//! Reads manifests in YAML.

use serde::Deserialize;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use crate::{Bmc, BmcKind, Machine, Manifest, ManifestError, Password};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManifest {
    rack: String,
    description: Option<String>,
    #[serde(default)]
    defaults: RawDefaults,
    machines: Vec<Spanned<RawMachine>>,
}

/// Values for machines that do not set their own.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawDefaults {
    bmc: RawBmc,
    boot: Option<String>,
    group: Option<String>,
    role: Option<String>,
    resource_class: Option<String>,
    properties: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMachine {
    name: String,
    position: Option<u32>,
    mac: Option<String>,
    #[serde(default)]
    macs: Vec<String>,
    #[serde(default)]
    bmc: RawBmc,
    boot: Option<String>,
    group: Option<String>,
    role: Option<String>,
    resource_class: Option<String>,
    #[serde(default)]
    properties: Map<String, Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawBmc {
    #[serde(rename = "type")]
    kind: Option<BmcKind>,
    address: Option<String>,
    user: Option<String>,
    password_file: Option<String>,
    password_env: Option<String>,
    system: Option<String>,
    verify: Option<Value>,
    cipher_suite: Option<u8>,
}

/// Reads a manifest in YAML. Reports only the first mistake, because the parser stops there.
pub fn read_yaml(text: &str) -> Result<Manifest, Vec<ManifestError>> {
    let raw: RawManifest =
        serde_saphyr::from_str(text).map_err(|error| vec![unreadable(&error)])?;
    let RawManifest { rack, description, defaults, machines } = raw;
    let machines = machines
        .into_iter()
        .enumerate()
        .map(|(index, raw)| machine(index, raw, &defaults))
        .collect();
    Ok(Manifest { rack, description, machines })
}

fn unreadable(error: &serde_saphyr::Error) -> ManifestError {
    let line = error.location().map_or(0, |location| location.line());
    let text = error.to_string();
    // Further lines of the error show the position in the file as a drawing.
    let problem = text.lines().next().unwrap_or("the file cannot be parsed").to_owned();
    ManifestError { line, field: String::new(), problem }
}

fn machine(index: usize, raw: Spanned<RawMachine>, defaults: &RawDefaults) -> Machine {
    let line = raw.referenced.line();
    let raw = raw.value;
    let or = |own: Option<String>, common: &Option<String>| own.or_else(|| common.clone());
    let mut properties = defaults.properties.clone();
    properties.extend(raw.properties);
    Machine {
        line,
        name: raw.name,
        position: raw.position.unwrap_or(index as u32 + 1),
        macs: raw.mac.into_iter().chain(raw.macs).collect(),
        bmc: bmc(raw.bmc, &defaults.bmc),
        boot: or(raw.boot, &defaults.boot),
        group: or(raw.group, &defaults.group),
        role: or(raw.role, &defaults.role),
        resource_class: or(raw.resource_class, &defaults.resource_class),
        properties,
    }
}

fn bmc(own: RawBmc, common: &RawBmc) -> Bmc {
    let common = common.clone();
    let password = |raw: &RawBmc| match (&raw.password_file, &raw.password_env) {
        (Some(file), _) => Some(Password::File(file.clone())),
        (None, Some(variable)) => Some(Password::Environment(variable.clone())),
        (None, None) => None,
    };
    Bmc {
        password: password(&own).or_else(|| password(&common)),
        kind: own.kind.or(common.kind).unwrap_or(BmcKind::Redfish),
        address: own.address.or(common.address).unwrap_or_default(),
        user: own.user.or(common.user),
        system: own.system.or(common.system),
        verify: own.verify.or(common.verify),
        cipher_suite: own.cipher_suite.or(common.cipher_suite),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_overrides_the_defaults() {
        let manifest = read_yaml(
            "rack: r1\n\
             defaults:\n  bmc: {type: ipmi, user: admin, password_env: BMC_PASSWORD}\n  role: compute\n\
             machines:\n\
             - {name: a, mac: '52:54:00:00:00:01', bmc: {address: 10.0.0.1}}\n\
             - name: b\n  position: 7\n  role: storage\n  bmc: {type: redfish, address: 'https://10.0.0.2', password_file: /run/p}\n",
        )
        .unwrap();
        let [a, b] = &manifest.machines[..] else { panic!("{manifest:?}") };
        assert_eq!((a.line, a.position, a.role.as_deref()), (6, 1, Some("compute")));
        assert_eq!((a.bmc.kind, &*a.bmc.address), (BmcKind::Ipmi, "10.0.0.1"));
        assert_eq!(a.bmc.password, Some(Password::Environment("BMC_PASSWORD".to_owned())));
        assert_eq!((b.line, b.position, b.role.as_deref()), (7, 7, Some("storage")));
        assert_eq!(b.bmc.password, Some(Password::File("/run/p".to_owned())));
    }

    #[track_caller]
    fn check(text: &str, line: u64, says: &str) {
        let mistakes = read_yaml(text).unwrap_err();
        let [mistake] = &mistakes[..] else { panic!("{mistakes:?}") };
        assert_eq!(mistake.line, line, "{mistake}");
        assert!(mistake.problem.contains(says), "{mistake}");
    }

    #[test]
    fn an_invalid_file_is_refused_with_the_line() {
        check("rack: r1\nmachines:\n- {name: a, ma: x}\n", 3, "ma");
        check("rack: r1\nmachines:\n- {name: a, position: x}\n", 3, "");
        check("rack: r1\nmachines: [\n", 2, "bracket");
    }
}
