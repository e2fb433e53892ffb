//! The resource types of Cinder, and its errors.

use crate::object::Kind;
use crate::request::refusals;
use crate::resource::{ResourceType, test_tables};

#[rustfmt::skip]
pub(super) static VOLUME: ResourceType = ResourceType { kind: Kind::Volume, path: "volumes", plural: "volumes", single: "volume", not_found: ("", "Volume {} could not be found."), fields: r#"
        always name=null description=null metadata={}
        new availability_zone="nova" snapshot_id=null source_volid=null volume_type="__DEFAULT__"
        never size=null status="creating" user_id=null attachments=[] bootable="false" created_at=null updated_at=null encrypted=false
        never multiattach=false consistencygroup_id=null replication_status=null os-vol-tenant-attr:tenant_id=null
    "# };

#[rustfmt::skip]
pub(super) static SNAPSHOT: ResourceType = ResourceType { kind: Kind::Snapshot, path: "snapshots", plural: "snapshots", single: "snapshot", not_found: ("", "Snapshot {} could not be found."), fields: r#"
        always name=null description=null metadata={}
        new volume_id=null
        never size=null status="creating" created_at=null updated_at=null os-extended-snapshot-attributes:progress="0%"
        never os-extended-snapshot-attributes:project_id=null
    "# };

refusals! {
    400 bad_size(size): "Invalid input for field/attribute size. Value: {size}. {size} is less than the minimum of 1";
    400 not_available(id, status): "Invalid volume: Volume {id} status must be available, but current status is: {status}.";
    400 volume_busy(): "Invalid volume: Volume status must be available or error or error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.";
    400 snapshot_busy(): "Invalid snapshot: Snapshot status must be available or error.";
    400 not_larger(size, wanted): "Invalid input received: New size for extend must be greater than current size. (current: {size}, extended: {wanted}).";
    400 no_action(name): "There is no such action: {name}";
    404 no_type(id): "Volume type {id} could not be found.";
    413 too_many(name, limit): "Maximum number of {name} allowed ({limit}) exceeded for quota '{name}'.";
    413 too_large(more, limit, used): "Requested volume or snapshot exceeds allowed gigabytes quota. Requested {more}G, quota is {limit}G and {used}G has been consumed.";
}

test_tables!([&VOLUME, &SNAPSHOT].into_iter());
