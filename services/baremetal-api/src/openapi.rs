//! `/openapi.json`: the OpenAPI document, generated from the routes.

use openstack_api::{JsonShape, Microversion, Operation, REFUSAL};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths, RefOr, Schema,
};

use crate::error::refused;
use crate::field::{Access, Fields};
use crate::{allocation, microversion, node, port};

/// Makes the document of these routes.
pub(crate) fn document(paths: Paths) -> OpenApi {
    let basic = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Basic).build());
    let description = "The OpenStack Bare Metal API v1, and the additional routes of Bedplate. Every request may carry \
                       X-OpenStack-Ironic-API-Version. A refusal is {\"error_message\": \"...\"}, whose text is JSON itself.";
    let info = InfoBuilder::new().title("Bedplate Bare Metal API").version("1.115");
    let components = ComponentsBuilder::new().schema(REFUSAL, refused());
    let components = components.security_scheme("basic", basic);
    OpenApiBuilder::new()
        .info(info.description(Some(description)).build())
        .paths(paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new("basic", [""; 0])]))
        .build()
}

/// The body of `POST /v1/nodes`: every field that a client may write.
pub(crate) fn node_body() -> RefOr<Schema> {
    let writable = node::Field::TABLE.iter().filter(|row| row.access != Access::Read);
    let fields = writable.map(|row| {
        let kind = if matches!(
            row.field,
            node::Field::DriverInfo
                | node::Field::InstanceInfo
                | node::Field::Properties
                | node::Field::Extra
                | node::Field::NetworkData
        ) {
            Type::Object
        } else if matches!(
            row.field,
            node::Field::Maintenance
                | node::Field::AutomatedClean
                | node::Field::Protected
                | node::Field::Retired
                | node::Field::DisablePowerOff
        ) {
            Type::Boolean
        } else {
            Type::String
        };
        (row.name, kind, row.since)
    });
    body(&["driver"], fields)
}

/// The body of `POST /v1/ports`: every field that a client may write.
pub(crate) fn port_body() -> RefOr<Schema> {
    let writable = port::Field::TABLE.iter().filter(|row| row.access != Access::Read);
    let fields = writable.map(|row| {
        let kind = if matches!(row.field, port::Field::Extra | port::Field::LocalLinkConnection) {
            Type::Object
        } else if matches!(row.field, port::Field::PxeEnabled | port::Field::IsSmartnic) {
            Type::Boolean
        } else {
            Type::String
        };
        (row.name, kind, row.since)
    });
    body(&["address", "node_uuid"], fields)
}

/// The body of `POST /v1/allocations`: every field that a client may write, and the node for an allocation that is recorded afterwards.
pub(crate) fn allocation_body() -> RefOr<Schema> {
    let writable = allocation::Field::TABLE.iter().filter(|row| row.access != Access::Read);
    let fields = writable.map(|row| {
        let kind = match row.field {
            allocation::Field::Extra => Type::Object,
            allocation::Field::Traits | allocation::Field::CandidateNodes => Type::Array,
            allocation::Field::Uuid
            | allocation::Field::Name
            | allocation::Field::NodeUuid
            | allocation::Field::State
            | allocation::Field::LastError
            | allocation::Field::ResourceClass
            | allocation::Field::Owner
            | allocation::Field::CreatedAt
            | allocation::Field::UpdatedAt
            | allocation::Field::Links => Type::String,
        };
        (row.name, kind, row.since)
    });
    body(&[], fields.chain([("node", Type::String, microversion::ALLOCATION_BACKFILL)]))
}

