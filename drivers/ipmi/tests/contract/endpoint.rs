//! The address and account of a BMC under test.

use std::env;
use std::net::SocketAddr;
use std::time::Duration;

use ipmi::{CipherSuite, Privilege, Target};

/// The address and account of a BMC under test.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) cipher_suite: Option<CipherSuite>,
    pub(crate) privilege: Privilege,
}

impl Endpoint {
    /// Reads `BEDPLATE_TEST_IPMI`: `user:password@address:port[/suite]`, separated by spaces.
    pub(crate) fn from_environment() -> Vec<Endpoint> {
        let list = env::var("BEDPLATE_TEST_IPMI").unwrap_or_default();
        list.split_whitespace().map(Endpoint::parse).collect()
    }

    fn parse(text: &str) -> Endpoint {
        let form = "BEDPLATE_TEST_IPMI wants user:password@address:port[/3|/17]";
        let (account, place) = text.rsplit_once('@').expect(form);
        let (username, password) = account.split_once(':').expect(form);
        let (address, suite) = place.split_once('/').unwrap_or((place, ""));
        Endpoint {
            name: address.to_owned(),
            address: address.parse().expect(form),
            username: username.to_owned(),
            password: password.to_owned(),
            cipher_suite: match suite {
                "" => None,
                "3" => Some(CipherSuite::Three),
                "17" => Some(CipherSuite::Seventeen),
                _ => panic!("{form}"),
            },
            privilege: Privilege::Operator,
        }
    }

    pub(crate) fn target(&self) -> Target {
        Target {
            address: self.address,
            username: self.username.clone(),
            password: self.password.clone().into(),
            cipher_suite: self.cipher_suite,
            privilege: self.privilege,
            timeout: Duration::from_secs(20),
        }
    }
}
