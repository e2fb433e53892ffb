//! Compares this crate's verdicts on configs with those of the real `ignition-validate`.

use std::io::Write;
use std::process::{Command, Stdio};

use ignition::build::{config, directory, file, inline, remote, unit};
use ignition::{Config, Document, Limits, NOVA_LIMIT, UserData, compress, json};
use proptest::prelude::*;

/// Runs `ignition-validate` on this text: `Ok` if the config is valid, `Err` with the message otherwise, `None` if the program is not
/// installed.
fn objections(text: &str) -> Option<Result<(), String>> {
    let run = Command::new("ignition-validate")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut run) = run else {
        peers::skip("ignition-validate", "it is not installed (Debian's package ignition)");
        return None;
    };
    run.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads its input");
    let output = run.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Some(if output.status.success() { Ok(()) } else { Err(said) })
}

#[track_caller]
fn is_valid(config: &Config) {
    assert_eq!(ignition::check(config), []);
    if let Some(verdict) = objections(&json(config)) {
        assert_eq!(verdict, Ok(()));
    }
}

#[test]
fn built_configs_are_valid() {
    let text = "α, β: 100 %\n#\"'\\\t\0";
    let contents = [text.as_bytes(), &[0xff, 0xfe], &[b'x'; 5000], b""].map(inline);
    let [a, b, c, d] = contents;
    let url = "https://mirror.example/kubelet";
    let files = vec![
        file("/a", 0o600, a),
        file("/b", 0o644, b),
        file("/c", 0o755, c),
        file("/d", 0o644, d),
        file("/e", 0o755, remote(url, &"0a".repeat(32))),
    ];
    let service = "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true \\\n  a\n[Install]\nWantedBy=multi-user.target\n";
    let mut made = config(vec![directory("/f", 0o700)], files, vec![unit("x.service", service)]);
    is_valid(&made);
    made = compress(&made);
    is_valid(&made);
    assert!(UserData::from_config(&made).unwrap().base64().len() <= NOVA_LIMIT);
}

/// Documents with one mistake each.
const WRONG: &[&str] = &[
    r#""storage":{"files":[{"path":"a"}]}"#,
    r#""storage":{"files":[{"path":"/a/../b"}]}"#,
    r#""storage":{"files":[{"path":"/a","mode":4096}]}"#,
    r#""storage":{"files":[{"path":"/a","mode":"0644"}]}"#,
    r#""storage":{"files":[{"path":"/a"},{"path":"/a"}]}"#,
    r#""storage":{"files":[{"path":"/a"}],"directories":[{"path":"/a"}]}"#,
    r#""storage":{"files":[{"path":"/a/b"}],"links":[{"path":"/a","target":"/c"}]}"#,
    r#""storage":{"files":[{"path":"/a","overwrite":true}]}"#,
    r#""storage":{"files":[{"path":"/a","contents":{"source":"file:///b"}}]}"#,
    r#""storage":{"files":[{"path":"/a","contents":{"source":"data:;base64,!"}}]}"#,
    r#""storage":{"files":[{"path":"/a","contents":{"source":"data:,x","compression":"xz"}}]}"#,
    r#""storage":{"files":[{"path":"/a","contents":{"source":"data:,x","verification":{"hash":"sha256-00"}}}]}"#,
    r#""storage":{"files":[{"path":"/a","contents":{"source":"data:,x","httpHeaders":[{"name":"a","value":"b"}]}}]}"#,
    r#""storage":{"files":[{"path":"/a","user":{"id":1,"name":"core"}}]}"#,
    r#""storage":{"links":[{"path":"/a"}]}"#,
    r#""storage":{"disks":[{"device":"/dev/vda","partitions":[{"number":1},{"number":1}]}]}"#,
    r#""storage":{"disks":[{"device":"/dev/vda","partitions":[{"number":1,"guid":"x"}]}]}"#,
    r#""storage":{"filesystems":[{"device":"/dev/vda","format":"ntfs"}]}"#,
    r#""storage":{"raid":[{"name":"a","level":"raid7","devices":["/dev/vda"]}]}"#,
    r#""systemd":{"units":[{"name":"a.txt"}]}"#,
    r#""systemd":{"units":[{"name":"a.service","contents":"[Service"}]}"#,
    r#""systemd":{"units":[{"name":"a.service","dropins":[{"name":"a.txt"}]}]}"#,
    r#""systemd":{"units":[{"name":"a.service"},{"name":"a.service"}]}"#,
    r#""kernelArguments":{"shouldExist":["a"],"shouldNotExist":["a"]}"#,
];

