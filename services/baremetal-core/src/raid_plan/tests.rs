//! Which controllers and drives the volumes of a configuration get.

use expect_test::{Expect, expect};
use hardware::{ApplyTime, DriveMedia};
use serde_json::{Value, json};

use super::*;
use crate::{
    CREATE_RAID, Driver, Interface, Node, NodeUuid, RaidInterface, Step, StepKind, StepName,
    StepRunner, raid_request,
};

/// A controller `c1` with four SSDs of 100 GiB and four hard disks of 400 GiB; and `c2` with two SSDs, which makes no RAID 5.
fn controllers() -> Vec<StorageController> {
    let drive = |controller: &str, id: &str, gib: u64| RaidDrive {
        id: id.to_owned(),
        path: format!("/{controller}/{id}"),
        size_bytes: gib * GIB,
        media: Some(if id.starts_with('s') { DriveMedia::Ssd } else { DriveMedia::Hdd }),
        protocol: Some(if id.starts_with('s') { "sata" } else { "sas" }.to_owned()),
        is_usable: true,
    };
    let small = ["s1", "s2", "s3", "s4"].map(|id| drive("c1", id, 100));
    let large = ["h1", "h2", "h3", "h4"].map(|id| drive("c1", id, 400));
    let controller = |id: &str, levels, drives| StorageController {
        id: id.to_owned(),
        path: format!("/{id}"),
        levels,
        applies: ApplyTime::Immediate,
        drives,
        volumes: Vec::new(),
    };
    let second = ["s8", "s9"].map(|id| drive("c2", id, 200));
    vec![
        controller("c1", None, small.into_iter().chain(large).collect()),
        controller("c2", Some(vec![RaidLevel::Raid0, RaidLevel::Raid1]), second.to_vec()),
    ]
}

fn volume(level: RaidLevel, gib: u64, drives: &[&str]) -> RaidVolume {
    RaidVolume {
        id: "7".to_owned(),
        path: "/c1/v/7".to_owned(),
        name: Some("old".to_owned()),
        is_raid: true,
        level: Some(level),
        size_bytes: Some(gib * GIB),
        drives: drives.iter().map(|id| format!("/c1/{id}")).collect(),
    }
}

fn plan(controllers: &[StorageController], disks: &Value, args: &Value) -> String {
    let mut node = Node::new(NodeUuid::nil(), Driver::Redfish, jiff::Timestamp::UNIX_EPOCH);
    node.interfaces.raid = Some(RaidInterface::Redfish);
    node.target_raid_config.insert("logical_disks".to_owned(), disks.clone());
    let step = Step {
        kind: StepKind::Clean,
        runner: StepRunner::Conductor,
        name: StepName { interface: Interface::Raid, step: CREATE_RAID.to_owned() },
        args: args.as_object().unwrap().clone(),
        priority: 0,
        reboots: false,
        children: None,
    };
    let planned =
        raid_request(&node, &step).and_then(|request| plan_raid(controllers, &request, "bp1"));
    let told = |change: VolumeChange| match change {
        VolumeChange::Delete { volume, .. } => format!("delete {volume}"),
        VolumeChange::Create { volume, is_root } => {
            let size = volume.size_bytes.map_or("MAX".to_owned(), |size| (size / GIB).to_string());
            let (name, level) = (&volume.name, volume.level.as_str());
            let root = if is_root { " root" } else { "" };
            format!("{name}: {size} of level {level} on {}{root}", volume.drives.join(" "))
        }
    };
    match planned {
        Ok(changes) => changes.into_iter().map(told).collect::<Vec<_>>().join("; "),
        Err(why) => why.to_string(),
    }
}

#[track_caller]
fn check(disks: Value, want: Expect) {
    want.assert_eq(&plan(&controllers(), &disks, &json!({})));
}

