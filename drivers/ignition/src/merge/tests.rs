use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(parent: Value, child: Value, want: Value) {
    let config = |mut value: Value| -> Config {
        value["ignition"] = json!({"version": "3.3.0"});
        serde_json::from_value(value).expect("the example is a config")
    };
    let merged = merge(&config(parent), &config(child));
    let mut merged: Value = serde_json::from_str(&crate::json(&merged)).unwrap();
    merged.as_object_mut().unwrap().remove("ignition");
    assert_eq!(merged, want);
}

#[test]
fn the_childs_value_wins() {
    check(
        json!({"storage": {"files": [{"path": "/a", "mode": 420, "overwrite": true}]}}),
        json!({"storage": {"files": [{"path": "/a", "mode": 384}]}}),
        json!({"storage": {"files": [{"path": "/a", "mode": 384, "overwrite": true}]}}),
    );
}

#[test]
fn a_merged_list_keeps_the_parents_order_and_appends_new_entries() {
    check(
        json!({"systemd": {"units": [{"name": "b.service"}, {"name": "a.service", "enabled": true}]}}),
        json!({"systemd": {"units": [{"name": "c.service"}, {"name": "a.service", "mask": true}]}}),
        json!({"systemd": {"units": [
            {"name": "b.service"}, {"name": "a.service", "enabled": true, "mask": true}, {"name": "c.service"}]}}),
    );
}

#[test]
fn a_link_of_the_child_replaces_a_file_of_the_parent() {
    check(
        json!({"storage": {"files": [{"path": "/a"}, {"path": "/b"}]}}),
        json!({"storage": {"links": [{"path": "/a", "target": "/b"}]}}),
        json!({"storage": {"files": [{"path": "/b"}], "links": [{"path": "/a", "target": "/b"}]}}),
    );
}

#[test]
fn a_kernel_argument_is_either_required_or_forbidden() {
    check(
        json!({"kernelArguments": {"shouldExist": ["quiet", "a=b"]}}),
        json!({"kernelArguments": {"shouldNotExist": ["quiet"]}}),
        json!({"kernelArguments": {"shouldExist": ["a=b"], "shouldNotExist": ["quiet"]}}),
    );
}

#[test]
fn an_appending_list_keeps_equal_entries() {
    check(
        json!({"storage": {"files": [{"path": "/a", "append": [{"source": "data:,x"}]}]}}),
        json!({"storage": {"files": [{"path": "/a", "append": [{"source": "data:,x"}]}]}}),
        json!({"storage": {"files": [{"path": "/a", "append": [{"source": "data:,x"}, {"source": "data:,x"}]}]}}),
    );
}

#[test]
fn a_header_without_value_removes_the_parents() {
    let headers = |headers: Value| json!({"storage": {"files": [{"path": "/a", "contents": {"httpHeaders": headers}}]}});
    check(
        headers(json!([{"name": "x", "value": "1"}, {"name": "y", "value": "2"}])),
        headers(json!([{"name": "x"}])),
        headers(json!([{"name": "y", "value": "2"}])),
    );
}

#[test]
fn a_header_with_a_value_replaces_the_parents() {
    let headers = |headers: Value| json!({"storage": {"files": [{"path": "/a", "contents": {"httpHeaders": headers}}]}});
    check(
        headers(json!([{"name": "x", "value": "1"}, {"name": "y", "value": "2"}])),
        headers(json!([{"name": "x", "value": "3"}])),
        headers(json!([{"name": "x", "value": "3"}, {"name": "y", "value": "2"}])),
    );
}

#[test]
fn each_list_is_united_by_its_own_key() {
    check(
        json!({"storage": {
            "disks": [{"device": "/dev/vda", "wipeTable": true, "partitions": [
                {"number": 1, "label": "a"}, {"number": 2, "label": "b"}, {"number": 0, "label": "c", "sizeMiB": 5}]}],
            "filesystems": [{"device": "/dev/vda1", "format": "xfs"}],
        }}),
        json!({"storage": {
            "disks": [{"device": "/dev/vda", "partitions": [
                {"number": 2, "label": "d"}, {"number": 0, "label": "c", "startMiB": 7}]}],
            "filesystems": [{"device": "/dev/vda1", "label": "root"}],
        }}),
        json!({"storage": {
            "disks": [{"device": "/dev/vda", "wipeTable": true, "partitions": [
                {"number": 1, "label": "a"}, {"number": 2, "label": "d"},
                {"number": 0, "label": "c", "sizeMiB": 5, "startMiB": 7}]}],
            "filesystems": [{"device": "/dev/vda1", "format": "xfs", "label": "root"}],
        }}),
    );
}

