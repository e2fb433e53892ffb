//! Checks the sample racks and systemd units that administrators start from.

use rack_manifest::{Manifest, ManifestError, check, read_csv, read_yaml};
use tidy::{assert_none, root, text_files};

fn read(path: &str, text: &str) -> Option<Result<Manifest, Vec<ManifestError>>> {
    let file = path.strip_prefix("deploy/")?.rsplit('/').next()?;
    let (name, format) = file.rsplit_once('.')?;
    match format {
        "yaml" if name.starts_with("rack") => Some(read_yaml(text)),
        "csv" => Some(read_csv(name, text)),
        _ => None,
    }
}

#[test]
fn sample_racks_have_no_mistakes() {
    let read = |file: &tidy::TextFile| Some((file.path.clone(), read(&file.path, &file.text)?));
    let racks: Vec<_> = text_files().iter().filter_map(read).collect();
    assert!(!racks.is_empty(), "deploy/ holds no rack");
    let wrong = racks.into_iter().flat_map(|(path, rack)| match rack {
        Ok(rack) => check(&rack).iter().map(|mistake| format!("{path}: {mistake}")).collect(),
        Err(error) => vec![format!("{path}: {error:?}")],
    });
    assert_none("sample racks that cannot be enrolled", wrong);
}

#[test]
fn files_named_by_sample_racks_exist() {
    let folder = root().join("deploy/dev");
    let rack = std::fs::read_to_string(folder.join("rack.yaml")).expect("there is a sample rack");
    let named = rack.split("password_file: ").skip(1);
    let named: Vec<&str> =
        named.filter_map(|rest| rest.split([',', '}', '\n']).next()).map(str::trim).collect();
    assert!(!named.is_empty(), "deploy/dev/rack.yaml names no password file");
    let gone = named.into_iter().filter(|name| !folder.join(name).is_file());
    assert_none("deploy/dev/rack.yaml names files that are not there", gone.map(str::to_owned));
}

/// Whether the unit limits the memory of its service: bytes, with an optional suffix of systemd.
fn bounds_memory(unit: &str) -> bool {
    let service = unit.split("\n[").find(|section| section.starts_with("Service]"));
    let mut lines = service.into_iter().flat_map(str::lines);
    let bound = lines.find_map(|line| line.strip_prefix("MemoryMax="));
    let number = bound.map(|bound| bound.trim_end_matches(['K', 'M', 'G']));
    number.is_some_and(|number| number.parse::<u64>().is_ok_and(|number| number > 0))
}

#[test]
fn every_unit_limits_the_memory_of_its_service() {
    let is_unit = |path: &str| path.starts_with("deploy/systemd/") && path.ends_with(".service");
    let units: Vec<_> = text_files().into_iter().filter(|it| is_unit(&it.path)).collect();
    assert!(units.len() >= 3, "deploy/systemd lacks a unit");
    let without = units.into_iter().filter(|unit| !bounds_memory(&unit.text));
    assert_none("units without a MemoryMax=", without.map(|unit| unit.path));
    assert!(!bounds_memory("[Unit]\nMemoryMax=1G\n[Service]\nMemoryMax=infinity\n"));
}
