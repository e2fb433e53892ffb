//! The resource types of Cinder.

use crate::object::Kind;
use crate::resource::ResourceType;

#[rustfmt::skip]
pub(super) static VOLUME: ResourceType = ResourceType {
    kind: Kind::Volume, path: "volumes", plural: "volumes", single: "volume",
    not_found: ("", "Volume {} could not be found."),
    fields: r#"
        always name=null description=null metadata={}
        new availability_zone="nova" snapshot_id=null source_volid=null volume_type="__DEFAULT__"
        never size=null status="creating" user_id=null attachments=[] bootable="false" created_at=null updated_at=null encrypted=false
        never multiattach=false consistencygroup_id=null replication_status=null os-vol-tenant-attr:tenant_id=null
    "#,
};

#[rustfmt::skip]
pub(super) static SNAPSHOT: ResourceType = ResourceType {
    kind: Kind::Snapshot, path: "snapshots", plural: "snapshots", single: "snapshot",
    not_found: ("", "Snapshot {} could not be found."),
    fields: r#"
        always name=null description=null metadata={}
        new volume_id=null
        never size=null status="creating" created_at=null updated_at=null os-extended-snapshot-attributes:progress="0%"
        never os-extended-snapshot-attributes:project_id=null
    "#,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_can_be_read() {
        [&VOLUME, &SNAPSHOT].into_iter().for_each(crate::resource::check_table);
    }
}
