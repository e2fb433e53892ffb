//! The arguments of the vendor methods that subscribe to the events of a BMC.

use hardware::NewSubscription;
use serde_json::{Map, Value};
use url::Url;

/// The longest destination and context, in characters.
const LONGEST_TEXT: usize = 1024;
/// The most event types, and the most headers, of a subscription.
const MOST_ITEMS: usize = 16;
/// The longest name or value of a header, in characters.
const LONGEST_HEADER: usize = 1024;

/// An argument that a subscription cannot have: its name, and the problem.
pub(crate) type WrongArgument = (&'static str, &'static str);

/// Reads the properties of a subscription.
///
/// Unlike Ironic, which passes on any protocol and any URI, only `http` and `https` destinations are accepted: others would let a caller use
/// the BMC as a sender of mail or SNMP traps in the network of the BMCs.
pub(crate) fn read_subscription(
    arguments: &Map<String, Value>,
) -> Result<NewSubscription, WrongArgument> {
    let protocol = text(arguments, "Protocol")?;
    if protocol.is_some_and(|protocol| protocol != "Redfish") {
        return Err(("Protocol", "must be Redfish"));
    }
    let destination = text(arguments, "Destination")?.ok_or(("Destination", "is required"))?;
    check_destination(destination).map_err(|problem| ("Destination", problem))?;
    let context = text(arguments, "Context")?.unwrap_or_default();
    let event_types = match arguments.get("EventTypes") {
        None | Some(Value::Null) => vec!["Alert".to_owned()],
        Some(value) => read_event_types(value)
            .ok_or(("EventTypes", "must be a list of 1 to 16 event types"))?,
    };
    let headers = match arguments.get("HttpHeaders") {
        None | Some(Value::Null) => Vec::new(),
        Some(value) => read_headers(value).ok_or((
            "HttpHeaders",
            "must be a list of up to 16 headers, such as [{\"Content-Type\": \"application/json\"}]",
        ))?,
    };
    Ok(NewSubscription {
        destination: destination.to_owned(),
        context: context.to_owned(),
        event_types,
        headers,
    })
}

fn text<'a>(
    arguments: &'a Map<String, Value>,
    name: &'static str,
) -> Result<Option<&'a str>, WrongArgument> {
    let legal =
        |text: &&str| text.chars().count() <= LONGEST_TEXT && !text.chars().any(char::is_control);
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let problem = "must be a text of up to 1024 characters, without control characters";
            value.as_str().filter(legal).map(Some).ok_or((name, problem))
        }
    }
}

fn check_destination(destination: &str) -> Result<(), &'static str> {
    let url = Url::parse(destination).map_err(|_| "is not a URL")?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("must be an http or https URL with a host");
    }
    // The BMC shows the URL.
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or a password");
    }
    Ok(())
}

fn read_event_types(value: &Value) -> Option<Vec<String>> {
    let is_word = |word: &&str| {
        !word.is_empty() && word.len() <= 64 && word.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let listed = value.as_array().filter(|all| (1..=MOST_ITEMS).contains(&all.len()))?;
    let words = listed.iter().map(|it| it.as_str().filter(is_word).map(str::to_owned));
    words.collect()
}

/// Reads headers: a list of objects, each with names and values.
fn read_headers(value: &Value) -> Option<Vec<(String, String)>> {
    let listed = value.as_array()?;
    let mut headers = Vec::new();
    for (name, value) in
        listed.iter().map(Value::as_object).collect::<Option<Vec<_>>>()?.into_iter().flatten()
    {
        headers.push((name.clone(), value.as_str()?.to_owned()));
    }
    let is_legal = |(name, value): &(String, String)| is_token(name) && is_header_value(value);
    (headers.len() <= MOST_ITEMS && headers.iter().all(is_legal)).then_some(headers)
}

/// RFC 9110 §5.6.2.
fn is_token(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.len() <= LONGEST_HEADER && name.chars().all(legal)
}

/// A value without line breaks, which would begin another header.
fn is_header_value(value: &str) -> bool {
    value.len() <= LONGEST_HEADER && value.chars().all(|c| c == ' ' || c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(arguments: Value) -> Result<NewSubscription, WrongArgument> {
        read_subscription(arguments.as_object().unwrap())
    }

    #[test]
    fn a_subscription_needs_only_a_destination() {
        let least = read(json!({"Destination": "https://events.example/bmc?rack=7"})).unwrap();
        assert_eq!(least.destination, "https://events.example/bmc?rack=7");
        assert_eq!((least.context.as_str(), least.event_types), ("", vec!["Alert".to_owned()]));
        assert!(least.headers.is_empty());

        let most = read(json!({
            "Destination": "http://10.0.0.1:8080/", "Protocol": "Redfish", "Context": "r1u7",
            "EventTypes": ["Alert", "StatusChange"], "HttpHeaders": [{"Authorization": "Basic eA=="}],
        }));
        let most = most.unwrap();
        assert_eq!(most.headers, [("Authorization".to_owned(), "Basic eA==".to_owned())]);
        assert!(!format!("{most:?}").contains("eA=="), "a header may hold a secret");
        assert_eq!((most.context.as_str(), most.event_types.len()), ("r1u7", 2));
    }

    #[track_caller]
    fn refuse(name: &str, value: Value, problem: &str) {
        let mut arguments = json!({"Destination": "https://events.example/"});
        arguments[name] = value;
        let (field, why) = read(arguments).unwrap_err();
        assert_eq!(field, name);
        assert!(why.starts_with(problem), "{why}");
    }

    #[test]
    fn a_destination_is_a_web_address_without_a_login() {
        refuse("Destination", json!(null), "is required");
        refuse("Destination", json!(7), "must be a text");
        refuse("Destination", json!("/events"), "is not a URL");
        refuse("Destination", json!("mailto:ann@example.org"), "must be an http or https URL");
        refuse("Destination", json!("snmp://10.0.0.1:162"), "must be an http or https URL");
        refuse("Destination", json!("https://ann:x@events.example/"), "must not contain a user");
        refuse("Destination", json!(format!("https://e/{}", "a".repeat(1024))), "must be a text");
        refuse("Destination", json!("https://e/\r\nX: y"), "must be a text");
        refuse("Protocol", json!("SNMPv2c"), "must be Redfish");
    }

    #[test]
    fn other_arguments_are_checked() {
        refuse("Context", json!(["x"]), "must be a text");
        for wrong in [json!("Alert"), json!([]), json!([1]), json!(["a b"]), json!(vec!["A"; 17])] {
            refuse("EventTypes", wrong, "must be a list of 1 to 16 event types");
        }
        for wrong in [
            json!({"a": "b"}),
            json!(["a: b"]),
            json!([{"a": 1}]),
            json!([{"a b": "c"}]),
            json!([{"a": "b\r\nc: d"}]),
            json!([{"": "b"}]),
        ] {
            refuse("HttpHeaders", wrong, "must be a list of up to 16 headers");
        }
    }
}
