//! A rescue of an installed machine: the password of the request logs in on the serial console, and the disk boots again afterwards.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use real::stations::{self, ManagementAccess};
use real::{Firmware, Machine, Story, image};

const PASSWORD: &str = "w3 fix:th1s";

/// How long the console may take to answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long the installed system may take to boot.
const BOOT_TIMEOUT: Duration = Duration::from_secs(400);

/// The keyboard of a machine's serial console.
struct Keyboard<'a> {
    machine: &'a Machine,
    line: UnixStream,
}

impl<'a> Keyboard<'a> {
    #[track_caller]
    fn of(machine: &'a Machine) -> Keyboard<'a> {
        let line = UnixStream::connect(machine.console.with_extension("sock"));
        let line = line.expect("QEMU listens for the console");
        let mut screen = line.try_clone().expect("a socket can be shared");
        // QEMU stops the serial port when nobody reads its socket. The output is also in the console's file.
        thread::spawn(move || io::copy(&mut screen, &mut io::sink()));
        Keyboard { machine, line }
    }

    /// Types a line and Enter, and waits until the console has printed `answer` once more.
    #[track_caller]
    fn types(&mut self, text: &str, answer: &str) {
        let before = self.machine.printed().matches(answer).count();
        self.line.write_all(format!("{text}\r").as_bytes()).expect("the console reads");
        self.machine.prints(answer, before + 1, TIMEOUT);
    }
}

#[test]
fn a_rescued_machine_lets_its_owner_log_in_and_boots_its_disk_again() {
    let Some(mut story) = Story::begin("rescue", &[Firmware::Bios]) else { return };
    let machine = story.machine(0);
    let reach = ManagementAccess::ipmi(&machine, "ipxe");
    stations::enroll(&mut story, &machine, &reach);
    story.client.done(&["node", "set", &machine.name, "--rescue-interface", "agent"]);
    stations::provide(&mut story, &machine);
    stations::deploy(&mut story, &machine, &image("tiny.raw.gz"));

    stations::rescue(&mut story, &machine, PASSWORD);
    machine.prints("rescue system: log in as rescue", 1, TIMEOUT);
    let mut keyboard = Keyboard::of(&machine);
    keyboard.types("", "login: ");
    keyboard.types("rescue", "Password: ");
    // login discards all input before its next prompt.
    keyboard.types("wrong", "login: ");
    machine.prints("Login incorrect", 1, TIMEOUT);
    keyboard.types("rescue", "Password: ");
    keyboard.types(PASSWORD, "~ # ");
    keyboard.types("echo $(id -un) sees $(ls /sys/block | grep vda)", "rescue sees vda");

    stations::unrescue(&mut story, &machine);
    machine.prints(machine.firmware.boots_as(), 2, BOOT_TIMEOUT);
    assert_eq!(story.field(&machine.name, "power_state"), "power on");
}
