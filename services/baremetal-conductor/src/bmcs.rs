//! Connects nodes to their BMCs: parses `driver_info` and caches each BMC until the node's `driver_info` changes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baremetal_core::{
    AccountPassword, CREDENTIALS, Driver, Node, NodeUuid, Problem, Reason, Unheeded, unheeded_boot,
    unheeded_way,
};
use baremetal_store::{Secrets, Tripwire};
use bmc::{Bmc, BmcError};
use metrics::BmcMetrics;
use replicas::Fence;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use url::Url;

use crate::allowed::check_bmc;
use crate::gate::{CallCounter, Gate, gated};
use crate::vendors::vendor;
use crate::{BmcSettings, fake};

/// The port of IPMI's RMCP (IANA).
const RMCP_PORT: u16 = 623;
/// The port of RFB (IANA).
const RFB_PORT: u16 = 5900;

pub(crate) struct Bmcs {
    settings: BmcSettings,
    redfish: redfish::Connector,
    ipmi: ipmi::Connector,
    secrets: Secrets,
    tripwire: Tripwire,
    fence: Fence,
    metrics: BmcMetrics,
    known: Mutex<HashMap<NodeUuid, CachedBmc>>,
}

struct CachedBmc {
    /// The hash of the stored `driver_info`, which is cheap to compute.
    stored: u64,
    /// The hash of the unsealed `driver_info`. Re-encrypting a password changes `stored` but not this hash, so the BMC's session survives.
    opened: u64,
    bmc: Bmc,
}

/// The error for a key of `driver_info` that is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("driver_info/{key}: {problem}")]
pub(crate) struct InvalidDriverInfo {
    key: &'static str,
    problem: String,
}

impl From<InvalidDriverInfo> for Problem {
    fn from(invalid: InvalidDriverInfo) -> Problem {
        Problem { reason: Reason::BadRequest, cause: invalid.to_string(), transient: false }
    }
}

impl Bmcs {
    pub(crate) fn new(
        settings: BmcSettings,
        redfish: redfish::Connector,
        ipmi: ipmi::Connector,
        secrets: Secrets,
        tripwire: Tripwire,
        fence: Fence,
        metrics: BmcMetrics,
    ) -> Self {
        let known = Mutex::default();
        Bmcs { settings, redfish, ipmi, secrets, tripwire, fence, metrics, known }
    }

    /// Returns the BMC of the node. Opens no connection. While the password of the BMC's account is changed, only the change may log in:
    /// every other use could try a wrong password, and the BMC could lock the account.
    pub(crate) fn of(&self, node: &Node) -> Result<Bmc, InvalidDriverInfo> {
        match (&node.password_rotation, node.driver.password_key()) {
            (Some(_), Some(key)) => {
                Err(invalid(key, "the change of the password of the BMC account has no known end"))
            }
            (Some(_) | None, _) => self.connected(node),
        }
    }

    /// Returns the BMC of the node with one of the two passwords of its account. Opens no connection.
    pub(crate) fn of_account(
        &self,
        node: &Node,
        password: AccountPassword,
    ) -> Result<Bmc, InvalidDriverInfo> {
        self.connected(&node.with_account_password(password))
    }

    /// Returns the wanted password of the BMC account, unsealed.
    pub(crate) fn wanted_password(&self, node: &Node) -> Result<SecretString, InvalidDriverInfo> {
        let key = node.driver.password_key().unwrap_or_default();
        self.password(&node.with_account_password(AccountPassword::Wanted), key)
    }

    fn connected(&self, node: &Node) -> Result<Bmc, InvalidDriverInfo> {
        let stored = fingerprint(node);
        let known = |known: &CachedBmc| (known.stored == stored).then(|| known.bmc.clone());
        let found = self.cache().get(&node.id).and_then(known);
        if let Some(bmc) = found {
            return Ok(bmc);
        }
        let opened = self.opened_fingerprint(node)?;
        if let Some(known) = self.cache().get_mut(&node.id).filter(|known| known.opened == opened) {
            known.stored = stored;
            return Ok(known.bmc.clone());
        }
        let bmc = match node.driver {
            Driver::FakeHardware => fake::bmc(node.power_state),
            // A person inserts media.
            Driver::ManualManagement => Bmc { media: None, ..fake::bmc(node.power_state) },
            Driver::Idrac | Driver::Redfish => {
                self.gated_bmc(node, self.redfish.bmc(self.redfish_target(node)?))
            }
            Driver::Ipmi => self.gated_bmc(node, self.ipmi.bmc(self.ipmi_target(node)?)),
        };
        self.cache().insert(node.id, CachedBmc { stored, opened, bmc: bmc.clone() });
        Ok(bmc)
    }

    /// Returns the BMC of a node that has not changed since [`Bmcs::of`] returned it.
    pub(crate) fn find(&self, node: NodeUuid) -> Option<Bmc> {
        self.cache().get(&node).map(|known| known.bmc.clone())
    }

    /// Reads the service root of a Redfish service, without credentials.
    pub(crate) async fn probe_redfish(
        &self,
        address: &Url,
        timeout: Duration,
    ) -> Result<Option<redfish::ServiceRoot>, BmcError> {
        self.redfish.probe(address, timeout).await
    }

