//! Disks, partitions, RAID, file systems and encryption.

use serde_json::{Value, json};

use super::check;

/// Checks partitions of one disk. `want` are the paths of mistakes below the disk's list of partitions.
#[track_caller]
fn partitions(partitions: Value, want: &[&str]) {
    let want: Vec<String> =
        want.iter().map(|it| format!("storage.disks[0].partitions{it}")).collect();
    let want: Vec<&str> = want.iter().map(String::as_str).collect();
    check(json!({"storage": {"disks": [{"device": "/dev/vda", "partitions": partitions}]}}), &want);
}

/// Checks one array. `want` are the fields with mistakes.
#[track_caller]
fn raid(raid: Value, want: &[&str]) {
    below("storage.raid[0]", json!({"storage": {"raid": [raid]}}), want);
}

#[track_caller]
fn file_system(system: Value, want: &[&str]) {
    below("storage.filesystems[0]", json!({"storage": {"filesystems": [system]}}), want);
}

#[track_caller]
fn luks(luks: Value, want: &[&str]) {
    below("storage.luks[0]", json!({"storage": {"luks": [luks]}}), want);
}

#[track_caller]
fn below(root: &str, config: Value, want: &[&str]) {
    let want: Vec<String> = want.iter().map(|field| format!("{root}.{field}")).collect();
    check(config, &want.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_disk_needs_a_device() {
    check(json!({"storage": {"disks": [{}]}}), &["storage.disks[0].device"]);
}

#[test]
fn a_partition_has_a_number_or_a_label() {
    partitions(json!([{"number": 1}, {"label": "a"}, {"number": 0, "label": "b"}]), &[]);
    partitions(json!([{"number": 0}]), &["[0]"]);
    partitions(json!([{}]), &["[0]"]);
    partitions(json!([{"number": -1}]), &["[0].number"]);
}

#[test]
fn a_partition_label_has_at_most_36_characters() {
    partitions(json!([{"label": "x".repeat(36)}]), &[]);
    partitions(json!([{"label": "x".repeat(37)}]), &["[0].label"]);
    partitions(json!([{"label": ":"}]), &["[0].label"]);
}

#[test]
fn partition_sizes_are_not_negative() {
    partitions(json!([{"number": 1, "sizeMiB": 0, "startMiB": 0}]), &[]);
    partitions(json!([{"number": 1, "sizeMiB": -1}]), &["[0].sizeMiB"]);
    partitions(json!([{"number": 1, "startMiB": -1}]), &["[0].startMiB"]);
}

#[test]
fn a_guid_has_five_groups_of_hexadecimal_digits() {
    let good = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";
    for guid in [good, &good.to_lowercase(), ""] {
        partitions(json!([{"number": 1, "guid": guid, "typeGuid": guid}]), &[]);
    }
    for guid in [
        "0FC63DAF84834772-8E79-3D69D8477DE4",
        "0FC63DA-8483-4772-8E79-3D69D8477DE4",
        "0FC63DAG-8483-4772-8E79-3D69D8477DE4",
    ] {
        partitions(json!([{"number": 1, "guid": guid}]), &["[0].guid"]);
        partitions(json!([{"number": 1, "typeGuid": guid}]), &["[0].typeGuid"]);
    }
}

#[test]
fn a_removed_partition_has_a_number_only() {
    partitions(json!([{"number": 1, "shouldExist": false}]), &[]);
    partitions(json!([{"number": 1, "shouldExist": true, "label": "a"}]), &[]);
    for (field, value) in [
        ("label", json!("a")),
        ("guid", json!("")),
        ("typeGuid", json!("")),
        ("startMiB", json!(0)),
        ("sizeMiB", json!(0)),
    ] {
        partitions(json!([{"number": 1, "shouldExist": false, field: value}]), &["[0]"]);
    }
}

#[test]
fn labels_of_numbered_partitions_differ() {
    partitions(json!([{"number": 1}, {"number": 2}]), &[]);
    partitions(json!([{"label": "a"}, {"number": 2, "label": "a"}]), &["[1].label"]);
    partitions(
        json!([{"number": 1, "label": "a"}, {"number": 2, "label": "b"}, {"number": 3, "label": "a"}]),
        &["[2].label"],
    );
    // Without a number the label is the key, which two entries cannot share.
    partitions(json!([{"label": "a"}, {"label": "a"}]), &["[1]"]);
    partitions(json!([{"label": "a"}, {"number": 0, "label": "a"}]), &["[1]"]);
}

#[test]
fn partitions_that_only_touch_do_not_overlap() {
    let two = |first: [i64; 2], second: [i64; 2], want: &[&str]| {
        let one = |number: i64, [start, size]: [i64; 2]| json!({"number": number, "startMiB": start, "sizeMiB": size});
        partitions(json!([one(1, first), one(2, second)]), want);
    };
    for (first, second) in [
        ([1, 10], [11, 5]),
        ([11, 5], [1, 10]),
        ([5, 0], [6, 1]),
        // The machine chooses a start that is 0.
        ([0, 5], [0, 5]),
        ([0, 5], [1, 5]),
    ] {
        two(first, second, &[]);
    }
    for (first, second) in [
        ([1, 10], [10, 5]),
        ([10, 5], [1, 10]),
        ([1, 100], [5, 1]),
        ([5, 1], [1, 100]),
        ([5, 0], [5, 0]),
        ([5, 2], [6, 0]),
    ] {
        two(first, second, &["[1]"]);
    }
}

#[test]
fn an_array_has_a_level_and_devices() {
    for level in [
        "linear", "raid0", "0", "stripe", "raid1", "1", "mirror", "raid4", "4", "raid5", "5",
        "raid6", "6", "raid10", "10",
    ] {
        raid(json!({"name": "a", "level": level, "devices": ["/dev/vda", "/dev/vdb"]}), &[]);
    }
    for level in ["", "2", "raid"] {
        raid(json!({"name": "a", "level": level, "devices": ["/dev/vda"]}), &["level"]);
    }
    raid(json!({"name": "a", "level": "1", "devices": []}), &["devices"]);
    raid(json!({"name": "a", "level": "1", "devices": ["/dev/vda", "vdb"]}), &["devices[1]"]);
}

#[test]
fn only_redundant_arrays_have_spares() {
    let spares = |level: &str, spares: i64| json!({"name": "a", "level": level, "devices": ["/dev/vda"], "spares": spares});
    for level in ["linear", "raid0", "0", "stripe"] {
        raid(spares(level, 1), &["spares"]);
        raid(spares(level, 0), &[]);
    }
    raid(spares("raid1", 1), &[]);
}

#[test]
fn each_file_system_has_its_longest_label() {
    for (format, longest) in [("ext4", 16), ("btrfs", 256), ("xfs", 12), ("swap", 15), ("vfat", 11)]
    {
        let system = |length: usize| json!({"device": "/dev/vda1", "format": format, "label": "x".repeat(length)});
        file_system(system(longest), &[]);
        file_system(system(longest + 1), &["label"]);
    }
    file_system(json!({"device": "/dev/vda1", "format": "none", "label": "x".repeat(1000)}), &[]);
}

#[test]
fn a_described_file_system_has_a_format() {
    file_system(json!({"device": "/dev/vda1"}), &[]);
    file_system(json!({"device": "/dev/vda1", "path": "", "wipeFilesystem": false}), &[]);
    for (field, value) in [
        ("path", json!("/var")),
        ("label", json!("a")),
        ("uuid", json!("a")),
        ("mountOptions", json!(["ro"])),
        ("options", json!(["-K"])),
        ("wipeFilesystem", json!(true)),
    ] {
        file_system(json!({"device": "/dev/vda1", field: value}), &["format"]);
    }
}

#[test]
fn a_file_system_has_absolute_paths() {
    file_system(json!({"device": "vda1", "format": "xfs"}), &["device"]);
    file_system(json!({"device": "/dev/vda1", "format": "xfs", "path": "/var"}), &[]);
    file_system(json!({"device": "/dev/vda1", "format": "xfs", "path": "var"}), &["path"]);
}

#[test]
fn an_encrypted_volume_has_a_name_and_a_device() {
    luks(json!({"name": "data", "device": "/dev/vda1", "label": "x".repeat(47)}), &[]);
    luks(json!({"device": "/dev/vda1"}), &["name"]);
    luks(json!({"name": "", "device": "/dev/vda1"}), &["name"]);
    luks(json!({"name": "a/b", "device": "/dev/vda1"}), &["name"]);
    luks(json!({"name": "a"}), &["device"]);
    luks(json!({"name": "a", "device": "/dev/vda1", "label": "x".repeat(48)}), &["label"]);
}

#[test]
fn a_custom_pin_stands_alone() {
    let clevis = |clevis: Value| json!({"name": "a", "device": "/dev/vda1", "clevis": clevis});
    for pin in ["tpm2", "tang", "sss"] {
        luks(clevis(json!({"custom": {"pin": pin}})), &[]);
        luks(clevis(json!({"custom": {"pin": pin}, "threshold": 0, "tpm2": false})), &[]);
    }
    luks(clevis(json!({"custom": {"pin": "pkcs11"}})), &["clevis.custom.pin"]);
    let tang = json!([{"url": "http://a", "thumbprint": "t"}]);
    for (field, value) in [("threshold", json!(1)), ("tpm2", json!(true)), ("tang", tang)] {
        luks(clevis(json!({"custom": {"pin": "sss"}, field: &value})), &["clevis"]);
        luks(clevis(json!({field: &value})), &[]);
    }
}

#[test]
fn a_tang_server_has_a_url_and_a_thumbprint() {
    let tang =
        |server: Value| json!({"name": "a", "device": "/dev/vda1", "clevis": {"tang": [server]}});
    for url in ["http://a", "https://a"] {
        luks(tang(json!({"url": url, "thumbprint": "t"})), &[]);
    }
    luks(tang(json!({"url": "https://a", "thumbprint": ""})), &["clevis.tang[0].thumbprint"]);
    luks(tang(json!({"url": "ftp://a", "thumbprint": "t"})), &["clevis.tang[0].url"]);
    luks(tang(json!({"thumbprint": "t"})), &["clevis.tang[0].url"]);
}
