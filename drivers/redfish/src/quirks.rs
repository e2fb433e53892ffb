//! Workarounds for single products, each with its source.
//!
//! Each function is named after the product that needs it. Every workaround must be traceable to someone who met the problem: most are
//! field fixes of OpenStack's `sushy` and `ironic`, cited by their release notes.

use hardware::Persistence;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::document::Document;
use crate::message::Message;

/// Supermicro shows virtual media as a USB CD; its `Cd` stands for a physical drive that the machine lacks. The ARS-111GL-NHR is the
/// exception (sushy, `supermicro-vmedia-dev-workaround`).
pub(crate) fn supermicro_boots_virtual_media_from_usb(system: &Value, listed: &[&str]) -> bool {
    system.word("Manufacturer").eq_ignore_ascii_case("supermicro")
        && !system.word("Model").eq_ignore_ascii_case("ars-111gl-nhr")
        && listed.contains(&"UsbCd")
}

/// Returns the path of the action and the body that make the virtual CD the next boot of a machine with Dell's iDRAC, whose `Cd` stands for a
/// drive in the machine; `None` if `manager` has no such action (ironic, `drac/boot.py`; sushy, `set_virtual_boot_device`).
///
/// The configuration must not contain insignificant white space, or its job fails.
pub(crate) fn idrac_boots_virtual_cd(
    manager: &Value,
    wanted: Persistence,
) -> Option<(&str, Value)> {
    let actions = manager.at("Actions").at("Oem").as_object()?;
    let name = |name: &str| name.ends_with("#OemManager.ImportSystemConfiguration");
    let (_, action) = actions.iter().find(|(key, _)| name(key))?;
    let component = manager.word("Id");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if component.is_empty() || !component.chars().all(is_plain) {
        return None;
    }
    let once = match wanted {
        Persistence::Once => "Enabled",
        Persistence::Continuous => "Disabled",
    };
    let attribute =
        |name: &str, value| format!("<Attribute Name=\"ServerBoot.1#{name}\">{value}</Attribute>");
    let attributes =
        [attribute("BootOnce", once), attribute("FirstBootDevice", "VCD-DVD")].concat();
    let configuration = format!(
        "<SystemConfiguration><Component FQDD=\"{component}\">{attributes}</Component></SystemConfiguration>"
    );
    let body = json!({"ShareParameters": {"Target": ["ALL"]}, "ImportBuffer": configuration});
    Some((action.at("target").as_str()?, body))
}

/// AMI's firmware, also under ASRock Rack's name, accepts a boot override only together with the boot mode, even if the mode does not
/// change (ironic, `VENDORS_REQUIRING_FULL_BOOT_REQUEST`).
pub(crate) fn ami_wants_the_boot_mode_too(system: &Value) -> bool {
    let maker = system.word("Manufacturer").to_ascii_lowercase();
    maker.starts_with("american megatrends international")
        || ["ami", "asrockrack", "redfish_compatible"].contains(&maker.as_str())
}

/// Supermicro's BMC answers 403 to a request for `SecureBoot` unless it has a licence (ironic, `get_secure_boot_state`).
pub(crate) fn supermicro_tells_secure_boot_only_with_a_licence(status: StatusCode) -> bool {
    status == StatusCode::FORBIDDEN
}

/// Huawei's 1288H calls its managers `Managers` (sushy, `retry-on-missing-managedby`).
pub(crate) fn managers_of(system: &Value) -> &[Value] {
    match system.at("Links").items("ManagedBy") {
        [] => system.at("Links").items("Managers"),
        found => found,
    }
}

/// Whether a refusal only means that the request came at a bad time.
///
/// - HPE iLO, while the machine is in its power-on self-test: `UnableToModifyDuringSystemPOST` (ironic, `_is_during_post_error`), and
///   shortly after a change of power: `InvalidOperationForSystemState` (sushy, `retry-ilo-not-ready-error`).
/// - Dell iDRAC, after any job: `SYS518` (sushy, `check_retry_on_exception`).
/// - Any BMC whose queue of jobs is full: `ResourceExhaustion` (DSP8011, Base), or that updates firmware: `UpdateInProgress` (DSP8011,
///   Update).
/// - Dell iDRAC10, shortly after switching off: `On` is an `ActionParameterValueConflict` (ironic, `_set_power_state`).
pub(crate) fn is_temporary(message: &Message) -> bool {
    matches!(
        message.key.as_str(),
        "UnableToModifyDuringSystemPOST"
            | "InvalidOperationForSystemState"
            | "SYS518"
            | "ActionParameterValueConflict"
            | "ResourceExhaustion"
            | "UpdateInProgress"
    )
}

