//! Calls to the agents on the machines.

mod raid;
mod steps;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_protocol::{Command, CommandList, CommandRequest, CommandStatus, Progress, name};
use baremetal_core::{Boot, CommandSeen, NodeUuid, Problem, Reason};
use reqwest::Client;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ParsedCertificate;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use spans::{Span, SpanKind, TraceContext};

use crate::agent_command::CommandParams;
use crate::problem::chain;

/// The maximum size of an agent's answer in bytes. The machine behind an agent is not trusted.
const MAX_ANSWER: usize = 4 << 20;

/// How long an agent may take for an answer if its machine is probably off.
const SOON: Duration = Duration::from_secs(5);

/// The HTTP clients for agents, one per agent, because every agent has its own certificate.
#[derive(Default)]
pub(crate) struct Agents {
    clients: Mutex<HashMap<NodeUuid, (String, Client)>>,
}

/// Why a call to an agent failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("the agent has not reported its address")]
    NoCallback,
    #[error("cannot call the agent at {url}")]
    Unreachable { url: String, source: reqwest::Error },
    #[error("the agent at {url} answered {status}: {answer}")]
    Refused { url: String, status: u16, answer: String },
    #[error("cannot read the answer of the agent at {url}: {reason}")]
    Malformed { url: String, reason: String },
}

impl AgentError {
    /// Returns whether the agent answered, but not with the expected result.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            AgentError::Refused { .. } | AgentError::Malformed { .. } => true,
            AgentError::Unreachable { .. } | AgentError::NoCallback => false,
        }
    }

    pub(crate) fn problem(&self) -> Problem {
        let transient = match self {
            AgentError::Unreachable { .. } => true,
            // The agent is busy or starting.
            AgentError::Refused { status, .. } => *status == 409 || *status >= 500,
            AgentError::NoCallback | AgentError::Malformed { .. } => false,
        };
        Problem { reason: Reason::AgentLost, cause: chain(self), transient }
    }
}

impl Agents {
    /// Returns the commands that the agent received since it started, oldest first.
    pub(crate) async fn commands(
        &self,
        boot: &Boot,
        token: &str,
    ) -> Result<Vec<Command>, AgentError> {
        let (client, url) = self.client(boot)?;
        let request = client.get(format!("{url}/v1/commands/?agent_token={token}"));
        let list: CommandList = traced("agent: list commands", request, &url).await?;
        Ok(list.commands)
    }

    /// Returns whether the agent answers soon, with a list of its commands or an error. A machine that is off does not even refuse a
    /// connection.
    pub(crate) async fn answers(&self, boot: &Boot, token: &str) -> bool {
        let Ok((client, url)) = self.client(boot) else { return false };
        let request = client.get(format!("{url}/v1/commands/?agent_token={token}"));
        let request = request.timeout(SOON);
        let answered: Result<CommandList, AgentError> =
            traced("agent: list commands", request, &url).await;
        answered.err().is_none_or(|error| error.is_answer())
    }

    /// Gives the agent a command, without waiting for the command's end. `version` is that of the node's record with the intent: our agent
    /// refuses a command that arrives after one with a later version. ironic-python-agent ignores the version.
    pub(crate) async fn give(
        &self,
        boot: &Boot,
        token: &str,
        body: &CommandRequest<CommandParams>,
        version: i64,
    ) -> Result<Command, AgentError> {
        let (client, url) = self.client(boot)?;
        let query = format!("wait=false&agent_token={token}&record_version={version}");
        let request = client.post(format!("{url}/v1/commands/?{query}"));
        traced(format!("agent: {}", body.name), request.json(body), &url).await
    }

    /// Drops the client of an agent that is no longer needed.
    pub(crate) fn forget(&self, node: NodeUuid) {
        self.clients().remove(&node);
    }

