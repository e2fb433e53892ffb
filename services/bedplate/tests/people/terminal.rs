//! Tests of `bedplate` on a terminal: a watched list is redrawn in place, progress is redrawn, and Ctrl-C ends the program. tmux provides
//! the terminal.

use std::process::Output;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use tokio::process::Command;

use crate::fixture::{BEDPLATE, Fixture};

/// The longest wait for an expected screen.
const LIMIT: Duration = Duration::from_secs(30);

/// A tmux terminal of 100 columns by 20 lines that runs a shell.
pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    /// Starts the terminal. Returns `None` if tmux is not installed.
    pub(crate) async fn start(given: &Fixture) -> Option<Terminal> {
        if !peers::installed("tmux") {
            peers::skip("terminal", "tmux is not installed");
            return None;
        }
        let socket = given.folder.path().join("tmux").display().to_string();
        let terminal = Terminal { socket };
        let variables = [
            format!("BEDPLATE_URL={}", given.machines),
            format!("BEDPLATE_CLUSTERS_URL={}", given.clusters),
            format!("bedplate={BEDPLATE}"),
        ];
        let mut arguments = vec!["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "20"];
        for variable in &variables {
            arguments.extend(["-e", variable]);
        }
        let folder = given.folder.path().display().to_string();
        arguments.extend(["-c", &folder, "sh"]);
        terminal.tmux(&arguments).await;
        terminal.shows("prompt", |screen| !screen.trim().is_empty()).await;
        Some(terminal)
    }

    async fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").env("TERM", "xterm");
        let output = command.args(["-S", &self.socket]).args(arguments).output().await.unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        output
    }

    pub(crate) async fn types(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]).await;
        self.tmux(&["send-keys", "Enter"]).await;
    }

    async fn interrupts(&self) {
        self.tmux(&["send-keys", "C-c"]).await;
    }

    async fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]).await;
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the screen satisfies the condition, and returns the screen.
    pub(crate) async fn shows(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen().await;
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < LIMIT, "no {what} on the screen:\n{screen}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut command = std::process::Command::new("tmux");
        let _ = command.args(["-S", &self.socket, "kill-server"]).output();
    }
}

#[tokio::test]
async fn a_watched_list_is_redrawn_in_place_until_ctrl_c() {
    let given = Fixture::start().await;
    let Some(terminal) = Terminal::start(&given).await else { return };
    terminal.types("$bedplate node list --watch").await;
    terminal.shows("empty list", |screen| screen.contains("Ctrl-C to stop")).await;
    given.node("n1").await;
    terminal.shows("node", |screen| screen.contains("n1")).await;
    given.node("n2").await;
    let screen = terminal.shows("second node", |screen| screen.contains("n2")).await;
    assert_eq!(screen.matches("Maintenance").count(), 1, "it is one list:\n{screen}");
    for number in 3..=40 {
        given.node(&format!("n{number}")).await;
    }
    // The list is cut off at the height of the terminal.
    let screen = terminal.shows("the rest", |screen| screen.contains("more lines")).await;
    assert!(screen.starts_with(" Name"), "{screen}");
    terminal.interrupts().await;
    terminal.types("echo status $?").await;
    terminal.shows("the end", |screen| screen.contains("status 130")).await;
}

#[tokio::test]
async fn progress_is_redrawn_on_one_line_for_each_machine() {
    let given = Fixture::start().await;
    let Some(terminal) = Terminal::start(&given).await else { return };
    // A BMC that accepts connections and never answers.
    let bmc = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = bmc.local_addr().unwrap();
    let rack = format!(
        "rack: r1\nmachines:\n- name: r1u1\n  mac: 52:54:00:de:00:01\n  bmc: {{type: redfish, address: 'https://{address}', user: u, password_file: p}}\n"
    );
    std::fs::write(given.folder.path().join("p"), "secret\n").unwrap();
    std::fs::write(given.folder.path().join("r1.yaml"), rack).unwrap();
    given.run(&["rack", "enroll", "r1.yaml"]).await.done();
    terminal
        .types("clear; $bedplate rack up r1 --reach inspected --timeout 4s; echo status $?")
        .await;
    let is_over = |screen: &str| screen.contains("status 5");
    let screen = terminal.shows("the end", is_over).await;
    // The machine has exactly one line below the command, however often the progress was drawn.
    let lines: Vec<&str> = screen.lines().filter(|line| line.starts_with("r1u1")).collect();
    assert_eq!(lines.len(), 1, "{screen}");
    assert!(lines[0].contains("verifying"), "{screen}");
    assert!(screen.contains("timed out after 4 s waiting for rack r1"), "{screen}");
}

#[tokio::test]
async fn a_console_on_a_terminal_ends_only_with_tilde_and_full_stop() {
    let given = Fixture::start().await;
    let Some(terminal) = Terminal::start(&given).await else { return };
    let body = json!({"name": "n1", "driver": "fake-hardware", "console_interface": "fake"});
    given.send_json(Method::POST, &format!("{}/v1/nodes", given.machines), body).await;
    terminal.types("$bedplate node console n1 --enable; echo status $?").await;
    terminal.shows("console", |screen| screen.contains("it echoes what you type.")).await;
    // Without a console, Ctrl-C would end the program.
    terminal.interrupts().await;
    terminal.types("hello").await;
    let screen = terminal.shows("echo", |screen| screen.contains("hello")).await;
    assert!(!screen.contains("status 130"), "{screen}");
    terminal.tmux(&["send-keys", "-l", "~."]).await;
    terminal.shows("the end", |screen| screen.contains("status 0")).await;
    // The terminal has its old mode again: typed characters are shown, and Enter ends a line.
    terminal.types("echo again $((1 + 1))").await;
    terminal.shows("the shell", |screen| screen.contains("again 2")).await;
}
