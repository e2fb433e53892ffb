//! Runs a real agent program on an emulated machine: a folder with its own `proc`, `sys` and `dev`.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Stdio;

use bmc_emulator::Firmware;
use tokio::process::Command;

use crate::event::{BootSource, Stage};
use crate::machine::Machine;

/// The agent's exit status after a command to restart the machine.
const RESTART: i32 = 64;

/// The agent's exit status after the password of the rescue system was set.
const RESCUE: i32 = 65;

/// Runs the agent until the power goes off, or until the agent ends the machine.
pub(super) async fn run(
    machine: &Machine,
    program: &Path,
    folder: &Path,
    command_line: &str,
    source: BootSource,
) -> Infallible {
    if let Err(error) = create_files(machine, folder, command_line) {
        return machine.hang(&format!("cannot furnish {}: {error}", folder.display())).await;
    }
    let log = File::options().create(true).append(true).open(folder.join("agent.log"));
    let output = log.map_or_else(|_| Stdio::null(), Stdio::from);
    let child = Command::new(program)
        .arg("--root")
        .arg(folder)
        .args(["--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output)
        .kill_on_drop(true)
        .spawn();
    let ended = match child {
        Ok(mut child) => child.wait().await,
        Err(error) => Err(error),
    };
    match ended.map(|status| status.code()) {
        Ok(Some(0)) => machine.chassis().guest_power_off(),
        Ok(Some(RESTART)) => machine.chassis().guest_reboot(),
        Ok(Some(RESCUE)) => match rescue_hash(folder) {
            Some(hash) => machine.now(Stage::Rescue(source, hash)),
            None => return machine.hang("the rescue system has no password").await,
        },
        Ok(code) => {
            let code = code.map_or("a signal".to_owned(), |code| format!("status {code}"));
            return machine.hang(&format!("the agent ended with {code}")).await;
        }
        Err(error) => return machine.hang(&format!("the agent does not start: {error}")).await,
    }
    std::future::pending().await
}

/// The hash of the password of the user `rescue`.
fn rescue_hash(root: &Path) -> Option<String> {
    let shadow = fs::read_to_string(root.join("etc/shadow")).ok()?;
    let line = shadow.lines().find_map(|line| line.strip_prefix("rescue:"))?;
    line.split(':').next().map(str::to_owned)
}

fn create_files(machine: &Machine, root: &Path, command_line: &str) -> io::Result<()> {
    let spec = machine.spec();
    write(root, "proc/cmdline", command_line)?;
    let cpus: String = (0..spec.cpus).map(|cpu| format!("processor\t: {cpu}\n")).collect();
    write(root, "proc/cpuinfo", &cpus)?;
    write(root, "proc/meminfo", &format!("MemTotal: {} kB\n", spec.memory_mib << 10))?;
    for (key, value) in [
        ("sys_vendor", &spec.manufacturer),
        ("product_name", &spec.model),
        ("product_serial", &spec.serial),
        ("product_uuid", &spec.uuid.to_string()),
    ] {
        write(root, &format!("sys/class/dmi/id/{key}"), value)?;
    }
    for (slot, nic) in spec.nics.iter().enumerate() {
        let at = format!("sys/class/net/eth{slot}");
        write(root, &format!("{at}/address"), &nic.mac.to_string())?;
        write(root, &format!("{at}/carrier"), "1")?;
        write(root, &format!("{at}/speed"), &nic.speed_mbps.to_string())?;
        fs::create_dir_all(root.join(&at).join("device"))?;
    }
    for disk in &spec.disks {
        let at = format!("sys/block/{}", disk.name);
        write(root, &format!("{at}/size"), &(disk.size_bytes / 512).to_string())?;
        write(root, &format!("{at}/serial"), &disk.serial)?;
        write(root, &format!("{at}/device/model"), &disk.model)?;
        let rotational = if disk.rotational { "1" } else { "0" };
        write(root, &format!("{at}/queue/rotational"), rotational)?;
        let path = root.join("dev").join(&disk.name);
        fs::create_dir_all(root.join("dev"))?;
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        file.set_len(disk.size_bytes)?;
    }
    if spec.firmware == Firmware::Uefi {
        fs::create_dir_all(root.join("sys/firmware/efi/efivars"))?;
    }
    Ok(())
}

fn write(root: &Path, path: &str, content: &str) -> io::Result<()> {
    let path = root.join(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, content)
}
