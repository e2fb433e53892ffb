//! A console with both services, and a browser without scripts.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use console::{Config, Service};
use openstack_emulator::{Cloud, Emulator, Settings};
use reqwest::header::{CONTENT_TYPE, COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The authentication of the console and both services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    None,
    /// Without authentication, and clusterd's user is an administrator of the cloud.
    NoneOfAdmin,
    HttpBasic,
    Keystone,
}

/// A console with both services on free ports, stopped when dropped.
pub(crate) struct ConsoleFixture {
    pub(crate) url: String,
    pub(crate) cloud: Cloud,
    pub(crate) machines: String,
    pub(crate) clusters: String,
    /// The text of `console.toml`.
    config: String,
    _emulator: Emulator,
    _state: tempfile::TempDir,
    running: Vec<AbortOnDropHandle<()>>,
}

impl ConsoleFixture {
    pub(crate) async fn start(auth: Auth) -> ConsoleFixture {
        ConsoleFixture::start_with(auth, "").await
    }

    /// Starts everything with more lines in `console.toml`.
    pub(crate) async fn start_with(auth: Auth, more: &str) -> ConsoleFixture {
        ConsoleFixture::filled(auth, more, async |_| {}).await
    }

    /// Starts everything with a state folder that `fill` prepares before baremetald starts.
    pub(crate) async fn filled(
        auth: Auth,
        more: &str,
        fill: impl AsyncFnOnce(&Path),
    ) -> ConsoleFixture {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let shared_networks = [("lab".to_owned(), "10.7.0.0/24".to_owned())].into();
        let settings = Settings { shared_networks, ..Settings::default() };
        let emulator = Emulator::start(settings).await.unwrap();
        let cloud = emulator.cloud.clone();
        let state = tempfile::tempdir().unwrap();
        let folder = state.path().display();
        std::fs::write(state.path().join("clouds.yaml"), cloud.clouds_yaml()).unwrap();
        // The password "a secret", hashed by bcrypt with a low cost for tests.
        let hash = bcrypt::hash("a secret", 4).unwrap();
        std::fs::write(state.path().join("htpasswd"), format!("alice:{hash}\n")).unwrap();
        let api = match auth {
            Auth::None | Auth::NoneOfAdmin => "[api]\nlisten = '127.0.0.1:0'\n".to_owned(),
            Auth::HttpBasic => {
                format!(
                    "[api]\nlisten = '127.0.0.1:0'\nauth = 'http_basic'\nhtpasswd = '{folder}/htpasswd'\n"
                )
            }
            Auth::Keystone => format!(
                "[api]\nlisten = '127.0.0.1:0'\nauth = 'keystone'\n\
                 [api.keystone]\nclouds_yaml = '{folder}/clouds.yaml'\nname = 'clusterd'\n"
            ),
        };
        let mut running = Vec::new();
        fill(&state.path().join("baremetald")).await;

        let who = match auth {
            Auth::Keystone | Auth::NoneOfAdmin => "clusterd",
            Auth::None | Auth::HttpBasic => "alice",
        };
        let text = format!(
            "state_dir = '{folder}/clusterd'\n{api}\
             [cloud]\nclouds_yaml = '{folder}/clouds.yaml'\nname = '{who}'\n[conductor]\nlook_every = '1s'\n\
             [machines]\nnetwork = 'lab'\nimages = [{{ name = 'cirros' }}]\nlease = {{ default = '1d', longest = '7d' }}\n{}",
            versions()
        );
        let service = cluster::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
        let clusters = format!("http://{}", service.listeners().api);
        let run = async move { service.run(CancellationToken::new()).await.unwrap() };
        running.push(AbortOnDropHandle::new(tokio::spawn(run)));

        // baremetald asks clusterd about hosts only if clusterd's user is an administrator of the cloud.
        let asked = match auth {
            Auth::NoneOfAdmin => format!("[clusters]\nurl = '{clusters}'\n"),
            Auth::None | Auth::HttpBasic | Auth::Keystone => String::new(),
        };
        let text = format!("state_dir = '{folder}/baremetald'\n{api}{asked}");
        let service = baremetal::Service::start(toml::from_str(&text).unwrap()).await.unwrap();
        let machines = format!("http://{}", service.listeners().api);
        let run = async move { service.run(CancellationToken::new()).await.unwrap() };
        running.push(AbortOnDropHandle::new(tokio::spawn(run)));

        let access = match auth {
            Auth::None | Auth::NoneOfAdmin => "auth = 'none'".to_owned(),
            Auth::HttpBasic => "auth = 'http_basic'".to_owned(),
            Auth::Keystone => {
                format!("auth = 'keystone'\nkeystone = {{ url = '{}' }}", cloud.auth_url())
            }
        };
        let text = format!(
            "listen = '127.0.0.1:0'\nbaremetal = '{machines}'\nclusters = '{clusters}'\n{access}\n{more}"
        );
        let (url, console) = console(&text).await;
        running.push(console);
        ConsoleFixture {
            url,
            cloud,
            machines,
            clusters,
            config: text,
            _emulator: emulator,
            _state: state,
            running,
        }
    }