#[test]
fn documents_that_ignition_refuses_are_refused() {
    for wrong in WRONG {
        let text = format!(r#"{{"ignition":{{"version":"3.3.0"}},{wrong}}}"#);
        assert!(Document::parse(&text, Limits::default()).is_err(), "{wrong} passes");
        match objections(&text) {
            Some(verdict) => {
                assert!(verdict.is_err(), "ignition-validate has nothing against {wrong}")
            }
            None => return,
        }
    }
}

/// Documents of random parts, some of which are invalid.
fn some_document() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["/a", "/a/b", "/b", "b", "/b/", "/", ""]);
    let mode = prop::sample::select(vec!["420", "4095", "4096", "-1", "null"]);
    let source = prop::sample::select(vec![
        "data:,a%20b",
        "data:;base64,YQ==",
        "https://a/b",
        "gopher://a",
        "",
        "data:x",
    ]);
    let file = (path.clone(), mode, source, any::<bool>()).prop_map(|(path, mode, source, overwrite)| {
        format!(r#"{{"path":"{path}","mode":{mode},"overwrite":{overwrite},"contents":{{"source":"{source}"}}}}"#)
    });
    let link = path.prop_map(|path| format!(r#"{{"path":"{path}","target":"/t"}}"#));
    let name = prop::sample::select(vec!["a.service", "b.timer", "b.mount", "c", "d.conf"]);
    let contents =
        prop::sample::select(vec!["", "[Unit]\\nA=b\\n", "[Unit]\\n", "[Unit\\n", "# only\\n"]);
    let unit = (name, contents)
        .prop_map(|(name, contents)| format!(r#"{{"name":"{name}","contents":"{contents}"}}"#));
    let lists = (
        prop::collection::vec(file, 0..3),
        prop::collection::vec(link, 0..2),
        prop::collection::vec(unit, 0..3),
    );
    lists.prop_map(|(files, links, units)| {
        let (files, links, units) = (files.join(","), links.join(","), units.join(","));
        format!(
            r#"{{"ignition":{{"version":"3.3.0"}},"storage":{{"files":[{files}],"links":[{links}]}},"systemd":{{"units":[{units}]}}}}"#
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn ignition_agrees_on_documents_of_any_kind(text in some_document()) {
        let ours = Document::parse(&text, Limits::default());
        if let Some(theirs) = objections(&text) {
            prop_assert_eq!(ours.is_ok(), theirs.is_ok(), "ours: {:?}\ntheirs: {:?}\n{}", ours, theirs, text);
        }
    }
}

#[test]
fn the_config_of_a_hypervisor_of_containers_is_valid() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let made = format!("{folder}/hypervisor.ign");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../images/hypervisor/fcos.sh");
    if !peers::installed("jq") {
        return peers::skip("jq", "it is not installed");
    }
    let run = Command::new(script).arg(&made).status().expect("the script can be started");
    assert!(run.success(), "fcos.sh failed");
    let text = std::fs::read_to_string(&made).expect("it was made");
    let document = Document::parse(&text, Limits::default()).expect("it is a config");
    is_valid(&document.config().expect("it is of a version that has types here"));
    let unit = text.contains("bedplate-hypervisor.target");
    assert!(unit, "what a profile enables is not in it");
}
