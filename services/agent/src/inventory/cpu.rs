//! Processors, from `/proc/cpuinfo`.

use std::collections::BTreeSet;

use agent_protocol::Cpu;

use crate::root::Root;

pub(super) fn cpu(root: &Root) -> Cpu {
    let text = root.text("/proc/cpuinfo").unwrap_or_default();
    let fields = || text.lines().filter_map(|line| line.split_once(':'));
    let all = |name: &'static str| {
        fields().filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
    };
    let highest: Option<u64> = root.number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
    let frequency = match highest {
        Some(khz) => (khz / 1000).to_string(),
        None => all("cpu MHz").next().unwrap_or_default().to_owned(),
    };
    let sockets: BTreeSet<&str> = all("physical id").collect();
    Cpu {
        model_name: all("model name").next().unwrap_or_default().to_owned(),
        frequency,
        count: all("processor").count() as u32,
        architecture: std::env::consts::ARCH.to_owned(),
        flags: all("flags")
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        socket_count: (!sockets.is_empty()).then_some(sockets.len() as u32),
    }
}
