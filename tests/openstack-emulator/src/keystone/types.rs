//! The resource types of Keystone. Keystone stores fields that it does not know, so the tables have only fields with a default.

use crate::object::Kind;
use crate::resource::ResourceType;

#[rustfmt::skip]
pub(super) static TYPES: [ResourceType; 7] = [
    ResourceType {
        kind: Kind::Project, path: "projects", plural: "projects", single: "project",
        not_found: ("", "Could not find project: {}."),
        fields: r#"always enabled=true domain_id="default" is_domain=false parent_id="default" description="" tags=[] options={}"#,
    },
    ResourceType {
        kind: Kind::User, path: "users", plural: "users", single: "user",
        not_found: ("", "Could not find user: {}."), fields: r#"always enabled=true domain_id="default" password-"#,
    },
    ResourceType {
        kind: Kind::Role, path: "roles", plural: "roles", single: "role",
        not_found: ("", "Could not find role: {}."), fields: "always enabled=true",
    },
    ResourceType {
        kind: Kind::Domain, path: "domains", plural: "domains", single: "domain",
        not_found: ("", "Could not find domain: {}."), fields: "always enabled=true",
    },
    ResourceType {
        kind: Kind::Region, path: "regions", plural: "regions", single: "region",
        not_found: ("", "Could not find region: {}."), fields: r#"always description="" parent_region_id=null"#,
    },
    ResourceType {
        kind: Kind::Service, path: "services", plural: "services", single: "service",
        not_found: ("", "Could not find service: {}."), fields: "always enabled=true",
    },
    ResourceType {
        kind: Kind::Endpoint, path: "endpoints", plural: "endpoints", single: "endpoint",
        not_found: ("", "Could not find endpoint: {}."), fields: "always enabled=true",
    },
];

/// The filters that lists of a type accept.
pub(super) fn filters(of: &ResourceType) -> &'static [&'static str] {
    match of.path {
        "regions" => &["parent_region_id"],
        "services" => &["name", "type"],
        "endpoints" => &["interface", "service_id", "region_id"],
        _ => &["name", "domain_id", "enabled"],
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tables_can_be_read() {
        super::TYPES.iter().for_each(crate::resource::check_table);
    }
}
