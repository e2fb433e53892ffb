//! The program `baremetald`.

use std::process::ExitCode;

use baremetal::{Config, Service, check};
use daemon::Program;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let program = Program {
        name: "baremetald",
        about: "The Bare Metal service: enrolls, inspects, cleans and installs machines",
        config_file: "/etc/bedplate/baremetald.toml",
        log_format: |config: &Config| config.log,
    };
    program.main(async |config| check(&config).await, serve)
}

async fn serve(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let service = Service::start(config).await?;
    daemon::notify_ready();
    service.run(stop).await
}
