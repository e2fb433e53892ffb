//! Passwords of BMC accounts: made by the rules of the BMC, requested, and confirmed by a login.

use std::iter::repeat_with;
use std::sync::Arc;

use baremetal_core::{
    AccountPassword, ActionOutcome, Node, PasswordSeen, Problem, RequestRefused, RotationStage,
    new_password, new_password_length,
};
use baremetal_store::StoreError;
use bmc::{Account, BmcError};
use secrecy::ExposeSecret;

use crate::conductor::Conductor;
use crate::context::TurnContext;
use crate::problem::{self, Result, bad_request, cannot};

/// How many nodes that share a BMC a refusal names.
const MOST_NAMES: u32 = 8;

impl Conductor {
    /// Returns why the password of the node's BMC must not be changed: other nodes use the same BMC, and would have a wrong password.
    pub async fn shared_bmc(&self, node: &Node) -> Result<Option<RequestRefused>, StoreError> {
        self.context.shared_bmc(node).await
    }
}

impl TurnContext {
    async fn shared_bmc(&self, node: &Node) -> Result<Option<RequestRefused>, StoreError> {
        let others = self.store.nodes_at_bmc_of(node, MOST_NAMES).await?;
        if others.is_empty() {
            return Ok(None);
        }
        let others = others.iter().map(Node::label).collect::<Vec<_>>().join(", ");
        Ok(Some(RequestRefused::SharedBmc { node: node.label(), others }))
    }

    /// Makes a random password that the BMC takes. The node with the password is recorded before the BMC is asked for it.
    pub(crate) async fn make_password(&self, node: &Node) -> Result<ActionOutcome> {
        // Another node may have got this BMC since the request.
        if let Some(shared) = self.shared_bmc(node).await? {
            return Err(bad_request(shared.to_string()).into());
        }
        let account = self.account(node, AccountPassword::Present)?;
        let taken = account.password_length().await.map_err(|error| self.note_bmc(node, &error))?;
        let Some(length) = new_password_length(&taken) else {
            let what = "take a password of 12 characters or more";
            return Err(cannot(what).into());
        };
        let password = new_password(length, repeat_with(rand::random::<u8>));
        Ok(ActionOutcome::PasswordMade(Box::new(node.with_made_password(password))))
    }

    /// Asks the BMC for the wanted password, with the present one.
    pub(crate) async fn change_password(&self, node: &Node) -> Result<ActionOutcome> {
        let account = self.account(node, AccountPassword::Present)?;
        let wanted = self.bmcs.wanted_password(node).map_err(Problem::from)?;
        let Err(error) = account.set_password(wanted.expose_secret()).await else {
            return Ok(ActionOutcome::PasswordAsked);
        };
        let problem = self.note_bmc(node, &error);
        let is_in_doubt = matches!(error, BmcError::Refused { transient: true, .. });
        Ok(match problem::is_refusal(&error) && !is_in_doubt {
            true => ActionOutcome::PasswordRefused(problem),
            false => ActionOutcome::PasswordAsked,
        })
    }

    /// Tries both passwords, the wanted one first, if the BMC may have either.
    pub(crate) async fn look_at_password(&self, node: &Node) -> PasswordSeen {
        let stage = node.password_rotation.as_ref().map(|rotation| rotation.stage);
        if !matches!(stage, Some(RotationStage::Asked { .. })) {
            return PasswordSeen::NotSeen;
        }
        for password in [AccountPassword::Wanted, AccountPassword::Present] {
            let account = match self.account(node, password) {
                Ok(account) => account,
                Err(problem) => return PasswordSeen::Failed(problem),
            };
            match account.try_password().await {
                Ok(true) => return PasswordSeen::Is(password),
                Ok(false) => {}
                Err(error) => return PasswordSeen::Failed(self.note_bmc(node, &error)),
            }
        }
        PasswordSeen::Neither
    }

