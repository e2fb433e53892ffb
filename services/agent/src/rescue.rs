//! The rescue system: the ramdisk with a user `rescue`, who logs in on its consoles.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agent_protocol::CommandError;
use serde::Deserialize;
use sha_crypt::password_hash::PasswordHasher;
use sha_crypt::{PasswordHash, ShaCrypt};

use crate::error::failure;
use crate::root::Root;

/// The parameters of `rescue.finalize_rescue`, as in ironic-python-agent's `extensions/rescue.py`.
#[derive(Clone, Deserialize)]
pub struct RescuePassword {
    #[serde(default)]
    rescue_password: String,
    /// Whether the password is a hash of `crypt(3)` already.
    #[serde(default)]
    hashed: bool,
}

impl std::fmt::Debug for RescuePassword {
    /// Prints nothing of the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RescuePassword(…)")
    }
}

/// The user of the rescue system. The user repairs an installation, and needs all rights of root for that.
const USER: &str = "rescue";

/// `crypt(3)` reads 16 characters of a salt, which encode 12 bytes.
const SALT_BYTES: usize = 12;

/// Lets the user `rescue` log in with this password.
pub(crate) fn allow_login(root: &Root, password: &RescuePassword) -> Result<(), CommandError> {
    let refused = |details: &str| failure("RescueError", "cannot set the rescue password", details);
    let hash = match password.hashed {
        true => password.rescue_password.clone(),
        false => hash(&password.rescue_password).ok_or_else(|| refused(EMPTY))?,
    };
    if !hash.starts_with('$') || hash.contains(|c: char| c == ':' || c.is_control()) {
        return Err(refused(NO_HASH));
    }
    // The home is /, because the ramdisk has no other directory for it.
    let passwd = format!("{USER}:x:0:0:{USER}:/:/bin/sh");
    // busybox refuses a login if the minimum, the maximum and the warning are empty.
    let shadow = format!("{USER}:{hash}::0:99999:7:::");
    let written = set_line(root, "/etc/passwd", &passwd, 0o644)
        .and_then(|()| set_line(root, "/etc/shadow", &shadow, 0o600));
    written.map_err(|error| refused(&format!("Cannot write the user {USER}: {error}.")))
}

const EMPTY: &str = "The password is empty, so that everybody could log in; send another.";
const NO_HASH: &str = "The hashed password is no hash of crypt(3), such as $6$SALT$HASH.";

/// The SHA-512 hash of the password, or `None` if the password is empty.
fn hash(password: &str) -> Option<String> {
    if password.trim().is_empty() {
        return None;
    }
    let salt: [u8; SALT_BYTES] = rand::random();
    let hashed: Result<PasswordHash, _> =
        ShaCrypt::SHA512.hash_password_with_salt(password.as_bytes(), &salt);
    hashed.ok().map(|hash| hash.as_str().to_owned())
}

/// Replaces the line of the user in a file, which is created if it is missing.
fn set_line(root: &Root, file: &str, line: &str, mode: u32) -> io::Result<()> {
    let path = root.path(file);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
    let before = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let is_others = |line: &&str| line.split(':').next() != Some(USER);
    let lines = before.lines().filter(is_others).chain([line]);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let mut file = File::options().create(true).truncate(true).write(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;
    use sha_crypt::password_hash::PasswordVerifier;

    use super::*;
    use crate::scratch::Folder;

    fn allow(root: &Root, params: serde_json::Value) -> Result<(), CommandError> {
        allow_login(root, &serde_json::from_value(params).unwrap())
    }

    #[test]
    fn the_user_logs_in_with_the_hash_of_the_conductor() {
        let folder = Folder::new();
        let root = Root::new(folder.path());
        let text = |file: &str| fs::read_to_string(root.path(file)).unwrap();
        let params = |hash: &str| json!({"rescue_password": hash, "hashed": true});
        allow(&root, params("$6$salt$first")).unwrap();
        assert_eq!(text("/etc/passwd"), "rescue:x:0:0:rescue:/:/bin/sh\n");
        assert_eq!(text("/etc/shadow"), "rescue:$6$salt$first::0:99999:7:::\n");
        let mode = fs::metadata(root.path("/etc/shadow")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only root reads the hash");

        fs::write(root.path("/etc/passwd"), "root:x:0:0::/:/bin/sh\nrescue:old\n").unwrap();
        allow(&root, params("$6$salt$second")).unwrap();
        let both = "root:x:0:0::/:/bin/sh\nrescue:x:0:0:rescue:/:/bin/sh\n";
        assert_eq!(text("/etc/passwd"), both);
        assert_eq!(text("/etc/shadow"), "rescue:$6$salt$second::0:99999:7:::\n");
    }

    #[test]
    fn a_plain_password_is_hashed_as_ironic_python_agent_does() {
        let folder = Folder::new();
        let root = Root::new(folder.path());
        allow(&root, json!({"rescue_password": "s3cret"})).unwrap();
        let shadow = fs::read_to_string(root.path("/etc/shadow")).unwrap();
        let hash = shadow.split(':').nth(1).unwrap();
        ShaCrypt::SHA512.verify_password(b"s3cret", hash).unwrap();
    }

    #[test]
    fn no_login_is_without_a_password_and_no_other_user_is_added() {
        let folder = Folder::new();
        let root = Root::new(folder.path());
        for params in [
            json!({}),
            json!({"rescue_password": " "}),
            json!({"hashed": true}),
            json!({"rescue_password": "plain", "hashed": true}),
            json!({"rescue_password": "$6$a$b:::::::\nroot:", "hashed": true}),
        ] {
            let error = allow(&root, params.clone()).unwrap_err();
            assert_eq!(error.kind, "RescueError", "{params}");
        }
        assert!(!root.path("/etc/shadow").exists());
        let shown: RescuePassword =
            serde_json::from_value(json!({"rescue_password": "s3cret"})).unwrap();
        assert!(!format!("{shown:?}").contains("s3cret"));
    }
}
