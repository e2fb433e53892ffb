//! Finds the mistakes in a manifest that can be found without the database.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use hardware::MacAddress;
use url::Url;

use crate::{Bmc, BmcKind, Machine, Manifest, ManifestError};

/// The boot interfaces that a machine may have.
const BOOTS: [&str; 4] =
    ["ipxe", "http-ipxe", "redfish-virtual-media", "idrac-redfish-virtual-media"];

/// Returns every mistake in `manifest`, in the order of the lines.
pub fn check(manifest: &Manifest) -> Vec<ManifestError> {
    let mut mistakes = Vec::new();
    if !is_name(&manifest.rack) {
        mistakes.push(mistake(
            0,
            "rack",
            format!(
                "{:?} is not a valid name: use letters, digits, '-', '.', '_' and '~'",
                shown(&manifest.rack)
            ),
        ));
    }
    if manifest.machines.is_empty() {
        mistakes.push(mistake(0, "machines", "the rack has no machines".to_owned()));
    }
    let mut taken = UsedValues::default();
    for machine in &manifest.machines {
        check_machine(machine, &mut taken, &mut mistakes);
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    mistakes
}

/// The values used by machines further up in the file, with their line numbers.
#[derive(Default)]
struct UsedValues {
    names: HashMap<String, u64>,
    positions: HashMap<String, u64>,
    macs: HashMap<String, u64>,
    bmcs: HashMap<String, u64>,
}

fn check_machine(machine: &Machine, taken: &mut UsedValues, mistakes: &mut Vec<ManifestError>) {
    let line = machine.line;
    let mut note = |field: &str, problem: String| mistakes.push(mistake(line, field, problem));
    if !is_name(&machine.name) {
        note(
            "name",
            format!(
                "{:?} is not a valid name: use letters, digits, '-', '.', '_' and '~'",
                shown(&machine.name)
            ),
        );
    }
    if let Some(other) = first_use(&mut taken.names, machine.name.clone(), line) {
        note("name", format!("{:?} is already used on line {other}", machine.name));
    }
    if let Some(other) = first_use(&mut taken.positions, machine.position.to_string(), line) {
        note("position", format!("{} is already used on line {other}", machine.position));
    }
    if machine.macs.is_empty() && machine.bmc.kind == BmcKind::Ipmi {
        note("mac", "is required: IPMI does not report MAC addresses".to_owned());
    }
    for raw in &machine.macs {
        match raw.parse::<MacAddress>() {
            Ok(mac) if mac.is_multicast() => note("mac", format!("{mac} is a multicast address")),
            Ok(mac) => {
                if let Some(other) = first_use(&mut taken.macs, mac.to_string(), line) {
                    note("mac", format!("{mac} is already used on line {other}"));
                }
            }
            Err(error) => note("mac", error.to_string()),
        }
    }
    if let Some(boot) = machine.boot.as_deref().filter(|boot| !BOOTS.contains(boot)) {
        note("boot", format!("{:?} is not one of {}", shown(boot), BOOTS.join(", ")));
    }
    let needed = match machine.boot.as_deref() {
        Some("redfish-virtual-media") => Some((BmcKind::Redfish, "redfish")),
        Some("idrac-redfish-virtual-media") => Some((BmcKind::Idrac, "idrac")),
        _ => None,
    };
    if let (Some((kind, name)), Some(boot)) = (needed, &machine.boot)
        && machine.bmc.kind != kind
    {
        note("boot", format!("{boot} needs a BMC of the type {name}"));
    }
    check_bmc(&machine.bmc, &mut note);
    let bmc = format!("{} {}", machine.bmc.address, machine.bmc.system.as_deref().unwrap_or(""));
    if machine.bmc.kind != BmcKind::Fake
        && let Some(other) = first_use(&mut taken.bmcs, bmc, line)
    {
        note("bmc.address", format!("{} is already the BMC on line {other}", machine.bmc.address));
    }
}

fn check_bmc(bmc: &Bmc, note: &mut impl FnMut(&str, String)) {
    match bmc.kind {
        BmcKind::Fake => return,
        BmcKind::Redfish | BmcKind::Idrac => {
            let address = &bmc.address;
            let spelled = if address.contains("://") {
                address.clone()
            } else {
                format!("https://{address}")
            };
            let usable = Url::parse(&spelled)
                .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            if !usable {
                note("bmc.address", format!("{:?} is not an http or https URL", shown(address)));
            }
        }
        BmcKind::Ipmi => {
            let usable =
                bmc.address.parse::<IpAddr>().is_ok() || bmc.address.parse::<SocketAddr>().is_ok();
            if !usable {
                note("bmc.address", format!("{:?} is not an IP address", shown(&bmc.address)));
            }
        }
    }
    if bmc.user.is_none() {
        note("bmc.user", "is required".to_owned());
    }
    if bmc.password.is_none() {
        note("bmc.password", "is required: give a password_file or a password_env".to_owned());
    }
    if bmc.cipher_suite.is_some_and(|suite| !matches!(suite, 3 | 17)) {
        note("bmc.cipher_suite", "must be 3 or 17; other suites are not secure".to_owned());
    }
}

/// Registers `value`; returns the line that already uses the value, if there is one.
fn first_use(taken: &mut HashMap<String, u64>, value: String, line: u64) -> Option<u64> {
    match taken.entry(value) {
        std::collections::hash_map::Entry::Occupied(entry) => Some(*entry.get()),
        std::collections::hash_map::Entry::Vacant(entry) => {
            entry.insert(line);
            None
        }
    }
}

/// RFC 3986 §2.3: unreserved characters, the same rule as for node names.
fn is_name(raw: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    (1..=255).contains(&raw.len()) && raw.chars().all(legal)
}

fn shown(raw: &str) -> String {
    raw.chars().take(64).collect()
}

fn mistake(line: u64, field: &str, problem: String) -> ManifestError {
    ManifestError { line, field: field.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;
    use crate::{read_csv, read_yaml};

    #[track_caller]
    fn check_csv(rows: &str, want: Expect) {
        let text = format!("name,position,mac,bmc_type,bmc_address,user,password_env\n{rows}");
        let mistakes = check(&read_csv("r1", &text).unwrap());
        want.assert_eq(&mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn every_mistake_is_reported_with_line_and_field() {
        check_csv(
            "a,1,52:54:00:00:00:01,redfish,https://10.0.0.1,admin,PW\n\
             a b,1,52:54:00:00:00:01,ipmi,bmc.example,admin,PW\n\
             c,3,nonsense,redfish,ftp://x,,\n",
            expect![[r#"
                line 3: name: "a b" is not a valid name: use letters, digits, '-', '.', '_' and '~'
                line 3: position: 1 is already used on line 2
                line 3: mac: 52:54:00:00:00:01 is already used on line 2
                line 3: bmc.address: "bmc.example" is not an IP address
                line 4: mac: "nonsense" is not a MAC address
                line 4: bmc.address: "ftp://x" is not an http or https URL
                line 4: bmc.user: is required
                line 4: bmc.password: is required: give a password_file or a password_env"#]],
        );
    }

    #[test]
    fn a_good_rack_has_no_mistakes() {
        check_csv("a,1,52:54:00:00:00:01,redfish,10.0.0.1,admin,PW\n", expect![""]);
    }

    #[test]
    fn a_rule_for_one_kind_of_bmc_leaves_the_others_alone() {
        let text = "name,mac,bmc_type,bmc_address,user,password_env,cipher_suite,boot,system\n\
                    a,,redfish,10.0.0.1,admin,PW,,redfish-virtual-media,\n\
                    b,,ipmi,10.0.0.2,admin,PW,17,ipxe,\n\
                    c,52:54:00:00:00:01,ipmi,10.0.0.3,admin,PW,3,redfish-virtual-media,\n\
                    d,01:00:5e:00:00:01,ipmi,10.0.0.4,admin,PW,2,floppy,\n\
                    e,,redfish,10.0.0.5,admin,PW,,,/redfish/v1/Systems/1\n\
                    f,,redfish,10.0.0.5,admin,PW,,,/redfish/v1/Systems/2\n\
                    g,,redfish,10.0.0.5,admin,PW,,http-ipxe,/redfish/v1/Systems/2\n\
                    h,52:54:00:00:00:02,fake,none,,,,,\n\
                    i,52:54:00:00:00:03,fake,none,,,,,\n";
        let mistakes = check(&read_csv("r1", text).unwrap());
        expect![[r#"
            line 3: mac: is required: IPMI does not report MAC addresses
            line 4: boot: redfish-virtual-media needs a BMC of the type redfish
            line 5: mac: 01:00:5e:00:00:01 is a multicast address
            line 5: boot: "floppy" is not one of ipxe, http-ipxe, redfish-virtual-media, idrac-redfish-virtual-media
            line 5: bmc.cipher_suite: must be 3 or 17; other suites are not secure
            line 8: bmc.address: 10.0.0.5 is already the BMC on line 7"#]]
        .assert_eq(&mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = read_yaml(&text).map(|manifest| check(&manifest));
            let _ = read_csv("r", &text).map(|manifest| check(&manifest));
        }
    }
}
