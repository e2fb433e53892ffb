//! The program `clusterd`.

use std::process::ExitCode;

use cluster::{Config, Service, check};
use daemon::Program;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let program = Program {
        name: "clusterd",
        about: "Serves the Container Infra API: Kubernetes clusters and VMs in an OpenStack cloud",
        config_file: "/etc/bedplate/clusterd.toml",
        log_format: |config: &Config| config.log,
    };
    program.main(async |config| check(&config).await, serve)
}

async fn serve(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let service = Service::start(config).await?;
    daemon::notify_ready();
    service.run(stop).await
}
