//! ipmitool, an independent client, drives a machine with both cipher suites.

use std::process::{Command, Output};
use std::time::Duration;

use bmc_emulator::{
    BmcKind, BootDevice, CompletionFault, FaultSet, Machine, PowerRequest, Request, Served, serve,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;

use crate::rack::{PASSWORD, USER, spec};

/// A served IPMI machine.
struct Bench {
    machine: Machine,
    port: u16,
    _served: Served,
}

impl Bench {
    async fn start() -> Bench {
        Bench::with_profile("generic").await
    }

    async fn with_profile(profile: &str) -> Bench {
        let machine = Machine::new(spec("r1u8", BmcKind::Ipmi, profile));
        let served = serve(vec![machine.clone()]).await.unwrap();
        Bench { machine, port: served.machines[0].ipmi.unwrap().port(), _served: served }
    }

    async fn ipmitool(&self, suite: &str, arguments: &str) -> Output {
        self.ipmitool_as(PASSWORD, suite, arguments).await
    }

    async fn ipmitool_as(&self, password: &str, suite: &str, arguments: &str) -> Output {
        let mut command = Command::new("ipmitool");
        command.args(["-I", "lanplus", "-H", "127.0.0.1", "-U", USER, "-P", password, "-C", suite]);
        command
            .args(["-N", "1", "-R", "2", "-p", &self.port.to_string()])
            .args(arguments.split(' '));
        tokio::task::spawn_blocking(move || command.output())
            .await
            .unwrap()
            .expect("ipmitool runs; it is in Debian's package `ipmitool`")
    }

    /// The output of an ipmitool command, which must succeed.
    async fn says(&self, suite: &str, arguments: &str) -> String {
        let output = self.ipmitool(suite, arguments).await;
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "ipmitool -C {suite} {arguments}\n{out}\n{err}");
        out.into_owned()
    }
}

/// Reads the output of `program` until the output ends with `want`.
async fn hears(program: &mut tokio::process::Child, want: &str) {
    let mut heard = Vec::new();
    let said = program.stdout.as_mut().unwrap();
    while !heard.ends_with(want.as_bytes()) {
        let read = said.read_buf(&mut heard).await.unwrap();
        assert_ne!(read, 0, "it said {:?}", String::from_utf8_lossy(&heard));
    }
}

