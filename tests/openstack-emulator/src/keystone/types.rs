//! The resource types of Keystone. Keystone stores fields that it does not know, so the tables have only fields with a default.

use crate::object::Kind;
use crate::resource::{ResourceType, test_tables};

/// A type with the usual names and error.
macro_rules! record {
    ($kind:ident, $plural:literal, $single:literal, $fields:literal) => {
        ResourceType {
            kind: Kind::$kind,
            path: $plural,
            plural: $plural,
            single: $single,
            not_found: ("", concat!("Could not find ", $single, ": {}.")),
            fields: $fields,
        }
    };
}

#[rustfmt::skip]
pub(super) static TYPES: [ResourceType; 7] = [
    record!(Project, "projects", "project", r#"always enabled=true domain_id="default" is_domain=false parent_id="default" description="" tags=[] options={}"#),
    record!(User, "users", "user", r#"always enabled=true domain_id="default" password-"#),
    record!(Role, "roles", "role", "always enabled=true"),
    record!(Domain, "domains", "domain", "always enabled=true"),
    record!(Region, "regions", "region", r#"always description="" parent_region_id=null"#),
    record!(Service, "services", "service", "always enabled=true"),
    record!(Endpoint, "endpoints", "endpoint", "always enabled=true"),
];

#[rustfmt::skip]
pub(super) static TRUST: ResourceType = record!(Trust, "trusts", "trust", r#"
    new trustor_user_id=null trustee_user_id=null project_id=null impersonation=false expires_at=null remaining_uses=null
    never roles=[] redelegation_count=0 redelegated_trust_id=null deleted_at=null
"#);

#[rustfmt::skip]
pub(super) static CREDENTIAL: ResourceType = ResourceType {
    not_found: ("", "Could not find application credential: {}."),
    ..record!(ApplicationCredential, "application_credentials", "application_credential", r#"
        new name=null description=null expires_at=null unrestricted=false access_rules
        never system=null roles=[] project_id
    "#)
};

/// The filters that lists of a type accept.
pub(super) fn filters(of: &ResourceType) -> &'static [&'static str] {
    match of.path {
        "regions" => &["parent_region_id"],
        "services" => &["name", "type"],
        "endpoints" => &["interface", "service_id", "region_id"],
        _ => &["name", "domain_id", "enabled"],
    }
}

test_tables!(TYPES.iter().chain([&CREDENTIAL, &TRUST]));