    fn client(&self, boot: &Boot) -> Result<(Client, String), AgentError> {
        let (Some(url), Some(pem)) = (&boot.callback_url, &boot.certificate) else {
            return Err(AgentError::NoCallback);
        };
        let url = url.trim_end_matches('/').to_owned();
        let known = self.clients().get(&boot.node).filter(|(known, _)| known == pem).cloned();
        if let Some((_, client)) = known {
            return Ok((client, url));
        }
        // Made without the lock: the calls to all other agents would wait.
        let unreadable = || AgentError::Malformed {
            url: url.clone(),
            reason: "its certificate is not readable".to_owned(),
        };
        let certificate = certificate(pem).ok_or_else(unreadable)?;
        let unusable = |source| AgentError::Unreachable { url: url.clone(), source };
        let client = pinned(&certificate).map_err(unusable)?;
        self.clients().insert(boot.node, (pem.clone(), client.clone()));
        Ok((client, url))
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<NodeUuid, (String, Client)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether `pem` is exactly one readable certificate.
pub(crate) fn is_certificate(pem: &str) -> bool {
    certificate(pem).is_some()
}

/// Reads the only certificate of `pem`.
fn certificate(pem: &str) -> Option<CertificateDer<'static>> {
    let mut all = CertificateDer::pem_slice_iter(pem.as_bytes());
    let only = all.next()?.ok()?;
    let is_readable = ParsedCertificate::try_from(&only).is_ok();
    (is_readable && all.next().is_none()).then_some(only)
}

/// Makes a client that trusts this certificate and nothing else. The certificate is compared and not verified, because ironic-python-agent
/// signs its own by an algorithm that ring does not know: ECDSA on P-384 with SHA-512.
fn pinned(certificate: &CertificateDer<'_>) -> Result<Client, reqwest::Error> {
    Client::builder()
        .tls_backend_preconfigured(redfish::pinned_tls(Sha256::digest(certificate).into()))
        .https_only(true)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(1)
        .build()
}

/// Sends a request as [`answer`] does, in a span whose context the agent gets.
async fn traced<T: DeserializeOwned>(
    name: impl Into<Cow<'static, str>>,
    mut request: reqwest::RequestBuilder,
    url: &str,
) -> Result<T, AgentError> {
    let mut span = Span::child(SpanKind::Client, || name);
    for (name, value) in span.context().into_iter().flat_map(TraceContext::headers) {
        request = request.header(name, value);
    }
    let answered = answer(request, url).await;
    if let Err(error) = &answered {
        span.fail(match error {
            AgentError::NoCallback => "no_callback",
            AgentError::Unreachable { .. } => "unreachable",
            AgentError::Refused { .. } => "refused",
            AgentError::Malformed { .. } => "malformed",
        });
    }
    answered
}

/// Sends a request and reads the answer up to its maximum size.
async fn answer<T: DeserializeOwned>(
    request: reqwest::RequestBuilder,
    url: &str,
) -> Result<T, AgentError> {
    // The query contains the agent's token, which must not appear in a message.
    let unreachable = |source: reqwest::Error| AgentError::Unreachable {
        url: url.to_owned(),
        source: source.without_url(),
    };
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(AgentError::Malformed {
                url: url.to_owned(),
                reason: "too long".to_owned(),
            });
        }
        body.extend_from_slice(&chunk);
    }
    if !status.is_success() {
        let answer =
            String::from_utf8_lossy(&body).chars().filter(|c| !c.is_control()).take(300).collect();
        return Err(AgentError::Refused { url: url.to_owned(), status: status.as_u16(), answer });
    }
    let malformed = |error: serde_json::Error| AgentError::Malformed {
        url: url.to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_slice(&body).map_err(malformed)
}

