//! Keeping what is about to be deleted, where somebody wants it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing_subscriber::EnvFilter;

/// Of one file no more is kept.
const LARGEST: u64 = 16 << 20;
/// Of what one process leaves no more is kept.
const MOST: u64 = 512 << 20;
/// A secret that was made is no shorter.
const SHORTEST: usize = 10;
/// Keys are where secrets may be.
const KEYS: [&str; 4] = ["seal.keys", "service.key", "nodes.authority", "api.key"];

static KEPT: AtomicU64 = AtomicU64::new(0);

fn folder() -> Option<PathBuf> {
    std::env::var_os("BEDPLATE_LEFT").map(PathBuf::from).filter(|it| it.is_absolute())
}

/// Keeps what is in a folder, under a name that is made unlike others'; nothing, where nobody wants it.
pub fn keep(from: &Path, name: &str) {
    let Some(folder) = folder() else { return };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let to = folder.join(format!("{name}-{}-{number}", std::process::id()));
    // What has to be found is planted in what is kept, and in what is printed.
    let planted = crate::control::planted();
    let kept = copy(from, &to).and_then(|()| fs::write(to.join("planted"), &planted));
    match kept {
        Ok(()) => eprintln!("kept what {name} left, with {planted}"),
        Err(error) => eprintln!("what {name} left cannot be kept: {error}"),
    }
}

/// Keeps the folder that a SQLite database is in, by its URL.
pub fn keep_database(url: &str, name: &str) {
    let file = url.strip_prefix("sqlite://").map(Path::new);
    if let Some(folder) = file.filter(|it| it.is_absolute()).and_then(Path::parent) {
        keep(folder, name);
    }
}

/// Keeps a text.
pub fn note(name: &str, text: &[u8]) {
    let Some(folder) = folder() else { return };
    let written = fs::create_dir_all(&folder).and_then(|()| {
        let mut file = File::options().append(true).create(true).open(folder.join(name))?;
        file.write_all(&[text, b"\n"].concat())
    });
    if let Err(error) = written {
        eprintln!("{name} cannot be kept: {error}");
    }
}

/// Has secrets looked for that nobody chose beforehand: tokens, say. They are written down beside what is kept, not in it.
pub fn know(secrets: impl IntoIterator<Item = String>) {
    let Some(folder) = folder() else { return };
    // A word that short may stand anywhere.
    let long = secrets.into_iter().filter(|it| it.len() >= SHORTEST && !it.contains('\n'));
    let lines: String = long.map(|secret| secret + "\n").collect();
    let file = File::options().append(true).create(true).open(beside(&folder));
    let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
    if let Err(error) = written {
        eprintln!("secrets cannot be written down: {error}");
    }
}

/// The secrets that were made while that was kept which is in this folder.
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

/// Keeps what services in this process log, at level `debug`.
pub fn listen() {
    let Some(folder) = folder() else { return };
    let name = format!("log-{}", std::process::id());
    let file = fs::create_dir_all(&folder)
        .and_then(|()| File::options().append(true).create(true).open(folder.join(name)));
    let Ok(file) = file else { return };
    // An emulator says much, and is given the secrets to keep.
    let services = "debug,openstack_emulator=off,machine_emulator=off,bmc_emulator=off";
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::new(services));
    // Another test of this process may listen already.
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
            if size > LARGEST || KEPT.fetch_add(size, Ordering::Relaxed) > MOST {
                eprintln!("too much to keep: {} ({size} bytes)", entry.path().display());
                continue;
            }
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
