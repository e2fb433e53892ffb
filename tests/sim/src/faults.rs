//! The faults of a simulation, in a random order. Each process, each machine, the database and the cloud have faults of their own, one at a
//! time.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bmc_emulator::{BmcKind, CompletionFault, FaultSet, ReportedPower, StatusFault};
use lab::RackedMachine;
use openstack_emulator::{Act, CreateOutcome, End, Kind, Lag, Rule};
use simulated_kernel::Host;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::chance::{between, happens, millis, one_of};
use crate::replica::{AtPoint, Plan, Replica};
use crate::site::Site;

/// Lets faults happen for a while. Everything is well again at the end.
pub(crate) async fn strike(site: &Arc<Site>, lasts: Duration) {
    let end = simulated_kernel::elapsed() + lasts;
    if happens(50) {
        simulated_kernel::lose_connections(between(1, 30), Duration::from_secs(3));
    }
    let mut all = JoinSet::new();
    for (replica, others) in site.processes() {
        let site = site.clone();
        all.spawn(async move { again(end, || process(&site, &replica, &others)).await });
    }
    for machine in &site.machines {
        let (site, machine) = (site.clone(), machine.clone());
        all.spawn(async move { again(end, || a_machine(&site, &machine)).await });
    }
    for fault in 0..2 {
        let site = site.clone();
        all.spawn(async move {
            match fault {
                0 => again(end, || database(&site)).await,
                _ => again(end, || cloud(&site)).await,
            }
        });
    }
    all.join_all().await;
    heal(site);
}

/// Lets faults happen until this time.
async fn again<F: Future<Output = ()>>(end: Duration, fault: impl Fn() -> F) {
    let most = between(5, 60) * 1000;
    while simulated_kernel::elapsed() < end {
        sleep(millis(500, most)).await;
        fault().await;
    }
}

/// A fault of a process or of its computer. The process works on `others`.
async fn process(site: &Site, replica: &Replica, others: &[Host]) {
    let other = *one_of(others);
    let note = |text: String| site.trace.note(format!("{} {text}", replica.name));
    match between(0, 13) {
        0 => {
            replica.kill();
            sleep(millis(0, 15_000)).await;
            replica.start();
        }
        1..=4 => {
            at_a_point(replica, AtPoint::Dies).await;
            if !replica.is_running() {
                replica.kill();
                replica.start();
            }
        }
        5 => at_a_point(replica, AtPoint::Pauses(millis(5_000, 40_000))).await,
        6 => {
            replica.stop();
            sleep(millis(0, 5_000)).await;
            replica.start();
        }
        7 | 8 => at_a_point(replica, AtPoint::Pauses(millis(5_000, 40_000))).await,
        9 => {
            let pause = millis(500, 60_000);
            note(format!("pauses for {pause:?}"));
            replica.host.pause(pause);
            sleep(pause).await;
        }
        10 => {
            let (other, lasts) = (*one_of(&[other, other, Host::FIRST]), millis(500, 40_000));
            note(format!("is parted from {other:?} for {lasts:?}"));
            replica.host.partition(other);
            sleep(lasts).await;
            replica.host.reconnect(other);
        }
        11 => {
            note("loses its connections".to_owned());
            replica.host.cut(other);
        }
        12 => {
            let seconds = between(0, 240) as i64 - 120;
            note(format!("has a clock {seconds} s ahead"));
            replica.host.set_clock_ahead(seconds);
        }
        _ => {
            note("has a slow disk".to_owned());
            replica.host.set_disk_delay(millis(1, 3000));
            sleep(millis(500, 20_000)).await;
            replica.host.set_disk_delay(Duration::ZERO);
        }
    }
}

/// Lets something happen at one of the next effects or writes of a process.
async fn at_a_point(replica: &Replica, what: AtPoint) {
    let only_effects = happens(50);
    let after = between(0, if only_effects { 6 } else { 30 });
    replica.plan(Some(Plan { after, only_effects, what }));
    sleep(millis(1000, 60_000)).await;
    replica.plan(None);
}

async fn database(site: &Site) {
    let lasts = millis(500, 15_000);
    let (is_away, loses) = if happens(30) { (true, 0) } else { (false, between(1, 8)) };
    site.trace.note(match is_away {
        true => format!("the databases are away for {lasts:?}"),
        false => format!("the databases lose answers for {lasts:?}"),
    });
    site.weather.set_database(is_away, loses);
    sleep(lasts).await;
    site.weather.set_database(false, 0);
}