#[test]
fn the_fewest_drives_of_the_smallest_kind_are_chosen() {
    check(
        json!([{"size_gb": 50, "raid_level": "1", "is_root_volume": true, "volume_name": "os"}]),
        expect!["os: 50 of level 1 on /c1/s1 /c1/s2 root"],
    );
    check(
        json!([{"size_gb": 150, "raid_level": "1"}]),
        expect!["bp1-0: 150 of level 1 on /c2/s8 /c2/s9"],
    );
    check(
        json!([{"size_gb": 300, "raid_level": "5"}]),
        expect!["bp1-0: 300 of level 5 on /c1/s1 /c1/s2 /c1/s3 /c1/s4"],
    );
    check(
        json!([{"size_gb": 350, "raid_level": "6"}]),
        expect!["bp1-0: 350 of level 6 on /c1/h1 /c1/h2 /c1/h3 /c1/h4"],
    );
    check(json!([{"size_gb": 90, "raid_level": "0"}]), expect!["bp1-0: 90 of level 0 on /c1/s1"]);
    check(
        json!([{"size_gb": 190, "raid_level": "1+0"}]),
        expect!["bp1-0: 190 of level 1+0 on /c1/s1 /c1/s2 /c1/s3 /c1/s4"],
    );
}

#[test]
fn all_space_is_that_of_the_largest_kind() {
    check(
        json!([{"size_gb": "MAX", "raid_level": "5"}]),
        expect!["bp1-0: MAX of level 5 on /c1/h1 /c1/h2 /c1/h3"],
    );
    check(
        json!([{"size_gb": "MAX", "raid_level": "5", "number_of_physical_disks": 4}]),
        expect!["bp1-0: MAX of level 5 on /c1/h1 /c1/h2 /c1/h3 /c1/h4"],
    );
}

#[test]
fn properties_of_the_drives_narrow_the_choice() {
    check(
        json!([{"size_gb": 50, "raid_level": "1", "disk_type": "hdd"}]),
        expect!["bp1-0: 50 of level 1 on /c1/h1 /c1/h2"],
    );
    check(
        json!([{"size_gb": 50, "raid_level": "1", "interface_type": "sas"}]),
        expect!["bp1-0: 50 of level 1 on /c1/h1 /c1/h2"],
    );
    check(
        json!([{"size_gb": 50, "raid_level": "1", "controller": "c2"}]),
        expect!["bp1-0: 50 of level 1 on /c2/s8 /c2/s9"],
    );
    check(
        json!([{"size_gb": 50, "raid_level": "1", "controller": "c1", "physical_disks": ["s4", "h1"]}]),
        expect!["bp1-0: 50 of level 1 on /c1/s4 /c1/h1"],
    );
}

#[test]
fn several_logical_disks_share_no_drives_unless_they_may() {
    check(
        json!([
            {"size_gb": "MAX", "raid_level": "5", "disk_type": "hdd"},
            {"size_gb": 50, "raid_level": "1"},
            {"size_gb": 50, "raid_level": "0", "controller": "c1", "physical_disks": ["s1"]},
        ]),
        expect![
            "bp1-0: MAX of level 5 on /c1/h1 /c1/h2 /c1/h3; bp1-1: 50 of level 1 on /c1/s2 /c1/s3; bp1-2: 50 of level 0 on /c1/s1"
        ],
    );
    let drives = json!(["s1", "s2"]);
    let shared = |size: Value, share: bool| {
        json!({
            "size_gb": size, "raid_level": "1", "controller": "c1", "physical_disks": drives,
            "share_physical_disks": share,
        })
    };
    check(
        json!([shared(json!(40), true), shared(json!("MAX"), true)]),
        expect!["bp1-0: 40 of level 1 on /c1/s1 /c1/s2; bp1-1: MAX of level 1 on /c1/s1 /c1/s2"],
    );
    check(
        json!([shared(json!(60), true), shared(json!(50), true)]),
        expect!["logical_disks[1].size_gb: the physical disks have 40 GiB left for level 1"],
    );
    check(
        json!([shared(json!(60), false), shared(json!(10), false)]),
        expect![
            "logical_disks[1].physical_disks: the drive s1 belongs to another volume; delete that volume, or set share_physical_disks"
        ],
    );
}