    /// Logs out of every BMC, because BMCs have few sessions.
    pub(crate) async fn close(&self) {
        self.redfish.close().await;
        self.ipmi.close().await;
    }

    /// Drops the BMC of a node that was deleted.
    pub(crate) fn forget(&self, node: NodeUuid) {
        self.cache().remove(&node);
    }

    /// Checks `driver_info` without any connection.
    pub(crate) fn check(&self, node: &Node) -> Result<(), InvalidDriverInfo> {
        match node.driver {
            Driver::FakeHardware | Driver::ManualManagement => {}
            Driver::Idrac | Driver::Redfish => drop(self.redfish_target(node)?),
            Driver::Ipmi => drop(self.ipmi_target(node)?),
        }
        refuse(unheeded_boot(node.driver, &node.driver_info))
    }

    /// Like [`Bmcs::check`], with the keys of the console interface.
    pub(crate) fn check_console(&self, node: &Node) -> Result<(), InvalidDriverInfo> {
        if node.console_interface().is_graphical() {
            self.vnc_server(node)?;
        }
        self.check(node)
    }

    /// Returns the VNC server of the node's BMC. Opens no connection.
    pub(crate) fn vnc_server(&self, node: &Node) -> Result<rfb::Server, InvalidDriverInfo> {
        let raw = text(&node.driver_info, "vnc_address")?.ok_or_else(|| missing("vnc_address"))?;
        let wrong =
            || invalid("vnc_address", "must be a host, or a host and a port: 10.0.0.7:5901");
        let bare = raw.parse().ok().map(|address: IpAddr| (address.to_string(), RFB_PORT));
        let socket = || raw.parse().ok().map(|it: SocketAddr| (it.ip().to_string(), it.port()));
        let named = || match raw.split_once(':') {
            None => Some((raw.to_owned(), RFB_PORT)),
            Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        };
        let (host, port) = bare.or_else(socket).or_else(named).ok_or_else(wrong)?;
        let is_legal = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(is_legal) || port == 0 {
            return Err(wrong());
        }
        check_bmc(&self.settings.allowed, raw)
            .map_err(|problem| invalid("vnc_address", &problem))?;
        Ok(rfb::Server {
            host,
            port,
            password: self.password(node, "vnc_password")?,
            allowed: self.settings.allowed.clone(),
            timeout: self.settings.request_timeout,
        })
    }

    /// Returns a password of `driver_info`, unsealed.
    fn password(&self, node: &Node, key: &'static str) -> Result<SecretString, InvalidDriverInfo> {
        let password =
            self.secrets.text(node, key).map_err(|why| invalid(key, &why.to_string()))?;
        Ok(password.unwrap_or_default())
    }

    /// Returns a hash that does not depend on the key with which the passwords are sealed.
    fn opened_fingerprint(&self, node: &Node) -> Result<u64, InvalidDriverInfo> {
        let mut hasher = DefaultHasher::new();
        node.driver.hash(&mut hasher);
        for (key, value) in &node.driver_info {
            key.hash(&mut hasher);
            match CREDENTIALS.iter().find(|credential| credential.password == key) {
                Some(credential) => {
                    let password = self.password(node, credential.password)?;
                    password.expose_secret().hash(&mut hasher);
                }
                None => value.hash(&mut hasher),
            }
        }
        Ok(hasher.finish())
    }

    fn gated_bmc(&self, node: &Node, bmc: Bmc) -> Bmc {
        let calls = CallCounter {
            metrics: self.metrics.clone(),
            driver: node.driver.as_str(),
            vendor: vendor(node),
        };
        let gate = Gate::new(&self.settings, self.tripwire.clone(), self.fence.clone(), calls);
        gated(bmc, Arc::new(gate))
    }

    fn redfish_target(&self, node: &Node) -> Result<redfish::Target, InvalidDriverInfo> {
        let info = &node.driver_info;
        refuse(unheeded_way(node.driver, info))?;
        let raw = text(info, "redfish_address")?.ok_or_else(|| missing("redfish_address"))?;
        let spelled = if raw.contains("://") { raw.to_owned() } else { format!("https://{raw}") };
        let wrong = |problem: &str| InvalidDriverInfo {
            key: "redfish_address",
            problem: problem.to_owned(),
        };
        let address = Url::parse(&spelled).map_err(|_| wrong("is not a URL"))?;
        if !matches!(address.scheme(), "http" | "https") || address.host().is_none() {
            return Err(wrong("must be an http or https URL with a host"));
        }
        check_bmc(&self.settings.allowed, raw).map_err(|problem| wrong(&problem))?;
        // The address is shown by the API and printed in errors, so it must not contain credentials.
        if !address.username().is_empty() || address.password().is_some() {
            return Err(wrong(
                "must not contain a user or password; use redfish_username and redfish_password",
            ));
        }
        Ok(redfish::Target {
            address,
            system: text(info, "redfish_system_id")?.map(str::to_owned),
            username: text(info, "redfish_username")?.unwrap_or_default().to_owned(),
            password: self.password(node, "redfish_password")?,
            auth: match text(info, "redfish_auth_type")? {
                None | Some("auto") => redfish::Auth::Auto,
                Some("session") => redfish::Auth::Session,
                Some("basic") => redfish::Auth::Basic,
                Some(_) => {
                    return Err(invalid("redfish_auth_type", "must be auto, session or basic"));
                }
            },
            trust: self.trust(info.get("redfish_verify_ca"))?,
            timeout: self.settings.request_timeout,
        })
    }

