//! The control API: tests in another process set faults and read the logs of running machines over HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::faults::FaultSet;
use crate::machine::Machine;
use crate::web;

const LARGEST_BODY: usize = 64 * 1024;

/// The running control API. Dropping the value stops it.
#[derive(Debug)]
pub struct Control {
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Control {
    /// Serves the answers of `answer`, which gets a method, a path and a body. There is no authentication, so listen on loopback only.
    pub async fn serve<A>(address: SocketAddr, answer: A) -> io::Result<Control>
    where
        A: Fn(&Method, &str, &[u8]) -> (StatusCode, Value) + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let answer = Arc::new(answer);
        let mut tasks = JoinSet::new();
        tasks.spawn(web::run(listener, None, move |request| respond(answer.clone(), request)));
        Ok(Control { address, _tasks: tasks })
    }
}

/// Serves the control API of `machines`.
pub async fn serve_control(address: SocketAddr, machines: Vec<Machine>) -> io::Result<Control> {
    Control::serve(address, move |method, path, body| answer(&machines, method, path, body)).await
}

async fn respond<A>(answer: Arc<A>, request: Request<Incoming>) -> Response<Full<Bytes>>
where
    A: Fn(&Method, &str, &[u8]) -> (StatusCode, Value),
{
    let (parts, body) = request.into_parts();
    let (status, value) = match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => answer(&parts.method, parts.uri.path(), &body.to_bytes()),
        Err(error) => (StatusCode::BAD_REQUEST, json!({"error": error.to_string()})),
    };
    web::json(status, &value)
}

fn answer(machines: &[Machine], method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
    let not_found =
        || (StatusCode::NOT_FOUND, json!({"error": format!("no such resource: {path}")}));
    let Some(below) = path.strip_prefix("/_control/machines") else { return not_found() };
    if below.is_empty() && method == Method::GET {
        return (StatusCode::OK, machines.iter().map(describe).collect());
    }
    let Some((name, thing)) = below.strip_prefix('/').and_then(|below| below.rsplit_once('/'))
    else {
        return not_found();
    };
    let Some(machine) = machines.iter().find(|machine| machine.spec().name == name) else {
        return not_found();
    };
    match (method.as_str(), thing) {
        ("GET", "log") => (StatusCode::OK, json!(machine.log())),
        ("GET", "faults") => (StatusCode::OK, json!(machine.faults().get())),
        ("PUT", "faults") => match serde_json::from_slice::<FaultSet>(body) {
            Ok(faults) => {
                machine.faults().set(faults);
                (StatusCode::OK, json!(machine.faults().get()))
            }
            Err(error) => (StatusCode::BAD_REQUEST, json!({"error": error.to_string()})),
        },
        ("DELETE", "faults") => {
            machine.faults().clear();
            (StatusCode::OK, json!(machine.faults().get()))
        }
        (_, "log" | "faults") => (
            StatusCode::METHOD_NOT_ALLOWED,
            json!({"error": format!("{thing} does not take {method}")}),
        ),
        _ => not_found(),
    }
}

fn describe(machine: &Machine) -> Value {
    let power = machine.power_now();
    json!({
        "name": machine.spec().name,
        "on": power.on,
        "generation": power.generation,
        "soft_off_requested": power.soft_off_requested,
        "media": machine.media(),
    })
}