#[test]
fn a_choice_is_revised_if_it_leaves_too_little_for_a_later_one() {
    // The first logical disk would fit on the small drives, which the second one needs.
    let mut only = controllers();
    only.truncate(1);
    only[0].drives.truncate(6);
    let disks = json!([
        {"size_gb": 50, "raid_level": "1"},
        {"size_gb": 150, "raid_level": "6"},
    ]);
    let planned = plan(&only, &disks, &json!({}));
    expect!["bp1-0: 50 of level 1 on /c1/h1 /c1/h2; bp1-1: 150 of level 6 on /c1/s1 /c1/s2 /c1/s3 /c1/s4"]
        .assert_eq(&planned);
}

#[test]
fn volumes_that_exist_are_deleted_first_or_keep_their_drives() {
    let mut used = controllers();
    used[0].volumes = vec![volume(RaidLevel::Raid5, 200, &["s1", "s2", "s3"])];
    used[0].volumes.push(RaidVolume {
        is_raid: false,
        path: "/c1/v/8".to_owned(),
        drives: vec!["/c1/s4".to_owned()],
        ..volume(RaidLevel::Raid0, 100, &[])
    });
    let disks = json!([{"size_gb": 50, "raid_level": "1", "controller": "c1", "disk_type": "ssd"}]);
    let planned = |args: Value| plan(&used, &disks, &args);
    expect![
        "logical_disks[0]: too few free physical disks of one kind and size for 50 GiB of level 1; delete_existing frees those of other volumes"
    ]
    .assert_eq(&planned(json!({})));
    expect!["delete /c1/v/7; bp1-0: 50 of level 1 on /c1/s1 /c1/s2"]
        .assert_eq(&planned(json!({"delete_existing": true})));
    // A drive that no volume combines with others is free.
    let single =
        json!([{"size_gb": 50, "raid_level": "0", "disk_type": "ssd", "controller": "c1"}]);
    assert_eq!(plan(&used, &single, &json!({})), "bp1-0: 50 of level 0 on /c1/s4");
}

#[test]
fn a_logical_disk_that_shares_its_drives_uses_their_rest() {
    let shares = |size: Value| json!([{"size_gb": size, "raid_level": "1", "disk_type": "ssd", "share_physical_disks": true}]);
    let plan = |used: u64, drives: usize, disks: &Value| {
        let mut only = controllers();
        only.truncate(1);
        only[0].drives.truncate(drives);
        only[0].volumes = vec![volume(RaidLevel::Raid1, used, &["s1", "s2"])];
        plan(&only, disks, &json!({}))
    };
    let alone = json!([{"size_gb": 50, "raid_level": "1", "disk_type": "ssd"}]);
    assert_eq!(plan(40, 4, &shares(json!(50))), "bp1-0: 50 of level 1 on /c1/s1 /c1/s2");
    assert_eq!(plan(40, 4, &shares(json!(70))), "bp1-0: 70 of level 1 on /c1/s3 /c1/s4");
    assert_eq!(plan(40, 4, &alone), "bp1-0: 50 of level 1 on /c1/s3 /c1/s4");
    assert_eq!(plan(40, 2, &shares(json!("MAX"))), "bp1-0: MAX of level 1 on /c1/s1 /c1/s2");
    let refused = plan(100, 2, &shares(json!("MAX")));
    assert!(refused.starts_with("logical_disks[0]: too few free physical disks"), "{refused}");
}

#[test]
fn a_named_drive_may_have_another_volume_only_if_both_share_it() {
    let disk = |size: Value, share: bool| {
        json!({
            "size_gb": size, "raid_level": "1", "controller": "c1", "physical_disks": ["s1", "s2"],
            "share_physical_disks": share,
        })
    };
    let refused = "physical_disks: the drive s1 belongs to another volume; delete that volume, or set share_physical_disks";
    for (first, second) in [(disk(json!(40), false), true), (disk(json!(40), true), false)] {
        for size in [json!(10), json!("MAX")] {
            let planned = plan(&controllers(), &json!([first, disk(size, second)]), &json!({}));
            assert_eq!(planned, format!("logical_disks[1].{refused}"));
        }
    }
    let mut used = controllers();
    used[0].volumes = vec![volume(RaidLevel::Raid1, 40, &["s1", "s2"])];
    let planned = |share| plan(&used, &json!([disk(json!(10), share)]), &json!({}));
    assert_eq!(planned(false), format!("logical_disks[0].{refused}"));
    assert_eq!(planned(true), "bp1-0: 10 of level 1 on /c1/s1 /c1/s2");
}

