//! Actions on existing servers.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{MICROVERSION, SERVICE};
use crate::error::Result;
use crate::session::Session;

/// An action on a server. Nova performs it in the background: the server's status shows the progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAction {
    Start,
    /// Asks the operating system to shut down, and switches the server off if that takes too long.
    Stop,
    /// Asks the operating system to reboot.
    RebootSoftly,
    /// Switches the server off and on.
    RebootHard,
    /// Changes the flavor; the new size must be confirmed or reverted.
    Resize {
        flavor_id: String,
    },
    ConfirmResize,
    /// Restores the old size.
    RevertResize,
    /// Reinstalls the server from an image and keeps its addresses.
    Rebuild {
        image_id: String,
    },
    /// Stores the server as an image, so that it uses no host.
    Shelve,
    /// Restores a shelved server.
    Unshelve,
    /// Restricts all further actions to administrators.
    Lock,
    Unlock,
    /// Live-migrates the server to a host that the scheduler chooses. Administrators only. If no host fits, the server stays where it is,
    /// and the failure shows only later.
    MigrateLive,
}

impl ServerAction {
    fn body(&self) -> Value {
        match self {
            ServerAction::Start => json!({"os-start": null}),
            ServerAction::Stop => json!({"os-stop": null}),
            ServerAction::RebootSoftly => json!({"reboot": {"type": "SOFT"}}),
            ServerAction::RebootHard => json!({"reboot": {"type": "HARD"}}),
            ServerAction::Resize { flavor_id } => json!({"resize": {"flavorRef": flavor_id}}),
            ServerAction::ConfirmResize => json!({"confirmResize": null}),
            ServerAction::RevertResize => json!({"revertResize": null}),
            ServerAction::Rebuild { image_id } => json!({"rebuild": {"imageRef": image_id}}),
            ServerAction::Shelve => json!({"shelve": null}),
            ServerAction::Unshelve => json!({"unshelve": null}),
            ServerAction::Lock => json!({"lock": null}),
            ServerAction::Unlock => json!({"unlock": null}),
            ServerAction::MigrateLive => {
                json!({"os-migrateLive": {"host": null, "block_migration": "auto"}})
            }
        }
    }
}

/// Performs an action. A conflict means that the server's state does not permit the action; the server may already be in the wanted state.
pub async fn act(session: &Session, id: &str, action: &ServerAction) -> Result<()> {
    post(session, id, action.body()).await
}

/// Requests an image of a server's disk and returns the image's id. Derive the name from the snapshot's purpose: the image is found again
/// by its name in Glance.
pub async fn snapshot(session: &Session, id: &str, name: &str) -> Result<String> {
    #[derive(Deserialize)]
    struct Made {
        image_id: String,
    }
    let body = json!({"createImage": {"name": name, "metadata": {}}});
    let call = session.post(SERVICE, &["servers", id, "action"], body).microversion(MICROVERSION);
    Ok(call.send().await?.whole::<Made>()?.image_id)
}

/// Returns the id of the last request that Nova accepted for a server; `None` if there was none. Nova records the id before the server's
/// task ends.
pub async fn last_request(session: &Session, id: &str) -> Result<Option<String>> {
    #[derive(Deserialize)]
    struct Taken {
        request_id: String,
    }
    // The newest comes first (Compute API, "List Actions For Server").
    let path = ["servers", id, "os-instance-actions"];
    let call = session.get(SERVICE, &path).microversion(MICROVERSION);
    let taken: Vec<Taken> = call.under("instanceActions").await?;
    Ok(taken.into_iter().next().map(|it| it.request_id))
}

async fn post(session: &Session, id: &str, body: Value) -> Result<()> {
    let call = session.post(SERVICE, &["servers", id, "action"], body);
    call.microversion(MICROVERSION).done().await
}
