//! The password of a BMC account: requests to change it, and new passwords.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use serde_json::Value;

use crate::boot_setting::{check_stays, check_unchanging};
use crate::{
    AccountPassword, Driver, HistoryEntry, Node, PasswordRotation, RequestRefused, RotationStage,
};

const VERB: &str = "change the BMC password";

/// The length of new passwords, if the BMC takes it. More characters would not fit into IPMI, which often uses the same account.
const LENGTH: usize = 20;

/// The shortest new password, which has 72 random bits.
const SHORTEST: usize = 12;

/// The characters of new passwords, of which each stands for six bits. No BMC is known to refuse one of them.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Requests a new random password for the account by which the service logs in to the BMC of the node.
///
/// If an earlier change ended without knowing which password the BMC has, both passwords of that change are tried again first.
pub fn request_password_rotation(
    node: &Node,
    now: Timestamp,
) -> Result<(Node, HistoryEntry), RequestRefused> {
    if node.provision_state.is_busy() {
        return Err(RequestRefused::Locked { node: node.label(), state: node.provision_state });
    }
    let earlier = node.password_rotation.as_ref().filter(|it| !it.is_in_progress());
    if earlier.is_none() {
        check_unchanging(node)?;
    }
    check_stays(node, VERB)?;
    check_account(node)?;
    let rotation = match earlier {
        Some(earlier) => PasswordRotation {
            stage: RotationStage::Asked { times: 0 },
            since: now,
            ..earlier.clone()
        },
        None => {
            let (wanted, stage) = (Default::default(), RotationStage::Requested);
            PasswordRotation { wanted, stage, since: now }
        }
    };
    let after = Node { password_rotation: Some(rotation), failure: None, ..node.clone() };
    let event = "a new password of the BMC account requested".to_owned();
    let entry = HistoryEntry::changed(node, &after, event, now);
    Ok((after, entry))
}

/// Ends a change whose outcome is unknown, if a request sets the password, or the driver that reads it.
pub fn settle_password(before: &Node, after: &mut Node) {
    let is_unknown = after.password_rotation.as_ref().is_some_and(|it| !it.is_in_progress());
    let password =
        |node: &Node| node.driver.password_key().and_then(|key| node.driver_info.get(key).cloned());
    if is_unknown && (before.driver != after.driver || password(before) != password(&*after)) {
        after.password_rotation = None;
    }
}

/// Refuses a node whose driver logs in to no account.
fn check_account(node: &Node) -> Result<(), RequestRefused> {
    let refuse = |field: String, problem: &str| {
        Err(RequestRefused::Field { field, problem: problem.to_owned() })
    };
    let keys = match node.driver {
        Driver::Idrac | Driver::Redfish => ["redfish_username", "redfish_password"],
        Driver::Ipmi => ["ipmi_username", "ipmi_password"],
        Driver::FakeHardware | Driver::ManualManagement => {
            let problem = format!("{} logs in to no BMC account", node.driver);
            return refuse("driver".to_owned(), &problem);
        }
    };
    let is_text = |key: &str| {
        node.driver_info.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
    };
    match keys.into_iter().find(|key| !is_text(key)) {
        Some(key) => {
            let problem = "is missing; only the password of a named account can be changed";
            refuse(format!("driver_info.{key}"), problem)
        }
        None => Ok(()),
    }
}

/// Returns the length of a new password for a BMC that takes these lengths; `None` if none of them is safe.
pub fn new_password_length(taken: &RangeInclusive<usize>) -> Option<usize> {
    let length = LENGTH.clamp(*taken.start(), (*taken.end()).max(*taken.start()));
    (length >= SHORTEST && taken.contains(&length)).then_some(length)
}

/// Makes a password of `length` characters from random bytes, of which there must be no end. The password begins with a letter, has lower
/// and upper case, digits and other characters, and no character twice in a row, as the rules of BMCs ask.
pub fn new_password(length: usize, mut random: impl Iterator<Item = u8>) -> String {
    loop {
        let characters = random.by_ref().map(|byte| char::from(CHARACTERS[usize::from(byte & 63)]));
        let password: String = characters.take(length).collect();
        if password.len() < length || has_every_kind(&password) {
            return password;
        }
    }
}

fn has_every_kind(password: &str) -> bool {
    let has = |is: fn(char) -> bool| password.chars().any(is);
    let repeats = password.as_bytes().windows(2).any(|pair| pair[0] == pair[1]);
    password.starts_with(|c: char| c.is_ascii_alphabetic())
        && has(|c| c.is_ascii_lowercase())
        && has(|c| c.is_ascii_uppercase())
        && has(|c| c.is_ascii_digit())
        && has(|c| !c.is_ascii_alphanumeric())
        && !repeats
}

impl Node {
    /// Returns the node as if no change of the password were in progress, and the BMC had this password.
    pub fn with_account_password(&self, password: AccountPassword) -> Node {
        let mut node = Node { password_rotation: None, ..self.clone() };
        if let (AccountPassword::Wanted, Some(rotation)) = (password, &self.password_rotation) {
            node.driver_info.extend(rotation.wanted.clone());
        }
        node
    }

