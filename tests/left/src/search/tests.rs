use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::canary;

fn search() -> Search {
    Search::new(canary::ALL).unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

/// Texts that leak the secret, each with the encoding that it uses.
fn leaks(secret: &str) -> Vec<(&'static str, Vec<u8>)> {
    let url = secret.replace(' ', "%20").replace('/', "%2F").replace('+', "%2B");
    let form = secret.replace('/', "%2F").replace('+', "%2B").replace(' ', "+");
    let mut all = vec![
        ("plain", format!("password={secret}&x").into_bytes()),
        ("hexadecimal", format!("at {}", hex::encode(secret)).into()),
        ("hexadecimal", format!("at {}", hex::encode_upper(secret)).into()),
        ("URL-encoded", format!("https://u:{url}@host/").into()),
        ("URL-encoded", format!("user=u&password={form}").into()),
    ];
    for before in ["", "a", "ab", "abc", "admin:"] {
        for after in ["", "x", "yz"] {
            let text = format!("{before}{secret}{after}");
            all.push(("base64", format!("Basic {}", STANDARD.encode(&text)).into()));
            all.push(("base64", URL_SAFE.encode(&text).into()));
        }
    }
    all
}

#[test]
fn every_secret_is_found_in_each_encoding() {
    let search = search();
    for secret in canary::ALL {
        for (how, text) in leaks(secret) {
            let found = search.text(&text);
            let text = String::from_utf8_lossy(&text);
            assert!(found.contains(&(secret, how)), "{secret} {how} in {text}: {found:?}");
        }
    }
    assert!(search.text(b"canary").is_empty());
    assert!(search.text(STANDARD.encode("canary bmc").as_bytes()).is_empty());
    assert!(search.text(&gzip(b"canary bmc")).is_empty());
}

#[test]
fn every_secret_is_found_in_compressed_data() {
    let search = search();
    for secret in canary::ALL {
        for (how, text) in leaks(secret) {
            let packed = gzip(&text);
            let row = [b"a record: ".as_slice(), &packed, b" and more"].concat();
            let drive = |text: String| format!("{{\"configdrive\": \"{text}\", \"x\": 1}}");
            let standard = drive(STANDARD.encode(&packed)).into_bytes();
            let url_safe = drive(URL_SAFE.encode(&packed)).into_bytes();
            let twice = gzip(&standard);
            for leak in [row, standard, url_safe, twice] {
                assert!(search.text(&leak).contains(&(secret, how)), "{secret} {how}");
            }
        }
    }
}

#[test]
fn truncated_compressed_data_is_searched_as_far_as_possible() {
    let noise: Vec<u8> =
        (0u32..50_000).flat_map(|it| it.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let packed = gzip(&[canary::BMC.as_bytes(), &noise].concat());
    assert!(!search().text(&packed[..packed.len() / 2]).is_empty());
    assert!(search().text(GZIP).is_empty() && search().text(GZIP_IN_BASE64).is_empty());
}

#[test]
fn a_secret_is_found_across_pieces_and_deep_in_folders() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    let text = format!("{}{}{}", "x".repeat(PIECE - 5), canary::BMC, "y".repeat(9));
    fs::write(deep.join("log"), text).unwrap();
    fs::write(deep.join("other"), "nothing").unwrap();
    let mut finds = Vec::new();
    let looked = search().path(folder.path(), &mut finds).unwrap();
    let want = Find { secret: canary::BMC.to_owned(), how: "plain", file: deep.join("log") };
    assert_eq!((looked, finds), (2, vec![want]));
}

#[test]
fn every_secret_is_found_in_nested_base64() {
    let search = search();
    for secret in canary::ALL {
        for before in ["", "a", "ab", "abc"] {
            for engine in [&STANDARD, &URL_SAFE] {
                let inner = format!("{{\"write_files\": [\"{}\"]}}", engine.encode(secret));
                let outer = engine.encode(format!("{before}{inner}"));
                // The letters of the path `/v1/a/` belong to the base64 alphabet too.
                for text in [format!("{{\"user_data\": \"{outer}\"}}"), format!("/v1/a/{outer}")] {
                    let found = search.text(text.as_bytes());
                    assert!(found.iter().any(|(it, _)| *it == secret), "{secret}: {text}");
                }
                let thrice = engine.encode(format!("[\"{outer}\"]"));
                let found = search.text(thrice.as_bytes());
                assert!(found.iter().any(|(it, _)| *it == secret), "{secret}: {thrice}");
            }
        }
    }
}

#[test]
fn every_secret_is_found_with_any_part_percent_encoded() {
    let search = search();
    let lower = |text: &str| text.replace(' ', "%20").replace('/', "%2f").replace('+', "%2b");
    for secret in canary::ALL {
        let each: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let twice = lower(secret).replace('%', "%25");
        for text in [lower(secret), secret.replace(' ', "%20"), each, twice] {
            let found = search.text(format!("GET /v1/nodes?q={text}&limit=1 200").as_bytes());
            assert!(found.iter().any(|(it, _)| *it == secret), "{secret}: {text}");
        }
    }
}

#[test]
fn every_secret_is_found_as_a_list_of_bytes() {
    let search = search();
    for secret in canary::ALL {
        let list = format!("{:?}", secret.as_bytes());
        let pretty = format!("{:#?}", secret.as_bytes());
        let dense = list.replace(' ', "");
        for list in [list, pretty, dense] {
            let text = format!("Body {{ bytes: {list} }}");
            let found = search.text(text.as_bytes());
            assert!(found.iter().any(|(it, _)| *it == secret), "{secret}: {text}");
        }
    }
    assert!(search.text(b"[99, 97, 110, 97, 114, 121, 32, 300, 1]").is_empty());
}
