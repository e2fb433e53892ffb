//! The scripts of the tests end the process that a pid file records, and no later process with the same process id.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use tempfile::TempDir;
use tidy::root;

/// A process that leads a process group, as each test under nextest does. It ends with its input.
struct Process {
    pid: u32,
    input: ChildStdin,
    /// Waits for the process, because the scripts would wait for a process that its parent has not waited for.
    end: JoinHandle<ExitStatus>,
}

impl Process {
    fn start() -> Process {
        let mut cat = Command::new("cat");
        let mut cat: Child = cat.stdin(Stdio::piped()).process_group(0).spawn().expect("cat runs");
        let (pid, input) = (cat.id(), cat.stdin.take().expect("it has an input"));
        let end = thread::spawn(move || cat.wait().expect("it ends"));
        Process { pid, input, end }
    }

    /// Field 22 of proc_pid_stat(5).
    fn start_time(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).expect("it runs");
        let (_, fields) = stat.rsplit_once(')').expect("the name is in parentheses");
        fields.split_whitespace().nth(22 - 3).expect("a start time").parse().expect("a number")
    }

    /// Returns the signal that ended the process. A process without a signal ends now.
    fn ended_by(self) -> Option<i32> {
        drop(self.input);
        self.end.join().expect("the thread does not panic").signal()
    }
}

/// A way to end what a pid file records.
struct Ending {
    script: &'static str,
    pid_file: &'static str,
    /// Runs in the folder with the pid file. `$REAL` is the folder of the scripts.
    command: &'static str,
}

const ENDINGS: [Ending; 4] = [
    Ending { script: "host.sh", pid_file: "pid", command: r#""$REAL/host.sh" down ."# },
    Ending {
        script: "machine.sh",
        pid_file: "pid",
        command: r#"echo no-such-namespace >namespace; "$REAL/machines/machine.sh" crash ."#,
    },
    Ending {
        script: "rack.sh",
        pid_file: "racks/rack/vbmcd.pid",
        command: r#"BEDPLATE_CACHE=$PWD BEDPLATE_RACKS=racks RACK_NAME=rack "$REAL/rack.sh" down"#,
    },
    Ending {
        script: "daemons.sh",
        pid_file: "nova-api.pid",
        command: r#"RUN=$PWD; . "$REAL/processes.sh"; . "$REAL/openstack/daemons.sh"; stop nova-api"#,
    },
];

/// Runs a command in the folder. The scripts take its caller for root.
fn run(folder: &TempDir, command: &str) -> String {
    let id = folder.path().join("id");
    fs::write(&id, "#!/bin/sh\necho 0\n").expect("the program is written");
    fs::set_permissions(&id, fs::Permissions::from_mode(0o755)).expect("it can be run");
    let path = std::env::var("PATH").expect("a PATH");
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", command])
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .env("REAL", root().join("tests/real"))
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the signal that a process gets if the pid file has this content.
fn signal(ending: &Ending, content: impl Fn(&Process) -> String) -> Option<i32> {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start();
    let file = folder.path().join(ending.pid_file);
    fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).expect("a folder");
    fs::write(file, content(&process)).expect("the pid file is written");
    run(&folder, ending.command);
    process.ended_by()
}

#[test]
fn a_recorded_process_is_ended() {
    for ending in &ENDINGS {
        let signal =
            signal(ending, |process| format!("{} {}\n", process.pid, process.start_time()));
        assert!(signal.is_some(), "{} does not end a process", ending.script);
    }
}

#[test]
fn a_later_process_with_the_same_id_is_not_ended() {
    for ending in &ENDINGS {
        let earlier = |process: &Process| format!("{} {}\n", process.pid, process.start_time() - 1);
        assert_eq!(signal(ending, earlier), None, "{} ends another process", ending.script);
        // Without a start time, nothing tells which process is meant.
        let without_time = |process: &Process| format!("{}\n", process.pid);
        assert_eq!(signal(ending, without_time), None, "{} ends any process", ending.script);
    }
}

#[test]
fn a_process_is_recorded_with_its_start_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start();
    let (pid, start) = (process.pid, process.start_time());
    let recorded = run(
        &folder,
        &format!(
            r#". "$REAL/processes.sh"; record_process {pid} pid; cat pid; recorded_process pid"#
        ),
    );
    assert_eq!(recorded, format!("{pid} {start}\n{pid}\n"));
    assert_eq!(process.ended_by(), None);
    let ended = run(
        &folder,
        r#". "$REAL/processes.sh"; is_alive pid || echo ended; signal_group KILL pid"#,
    );
    assert_eq!(ended, "ended\n");
}

#[test]
fn the_machine_room_tells_a_recorded_process_from_a_later_one() {
    if !peers::installed("python3") {
        return peers::skip("the machine room", "python3 is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start();
    let (pid, start) = (process.pid, process.start_time());
    for (content, alive) in [
        (format!("{pid} {start}\n"), true),
        (format!("{pid} {}\n", start - 1), false),
        (format!("{pid}\n"), false),
    ] {
        fs::write(folder.path().join("pid"), &content).expect("the pid file is written");
        let command = r#"PYTHONPATH=$REAL/machines python3 -B -c 'from servers import is_alive; print(is_alive("pid"))'"#;
        assert_eq!(run(&folder, command), if alive { "True\n" } else { "False\n" }, "{content}");
    }
    assert_eq!(process.ended_by(), None);
}
