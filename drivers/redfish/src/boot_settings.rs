//! The boot mode (DSP0268 `ComputerSystem`, `Boot`) and secure boot (DSP0268 `SecureBoot`).

use async_trait::async_trait;
use bmc::{BmcError, Result};
use hardware::{BootMode, BootSetting, BootSettings, Health, PowerAndBootSettings, SecureBootKeys};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tracing::debug;
use url::Url;

use crate::answer::Answer;
use crate::boot::{ENABLED, MODE, TARGET, listed, mode, mode_word};
use crate::document::Document;
use crate::quirks;
use crate::service::{Resource, Service};

const SECURE_BOOT: &str = "SecureBootEnable";
const RESET_KEYS: &str = "#SecureBoot.ResetKeys";
const RESET_KEYS_TYPE: &str = "ResetKeysType";

#[async_trait]
impl bmc::BootSettings for Service {
    async fn read(&self) -> Result<PowerAndBootSettings> {
        let system = self.system().await?;
        let secure = self.secure_boot(&system).await?;
        let settings = Some(reported(&system, secure.as_ref()));
        let (power, health) = (self.reported(&system.body)?, health(&system.body));
        Ok(PowerAndBootSettings { power, health, settings })
    }

    async fn read_once(&self) -> Result<PowerAndBootSettings> {
        let has_secure_boot = !self.links().lacks_secure_boot;
        let system = match has_secure_boot {
            true => self.system().await?,
            false => self.system_and_close().await?,
        };
        self.links().lacks_secure_boot = system.body.link("SecureBoot").is_none();
        let power = self.reported(&system.body)?;
        // A BMC that fails to show one resource still tells the power state.
        let settings = match self.secure_boot_by(&system, Service::fetch_and_close).await {
            Ok(secure) => Some(reported(&system, secure.as_ref())),
            Err(error) => {
                debug!("secure boot cannot be read: {error}");
                None
            }
        };
        Ok(PowerAndBootSettings { power, health: health(&system.body), settings })
    }

    async fn read_power_once(&self) -> Result<PowerAndBootSettings> {
        let system = self.system_and_close().await?;
        let (power, health) = (self.reported(&system.body)?, health(&system.body));
        Ok(PowerAndBootSettings { power, health, settings: None })
    }

    async fn request(&self, wanted: BootSetting) -> Result<()> {
        let system = self.system().await?;
        match wanted {
            BootSetting::Mode(mode) => self.request_mode(&system, mode).await,
            BootSetting::SecureBoot(on) => self.request_secure_boot(&system, on).await,
        }
    }

    async fn request_keys(&self, wanted: SecureBootKeys) -> Result<()> {
        let cannot = |why: &str| BmcError::Unsupported {
            what: format!("replace the keys of secure boot: {why}"),
        };
        let secure = self.secure_boot(&self.system().await?).await?;
        let secure = secure.ok_or_else(|| cannot("it has no SecureBoot resource"))?;
        let action = self.action(&secure.body, RESET_KEYS);
        let action = action.ok_or_else(|| cannot("it has no action ResetKeys"))?;
        let word = match wanted {
            SecureBootKeys::Factory => "ResetAllKeysToDefault",
            SecureBootKeys::None => "DeleteAllKeys",
        };
        let allowed = self.allowed(&secure.body, RESET_KEYS, RESET_KEYS_TYPE).await?;
        if allowed.is_some_and(|allowed| !allowed.iter().any(|one| one == word)) {
            return Err(cannot(&format!("it does not list {word}")));
        }
        let answer = self.post(&action, json!({RESET_KEYS_TYPE: word})).await?;
        self.watch_for_next_start(answer.accepted(&self.origin.host())?).await
    }
}

impl Service {
    async fn request_mode(&self, system: &Resource, wanted: BootMode) -> Result<()> {
        let settings = self.boot_settings(system, MODE).await?;
        let resource = settings.as_ref().unwrap_or(system);
        let boot = with_mode(wanted, &system.body, resource.body.at("Boot"))?;
        self.patch_for_next_start(resource, json!({"Boot": boot})).await
    }

    async fn request_secure_boot(&self, system: &Resource, on: bool) -> Result<()> {
        let cannot = |why: &str| BmcError::Unsupported { what: format!("change secure boot{why}") };
        let secure = self.secure_boot(system).await?;
        let secure = secure.ok_or_else(|| cannot(": it has no SecureBoot resource"))?;
        if on && mode(system.body.at("Boot")) == Some(BootMode::Bios) {
            let why =
                " while the boot mode of the machine is bios: secure boot needs the boot mode uefi";
            return Err(cannot(why));
        }
        self.patch_for_next_start(&secure, json!({SECURE_BOOT: on})).await
    }

