//! An emulated cloud whose servers run nothing. The test boots a server itself, with the data that Nova would hand to it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use compat::wait::wait_for;
use compat::wire::Request;
use serde_json::{Value, json};

use crate::Cloud;

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `openstack-emulator`.
pub struct Emulated {
    process: Child,
    folder: PathBuf,
    administrator: Cloud,
}

/// The data of a server that its virtual machine or its DHCP server needs.
#[derive(Debug)]
pub struct Server {
    /// The id of the server in Nova.
    pub id: String,
    pub name: String,
    pub mac: String,
    /// The fixed IP address of the server's port.
    pub address: String,
    /// The user data that the server was created with.
    pub user_data: Vec<u8>,
}

impl Emulated {
    /// Starts an emulator whose servers become active and run nothing.
    #[track_caller]
    pub fn without_guests() -> Self {
        let folder = std::env::temp_dir().join(format!("bedplate-emulated-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        let (clouds_yaml, said) = (folder.join("clouds.yaml"), folder.join("said"));
        let mut command = Command::new(compat::program("openstack-emulator"));
        command.args(["--listen", "127.0.0.1:0", "--clouds-out"]).arg(&clouds_yaml);
        let file = fs::File::create(&said).expect("a file can be written");
        let process = command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).spawn();
        let process = process.expect("the emulator can be started");
        let control = wait_for("the emulator to listen", START_TIMEOUT, || {
            let said = fs::read_to_string(&said).unwrap_or_default();
            let url = said.lines().find_map(|line| line.strip_prefix("control "))?;
            Some(url.strip_suffix("/_control")?.to_owned())
        });
        let fate = json!({"kind": "server", "end": "never_boots"});
        Request::new("POST", "/_control/fates").json(&fate).send(&control).expect(200);
        Emulated { process, folder, administrator: Cloud::of(clouds_yaml, "admin") }
    }

    /// The cloud as this user of its clouds.yaml.
    pub fn cloud(&self, user: &str) -> Cloud {
        Cloud::of(self.administrator.clouds_yaml.clone(), user)
    }

    /// Reads a server as administrator, who may see user data from microversion 2.3 on.
    #[track_caller]
    pub fn server(&mut self, id: &str) -> Server {
        let shown = format!("--os-compute-api-version 2.3 server show {id}");
        let shown = self.administrator.json(&shown);
        let text = |value: &Value| value.as_str().expect("it is a text").to_owned();
        let user_data = text(&shown["OS-EXT-SRV-ATTR:user_data"]);
        let ports = self.administrator.json(&format!("port list --server {id}"));
        Server {
            id: id.to_owned(),
            name: text(&shown["name"]),
            mac: text(&ports[0]["MAC Address"]),
            address: text(&ports[0]["Fixed IP Addresses"][0]["ip_address"]),
            user_data: STANDARD.decode(user_data).expect("Nova keeps it as base64"),
        }
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
