//! Rules for contents that are fetched or embedded: URLs, hashes, compression, headers.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;
use url::Url;

use super::mistake::Mistake;
use super::places::ConfigValue;

/// The largest size, in bytes, that embedded contents may have after decompression. Larger contents do not belong into a config.
const LONGEST: u64 = 64 << 20;

/// Hexadecimal digits of a hash, by hash function.
const HASHES: [(&str, usize); 2] = [("sha512", 128), ("sha256", 64)];

/// Checks `place` if its name or its fields mark it as a resource.
pub(crate) fn check(place: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let last = place.path.rsplit('.').next().unwrap_or_default();
    let name = last.split('[').next().unwrap_or_default();
    let listed = last.ends_with(']');
    match (name, listed) {
        ("contents", false) | ("keyFile", false) | ("replace", false) | ("append", true) => {
            resource(place, false, mistakes)
        }
        ("merge", true) | ("certificateAuthorities", true) => resource(place, true, mistakes),
        ("httpProxy" | "httpsProxy", false) => proxy(place, mistakes),
        ("httpResponseHeaders" | "httpTotal", false) if place.number().is_some_and(|it| it < 0) => {
            mistakes.push(place.mistake("seconds cannot be negative"));
        }
        _ => {}
    }
}

fn resource(place: &ConfigValue<'_>, required: bool, mistakes: &mut Vec<Mistake>) {
    // The field `contents` of a unit is text, not a resource.
    if !matches!(place.value, Value::Object(_)) {
        return;
    }
    let source = place.field("source");
    let compression = place.field("compression");
    let gzipped = match compression.filled() {
        None => false,
        Some("gzip") => true,
        Some(other) => {
            mistakes.push(compression.mistake(format!(
                "`{other}` is not a compression: use `gzip` or leave the field empty"
            )));
            false
        }
    };
    let scheme = source.filled().and_then(|text| match scheme(text, gzipped) {
        Ok(scheme) => Some(scheme),
        Err(what) => {
            mistakes.push(source.mistake(what));
            None
        }
    });
    if required && source.filled().is_none() {
        mistakes.push(source.mistake("a source is missing"));
    }
    hash(&place.field("verification").field("hash"), source.text().is_some(), mistakes);
    let headers = place.list("httpHeaders");
    if !headers.is_empty() && !matches!(scheme.as_deref(), Some("http" | "https")) {
        mistakes.push(place.field("httpHeaders").mistake("only http and https have headers"));
    }
    for header in headers {
        let (name, value) = (header.field("name"), header.field("value"));
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.filled().is_none_or(|text| !text.chars().all(token)) {
            mistakes.push(name.mistake("not a name of a header"));
        }
        if value.text().is_some_and(|text| text.is_empty() || text.contains(['\r', '\n', '\0'])) {
            mistakes.push(value.mistake("not a value of a header"));
        }
    }
}

fn hash(hash: &ConfigValue<'_>, has_source: bool, mistakes: &mut Vec<Mistake>) {
    let Some(text) = hash.text() else { return };
    if !has_source {
        mistakes.push(hash.mistake("a hash needs a source: add one or remove the hash"));
    }
    let (function, digits) = text.split_once('-').unwrap_or_default();
    match HASHES.iter().find(|(name, _)| *name == function) {
        None => mistakes
            .push(hash.mistake("not a hash: use `sha512-` or `sha256-` and hexadecimal digits")),
        Some((_, length))
            if digits.len() != *length || !digits.chars().all(|c| c.is_ascii_hexdigit()) =>
        {
            mistakes.push(hash.mistake(format!("a {function} has {length} hexadecimal digits")));
        }
        Some(_) => {}
    }
}

fn proxy(place: &ConfigValue<'_>, mistakes: &mut Vec<Mistake>) {
    let Some(text) = place.text() else { return };
    if !Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
        mistakes.push(place.mistake("not a proxy URL: use http or https"));
    }
}

/// Returns the scheme of a URL that Ignition can fetch, or the reason why Ignition cannot fetch it.
fn scheme(text: &str, gzipped: bool) -> Result<String, String> {
    if let Some(data) = text.strip_prefix("data:") {
        let contents = decode(data)?;
        if gzipped {
            unpack(&contents)?;
        }
        return Ok("data".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("no URL: {error}"))?;
    match url.scheme() {
        "s3" | "arn" => {
            let empty =
                url.query_pairs().any(|(name, value)| name == "versionId" && value.is_empty());
            if empty { Err("an empty versionId".to_owned()) } else { Ok(url.scheme().to_owned()) }
        }
        "http" | "https" | "tftp" | "gs" => Ok(url.scheme().to_owned()),
        other => {
            Err(format!("nothing is fetched by `{other}`: http, https, tftp, s3, gs and data are"))
        }
    }
}

/// Decodes the part of a data URL after `data:` (RFC 2397).
fn decode(data: &str) -> Result<Vec<u8>, String> {
    let (kind, contents) =
        data.split_once(',').ok_or("a data URL needs a comma before its data")?;
    let contents: Vec<u8> = percent_encoding::percent_decode_str(contents).collect();
    if kind.ends_with(";base64") {
        return STANDARD.decode(&contents).map_err(|error| format!("no base64: {error}"));
    }
    Ok(contents)
}

fn unpack(contents: &[u8]) -> Result<(), String> {
    let mut unpacked = GzDecoder::new(contents).take(LONGEST + 1);
    let length = std::io::copy(&mut unpacked, &mut std::io::sink());
    match length {
        Err(error) => Err(format!("cannot be unpacked: {error}")),
        Ok(length) if length > LONGEST => Err(format!("becomes more than {LONGEST} bytes")),
        Ok(_) => Ok(()),
    }
}
