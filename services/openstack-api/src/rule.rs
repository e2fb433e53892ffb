//! The rule of a route: the role that each kind of caller needs.

use serde::Serialize;

/// The callers who may use a route, and the resources they may use it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The role required of callers who reach all resources.
    pub cloud: Role,
    /// Whether services of the cloud may use the route with all resources, whatever role other callers need.
    pub services: bool,
    /// The role required in the project that owns the resource; `None` if owners may not use the route.
    pub owner: Option<Role>,
    /// The role required in the project that the resource is lent to; `None` if lessees may not use the route.
    pub lessee: Option<Role>,
}

words::words! {
    /// The roles of Keystone that this policy knows, by their names, each including the one before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Role {
        /// May read.
        Reader = "reader",
        /// May create and change resources.
        Member = "member",
        /// May also make decisions for a whole project.
        Manager = "manager",
        /// May do everything in the whole cloud.
        Admin = "admin",
    }
}

/// How a caller is related to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The caller reaches all resources.
    Cloud,
    /// The resource belongs to the caller's project.
    Owner,
    /// The resource is lent to the caller's project.
    Lessee,
}

impl Rule {
    /// Lets every caller with any role read, for data that belongs to nobody.
    pub const ANY_READER: Rule = Rule {
        cloud: Role::Reader,
        services: true,
        owner: Some(Role::Reader),
        lessee: Some(Role::Reader),
    };

    /// Lets administrators read everything and managers the data of their project, for the audit trail.
    pub const TRAIL: Rule =
        Rule { cloud: Role::Admin, services: false, owner: Some(Role::Manager), lessee: None };

    /// The role required of a caller with this relation; `None` if such callers may not use the route.
    pub fn role(self, relation: Relation) -> Option<Role> {
        match relation {
            Relation::Cloud => Some(self.cloud),
            Relation::Owner => self.owner,
            Relation::Lessee => self.lessee,
        }
    }
}

impl Role {
    /// Parses Keystone's name of a role; `None` if the policy does not know the role.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "service" => Some(Role::Member),
            _ => Role::find(name),
        }
    }
}
