//! Manifests in CSV: one machine a line, the columns named by the first.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Bmc, BmcKind, Machine, Manifest, Password, Unreadable};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    position: Option<u32>,
    mac: String,
    bmc_type: BmcKind,
    bmc_address: String,
    user: Option<String>,
    password_file: Option<String>,
    password_env: Option<String>,
    system: Option<String>,
    verify: Option<String>,
    cipher_suite: Option<u8>,
    boot: Option<String>,
    group: Option<String>,
    role: Option<String>,
    resource_class: Option<String>,
}

pub(crate) fn read(rack: &str, text: &str) -> Result<Manifest, Unreadable> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().map_err(unreadable)?.clone();
    let mut machines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(unreadable)?;
        let line = record.position().map_or(0, csv::Position::line);
        let row: Row = record.deserialize(Some(&header)).map_err(unreadable)?;
        machines.push(machine(line, machines.len(), row));
    }
    Ok(Manifest { rack: rack.to_owned(), description: None, machines })
}

fn unreadable(error: csv::Error) -> Unreadable {
    let line = error.position().map_or(0, csv::Position::line);
    let problem = if let csv::ErrorKind::Deserialize { err, .. } = error.kind() {
        err.to_string()
    } else {
        error.to_string()
    };
    Unreadable { line, problem }
}

fn machine(line: u64, index: usize, row: Row) -> Machine {
    let file = row.password_file.map(Password::File);
    Machine {
        line,
        name: row.name,
        position: row.position.unwrap_or(index as u32 + 1),
        macs: row.mac.split_whitespace().map(str::to_owned).collect(),
        bmc: Bmc {
            kind: row.bmc_type,
            address: row.bmc_address,
            user: row.user,
            password: file.or(row.password_env.map(Password::Environment)),
            system: row.system,
            verify: row.verify.map(|word| match &*word {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => Value::String(word),
            }),
            cipher_suite: row.cipher_suite,
        },
        boot: row.boot,
        group: row.group,
        role: row.role,
        resource_class: row.resource_class,
        properties: Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_come_in_any_order_and_be_left_out_or_empty() {
        let manifest = read(
            "r1",
            "bmc_type,bmc_address,mac,name,user,password_env,group\n\
             ipmi, 10.0.0.1:6230, 52:54:00:00:00:01, a, admin, PW,\n",
        )
        .unwrap();
        let [a] = &manifest.machines[..] else { panic!("{manifest:?}") };
        assert_eq!((a.line, a.position, &*a.bmc.address), (2, 1, "10.0.0.1:6230"));
        assert_eq!((&a.group, &a.bmc.user), (&None, &Some("admin".to_owned())));
    }

    #[test]
    fn a_bad_row_names_its_line_and_column() {
        let error =
            read("r1", "name,mac,bmc_type,bmc_address\na,m,redfish,x\nb,m,lom,x\n").unwrap_err();
        assert_eq!(error.line, 3);
        assert!(error.problem.contains("lom"), "{error}");
    }
}
