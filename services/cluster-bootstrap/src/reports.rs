//! How a machine says how far it has come.

use std::fmt;

use ignition::build::{config, file, inline, unit, with_dropin};
use ignition::{Unit, merge};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::{NodeConfig, authorities};

/// Where a machine says how far it has come, and what it shows there.
#[derive(Clone)]
pub struct Reports {
    /// HTTPS.
    pub url: Url,
    /// Where it asks which authorities it should hold; HTTPS.
    pub authorities: Url,
    /// The revision of the authorities that are in its config.
    pub holds: u32,
    /// Goes into the header `Authorization`, as `Bearer TOKEN`.
    pub token: SecretString,
    /// Whose reports these are: goes into each as `claim`.
    pub claim: String,
    /// The authority that the server's certificate has to be of, as PEM. No other is believed.
    pub authority: String,
}

const CURL: &str = "/etc/bedplate/report.curl";
const AUTHORITY: &str = "/etc/bedplate/report-authority.pem";

/// The config of a machine that says of each of its steps that it was done, or failed, as a form with `claim`, `step`, `result` and
/// `status`. Nothing waits long for that, and nothing fails where it does. It also takes other authorities, once it is told to.
pub fn reporting(node: &NodeConfig, reports: &Reports) -> NodeConfig {
    let curl = format!(
        "# Read by curl --config, so that no list of processes shows what is secret.
url = \"{}\"
header = \"Authorization: Bearer {}\"
data = \"claim={}\"
cacert = \"{AUTHORITY}\"
noproxy = \"*\"
silent
show-error
fail
connect-timeout = 3
max-time = 5
",
        reports.url,
        reports.token.expose_secret(),
        reports.claim
    );
    let asking = format!(
        "# Read by curl --config, so that no list of processes shows what is secret.
url = \"{}\"
get
header = \"Authorization: Bearer {}\"
cacert = \"{AUTHORITY}\"
noproxy = \"*\"
silent
show-error
connect-timeout = 5
max-time = 30
",
        reports.authorities,
        reports.token.expose_secret(),
    );
    let holds = format!("{}\n", reports.holds);
    let files = vec![
        file(CURL, 0o600, inline(curl.as_bytes())),
        file(authorities::CURL, 0o600, inline(asking.as_bytes())),
        file(authorities::SCRIPT, 0o644, inline(authorities::SCRIPT_TEXT.as_bytes())),
        file(authorities::REVISION, 0o600, inline(holds.as_bytes())),
        file(AUTHORITY, 0o644, inline(reports.authority.as_bytes())),
    ];
    let units = node.config.systemd.iter().flat_map(|it| it.units.iter().flatten());
    let steps = units.filter_map(|unit| Some((unit, step(unit)?)));
    let said = steps.map(|(unit, step)| {
        with_dropin(Unit::new(unit.name.clone()), "50-report.conf", &dropin(step))
    });
    let asks = unit("bedplate-authorities.service", authorities::UNIT);
    let added = config(Vec::new(), files, said.chain([asks]).collect());
    NodeConfig { machine: node.machine.clone(), config: merge(&node.config, &added) }
}

/// The step that a unit is: the units that do something once.
fn step(unit: &Unit) -> Option<&str> {
    let is_step = unit.contents.as_ref().is_some_and(|text| text.contains("Type=oneshot"));
    let step = unit.name.strip_prefix("bedplate-")?.strip_suffix(".service")?;
    is_step.then_some(step)
}

/// systemd.exec(5): `SERVICE_RESULT` and `EXIT_STATUS` are for `ExecStopPost=`, which is run when a start has failed, too.
fn dropin(step: &str) -> String {
    let curl = format!("-/usr/bin/curl --config {CURL} --data step={step}");
    format!(
        "[Service]
ExecStartPost={curl} --data result=success
ExecStopPost={curl} --data result=${{SERVICE_RESULT}} --data status=${{EXIT_STATUS}}
"
    )
}

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reports({})", self.url)
    }
}
