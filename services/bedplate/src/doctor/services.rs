//! Checks that a service answers, its database, and its clock.

use std::io::Read;
use std::time::Duration;

use api_client::shared::{ApiRoot, DatabaseHealth, Health};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::clocks;
use super::configured::Configured;
use super::finding::{Check, Findings};
use super::webhooks;
use crate::api::{Api, Service, url_option};
use crate::connection::Connection;
use crate::exit::Exit;

/// The timeout for connecting to a database server.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The first bytes of an SQLite database (its file format, 1.3).
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

pub(crate) enum ServiceState {
    Answers(Box<Api>),
    /// The service does not answer.
    Silent,
}

impl ServiceState {
    pub(crate) fn answers(&self) -> bool {
        matches!(self, ServiceState::Answers(_))
    }

    pub(crate) fn into_api(self) -> Option<Api> {
        match self {
            ServiceState::Answers(api) => Some(*api),
            ServiceState::Silent => None,
        }
    }
}

/// Asks the service for its versions, which need no authentication, and for its health.
pub(crate) async fn look(
    service: Service,
    configured: Option<&Configured>,
    connection: &Connection,
    findings: &mut Findings,
) -> ServiceState {
    let program = service.program();
    let api = match Api::of(service, &placed(service, configured, connection)).await {
        Ok(api) => api,
        Err(why) => {
            let next = "select the cloud with --os-cloud, and check the catalogue with `openstack catalog list`";
            findings.fail(Check::Services, format!("cannot find {program}: {why:#}"), next);
            return ServiceState::Silent;
        }
    };
    match api.get::<Value>("/").await {
        Ok(root) if ApiRoot::deserialize(&root).is_ok() => {
            findings.ok(Check::Services, format!("{program} answers at {}", api.base()));
        }
        Ok(_) => {
            let what = format!("the service at {} is not {program}", api.base());
            let next = format!("set the URL of {program} with {}", url_option(service));
            findings.fail(Check::Services, what, next);
            return ServiceState::Silent;
        }
        Err(why) if Exit::of(&why) == Exit::Unreachable => {
            let next =
                format!("check `systemctl status {program}` and `journalctl -u {program} -n 50`");
            findings.fail(Check::Services, format!("{program} does not answer: {why:#}"), next);
            return ServiceState::Silent;
        }
        Err(why) => {
            let next = format!("check that {} is the address of {program}", api.base());
            findings.fail(
                Check::Services,
                format!("{program} answers with an error: {why:#}"),
                next,
            );
            return ServiceState::Silent;
        }
    }
    health(service, &api, findings).await;
    ServiceState::Answers(Box::new(api))
}

/// The connection options with the URL of the service: the URL of the options, or of the service's configuration.
fn placed(
    service: Service,
    configured: Option<&Configured>,
    connection: &Connection,
) -> Connection {
    let mut connection = connection.clone();
    let url = configured.and_then(|it| Url::parse(&it.url()).ok());
    match service {
        Service::Baremetald => connection.url = connection.url.or(url),
        Service::Clusterd => connection.clusters_url = connection.clusters_url.or(url),
    }
    connection
}

async fn health(service: Service, api: &Api, findings: &mut Findings) {
    let program = service.program();
    let asked_at = Timestamp::now();
    let health: Health = match api.get("/bedplate/v1/health").await {
        Ok(health) => health,
        Err(why) if Exit::of(&why) == Exit::Refused => {
            let what =
                format!("only administrators may see the state of {program}'s database: {why:#}");
            return findings.skipped(Check::Database, what);
        }
        Err(why) => {
            let next = format!("check the log of the database and `journalctl -u {program}`");
            let what = format!("{program} answers, but its database does not: {why:#}");
            return findings.fail(Check::Database, what, next);
        }
    };
    clocks::compare(program, Some(health.now), asked_at, findings);
    version(program, &health.database, findings);
    webhooks::look(program, api, findings).await;
}

/// Checks that the tables have the version that the program knows.
fn version(program: &str, database: &DatabaseHealth, findings: &mut Findings) {
    let DatabaseHealth { kind, schema_found: found, schema_known: known } = database;
    if found == known {
        let what = format!("{program}'s database ({kind}) has schema version {found}");
        return findings.ok(Check::Database, what);
    }
    let what = format!(
        "{program}'s database has schema version {found}, and the running program knows {known}"
    );
    let next = if found > known {
        format!("an upgrade is in progress: restart every {program} from the newer package")
    } else {
        "an upgrade is in progress: `bedplate conductor list` shows the conductors of the older version".to_owned()
    };
    findings.warn(Check::Database, what, next);
}

/// Checks the database of a service that does not answer, as far as possible without the service.
pub(crate) async fn look_at_database(configured: &Configured, findings: &mut Findings) {
    let url = match url(configured) {
        Ok(url) => url,
        Err(why) => {
            return findings.fail(
                Check::Database,
                why,
                "create the file, or configure another path",
            );
        }
    };
    match url.split_once(':') {
        Some(("sqlite", path)) => sqlite(configured, path.trim_start_matches("//"), findings),
        Some(("postgres" | "postgresql", _)) => postgres(configured, &url, findings).await,
        _ => {
            let what =
                format!("database.url of {} is not a database URL", configured.file.display());
            findings.fail(Check::Database, what, "use sqlite:///PATH or postgres://USER@HOST/NAME");
        }
    }
}

