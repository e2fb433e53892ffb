//! The settings of machines' firmware.

use baremetal_core::{BiosSetting, NewBiosSetting, NodeUuid, apply_bios_settings};
use database::WriteKind::AnyStatementCanFail;
use database::{Result, reading, writing};
use jiff::Timestamp;

use crate::Store;
use crate::table::bios_setting;

impl Store {
    /// Returns the settings of the firmware of `node`, sorted by name.
    pub async fn list_bios_settings(&self, node: NodeUuid) -> Result<Vec<BiosSetting>> {
        reading!(self.database, |c| bios_setting::list(c, node).await)
    }

    /// Returns the setting `name` of the firmware of `node`.
    pub async fn find_bios_setting(
        &self,
        node: NodeUuid,
        name: &str,
    ) -> Result<Option<BiosSetting>> {
        let name = name.to_owned();
        reading!(self.database, |c| bios_setting::find(c, node, &name).await)
    }

    /// Records that a step has applied `settings` to the firmware of `node`. Other settings are dropped, as
    /// [`baremetal_core::apply_bios_settings`] describes.
    pub async fn apply_bios_settings(
        &self,
        node: NodeUuid,
        settings: &[NewBiosSetting],
        now: Timestamp,
    ) -> Result<()> {
        let settings = settings.to_vec();
        writing!(self.database, AnyStatementCanFail, |c| {
            let present = bios_setting::list(c, node).await?;
            let applied = apply_bios_settings(present, settings.clone(), now);
            bios_setting::replace(c, node, &applied).await
        })
    }

    /// Records that a step has reset the firmware of `node`: nothing is known about its settings.
    pub async fn reset_bios_settings(&self, node: NodeUuid) -> Result<()> {
        writing!(self.database, AnyStatementCanFail, |c| bios_setting::replace(c, node, &[]).await)
    }
}
