//! Who follows which machine's console, so that what they type goes by the connection that they have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use websocket::Bytes;

/// So many pieces wait for the machine.
const PIECES: usize = 16;

/// Who, and which machine's.
type Whose = (String, String);

/// The keyboards of all who follow a console. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyboards(Arc<Mutex<HashMap<Whose, mpsc::Sender<Bytes>>>>);

/// One of them, as long as this is kept.
#[derive(Debug)]
pub(crate) struct Plugged {
    whose: Whose,
    all: Keyboards,
    typed: mpsc::Receiver<Bytes>,
}

impl Keyboards {
    /// What this one types there comes here from now on.
    pub(crate) fn plug(&self, who: &str, node: &str) -> Plugged {
        let (sender, typed) = mpsc::channel(PIECES);
        let whose = (who.to_owned(), node.to_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(whose.clone(), sender);
        Plugged { whose, all: self.clone(), typed }
    }

    /// Where what this one types there goes, if it follows the console.
    pub(crate) fn find(&self, who: &str, node: &str) -> Option<mpsc::Sender<Bytes>> {
        let whose = (who.to_owned(), node.to_owned());
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&whose).filter(|it| !it.is_closed()).cloned()
    }
}

impl Plugged {
    /// What is typed next.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.typed.recv().await
    }
}

impl Drop for Plugged {
    fn drop(&mut self) {
        self.typed.close();
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Who has the page open twice plugged in another one since.
        if all.get(&self.whose).is_some_and(mpsc::Sender::is_closed) {
            all.remove(&self.whose);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_typed_goes_to_the_page_that_was_opened_last() {
        let keyboards = Keyboards::default();
        assert!(keyboards.find("ann", "n1").is_none());
        let first = keyboards.plug("ann", "n1");
        let mut second = keyboards.plug("ann", "n1");
        drop(first);
        keyboards.find("ann", "n1").unwrap().send(Bytes::from_static(b"x")).await.unwrap();
        assert_eq!(second.next().await.unwrap(), "x");
        assert!(keyboards.find("bob", "n1").is_none() && keyboards.find("ann", "n2").is_none());
        drop(second);
        assert!(keyboards.find("ann", "n1").is_none());
    }
}
