//! The guest of a machine nobody boots: it takes the boot device at each start, echoes what is typed at its serial
//! port, and shuts down when asked.

use std::time::Duration;

use bmc_emulator::Machine;
use tracing::info;

/// Plays firmware and operating system of `machine`, which takes `shutdown` to switch itself off.
pub(crate) async fn run(machine: Machine, shutdown: Duration) {
    let mut power = machine.power();
    let mut booted = 0;
    loop {
        let now = *power.borrow_and_update();
        if now.on && now.generation != booted {
            booted = now.generation;
            let name = &machine.spec().name;
            // Taken outside the log line, which is skipped where nobody listens.
            let device = machine.take_boot_device().device;
            info!(machine.name = name, "machine {name} boots {device:?}");
            machine
                .serial()
                .say(format!("\r\n{name}: self-test passed, boot device {device:?}\r\n"));
        }
        if now.soft_off_requested {
            tokio::time::sleep(shutdown).await;
            machine.guest_power_off();
        }
        tokio::select! {
            // The machine outlives its guest, so this only fails when the program ends.
            changed = power.changed() => if changed.is_err() {
                return;
            },
            keys = machine.serial().typed(), if now.on => machine.serial().say(keys),
        }
    }
}
