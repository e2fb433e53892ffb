//! Imports of the configuration of an iDRAC, as far as they set the first boot device of the machine (Dell, *iDRAC Redfish API*,
//! `ImportSystemConfiguration`, attributes `ServerBoot.1`).

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::boot::OverrideDuration;
use crate::log::Protocol;
use crate::redfish::answer::Answer;
use crate::redfish::face::RedfishFace;
use crate::redfish::problem::{Message, Problem};
use crate::redfish::task::TaskKind;

const IMPORT: &str = "OemManager.ImportSystemConfiguration";

impl RedfishFace {
    /// Starts the job of an import. A configuration that the BMC cannot read is refused.
    pub(super) fn import_configuration(
        &self,
        form: &Map<String, Value>,
    ) -> Result<Answer, Problem> {
        let missing = |name| Problem::parameter(Message::PARAMETER_MISSING, IMPORT, name);
        let wrong =
            |name, value: &Value| Problem::argument(Message::PARAMETER_FORMAT, IMPORT, name, value);
        let share = form.get("ShareParameters").ok_or_else(|| missing("ShareParameters"))?;
        if !share["Target"].is_array() {
            return Err(wrong("ShareParameters", share));
        }
        let buffer = form.get("ImportBuffer").ok_or_else(|| missing("ImportBuffer"))?;
        let unreadable = || wrong("ImportBuffer", buffer);
        let text = buffer.as_str().ok_or_else(unreadable)?;
        if attribute(text, "FirstBootDevice").ok_or_else(unreadable)? != "VCD-DVD" {
            return Err(unreadable());
        }
        let lasting = match attribute(text, "BootOnce") {
            Some("Enabled") => OverrideDuration::Once,
            Some("Disabled") => OverrideDuration::Always,
            Some(_) | None => return Err(unreadable()),
        };
        self.machine.boot_virtual_cd(Protocol::Redfish, lasting);
        Ok(self.start_task(TaskKind::Import { ends_at: Instant::now() }))
    }
}

/// The value of an attribute of the server's boot. White space around a value is a part of the value, as in an iDRAC.
fn attribute<'a>(configuration: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("<Attribute Name=\"ServerBoot.1#{name}\">");
    let (_, rest) = configuration.strip_prefix("<SystemConfiguration>")?.split_once(&begin)?;
    Some(rest.split_once("</Attribute>")?.0)
}
