//! Reads manifests in CSV: one machine per line, with the column names in the first line.

use csv::StringRecord;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::{Map, Value};

use crate::{Bmc, BmcKind, Machine, Manifest, ManifestError, Password, check};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    position: Option<u32>,
    mac: String,
    /// Read as text, because the CSV reader does not report the column of an unknown enum value.
    bmc_type: String,
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

/// The columns that a file may have.
const COLUMNS: [&str; 15] = [
    "name",
    "position",
    "mac",
    "bmc_type",
    "bmc_address",
    "user",
    "password_file",
    "password_env",
    "system",
    "verify",
    "cipher_suite",
    "boot",
    "group",
    "role",
    "resource_class",
];

/// The columns that a file must have.
const NEEDED: [&str; 4] = ["name", "mac", "bmc_type", "bmc_address"];

/// Reads a manifest in CSV with a header line. The file does not contain the name of the rack, so the caller gives the name.
///
/// If rows cannot be read, the result also lists the mistakes that `check` finds in the other rows.
pub fn read_csv(rack: &str, text: &str) -> Result<Manifest, Vec<ManifestError>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let header = reader.headers().cloned();
    let header = header.map_err(|error| vec![unreadable(&error, &StringRecord::new())])?;
    let columns = check_columns(&header);
    if !columns.is_empty() {
        return Err(columns);
    }
    let (mut machines, mut mistakes) = (Vec::new(), Vec::new());
    for (index, record) in reader.records().enumerate() {
        let row = record.and_then(|record| {
            let line = record.position().map_or(0, csv::Position::line);
            Ok((line, record.deserialize::<Row>(Some(&header))?))
        });
        match row {
            Ok((line, row)) => match kind(&row) {
                Ok(kind) => machines.push(machine(line, index, row, kind)),
                Err(problem) => {
                    mistakes.push(ManifestError { line, field: "bmc_type".to_owned(), problem });
                }
            },
            Err(error) => mistakes.push(unreadable(&error, &header)),
        }
    }
    let manifest = Manifest { rack: rack.to_owned(), description: None, machines };
    if mistakes.is_empty() {
        return Ok(manifest);
    }
    if !manifest.machines.is_empty() {
        mistakes.extend(check(&manifest));
    }
    mistakes.sort_by_key(|mistake| mistake.line);
    Err(mistakes)
}

fn check_columns(header: &StringRecord) -> Vec<ManifestError> {
    let mistake =
        |field: &str, problem: String| ManifestError { line: 1, field: field.into(), problem };
    let unknown = header.iter().filter(|column| !COLUMNS.contains(column));
    let unknown = unknown.map(|column| {
        let shown: String = column.chars().take(64).collect();
        mistake(&shown, format!("unknown column; the columns are {}", COLUMNS.join(", ")))
    });
    let twice = COLUMNS.iter().filter(|name| header.iter().filter(|own| own == *name).count() > 1);
    let twice = twice.map(|column| mistake(column, "two columns have this name".into()));
    let missing = NEEDED.iter().filter(|name| !header.iter().any(|column| column == **name));
    let missing = missing.map(|column| mistake(column, "this column is missing".into()));
    unknown.chain(twice).chain(missing).collect()
}

fn unreadable(error: &csv::Error, header: &StringRecord) -> ManifestError {
    let line = error.position().map_or(0, csv::Position::line);
    let (field, problem) = if let csv::ErrorKind::Deserialize { err, .. } = error.kind() {
        let column = err.field().and_then(|index| header.get(usize::try_from(index).ok()?));
        (column.unwrap_or_default(), err.kind().to_string())
    } else if let csv::ErrorKind::UnequalLengths { expected_len, len, .. } = error.kind() {
        ("", format!("has {len} fields, but the first line has {expected_len}"))
    } else {
        ("", error.to_string())
    };
    ManifestError { line, field: field.to_owned(), problem }
}

fn kind(row: &Row) -> Result<BmcKind, String> {
    let word = row.bmc_type.as_str().into_deserializer();
    BmcKind::deserialize(word).map_err(|error: serde::de::value::Error| error.to_string())
}

fn machine(line: u64, index: usize, row: Row, kind: BmcKind) -> Machine {
    let file = row.password_file.map(Password::File);
    Machine {
        line,
        name: row.name,
        position: row.position.unwrap_or(index as u32 + 1),
        macs: row.mac.split_whitespace().map(str::to_owned).collect(),
        bmc: Bmc {
            kind,
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
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn columns_may_come_in_any_order_and_be_left_out_or_empty() {
        let manifest = read_csv(
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
    fn verify_is_a_truth_value_or_a_fingerprint() {
        let manifest = read_csv(
            "r1",
            "name,mac,bmc_type,bmc_address,verify\n\
             a,,redfish,10.0.0.1,true\n\
             b,,redfish,10.0.0.2,false\n\
             c,,redfish,10.0.0.3,sha256:ab\n\
             d,,redfish,10.0.0.4,\n",
        )
        .unwrap();
        let read: Vec<_> = manifest.machines.into_iter().map(|it| it.bmc.verify).collect();
        let fingerprint = Value::String("sha256:ab".to_owned());
        assert_eq!(
            read,
            [Some(Value::Bool(true)), Some(Value::Bool(false)), Some(fingerprint), None]
        );
    }

    #[track_caller]
    fn check_refused(text: &str, want: Expect) {
        let mistakes = read_csv("r1", text).unwrap_err();
        want.assert_eq(&mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn every_bad_row_names_its_line_and_column() {
        check_refused(
            "name,mac,bmc_type,bmc_address,user,password_env,position\n\
             a,52:54:00:00:00:01,lom,10.0.0.1,admin,PW,1\n\
             b,52:54:00:00:00:zz,ipmi,10.0.0.2,admin,PW,2\n\
             c,52:54:00:00:00:03,ipmi,10.0.0.3,admin,PW,third\n\
             d,52:54:00:00:00:04,ipmi\n",
            expect![[r#"
                line 2: bmc_type: unknown variant `lom`, expected one of `redfish`, `idrac`, `ipmi`, `fake`
                line 3: mac: "52:54:00:00:00:zz" is not a MAC address
                line 4: position: invalid digit found in string
                line 5: has 3 fields, but the first line has 7"#]],
        );
    }

    #[test]
    fn unknown_and_missing_columns_are_named() {
        check_refused(
            "name,mac,bmc,bmc_address,name\na,m,redfish,x,b\n",
            expect![[r#"
                line 1: bmc: unknown column; the columns are name, position, mac, bmc_type, bmc_address, user, password_file, password_env, system, verify, cipher_suite, boot, group, role, resource_class
                line 1: name: two columns have this name
                line 1: bmc_type: this column is missing"#]],
        );
    }
}
