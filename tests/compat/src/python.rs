//! The Python environment of the public clients.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory of this crate, which has the clients' driver scripts.
pub const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the Python interpreter of the clients' environment, which is created at its first use.
#[track_caller]
pub fn interpreter() -> PathBuf {
    tool("requirements.txt", "python")
}

/// Returns a program of the environment that this file pins, which is created at its first use.
#[track_caller]
pub fn tool(requirements: &str, program: &str) -> PathBuf {
    let made = Command::new(Path::new(HOME).join("../real/venv.sh"))
        .arg(Path::new(HOME).join(requirements))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .expect("venv.sh can be started");
    assert!(made.status.success(), "no Python environment: python3 with venv and PyPI are needed");
    let folder = String::from_utf8(made.stdout).expect("venv.sh prints a path");
    Path::new(folder.trim()).join("bin").join(program)
}