    /// Returns the account of the node's BMC, logged in to with this password.
    fn account(&self, node: &Node, password: AccountPassword) -> Result<Arc<dyn Account>, Problem> {
        let bmc = self.bmcs.of_account(node, password)?;
        bmc.account.ok_or_else(|| cannot("change the password of its account"))
    }
}

#[cfg(test)]
mod tests {
    use baremetal_core::{NodeUuid, State, request_password_rotation};
    use bmc_emulator::Machine;

    use super::*;
    use crate::problem::ActionError;
    use crate::samples::{SampleMachine, conductor, settings};

    /// A node of this machine for which a new password is requested.
    fn requested(context: &TurnContext, machine: &SampleMachine) -> Node {
        let idle = State::Manageable;
        let node = Node { provision_state: idle, work: None, ..machine.node().0 };
        let node = Node { target_provision_state: None, ..node };
        request_password_rotation(&node, context.now()).unwrap().0
    }

    /// The node with a password that was made, and for which the BMC may have been asked.
    async fn asked(context: &TurnContext, node: &Node) -> Node {
        let made = context.make_password(node).await.unwrap();
        let ActionOutcome::PasswordMade(mut node) = made else { panic!("{made:?}") };
        assert_eq!(context.look_at_password(&node).await, PasswordSeen::NotSeen);
        node.password_rotation.as_mut().unwrap().stage = RotationStage::Asked { times: 1 };
        *node
    }

    #[tokio::test]
    async fn a_login_shows_which_password_the_bmc_has() {
        let context = conductor(settings()).await.context;
        let sample = SampleMachine::start().await;
        let machine: &Machine = &sample.machine;
        let node = asked(&context, &requested(&context, &sample)).await;
        let look = async || context.look_at_password(&node).await;
        assert_eq!(look().await, PasswordSeen::Is(AccountPassword::Present));
        let outcome = context.change_password(&node).await.unwrap();
        assert_eq!(outcome, ActionOutcome::PasswordAsked);
        assert_eq!(machine.password().len(), 20);
        assert_eq!(look().await, PasswordSeen::Is(AccountPassword::Wanted));
        assert!(context.bmcs.of(&node).is_err(), "nothing else logs in meanwhile");
        let done = node.with_account_password(AccountPassword::Wanted);
        assert!(context.bmcs.of(&done).unwrap().power.state().await.is_ok());
        machine.faults().update(|faults| faults.refuse_credentials = true);
        assert_eq!(look().await, PasswordSeen::Neither);
    }

    #[tokio::test]
    async fn a_refusal_is_told_from_an_answer_that_leaves_it_open() {
        let context = conductor(settings()).await.context;
        let sample = SampleMachine::start().await;
        let node = asked(&context, &requested(&context, &sample)).await;
        sample.machine.faults().update(|faults| faults.refuse_passwords = true);
        let refused = context.change_password(&node).await.unwrap();
        let is_final = |it: &ActionOutcome| matches!(it, ActionOutcome::PasswordRefused(problem) if !problem.transient);
        assert!(is_final(&refused), "{refused:?}");
        let broken = bmc_emulator::StatusFault {
            status: 500,
            method: Some("PATCH".to_owned()),
            ..Default::default()
        };
        sample.machine.faults().update(|faults| faults.status.push(broken));
        let open = context.change_password(&node).await.unwrap();
        assert_eq!(open, ActionOutcome::PasswordAsked);
    }

    #[tokio::test]
    async fn a_bmc_that_another_node_uses_gets_no_password() {
        let context = conductor(settings()).await.context;
        let sample = SampleMachine::start().await;
        let node = requested(&context, &sample);
        let other = Node { id: NodeUuid::new_v4(), password_rotation: None, ..node.clone() };
        context.store.insert_node(&other).await.unwrap();
        let refused = context.make_password(&node).await.unwrap_err();
        let ActionError::Machine(problem) = refused else { panic!("{refused}") };
        assert!(problem.cause.ends_with(&format!("would be wrong: {}", other.label())));
        assert_eq!(context.shared_bmc(&other).await.unwrap(), None);
    }
}
