//! The resource types of Nova (nova, api/openstack/compute/views), with the microversions that brought or removed fields.

use crate::object::Kind;
use crate::resource::{ResourceType, test_tables};

#[rustfmt::skip]
pub(super) static SERVER: ResourceType = ResourceType { kind: Kind::Server, path: "servers", plural: "servers", single: "server", not_found: ("", "Instance {} could not be found."), fields: r#"
        always name="" description=null@19
        new metadata={} key_name=null tags=[]@26
        never status="BUILD" user_id created updated image="" config_drive="" accessIPv4="" accessIPv6="" OS-DCF:diskConfig="MANUAL"
        never OS-SRV-USG:terminated_at=null trusted_image_certificates=null@63 locked_reason=null@73 pinned_availability_zone=null@96
    "# };

#[rustfmt::skip]
pub(super) static FLAVOR: ResourceType = ResourceType { kind: Kind::Flavor, path: "flavors", plural: "flavors", single: "flavor", not_found: ("", "Flavor {} could not be found."), fields: r#"
        new id name="" vcpus=0 ram=0 disk=0 os-flavor-access:is_public=true
        never swap=0 rxtx_factor=1.0 OS-FLV-EXT-DATA:ephemeral=0 OS-FLV-DISABLED:disabled=false description=null@55
    "# };

#[rustfmt::skip]
pub(super) static SERVER_GROUP: ResourceType = ResourceType { kind: Kind::ServerGroup, path: "os-server-groups", plural: "server_groups", single: "server_group", not_found: ("", "Instance group {} could not be found."), fields: r#"
        new name=null
        never members=[] project_id@13 user_id@13 policy@64 rules={}@64 policies@1-63 metadata={}@1-63
    "# };

#[rustfmt::skip]
pub(super) static AGGREGATE: ResourceType = ResourceType { kind: Kind::Aggregate, path: "os-aggregates", plural: "aggregates", single: "aggregate", not_found: ("", "Aggregate {} could not be found."), fields: r#"
        new name="" availability_zone=null
        never hosts=[] created_at metadata={} updated_at=null deleted_at=null deleted=false
    "# };

#[rustfmt::skip]
pub(super) static KEYPAIR: ResourceType = ResourceType { kind: Kind::Keypair, path: "os-keypairs", plural: "keypairs", single: "keypair", not_found: ("", "Keypair {} not found"), fields: r#"
        new name="" public_key=null type="ssh"@2
        never fingerprint user_id created_at updated_at=null deleted=false deleted_at=null
    "# };

test_tables!([&SERVER, &FLAVOR, &SERVER_GROUP, &AGGREGATE, &KEYPAIR].into_iter());
