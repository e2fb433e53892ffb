//! A virtual machine that boots like Fedora CoreOS: QEMU, Ignition in the initrd, then systemd.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use compat::wait::wait_for;
use serde_json::json;

use crate::Lan;
use crate::emulated::Server;
use crate::lan::TAP;

/// How long the machine may take to stop its services.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(300);

/// The virtual machine of one server. It runs until `shut_down` or until the value is dropped.
#[derive(Debug)]
pub struct FcosMachine {
    folder: PathBuf,
    qemu: Child,
}

/// Files copied from the disk of a machine that was shut down.
#[derive(Debug)]
pub struct Disk {
    /// The folder that holds the copies, each at its path on the disk.
    pub root: PathBuf,
}

impl FcosMachine {
    /// Boots the machine of a server for the first time, with the config drive that Nova would attach.
    #[track_caller]
    pub fn boot(lan: &mut Lan, server: &Server) -> Self {
        let folder = lan.folder().to_owned();
        lan.expect(server);
        let image = image();
        let (disk, drive) = (folder.join("disk.raw"), config_drive(&folder, server));
        done(Command::new("cp").arg("--sparse=always").arg(image.join("disk.raw")).arg(&disk));

        let mut command = Command::new("qemu-system-x86_64");
        // No hardware virtualisation is used, because `/dev/kvm` may exist and not work. Linux 6.12 stops in QEMU 7.2 if the CPU has cx16.
        // With two processors Linux now and then panics while it boots: one runs into code that the other is patching.
        command.args(["-machine", "q35", "-accel", "tcg", "-cpu", "qemu64,-cx16", "-smp", "1"]);
        command.args(["-m", "2048", "-nodefaults", "-display", "none", "-no-reboot"]);
        command.args(["-monitor", "stdio", "-serial"]);
        command.arg(format!("file:{}", folder.join("console.log").display()));
        command.arg("-kernel").arg(image.join("vmlinuz")).arg("-initrd").arg(image.join("initrd"));
        command.arg("-append").arg(
            "root=LABEL=root rw console=ttyS0 no_timer_check loglevel=4 mitigations=off net.ifnames=0 \
             systemd.firstboot=off ignition.firstboot=1 ignition.platform.id=openstack",
        );
        // `unsafe` ignores flushes. The data stays in the page cache of this host, which outlives QEMU.
        let how = "if=virtio,format=raw,cache=unsafe";
        command.arg("-drive").arg(format!("file={},{how}", disk.display()));
        command.arg("-drive").arg(format!("file={},{how},readonly=on", drive.display()));
        command.arg("-nic").arg(format!(
            "tap,ifname={TAP},script=no,downscript=no,model=virtio-net-pci,mac={}",
            server.mac
        ));
        let log = fs::File::create(folder.join("qemu.log")).expect("a file can be written");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let qemu = command.spawn().expect("qemu-system-x86_64 can be started");
        FcosMachine { folder, qemu }
    }

    /// Presses the power button, waits until the machine is off, and copies these paths from its disk.
    #[track_caller]
    pub fn shut_down(mut self, paths: &[&str]) -> Disk {
        let monitor = self.qemu.stdin.as_mut().expect("it is a pipe");
        writeln!(monitor, "system_powerdown").expect("QEMU takes commands");
        wait_for("the machine to be off", SHUTDOWN_TIMEOUT, || (!self.is_running()).then_some(()));
        let (disk, root) = (self.folder.join("disk.raw"), self.folder.join("root"));
        for path in paths {
            let folder = root.join(path.trim_start_matches('/'));
            let folder = folder.parent().expect("a path has a folder");
            fs::create_dir_all(folder).expect("a folder can be made");
            let request = format!("rdump {path} {}", folder.display());
            done(Command::new("debugfs").args(["-R", &request]).arg(&disk).stderr(Stdio::null()));
        }
        Disk { root }
    }

    /// Whether QEMU still runs. QEMU ends when the machine powers off or its kernel panics.
    pub fn is_running(&mut self) -> bool {
        matches!(self.qemu.try_wait(), Ok(None))
    }
}

impl Drop for FcosMachine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
        if std::thread::panicking() {
            let printed = fs::read(self.folder.join("console.log")).unwrap_or_default();
            let console = String::from_utf8_lossy(&printed);
            let lines: Vec<&str> = console.lines().collect();
            let last = lines.len().saturating_sub(40);
            eprintln!("the machine printed last:\n{}", lines[last..].join("\n"));
        }
    }
}

impl Disk {
    /// The bytes of a file. Panics if the file does not exist.
    #[track_caller]
    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).unwrap_or_else(|_| panic!("the disk has no {path}"))
    }

    /// The text of a file. Panics if the file does not exist.
    #[track_caller]
    pub fn text(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.read(path)).into_owned()
    }

    /// The path of the copy of a file.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// The folder of the image. Runs `tests/real/fcos/image.sh`, which makes the image if it is missing.
#[track_caller]
fn image() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../real/fcos/image.sh");
    let run = Command::new(script).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let run = run.expect("image.sh can be started");
    assert!(run.status.success(), "image.sh failed");
    PathBuf::from(String::from_utf8_lossy(&run.stdout).trim())
}

/// The config drive of a server, made by the program that Nova calls, with the same options (nova/virt/configdrive.py).
#[track_caller]
fn config_drive(folder: &Path, server: &Server) -> PathBuf {
    let (contents, drive) = (folder.join("config-drive"), folder.join("config-drive.iso"));
    let latest = contents.join("openstack/latest");
    fs::create_dir_all(&latest).expect("a folder can be made");
    let metadata = json!({
        "uuid": server.id, "name": server.name, "hostname": server.name, "launch_index": 0,
        "availability_zone": "nova", "devices": [],
    });
    fs::write(latest.join("meta_data.json"), metadata.to_string()).expect("a file can be written");
    fs::write(latest.join("user_data"), &server.user_data).expect("a file can be written");
    let mut command = Command::new("genisoimage");
    command.arg("-o").arg(&drive).args(["-ldots", "-allow-lowercase", "-allow-multidot", "-l"]);
    command.args(["-quiet", "-J", "-r", "-V", "config-2"]).arg(&contents).stderr(Stdio::null());
    done(&mut command);
    drive
}

#[track_caller]
fn done(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?} failed");
}
