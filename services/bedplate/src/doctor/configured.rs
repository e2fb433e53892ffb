//! The parts of a service's configuration that the doctor uses. `--check` of the service itself reports all other mistakes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::finding::{Check, Findings};
use crate::api::Service;

pub(crate) struct Configured {
    pub(crate) service: Service,
    pub(crate) file: PathBuf,
    table: Table,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) what: &'static str,
    pub(crate) is_tcp: bool,
    pub(crate) address: SocketAddr,
}

/// Reads a configuration; `None` if the file is missing or cannot be parsed.
pub(crate) fn read(file: &Path, service: Service, findings: &mut Findings) -> Option<Configured> {
    let (program, shown) = (service.program(), file.display());
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("{shown} does not exist: set --{program} if {program} runs here");
            findings.skipped(Check::Configuration, what);
            return None;
        }
        Err(why) => {
            let what = format!("cannot read {shown}: {why}");
            findings.fail(
                Check::Configuration,
                what,
                "run the doctor as root, or allow this user to read the file",
            );
            return None;
        }
    };
    let table = match text.parse::<Table>() {
        Ok(table) => table,
        Err(why) => {
            let what = format!("{shown} is not TOML: {}", why.to_string().trim_end());
            let next =
                format!("correct the file; check it with `{program} --check --config {shown}`");
            findings.fail(Check::Configuration, what, next);
            return None;
        }
    };
    let configured = Configured { service, file: file.to_owned(), table };
    configured.files(findings);
    Some(configured)
}

