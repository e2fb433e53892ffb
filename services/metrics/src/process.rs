//! The resources that the process uses, as the kernel counts them at each scrape: proc(5).

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The clock ticks of `/proc/self/stat` in a second (`USER_HZ`), the same on all architectures that Bedplate runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the numbers at each scrape. A number that cannot be read is left out.
#[derive(Debug)]
pub(crate) struct ProcessCollector;

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if let Some(seconds) = processor_seconds() {
            let counter = ConstCounter::new(seconds);
            let (help, kind) = ("Processor time of the process.", counter.metric_type());
            let unit = Unit::Seconds;
            counter.encode(encoder.encode_descriptor("process_cpu", help, Some(&unit), kind)?)?;
        }
        if let Some(bytes) = resident_bytes() {
            let gauge = ConstGauge::new(bytes);
            let (help, kind) = ("Memory of the process in RAM.", gauge.metric_type());
            let (name, unit) = ("process_resident_memory", Unit::Bytes);
            gauge.encode(encoder.encode_descriptor(name, help, Some(&unit), kind)?)?;
        }
        if let Some(files) = open_files() {
            let gauge = ConstGauge::new(files);
            let (help, kind) = ("Open files and sockets of the process.", gauge.metric_type());
            gauge.encode(encoder.encode_descriptor("process_open_fds", help, None, kind)?)?;
        }
        Ok(())
    }
}

fn processor_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program is in brackets and may contain spaces. After it come the state, and as the 12th and 13th word the ticks in
    // user mode and in the kernel.
    let (_, words) = stat.rsplit_once(')')?;
    let ticks = words.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Some(ticks.sum::<Result<f64, _>>().ok()? / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn open_files() -> Option<u64> {
    let files = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(files).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_time_memory_and_files() {
        let before = processor_seconds().unwrap();
        // This loop uses the time that it waits for.
        while processor_seconds().unwrap() <= before {}
        assert!(resident_bytes().unwrap() > 1 << 16);
        // Standard input, output and error.
        assert!(open_files().unwrap() >= 3);
    }
}
