//! The outcome of a request: the VM, after a wait if the caller waits.

use api_client::WithJson;
use api_client::clusterd::Vm;

use crate::api::Api;
use crate::output::Format;
use crate::wait_options::WaitOptions;

use super::wait::Goal;
use super::{show, wait};

/// Shows the VM. With `--wait`, waits until the goal is reached or cannot be reached.
pub(super) async fn show_outcome(
    api: &Api,
    vm: WithJson<Vm>,
    goal: Goal,
    patience: WaitOptions,
    format: Format,
) -> anyhow::Result<()> {
    let vm = if patience.wait {
        wait::for_goal(api, &vm, goal, patience.begin(), format).await?
    } else {
        vm
    };
    show::answer(vm).write(format)
}
