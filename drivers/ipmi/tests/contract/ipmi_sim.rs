//! Runs OpenIPMI's simulator on a free port, with a machine that this module defines.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};

use ipmi::{CipherSuite, Privilege};

use crate::endpoint::Endpoint;

/// A running simulator; ended when dropped.
pub(crate) struct IpmiSim {
    folder: PathBuf,
    address: SocketAddr,
    child: Child,
}

impl IpmiSim {
    /// Starts a simulator; `None`, after a message, if the program is not installed.
    pub(crate) fn start() -> Option<Self> {
        IpmiSim::start_with(None)
    }

    /// Like `start`, with a machine whose serial port is the TCP port `serial`.
    pub(crate) fn start_with(serial: Option<SocketAddr>) -> Option<Self> {
        if !peers::installed("ipmi_sim") {
            peers::skip("ipmi_sim", "it is not installed (Debian's package openipmi)");
            return None;
        }

        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ipmi-sim-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(folder.join("state")).unwrap();
        let address = free_address();
        write_files(&folder, address, serial);
        let child = launch(&folder);
        wait_until_it_answers(address);
        Some(IpmiSim { folder, address, child })
    }

    /// Restarts the program: the machine stays the same, the sessions are lost.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.child = launch(&self.folder);
        wait_until_it_answers(self.address);
    }

    /// The boot device that the machine was given.
    pub(crate) fn boot_device(&self) -> String {
        fs::read_to_string(self.folder.join("boot")).unwrap().trim().to_owned()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint {
            name: "ipmi_sim".to_owned(),
            address: self.address,
            username: "admin".to_owned(),
            password: "secret".to_owned(),
            cipher_suite: Some(CipherSuite::Three),
            privilege: Privilege::Administrator,
        }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for IpmiSim {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn launch(folder: &Path) -> Child {
    // Without -n the program needs a console on standard input.
    Command::new("ipmi_sim")
        .arg("-n")
        .arg("-c")
        .arg(folder.join("lan.conf"))
        .arg("-f")
        .arg(folder.join("machine.emu"))
        .arg("-s")
        .arg(folder.join("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Sends requests until an answer comes. The program exits silently if its files have a mistake.
fn wait_until_it_answers(address: SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    for _ in 0..500 {
        socket.send_to(GET_CHANNEL_AUTHENTICATION_CAPABILITIES, address).unwrap();
        if socket.recv_from(&mut [0; 256]).is_ok() {
            return;
        }
    }
    panic!("ipmi_sim does not answer; is there a mistake in its files?");
}

const GET_CHANNEL_AUTHENTICATION_CAPABILITIES: &[u8] =
    b"\x06\x00\xff\x07\0\0\0\0\0\0\0\0\0\x09\x20\x18\xc8\x81\x00\x38\x8e\x04\xb5";

fn write_files(folder: &Path, address: SocketAddr, serial: Option<SocketAddr>) {
    let program = folder.join("chassis");
    fs::write(&program, CHASSIS.replace("FOLDER", folder.to_str().unwrap())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join("power"), "0").unwrap();
    fs::write(folder.join("boot"), "default").unwrap();

    let serial = serial.map(|port| format!("  sol \"tcp:{port}\" 115200\n")).unwrap_or_default();
    let lan = format!(
        r#"name "bedplate"
set_working_mc 0x20
  startlan 1
    addr {} {}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
{serial}  chassis_control "{} 0x20"
  user 2 true "admin" "secret" admin 10 none md2 md5 straight
  user 3 true "reader" "secret" user 10 none md2 md5 straight
"#,
        address.ip(),
        address.port(),
        program.display(),
    );
    fs::write(folder.join("lan.conf"), lan).unwrap();
    fs::write(folder.join("machine.emu"), include_str!("machine.emu")).unwrap();
}

/// Called as `chassis 0x20 get power` and `chassis 0x20 set boot pxe`.
const CHASSIS: &str = r#"#!/bin/sh
cd "FOLDER" || exit 1
shift
verb=$1
shift
while [ $# -gt 0 ]; do
  case $verb in
    get) echo "$1:$(cat "$1")"; shift ;;
    set)
      case $1 in
        shutdown) echo 0 > power ;;
        *) echo "$2" > "$1" ;;
      esac
      shift 2 ;;
  esac
done
"#;