    /// Returns the node with a wanted password, for which the BMC was not asked.
    pub fn with_made_password(&self, password: String) -> Node {
        let mut node = self.clone();
        if let (Some(rotation), Some(key)) =
            (&mut node.password_rotation, self.driver.password_key())
        {
            rotation.wanted.insert(key.to_owned(), password.into());
            rotation.stage = RotationStage::Made;
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::drain_request::tests::{leaving, off};
    use crate::lending::tests::{ended, lent};
    use crate::{
        ChangeRefused, DrainStage, NodeUuid, State, Verb, WorkUuid, check_change, check_delete,
        request_power, request_verb,
    };

    const T0: Timestamp = Timestamp::UNIX_EPOCH;

    fn node() -> Node {
        let node = Node::new(NodeUuid::nil(), Driver::Redfish, T0);
        with_account(Node { provision_state: State::Enroll, ..node })
    }

    fn with_account(mut node: Node) -> Node {
        node.driver = Driver::Redfish;
        let info = json!({"redfish_username": "root", "redfish_password": "old"});
        node.driver_info = info.as_object().unwrap().clone();
        node
    }

    fn in_stage(stage: RotationStage) -> Node {
        let mut node = request_password_rotation(&node(), T0).unwrap().0;
        node = node.with_made_password("new".to_owned());
        node.password_rotation.as_mut().unwrap().stage = stage;
        node
    }

    #[test]
    fn a_request_waits_in_the_record_and_locks_the_node() {
        let (after, entry) = request_password_rotation(&node(), T0).unwrap();
        let rotation = after.password_rotation.clone().unwrap();
        assert_eq!((rotation.stage, rotation.wanted.len()), (RotationStage::Requested, 0));
        assert_eq!(entry.event, "a new password of the BMC account requested");
        let locked = request_password_rotation(&after, T0).unwrap_err();
        assert!(matches!(locked, RequestRefused::Password { .. }), "{locked}");
        let power = request_power(&after, hardware::PowerChange::On, T0).map(|_| ());
        let verb = request_verb(&after, Verb::Manage, WorkUuid::nil(), T0).map(|_| ());
        assert_eq!((power, verb), (Err(locked.clone()), Err(locked)));
        let mut moved = after.clone();
        moved.driver_info.insert("redfish_address".to_owned(), json!("https://other"));
        let refused = Err(ChangeRefused::Password { node: after.label() });
        assert_eq!(check_change(&after, &moved), refused);
        assert_eq!(check_delete(&after), refused);
    }

    #[test]
    fn a_request_does_not_disturb_work_the_end_of_a_lease_or_a_drain() {
        let request = |node: Node| request_password_rotation(&with_account(node), T0);
        assert!(request(lent(State::Active)).is_ok());
        let busy = request(lent(State::Deploying));
        assert!(matches!(busy, Err(RequestRefused::Locked { .. })), "{busy:?}");
        let over = request(ended(State::Active));
        assert!(matches!(over, Err(RequestRefused::LeaseEnded { .. })), "{over:?}");
        let drained = Some(leaving(off(), DrainStage::Wanted));
        let drained = request(Node { leaving: drained, ..lent(State::Active) });
        assert!(matches!(drained, Err(RequestRefused::Leaving { .. })), "{drained:?}");
    }

    #[test]
    fn a_node_without_an_account_is_refused_with_the_field() {
        let refusal = |node: &Node| request_password_rotation(node, T0).unwrap_err().to_string();
        let fake = Node { driver: Driver::FakeHardware, ..node() };
        assert_eq!(refusal(&fake), "driver: fake-hardware logs in to no BMC account");
        let ipmi = Node { driver: Driver::Ipmi, ..node() };
        let words = "driver_info.ipmi_username: is missing; only the password of a named account can be changed";
        assert_eq!(refusal(&ipmi), words);
    }

    #[test]
    fn after_an_unknown_outcome_a_request_tries_both_passwords_again() {
        let unknown = in_stage(RotationStage::Unknown);
        let again = request_password_rotation(&unknown, T0).unwrap().0;
        assert_eq!(again, in_stage(RotationStage::Asked { times: 0 }));
        assert_eq!(check_delete(&unknown), Ok(()));
        let locked = request_power(&unknown, hardware::PowerChange::On, T0).unwrap_err();
        assert!(locked.to_string().contains("enter the password"), "{locked}");
    }

    #[test]
    fn an_entered_password_ends_an_unknown_outcome() {
        let settled = |stage, entered: &str| {
            let before = in_stage(stage);
            let mut after = before.clone();
            after.driver_info.insert("redfish_password".to_owned(), entered.into());
            settle_password(&before, &mut after);
            after.password_rotation.is_none()
        };
        assert!(settled(RotationStage::Unknown, "third"));
        assert!(!settled(RotationStage::Unknown, "old"), "the request did not set it");
        assert!(!settled(RotationStage::Asked { times: 1 }, "third"));
    }

    #[test]
    fn the_wanted_password_takes_the_place_of_the_present_one() {
        let node = in_stage(RotationStage::Asked { times: 1 });
        let password =
            |which| node.with_account_password(which).driver_info["redfish_password"].clone();
        assert_eq!(password(AccountPassword::Present), "old");
        assert_eq!(password(AccountPassword::Wanted), "new");
        let after = node.with_account_password(AccountPassword::Wanted);
        assert_eq!((after.password_rotation, after.driver_info.len()), (None, 2));
    }

    #[test]
    fn the_length_is_the_best_that_the_bmc_takes() {
        let reversed = RangeInclusive::new(30, 8);
        let lengths = [8..=40, 1..=16, 8..=20, 24..=32, 8..=11, reversed, 0..=0];
        let want = [Some(20), Some(16), Some(20), Some(24), None, None, None];
        assert_eq!(lengths.map(|taken| new_password_length(&taken)), want);
    }

    proptest! {
        #[test]
        fn every_password_has_every_kind_of_character(seed: [u8; 32], length in 12_usize..=24) {
            // A generator of our own (SplitMix64), because the crate has no randomness.
            let mut state = u64::from_le_bytes(seed[..8].try_into().unwrap());
            let random = std::iter::repeat_with(|| {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (mixed >> 40) as u8
            });
            let password = new_password(length, random);
            prop_assert_eq!(password.len(), length);
            prop_assert!(has_every_kind(&password), "{}", password);
        }
    }
}
