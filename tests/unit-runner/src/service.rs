//! Runs one service: its conditions, its commands, and its restarts.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::command::{Command, Environment, assign, read_file};
use crate::reaper::Reaper;
use crate::unit::{Kind, Restart, Unit, Variables};

pub(crate) const LOGS: &str = "/var/log/units";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartResult {
    /// The service runs, or a oneshot has finished.
    Yes,
    /// A condition is not met.
    Skipped,
    /// The service failed and is not restarted.
    Failed,
}

/// Runs a service, including its restarts. `started` is called once with the result of the start; a failure that leads to a restart does
/// not count yet, as with `RestartMode=direct`.
pub(crate) fn run(
    unit: &Unit,
    reaper: &Reaper,
    say: &dyn Fn(String),
    started: &dyn Fn(StartResult),
) {
    let unmet = unit.conditions.iter().find(|(path, there)| path.exists() != *there);
    if let Some((path, there)) = unmet {
        say(format!(
            "{}: skipped, because {} is {}",
            unit.name,
            path.display(),
            if *there { "missing" } else { "there" }
        ));
        return started(StartResult::Skipped);
    }
    let mut tries = 0_u32;
    loop {
        tries += 1;
        let begun = Instant::now();
        let success = match once(unit, reaper, started) {
            Ok(success) => success,
            Err(error) => {
                say(format!("{}: {error:#}", unit.name));
                false
            }
        };
        if !success || unit.kind != Kind::Oneshot {
            stopped(unit, reaper, success, say);
        }
        // Frequent failures are logged at powers of two only.
        if tries.is_power_of_two() || success {
            let how = if success { "ended" } else { "failed" };
            say(format!(
                "{}: {how} after {:.1} s, try {tries}",
                unit.name,
                begun.elapsed().as_secs_f64()
            ));
        }
        if success && unit.kind == Kind::Oneshot {
            return started(StartResult::Yes);
        }
        let again = match unit.restart {
            Restart::No => false,
            Restart::OnFailure => !success,
            Restart::Always => true,
        };
        if !again {
            return started(if success { StartResult::Yes } else { StartResult::Failed });
        }
        thread::sleep(unit.restart_after);
    }
}

/// Runs the `ExecStopPost` commands, with the result in their environment, systemd.exec(5).
fn stopped(unit: &Unit, reaper: &Reaper, success: bool, say: &dyn Fn(String)) {
    let run = || {
        let mut environment = environment(unit)?;
        let result = if success { "success" } else { "exit-code" };
        environment.insert("SERVICE_RESULT".to_owned(), result.to_owned());
        for command in &unit.after_stop {
            to_its_end(unit, command, &environment, reaper, None)?;
        }
        anyhow::Ok(())
    };
    if let Err(error) = run() {
        say(format!("{}: after its end: {error:#}", unit.name));
    }
}

/// Starts the service once and waits for its end.
fn once(unit: &Unit, reaper: &Reaper, started: &dyn Fn(StartResult)) -> Result<bool> {
    let environment = environment(unit)?;
    let until =
        unit.start_timeout.filter(|_| unit.kind == Kind::Oneshot).map(|span| Instant::now() + span);
    for command in &unit.before_start {
        if !to_its_end(unit, command, &environment, reaper, until)? {
            return Ok(false);
        }
    }
    match unit.kind {
        Kind::Oneshot => {
            for command in unit.start.iter().chain(&unit.after_start) {
                if !to_its_end(unit, command, &environment, reaper, until)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Kind::Simple => {
            let child = spawn(unit, main(unit)?, &environment, reaper)?;
            for command in &unit.after_start {
                to_its_end(unit, command, &environment, reaper, None)?;
            }
            started(StartResult::Yes);
            Ok(reaper.outcome(child, None))
        }
        Kind::Notify => {
            let path = format!("/run/units/{}.notify", unit.name);
            let socket = socket(&path)?;
            let mut environment = environment;
            environment.insert("NOTIFY_SOCKET".to_owned(), path);
            let child = spawn(unit, main(unit)?, &environment, reaper)?;
            wait_until_ready(&socket)?;
            for command in &unit.after_start {
                to_its_end(unit, command, &environment, reaper, None)?;
            }
            started(StartResult::Yes);
            Ok(reaper.outcome(child, None))
        }
    }
}

fn main(unit: &Unit) -> Result<&Command> {
    match &unit.start[..] {
        [one] => Ok(one),
        _ => bail!("only a oneshot may have several commands"),
    }
}

fn to_its_end(
    unit: &Unit,
    command: &Command,
    environment: &Environment,
    reaper: &Reaper,
    until: Option<Instant>,
) -> Result<bool> {
    if command.may_fail {
        // The program of such a command may be missing.
        if let Ok(child) = spawn(unit, command, environment, reaper) {
            reaper.outcome(child, until);
        }
        return Ok(true);
    }
    let child = spawn(unit, command, environment, reaper)?;
    Ok(reaper.outcome(child, until))
}

fn spawn(
    unit: &Unit,
    command: &Command,
    environment: &Environment,
    reaper: &Reaper,
) -> Result<Pid> {
    let words = command.words(&unit.name, environment)?;
    let (program, arguments) = words.split_first().context("a command has a program")?;
    let log = log(&unit.name)?;
    let mut process = process::Command::new(program);
    process
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir("/")
        .stdin(process::Stdio::null());
    process.stdout(log.try_clone()?).stderr(log);
    reaper.spawn(&mut process)
}

fn environment(unit: &Unit) -> Result<Environment> {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let mut environment = Environment::from([("PATH".to_owned(), path.to_owned())]);
    // Environment files are read after `Environment=` lines and override them, systemd.exec(5).
    for variables in &unit.variables {
        if let Variables::Line(line) = variables {
            assign(line, &mut environment)?;
        }
    }
    for variables in &unit.variables {
        if let Variables::File { path, optional } = variables {
            match fs::read_to_string(path) {
                Ok(text) => read_file(&text, &mut environment),
                Err(error) if *optional && error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot read {}", path.display()));
                }
            }
        }
    }
    Ok(environment)
}

fn log(name: &str) -> Result<File> {
    let path = Path::new(LOGS).join(format!("{name}.log"));
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

fn socket(path: &str) -> Result<UnixDatagram> {
    fs::create_dir_all("/run/units")?;
    let _ = fs::remove_file(path);
    let socket = UnixDatagram::bind(path).with_context(|| format!("cannot listen at {path}"))?;
    socket.set_read_timeout(Some(Duration::from_secs(90)))?;
    Ok(socket)
}

/// Waits for `READY=1`, sd_notify(3).
fn wait_until_ready(socket: &UnixDatagram) -> Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).context("the service sent no READY=1")?;
        let message = String::from_utf8_lossy(&buffer[..length]);
        if message.lines().any(|line| line == "READY=1") {
            return Ok(());
        }
    }
}
