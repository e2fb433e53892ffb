//! Progress reports of members.

use ignition::build::{config, file, inline, unit, with_dropin};
use ignition::{Unit, merge};
use secrecy::ExposeSecret;
use url::Url;

use crate::reports::{AUTHORITY, Reports};
use crate::{NodeConfig, backups, ca_rotation, os_updates, renewal};

const CURL: &str = "/etc/bedplate/report.curl";

/// Adds progress reports, CA rotation, the renewal of certificates, backups of etcd and updates of the operating system to the config of a
/// member.
///
/// After each step the member sends a form with `claim`, `step`, `result` and `status`. A report takes at most a few seconds, and a failed
/// report does not fail the step.
pub fn reporting(node: &NodeConfig, reports: &Reports) -> NodeConfig {
    let curl = format!(
        "# Read by curl --config, so that the token does not appear in the list of processes.
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
    let asking = long_request(reports, &reports.authorities, "get");
    let telling =
        long_request(reports, &reports.certificates, "header = \"Content-Type: text/plain\"");
    let holds = format!("{}\n", reports.holds);
    let (of_backups, backs_up) = backups::asking(reports);
    let mut files = vec![
        file(CURL, 0o600, inline(curl.as_bytes())),
        file(ca_rotation::CURL, 0o600, inline(asking.as_bytes())),
        file(renewal::CURL, 0o600, inline(telling.as_bytes())),
        file(ca_rotation::SCRIPT, 0o644, inline(ca_rotation::script().as_bytes())),
        file(ca_rotation::REVISION, 0o600, inline(holds.as_bytes())),
        file(AUTHORITY, 0o644, inline(reports.authority.as_bytes())),
    ];
    files.extend(reports.reboots.iter().flat_map(|url| os_updates::files(url, &reports.authority)));
    files.extend(of_backups);
    let units = node.config.systemd.iter().flat_map(|it| it.units.iter().flatten());
    let steps = units.filter_map(|unit| Some((unit, step(unit)?)));
    let said = steps.map(|(unit, step)| {
        with_dropin(Unit::new(unit.name.clone()), "50-report.conf", &dropin(step))
    });
    let asks = unit("bedplate-authorities.service", ca_rotation::UNIT);
    let added = config(Vec::new(), files, said.chain([asks, backs_up]).collect());
    NodeConfig { machine: node.machine.clone(), config: merge(&node.config, &added) }
}

/// Returns the curl configuration of a request that clusterd may answer slowly, with one more `option`.
fn long_request(reports: &Reports, url: &Url, option: &str) -> String {
    format!(
        "# Read by curl --config, so that the token does not appear in the list of processes.
url = \"{url}\"
{option}
header = \"Authorization: Bearer {}\"
cacert = \"{AUTHORITY}\"
noproxy = \"*\"
silent
show-error
connect-timeout = 5
max-time = 30
",
        reports.token.expose_secret(),
    )
}

/// The name of the step that a unit carries out; `None` for units that do not run once.
fn step(unit: &Unit) -> Option<&str> {
    let is_step = unit.contents.as_ref().is_some_and(|text| text.contains("Type=oneshot"));
    let step = unit.name.strip_prefix("bedplate-")?.strip_suffix(".service")?;
    is_step.then_some(step)
}

/// systemd.exec(5): `SERVICE_RESULT` and `EXIT_STATUS` are set for `ExecStopPost=`, which also runs when a start failed.
fn dropin(step: &str) -> String {
    let curl = format!("-/usr/bin/curl --config {CURL} --data step={step}");
    format!(
        "[Service]
ExecStartPost={curl} --data result=success
ExecStopPost={curl} --data result=${{SERVICE_RESULT}} --data status=${{EXIT_STATUS}}
"
    )
}
