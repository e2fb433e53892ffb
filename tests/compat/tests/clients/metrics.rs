//! Prometheus' own parser reads the metrics of both services.

use std::path::Path;
use std::process::{Command, Stdio};

use compat::wire::Request;
use compat::{Service, python};

const METRICS: &str = "[metrics]\nlisten = '127.0.0.1:0'\n";

#[test]
fn prometheus_reads_the_metrics_of_both_services() {
    let both = [
        (Service::machines_with(METRICS), "bedplate_sweep_duration_seconds histogram seconds"),
        (Service::clusters_with(METRICS), "bedplate_clusters gauge "),
    ];
    for (service, own) in both {
        // A counter appears with its first event.
        Request::new("GET", "/").send(&service.url);
        let run = Command::new(python::tool("metrics-requirements.txt", "python"))
            .arg(Path::new(python::HOME).join("clients/metrics.py"))
            .env("PAGE", format!("http://{}/metrics", service.listener("metrics")))
            .stdin(Stdio::null())
            .output()
            .expect("Python can be started");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let families = String::from_utf8(run.stdout).expect("Python prints UTF-8");
        for family in [
            own,
            "bedplate_build info ",
            "bedplate_http_requests counter ",
            "bedplate_http_request_duration_seconds histogram seconds",
            "process_start_time_seconds gauge seconds",
            "process_cpu_seconds counter seconds",
            "process_resident_memory_bytes gauge bytes",
        ] {
            assert!(families.lines().any(|it| it == family), "no {family:?} in:\n{families}");
        }
    }
}
