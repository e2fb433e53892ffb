//! Constructors for parts of a config: files with their contents and owners, directories, links, units.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use ignition_config::v3_3::{
    Config, Directory, Dropin, File, HttpHeadersItem, IgnitionConfig, KernelArguments, Link,
    NodeGroup, Passwd, Resource, Storage, Systemd, Unit, User, Verification,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that a data URL keeps unescaped, so that text in a config stays readable: the unreserved ones of RFC 3986 §2.3, and others
/// that RFC 2397 allows.
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

/// Puts `contents` into the config itself: as text if the bytes are UTF-8, as base64 otherwise.
/// The contents are not compressed. A config that the machine fetches may be long, and a config that must be short is compressed as a whole
/// ([`compress`](crate::compress)), which is faster and gives a smaller result.
pub fn inline(contents: &[u8]) -> Resource {
    let source = match std::str::from_utf8(contents) {
        Ok(text) => format!("data:,{}", utf8_percent_encode(text, LITERAL)),
        Err(_) => format!("data:;base64,{}", STANDARD.encode(contents)),
    };
    // Always set: in a merge, a child without a value would inherit the parent's compression.
    Resource { source: Some(source), compression: Some(String::new()), ..Resource::default() }
}

/// Contents that Ignition fetches from `url` and that must have this SHA-256 (hexadecimal).
pub fn remote(url: &str, sha256: &str) -> Resource {
    let verification = Verification { hash: Some(format!("sha256-{sha256}")) };
    Resource {
        source: Some(url.to_owned()),
        verification: Some(verification),
        ..Resource::default()
    }
}

/// A header of an HTTP request.
pub fn header(name: &str, value: &str) -> HttpHeadersItem {
    HttpHeadersItem { name: name.to_owned(), value: Some(value.to_owned()) }
}

/// A file that replaces an existing one. `mode` holds permission bits, as in `0o644`.
pub fn file(path: &str, mode: u16, contents: Resource) -> File {
    let mut file = File::new(path.to_owned());
    file.contents = Some(contents);
    file.mode = Some(mode.into());
    file.overwrite = Some(true);
    file
}

/// Gives the file to a group that exists in the image.
pub fn owned_by_group(mut file: File, group: &str) -> File {
    file.group = Some(NodeGroup { id: None, name: Some(group.to_owned()) });
    file
}

/// Requires kernel arguments. Ignition restarts the machine if the running kernel lacks one of them.
pub fn kernel_arguments(config: &mut Config, arguments: Vec<String>) {
    if !arguments.is_empty() {
        config.kernel_arguments =
            Some(KernelArguments { should_exist: Some(arguments), should_not_exist: None });
    }
}

/// Lets a user of the image log in with these SSH public keys.
pub fn authorized_keys(config: &mut Config, user: &str, keys: &[String]) {
    let mut user = User::new(user.to_owned());
    user.ssh_authorized_keys = Some(keys.to_vec());
    config.passwd.get_or_insert_with(Passwd::default).users.get_or_insert_default().push(user);
}

/// Makes Ignition fetch the config `base` first and merge this config into it.
pub fn merge_from(config: &mut Config, base: Resource) {
    let within = config.ignition.config.get_or_insert_with(IgnitionConfig::default);
    within.merge.get_or_insert_default().push(base);
}

/// A directory with these permission bits.
pub fn directory(path: &str, mode: u16) -> Directory {
    let mut directory = Directory::new(path.to_owned());
    directory.mode = Some(mode.into());
    directory
}

/// A symbolic link that replaces an existing file or link.
pub fn link(path: &str, target: &str) -> Link {
    let mut link = Link::new(path.to_owned());
    link.target = Some(target.to_owned());
    link.overwrite = Some(true);
    link
}

/// A unit with this text, started at boot.
pub fn unit(name: &str, contents: &str) -> Unit {
    let mut unit = Unit::new(name.to_owned());
    unit.contents = Some(contents.to_owned());
    unit.enabled = Some(true);
    unit
}

/// A unit that the image already has, enabled so that systemd starts it at boot.
pub fn enabled(name: &str) -> Unit {
    let mut unit = Unit::new(name.to_owned());
    unit.enabled = Some(true);
    unit
}

/// A unit of the image, masked so that nothing can start it.
pub fn masked(name: &str) -> Unit {
    let mut unit = Unit::new(name.to_owned());
    unit.mask = Some(true);
    unit
}

/// Adds a drop-in to the unit.
pub fn with_dropin(mut unit: Unit, name: &str, contents: &str) -> Unit {
    let mut dropin = Dropin::new(name.to_owned());
    dropin.contents = Some(contents.to_owned());
    unit.dropins.get_or_insert_default().push(dropin);
    unit
}

/// A config of these directories, files and units.
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

/// Compresses without a time and a name in the header, so that equal contents give equal bytes.
pub(crate) fn gzip(contents: &[u8]) -> Vec<u8> {
    let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    writer.write_all(contents).expect("a vector takes what it is given");
    writer.finish().expect("a vector takes what it is given")
}

#[cfg(test)]
mod tests;
