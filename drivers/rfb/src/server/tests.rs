//! Tests of logging in. The tests play the server.

use tokio::net::TcpListener;

use super::*;

/// Logs in to a server that sends `sent`; returns what the server got after the version, and the result.
async fn log_in(password: &str, sent: &[u8]) -> (Vec<u8>, Result<(), String>) {
    let server = Server {
        host: "2001:db8::7".to_owned(),
        port: 5901,
        password: password.to_owned().into(),
        allowed: AllowedHosts::anywhere(),
        timeout: Duration::from_secs(10),
    };
    let (mut bmc, mut own) = tokio::io::duplex(1024);
    bmc.write_all(sent).await.unwrap();
    bmc.shutdown().await.unwrap();
    let result = server.log_in(&mut own).await.map_err(|why| why.to_string());
    drop(own);
    let mut got = Vec::new();
    bmc.read_to_end(&mut got).await.unwrap();
    (got.split_off(got.len().min(12)), result)
}

/// The challenge of the server.
const CHALLENGE: [u8; 16] = *b"0123456789abcdef";

#[test]
fn the_answer_to_a_challenge_depends_on_eight_bytes_of_the_password() {
    let answer = |password| encrypted(CHALLENGE, password);
    assert_eq!(answer("password"), answer("password and more"));
    assert_ne!(answer("passwor"), answer("password"));
    // The known answer of DES for the key 0 (FIPS 46-3, table 1): an empty password.
    assert_eq!(encrypted([0; 16], "")[..8], [0x8c, 0xa6, 0x4d, 0xe9, 0xc1, 0xb1, 0x23, 0xa7]);
}

#[tokio::test]
async fn a_login_follows_the_version_of_the_server() {
    let proof = encrypted(CHALLENGE, "secret");
    let challenged = |before: &[u8]| [before, &CHALLENGE, &[0, 0, 0, 0]].concat();
    let proved = |before: &[u8]| [before, &proof, &[1]].concat();

    let sent = challenged(b"RFB 003.008\n\x02\x05\x02");
    assert_eq!(log_in("secret", &sent).await, (proved(&[2]), Ok(())));
    let sent = challenged(b"RFB 003.007\n\x01\x02");
    assert_eq!(log_in("secret", &sent).await, (proved(&[2]), Ok(())));
    let sent = challenged(b"RFB 003.003\n\0\0\0\x02");
    assert_eq!(log_in("secret", &sent).await, (proved(&[]), Ok(())));

    // Without a password: a result follows in 3.8 only.
    assert_eq!(log_in("", b"RFB 003.008\n\x02\x02\x01\0\0\0\0").await, (vec![1, 1], Ok(())));
    assert_eq!(log_in("", b"RFB 003.007\n\x01\x01").await, (vec![1, 1], Ok(())));
    assert_eq!(log_in("", b"RFB 003.003\n\0\0\0\x01").await, (vec![1], Ok(())));
    // A server that needs no password gets no proof of it.
    assert_eq!(log_in("secret", b"RFB 003.008\n\x01\x01\0\0\0\0").await.0, [1, 1]);
}

#[track_caller]
fn is_refused(result: (Vec<u8>, Result<(), String>), want: &str) {
    assert_eq!(result.1, Err(want.to_owned()));
}

#[tokio::test]
async fn a_refusal_tells_its_reason() {
    const SERVER: &str = "the VNC server at [2001:db8::7]:5901";
    let sent = [&b"RFB 003.008\n\x01\x02"[..], &CHALLENGE, b"\0\0\0\x01\0\0\0\x05wrong"].concat();
    is_refused(log_in("x", &sent).await, &format!("{SERVER} rejected the password: wrong"));
    let sent = [&b"RFB 003.003\n\0\0\0\x02"[..], &CHALLENGE, b"\0\0\0\x02"].concat();
    is_refused(log_in("x", &sent).await, &format!("{SERVER} rejected the password"));
    let sent = b"RFB 003.008\n\0\0\0\0\x0dtoo \x1bmany now";
    is_refused(log_in("x", sent).await, &format!("{SERVER} refused the connection: too many now"));
    // Longer than the server says, or than it sends.
    let sent = b"RFB 003.003\n\0\0\0\0\xff\xff\xff\xffno";
    is_refused(log_in("x", sent).await, &format!("{SERVER} refused the connection: no"));
    let sent = b"RFB 003.008\n\x01\x02";
    is_refused(log_in("", sent).await, &format!("{SERVER} asks for a password"));
    let types =
        "but the security types [19, 18]; enable VNC Authentication in the BMC, without encryption";
    let want = format!("{SERVER} offers no login that this service knows, {types}");
    is_refused(log_in("x", b"RFB 003.008\n\x02\x13\x12").await, &want);
    let want = "the program at [2001:db8::7]:5901 is not a VNC server";
    is_refused(log_in("x", b"SSH-2.0-OpenSSH_9.2\r\n").await, want);
    is_refused(log_in("x", b"RFB 003.008\n").await, &format!("cannot reach {SERVER}"));
}

#[tokio::test]
async fn only_allowed_addresses_are_connected_to_and_not_for_long() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server {
        host: "localhost".to_owned(),
        port: silent.local_addr().unwrap().port(),
        password: SecretString::default(),
        allowed: AllowedHosts::default(),
        timeout: Duration::from_millis(50),
    };
    assert!(matches!(server.connect().await, Err(RfbError::Forbidden { .. })));
    let server =
        Server { host: "127.0.0.1".to_owned(), allowed: AllowedHosts::anywhere(), ..server };
    let expired = server.connect().await;
    assert!(
        matches!(&expired, Err(RfbError::Unreachable { source, .. }) if source.kind() == io::ErrorKind::TimedOut),
        "{expired:?}"
    );
}
