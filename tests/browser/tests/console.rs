//! Tests of the console in a browser: of `bedplate dev`, and the screen of a QEMU machine.
#![expect(clippy::unwrap_used, reason = "an unwrap that fails fails the test")]

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const HOME: &str = env!("CARGO_MANIFEST_DIR");

/// `bedplate dev` and its child processes, until the value is dropped.
struct Dev(Child);

impl Drop for Dev {
    fn drop(&mut self) {
        // This signal makes `bedplate dev` end its children; a kill would leave them running.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Returns the path of a program of this workspace, built with the same profile.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(name);
    assert!(path.is_file(), "{} is not there: run `cargo build` first", path.display());
    path
}

/// Returns the Python interpreter of the environment with Playwright, which is created at its first use.
fn python() -> PathBuf {
    let made = Command::new(Path::new(HOME).join("../real/venv.sh"))
        .arg(Path::new(HOME).join("requirements.txt"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(made.status.success(), "no Python environment: python3 with venv and PyPI are needed");
    Path::new(String::from_utf8(made.stdout).unwrap().trim()).join("bin/python")
}

#[test]
fn every_page_and_wizard_works_in_a_browser() {
    if !peers::installed("chromium") {
        return peers::skip("browser", "chromium is not installed");
    }
    let python = python();
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(HOME).join("../../deploy/dev");
    let mut child = Command::new(program("bedplate"))
        .args(["dev", "--from"])
        .arg(from)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let _dev = Dev(child);
    let mut reported = String::new();
    while !reported.contains("In a browser: http://127.0.0.1:9510/") {
        let read = output.read_line(&mut reported).unwrap();
        assert!(read > 0, "bedplate dev ended: {reported}");
    }
    // `bedplate dev` continues to print, and must not block on a full pipe.
    std::thread::spawn(move || std::io::copy(&mut output.by_ref(), &mut std::io::sink()));
    let looked = Command::new(python)
        .arg(Path::new(HOME).join("browser/console.py"))
        .arg("-v")
        .env("CONSOLE", "http://127.0.0.1:9510")
        .env("STATE", folder.path().join(".state/dev"))
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(looked.success(), "the browser's tests failed");
}

/// The pages of Debian's noVNC. noVNC is not a part of Bedplate.
const NOVNC: &str = "/usr/share/novnc";
const QEMU: &str = "qemu-system-x86_64";
/// VNC Authentication uses eight bytes.
const PASSWORD: &str = "scr33n-x";

/// A program that ends with this value.
struct Program(Child);

impl Program {
    /// Starts a program that listens on `port`, and waits until it does.
    fn start(mut command: Command, port: u16) -> Program {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "{command:?} ended");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Program(child)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_screen_of_a_machine_is_shown_in_a_browser() {
    for (program, package) in [("chromium", "chromium"), (QEMU, "qemu-system-x86")] {
        if !peers::installed(program) {
            return peers::skip(program, format!("it is not installed (Debian's {package})"));
        }
    }
    if !Path::new(NOVNC).is_dir() {
        return peers::skip("screen", "noVNC is not installed (Debian's package novnc)");
    }
    let folder = tempfile::tempdir().unwrap();
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (api, console, pages) = (free(), free(), free());
    // Display N is port 5900 + N.
    let vnc = std::iter::repeat_with(free).find(|port| *port > 5900).unwrap();
    let mut command = Command::new(QEMU);
    command.args(["-M", "pc", "-m", "32", "-nodefaults", "-vga", "std", "-accel", "tcg"]);
    // The firmware waits for a key.
    command.args(["-boot", "menu=on,splash-time=60000"]);
    command.args(["-object", &format!("secret,id=vnc,data={PASSWORD}")]);
    command.args(["-vnc", &format!("127.0.0.1:{},password-secret=vnc", vnc - 5900)]);
    let _qemu = Program::start(command, vnc);
    let configured = |name: &str, text: String, port| {
        let file = folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(program(name));
        command.arg("--config").arg(file);
        Program::start(command, port)
    };
    let state = folder.path().join("state");
    let text = format!(
        "state_dir = {state:?}\n[api]\nlisten = '127.0.0.1:{api}'\n[bmc]\nnetworks = ['127.0.0.0/8']\n\
         [consoles]\nnovnc_url = 'http://127.0.0.1:{pages}/vnc.html'\n"
    );
    let _baremetald = configured("baremetald", text, api);
    let text = format!(
        "listen = '127.0.0.1:{console}'\nauth = 'none'\nbaremetal = 'http://127.0.0.1:{api}'\n"
    );
    let _consoled = configured("consoled", text, console);
    let mut command = Command::new(python());
    command
        .arg(Path::new(HOME).join("browser/screen.py"))
        .arg("-v")
        .env("API", format!("http://127.0.0.1:{api}"))
        .env("CONSOLE", format!("http://127.0.0.1:{console}"))
        .env("VNC_PORT", vnc.to_string())
        .env("VNC_PASSWORD", PASSWORD)
        .env("NOVNC", NOVNC)
        .env("NOVNC_PORT", pages.to_string())
        .stdin(Stdio::null());
    assert!(command.status().unwrap().success(), "the browser's tests failed");
}
