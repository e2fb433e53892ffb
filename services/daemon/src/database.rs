//! The table `[database]` of a configuration.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Deserialize;

/// Where a service keeps its state. Without a URL it is a SQLite file in the state folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Raw")]
pub struct DatabaseConfig {
    /// `sqlite:///PATH` or `postgres://USER@HOST/DATABASE`.
    pub url: Option<String>,
    /// A file that holds the URL, for a URL with a password.
    pub url_file: Option<PathBuf>,
    /// The time that PostgreSQL may take to give a connection, and for each statement. After it, a request is answered with 503.
    pub timeout: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    url: Option<String>,
    url_file: Option<PathBuf>,
    timeout: SignedDuration,
}

impl Default for Raw {
    fn default() -> Self {
        Raw { url: None, url_file: None, timeout: SignedDuration::from_secs(10) }
    }
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        DatabaseConfig::of(Raw::default())
    }
}

impl DatabaseConfig {
    /// Returns the URL, read from its file if one is configured, or `default` if there is no URL.
    pub fn url_or(&self, default: impl FnOnce() -> String) -> io::Result<String> {
        match (&self.url, &self.url_file) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(file)) => Ok(std::fs::read_to_string(file)?.trim().to_owned()),
            (None, None) => Ok(default()),
        }
    }

    fn of(raw: Raw) -> Self {
        let Raw { url, url_file, timeout } = raw;
        DatabaseConfig { url, url_file, timeout: timeout.unsigned_abs() }
    }
}

impl TryFrom<Raw> for DatabaseConfig {
    type Error = &'static str;

    fn try_from(raw: Raw) -> Result<Self, Self::Error> {
        if !raw.timeout.is_positive() {
            return Err("timeout: must be greater than 0s");
        }
        Ok(DatabaseConfig::of(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_comes_from_the_configuration_from_a_file_or_is_the_default() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "postgres://u:p@h/d\n").unwrap();
        let in_file = format!("url_file = '{}'", file.path().display());
        for (text, want) in [
            ("", "sqlite:///s/x.db"),
            ("url = 'sqlite:///y.db'", "sqlite:///y.db"),
            (&*in_file, "postgres://u:p@h/d"),
        ] {
            let read: DatabaseConfig = toml::from_str(text).unwrap();
            assert_eq!(read.url_or(|| "sqlite:///s/x.db".to_owned()).unwrap(), want);
            assert_eq!(read.timeout, Duration::from_secs(10));
        }
    }

    #[test]
    fn a_timeout_of_nothing_is_refused() {
        for (text, words) in
            [("timeout = '0s'", "timeout: must be greater than 0s"), ("colour = 1", "colour")]
        {
            let why = toml::from_str::<DatabaseConfig>(text).unwrap_err().to_string();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
