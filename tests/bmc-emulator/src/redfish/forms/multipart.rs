//! Bodies with several parts (RFC 7578, RFC 2046 §5.1).

use http::header;
use http::request::Parts;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) body: &'a [u8],
}

/// Reads the parts of a body; `None` if the body is not `multipart/form-data` or is malformed.
pub(super) fn read<'a>(head: &Parts, body: &'a [u8]) -> Option<Vec<Part<'a>>> {
    let kind = head.headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let (media_type, parameters) = kind.split_once(';')?;
    if !media_type.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary")?;
    parts(body, &boundary)
}

fn parts<'a>(body: &'a [u8], boundary: &str) -> Option<Vec<Part<'a>>> {
    let first = format!("--{boundary}");
    let between = format!("\r\n--{boundary}");
    let mut rest = body.strip_prefix(first.as_bytes())?;
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        let part = rest.strip_prefix(b"\r\n")?;
        let end = find(part, between.as_bytes())?;
        parts.push(part_of(&part[..end])?);
        rest = &part[end + between.len()..];
    }
    Some(parts)
}

fn part_of(part: &[u8]) -> Option<Part<'_>> {
    let end = find(part, b"\r\n\r\n")?;
    let head = str::from_utf8(&part[..end]).ok()?;
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let (_, about) = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    let name = parameter(about, "name")?;
    Some(Part { name, file_name: parameter(about, "filename"), body: &part[end + 4..] })
}

/// The value of a parameter in a header, with or without quotes.
fn parameter(header: &str, name: &str) -> Option<String> {
    let mut pairs = header.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
    Some(value.trim_matches('"').to_owned())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_by_the_boundary() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\n\r\n{}\r\n--x\r\n\
            content-disposition: form-data; name=UpdateFile; filename=\"bios-2.bin\"\r\n\r\n\0--y\r\n--\r\n--x--\r\n";
        let read = parts(body, "x").unwrap();
        let told: Vec<_> =
            read.iter().map(|it| (&*it.name, it.file_name.as_deref(), it.body)).collect();
        let want = [
            ("UpdateParameters", None, &b"{}"[..]),
            ("UpdateFile", Some("bios-2.bin"), &b"\0--y\r\n--"[..]),
        ];
        assert_eq!(told, want);
        assert_eq!(parts(b"--x\r\nbroken", "x"), None);
    }
}