/// The URL of the database. A URL from a file may contain a password and must not be shown.
fn url(configured: &Configured) -> Result<String, String> {
    if let Some(file) = configured.text(&["database", "url_file"]) {
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|why| format!("database.url_file names {file}: {why}"))?;
        return Ok(text.trim().to_owned());
    }
    let own = || {
        let folder = configured.text(&["state_dir"]).unwrap_or_default();
        let file = match configured.service {
            Service::Baremetald => "baremetal.db",
            Service::Clusterd => "clusterd.db",
        };
        format!("sqlite://{folder}/{file}")
    };
    Ok(configured.text(&["database", "url"]).unwrap_or_else(own))
}

fn sqlite(configured: &Configured, path: &str, findings: &mut Findings) {
    let program = configured.service.program();
    let mut head = [0; 16];
    match std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) if head == *SQLITE => {
            findings.ok(Check::Database, format!("{path} is an SQLite database"));
        }
        Ok(()) => {
            let what = format!("{path} is not an SQLite database");
            let next = format!(
                "restore a backup of {program}'s database as described in the operations guide"
            );
            findings.fail(Check::Database, what, next);
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => {
            let what =
                format!("{path} does not exist yet: {program} creates it at its first start");
            findings.warn(
                Check::Database,
                what,
                "if it existed before, restore a backup before the start of the service",
            );
        }
        Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
            findings.skipped(
                Check::Database,
                format!("this user may not read {path}: run the doctor as root"),
            );
        }
        Err(why) => {
            let what = format!("cannot read {path}: {why}");
            findings.fail(Check::Database, what, "check whether the disk is full or failing");
        }
    }
}

async fn postgres(configured: &Configured, url: &str, findings: &mut Findings) {
    let program = configured.service.program();
    let parsed = Url::parse(url).ok();
    let place = parsed.as_ref().and_then(|url| Some((url.host_str()?, url.port().unwrap_or(5432))));
    let Some((host, port)) = place else {
        let what = format!(
            "the database of {program} is behind a Unix socket, which the doctor does not check"
        );
        return findings.skipped(Check::Database, what);
    };
    let called = timeout(CALL_TIMEOUT, TcpStream::connect((host, port)))
        .await
        .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
    match called {
        Ok(_) => {
            let what = format!(
                "PostgreSQL at {host}:{port} accepts connections; only {program} can check more"
            );
            findings.ok(Check::Database, what);
        }
        Err(why) => {
            let what = format!("PostgreSQL at {host}:{port} accepts no connections: {why}");
            let next = "start PostgreSQL, or allow this machine to reach it: pg_hba.conf, listen_addresses, the firewall";
            findings.fail(Check::Database, what, next);
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::doctor::configured;
    use crate::doctor::tests::lines;

    async fn looked(text: &str) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut findings = Findings::default();
        let read =
            configured::read(file.path(), Service::Baremetald, &mut Findings::default()).unwrap();
        look_at_database(&read, &mut findings).await;
        lines(&findings)
    }

    #[test]
    fn tables_of_another_version_are_doubtful() {
        let judged = |found: i64, known: i64| {
            let mut findings = Findings::default();
            version(
                "clusterd",
                &DatabaseHealth {
                    kind: "sqlite".to_owned(),
                    schema_found: found,
                    schema_known: known,
                },
                &mut findings,
            );
            lines(&findings)
        };
        assert_eq!(judged(7, 7), ["fine: clusterd's database (sqlite) has schema version 7"]);
        let want =
            "doubtful: clusterd's database has schema version 8, and the running program knows 7";
        assert_eq!(judged(8, 7), [want]);
    }

    #[tokio::test]
    async fn a_file_that_is_not_a_database_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!("state_dir = {:?}\n", folder.path());
        assert!(looked(&text).await[0].contains("baremetal.db does not exist yet"));
        std::fs::write(folder.path().join("baremetal.db"), "this is not a database").unwrap();
        assert!(looked(&text).await[0].ends_with("baremetal.db is not an SQLite database"));
        std::fs::write(folder.path().join("baremetal.db"), SQLITE).unwrap();
        assert!(looked(&text).await[0].starts_with("fine: "));
    }

    #[tokio::test]
    async fn an_unreachable_database_server_is_a_problem_and_its_password_is_not_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "postgres://u:a-secret@127.0.0.1:1/db\n").unwrap();
        let text = format!("state_dir = '/tmp'\n[database]\nurl_file = {:?}\n", file.path());
        let [line] = &looked(&text).await[..] else { panic!() };
        assert!(
            line.starts_with("wrong: PostgreSQL at 127.0.0.1:1 accepts no connections"),
            "{line}"
        );
        assert!(!line.contains("a-secret"));
    }
}
