//! Nodes that are lent until a time, and who is told of that.

use baremetal_core::{HistoryEntry, Node, NodeUuid};
use database::Extent::{AnyDecides, FirstDecides};
use database::StoreError;
use database::outbox::{self, Letter, Outbox};
use jiff::Timestamp;

use crate::Store;
use crate::table::{history, node};

impl Store {
    /// The nodes that are lent until a time, for a conductor that starts.
    pub async fn lent_nodes(&self) -> Result<Vec<NodeUuid>, StoreError> {
        self.database.read(|c| Box::pin(node::lent(c))).await
    }

    /// As [`Store::update_node`], with the letters that tell of it. Beside the node: how many letters there was no place for.
    pub async fn update_node_and_tell(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        letters: &[Letter],
        now: Timestamp,
    ) -> Result<(Node, usize), StoreError> {
        let (node, lines, letters) = (self.sealed(node).await?, history.to_vec(), letters.to_vec());
        self.database
            .write(FirstDecides, move |c| {
                Box::pin(async move {
                    let written = node::update(c, &node).await?;
                    history::append(c, node.id, &lines).await?;
                    let lost = outbox::append(c, &letters, now).await?;
                    Ok((written, lost))
                })
            })
            .await
    }

    /// Gives a letter up: strikes it out, and adds what is `said` of that to the history of its node. Who was given up before is not
    /// said anything of again.
    pub async fn give_up_letter(
        &self,
        letter: i64,
        said: Option<&HistoryEntry>,
    ) -> Result<(), StoreError> {
        let said = said.cloned();
        self.database
            .write(AnyDecides, move |c| {
                Box::pin(async move {
                    if outbox::strike(c, letter).await?
                        && let Some(said) = said
                    {
                        history::append(c, said.node, std::slice::from_ref(&said)).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// The letters that are to be sent.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(self.database.clone())
    }
}