impl Configured {
    fn at(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.table.get(*first)?, |value, key| value.get(key))
    }

    /// Returns the text at a path of keys.
    pub(crate) fn text(&self, path: &[&str]) -> Option<String> {
        self.at(path)?.as_str().map(str::to_owned)
    }

    /// Whether there is a value at a path of keys.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        self.at(path).is_some()
    }

    fn address(&self, path: &[&str]) -> Option<SocketAddr> {
        self.text(path)?.parse().ok()
    }

    fn api(&self) -> SocketAddr {
        let port = match self.service {
            Service::Baremetald => 6385,
            Service::Clusterd => 9511,
        };
        self.address(&["api", "listen"]).unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// The URL of the service's API for clients on this computer.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.has(&["api", "certificate"]) { "https" } else { "http" };
        let mut address = self.api();
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        format!("{scheme}://{address}")
    }

    /// Whether the provisioning network has IPv6.
    fn has_dhcp_v6(&self) -> bool {
        let server = self.text(&["provisioning", "dhcp", "server"]);
        server.is_some_and(|server| server.parse::<std::net::Ipv6Addr>().is_ok())
    }

    /// The sockets that the running service listens on.
    pub(crate) fn listeners(&self) -> Vec<Listener> {
        let tcp = |what, address| Some(Listener { what, is_tcp: true, address });
        let udp = |what, address| Some(Listener { what, is_tcp: false, address });
        let dhcp = ["provisioning", "dhcp"];
        let on_interface = self.text(&[&dhcp[..], &["interface"]].concat());
        let is_v6 = self.has_dhcp_v6();
        let any = |_| match is_v6 {
            true => SocketAddr::from(([0; 16], 547)),
            false => SocketAddr::from(([0, 0, 0, 0], 67)),
        };
        let dhcp = self.address(&[&dhcp[..], &["listen"]].concat()).or(on_interface.map(any));
        let all = [
            tcp("its API", self.api()),
            self.address(&["provisioning", "listen"])
                .and_then(|it| tcp("boot files for machines", it)),
            self.address(&["provisioning", "https", "listen"])
                .and_then(|it| tcp("boot loaders for firmware", it)),
            self.address(&["nodes", "listen"]).and_then(|it| tcp("configs for new members", it)),
            self.address(&["metrics", "listen"]).and_then(|it| tcp("metrics", it)),
            dhcp.and_then(|it| udp("DHCP", it)),
            self.address(&["provisioning", "tftp"]).and_then(|it| udp("TFTP", it)),
        ];
        // Port 0 means any free port.
        all.into_iter().flatten().filter(|it| it.address.port() != 0).collect()
    }

    /// Checks that the files that the configuration names exist and are not empty.
    fn files(&self, findings: &mut Findings) {
        let named = [
            &["provisioning", "kernel"][..],
            &["provisioning", "ramdisk"],
            &["provisioning", "iso"],
            &["provisioning", "loaders"],
            &["provisioning", "aarch64", "kernel"],
            &["provisioning", "aarch64", "ramdisk"],
            &["provisioning", "aarch64", "iso"],
            &["provisioning", "aarch64", "loader"],
            &["provisioning", "images"],
            &["provisioning", "https", "certificate"],
            &["provisioning", "https", "key"],
            &["bmc", "ca_file"],
            &["api", "certificate"],
            &["api", "key"],
            &["api", "htpasswd"],
            &["cloud", "clouds_yaml"],
            &["clusters", "clouds_yaml"],
            &["clusters", "password_file"],
        ];
        let mut is_whole = true;
        for path in named {
            let Some(file) = self.text(path) else { continue };
            let key = path.join(".");
            // systemd shows these credentials only to the service itself.
            if file.starts_with("/run/credentials/") {
                continue;
            }
            let why = match std::fs::metadata(&file) {
                Ok(found) if found.is_file() && found.len() == 0 => "the file is empty".to_owned(),
                Ok(_) => continue,
                Err(why) => why.to_string(),
            };
            is_whole = false;
            let what = format!("{} of {} names {file}: {why}", key, self.file.display());
            let next = match key.as_str() {
                "provisioning.kernel" | "provisioning.ramdisk" | "provisioning.iso" => {
                    "build the kernel, the ramdisk and the CD with `make ramdisk`"
                }
                "provisioning.loaders" => "install Debian's package ipxe",
                _ => "create the file, or configure another path",
            };
            findings.fail(Check::Configuration, what, next);
        }
        if is_whole {
            let what = format!("{} and the files that it names exist", self.file.display());
            findings.ok(Check::Configuration, what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::tests::lines;

    fn configured(text: &str) -> (Option<Configured>, Findings) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut findings = Findings::default();
        let read = read(file.path(), Service::Baremetald, &mut findings);
        (read, findings)
    }

    #[test]
    fn a_file_that_is_not_toml_is_a_problem() {
        let (read, findings) = configured("api = [");
        assert!(read.is_none());
        assert!(lines(&findings)[0].contains("is not TOML"), "{:?}", lines(&findings));
    }

    #[test]
    fn a_missing_kernel_is_a_problem() {
        let (_, findings) = configured("[provisioning]\nkernel = '/nowhere/kernel'\n");
        let [line] = &lines(&findings)[..] else { panic!("{:?}", lines(&findings)) };
        assert!(line.starts_with("wrong: provisioning.kernel of"), "{line}");
    }

    #[test]
    fn the_listeners_are_read_from_the_configuration() {
        let text = "[api]\nlisten = '0.0.0.0:6385'\ncertificate = '/dev/null'\n[provisioning]\nlisten = '10.0.0.1:6386'\n\
                    tftp = '10.0.0.1:69'\n[provisioning.dhcp]\ninterface = 'p0'\n[metrics]\nlisten = '127.0.0.1:9638'\n";
        let (read, _) = configured(text);
        let read = read.unwrap();
        let all: Vec<String> = read.listeners().iter().map(|it| it.address.to_string()).collect();
        let want = ["0.0.0.0:6385", "10.0.0.1:6386", "127.0.0.1:9638", "0.0.0.0:67", "10.0.0.1:69"];
        assert_eq!(all, want);
        assert_eq!(read.url(), "https://127.0.0.1:6385");
    }
}
