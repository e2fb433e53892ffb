//! A login prompt at a machine's serial port, which accepts no password.

use crate::event::Stage;
use crate::machine::Machine;

const LONGEST_NAME: usize = 64;
/// Control-C, backspace and delete.
const INTERRUPT: u8 = 0x03;
const BACKSPACE: u8 = 0x08;
const DELETE: u8 = 0x7f;

/// Runs the login prompt as long as the machine exists.
pub(crate) async fn run(machine: Machine) {
    let mut stage = machine.stage();
    let mut prompt = None;
    loop {
        let host = match &*stage.borrow_and_update() {
            Stage::Installed => Some(machine.name().to_owned()),
            Stage::Ramdisk(_) => Some("ramdisk".to_owned()),
            Stage::Rescue(..) => Some("rescue".to_owned()),
            Stage::Live(..) => Some("live".to_owned()),
            Stage::Off | Stage::Booting | Stage::Hung(_) => None,
        };
        if prompt.as_ref().map(|prompt: &Prompt| &prompt.host) != host.as_ref() {
            prompt = host.map(Prompt::new);
            if let Some(prompt) = &prompt {
                machine.chassis().serial().say(prompt.ask());
            }
        }
        tokio::select! {
            // The channel closes only at the machine's end.
            changed = stage.changed() => if changed.is_err() {
                return;
            },
            keys = machine.chassis().serial().typed() => {
                let answer = prompt.as_mut().map(|prompt| prompt.answer(&keys));
                machine.chassis().serial().say(answer.unwrap_or_default());
            }
        }
    }
}

struct Prompt {
    host: String,
    name: Vec<u8>,
    /// The name was entered; the password is not echoed.
    asks_password: bool,
}

impl Prompt {
    fn new(host: String) -> Prompt {
        Prompt { host, name: Vec::new(), asks_password: false }
    }

    fn ask(&self) -> String {
        format!("\r\n{} login: ", self.host)
    }

    /// Returns the output after `keys`.
    fn answer(&mut self, keys: &[u8]) -> Vec<u8> {
        let mut said = Vec::new();
        for key in keys {
            match *key {
                b'\r' | b'\n' if self.asks_password => {
                    said.extend(b"\r\nLogin incorrect\r\n");
                    self.begin(&mut said);
                }
                b'\r' | b'\n' if self.name.is_empty() => self.begin(&mut said),
                b'\r' | b'\n' => {
                    self.asks_password = true;
                    said.extend(b"\r\nPassword: ");
                }
                INTERRUPT => self.begin(&mut said),
                _ if self.asks_password => {}
                BACKSPACE | DELETE => {
                    let wiped = self.name.pop().map(|_| b"\x08 \x08");
                    said.extend(wiped.into_iter().flatten());
                }
                key if key >= b' ' && self.name.len() < LONGEST_NAME => {
                    self.name.push(key);
                    said.push(key);
                }
                _ => {}
            }
        }
        said
    }

    fn begin(&mut self, said: &mut Vec<u8>) {
        self.name.clear();
        self.asks_password = false;
        said.extend(self.ask().bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bmc_emulator::{MachineSpec, ServedMachine};
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;
    use crate::event::{BootSource, Event};
    use crate::machine::AgentKind;

    #[track_caller]
    fn check(keys: &str, want: &str) {
        let mut prompt = Prompt::new("r1u7".to_owned());
        assert_eq!(String::from_utf8_lossy(&prompt.answer(keys.as_bytes())), want);
    }

    const SPEC: &str = r#"{
        "name": "r1u7", "uuid": "3f2a5b60-0000-4000-8000-000000000001", "serial": "S1", "manufacturer": "Some", "model": "One",
        "firmware": "bios", "nics": [], "disks": [], "cpus": 1, "memory_mib": 1024,
        "bmc": {"kind": "ipmi", "address": "127.0.0.1:0", "username": "admin", "password": "secret"}
    }"#;

    #[tokio::test]
    async fn only_a_running_system_shows_a_prompt() {
        let spec: MachineSpec = serde_json::from_str(SPEC).unwrap();
        let chassis = bmc_emulator::Machine::new(spec);
        let bmc = ServedMachine {
            name: "r1u7".to_owned(),
            redfish: None,
            ipmi: None,
            certificate_pem: None,
        };
        let machine = Machine::new(chassis.clone(), bmc, AgentKind::Light, None);
        let mut running = JoinSet::new();
        running.spawn(run(machine.clone()));
        let says = async |want: &str| {
            let says = async {
                while !chassis.serial().said().ends_with(want.as_bytes()) {
                    tokio::task::yield_now().await;
                }
            };
            timeout(Duration::from_secs(20), says).await.unwrap();
        };

        machine.tell(Event::Started);
        says("1 processors, 1024 MiB of memory, self-test\r\n").await;
        machine.now(Stage::Installed);
        says("self-test\r\n\r\nr1u7 login: ").await;
        chassis.serial().type_in(b"root\r");
        says("r1u7 login: root\r\nPassword: ").await;
        // Another system shows a new prompt.
        machine.now(Stage::Ramdisk(BootSource::Network));
        says("Password: \r\nramdisk login: ").await;
    }

    #[test]
    fn a_name_is_echoed_and_a_password_is_not() {
        check("root\r", "root\r\nPassword: ");
        check("root\rsecret\r", "root\r\nPassword: \r\nLogin incorrect\r\n\r\nr1u7 login: ");
    }

    #[test]
    fn a_name_can_be_edited_or_cancelled() {
        check("rx\x7foot", "rx\x08 \x08oot");
        check("root\x03", "root\r\nr1u7 login: ");
        check("\r", "\r\nr1u7 login: ");
    }

    #[test]
    fn the_length_of_a_name_is_limited() {
        check(&"x".repeat(100), &"x".repeat(LONGEST_NAME));
    }
}
