//! What can be done to a server once it is there.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{MICROVERSION, SERVICE};
use crate::error::CloudError;
use crate::session::Session;

/// Something that can be done to a server. All of it goes on after the answer: look at the server's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAction {
    /// Switch it on.
    Start,
    /// Ask its system to shut down, and switch it off where that takes too long.
    Stop,
    /// Ask its system to reboot.
    RebootSoftly,
    /// Switch it off and on.
    RebootHard,
    /// Give it another flavor, to be confirmed or reverted.
    Resize {
        /// The flavor's id.
        flavor_id: String,
    },
    /// Keep the new size.
    ConfirmResize,
    /// Go back to the old size.
    RevertResize,
    /// Make it anew of an image, with its addresses.
    Rebuild {
        /// The image's id.
        image_id: String,
    },
    /// Keep it as an image, using no host.
    Shelve,
    /// Bring it back from there.
    Unshelve,
    /// Let only administrators do anything to it.
    Lock,
    /// Let its project do so again.
    Unlock,
    /// Move it as it runs to whichever host the scheduler finds. For administrators; that no host takes it turns out later, and it stays
    /// where it is.
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

/// Does something to a server. A conflict says that it is not in a state in which that can be done; it may be in
/// the state that is wanted.
pub async fn act(session: &Session, id: &str, action: &ServerAction) -> Result<(), CloudError> {
    post(session, id, action.body()).await
}

/// Makes an image of a server's disk, and gives its id. Derive the name from what the snapshot is for: it is how it
/// is found again, in Glance.
pub async fn snapshot(session: &Session, id: &str, name: &str) -> Result<String, CloudError> {
    #[derive(Deserialize)]
    struct Made {
        image_id: String,
    }
    let body = json!({"createImage": {"name": name, "metadata": {}}});
    let call = session.post(SERVICE, &["servers", id, "action"], body).microversion(MICROVERSION);
    Ok(call.send().await?.whole::<Made>()?.image_id)
}

/// The id of the request that Nova took up last for a server, if it ever took up one. It is noted before the server changes back to rest.
pub async fn last_request(session: &Session, id: &str) -> Result<Option<String>, CloudError> {
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

async fn post(session: &Session, id: &str, body: Value) -> Result<(), CloudError> {
    let call = session.post(SERVICE, &["servers", id, "action"], body);
    call.microversion(MICROVERSION).done().await
}
