//! Imports nodes. Each node is written in one request, so an interrupted import has taken it as a whole or not at all.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ironic_node::IronicNode;
use super::mapping::{MovedNode, moved};
use super::source::{history, read_again};
use super::{Answer, Effect, Import};
use crate::ironic::{Object, reason, word};
use crate::let_go::{is_let_go, let_go_reason};
use crate::move_report::{MoveLine, MoveResult};

impl Import<'_> {
    /// Imports a node. Ironic keeps a node that is not taken as it was.
    pub(super) async fn node(
        &self,
        found: &IronicNode,
        taken: &BTreeSet<String>,
    ) -> anyhow::Result<MoveLine> {
        // All histories at once could exceed the memory.
        let history = history(&self.ironic, &found.node).await?;
        let found = IronicNode { history, ..found.clone() };
        let mut moved = self.moved(&found);
        let result = self.result(&found, &mut moved, taken).await?;
        if matches!(result, MoveResult::NotTaken { .. }) && !self.options.dry_run {
            self.give_back(&found.node).await?;
        }
        Ok(MoveLine::new("node", &found.node, result, moved.losses))
    }

    async fn result(
        &self,
        found: &IronicNode,
        moved: &mut MovedNode,
        taken: &BTreeSet<String>,
    ) -> anyhow::Result<MoveResult> {
        let is_controlled = self.source.is_controlled(&found.node);
        Ok(match self.check(found, moved, taken).await? {
            Answer::Refused(reasons) => MoveResult::NotTaken { reasons },
            Answer::Present if is_controlled && !self.options.quiesce => MoveResult::refused(
                "baremetald has the node, and Ironic controls its BMC too: repeat the command with --quiesce",
            ),
            Answer::Present => {
                if is_controlled && !self.options.dry_run {
                    self.quiesce(&found.node).await?;
                }
                MoveResult::Present
            }
            Answer::Imported if is_controlled && !self.options.quiesce => MoveResult::refused(
                "Ironic controls its BMC: use --quiesce, put the node into maintenance in Ironic, or stop Ironic's conductors",
            ),
            Answer::Imported if self.options.dry_run => MoveResult::WouldBeTaken,
            Answer::Imported if is_controlled => self.take_quiesced(found, moved, taken).await?,
            Answer::Imported => self.take(found, &moved.body).await?,
        })
    }

    /// Asks baremetald whether it would take the node. A network that baremetald refuses is lost if baremetald takes the node without it.
    async fn check(
        &self,
        found: &IronicNode,
        moved: &mut MovedNode,
        taken: &BTreeSet<String>,
    ) -> anyhow::Result<Answer> {
        if let Some(ours) = self.find_ours(&found.node).await? {
            moved.losses.extend(moved.network_missing_in(&ours));
            return Ok(Answer::Present);
        }
        if !moved.obstacles.is_empty() {
            return Ok(Answer::Refused(moved.obstacles.clone()));
        }
        let parent = word(&found.node, "parent_node");
        if !parent.is_empty() && self.source.has(parent) && !taken.contains(parent) {
            return Ok(Answer::Refused(vec!["parent_node: the parent was not taken".to_owned()]));
        }
        let path = path_of(&found.node);
        let checked = self.put(&path, &moved.body, Effect::Check).await?;
        if let Answer::Refused(why) = &checked
            && let Some(body) = moved.body_without_network()
        {
            let again = self.put(&path, &body, Effect::Check).await?;
            if matches!(again, Answer::Imported) {
                moved.body = body;
                moved.losses.extend(why.iter().cloned());
            }
            return Ok(again);
        }
        Ok(checked)
    }

    /// Takes a node after Ironic has let go of its BMC. The node is read again in between, because Ironic may have begun work meanwhile.
    async fn take_quiesced(
        &self,
        found: &IronicNode,
        moved: &mut MovedNode,
        taken: &BTreeSet<String>,
    ) -> anyhow::Result<MoveResult> {
        if let Err(why) = self.quiesce(&found.node).await {
            return Ok(MoveResult::refused(reason(why)?));
        }
        *moved = self.moved(&read_again(&self.ironic, found).await?);
        match self.check(found, moved, taken).await? {
            Answer::Imported => self.take(found, &moved.body).await,
            Answer::Present => Ok(MoveResult::Present),
            Answer::Refused(reasons) => Ok(MoveResult::NotTaken { reasons }),
        }
    }

    async fn take(&self, found: &IronicNode, body: &Value) -> anyhow::Result<MoveResult> {
        Ok(match self.put(&path_of(&found.node), body, Effect::Write).await? {
            Answer::Imported => MoveResult::Taken,
            Answer::Present => MoveResult::Present,
            Answer::Refused(reasons) => match self.find_ours(&found.node).await? {
                // The request of a killed run was still in progress, and has taken the node.
                Some(_) => MoveResult::Present,
                None => MoveResult::NotTaken { reasons },
            },
        })
    }

    fn moved(&self, found: &IronicNode) -> MovedNode {
        moved(found, &self.secrets, &self.options.replace)
    }

    /// Returns the node as baremetald has it, with the fields that the report compares.
    async fn find_ours(&self, node: &Object) -> anyhow::Result<Option<Object>> {
        let path = format!("/v1/nodes/{}?fields=uuid,network_data", word(node, "uuid"));
        self.ours.find(&path).await
    }

    /// Puts a node into maintenance in Ironic.
    async fn quiesce(&self, node: &Object) -> anyhow::Result<()> {
        if is_let_go(node) {
            return Ok(());
        }
        let body = json!({"reason": let_go_reason(node)});
        self.ironic.put(&maintenance_of(node), &body).await.map(drop)
    }

    /// Returns a node that is not taken to Ironic, if this run or an earlier one has put it into maintenance. A node that baremetald has
    /// stays in maintenance, or two services would control its BMC.
    async fn give_back(&self, node: &Object) -> anyhow::Result<()> {
        let path = format!("/v1/nodes/{}", word(node, "uuid"));
        let now: Option<Object> = self.ironic.find(&path).await?;
        if now.is_some_and(|now| is_let_go(&now)) && self.find_ours(node).await?.is_none() {
            self.ironic.delete(&maintenance_of(node)).await?;
        }
        Ok(())
    }
}

fn path_of(node: &Object) -> String {
    format!("/bedplate/v1/import/nodes/{}", word(node, "uuid"))
}

fn maintenance_of(node: &Object) -> String {
    format!("/v1/nodes/{}/maintenance", word(node, "uuid"))
}