    /// Reads the SecureBoot resource of `system`; `None` if there is none.
    async fn secure_boot(&self, system: &Resource) -> Result<Option<Resource>> {
        self.secure_boot_by(system, Service::fetch).await
    }

    /// Like [`Service::secure_boot`]: `fetch` requests the resource.
    async fn secure_boot_by(
        &self,
        system: &Resource,
        fetch: impl AsyncFn(&Service, &Url) -> Result<Answer>,
    ) -> Result<Option<Resource>> {
        let Some(url) = self.link(&system.body, "SecureBoot") else { return Ok(None) };
        let answer = fetch(self, &url).await?;
        if quirks::supermicro_tells_secure_boot_only_with_a_licence(answer.status)
            || is_missing(answer.status)
        {
            return Ok(None);
        }
        self.resource(&url, answer).map(Some)
    }
}

/// Whether the BMC links to a resource that it does not have, or does not have at present: sushy-tools answers 501 in the mode Legacy.
fn is_missing(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
    )
}

/// The health of the whole system (DSP0268 `ComputerSystem`, `Status`). `HealthRollup` is not read: it also counts parts outside of the system.
fn health(system: &Value) -> Option<Health> {
    Health::find(system.at("Status").word("Health"))
}

fn reported(system: &Resource, secure: Option<&Resource>) -> BootSettings {
    BootSettings {
        mode: mode(system.body.at("Boot")),
        secure_boot: secure.and_then(|secure| secure.body.truth(SECURE_BOOT)),
    }
}

/// Returns the `Boot` property that requests the mode `wanted`; `pending` is the `Boot` property that accepts changes.
fn with_mode(wanted: BootMode, system: &Value, pending: &Value) -> Result<Value> {
    let word = mode_word(wanted);
    let boot = system.at("Boot");
    let listed = listed(MODE, system, pending);
    if boot.at(MODE).is_null() && pending.at(MODE).is_null() && listed.is_none() {
        return Err(BmcError::Unsupported {
            what: "change the boot mode: it shows none".to_owned(),
        });
    }
    if listed.is_some_and(|listed| !listed.contains(&word)) {
        return Err(BmcError::Unsupported { what: format!("boot in {word} mode") });
    }
    let mut change = json!({MODE: word});
    if quirks::ami_wants_the_boot_mode_too(system) {
        let current = |name: &str, otherwise: &str| match boot.word(name) {
            "" => otherwise.to_owned(),
            word => word.to_owned(),
        };
        change[ENABLED] = json!(current(ENABLED, "Once"));
        change[TARGET] = json!(current(TARGET, "Pxe"));
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(system: Value, want: Expect) {
        let boot = with_mode(BootMode::Bios, &system, system.at("Boot"));
        want.assert_eq(&boot.map_or_else(|e| e.to_string(), |boot| boot.to_string()));
    }

    #[test]
    fn a_mode_is_requested_if_the_bmc_has_modes_and_lists_it() {
        let plain = json!({"Boot": {MODE: "UEFI"}});
        check(plain, expect![[r#"{"BootSourceOverrideMode":"Legacy"}"#]]);
        check(json!({"Boot": {}}), expect!["this BMC cannot change the boot mode: it shows none"]);
        let listed = "BootSourceOverrideMode@Redfish.AllowableValues";
        let uefi = json!({"Boot": {MODE: "UEFI", listed: ["UEFI"]}});
        check(uefi, expect!["this BMC cannot boot in Legacy mode"]);
    }

    #[test]
    fn ami_gets_the_override_with_the_mode() {
        check(
            json!({"Manufacturer": "AMI", "Boot": {MODE: "UEFI"}}),
            expect![[
                r#"{"BootSourceOverrideEnabled":"Once","BootSourceOverrideMode":"Legacy","BootSourceOverrideTarget":"Pxe"}"#
            ]],
        );
        let boot = json!({MODE: "UEFI", ENABLED: "Continuous", TARGET: "Hdd"});
        check(
            json!({"Manufacturer": "AMI", "Boot": boot}),
            expect![[
                r#"{"BootSourceOverrideEnabled":"Continuous","BootSourceOverrideMode":"Legacy","BootSourceOverrideTarget":"Hdd"}"#
            ]],
        );
    }
}
