//! CPU time of a process, from its CPU clock (clock_getcpuclockid(3)), and its memory, from `/proc` (proc(5)).

use std::fs;
use std::time::Duration;

use anyhow::Context;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

/// Ticks per second in `/proc/PID/stat`: the kernel's `USER_HZ`, 100 on all our platforms.
const TICKS_PER_SECOND: f64 = 100.0;

/// How much nicer (nice(2)) a process is that must not disturb the measured one.
const LESS_PRIORITY: i32 = 5;

/// The CPU time that `pid` has spent so far, in user and kernel mode. `/proc/PID/stat` has it as well, but counts in 10 ms.
pub(crate) fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into()?));
    let time = clock.and_then(clock_gettime).context("a process has no CPU clock")?;
    Ok(time.into())
}

/// The CPU time that `pid` and its descendants have spent so far.
pub(crate) fn cpu_of_tree(pid: u32) -> anyhow::Result<Duration> {
    tree(pid)?.into_iter().map(cpu).sum()
}

/// The memory of `pid` and its descendants in MiB. A page that several processes share counts once.
pub(crate) fn shared_mib_of_tree(pid: u32) -> anyhow::Result<f64> {
    tree(pid)?.into_iter().map(|pid| mib(&read(pid, "smaps_rollup")?, "Pss:")).sum()
}

/// The resident memory of `pid` and its descendants, in MiB.
pub(crate) fn resident_mib_of_tree(pid: u32) -> anyhow::Result<f64> {
    tree(pid)?.into_iter().map(resident_mib).sum()
}

/// The sum of the peaks of the resident memory of `pid` and its descendants, in MiB.
pub(crate) fn peak_mib_of_tree(pid: u32) -> anyhow::Result<f64> {
    tree(pid)?.into_iter().map(peak_mib).sum()
}

/// The process and its descendants.
fn tree(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let children = fs::read_to_string(thread?.path().join("children"))?;
            let children: Result<Vec<u32>, _> =
                children.split_whitespace().map(str::parse).collect();
            found.extend(children?);
        }
        next += 1;
    }
    Ok(found)
}

/// The CPU time of all ended child processes, including their own ended children.
pub(crate) fn cpu_of_children() -> anyhow::Result<Duration> {
    let stat = read(std::process::id(), "stat")?;
    // The second field is the program's name in parentheses, and the name may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')').context("/proc/PID/stat has no name")?;
    // The fields cutime and cstime.
    let ticks = rest.split_whitespace().skip(13).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<_, _>>().context("/proc/PID/stat has no times")?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

/// The resident memory of `pid`, in MiB.
pub(crate) fn resident_mib(pid: u32) -> anyhow::Result<f64> {
    mib(&read(pid, "smaps_rollup")?, "Rss:")
}

/// The peak of the resident memory of `pid`, in MiB.
pub(crate) fn peak_mib(pid: u32) -> anyhow::Result<f64> {
    mib(&read(pid, "status")?, "VmHWM:")
}

/// Raises the soft limit of open files to the hard limit, also for child processes: every emulated BMC needs a socket.
pub(crate) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // If the kernel refuses, the process that runs out of files reports it.
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).ok();
}

/// Lowers the priority of this thread and of the threads that it starts.
pub(crate) fn yield_to_others() -> anyhow::Result<()> {
    nice(LESS_PRIORITY).context("cannot lower the priority")?;
    Ok(())
}

fn read(pid: u32, file: &str) -> anyhow::Result<String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
}

fn mib(text: &str, key: &str) -> anyhow::Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let line = line.with_context(|| format!("the kernel does not tell {key}"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reported_in_mib() {
        let text = "VmPeak:\t  999 kB\nVmHWM:\t    2048 kB\n";
        assert_eq!(mib(text, "VmHWM:").unwrap(), 2.0);
        assert!(mib(text, "Rss:").is_err());
    }

    #[test]
    fn this_process_has_memory_and_cpu_time() {
        let us = std::process::id();
        assert!(resident_mib(us).unwrap() > 0.1);
        assert!(peak_mib(us).unwrap() >= resident_mib(us).unwrap() / 2.0);
        cpu(us).unwrap();
        assert!(shared_mib_of_tree(us).unwrap() > 0.1);
    }

    #[test]
    fn a_child_belongs_to_the_tree_of_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let tree = tree(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(tree.contains(&child.id()), "{tree:?}");
    }
}
