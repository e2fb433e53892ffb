//! Machines at the pace of real ones, from powered off to installed, while others read and write the API.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::bring_up::{Arrival, RACK, arrive, enroll, image_of, provisioning, up, write_files};
use super::emulated::{Hello, MachineSet, Outcome};
use super::meanwhile::Meanwhile;
use super::power_age::{self, PowerAges};
use crate::api::{drive, finish, uuids};
use crate::client::Call;
use crate::daemon::{Daemon, DaemonFolder};
use crate::emulation::Emulation;
use crate::load::{self, LoadResult};
use crate::process;
use crate::report::{Budget, Report, Row};
use crate::sizes::Sizes;

/// One of this many machines is a witness of how old power states are.
const WITNESS_OF: usize = 100;
const MOST_WITNESSES: usize = 100;
/// How long all machines together may take.
const PATIENCE: Duration = Duration::from_secs(2 * 1800);
/// The pause between two looks at a rack.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The budget for the time from powered off to installed of all machines, in seconds.
const INSTALLED_WITHIN: f64 = 1800.0;
/// The budget for the difference between the times of one machine among few machines and among many.
const SAME_WITHIN: f64 = 0.1;

/// The settings of a site with thousands of machines: a turn that waits for a slow BMC costs memory only, and a power state is read again
/// before it is a minute old. All emulated machines have one address.
const SETTINGS: &str = r#"[conductor]
workers = 1024
power_sync_every = "40s"
power_sync_at_once = 512
[provisioning.connections]
at_most = 16384
from_one_address = 16384
answer_timeout = "15m"
"#;

/// Measures on SQLite, and on PostgreSQL if databases are given.
pub(crate) async fn measure(sizes: &Sizes, report: &mut Report) -> anyhow::Result<()> {
    let counts: Vec<usize> = sizes.beside.into_iter().chain([sizes.machines]).collect();
    compare("SQLite", &counts, &[], sizes, report).await?;
    if sizes.postgres.is_empty() {
        return report.note("SKIPPED: PostgreSQL, because no --postgres names a database");
    }
    let needed = counts.len();
    anyhow::ensure!(sizes.postgres.len() == needed, "--postgres must name {needed} databases");
    compare("PostgreSQL", &counts, &sizes.postgres, sizes, report).await
}

/// Measures each number of machines. The time of one machine must not depend on the number.
async fn compare(
    database: &str,
    counts: &[usize],
    urls: &[String],
    sizes: &Sizes,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut first = None;
    for (index, count) in counts.iter().enumerate() {
        let set = MachineSet {
            count: *count,
            witnesses: (count / WITNESS_OF).clamp(1, MOST_WITNESSES),
            pace: sizes.pace,
        };
        let site = Site { database, set, limit: sizes.rack_limit };
        let url = urls.get(index).map(String::as_str);
        let outcome = site.bring_up(url, sizes, report).await?;
        let one = median(&outcome.took).context("no machine was installed")?;
        let budget = first.map(|first: f64| {
            Budget::SecondsWithin(first * (1.0 - SAME_WITHIN), first * (1.0 + SAME_WITHIN))
        });
        let phase = site.phase("one machine");
        report.row(&Row {
            at_once: Some(site.in_progress()),
            seconds: Some(one),
            budget,
            is_binding: true,
            ..Row::named(&phase)
        })?;
        first.get_or_insert(one);
    }
    Ok(())
}

/// A service with this database, and its machines.
struct Site<'a> {
    database: &'a str,
    set: MachineSet,
    /// How many machines of a rack may be in progress.
    limit: usize,
}

