//! A minimal guest for a machine that nothing else boots. It takes the boot device at each start, echoes input at its serial port, and
//! shuts
//! down when asked.

use std::time::Duration;

use bmc_emulator::Machine;
use tracing::info;

/// Runs the guest of `machine`. A shutdown takes the time `shutdown`.
pub(crate) async fn run(machine: Machine, shutdown: Duration) {
    let mut power = machine.power();
    let mut booted = 0;
    loop {
        let now = *power.borrow_and_update();
        if now.on && now.generation != booted {
            booted = now.generation;
            let name = &machine.spec().name;
            // Outside of the log macro, because disabled log lines do not evaluate their arguments.
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
            // The machine outlives its guest, so an error only means that the program ends.
            changed = power.changed() => if changed.is_err() {
                return;
            },
            keys = machine.serial().typed(), if now.on => machine.serial().say(keys),
        }
    }
}
