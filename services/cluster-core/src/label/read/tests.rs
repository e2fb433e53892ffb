use std::fmt::Debug;

use super::*;

/// Checks a parser: each text with its value, and the texts that are refused.
#[track_caller]
fn check<T: Debug + PartialEq>(
    parse: impl Fn(&str) -> Result<T, String>,
    good: impl IntoIterator<Item = (&'static str, T)>,
    bad: &[&str],
) {
    for (raw, want) in good {
        assert_eq!(parse(raw), Ok(want), "{raw:?}");
    }
    for raw in bad {
        assert!(parse(raw).is_err(), "{raw:?} is accepted");
    }
}

fn same(raw: &'static str) -> (&'static str, String) {
    (raw, raw.to_owned())
}

#[test]
fn booleans_have_the_spellings_of_magnum() {
    let good = ["true", "1", "yes", "on", "True", "ON"].map(|raw| (raw, true));
    let off = ["false", "0", "no", "off", "False", "OFF"].map(|raw| (raw, false));
    check(flag, good.into_iter().chain(off), &["", "y", "2", "truee", " true"]);
}

#[test]
fn numbers_are_whole_and_not_negative() {
    check(number, [("0", 0), ("7", 7), ("4294967295", u32::MAX)], &["", "-1", "1.5", "4294967296"]);
    check(
        cidr,
        [("10.1.0.0/16", Cidr::v4([10, 1, 0, 0], 16))],
        &["", "10.1.0.0", "10.1.0.0/33", "a"],
    );
}

#[test]
fn size_and_type_of_a_volume_come_in_any_order() {
    let volume = |size, kind: Option<&str>| Some(Volume { size, kind: kind.map(str::to_owned) });
    let mut one = None;
    assert_eq!(size(&mut one, "0"), Ok(()));
    assert_eq!(one, None);
    assert_eq!(size(&mut one, "20"), Ok(()));
    assert_eq!(one, volume(20, None));
    assert_eq!(kind(&mut one, "ssd"), Ok(()));
    assert_eq!(one, volume(20, Some("ssd")));
    assert_eq!(size(&mut one, "0"), Ok(()));
    assert_eq!(one, volume(0, Some("ssd")));
    assert!(size(&mut one, "x").is_err() && kind(&mut one, "").is_err());
    let mut other = None;
    assert_eq!(kind(&mut other, "ssd"), Ok(()));
    assert_eq!(other, volume(0, Some("ssd")));
}

#[test]
fn a_word_has_up_to_255_characters_that_no_file_needs_to_quote() {
    check(word, ["a", "A-z_0.:/@ b"].map(same), &["", "a\nb", "a\"b", "a,b", "ä"]);
    assert!(word(&"x".repeat(255)).is_ok() && word(&"x".repeat(256)).is_err());
    check(zone, ["nova", "az-1"].map(same), &["", "nova:host", "a\nb"]);
}

#[test]
fn a_list_has_no_empty_name() {
    let list = |raw: &str| words(raw, ',', |c| c.is_ascii_alphanumeric());
    let some = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    check(
        list,
        [("A", some(&["A"])), ("A,b1", some(&["A", "b1"])), (" A , b ", some(&["A", "b"]))],
        &["", ",", "A,", "A,,b", "A b", "A-b"],
    );
    let refused = list("").unwrap_err();
    assert_eq!(refused, "must be a list of names separated by ','");
}

#[test]
fn a_registry_may_have_a_port_and_a_path() {
    check(
        registry,
        [
            same("registry.example"),
            same("registry.example:5000/a-b_c"),
            ("registry.example/a/", "registry.example/a".to_owned()),
        ],
        &["", "/", "https://registry.example", "a//b", "a b", "a\n"],
    );
    assert!(registry(&"x".repeat(255)).is_ok() && registry(&"x".repeat(256)).is_err());
}

#[test]
fn a_domain_has_labels_of_1_to_63_characters() {
    check(
        domain,
        [same("a"), same("k8s.example-1.org"), ("a.b.", "a.b".to_owned())],
        &["", ".", "a..b", "A", "-a", "a-", "a_b", "a b", ".a", "a.."],
    );
    let (most, more) = ("x".repeat(63), "x".repeat(64));
    assert!(domain(&most).is_ok() && domain(&more).is_err());
    // Two labels of 63, one of 52 and two dots are 180 characters.
    let whole = |last: usize| domain(&format!("{most}.{most}.{}", "x".repeat(last)));
    assert!(whole(52).is_ok() && whole(53).is_err());
}

#[test]
fn names_of_octavia_are_understood() {
    check(
        provider,
        [
            ("amphora", Provider::Amphora),
            ("octavia", Provider::Amphora),
            ("ovn", Provider::Ovn),
            ("f5-1", Provider::Other("f5-1".to_owned())),
        ],
        &["", "a b", "a@b", "a\n"],
    );
    check(
        algorithm,
        [
            ("ROUND_ROBIN", Algorithm::RoundRobin),
            ("LEAST_CONNECTIONS", Algorithm::LeastConnections),
            ("SOURCE_IP", Algorithm::SourceIp),
            ("SOURCE_IP_PORT", Algorithm::SourceIpPort),
        ],
        &["", "round_robin"],
    );
}

#[test]
fn choices_have_one_spelling() {
    check(affinity, [("soft-anti-affinity", false), ("anti-affinity", true)], &["", "affinity"]);
    check(
        pod_network,
        [("driver", PodNetwork::Driver), ("routes", PodNetwork::Routes)],
        &["", "Driver"],
    );
    check(delivery, [("claim", Delivery::Claim), ("inline", Delivery::Inline)], &["", "Inline"]);
}

#[test]
fn a_tag_names_one_version_of_an_image() {
    check(tag, ["v1.34.1", "A_b-c.1", "_a"].map(same), &["", "latest", ".a", "-a", "a b", "a:b"]);
    assert!(tag(&"x".repeat(128)).is_ok() && tag(&"x".repeat(129)).is_err());
}