/// Converts a command into the form that a plan needs.
pub(crate) fn seen(command: &Command) -> CommandSeen {
    match command.command_status {
        CommandStatus::Running => CommandSeen::Running(command.command_progress),
        CommandStatus::Succeeded if is_list_of_steps(&command.command_name) => {
            steps::listed(command.command_result.as_ref())
        }
        CommandStatus::Succeeded => raid::built(command.command_result.as_ref()),
        CommandStatus::Failed | CommandStatus::CleanVersionMismatch => {
            let why = command.command_error.as_ref().map(|error| {
                if error.details.is_empty() { error.message.clone() } else { error.details.clone() }
            });
            let why = why.unwrap_or_else(|| "the agent gave no reason".to_owned());
            CommandSeen::Failed(why.chars().filter(|c| !c.is_control()).take(2000).collect())
        }
    }
}

/// Returns whether a command of this name lists steps. The agent reports names without the extension.
fn is_list_of_steps(command: &str) -> bool {
    let lists = [name::GET_CLEAN_STEPS, name::GET_DEPLOY_STEPS, name::GET_SERVICE_STEPS];
    lists.into_iter().any(|list| list.rsplit('.').next() == Some(command))
}

/// Returns whether each of these commands succeeded, so that the agent takes another.
pub(crate) fn are_done(commands: &[Command]) -> bool {
    commands.iter().all(|command| command.command_status == CommandStatus::Succeeded)
}

/// Returns the ids of the root partition and of the EFI system partition that the agent reported for a partition image; `None` for the image
/// of a whole disk, whose disk ironic-python-agent reports instead of partitions.
pub(crate) fn partition_ids(commands: &[Command]) -> Option<(String, Option<String>)> {
    let short = name::GET_PARTITION_UUIDS.rsplit('.').next();
    let asked = commands.iter().rfind(|it| Some(it.command_name.as_str()) == short)?;
    let found = asked.command_result.as_ref()?;
    found.get("partitions").filter(|partitions| partitions.is_object())?;
    // The machine behind an agent is not trusted, and gets the text back.
    let id = |key| Some(found.get(key)?.as_str()?.chars().take(64).collect::<String>());
    Some((id("root uuid")?, id("efi system partition uuid")))
}

