//! `bedplate node …`. For everything else about nodes there is `openstack baremetal`.

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::output::{self, Format, line, plain};
use crate::reservation::Term;

/// `bedplate node …`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Lists nodes.
    List,
    /// Says why a node is where it is, what was last seen of its machine, and what to do next.
    Explain {
        /// Its name or id.
        node: String,
    },
    /// Lends a node to a project until a time.
    Lend {
        /// Its name or id.
        node: String,
        /// The id of the project.
        #[arg(long, value_name = "PROJECT")]
        to: String,
        /// For how long from now: 14d, 36h, 1d12h. As long as nodes are lent by default, unless told.
        #[arg(long = "for", value_name = "LENGTH")]
        length: Option<String>,
    },
    /// Keeps a lent node for longer, counted from now.
    Extend {
        /// Its name or id.
        node: String,
        #[command(flatten)]
        term: Term,
    },
    /// Takes back the end of a node's lease, as long as it is not erased. It stays off until somebody switches it on.
    Undo {
        /// Its name or id.
        node: String,
    },
    /// Shows the readings of a machine's sensors.
    Sensors {
        /// Its name or id.
        node: String,
    },
}

/// Does as told.
pub(crate) async fn run(command: Command, api: &Api, format: Format) -> anyhow::Result<()> {
    match command {
        Command::List => list(api, format).await,
        Command::Explain { node } => explain(api, &node, format).await,
        Command::Lend { node, to, length } => {
            let mut body = json!({"lessee": to});
            if let Some(length) = length {
                body["for"] = json!(length);
            }
            lease(&api.post(&format!("/bedplate/v1/nodes/{node}/lease"), &body).await?, format)
        }
        Command::Extend { node, term } => {
            let path = format!("/bedplate/v1/nodes/{node}/lease");
            lease(&api.put(&path, &term.body()).await?, format)
        }
        Command::Undo { node } => {
            let path = format!("/bedplate/v1/nodes/{node}/lease/undo");
            lease(&api.post(&path, &json!({})).await?, format)
        }
        Command::Sensors { node } => sensors(api, &node, format).await,
    }
}

async fn list(api: &Api, format: Format) -> anyhow::Result<()> {
    let mut nodes = Vec::new();
    let mut marker = None;
    loop {
        let after = marker.map_or(String::new(), |marker| format!("&marker={marker}"));
        let fields = "uuid,name,driver,provision_state,power_state,maintenance";
        let page = api.get(&format!("/v1/nodes?limit=1000&fields={fields}{after}")).await?;
        let page = page["nodes"].as_array().cloned().unwrap_or_default();
        let last = page.len() < 1000;
        marker = page.last().and_then(|node| node["uuid"].as_str()).map(str::to_owned);
        nodes.extend(page);
        if last || marker.is_none() {
            break;
        }
    }
    if format == Format::Json {
        return output::json(&Value::Array(nodes));
    }
    let rows = nodes.iter().map(|node| {
        let maintenance = if node["maintenance"] == true { "yes" } else { "" };
        vec![
            text(&node["name"]),
            text(&node["uuid"]),
            text(&node["driver"]),
            text(&node["provision_state"]),
            text(&node["power_state"]),
            maintenance.to_owned(),
        ]
    });
    output::table(&["Name", "UUID", "Driver", "State", "Power", "Maintenance"], rows)
}

async fn explain(api: &Api, node: &str, format: Format) -> anyhow::Result<()> {
    let told = api.get(&format!("/bedplate/v1/nodes/{node}/explain")).await?;
    if format == Format::Json {
        return output::json(&told);
    }
    line(&format!("{}.", capital(&text(&told["summary"]))))?;
    line(&format!("Since:     {}", time(&told["since"])))?;
    if let Some(task) = told["task"].as_object() {
        let number = |key: &str| task[key].as_u64().unwrap_or(0);
        line(&format!(
            "Step:      {} of {}, {}",
            number("number"),
            number("of"),
            text(&task["what"])
        ))?;
    }
    for (side, label) in
        [("bmc", "BMC"), ("dhcp", "DHCP"), ("tftp", "TFTP"), ("http", "HTTP"), ("agent", "Agent")]
    {
        let seen = &told["last_seen"][side];
        let seen = match seen.as_object() {
            Some(_) => format!("{}, at {}", text(&seen["what"]), time(&seen["at"])),
            None => "not seen since the service started".to_owned(),
        };
        line(&format!("{:10} {seen}", format!("{label}:")))?;
    }
    line(&format!("What next: {}.", text(&told["next"])))
}

fn lease(told: &Value, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(told);
    }
    let (lessee, until) = (text(&told["lessee"]), text(&told["lease"]["until"]));
    line(&format!("Lent to {lessee} until {until}."))
}

async fn sensors(api: &Api, node: &str, format: Format) -> anyhow::Result<()> {
    let told = api.get(&format!("/bedplate/v1/nodes/{node}/sensors")).await?;
    if format == Format::Json {
        return output::json(&told);
    }
    let readings = told["sensors"].as_array().cloned().unwrap_or_default();
    let rows = readings.iter().map(|reading| {
        let value = reading["value"].as_f64().map_or(String::new(), |value| format!("{value}"));
        vec![text(&reading["name"]), value, text(&reading["unit"]), text(&reading["health"])]
    });
    output::table(&["Sensor", "Value", "Unit", "Health"], rows)
}

/// A time to the second, and how long ago that was.
fn time(value: &Value) -> String {
    let Ok(at) = text(value).parse::<Timestamp>() else { return text(value) };
    let ago = Timestamp::now().duration_since(at).as_secs();
    format!("{} ({ago} s ago)", at.strftime("%Y-%m-%dT%H:%M:%SZ"))
}

fn text(value: &Value) -> String {
    plain(value.as_str().unwrap_or(""))
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
