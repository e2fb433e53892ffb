//! Grants the lease of a new VM.

use ::lease::{Lease, Length, MailAddress, Terms};
use jiff::Timestamp;

use crate::Refusal;

/// Grants the lease that the request for a VM asks for; `None`: the VM exists without end.
pub fn grant_vm_lease(
    (length, notify): (Option<Length>, Option<&MailAddress>),
    terms: Terms,
    now: Timestamp,
) -> Result<Option<Lease>, Refusal> {
    let refused = |field, why: String| Refusal::Field { field, why };
    let lease = terms.grant(length, now).map_err(|why| refused("lease", why.to_string()))?;
    if lease.is_none() && notify.is_some() {
        let why = "needs lease: a VM without a lease sends no notices";
        return Err(refused("notify", why.to_owned()));
    }
    Ok(lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_as_the_terms_permit_and_notices_need_a_lease() {
        let now = Timestamp::UNIX_EPOCH;
        let days = |text: &str| Some(text.parse::<Length>().unwrap());
        let mail: MailAddress = "ann@example.org".parse().unwrap();
        let limited = Terms::new(None, days("9d")).unwrap();
        let unlimited = Terms::default();
        let table = [
            (unlimited, None, None, Ok(None)),
            (unlimited, days("3d"), None, Ok(Some(3))),
            (unlimited, days("3d"), Some(&mail), Ok(Some(3))),
            (limited, None, Some(&mail), Ok(Some(9))),
            (limited, days("10d"), None, Err("lease: a lease lasts at most 9d")),
            (
                unlimited,
                None,
                Some(&mail),
                Err("notify: needs lease: a VM without a lease sends no notices"),
            ),
        ];
        for (terms, length, notify, want) in table {
            let granted = grant_vm_lease((length, notify), terms, now);
            let days = |lease: Lease| lease.until.duration_since(now).as_hours() / 24;
            let granted = granted.map(|lease| lease.map(days)).map_err(|why| why.to_string());
            assert_eq!(granted, want.map_err(str::to_owned), "{length:?} {notify:?}");
        }
    }
}
