//! Tests the listeners with `openssl s_client`: TLS 1.2 and 1.3 with good ciphers, and nothing else.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compat::Service;
use compat::wait::wait_for;

const PATIENCE: Duration = Duration::from_secs(30);

fn start(folder: &Path, line: &str) -> Child {
    let mut command = Command::new("openssl");
    command.args(line.split(' ')).current_dir(folder).env("OPENSSL_CONF", "/dev/null");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("openssl is installed")
}

#[track_caller]
fn said(process: Child) -> String {
    let done = process.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

/// Runs `openssl` in this directory; returns its whole output.
#[track_caller]
fn openssl(folder: &Path, line: &str) -> String {
    let mut process = start(folder, line);
    drop(process.stdin.take());
    said(process)
}

/// Requests a renegotiation on an open connection until the server closes it.
#[track_caller]
fn renegotiate(folder: &Path, service: &Service) -> String {
    let at = service.url.strip_prefix("http://").expect("an address");
    let mut process = start(folder, &format!("s_client -connect {at} -tls1_2 -msg"));
    let mut stdin = process.stdin.take().expect("it is piped");
    stdin.write_all(b"R\n").expect("it reads");
    let said = said(process);
    drop(stdin);
    said
}

/// Creates an authority, and a certificate for `localhost` for a listener.
#[track_caller]
fn certify(folder: &Path, subject: &str) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    if !folder.join("authority.pem").exists() {
        let made = "-keyout authority.key -out authority.pem -subj /CN=authority -days 30";
        openssl(folder, &format!("req -x509 {key} {made}"));
    }
    let name = "-addext subjectAltName=DNS:localhost";
    openssl(folder, &format!("req {key} -keyout k.new -out r.pem -subj /CN={subject} {name}"));
    let by = "-CA authority.pem -CAkey authority.key -days 30 -copy_extensions copy";
    openssl(folder, &format!("x509 -req -in r.pem {by} -out leaf.pem"));
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("openssl wrote it");
    fs::write(folder.join("c.pem"), read("leaf.pem") + &read("authority.pem")).expect("a file");
    fs::rename(folder.join("k.new"), folder.join("k.pem")).expect("a file");
}

/// Connects `s_client` to the service with these options.
#[track_caller]
fn ask(folder: &Path, service: &Service, how: &str) -> String {
    let at = service.url.strip_prefix("http://").expect("an address");
    let line = format!("s_client -connect {at} -servername localhost {how}");
    openssl(folder, &line)
}

#[track_caller]
fn check(service: &Service, folder: &Path) {
    let verified = "-CAfile authority.pem -verify_return_error -showcerts -cipher ALL:@SECLEVEL=0";
    for (version, cipher) in [("1_2", "New, TLSv1.2, Cipher is ECDHE-"), ("1_3", "New, TLSv1.3, ")]
    {
        let said = ask(folder, service, &format!("{verified} -tls{version}"));
        assert!(said.contains(cipher), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
        assert!(said.contains("Compression: NONE"), "{said}");
        assert_eq!(said.matches("BEGIN CERTIFICATE").count(), 2, "the whole chain: {said}");
    }
    for version in ["1", "1_1"] {
        let said = ask(folder, service, &format!("{verified} -tls{version}"));
        assert!(said.contains("Cipher is (NONE)") && said.contains("alert"), "{said}");
    }
    // Tries each TLS 1.2 cipher of this openssl alone: AES-GCM and ChaCha20 with forward secrecy are accepted, all others refused.
    let all = openssl(folder, "ciphers -s -tls1_2 ALL:COMPLEMENTOFALL:@SECLEVEL=0");
    let (mut good, mut refused) = (0, 0);
    for cipher in all.trim().split(':').filter(|name| !name.starts_with("TLS_")) {
        let how = format!("-tls1_2 -cipher {cipher}:@SECLEVEL=0");
        let is_taken = !ask(folder, service, &how).contains("Cipher is (NONE)");
        let is_good = cipher.starts_with("ECDHE-ECDSA-CHACHA20-")
            || cipher.starts_with("ECDHE-ECDSA-AES") && cipher.contains("-GCM-");
        assert_eq!(is_taken, is_good, "{cipher}");
        (good, refused) = (good + u32::from(is_good), refused + u32::from(!is_good));
    }
    assert!(good >= 3 && refused > 20, "{all}");

    let said = renegotiate(folder, service);
    assert!(said.contains("warning no_renegotiation"), "{said}");

    let at = service.url.strip_prefix("http://").expect("an address");
    let mut plain = TcpStream::connect(at).expect("it listens");
    plain.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    plain.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{}", String::from_utf8_lossy(&answer));

    certify(folder, "renewed");
    wait_for("the new certificate", PATIENCE, || {
        let said = ask(folder, service, "-CAfile authority.pem -verify_return_error");
        said.contains("subject=CN = renewed").then_some(())
    });
}

/// The settings below `[api]` for the certificate.
fn tables(folder: &Path) -> String {
    certify(folder, "first");
    let (certificate, key) = (folder.join("c.pem"), folder.join("k.pem"));
    format!(
        "certificate = {certificate:?}\nkey = {key:?}\n[api.connections]\nheader_timeout = '2s'\n"
    )
}

#[test]
fn baremetald_accepts_only_good_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    check(&Service::machines_with(&tables(folder.path())), folder.path());
}

#[test]
fn clusterd_accepts_only_good_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    check(&Service::clusters_with(&tables(folder.path())), folder.path());
}
