//! The control API: states and faults of machines over HTTP, for people and for tests in another process.

use std::io;
use std::net::SocketAddr;

use bmc_emulator::Control;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fault::FaultSet;
use crate::machine::Machine;

/// Serves the control API of `machines`, without authentication: use it on loopback only.
///
/// `GET /machines`, `GET|PUT|DELETE /machines/NAME/faults`, `PUT|DELETE /machines/NAME/bmc-faults`, `GET /machines/NAME/events`, `GET
/// /machines/NAME/bmc-log`.
pub async fn serve_control(address: SocketAddr, machines: Vec<Machine>) -> io::Result<Control> {
    Control::serve(address, move |method, path, body| answer(&machines, method, path, body)).await
}

fn answer(machines: &[Machine], method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
    let nothing = || (StatusCode::NOT_FOUND, json!({"error": format!("no such resource: {path}")}));
    let Some(below) = path.strip_prefix("/machines") else { return nothing() };
    if below.is_empty() {
        return (StatusCode::OK, machines.iter().map(describe).collect());
    }
    let parts = below.strip_prefix('/').and_then(|below| below.rsplit_once('/'));
    let Some((name, thing)) = parts else { return nothing() };
    let Some(machine) = machines.iter().find(|machine| machine.name() == name) else {
        return nothing();
    };
    let bad =
        |error: serde_json::Error| (StatusCode::BAD_REQUEST, json!({"error": error.to_string()}));
    match (method.as_str(), thing) {
        ("GET", "events") => (StatusCode::OK, json!(machine.events())),
        ("GET", "bmc-log") => (StatusCode::OK, json!(machine.chassis().log())),
        ("GET", "faults") => (StatusCode::OK, json!(machine.faults())),
        ("PUT", "faults") => match serde_json::from_slice::<FaultSet>(body) {
            Ok(faults) => {
                machine.misbehave(|all| *all = faults);
                (StatusCode::OK, json!(machine.faults()))
            }
            Err(error) => bad(error),
        },
        ("DELETE", "faults") => {
            machine.misbehave(|all| *all = FaultSet::default());
            (StatusCode::OK, json!(machine.faults()))
        }
        ("PUT", "bmc-faults") => match serde_json::from_slice::<bmc_emulator::FaultSet>(body) {
            Ok(faults) => {
                machine.chassis().faults().set(faults);
                (StatusCode::OK, json!(machine.chassis().faults().get()))
            }
            Err(error) => bad(error),
        },
        ("DELETE", "bmc-faults") => {
            machine.chassis().faults().clear();
            (StatusCode::OK, json!(machine.chassis().faults().get()))
        }
        _ => nothing(),
    }
}

fn describe(machine: &Machine) -> Value {
    json!({
        "name": machine.name(),
        "stage": *machine.stage().borrow(),
        "disks": machine.disks(),
    })
}
