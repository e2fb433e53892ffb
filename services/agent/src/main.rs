//! `ramdisk-agent`: reports the machine it runs on, and changes its disks as the conductor asks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use agent::agent::{Options, run};
use agent::logs::Logs;
use agent::machine::Ending;
use agent::root::Root;
use clap::Parser;
use tracing::error;

/// Reports the machine it runs on, and does to its disks what the conductor asks.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Directory with /sys, /proc and /dev; another directory than / is an emulated machine
    #[arg(long, default_value = "/")]
    root: PathBuf,
    /// Address and port of the agent's API [default: the local address from which the conductor is reached, port 9999]
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// File with the kernel's command line [default: /proc/cmdline below the root]
    #[arg(long)]
    cmdline: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let logs = Logs::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let options = Options {
        root: Root::new(arguments.root),
        listen: arguments.listen,
        cmdline: arguments.cmdline,
        logs,
    };
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(options)),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(Ending::PowerOff) => ExitCode::SUCCESS,
        Ok(Ending::Reboot) => ExitCode::from(64),
        Ok(Ending::Rescue) => ExitCode::from(65),
        Err(error) => {
            error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