/// Returns the progress of the running command, if there is one.
pub(crate) fn progress(commands: &[Command]) -> Option<Progress> {
    let running =
        commands.iter().rev().find(|command| command.command_status == CommandStatus::Running);
    running.and_then(|command| command.command_progress)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baremetal_core::WorkUuid;
    use jiff::Timestamp;
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use spans::KeptSpans;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[test]
    fn the_partitions_of_ironic_python_agent_are_read() {
        let command = |name: &str, result: serde_json::Value| -> Command {
            serde_json::from_value(serde_json::json!({
                "id": "1", "command_name": name, "command_status": "SUCCEEDED", "command_result": result,
            }))
            .unwrap()
        };
        let asked = |result| partition_ids(&[command("get_partition_uuids", result)]);
        let partitions = serde_json::json!({"root": "/dev/vda2"});
        let ids = asked(serde_json::json!({
            "partitions": partitions, "root uuid": "r", "efi system partition uuid": "e",
        }));
        assert_eq!(ids, Some(("r".to_owned(), Some("e".to_owned()))));
        let bios = asked(serde_json::json!({
            "partitions": partitions, "root uuid": "r", "efi system partition uuid": null,
        }));
        assert_eq!(bios, Some(("r".to_owned(), None)));
        assert_eq!(asked(serde_json::json!({"root uuid": "0x1a2b3c4d"})), None);
        assert_eq!(asked(serde_json::json!({})), None);
        assert_eq!(partition_ids(&[command("sync", serde_json::Value::Null)]), None);
    }

    /// A certificate as ironic-python-agent 13 makes its own: `ecdsa-with-SHA512`, on P-384.
    const IPA: &str = include_str!("agents/ironic-python-agent.pem");
    const IPA_KEY: &str = include_str!("agents/ironic-python-agent.key");

    /// An agent with the certificate of ironic-python-agent, which has received no command.
    async fn agent() -> String {
        agent_that_tells(mpsc::unbounded_channel().0).await
    }

    /// As [`agent`], with a channel for the heads of its requests.
    async fn agent_that_tells(heads: mpsc::UnboundedSender<String>) -> String {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![certificate(IPA).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(IPA_KEY.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let tls = TlsAcceptor::from(Arc::new(config));
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", tcp.local_addr().unwrap());
        tokio::spawn(async move {
            loop {
                let (stream, _) = tcp.accept().await.unwrap();
                let Ok(mut stream) = tls.accept(stream).await else { continue };
                let mut head = [0; 4096];
                let length = stream.read(&mut head).await.unwrap_or(0);
                let _ = heads.send(String::from_utf8_lossy(&head[..length]).into_owned());
                let body = r#"{"commands": []}"#;
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    fn boot(url: &str, pem: &str) -> Boot {
        Boot {
            node: NodeUuid::new_v4(),
            work: WorkUuid::nil(),
            nonce: String::new(),
            script_at: Some(Timestamp::UNIX_EPOCH),
            inventory_at: None,
            callback_url: Some(url.to_owned()),
            certificate: Some(pem.to_owned()),
            agent_version: None,
            seen_at: None,
        }
    }

    #[tokio::test]
    async fn the_certificate_of_ironic_python_agent_is_accepted() {
        let (agents, url) = (Agents::default(), agent().await);
        assert_eq!(agents.commands(&boot(&url, IPA), "t").await.unwrap().len(), 0);
    }

    #[tokio::test]
    async fn an_agent_gets_the_trace_of_the_work() {
        let (heads, mut seen) = mpsc::unbounded_channel();
        let (agents, url) = (Agents::default(), agent_that_tells(heads).await);
        let kept = KeptSpans::default();
        let turn = kept.tracer(1.0).begin(None, SpanKind::Consumer, || "turn");
        turn.run(agents.commands(&boot(&url, IPA), "t")).await.unwrap();
        let call = kept.take_all().pop().unwrap();
        let head = seen.recv().await.unwrap();
        assert!(
            head.contains(&format!("traceparent: {}\r\n", call.context.traceparent())),
            "{head}"
        );
        assert_eq!((&*call.name, call.kind), ("agent: list commands", SpanKind::Client));
        assert!(!format!("{call:?}").contains(&url), "{call:?}");
    }

    #[tokio::test]
    async fn an_agent_gets_the_version_of_the_record_with_a_command() {
        let (heads, mut seen) = mpsc::unbounded_channel();
        let (agents, url) = (Agents::default(), agent_that_tells(heads).await);
        let sync = CommandRequest { name: name::SYNC.to_owned(), params: CommandParams::default() };
        // The agent of this test answers each request with its list of commands.
        agents.give(&boot(&url, IPA), "t", &sync, 7).await.unwrap_err();
        let head = seen.recv().await.unwrap();
        let line = "POST /v1/commands/?wait=false&agent_token=t&record_version=7 HTTP/1.1\r\n";
        assert!(head.starts_with(line), "{head}");
    }

    #[tokio::test]
    async fn another_certificate_is_refused_by_its_fingerprint() {
        let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (agents, url) = (Agents::default(), agent().await);
        let refused = agents.commands(&boot(&url, &other.cert.pem()), "t").await.unwrap_err();
        let pin = hex::encode(Sha256::digest(other.cert.der()));
        let cause = refused.problem().cause;
        assert!(cause.contains(&format!("but {pin} is pinned")), "{cause}");
    }

    #[test]
    fn only_one_certificate_can_be_pinned() {
        assert!(is_certificate(IPA));
        for text in ["", "x", IPA_KEY, &format!("{IPA}{IPA}")] {
            assert!(!is_certificate(text), "{text}");
        }
        let line = IPA.lines().nth(1).unwrap();
        assert!(!is_certificate(&IPA.replace(line, &line.replace('M', "A"))));
    }
}
