//! A small cloud for tests: a Keystone that counts its tokens, and answers that the test chooses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openstack::{CloudConfig, RetryPolicy, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    /// `GET /path?query`.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The cloud's reaction to a request.
pub(crate) enum Reply {
    /// An answer with status, headers and body.
    Full(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// The request is executed, and the connection is closed without an answer.
    Lost,
    /// No answer, ever.
    Silence,
    /// A body without an end.
    Endless,
}

impl Reply {
    pub(crate) fn json(status: u16, body: Value) -> Reply {
        Reply::Full(status, Vec::new(), body.to_string().into_bytes())
    }

    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Reply {
        match self {
            Reply::Full(status, mut headers, body) => {
                headers.push((name, value.into()));
                Reply::Full(status, headers, body)
            }
            Reply::Lost | Reply::Silence | Reply::Endless => self,
        }
    }
}

type Answerer = Box<dyn FnMut(&ReceivedRequest, usize) -> Reply + Send>;

/// The cloud; it ends when the value is dropped.
pub(crate) struct Cloud {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

struct State {
    tokens: usize,
    /// The lifetime of tokens in seconds.
    lifetime: i64,
    asked: Vec<ReceivedRequest>,
    answerer: Answerer,
}

impl Cloud {
    /// Starts a cloud that answers all requests except Keystone's by `answerer`, which gets the number of earlier requests.
    pub(crate) async fn start(
        answerer: impl FnMut(&ReceivedRequest, usize) -> Reply + Send + 'static,
    ) -> Cloud {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answerer: Answerer = Box::new(answerer);
        let state = State { tokens: 0, lifetime: 3600, asked: Vec::new(), answerer };
        let cloud = Cloud { port, state: Arc::new(Mutex::new(state)) };
        let state = cloud.state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, port, state.clone()));
            }
        });
        cloud
    }

    pub(crate) fn tokens_live(&self, seconds: i64) {
        self.state.lock().unwrap().lifetime = seconds;
    }

    /// Opens a session with timeouts of milliseconds.
    pub(crate) fn session(&self) -> Session {
        Session::new(self.config()).unwrap()
    }

    pub(crate) fn config(&self) -> CloudConfig {
        let variables = [
            ("OS_AUTH_URL", format!("http://127.0.0.1:{}", self.port)),
            ("OS_USER_ID", "u".to_owned()),
            ("OS_PASSWORD", "hunter2".to_owned()),
            ("OS_PROJECT_ID", "p".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value));
        let mut config = CloudConfig::from_environment(variables).unwrap();
        config.patience = RetryPolicy {
            attempt_timeout: Duration::from_millis(400),
            call_timeout: Duration::from_secs(4),
            attempts: 3,
            pause: Duration::from_millis(5),
        };
        config
    }

    /// The number of issued tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.state.lock().unwrap().tokens
    }

    /// All requests except those for tokens.
    pub(crate) fn asked(&self) -> Vec<ReceivedRequest> {
        self.state.lock().unwrap().asked.clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

async fn serve(stream: TcpStream, port: u16, state: Arc<Mutex<State>>) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream).await {
        let reply = if asked.line.starts_with("POST /v3/auth/tokens") {
            token(&mut state.lock().unwrap(), port)
        } else {
            let state = &mut *state.lock().unwrap();
            state.asked.push(asked.clone());
            (state.answerer)(&asked, state.asked.len() - 1)
        };
        match reply {
            Reply::Lost => return,
            Reply::Silence => return std::future::pending().await,
            Reply::Endless => {
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"x\": \"")
                    .await;
                while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
                return;
            }
            Reply::Full(status, headers, body) => {
                let mut text =
                    format!("HTTP/1.1 {status} Told\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
                text.push_str("\r\n");
                let whole = [text.into_bytes(), body].concat();
                if stream.write_all(&whole).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<ReceivedRequest> {
    let line = head_line(stream).await?;
    let line = line.rsplit_once(' ')?.0.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = head_line(stream).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut asked = ReceivedRequest { line, headers, body: Vec::new() };
    if let Some(length) = asked.header("content-length") {
        asked.body = vec![0; length.parse().ok()?];
        stream.read_exact(&mut asked.body).await.ok()?;
    } else if asked.header("transfer-encoding").is_some() {
        loop {
            let size = usize::from_str_radix(&head_line(stream).await?, 16).ok()?;
            let mut chunk = vec![0; size];
            stream.read_exact(&mut chunk).await.ok()?;
            asked.body.extend(chunk);
            head_line(stream).await?;
            if size == 0 {
                break;
            }
        }
    }
    Some(asked)
}

async fn head_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end().to_owned())
}

fn token(state: &mut State, port: u16) -> Reply {
    state.tokens += 1;
    let types = ["compute", "network", "image", "load-balancer", "dns", "volumev3", "placement"];
    let catalogue = types.map(|kind| {
        let url = format!("http://127.0.0.1:{port}/{kind}");
        json!({"type": kind, "endpoints": [{"interface": "public", "region_id": "r", "url": url}]})
    });
    let ends = 1_000_000_000 + state.lifetime;
    let ends = jiff::Timestamp::from_second(ends).unwrap().to_string();
    let body = json!({"token": {
        "user": {"id": "u", "name": "alice", "domain": {"id": "default"}},
        "project": {"id": "p", "name": "tenant-a"},
        "roles": [{"id": "r1", "name": "member"}],
        "issued_at": "2001-09-09T01:46:40.000000Z",
        "expires_at": ends,
        "catalog": catalogue,
    }});
    Reply::json(201, body).with("x-subject-token", format!("token-{}", state.tokens))
}
