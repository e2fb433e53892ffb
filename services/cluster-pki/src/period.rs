//! Reads the period of validity of a certificate.

use jiff::Timestamp;
use x509_parser::pem::parse_x509_pem;

/// The period in which a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub begins_at: Timestamp,
    pub ends_at: Timestamp,
}

/// Reads the period of the first certificate in `pem`; `None` if there is none, or if its times cannot be represented.
pub fn read_period(pem: &str) -> Option<Period> {
    let (_, block) = parse_x509_pem(pem.as_bytes()).ok()?;
    let certificate = block.parse_x509().ok()?;
    let validity = certificate.validity();
    Some(Period {
        begins_at: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
        ends_at: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cluster_bootstrap::Name;

    use super::*;
    use crate::{Validity, make_pki};

    #[test]
    fn the_period_of_a_certificate_is_read_and_other_text_has_none() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let validity = Validity { now, lifetime: Duration::from_secs(60) };
        let pki = make_pki(&Name::try_from("blue").unwrap(), 0, validity).unwrap();
        let period = read_period(&pki.etcd.certificate).unwrap();
        assert_eq!(period.ends_at.as_second(), 1_700_000_060);
        assert_eq!(period.begins_at.as_second(), 1_700_000_000 - 3600);
        for text in ["", "CERTIFICATE", pki.service_account.public.as_str()] {
            assert_eq!(read_period(text), None, "{text}");
        }
    }
}