/// Returns `body` of a refused `InsertMedia` extended by the parameter that the BMC reports as missing, if the refusal names one.
///
/// The first request has `Image` alone, because Supermicro X11 and X12 refuse `Inserted` and `WriteProtected` (sushy,
/// `fix-insert-media-payload`).
pub(crate) fn missing_from_insert(refusal: &[Message], body: &Value) -> Option<Value> {
    let missed = |parameter: &str| {
        let about_absence = |message: &&Message| {
            matches!(
                message.key.as_str(),
                "ActionParameterMissing" | "PropertyMissing" | "GeneralError"
            )
        };
        body.get(parameter).is_none()
            && refusal.iter().filter(about_absence).any(|m| m.text.contains(parameter))
    };
    if missed("TransferProtocolType") {
        return nokia_wants_the_transfer_protocol(body);
    }
    if missed("TransferMethod") {
        // Needed according to sushy, `handle_transfer_method`.
        return Some(with(body, &[("TransferMethod", "Stream")]));
    }
    if missed("UserName") || missed("Password") {
        return Some(nvidia_dgx_wants_credentials(body));
    }
    None
}

/// Nokia's servers require the protocol although the URL names it (sushy, `retry-if-transferprototype-missing`).
fn nokia_wants_the_transfer_protocol(body: &Value) -> Option<Value> {
    let (scheme, _) = body.word("Image").split_once(':')?;
    Some(with(body, &[("TransferProtocolType", &scheme.to_ascii_uppercase())]))
}

/// NVIDIA's DGX requires a user and a password even for images that need none (sushy, `insertmedia-credentials-detection`).
fn nvidia_dgx_wants_credentials(body: &Value) -> Value {
    with(body, &[("UserName", "none"), ("Password", "none")])
}

fn with(body: &Value, additions: &[(&str, &str)]) -> Value {
    let mut body = body.clone();
    for (name, value) in additions {
        body[*name] = json!(value);
    }
    body
}

/// Whether a refusal of `SimpleUpdate` is about its targets, which are optional (DSP0268) and which Ironic sends to few services (ironic,
/// `_submit_simple_update`).
pub(crate) fn some_services_take_no_targets(refusal: &[Message]) -> bool {
    let about_support = |message: &&Message| {
        matches!(
            message.key.as_str(),
            "ActionParameterNotSupported" | "ActionParameterUnknown" | "PropertyUnknown"
        )
    };
    refusal.iter().filter(about_support).any(|message| message.text.contains("Targets"))
}

/// Returns `body` of a refused request for a volume in the form that an older service understands, if the refusal is about the form.
///
/// - A name that the client did not ask for is left out. Ironic sends only names that a client asked for (ironic,
///   `_construct_volume_payload`).
/// - Before Volume v1.3.1 (DSP0268), a volume has a `VolumeType` and no `RAIDType`.
pub(crate) fn older_services_know_fewer_properties_of_volumes(
    refusal: &[Message],
    body: &Value,
    name_is_optional: bool,
) -> Option<Value> {
    let about = |property: &str| {
        let is_form = |message: &&Message| {
            matches!(
                message.key.as_str(),
                "PropertyUnknown"
                    | "PropertyNotWritable"
                    | "PropertyMissing"
                    | "CreateFailedMissingReqProperties"
            )
        };
        refusal.iter().filter(is_form).any(|message| message.text.contains(property))
    };
    let mut older = body.clone();
    let fields = older.as_object_mut()?;
    if name_is_optional && about("Name") && fields.remove("Name").is_some() {
        return Some(older);
    }
    let level = fields.get("RAIDType").and_then(Value::as_str);
    let kind = volume_type(level?)?;
    if !about("RAIDType") && !about("VolumeType") {
        return None;
    }
    fields.remove("RAIDType");
    fields.insert("VolumeType".to_owned(), json!(kind));
    Some(older)
}

/// Returns the `VolumeType` of a `RAIDType` (DSP0268).
fn volume_type(level: &str) -> Option<&'static str> {
    Some(match level {
        "RAID0" => "NonRedundant",
        "RAID1" => "Mirrored",
        "RAID5" => "StripedWithParity",
        "RAID10" => "SpannedMirrors",
        "RAID50" => "SpannedStripesWithParity",
        _ => return None,
    })
}

