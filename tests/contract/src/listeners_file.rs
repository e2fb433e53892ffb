//! The file `listeners.json` that a daemon writes when it listens.

use std::fs;

use crate::{Daemon, Installation};

/// A start replaces the `listeners.json` of an earlier start as a whole, so nobody reads half of it.
pub async fn replaced_as_a_whole<D: Daemon>() {
    const EARLIER: &str = r#"{"api": "127.0.0.1:1"}"#;
    let given = Installation::<D>::new();
    let [file, link] = ["listeners.json", "link"].map(|name| given.state().join(name));
    fs::write(&file, EARLIER).unwrap();
    fs::hard_link(&file, &link).unwrap();
    let daemon = given.start_after_crash().await;
    assert!(fs::read_to_string(&file).unwrap().contains(daemon.url.trim_start_matches("http://")));
    assert_eq!(fs::read_to_string(&link).unwrap(), EARLIER, "the file was overwritten in place");
}