    /// Starts another console with the same configuration. Returns its URL.
    pub(crate) async fn another_console(&mut self) -> String {
        let (url, console) = console(&self.config).await;
        self.running.push(console);
        url
    }

    /// Creates a cluster template. Returns its id.
    pub(crate) async fn template(&self) -> String {
        let labels = serde_json::json!({"kube_tag": "v1.34.1", "master_lb_floating_ip_enabled": "true",
            "user_data_delivery": "inline"});
        let body = serde_json::json!({"name": "small", "coe": "kubernetes", "image_id": "fedora-coreos",
            "external_network_id": "public", "flavor_id": "m1.small", "master_lb_enabled": true,
            "floating_ip_enabled": false, "labels": labels});
        let client = Client::builder().no_proxy().build().unwrap();
        let answer = client
            .post(format!("{}/v1/clustertemplates", self.clusters))
            .json(&body)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 201);
        let made: serde_json::Value = answer.json().await.unwrap();
        made["uuid"].as_str().unwrap().to_owned()
    }

    /// Creates an installed node that is this compute host. Returns the path of its page.
    pub(crate) async fn host_node(&self, name: &str, host: &str) -> String {
        let client = Client::builder().no_proxy().build().unwrap();
        let ask = async |method: Method, path: &str, body: serde_json::Value| {
            let request = client.request(method, format!("{}{path}", self.machines));
            let request = request.header("x-openstack-ironic-api-version", "1.95").json(&body);
            let answer = request.send().await.unwrap();
            assert!(answer.status().is_success(), "{}", answer.status());
            answer.text().await.unwrap()
        };
        let node = serde_json::json!({"name": name, "driver": "fake-hardware", "instance_info": {
            "hypervisor_hostname": host, "image_source": "http://images.example/disk.raw", "image_checksum": "0",
        }});
        ask(Method::POST, "/v1/nodes", node).await;
        let path = format!("/v1/nodes/{name}/states/provision");
        let shown = format!("/v1/nodes/{name}?fields=provision_state,power_state");
        for (target, state) in [("manage", "manageable"), ("adopt", "active")] {
            ask(Method::PUT, &path, serde_json::json!({"target": target})).await;
            let end = Instant::now() + PATIENCE;
            let state = format!("\"{state}\"");
            while !ask(Method::GET, &shown, serde_json::Value::Null).await.contains(&state) {
                assert!(Instant::now() < end, "timed out: {state}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        format!("/nodes/{name}")
    }

    /// Calls a service directly, without the console. Returns the status and the JSON body.
    pub(crate) async fn api(&self, url: &str) -> (u16, serde_json::Value) {
        let client = Client::builder().no_proxy().build().unwrap();
        let request = client.get(url).header("x-openstack-ironic-api-version", "1.95");
        let request = request.header("openstack-api-version", "container-infra latest");
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    pub(crate) fn browser(&self) -> Browser {
        self.browser_at(Ipv4Addr::LOCALHOST)
    }

    /// A browser with this local address.
    pub(crate) fn browser_at(&self, address: Ipv4Addr) -> Browser {
        let client = Client::builder().no_proxy().redirect(Policy::none());
        let client = client.local_address(IpAddr::V4(address)).build().unwrap();
        Browser { client, url: self.url.clone(), cookie: None }
    }
}

/// Starts a console. Returns its URL.
async fn console(text: &str) -> (String, AbortOnDropHandle<()>) {
    let config: Config = toml::from_str(text).unwrap();
    let service = Service::start(config).await.unwrap();
    let url = format!("http://{}", service.address());
    let run = async move { service.run(CancellationToken::new()).await.unwrap() };
    (url, AbortOnDropHandle::new(tokio::spawn(run)))
}

/// Configures the programs of a Kubernetes version. Emulated servers do not run them.
fn versions() -> String {
    let program = |name: &str| {
        format!(
            "{name} = {{ url = 'https://mirror.example/{name}', sha256 = '{}' }}\n",
            "0".repeat(64)
        )
    };
    let programs: String = ["kubeadm", "kubelet", "kubectl"].map(program).concat();
    format!("[kubernetes.versions.'v1.34.1']\n{programs}")
}

/// A browser that keeps the cookie and does not follow redirects.
pub(crate) struct Browser {
    client: Client,
    pub(crate) url: String,
    pub(crate) cookie: Option<String>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn has(self, status: u16) -> Answer {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Answer {
        assert!(self.text.contains(words), "no {words:?} in {}", self.text);
        self
    }

    /// The target of the redirect.
    #[track_caller]
    pub(crate) fn leads(&self) -> String {
        assert_eq!(self.status, 303, "{}", self.text);
        self.headers[LOCATION].to_str().unwrap().to_owned()
    }

    /// The token in the first form of the page that changes something.
    #[track_caller]
    pub(crate) fn token(&self) -> String {
        let rest = self.text.split("name=\"token\" value=\"").nth(1).expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}

impl Browser {
    fn with_cookie(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie),
            None => request,
        }
    }

    async fn sent(&mut self, request: RequestBuilder) -> Answer {
        let answer = self.with_cookie(request).send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        if let Some(given) = headers.get(SET_COOKIE) {
            self.cookie = given.to_str().unwrap().split(';').next().map(str::to_owned);
        }
        Answer { status, headers, text: answer.text().await.unwrap() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        let request = self.client.get(format!("{}{path}", self.url));
        self.sent(request).await
    }

    /// Sends a form with exactly these fields.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.post_from(path, fields, None).await
    }

    /// Sends a form from a page of another origin.
    pub(crate) async fn post_from(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        origin: Option<&str>,
    ) -> Answer {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let request = self.client.post(format!("{}{path}", self.url));
        let request =
            request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body.finish());
        let request = match origin {
            Some(origin) => request.header("origin", origin),
            None => request,
        };
        self.sent(request).await
    }

    /// Loads `page`, and sends a form with its token and these fields.
    pub(crate) async fn fill(&mut self, page: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.get(page).await.has(200).token();
        let mut all = vec![("token", token.as_str())];
        all.extend_from_slice(fields);
        self.post(path, &all).await
    }

    /// Sends a form with a file.
    pub(crate) async fn upload(
        &mut self,
        page: &str,
        path: &str,
        name: &str,
        content: &str,
    ) -> Answer {
        let token = self.get(page).await.has(200).token();
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n{token}\r\n\
             --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: text/csv\r\n\r\n{content}\r\n--b--\r\n"
        );
        let request = self.client.post(format!("{}{path}", self.url));
        let request = request.header(CONTENT_TYPE, "multipart/form-data; boundary=b").body(body);
        self.sent(request).await
    }

    /// Loads a page repeatedly until it contains these words.
    pub(crate) async fn until(&mut self, page: &str, words: &str) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.get(page).await;
            if answer.text.contains(words) {
                return answer;
            }
            assert!(Instant::now() < deadline, "no {words:?} in {}", answer.text);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Loads a page repeatedly until it no longer contains these words.
    pub(crate) async fn until_gone(&mut self, page: &str, words: &str) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.get(page).await.has(200);
            if !answer.text.contains(words) {
                return answer;
            }
            assert!(Instant::now() < deadline, "still {words:?} in {}", answer.text);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a form as a script of the page does.
    pub(crate) async fn post_by_script(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        let request = self.client.post(format!("{}{path}", self.url)).header("hx-request", "true");
        let kind = "application/x-www-form-urlencoded";
        self.sent(request.header(CONTENT_TYPE, kind).body(body.finish())).await
    }

    /// Opens the live stream of a page.
    pub(crate) async fn follow(&mut self, page: &str) -> Stream {
        self.stream(&format!("/live?page={page}")).await
    }

    pub(crate) async fn stream(&mut self, path: &str) -> Stream {
        let path = format!("{}{path}", self.url);
        let answer = self.with_cookie(self.client.get(path)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
        Stream { answer, held: String::new() }
    }
}

/// An open stream, with the text that was not parsed yet.
pub(crate) struct Stream {
    answer: reqwest::Response,
    held: String,
}

impl Stream {
    /// The next event with its name and data; `None` once the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<(String, String)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some((event, rest)) = self.held.split_once("\n\n") {
                let lines = |name: &str| {
                    let found = event.lines().filter_map(|line| line.strip_prefix(name));
                    found.map(str::trim_start).collect::<Vec<_>>().join("\n")
                };
                let reported = (lines("event:"), lines("data:"));
                self.held = rest.to_owned();
                if reported.0.is_empty() {
                    continue;
                }
                return Some(reported);
            }
            let chunk = tokio::time::timeout_at(deadline, self.answer.chunk())
                .await
                .expect("an event")
                .unwrap()?;
            self.held.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Waits for an event that contains these words.
    pub(crate) async fn until(&mut self, words: &str) -> String {
        loop {
            let (name, page) = self.next().await.expect("the stream goes on");
            assert_eq!(name, "live");
            if page.contains(words) {
                return page;
            }
        }
    }
}
