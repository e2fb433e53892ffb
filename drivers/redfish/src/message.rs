//! The messages in a BMC's error bodies (DSP0266 §8.6, DSP0268 `Message`).

use serde_json::Value;

use crate::document::{Document, one_line};

/// The most messages that are read of one error: more would not help a reader.
const MOST_MESSAGES: usize = 4;

/// One entry of `@Message.ExtendedInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The key in the message registry without its version: `ActionParameterMissing`.
    pub(crate) key: String,
    /// The sentence; empty if there is none.
    pub(crate) text: String,
}

/// Reads the messages of an error body; none if the body is not an error.
pub(crate) fn messages(body: &[u8]) -> Vec<Message> {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return Vec::new() };
    let error = body.at("error");
    // DSP0266 puts messages into `error`; some BMCs put them beside `error`. A Task has its messages in `Messages`.
    let lists = [
        error.items("@Message.ExtendedInfo"),
        body.items("@Message.ExtendedInfo"),
        body.items("Messages"),
    ];
    let said = lists.into_iter().flatten().take(MOST_MESSAGES).map(|entry| Message {
        key: key(entry.word("MessageId")),
        text: entry.text("Message").unwrap_or_default(),
    });
    let mut said: Vec<Message> = said.filter(|message| !message.key.is_empty()).collect();
    if said.iter().all(|message| message.text.is_empty())
        && let Some(text) = error.text("message")
    {
        said.insert(0, Message { key: key(error.word("code")), text });
    }
    said
}

/// Joins all messages to one sentence; empty if there are none.
pub(crate) fn sentence(messages: &[Message]) -> String {
    let reported = messages.iter().map(|message| match message.text.as_str() {
        "" => message.key.as_str(),
        text => text,
    });
    reported.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Removes the registry and its version: `Base.1.8.GeneralError` becomes `GeneralError`.
fn key(id: &str) -> String {
    one_line(id.rsplit('.').next().unwrap_or(id))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(body: &str, want: Expect) {
        want.assert_eq(&sentence(&messages(body.as_bytes())));
    }

    #[test]
    fn extended_info_is_read() {
        check(
            r#"{"error": {"code": "Base.1.8.GeneralError", "message": "See ExtendedInfo.",
                "@Message.ExtendedInfo": [
                  {"MessageId": "Base.1.8.PropertyValueNotInList", "Message": "Usb is not in the list."},
                  {"MessageId": "IDRAC.2.8.SYS518"}]}}"#,
            expect!["Usb is not in the list.; SYS518"],
        );
    }

    #[test]
    fn without_sentences_the_error_message_is_read() {
        check(
            r#"{"error": {"code": "Base.1.0.GeneralError", "message": "no such domain",
                "@Message.ExtendedInfo": [{"MessageId": "Base.1.0.GeneralError"}]}}"#,
            expect!["no such domain; GeneralError"],
        );
    }

    #[test]
    fn bodies_without_an_error_have_no_messages() {
        check("", expect![""]);
        check("<html>Not Found</html>", expect![""]);
        check(r#"{"error": "broken"}"#, expect![""]);
        check(r#"{"error": {"@Message.ExtendedInfo": {"MessageId": 3}}}"#, expect![""]);
    }

    proptest! {
        #[test]
        fn any_body_is_read_and_bounded(body: Vec<u8>) {
            prop_assert!(messages(&body).len() <= MOST_MESSAGES + 1);
        }
    }
}