/// A machine or its BMC misbehaves for a while.
async fn a_machine(site: &Site, machine: &RackedMachine) {
    let (chassis, lasts) = (machine.chassis().faults(), millis(1000, 60_000));
    let is_ipmi = machine.spec().bmc.kind == BmcKind::Ipmi;
    // An emulated BMC handles one datagram after the other.
    let slow = millis(100, if is_ipmi { 1000 } else { 8000 });
    let delay = millis(1000, 40_000);
    let status = |status| StatusFault { status, times: Some(3), ..StatusFault::default() };
    // IPMI 2.0 table 5-2: the node is busy.
    let busy = CompletionFault { code: 0xc0, net_fn: None, command: None, times: Some(3) };
    let mut bmc = FaultSet::default();
    let mut own = machine_emulator::FaultSet::default();
    let name = match between(0, if is_ipmi { 17 } else { 14 }) {
        0 => (bmc.drop = true, "its BMC answers nothing").1,
        1 => (bmc.slow = Some(slow), "its BMC is slow").1,
        2 => (bmc.status = vec![status(500)], "its BMC fails").1,
        3 => (bmc.status = vec![status(503)], "its BMC is busy").1,
        4 => (bmc.sessions_full = true, "its BMC has no session").1,
        5 => (bmc.forget_sessions = true, "its BMC forgets all sessions").1,
        6 => (bmc.ignore_power_on = true, "it stays off").1,
        7 => (bmc.power_delay = Some(delay), "it follows slowly").1,
        8 => (bmc.reported_power = Some(ReportedPower::On), "its BMC says it is on").1,
        9 => (bmc.reported_power = Some(ReportedPower::Off), "its BMC says it is off").1,
        10 => (own.drop_dhcp = true, "it gets no address").1,
        11 => (own.hang_in_firmware = true, "it hangs").1,
        12 => (own.agent_is_silent = true, "its agent is silent").1,
        13 => (own.agent_refuses = Some(503), "its agent is busy").1,
        14 => (own.break_downloads = 1, "its download breaks").1,
        15 => (bmc.lose_every = NonZeroU32::new(3), "its BMC loses datagrams").1,
        16 => (bmc.duplicate_replies = true, "its BMC answers twice").1,
        _ => (bmc.completion = vec![busy], "its BMC is busy").1,
    };
    site.trace.note(format!("{}: {name} for {lasts:?}", machine.name()));
    chassis.set(bmc);
    machine.misbehave(|it| *it = own);
    sleep(lasts).await;
    is_well(machine);
}

fn is_well(machine: &RackedMachine) {
    machine.chassis().faults().clear();
    machine.misbehave(|it| *it = machine_emulator::FaultSet::default());
}

/// The cloud misbehaves.
async fn cloud(site: &Site) {
    const PATHS: [&str; 5] =
        ["/compute/v2.1/servers", "/network/v2.0/**", "/load-balancer/**", "/compute/**", "/**"];
    let (path, lasts) = (*one_of(&PATHS), millis(500, 30_000));
    let answer = |status| Act::Answer { status, retry_after: None, message: None };
    let method = *one_of(&["POST", "DELETE", "GET", ""]);
    let act = match between(0, 9) {
        0 => Act::LoseAnswer,
        1 => Act::Close,
        2 => Act::Hang,
        3 => Act::HangAfterwards,
        4 => answer(*one_of(&[500, 502, 503])),
        5 => Act::Land { millis: between(100, 20_000) as u32 },
        6 => {
            site.trace.note("the cloud forgets its tokens");
            return site.cloud.void_tokens();
        }
        7 => {
            site.trace.note("the next server ends in error");
            let (kind, end) = (Kind::Server, End::Error("no host".to_owned()));
            return site.cloud.set_fate(CreateOutcome {
                kind,
                name: "**".to_owned(),
                after: 0,
                times: Some(1),
                end,
            });
        }
        8 => return site.watch.break_a_member(),
        _ => Act::Delay { millis: between(100, 20_000) as u32 },
    };
    site.trace.note(format!("the cloud: {act:?} for {method} {path} for {lasts:?}"));
    site.cloud.misbehave(Rule::new(method, path, act).times(between(1, 5) as u32).lasting(lasts));
    if happens(20) {
        // A server of a hypervisor is in all lists when it runs: it is built in four seconds.
        let most = if site.size.are_hypervisors { 3000 } else { 5000 };
        site.cloud.lag(Lag { kind: Kind::Server, millis: between(100, most) as u32 });
    }
    sleep(lasts).await;
}

fn heal(site: &Site) {
    site.trace.note("the faults have ended");
    site.weather.end();
    simulated_kernel::lose_connections(0, Duration::from_secs(1));
    site.weather.set_database(false, 0);
    site.cloud.forgive_all();
    site.machines.iter().for_each(is_well);
    for (replica, _) in site.processes() {
        replica.start();
    }
}
