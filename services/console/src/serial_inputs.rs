//! Routes typed text to the open serial console of the same user and node, so that both use one connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use websocket::Bytes;

/// The number of inputs that may wait for the machine.
const PIECES: usize = 16;

/// The user's token and the node.
type InputOwner = (String, String);

/// The inputs of all open serial consoles. Clones share their state.
#[derive(Clone, Debug, Default)]
pub(crate) struct SerialInputs(Arc<Mutex<HashMap<InputOwner, mpsc::Sender<Bytes>>>>);

/// The input of one open serial console. Dropping the value removes the input.
#[derive(Debug)]
pub(crate) struct SerialInput {
    owner: InputOwner,
    all: SerialInputs,
    typed: mpsc::Receiver<Bytes>,
}

impl SerialInputs {
    /// Routes the input of this user for this node here from now on.
    pub(crate) fn register(&self, user: &str, node: &str) -> SerialInput {
        let (sender, typed) = mpsc::channel(PIECES);
        let owner = (user.to_owned(), node.to_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(owner.clone(), sender);
        SerialInput { owner, all: self.clone(), typed }
    }

    /// Finds the open serial console of this user for this node.
    pub(crate) fn find(&self, user: &str, node: &str) -> Option<mpsc::Sender<Bytes>> {
        let owner = (user.to_owned(), node.to_owned());
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&owner).filter(|it| !it.is_closed()).cloned()
    }
}

impl SerialInput {
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.typed.recv().await
    }
}

impl Drop for SerialInput {
    fn drop(&mut self) {
        self.typed.close();
        let mut all = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A second page of the same user may have registered since; only a closed input is removed.
        if all.get(&self.owner).is_some_and(mpsc::Sender::is_closed) {
            all.remove(&self.owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn input_goes_to_the_page_that_was_opened_last() {
        let inputs = SerialInputs::default();
        assert!(inputs.find("ann", "n1").is_none());
        let first = inputs.register("ann", "n1");
        let mut second = inputs.register("ann", "n1");
        drop(first);
        inputs.find("ann", "n1").unwrap().send(Bytes::from_static(b"x")).await.unwrap();
        assert_eq!(second.next().await.unwrap(), "x");
        assert!(inputs.find("bob", "n1").is_none() && inputs.find("ann", "n2").is_none());
        drop(second);
        assert!(inputs.find("ann", "n1").is_none());
    }
}
