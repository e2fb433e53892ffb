//! Rules for disks, partitions, file systems, RAID and encryption.

use super::files::path;
use super::mistake::Mistake;
use super::places::ConfigValue;

/// The longest allowed label of each file system, in bytes.
const FORMATS: [(&str, usize); 6] =
    [("ext4", 16), ("btrfs", 256), ("xfs", 12), ("swap", 15), ("vfat", 11), ("none", usize::MAX)];

const LEVELS: [&str; 15] = [
    "linear", "raid0", "0", "stripe", "raid1", "1", "mirror", "raid4", "4", "raid5", "5", "raid6",
    "6", "raid10", "10",
];

pub(crate) fn check(root: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let storage = root.field("storage");
    for disk in storage.list("disks") {
        path(&disk.field("device"), mistakes);
        let partitions = disk.list("partitions");
        for partition in &partitions {
            this_partition(partition, mistakes);
        }
        overlaps(&partitions, mistakes);
        labels(&partitions, mistakes);
    }
    for raid in storage.list("raid") {
        let level = raid.field("level");
        if !level.filled().is_some_and(|it| LEVELS.contains(&it)) {
            mistakes.push(level.mistake("not a RAID level"));
        }
        let striped =
            level.text().is_some_and(|it| matches!(it, "linear" | "raid0" | "0" | "stripe"));
        if striped && raid.field("spares").number().is_some_and(|it| it != 0) {
            mistakes.push(raid.field("spares").mistake("this level has no spares"));
        }
        let devices = raid.list("devices");
        if devices.is_empty() {
            mistakes.push(raid.field("devices").mistake("devices are missing"));
        }
        devices.iter().for_each(|device| path(device, mistakes));
    }
    storage.list("filesystems").iter().for_each(|it| file_system(it, mistakes));
    storage.list("luks").iter().for_each(|it| luks(it, mistakes));
}

fn this_partition(partition: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let (label, number) = (partition.field("label"), partition.field("number"));
    let has_number = number.number().is_some_and(|it| it != 0);
    if !has_number && label.text().is_none() {
        mistakes.push(partition.mistake("a number or a label is missing"));
    }
    if number.number().is_some_and(|it| it < 0) {
        mistakes.push(number.mistake("partitions are counted from 1"));
    }
    if label.text().is_some_and(|it| it.len() > 36 || it.contains(':')) {
        mistakes.push(label.mistake("a label has at most 36 characters and no `:`"));
    }
    for size in ["sizeMiB", "startMiB"] {
        let size = partition.field(size);
        if size.number().is_some_and(|it| it < 0) {
            mistakes.push(size.mistake("MiB cannot be negative"));
        }
    }
    for guid in ["guid", "typeGuid"] {
        let guid = partition.field(guid);
        if guid.text().is_some_and(|it| !it.is_empty() && !is_guid(it)) {
            mistakes.push(guid.mistake("not a GUID: use 8-4-4-4-12 hexadecimal digits"));
        }
    }
    let absent = partition.field("shouldExist").value.as_bool() == Some(false);
    let described = ["label", "guid", "typeGuid", "startMiB", "sizeMiB"];
    if absent && described.iter().any(|it| !partition.field(it).value.is_null()) {
        mistakes.push(partition.mistake("a partition that is removed can have a number only"));
    }
}

fn labels(partitions: &[ConfigValue<'_>], mistakes: &mut Vec<Mistake>) {
    for (index, partition) in partitions.iter().enumerate() {
        let label = partition.field("label");
        let same = |other: &&ConfigValue<'_>| other.field("label").text() == label.text();
        // The rule about duplicate keys reports entries with the same key already.
        let other = partitions[..index].iter().find(same).filter(|_| label.text().is_some());
        let numbered = partition.field("number").number().is_some_and(|it| it != 0);
        if let Some(other) = other.filter(|_| numbered) {
            mistakes.push(label.mistake(format!("same label as {}", other.path)));
        }
    }
}

fn overlaps(partitions: &[ConfigValue<'_>], mistakes: &mut Vec<Mistake>) {
    let span = |it: &ConfigValue<'_>| {
        let start = it.field("startMiB").number().filter(|start| *start > 0)?;
        let size = it.field("sizeMiB").number()?;
        // A size of 0 means the rest of the disk, so the partition takes at least 1 MiB.
        Some((start, start.saturating_add(size.max(1))))
    };
    for (index, partition) in partitions.iter().enumerate() {
        let Some((start, end)) = span(partition) else { continue };
        let meets = |other: &&ConfigValue<'_>| {
            span(other).is_some_and(|(first, last)| start < last && first < end)
        };
        if let Some(other) = partitions[..index].iter().find(meets) {
            mistakes.push(partition.mistake(format!("overlaps {}", other.path)));
        }
    }
}

fn file_system(it: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    path(&it.field("device"), mistakes);
    if it.field("path").filled().is_some() {
        path(&it.field("path"), mistakes);
    }
    let (format, label) = (it.field("format"), it.field("label"));
    let Some(name) = format.filled() else {
        let described =
            ["path", "label", "uuid"].iter().any(|field| it.field(field).filled().is_some());
        let options = ["mountOptions", "options"].iter().any(|field| !it.list(field).is_empty());
        if described || options || it.field("wipeFilesystem").is_true() {
            mistakes.push(format.mistake("a format is missing"));
        }
        return;
    };
    match FORMATS.iter().find(|(known, _)| *known == name) {
        None => mistakes.push(
            format.mistake(format!("`{name}` is not a file system that Ignition can create")),
        ),
        Some((_, longest)) if label.text().is_some_and(|text| text.len() > *longest) => {
            mistakes
                .push(label.mistake(format!("a label of {name} has at most {longest} characters")));
        }
        Some(_) => {}
    }
}

fn luks(it: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let name = it.field("name");
    if name.filled().is_none_or(|text| text.contains('/')) {
        mistakes.push(name.mistake("not a name: use a text without `/`"));
    }
    path(&it.field("device"), mistakes);
    let label = it.field("label");
    if label.text().is_some_and(|text| text.len() > 47) {
        mistakes.push(label.mistake("a label has at most 47 characters"));
    }
    let clevis = it.field("clevis");
    let custom = clevis.field("custom");
    if let Some(pin) = custom.field("pin").filled() {
        if !matches!(pin, "tpm2" | "tang" | "sss") {
            mistakes.push(custom.field("pin").mistake("not a pin: use tpm2, tang or sss"));
        }
        let threshold = clevis.field("threshold").number().is_some_and(|it| it != 0);
        if threshold || clevis.field("tpm2").is_true() || !clevis.list("tang").is_empty() {
            mistakes.push(clevis.mistake("`custom` cannot be combined with the other fields"));
        }
    }
    for tang in clevis.list("tang") {
        if tang.field("thumbprint").filled().is_none() {
            mistakes.push(tang.field("thumbprint").mistake("a thumbprint is missing"));
        }
        let is_http = |text: &str| text.starts_with("http://") || text.starts_with("https://");
        if !tang.field("url").text().is_some_and(is_http) {
            mistakes.push(tang.field("url").mistake("not a URL: use http or https"));
        }
    }
}

fn is_guid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