/// The JSON shape of a node. All fields are optional, because version, request and caller decide which are shown.
pub(crate) fn node() -> JsonShape {
    shown(node::Field::TABLE.iter().map(|row| {
        use node::Field;
        let shape = match row.field {
            Field::Links | Field::Ports | Field::States | Field::Portgroups | Field::Volume => {
                JsonShape::links()
            }
            Field::Traits => JsonShape::list(JsonShape::text()),
            Field::DriverInfo
            | Field::DriverInternalInfo
            | Field::Properties
            | Field::Extra
            | Field::InstanceInfo
            | Field::CleanStep
            | Field::DeployStep
            | Field::ServiceStep
            | Field::RaidConfig
            | Field::TargetRaidConfig
            | Field::NetworkData => JsonShape::any_object(),
            Field::Maintenance | Field::ConsoleEnabled | Field::Protected | Field::Retired => {
                JsonShape::boolean()
            }
            Field::AutomatedClean | Field::SecureBoot | Field::DisablePowerOff => {
                JsonShape::boolean().or_null()
            }
            Field::Uuid
            | Field::Name
            | Field::CreatedAt
            | Field::UpdatedAt
            | Field::Driver
            | Field::InstanceUuid
            | Field::InstanceName
            | Field::ChassisUuid
            | Field::PowerState
            | Field::TargetPowerState
            | Field::ProvisionState
            | Field::TargetProvisionState
            | Field::ProvisionUpdatedAt
            | Field::LastError
            | Field::MaintenanceReason
            | Field::Reservation
            | Field::InspectionStartedAt
            | Field::InspectionFinishedAt
            | Field::ResourceClass
            | Field::Fault
            | Field::Health
            | Field::ConductorGroup
            | Field::Conductor
            | Field::ProtectedReason
            | Field::Owner
            | Field::Lessee
            | Field::Description
            | Field::AllocationUuid
            | Field::RetiredReason
            | Field::BootMode
            | Field::Shard
            | Field::ParentNode
            | Field::Interface(_) => JsonShape::text().or_null(),
        };
        (row.name, shape)
    }))
}

/// The JSON shape of a port. All fields are optional, because version and request decide which are shown.
pub(crate) fn port() -> JsonShape {
    shown(port::Field::TABLE.iter().map(|row| {
        use port::Field;
        let shape = match row.field {
            Field::Links => JsonShape::links(),
            Field::Extra | Field::InternalInfo | Field::LocalLinkConnection => {
                JsonShape::any_object()
            }
            Field::PxeEnabled | Field::IsSmartnic | Field::AvailableForDynamicPortgroup => {
                JsonShape::boolean()
            }
            Field::Uuid
            | Field::CreatedAt
            | Field::UpdatedAt
            | Field::Address
            | Field::NodeUuid
            | Field::PortgroupUuid
            | Field::PhysicalNetwork
            | Field::Name
            | Field::Description
            | Field::Vendor
            | Field::Category => JsonShape::text().or_null(),
        };
        (row.name, shape)
    }))
}

/// The JSON shape of an allocation. All fields are optional, because version and request decide which are shown.
pub(crate) fn allocation() -> JsonShape {
    shown(allocation::Field::TABLE.iter().map(|row| {
        use allocation::Field;
        let shape = match row.field {
            Field::Links => JsonShape::links(),
            Field::Extra => JsonShape::any_object(),
            Field::Traits | Field::CandidateNodes => JsonShape::list(JsonShape::text()),
            Field::Uuid
            | Field::Name
            | Field::NodeUuid
            | Field::State
            | Field::LastError
            | Field::ResourceClass
            | Field::Owner
            | Field::CreatedAt
            | Field::UpdatedAt => JsonShape::text().or_null(),
        };
        (row.name, shape)
    }))
}

fn shown<'a>(fields: impl Iterator<Item = (&'a str, JsonShape)>) -> JsonShape {
    fields.fold(JsonShape::object([]), |all, field| all.maybe([field]))
}

/// The body of every PATCH.
pub(crate) fn patch_body() -> RefOr<Schema> {
    JsonShape::list(Operation::shape()).into()
}

fn body(
    required: &[&str],
    fields: impl Iterator<Item = (&'static str, Type, Microversion)>,
) -> RefOr<Schema> {
    let mut body =
        ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for name in required {
        body = body.required(*name);
    }
    for (name, kind, came) in fields {
        let described = format!("Since API version {came}.");
        let property = ObjectBuilder::new().schema_type(kind).description(Some(described));
        body = body.property(name, property);
    }
    Schema::from(body.build()).into()
}
