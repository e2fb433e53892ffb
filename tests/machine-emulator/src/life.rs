//! The power cycle of a machine: boots at power-on and reset, and ends everything at power-off.

use std::pin::pin;
use std::sync::Arc;

use crate::event::{Event, Stage};
use crate::firmware;
use crate::machine::Machine;
use crate::rack_context::RackContext;

/// Follows the power of `machine` for ever.
pub(crate) async fn run(machine: Machine, world: Arc<RackContext>) {
    let mut power = machine.chassis().power();
    let mut before = machine.before();
    loop {
        let now = *power.borrow_and_update();
        if !now.on {
            machine.now(Stage::Off);
            if power.wait_for(|power| power.on).await.is_err() {
                return;
            }
            continue;
        }
        let resumed = before.take();
        if resumed.is_none() {
            machine.tell(Event::Started);
            machine.boots(None);
            machine.now(Stage::Booting);
        }
        let mut running = pin!(firmware::run(&machine, &world, resumed));
        let mut asked_off = false;
        loop {
            let change = power.wait_for(|power| {
                !power.on
                    || power.generation != now.generation
                    || (power.soft_off_requested && !asked_off)
            });
            let seen = tokio::select! {
                changed = change => match changed {
                    Ok(power) => *power,
                    Err(_) => return,
                },
                never = &mut running => match never {},
            };
            if !seen.on || seen.generation != now.generation {
                break;
            }
            asked_off = true;
            // ACPI's power button reaches only a running operating system.
            if machine.booted_from().is_some() {
                machine.chassis().guest_power_off();
            }
        }
        if !power.borrow().on {
            machine.tell(Event::Off);
        }
    }
}
