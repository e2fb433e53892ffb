//! A foreign mail server: aiosmtpd.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

pub(crate) const PASSWORD: &str = left::canary::SMTP;

/// A running mail server; the server stops on drop.
pub(crate) struct Mailbox {
    pub(crate) port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
    process: Child,
    _end: ChildStdin,
}

impl Mailbox {
    /// Starts the server with a certificate for `localhost` in `folder`. The server refuses mail to the address `refuses`.
    pub(crate) fn start(folder: &Path, refuses: &str) -> Mailbox {
        let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
        let pair = KeyPair::generate().unwrap();
        let names = CertificateParams::new(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, names.self_signed(&pair).unwrap().pem()).unwrap();
        std::fs::write(&key, pair.serialize_pem()).unwrap();
        let reported = json!({
            "certificate": certificate, "key": key, "password": PASSWORD, "refuses": refuses,
        });
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/delivery/mailbox.py");
        // Debian's own interpreter finds Debian's Python packages.
        let mut process = Command::new("/usr/bin/python3")
            .args([script, &reported.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let end = process.stdin.take().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let mails: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = mails.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                kept.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        let port = first["port"].as_u64().unwrap().try_into().unwrap();
        Mailbox { port, mails, process, _end: end }
    }

    pub(crate) fn mails(&self) -> Vec<Value> {
        self.mails.lock().unwrap().clone()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