#[test]
fn keys_and_groups_of_a_user_are_united() {
    check(
        json!({"passwd": {"users": [{"name": "core", "groups": ["a"], "sshAuthorizedKeys": ["k1"]}]}}),
        json!({"passwd": {"users": [{"name": "core", "groups": ["a", "b"], "sshAuthorizedKeys": ["k2"]}]}}),
        json!({"passwd": {"users": [{"name": "core", "groups": ["a", "b"], "sshAuthorizedKeys": ["k1", "k2"]}]}}),
    );
}

fn some_config() -> impl Strategy<Value = Config> {
    let path = prop::sample::select(vec!["/a", "/b", "/c/d"]);
    let file = (path.clone(), prop::option::of(0_i64..0o777), any::<bool>()).prop_map(
        |(path, mode, overwrite)| {
            let mut file = crate::File::new(path.to_owned());
            file.mode = mode;
            file.overwrite = Some(overwrite);
            file
        },
    );
    let name = prop::sample::select(vec!["a.service", "b.timer"]);
    let unit = (name, any::<Option<bool>>()).prop_map(|(name, enabled)| {
        let mut unit = crate::Unit::new(name.to_owned());
        unit.enabled = enabled;
        unit
    });
    let directory = path.prop_map(|path| crate::Directory::new(path.to_owned()));
    let lists = (
        prop::collection::vec(directory, 0..3),
        prop::collection::vec(file, 0..4),
        prop::collection::vec(unit, 0..3),
    );
    lists.prop_map(|(mut directories, mut files, mut units)| {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        directories.retain(|it| files.iter().all(|file| file.path != it.path));
        directories.sort_by(|a, b| a.path.cmp(&b.path));
        directories.dedup_by(|a, b| a.path == b.path);
        units.sort_by(|a, b| a.name.cmp(&b.name));
        units.dedup_by(|a, b| a.name == b.name);
        crate::build::config(directories, files, units)
    })
}

fn without_directories(mut config: Config) -> Config {
    if let Some(storage) = &mut config.storage {
        storage.directories = None;
    }
    config
}

fn sorted(config: &Config) -> String {
    let mut config = config.clone();
    if let Some(storage) = &mut config.storage {
        storage.files.iter_mut().for_each(|it| it.sort_by(|a, b| a.path.cmp(&b.path)));
        storage.directories.iter_mut().for_each(|it| it.sort_by(|a, b| a.path.cmp(&b.path)));
    }
    if let Some(systemd) = &mut config.systemd {
        systemd.units.iter_mut().for_each(|it| it.sort_by(|a, b| a.name.cmp(&b.name)));
    }
    crate::json(&config)
}

proptest! {
    #[test]
    fn a_config_merged_with_itself_or_with_nothing_stays_the_same(config in some_config()) {
        prop_assert_eq!(sorted(&merge(&config, &config)), sorted(&config));
        prop_assert_eq!(sorted(&merge(&config, &Config::default())), sorted(&config));
        prop_assert_eq!(sorted(&merge(&Config::default(), &config)), sorted(&config));
    }

    #[test]
    fn merging_is_associative(a in some_config(), b in some_config(), c in some_config()) {
        // The law does not hold for a path that changes its kind twice: the config in between removes the first entry.
        let [a, b, c] = [a, b, c].map(without_directories);
        let left = merge(&merge(&a, &b), &c);
        let right = merge(&a, &merge(&b, &c));
        prop_assert_eq!(sorted(&left), sorted(&right));
    }

    #[test]
    fn valid_configs_of_files_and_units_stay_valid(a in some_config(), b in some_config()) {
        let mistakes = |config: &Config| crate::check(config).into_iter().map(|it| it.to_string()).collect::<Vec<_>>();
        prop_assume!(mistakes(&a).is_empty() && mistakes(&b).is_empty());
        prop_assert_eq!(mistakes(&merge(&a, &b)), Vec::<String>::new());
    }
}
