//! Runs `openstack` commands as a user types them.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::python;

/// A running client process that accepts commands.
pub struct CommandLine {
    /// The arguments before every command.
    begins: Vec<String>,
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// Output and exit code of a command.
#[derive(Debug)]
pub struct Answer {
    pub command: String,
    pub code: i64,
    pub stdout: String,
    pub stderr: String,
}

impl CommandLine {
    /// Starts a client of the bare metal service at `url`, without authentication.
    pub fn start(url: &str) -> Self {
        CommandLine::start_within(&[], url)
    }

    /// Starts a client of a whole cloud, with an account of this `clouds.yaml`.
    pub fn in_cloud(clouds_yaml: &Path, cloud: &str) -> Self {
        CommandLine::with_account(clouds_yaml, &["--os-cloud", cloud])
    }

    /// Starts a client of the bare metal service in a cloud's catalogue, with an account of this `clouds.yaml`.
    pub fn baremetal_in_cloud(clouds_yaml: &Path, cloud: &str) -> Self {
        CommandLine::with_account(clouds_yaml, &["--os-cloud", cloud, "baremetal"])
    }

    fn with_account(clouds_yaml: &Path, begins: &[&str]) -> Self {
        let environment = [("OS_CLIENT_CONFIG_FILE", clouds_yaml.as_os_str())];
        CommandLine::spawn(&[], &environment, begins.iter().map(|&word| word.into()).collect())
    }

    /// Starts a client of the container infra service at `url`, without authentication.
    pub fn coe(url: &str) -> Self {
        // This service's endpoint in a catalogue ends with the version.
        CommandLine::spawn(&[], &[], without_authentication(&format!("{url}/v1"), "coe"))
    }

    /// Starts a client of the service at `url` (`baremetal` or `coe`) that has its own passwords.
    pub fn with_password(url: &str, area: &str, user: &str, password: &str) -> Self {
        let begins = ["--os-auth-type", "http_basic", "--os-endpoint", url];
        let who = ["--os-username", user, "--os-password", password, area];
        CommandLine::spawn(&[], &[], begins.iter().chain(&who).map(|&word| word.into()).collect())
    }

    /// Like `start`, through a program that runs another one: `ip netns exec NAME`.
    pub fn start_within(launcher: &[&str], url: &str) -> Self {
        CommandLine::spawn(launcher, &[], without_authentication(url, "baremetal"))
    }

    fn spawn(launcher: &[&str], environment: &[(&str, &OsStr)], begins: Vec<String>) -> Self {
        let mut words: Vec<OsString> = launcher.iter().map(OsString::from).collect();
        words.push(python::interpreter().into());
        words.push(Path::new(python::HOME).join("clients/command_line.py").into());
        let mut process = Command::new(&words[0])
            .args(&words[1..])
            // The environment is cleared, so that no setting of the caller's cloud reaches the test.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/nonexistent")
            .env("SHELL", "/bin/bash")
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the client can be started");
        let commands = process.stdin.take().expect("standard input is a pipe");
        let answers = BufReader::new(process.stdout.take().expect("standard output is a pipe"));
        CommandLine { begins, process, commands, answers }
    }

    /// Runs `openstack [AREA] WORDS`, with any exit code.
    pub fn run(&mut self, words: &[&str]) -> Answer {
        let arguments: Vec<&str> =
            self.begins.iter().map(String::as_str).chain(words.iter().copied()).collect();
        writeln!(self.commands, "{}", json!(arguments)).expect("the client takes commands");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the client answers");
        let answer: Value = serde_json::from_str(&line).expect("the client answers a JSON line");
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        Answer {
            command: arguments.join(" "),
            code: answer["code"].as_i64().expect("an exit code"),
            stdout: text("stdout"),
            stderr: text("stderr"),
        }
    }

    /// Runs a command that must succeed; returns its output as text.
    #[track_caller]
    pub fn done(&mut self, words: &[&str]) -> String {
        let answer = self.run(words);
        assert_eq!(answer.code, 0, "openstack {}\n{}", answer.command, answer.stderr);
        answer.stdout
    }

    /// Runs a command that must succeed; returns its output as JSON.
    #[track_caller]
    pub fn json(&mut self, words: &[&str]) -> Value {
        let words = [words, &["-f", "json"]].concat();
        let output = self.done(&words);
        match serde_json::from_str(&output) {
            Ok(value) => value,
            Err(error) => {
                panic!("openstack {}: {error}\n{output}", words.join(" "))
            }
        }
    }

    /// Runs a command that must fail; returns its error output.
    #[track_caller]
    pub fn refused(&mut self, words: &[&str]) -> String {
        let answer = self.run(words);
        assert_ne!(answer.code, 0, "openstack {} succeeded\n{}", answer.command, answer.stdout);
        answer.stderr
    }
}

fn without_authentication(url: &str, area: &str) -> Vec<String> {
    ["--os-auth-type", "none", "--os-endpoint", url, area].map(str::to_owned).into()
}

impl Drop for CommandLine {
    fn drop(&mut self) {
        // The client may be in a command that waits; no test needs its result any more.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
