//! Configs in few words: what holds text, what is fetched, who owns it and which units run.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use ignition_config::v3_3::{
    Config, Directory, Dropin, File, HttpHeadersItem, IgnitionConfig, KernelArguments, Link,
    NodeGroup, Passwd, Resource, Storage, Systemd, Unit, User, Verification,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands for itself in a data URL, so that texts stay readable. RFC 3986 §2.3, and what RFC 2397 lets pass.
const LITERAL: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b':')
    .remove(b'+')
    .remove(b'=')
    .remove(b',')
    .remove(b'@');

/// These bytes, within the config itself: as text, or as base64 where they are none. They are not compressed: a config that is handed out
/// may be long, and one that may not is compressed as a whole, which takes less time and makes less of it.
pub fn inline(contents: &[u8]) -> Resource {
    let source = match std::str::from_utf8(contents) {
        Ok(text) => format!("data:,{}", utf8_percent_encode(text, LITERAL)),
        Err(_) => format!("data:;base64,{}", STANDARD.encode(contents)),
    };
    // Said always: in a merge, what is left out would be the parent's.
    Resource { source: Some(source), compression: Some(String::new()), ..Resource::default() }
}

/// What is fetched from `url`, and has to have this SHA-256, in hexadecimal.
pub fn remote(url: &str, sha256: &str) -> Resource {
    let verification = Verification { hash: Some(format!("sha256-{sha256}")) };
    Resource {
        source: Some(url.to_owned()),
        verification: Some(verification),
        ..Resource::default()
    }
}

/// One header of a request.
pub fn header(name: &str, value: &str) -> HttpHeadersItem {
    HttpHeadersItem { name: name.to_owned(), value: Some(value.to_owned()) }
}

/// A file that replaces what is there. `mode` are permission bits, as in `0o644`.
pub fn file(path: &str, mode: u16, contents: Resource) -> File {
    let mut file = File::new(path.to_owned());
    file.contents = Some(contents);
    file.mode = Some(mode.into());
    file.overwrite = Some(true);
    file
}

/// The file as one of a group of the image.
pub fn owned_by_group(mut file: File, group: &str) -> File {
    file.group = Some(NodeGroup { id: None, name: Some(group.to_owned()) });
    file
}

/// Has the kernel be started with these arguments; Ignition restarts the machine where it was not.
pub fn kernel_arguments(config: &mut Config, arguments: Vec<String>) {
    if !arguments.is_empty() {
        config.kernel_arguments =
            Some(KernelArguments { should_exist: Some(arguments), should_not_exist: None });
    }
}

/// Has these public keys let a user of the image log in.
pub fn authorized_keys(config: &mut Config, user: &str, keys: &[String]) {
    let mut user = User::new(user.to_owned());
    user.ssh_authorized_keys = Some(keys.to_vec());
    config.passwd.get_or_insert_with(Passwd::default).users.get_or_insert_default().push(user);
}

/// Has Ignition fetch a config first, and lay this one over it.
pub fn based_on(config: &mut Config, base: Resource) {
    let within = config.ignition.config.get_or_insert_with(IgnitionConfig::default);
    within.merge.get_or_insert_default().push(base);
}

/// A folder with these permission bits.
pub fn directory(path: &str, mode: u16) -> Directory {
    let mut directory = Directory::new(path.to_owned());
    directory.mode = Some(mode.into());
    directory
}

/// A symbolic link that replaces what is there.
pub fn link(path: &str, target: &str) -> Link {
    let mut link = Link::new(path.to_owned());
    link.target = Some(target.to_owned());
    link.overwrite = Some(true);
    link
}

/// A unit of this text that starts at boot.
pub fn unit(name: &str, contents: &str) -> Unit {
    let mut unit = Unit::new(name.to_owned());
    unit.contents = Some(contents.to_owned());
    unit.enabled = Some(true);
    unit
}

/// A unit that the image has, to be started at boot.
pub fn enabled(name: &str) -> Unit {
    let mut unit = Unit::new(name.to_owned());
    unit.enabled = Some(true);
    unit
}

/// A unit of the image that is not to run, whoever asks for it.
pub fn masked(name: &str) -> Unit {
    let mut unit = Unit::new(name.to_owned());
    unit.mask = Some(true);
    unit
}

/// The unit with one more drop-in.
pub fn with_dropin(mut unit: Unit, name: &str, contents: &str) -> Unit {
    let mut dropin = Dropin::new(name.to_owned());
    dropin.contents = Some(contents.to_owned());
    unit.dropins.get_or_insert_default().push(dropin);
    unit
}

/// A config of these folders, files and units.
pub fn config(directories: Vec<Directory>, files: Vec<File>, units: Vec<Unit>) -> Config {
    let some = |empty: bool| if empty { None } else { Some(()) };
    let storage = Storage {
        directories: some(directories.is_empty()).map(|()| directories),
        files: some(files.is_empty()).map(|()| files),
        ..Storage::default()
    };
    Config {
        storage: Some(storage),
        systemd: Some(Systemd { units: some(units.is_empty()).map(|()| units) }),
        ..Config::default()
    }
}

/// The same bytes always become the same bytes: no time, no name.
pub(crate) fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer.write_all(contents).expect("a vector takes what it is given");
    writer.finish().expect("a vector takes what it is given")
}
