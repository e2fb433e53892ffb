//! A machine in QEMU with one network card that boots only from the network.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(180);

const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
const OVMF_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

/// The programs that a machine needs; `FILES` are the files.
pub(crate) const PROGRAMS: [&str; 2] = ["ip", "qemu-system-x86_64"];
pub(crate) const FILES: [&str; 2] = [OVMF_CODE, OVMF_VARIABLES];

/// The firmware of a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Firmware {
    /// SeaBIOS, with iPXE in the ROM of the network card.
    Bios,
    /// OVMF with its own PXE client.
    Uefi,
    /// OVMF that only boots by HTTP.
    UefiHttp,
    /// OVMF with its own PXE client, over IPv6 only.
    UefiV6,
}

impl Firmware {
    /// The protocols that OVMF does not try. By default OVMF tries PXE before HTTP and IPv4 before IPv6, and each takes a minute to fail.
    fn left_out(self) -> &'static [&'static str] {
        match self {
            Firmware::UefiHttp => &["IPv4PXESupport", "IPv6PXESupport"],
            Firmware::UefiV6 => &["IPv4PXESupport"],
            Firmware::Bios | Firmware::Uefi => &[],
        }
    }
}

/// A machine that runs until it is dropped.
pub(crate) struct Machine {
    qemu: Child,
    variables: PathBuf,
}

impl Machine {
    /// Starts QEMU with its network card on `tap0` of the current namespace.
    pub(crate) fn power_on(firmware: Firmware, name: &str) -> Self {
        let variables = std::env::temp_dir().join(format!("{name}-{}.fd", std::process::id()));
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args("-accel tcg -machine q35 -m 512 -nographic -nodefaults -serial stdio".split(' '))
            .args("-netdev tap,id=lan,ifname=tap0,script=no,downscript=no".split(' '))
            .args(["-uuid", "00112233-4455-6677-8899-aabbccddeeff", "-boot", "n"]);
        let card = "virtio-net-pci,netdev=lan,mac=52:54:00:78:00:01";
        if firmware == Firmware::Bios {
            qemu.args(["-device", card]);
        } else {
            std::fs::copy(OVMF_VARIABLES, &variables).expect("it was looked for");
            qemu.args(["-device", &format!("{card},romfile=,bootindex=1")])
                .args(["-drive", &format!("if=pflash,format=raw,readonly=on,file={OVMF_CODE}")])
                .args(["-drive", &format!("if=pflash,format=raw,file={}", variables.display())]);
        }
        for protocol in firmware.left_out() {
            qemu.args(["-fw_cfg", &format!("name=opt/org.tianocore/{protocol},string=n")]);
        }
        qemu.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        Machine { qemu: qemu.spawn().expect("QEMU runs"), variables }
    }

    /// Reads the serial console until `wanted` appears.
    pub(crate) async fn says(&mut self, wanted: &str) {
        let console = self.qemu.stdout.as_mut().expect("it is a pipe");
        let mut said = Vec::new();
        let read = timeout(PATIENCE, async {
            while !String::from_utf8_lossy(&said).contains(wanted) {
                assert!(console.read_buf(&mut said).await.expect("a pipe") > 0, "QEMU ended");
            }
        });
        let in_time = read.await.is_ok();
        assert!(in_time, "the console never said {wanted:?}:\n{}", String::from_utf8_lossy(&said));
    }

    /// Kills QEMU, as if the power had been cut.
    pub(crate) async fn power_off(mut self) {
        self.qemu.kill().await.expect("QEMU is ours");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Fails for a BIOS machine, which has no such file.
        let _ = std::fs::remove_file(&self.variables);
    }
}
