//! Parses the kernel's command line like an agent.

use url::Url;

/// The parameters that an agent uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) api: Url,
    pub(super) token: String,
    pub(super) inspection: Option<Url>,
    pub(super) boot_mac: Option<String>,
    /// Whether the inventory contains what the switches send by LLDP.
    pub(super) lldp: bool,
}

impl Parameters {
    /// Parses a command line; the error is the reason why no agent can run.
    pub(super) fn parse(line: &str) -> Result<Parameters, String> {
        let value = |key: &str| {
            let words = line.split_ascii_whitespace().filter_map(|word| word.split_once('='));
            words.filter(|(found, _)| *found == key).map(|(_, value)| value).next_back()
        };
        let url = |key: &str| -> Result<Option<Url>, String> {
            let parsed = value(key).map(Url::parse).transpose();
            parsed.map_err(|_| format!("{key} is not a URL"))
        };
        Ok(Parameters {
            api: url("ipa-api-url")?.ok_or("the command line names no ipa-api-url")?,
            // The conductor gives no token to an unknown machine.
            token: value("ipa-agent-token").unwrap_or_default().to_owned(),
            inspection: url("ipa-inspection-callback-url")?,
            // pxelinux puts the hardware type, 01, before the address.
            boot_mac: value("BOOTIF").map(|text| {
                let bare = text.strip_prefix("01-").filter(|rest| rest.len() == 17);
                bare.unwrap_or(text).replace('-', ":").to_lowercase()
            }),
            lldp: value("ipa-collect-lldp") == Some("1"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_an_agent_are_read() {
        let line = "initrd=initrd ipa-api-url=http://10.0.0.1:6386 ipa-agent-token=t BOOTIF=01-52-54-00-AA-00-01";
        let read = Parameters::parse(line).unwrap();
        assert_eq!(read.api.as_str(), "http://10.0.0.1:6386/");
        assert_eq!(read.token, "t");
        assert_eq!(read.boot_mac.as_deref(), Some("52:54:00:aa:00:01"));
        assert!(Parameters::parse("quiet").is_err());
    }
}
