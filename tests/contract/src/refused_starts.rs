//! Starts that a daemon refuses, so that no secret and no record is lost. The error names the file and says what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use sealing::SealingKeys;

use crate::{Daemon, Installation};

#[track_caller]
fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

fn write_private(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A missing key file is not replaced while secrets need it, and a file with other keys is refused.
pub async fn missing_key_file<D: Daemon>() {
    let given = Installation::<D>::new();
    let records = D::store_records(&given.state(), 1).await;
    let (keys, away) = (given.key_file(), given.state().join("away"));
    fs::rename(&keys, &away).unwrap();
    let said = given.refusal(&[]);
    says(&said, &[&keys.display().to_string(), "is missing", "1 records", "from its backup"]);
    assert!(!keys.exists(), "another was made");

    write_private(&keys, D::EARLIER_KEYS);
    says(&given.refusal(&[]), &[&keys.display().to_string(), "does not hold key k"]);

    fs::rename(&away, &keys).unwrap();
    D::check_records(&given.state(), &records).await;
}

/// Another key with the number of the key that sealed the secrets is refused.
pub async fn another_key_with_the_same_number<D: Daemon>() {
    let given = Installation::<D>::new();
    let keys = given.key_file();
    write_private(&keys, D::EARLIER_KEYS);
    let records = D::store_records(&given.state(), 1).await;
    // Version 0.1 replaced a lost key with another key under the same number.
    let made = SealingKeys::generate().unwrap();
    write_private(&keys, &format!("1:{}", made.split_once(':').unwrap().1));
    let said = given.refusal(&[]);
    let file = keys.display().to_string();
    says(&said, &[&file, "the key 1 in the file is not the key 1", "restore the key file"]);
    write_private(&keys, D::EARLIER_KEYS);
    D::check_records(&given.state(), &records).await;
}

/// A key file that other users can read is refused, also by `--check`.
pub async fn readable_key_file<D: Daemon>() {
    let given = Installation::<D>::new();
    let records = D::store_records(&given.state(), 1).await;
    let keys = given.key_file();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o640)).unwrap();
    for options in [&[][..], &["--check"]] {
        let said = given.refusal(options);
        says(&said, &[&keys.display().to_string(), "mode 640", "chmod 600"]);
    }
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    D::check_records(&given.state(), &records).await;
}

/// A damaged database is refused by its name, also by `--check`.
pub async fn damaged_database<D: Daemon>() {
    let given = Installation::<D>::new();
    D::store_records(&given.state(), 1).await;
    let database = given.state().join(D::DATABASE);
    for ending in ["-wal", "-shm"] {
        let _ = fs::remove_file(given.state().join(format!("{}{ending}", D::DATABASE)));
    }
    fs::write(&database, "a letter, by mistake\n".repeat(1000)).unwrap();
    for options in [&[][..], &["--check"]] {
        let said = given.refusal(options);
        says(&said, &[&database.display().to_string(), "is damaged", "backup", ".recover"]);
    }
}

/// The files of the sections `[api]` and `[notices]` that cannot be used, and a listener that is open to anyone, are refused by their keys,
/// also by `--check`, which creates nothing.
pub fn unusable_files<D: Daemon>() {
    let given = Installation::<D>::new();
    for options in [&["--check"][..], &[]] {
        for (lines, words) in [
            (
                "[api]\nauth = 'http_basic'\nhtpasswd = '/no/htpasswd'\n",
                &["cannot use the password file /no/htpasswd"][..],
            ),
            (
                "[api]\nlisten = '127.0.0.1:0'\ncertificate = '/no/c.pem'\nkey = '/no/k.pem'\n",
                &["api.certificate", "/no/c.pem"],
            ),
            ("[api]\ncertificate = '/no/c.pem'\n", &["key: required with certificate"]),
            (
                "[api]\nauth = 'keystone'\nkeystone.clouds_yaml = '/no/k.yaml'\n",
                &["cannot use /no/k.yaml (api.keystone.clouds_yaml)"],
            ),
            ("[api]\nlisten = '0.0.0.0:0'\n", &["api.listen", "no authentication is configured"]),
            (
                "[api]\nlisten = '127.0.0.1:0'\n[notices.webhook]\nurl = 'https://hook.example/'\nsecret_file = '/no/secret'\n",
                &["(notices)", "/no/secret"],
            ),
        ] {
            given.configure(lines);
            says(&given.refusal(options), words);
        }
        given.configure("");
        if options == ["--check"] {
            assert_eq!(given.run(options), (Some(0), String::new()));
            assert_eq!(fs::read_dir(given.state()).unwrap().count(), 0, "it made something");
        }
    }
}
