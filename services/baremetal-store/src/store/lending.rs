//! Nodes with leases, and the outbox of notices about them.

use baremetal_core::{HistoryEntry, Node};
use database::WriteKind::{AnyStatementCanFail, OnlyFirstStatementCanFail};
use database::outbox::{self, Letter, Outbox};
use database::{Result, writing};
use jiff::Timestamp;

use crate::Store;
use crate::table::history;

impl Store {
    /// Like [`Store::update_node`], with notices in the same transaction. Also returns how many notices were dropped because the outbox is
    /// full.
    pub async fn update_node_and_notify(
        &self,
        node: &Node,
        history: &[HistoryEntry],
        letters: &[Letter],
        now: Timestamp,
    ) -> Result<(Node, usize)> {
        let (node, lines, letters) = (self.sealed(node).await?, history.to_vec(), letters.to_vec());
        let notifier = self.notifier();
        let written = writing!(self.database, OnlyFirstStatementCanFail, |c| {
            let written = notifier.update_node(c, node).await?;
            history::append(c, written.id, &lines).await?;
            let lost = outbox::append(c, &letters, now).await?;
            Ok((written, lost))
        })?;
        self.measure_states(history);
        Ok(written)
    }

    /// Gives up the delivery of a notice: removes it from the outbox, and adds `said` to the history of its node. If the notice was removed
    /// before, the history gets no second entry.
    pub async fn give_up_notice(&self, letter: i64, said: Option<&HistoryEntry>) -> Result<()> {
        let said = said.cloned();
        writing!(self.database, AnyStatementCanFail, |c| {
            if outbox::delete(c, letter).await?
                && let Some(said) = said
            {
                history::append(c, said.node, std::slice::from_ref(&said)).await?;
            }
            Ok(())
        })
    }

    /// Returns the outbox with the notices that have to be sent.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(self.database.clone())
    }
}