    fn trust(&self, verify: Option<&Value>) -> Result<redfish::Trust, InvalidDriverInfo> {
        let pinned = |text: &str| {
            let bytes = hex::decode(text.strip_prefix("sha256:")?.replace(':', "")).ok()?;
            <[u8; 32]>::try_from(bytes).ok()
        };
        match verify {
            None | Some(Value::Null | Value::Bool(true)) => Ok(redfish::Trust::Authorities),
            Some(Value::String(word)) if word.eq_ignore_ascii_case("true") => {
                Ok(redfish::Trust::Authorities)
            }
            Some(no)
                if *no == Value::Bool(false)
                    || no.as_str().is_some_and(|word| word.eq_ignore_ascii_case("false")) =>
            {
                if self.settings.allow_unverified {
                    return Ok(redfish::Trust::Unverified);
                }
                let problem = "false is not allowed: this service verifies BMCs' certificates; pin this one with \
                               sha256:HEX, or set bmc.allow_unverified in the service's configuration";
                Err(invalid("redfish_verify_ca", problem))
            }
            Some(Value::String(word)) => match pinned(word) {
                Some(fingerprint) => Ok(redfish::Trust::Pinned(fingerprint)),
                None => Err(invalid(
                    "redfish_verify_ca",
                    "must be true, false or sha256: and 64 hexadecimal digits",
                )),
            },
            Some(_) => Err(invalid(
                "redfish_verify_ca",
                "must be true, false or sha256: and 64 hexadecimal digits",
            )),
        }
    }

    fn ipmi_target(&self, node: &Node) -> Result<ipmi::Target, InvalidDriverInfo> {
        let info = &node.driver_info;
        refuse(unheeded_way(node.driver, info))?;
        let raw = text(info, "ipmi_address")?.ok_or_else(|| missing("ipmi_address"))?;
        let address: IpAddr =
            raw.parse().map_err(|_| invalid("ipmi_address", "must be an IP address"))?;
        check_bmc(&self.settings.allowed, raw)
            .map_err(|problem| invalid("ipmi_address", &problem))?;
        let port = match number(info, "ipmi_port")? {
            None => RMCP_PORT,
            Some(port) => {
                u16::try_from(port).map_err(|_| invalid("ipmi_port", "must be from 1 to 65535"))?
            }
        };
        Ok(ipmi::Target {
            address: SocketAddr::new(address, port),
            username: text(info, "ipmi_username")?.unwrap_or_default().to_owned(),
            password: self.password(node, "ipmi_password")?,
            cipher_suite: match number(info, "ipmi_cipher_suite")? {
                None => None,
                Some(3) => Some(ipmi::CipherSuite::Three),
                Some(17) => Some(ipmi::CipherSuite::Seventeen),
                Some(_) => {
                    return Err(invalid(
                        "ipmi_cipher_suite",
                        "must be 3 or 17; other suites are not secure",
                    ));
                }
            },
            privilege: match text(info, "ipmi_priv_level")? {
                None | Some("ADMINISTRATOR") => ipmi::Privilege::Administrator,
                Some("OPERATOR") => ipmi::Privilege::Operator,
                Some("USER") => ipmi::Privilege::User,
                Some(_) => {
                    return Err(invalid(
                        "ipmi_priv_level",
                        "must be USER, OPERATOR or ADMINISTRATOR",
                    ));
                }
            },
            timeout: self.settings.request_timeout,
        })
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<NodeUuid, CachedBmc>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fingerprint(node: &Node) -> u64 {
    let mut hasher = DefaultHasher::new();
    node.driver.hash(&mut hasher);
    node.driver_info.hash(&mut hasher);
    hasher.finish()
}

/// Refuses a key that changes nothing here.
fn refuse(unheeded: Option<&'static Unheeded>) -> Result<(), InvalidDriverInfo> {
    unheeded.map_or(Ok(()), |it| Err(invalid(it.key, it.problem)))
}

fn missing(key: &'static str) -> InvalidDriverInfo {
    invalid(key, "missing")
}

fn invalid(key: &'static str, problem: &str) -> InvalidDriverInfo {
    InvalidDriverInfo { key, problem: problem.to_owned() }
}

fn text<'a>(
    info: &'a Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'a str>, InvalidDriverInfo> {
    match info.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(invalid(key, "must be text")),
    }
}

/// Clients may send numbers as text: `--driver-info ipmi_port=623`.
fn number(info: &Map<String, Value>, key: &'static str) -> Result<Option<u64>, InvalidDriverInfo> {
    let number = match info.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    number.map(Some).ok_or_else(|| invalid(key, "must be a number"))
}