/// OpenBMC, as in Cisco's C845A M8, lists drives that only a browser can fill: such a drive has no `InsertMedia` and refuses a PATCH
/// (ironic, `cisco-c845a-vmedia-fix`).
pub(crate) fn openbmc_drive_takes_no_address(drive: &Value) -> bool {
    drive.at("Actions").get("#VirtualMedia.InsertMedia").is_none()
}

/// The WebSocket of OpenBMC's web server with the serial port of the machine (bmcweb, `obmc_console.hpp`).
pub(crate) const OPENBMC_CONSOLE: &str = "/console0";

/// OpenBMC has a WebSocket with the serial port, and its Redfish documents do not tell the URL (bmcweb, `systems.hpp`).
pub(crate) fn openbmc_tells_no_console(manager: &Value) -> bool {
    manager.word("Model").eq_ignore_ascii_case("openbmc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(key: &str, text: &str) -> Message {
        Message { key: key.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn supermicro_has_a_usb_cd() {
        let x12 = json!({"Manufacturer": "Supermicro", "Model": "SYS-120U-TNR"});
        assert!(supermicro_boots_virtual_media_from_usb(&x12, &["Cd", "UsbCd"]));
        assert!(!supermicro_boots_virtual_media_from_usb(&x12, &["Cd"]));
        let arm = json!({"Manufacturer": "Supermicro", "Model": "ARS-111GL-NHR"});
        assert!(!supermicro_boots_virtual_media_from_usb(&arm, &["Cd", "UsbCd"]));
        let dell = json!({"Manufacturer": "Dell Inc.", "Model": "R750"});
        assert!(!supermicro_boots_virtual_media_from_usb(&dell, &["Cd", "UsbCd"]));
    }

    #[test]
    fn ami_is_recognized_by_each_of_its_names() {
        for maker in ["AMI", "ASRockRack", "American Megatrends International, LLC."] {
            assert!(ami_wants_the_boot_mode_too(&json!({"Manufacturer": maker})), "{maker}");
        }
        for maker in ["Miami Computers", "Dell Inc.", ""] {
            assert!(!ami_wants_the_boot_mode_too(&json!({"Manufacturer": maker})), "{maker}");
        }
    }

    #[test]
    fn huawei_1288h_names_its_managers_differently() {
        let managers = [json!({"@odata.id": "/redfish/v1/Managers/1"})];
        assert_eq!(managers_of(&json!({"Links": {"Managers": managers}})), managers);
        assert_eq!(managers_of(&json!({"Links": {"ManagedBy": managers}})), managers);
        assert!(managers_of(&json!({})).is_empty());
    }

    #[test]
    fn ilo_and_idrac_refuse_temporarily() {
        assert!(is_temporary(&message("UnableToModifyDuringSystemPOST", "")));
        assert!(is_temporary(&message("SYS518", "")));
        assert!(!is_temporary(&message("PropertyNotWritable", "")));
    }

    #[test]
    fn openbmc_drives_without_insert_media_are_skipped() {
        let action = json!({"target": "/redfish/v1/x"});
        let web = json!({"Actions": {"#VirtualMedia.EjectMedia": action}});
        assert!(openbmc_drive_takes_no_address(&web));
        let url = json!({"Actions": {"#VirtualMedia.InsertMedia": action}});
        assert!(!openbmc_drive_takes_no_address(&url));
    }

    #[test]
    fn a_missing_parameter_is_added_to_insert_media() {
        let body = json!({"Image": "https://10.0.0.1/a.iso"});
        let nokia = message("ActionParameterMissing", "requires TransferProtocolType");
        let body = missing_from_insert(std::slice::from_ref(&nokia), &body).unwrap();
        assert_eq!(
            body,
            json!({"Image": "https://10.0.0.1/a.iso", "TransferProtocolType": "HTTPS"})
        );
        assert_eq!(missing_from_insert(&[nokia], &body), None);

        let dgx = message("ActionParameterMissing", "requires the parameter UserName");
        let body = missing_from_insert(&[dgx], &body).unwrap();
        assert_eq!((&body["UserName"], &body["Password"]), (&json!("none"), &json!("none")));

        let other = message("ResourceInUse", "TransferMethod");
        assert_eq!(missing_from_insert(&[other], &body), None);
    }
}
