//! Keeps files, logs and texts of tests for the search, before they are deleted.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing_subscriber::EnvFilter;

/// Larger files are not kept.
const LARGEST: u64 = 16 << 20;
/// The most bytes kept for one process.
const MAX_BYTES_PER_PROCESS: u64 = 512 << 20;
/// Shorter generated secrets are not searched for.
const SHORTEST: usize = 10;
/// Key files are the proper place for secrets, so they are not kept.
const KEYS: [&str; 4] = ["seal.keys", "service.key", "nodes.authority", "api.key"];

static KEPT: AtomicU64 = AtomicU64::new(0);

fn folder() -> Option<PathBuf> {
    std::env::var_os("BEDPLATE_LEFT").map(PathBuf::from).filter(|it| it.is_absolute())
}

/// Copies a folder, under a unique name, to the folder that `BEDPLATE_LEFT` names; does nothing if the variable is not set.
pub fn keep(from: &Path, name: &str) {
    let Some(folder) = folder() else { return };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let to = folder.join(format!("{name}-{}-{number}", std::process::id()));
    // The control texts are planted in the copy and in the output.
    let planted = crate::control::planted();
    let kept = copy(from, &to).and_then(|()| fs::write(to.join("planted"), &planted));
    match kept {
        Ok(()) => eprintln!("kept the files of {name}, with the control texts {planted}"),
        Err(error) => eprintln!("cannot keep the files of {name}: {error}"),
    }
}

/// Copies the folder of the SQLite database at `url`.
pub fn keep_database(url: &str, name: &str) {
    let file = url.strip_prefix("sqlite://").map(Path::new);
    if let Some(folder) = file.filter(|it| it.is_absolute()).and_then(Path::parent) {
        keep(folder, name);
    }
}

/// Appends a text to a file in the folder that `BEDPLATE_LEFT` names.
pub fn keep_text(name: &str, text: &[u8]) {
    let Some(folder) = folder() else { return };
    let written = fs::create_dir_all(&folder).and_then(|()| {
        let mut file = File::options().append(true).create(true).open(folder.join(name))?;
        file.write_all(&[text, b"\n"].concat())
    });
    if let Err(error) = written {
        eprintln!("cannot keep {name}: {error}");
    }
}

/// Adds generated secrets, such as tokens, to the search. The secrets are stored next to the kept files, not among them.
pub fn add_secrets(secrets: impl IntoIterator<Item = String>) {
    let Some(folder) = folder() else { return };
    // A shorter word could occur anywhere by chance.
    let long = secrets.into_iter().filter(|it| it.len() >= SHORTEST && !it.contains('\n'));
    let lines: String = long.map(|secret| secret + "\n").collect();
    let file = File::options().append(true).create(true).open(beside(&folder));
    let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        eprintln!("cannot store the generated secrets: {error}");
    }
}

/// The generated secrets that belong to the kept files in `folder`.
pub fn known(folder: &Path) -> std::io::Result<BTreeSet<String>> {
    match fs::read_to_string(beside(folder)) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

fn beside(folder: &Path) -> PathBuf {
    let mut name = OsString::from(folder);
    name.push(".secrets");
    name.into()
}

/// Keeps the logs of services in this process, at level `debug`.
pub fn keep_logs() {
    let Some(folder) = folder() else { return };
    let name = format!("log-{}", std::process::id());
    let file = fs::create_dir_all(&folder)
        .and_then(|()| File::options().append(true).create(true).open(folder.join(name)));
    let Ok(file) = file else { return };
    // Emulators log a lot, and know the secrets legitimately.
    let services = "debug,openstack_emulator=off,machine_emulator=off,bmc_emulator=off";
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(services));
    // Fails if another test in this process has installed a subscriber already, which is fine.
    let _ = log.with_ansi(false).with_writer(Mutex::new(file)).try_init();
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &to.join(name))?;
        } else if kind.is_file() && !KEYS.iter().any(|key| name == *key) {
            let size = entry.metadata()?.len();
            if size > LARGEST || KEPT.fetch_add(size, Ordering::Relaxed) > MAX_BYTES_PER_PROCESS {
                eprintln!("too much to keep: {} ({size} bytes)", entry.path().display());
                continue;
            }
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