#[test]
fn a_search_gives_up_after_too_many_choices() {
    // Each hard disk has two kinds of drives to choose from, and the last logical disk has drives only if the first has none of the SSDs.
    let mut only = controllers();
    only.truncate(1);
    let drives = &mut only[0].drives;
    let (ssds, large) = (drives[..2].to_vec(), drives[4].clone());
    let hdds = (0..28).map(|number| RaidDrive {
        path: format!("/c1/h{number}"),
        size_bytes: if number < 14 { 200 * GIB } else { 400 * GIB },
        ..large.clone()
    });
    *drives = ssds.into_iter().chain(hdds).collect();
    let disks = |hdds: usize| {
        let mut disks = vec![json!({"size_gb": 1, "raid_level": "0"})];
        disks.resize(1 + hdds, json!({"size_gb": 1, "raid_level": "0", "disk_type": "hdd"}));
        disks.push(json!({"size_gb": 1, "raid_level": "1", "disk_type": "ssd"}));
        Value::from(disks)
    };
    let found = plan(&only, &disks(3), &json!({}));
    assert!(found.starts_with("bp1-0: 1 of level 0 on /c1/h0; "), "{found}");
    let refused = plan(&only, &disks(13), &json!({}));
    assert!(refused.starts_with("logical_disks[14]: too few free physical disks"), "{refused}");
}

#[test]
fn what_cannot_be_made_is_refused_by_name() {
    check(
        json!([{"size_gb": 1, "raid_level": "1", "controller": "c9"}]),
        expect![
            "logical_disks[0].controller: the BMC lists no storage controller c9 for RAID; it lists c1, c2"
        ],
    );
    check(
        json!([{"size_gb": 1, "raid_level": "5", "controller": "c2"}]),
        expect![
            "logical_disks[0].raid_level: the storage controller c2 makes no volumes of level 5"
        ],
    );
    check(
        json!([{"size_gb": 1, "raid_level": "1", "controller": "c1", "physical_disks": ["s1", "s9"]}]),
        expect![
            "logical_disks[0].physical_disks: the storage controller c1 lists no drive s9; it lists s1, s2, s3, s4, h1, h2, h3, h4"
        ],
    );
    check(
        json!([{"size_gb": 1, "raid_level": "1", "controller": "c1", "physical_disks": ["s1", "s1"]}]),
        expect!["logical_disks[0].physical_disks: names the drive s1 twice"],
    );
    check(
        json!([{"size_gb": 1, "raid_level": "1", "controller": "c1", "physical_disks": ["s1", "s2"], "disk_type": "hdd"}]),
        expect![
            "logical_disks[0].physical_disks: the drive s1 is not of the wanted disk_type or interface_type"
        ],
    );
    check(
        json!([{"size_gb": 101, "raid_level": "1", "controller": "c1", "physical_disks": ["s1", "s2"]}]),
        expect!["logical_disks[0].size_gb: the physical disks have 100 GiB left for level 1"],
    );
    check(
        json!([{"size_gb": 10, "raid_level": "1"}, {"size_gb": 10, "raid_level": "6+0"}]),
        expect![
            "logical_disks[1]: too few free physical disks of one kind and size for 10 GiB of level 6+0; delete_existing frees those of other volumes"
        ],
    );
    let mut failing = controllers();
    failing[0].drives[0].is_usable = false;
    let disks = json!([{"size_gb": 1, "raid_level": "1", "controller": "c1", "physical_disks": ["s1", "s2"]}]);
    assert_eq!(
        plan(&failing, &disks, &json!({})),
        "logical_disks[0].physical_disks: the drive s1 is absent, failing or a spare"
    );
    let disks = json!([{"size_gb": 1, "raid_level": "1"}]);
    let planned = plan(&failing, &disks, &json!({}));
    assert_eq!(planned, "bp1-0: 1 of level 1 on /c1/s2 /c1/s3");
    let mut none = controllers();
    none.iter_mut().for_each(|it| it.levels = Some(Vec::new()));
    assert_eq!(
        plan(&none, &disks, &json!({})),
        "logical_disks[0].controller: the BMC lists no storage controller that makes RAID volumes"
    );
}