#[tokio::test]
async fn the_serial_port_is_read_and_typed_at_with_both_suites() {
    for suite in ["3", "17"] {
        let bench = Bench::start().await;
        bench.says(suite, "power on").await;
        assert!(
            bench.says(suite, "sol info").await.contains("Enabled                         : true")
        );

        let mut program = tokio::process::Command::new("ipmitool")
            .args(["-I", "lanplus", "-H", "127.0.0.1", "-U", USER, "-P", PASSWORD, "-C", suite])
            .args(["-p", &bench.port.to_string(), "sol", "activate"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // ipmitool prints its greeting only after the first output of the machine, so wait for the session on the BMC's side.
        while bench.says(suite, "raw 0x06 0x4a 0x01").await != " 01 01 00\n" {}
        bench.machine.serial().say("r1u8 login: ");
        hears(&mut program, "r1u8 login: ").await;
        program.stdin.as_mut().unwrap().write_all(b"root\n").await.unwrap();
        let mut typed = Vec::new();
        while typed.len() < 5 {
            typed.extend(bench.machine.serial().typed().await);
        }
        assert_eq!(String::from_utf8_lossy(&typed), "root\n");
        let burst: String = (0..4000).map(|line| format!("{line:06}\r\n")).collect();
        let saying = bench.machine.serial().say_all(&burst);
        tokio::join!(saying, hears(&mut program, &burst));

        let refused = bench.ipmitool(suite, "sol activate").await;
        let why = String::from_utf8_lossy(&refused.stderr);
        assert!(why.contains("SOL payload already active on another session"), "{why}");
        program.stdin.as_mut().unwrap().write_all(b"~.").await.unwrap();
        assert!(program.wait().await.unwrap().success());
    }
}

#[tokio::test]
async fn power_is_driven_with_both_suites() {
    for suite in ["3", "17"] {
        let bench = Bench::start().await;
        assert_eq!(bench.says(suite, "power status").await, "Chassis Power is off\n");
        bench.says(suite, "power on").await;
        assert_eq!(bench.says(suite, "power status").await, "Chassis Power is on\n");
        bench.says(suite, "power reset").await;
        bench.says(suite, "power cycle").await;
        assert_eq!(bench.machine.power().borrow().generation, 3);
        bench.says(suite, "power soft").await;
        assert!(bench.machine.power().borrow().soft_off_requested);
        bench.machine.guest_power_off();
        assert_eq!(bench.says(suite, "power status").await, "Chassis Power is off\n");
        bench.says(suite, "power on").await;
        bench.says(suite, "power off").await;
        assert!(!bench.machine.power().borrow().on);
    }
}

#[tokio::test]
async fn a_machine_that_is_off_cannot_be_reset() {
    let bench = Bench::start().await;
    let output = bench.ipmitool("17", "power reset").await;
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Command not supported in present state"), "{said}");
}

#[tokio::test]
async fn the_boot_device_holds_for_one_boot() {
    let bench = Bench::start().await;
    bench.says("17", "chassis bootdev pxe options=efiboot").await;
    let reported = bench.says("3", "chassis bootparam get 5").await;
    assert!(reported.contains("Boot Flag Valid"), "{reported}");
    assert!(reported.contains("Options apply to only next boot"), "{reported}");
    assert!(reported.contains("BIOS EFI boot"), "{reported}");
    assert!(reported.contains("Force PXE"), "{reported}");

    bench.says("17", "power on").await;
    assert_eq!(bench.machine.take_boot_device().device, Some(BootDevice::Pxe));
    assert_eq!(bench.machine.take_boot_device().device, None);
    let reported = bench.says("3", "chassis bootparam get 5").await;
    assert!(reported.contains("Boot Flag Invalid"), "{reported}");
}

#[tokio::test]
async fn a_persistent_boot_device_holds() {
    let bench = Bench::start().await;
    bench.says("17", "chassis bootdev disk options=persistent").await;
    bench.machine.take_boot_device();
    assert_eq!(bench.machine.take_boot_device().device, Some(BootDevice::Disk));
    let reported = bench.says("17", "chassis bootparam get 5").await;
    assert!(reported.contains("Options apply to all future boots"), "{reported}");
    assert!(reported.contains("BIOS PC Compatible (legacy) boot"), "{reported}");
    bench.says("17", "chassis bootdev none").await;
    assert_eq!(bench.machine.take_boot_device().device, None);
}

#[tokio::test]
async fn the_bmc_reports_its_identity() {
    let bench = Bench::with_profile("supermicro").await;
    let reported = bench.says("17", "mc info").await;
    for line in [
        "IPMI Version              : 2.0",
        "Firmware Revision         : 1.04",
        "Manufacturer ID           : 10876",
    ] {
        assert!(reported.contains(line), "{reported}");
    }
    let reported = bench.says("17", "mc guid").await;
    assert!(reported.contains("7d0c3a52-93a2-4f0b-8d5e-0c6f7a1b2c3d"), "{reported}");
    bench.says("17", "mc selftest").await;
    let reported = bench.says("17", "chassis status").await;
    assert!(reported.contains("System Power         : off"), "{reported}");
    let reported = bench.says("17", "lan print 1").await;
    assert!(reported.contains("RMCP+ Cipher Suites     : 3,17"), "{reported}");
    let reported = bench.says("17", "channel getciphers ipmi 1").await;
    assert!(reported.contains("17") && reported.contains("hmac_sha256"), "{reported}");
    let reported = bench.says("17", "user list 1").await;
    assert!(reported.contains(USER), "{reported}");
}

#[tokio::test]
async fn inventory_and_sensors_are_read() {
    for suite in ["3", "17"] {
        let bench = Bench::start().await;
        let reported = bench.says(suite, "fru print 0").await;
        for line in [
            " Product Manufacturer  : Acme",
            " Product Name          : Roadrunner 2U",
            " Product Serial        : SN-0001",
            " Chassis Serial        : SN-0001",
            " Board Serial          : SN-0001",
        ] {
            assert!(reported.contains(line), "{line}\n{reported}");
        }
        let reported = bench.says(suite, "sdr list").await;
        assert!(reported.contains("Inlet Temp       | 22 degrees C      | ok"), "{reported}");
        assert!(reported.contains("Fan1             | no reading        | ns"), "{reported}");

        bench.says(suite, "power on").await;
        let reported = bench.says(suite, "sdr list").await;
        assert!(reported.contains("Fan1             | 5400 RPM          | ok"), "{reported}");
        assert!(reported.contains("12V              | 12.06 Volts       | ok"), "{reported}");
        assert!(reported.contains("Power Usage      | 212 Watts         | ok"), "{reported}");
        let reported = bench.says(suite, "sensor get 12V").await;
        assert!(reported.contains("Upper Critical        : 13.200"), "{reported}");
        assert!(reported.contains("Lower Critical        : 10.800"), "{reported}");
    }
}

#[tokio::test]
async fn the_event_log_is_read_and_cleared() {
    let bench = Bench::start().await;
    let reported = bench.says("17", "sel list").await;
    assert!(reported.is_empty(), "{reported}");
    bench.says("17", "power on").await;
    bench.says("17", "power off").await;
    let reported = bench.says("17", "sel list").await;
    assert!(reported.contains("S0/G0: working"), "{reported}");
    assert!(reported.contains("S5/G2: soft-off"), "{reported}");

    bench.says("17", "sel clear").await;
    let reported = bench.says("17", "sel list").await;
    assert!(reported.contains("Log area reset/cleared"), "{reported}");
    assert!(!reported.contains("S0/G0"), "{reported}");
}

#[tokio::test]
async fn the_identify_light_is_switched() {
    let bench = Bench::start().await;
    bench.says("17", "chassis identify force").await;
    bench.says("17", "chassis identify 0").await;
    let asked: Vec<Request> = bench.machine.log().into_iter().map(|entry| entry.request).collect();
    assert_eq!(asked, [Request::Identify(true), Request::Identify(false)]);
}

#[tokio::test]
async fn a_wrong_password_opens_no_session() {
    for suite in ["3", "17"] {
        let bench = Bench::start().await;
        let output = bench.ipmitool_as("wrong", suite, "power on").await;
        assert!(!output.status.success());
        assert!(!bench.machine.power().borrow().on);
        assert_eq!(bench.machine.log(), []);
    }
}

#[tokio::test]
async fn an_unknown_suite_is_refused() {
    let bench = Bench::start().await;
    let output = bench.ipmitool("1", "power status").await;
    assert!(!output.status.success());
    let output = bench.ipmitool("0", "power status").await;
    assert!(!output.status.success());
}

#[tokio::test]
async fn every_command_closes_its_session() {
    // The BMC has two slots. Sessions that stay open would fill them.
    let bench = Bench::with_profile("poor").await;
    for _ in 0..6 {
        bench.says("17", "power status").await;
    }
}

#[tokio::test]
async fn the_password_is_changed_in_both_lengths() {
    let bench = Bench::start().await;
    let mut password = PASSWORD.to_owned();
    for (new, length) in [("sixteen-bytes-16", "16"), ("twenty-bytes-long-20", "20")] {
        let change = format!("user set password 2 {new} {length}");
        let output = bench.ipmitool_as(&password, "17", &change).await;
        assert!(output.status.success(), "{output:?}");
        assert_eq!(bench.machine.password(), new);
        let old = bench.ipmitool_as(&password, "17", "power status").await;
        assert!(!old.status.success(), "{old:?}");
        password = new.to_owned();
        let test = bench.ipmitool_as(&password, "3", &format!("user test 2 {length} {new}")).await;
        assert!(test.status.success(), "{test:?}");
    }
    let short = bench.ipmitool_as(&password, "17", "user set password 2 short").await;
    assert!(!short.status.success(), "{short:?}");
    assert_eq!(bench.machine.password(), password);
}

#[tokio::test]
async fn a_user_may_not_switch_power() {
    let bench = Bench::start().await;
    let output = bench.ipmitool("17", "-L USER power on").await;
    assert!(!output.status.success());
    assert!(!bench.machine.power().borrow().on);
    let asked: Vec<Request> = bench.machine.log().into_iter().map(|entry| entry.request).collect();
    assert_eq!(asked, [Request::Other("Chassis Control".to_owned())]);
    bench.says("17", "-L OPERATOR power on").await;
    let asked = bench.machine.log().pop().unwrap().request;
    assert_eq!(asked, Request::Power(PowerRequest::On));
}

#[tokio::test]
async fn ipmitool_survives_doubled_replies() {
    let bench = Bench::start().await;
    bench.machine.faults().update(|faults| faults.duplicate_replies = true);
    bench.says("17", "power on").await;
    bench.machine.faults().clear();
    bench.says("17", "power status").await;
}

#[tokio::test]
async fn replies_are_dropped_doubled_and_swapped() {
    // ASF presence pings. Byte 9 is a tag that the pong repeats.
    let ping = |tag| [6, 0, 0xFF, 6, 0, 0, 0x11, 0xBE, 0x80, tag, 0, 0];
    let bench = Bench::start().await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(("127.0.0.1", bench.port)).await.unwrap();
    let next_tag = async || {
        let mut pong = [0; 64];
        let received = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut pong)).await;
        assert_eq!(received.expect("a pong").unwrap(), 28);
        pong[9]
    };

    bench.machine.faults().update(|faults| faults.reorder_replies = true);
    socket.send(&ping(1)).await.unwrap();
    socket.send(&ping(2)).await.unwrap();
    assert_eq!([next_tag().await, next_tag().await], [2, 1]);

    bench.machine.faults().set(FaultSet { duplicate_replies: true, ..FaultSet::default() });
    socket.send(&ping(3)).await.unwrap();
    assert_eq!([next_tag().await, next_tag().await], [3, 3]);

    bench.machine.faults().set(FaultSet { drop: true, ..FaultSet::default() });
    socket.send(&ping(4)).await.unwrap();
    let silence = tokio::time::timeout(Duration::from_millis(200), next_tag()).await;
    assert!(silence.is_err());
    bench.machine.faults().clear();
    socket.send(&ping(5)).await.unwrap();
    assert_eq!(next_tag().await, 5);
}

#[tokio::test]
async fn a_busy_bmc_refuses_as_often_as_set() {
    let bench = Bench::start().await;
    let busy =
        CompletionFault { code: 0xC0, net_fn: Some(0x00), command: Some(0x02), times: Some(1) };
    bench.machine.faults().set(FaultSet { completion: vec![busy], ..FaultSet::default() });
    let output = bench.ipmitool("17", "power on").await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("Node busy"), "{said}");
    assert!(!bench.machine.power().borrow().on);
    bench.says("17", "power on").await;
    assert!(bench.machine.power().borrow().on);
}
