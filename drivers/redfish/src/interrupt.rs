//! The non-maskable interrupt (DSP0268 `ComputerSystem.Reset` with the reset type `Nmi`).

use async_trait::async_trait;
use bmc::{BmcError, Interrupt};
use serde_json::json;

use crate::power::{RESET, is_about_the_value};
use crate::service::{Service, TASK_PATIENCE};

const NMI: &str = "Nmi";

#[async_trait]
impl Interrupt for Service {
    async fn inject_nmi(&self) -> Result<(), BmcError> {
        let system = self.system().await?.body;
        let cannot = |why: &str| BmcError::Unsupported { what: format!("inject an NMI{why}") };
        let target = self.action(&system, RESET).ok_or_else(|| cannot(""))?;
        let allowed = self.allowed(&system, RESET, "ResetType").await?;
        if let Some(others) = allowed.filter(|all| all.iter().all(|one| one != NMI)) {
            return Err(cannot(&format!(": it offers {}", others.join(", "))));
        }
        let answer = self.post(&target, json!({"ResetType": NMI})).await?;
        if !answer.status.is_success() && answer.messages().iter().any(is_about_the_value) {
            return Err(cannot(""));
        }
        self.watch(answer.accepted(&self.origin.host())?, TASK_PATIENCE).await.map(|_| ())
    }
}