impl Site<'_> {
    fn phase(&self, what: &str) -> String {
        format!("{}: {what}", self.database)
    }

    /// How many machines may be in progress at the same time.
    fn in_progress(&self) -> usize {
        (self.set.count.div_ceil(RACK) * self.limit).min(self.set.count)
    }

    /// Enrolls the machines, installs them, and reports everything that was measured meanwhile.
    async fn bring_up(
        &self,
        url: Option<&str>,
        sizes: &Sizes,
        report: &mut Report,
    ) -> anyhow::Result<Outcome> {
        let home = DaemonFolder::new()?;
        let checksum = write_files(&home, sizes.boot_mib << 20)?;
        let database = url.map(|url| format!("[database]\nurl = {url:?}\n")).unwrap_or_default();
        let sections = format!("{}{SETTINGS}{database}", provisioning(&home));
        let daemon = home.start(&sections).await?;
        let at = &daemon.listeners;
        let dhcp = at.dhcp.context("there is no DHCP server")?;
        let tftp = at.tftp.context("there is no TFTP server")?;
        let (emulation, hello) = self.set.start(dhcp, tftp).await?;

        let phase = self.phase("racks of 40");
        let racks = enroll(&phase, &hello.rows, &daemon, sizes.clients, report).await?;
        self.enroll_witnesses(&hello, &daemon, sizes.clients, report).await?;
        let goal = json!({
            "reach": "installed", "instance_info": image_of(&daemon, &checksum)?, "limit": self.limit,
        });
        let (emulation, ages) = self.install(&racks, &goal, emulation, &daemon, report).await?;
        let outcome = self.look_back(emulation, &ages, report).await?;
        daemon.stop().await?;
        Ok(outcome)
    }

    /// Makes nodes of the witnesses, whose power states are refreshed from then on.
    async fn enroll_witnesses(
        &self,
        hello: &Hello,
        daemon: &Daemon,
        clients: usize,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let create = |(index, (driver, info)): (usize, &(String, Value))| {
            let name = format!("machine-{index}");
            let body = json!({"name": name, "driver": driver, "driver_info": info});
            Call::send(Method::POST, "/v1/nodes", body)
        };
        let calls: Vec<Call> = (self.set.count..).zip(&hello.witnesses).map(create).collect();
        let made = load::run(daemon.server.api, clients, calls.into_iter()).await?;
        let phase = self.phase("witnesses");
        let change = ("manage", "manageable");
        drive(&phase, change, &uuids(&made)?, &daemon.server, clients, report).await
    }

    /// Installs the machines. Returns the emulation, which this function hands to the comparison of power states.
    async fn install(
        &self,
        racks: &[String],
        goal: &Value,
        emulation: Emulation,
        daemon: &Daemon,
        report: &mut Report,
    ) -> anyhow::Result<(Emulation, PowerAges)> {
        let emulator = emulation.pid;
        let cpu = [process::cpu(daemon.server.pid)?, process::cpu(emulator)?];
        let stop = Arc::new(Notify::new());
        let ages = power_age::compare_until(stop.clone(), daemon.server, emulation);
        let ages = tokio::spawn(ages);
        let meanwhile = Meanwhile::start(daemon.server, self.set.count, self.set.witnesses);

        let begun = Instant::now();
        let mut asked = up(racks, goal, daemon).await?;
        let patience = Arrival { begun, patience: PATIENCE, look_every: LOOK_EVERY };
        let (there, failure) = arrive(racks, patience, daemon).await?;
        asked.first_error = asked.first_error.or(failure);
        let phase = self.phase("off to installed");
        let row = Row {
            count: Some(self.set.count),
            at_once: Some(self.in_progress()),
            seconds: Some(begun.elapsed().as_secs_f64()),
            errors: self.set.count.saturating_sub(there) + asked.errors,
            budget: Some(Budget::Seconds(INSTALLED_WITHIN)),
            is_binding: true,
            ..Row::named(&phase)
        };
        let measured = meanwhile.end()?;
        stop.notify_one();
        let ages = ages.await??;

        finish(row, &asked, &daemon.server, cpu[0], report)?;
        let spent = (process::cpu(emulator)? - cpu[1]).as_secs_f64();
        let resident = process::resident_mib(emulator)?;
        report.note(&format!(
            "the emulated machines spent {spent:.2} s of CPU meanwhile, and need {resident:.0} MiB"
        ))?;
        self.report_service(&measured, daemon, report)?;
        Ok(ages)
    }

    /// Reports the memory of the service and the latencies of its API.
    fn report_service(
        &self,
        [reads, writes]: &[LoadResult; 2],
        daemon: &Daemon,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let phase = self.phase("memory");
        report.row(&Row {
            resident_mib: Some(process::resident_mib(daemon.server.pid)?),
            peak_mib: Some(process::peak_mib(daemon.server.pid)?),
            budget: Some(Budget::PeakMib(300.0)),
            is_binding: true,
            ..Row::named(&phase)
        })?;
        for (what, load, most_ms) in [("reads", reads, 20.0), ("writes", writes, 50.0)] {
            let phase = self.phase(what);
            let budget = Some(Budget::P99Ms(most_ms));
            report.row(&Row { budget, is_binding: true, ..Row::of_load(&phase, 1, load) })?;
            if let Some(error) = &load.first_error {
                report.note(&format!("the first error: {error}"))?;
            }
        }
        Ok(())
    }

    /// Reports the age of power states and the sessions of the BMCs.
    async fn look_back(
        &self,
        mut emulation: Emulation,
        ages: &PowerAges,
        report: &mut Report,
    ) -> anyhow::Result<Outcome> {
        let phase = self.phase("oldest power state");
        report.row(&Row {
            seconds: Some(ages.oldest.as_secs_f64()),
            budget: Some(Budget::Seconds(60.0)),
            is_binding: true,
            ..Row::named(&phase)
        })?;
        let PowerAges { compared, outdated, .. } = ages;
        report.note(&format!(
            "{compared} power states were compared, {outdated} were no longer true"
        ))?;
        let outcome: Outcome = serde_json::from_str(&emulation.ask("outcome").await?)?;
        let phase = self.phase("sessions of a BMC");
        report.row(&Row { errors: outcome.refused_sessions, ..Row::named(&phase) })?;
        let most = outcome.most_sessions;
        report.note(&format!(
            "a BMC had at most {most} of 4 sessions; an error is a session that a BMC refused"
        ))?;
        Ok(outcome)
    }
}

/// The median of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}
