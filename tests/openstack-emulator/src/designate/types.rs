//! The resource types of Designate (designate, objects/zone.py, objects/recordset.py).

use crate::object::Kind;
use crate::resource::{ResourceType, test_tables};

/// A request may name every field, but set only some: the others are read-only.
#[rustfmt::skip]
pub(super) static ZONE: ResourceType = ResourceType { kind: Kind::Zone, path: "zones", plural: "zones", single: "Zone", not_found: ("zone_not_found", "Could not find Zone"), fields: r#"
        always email="" ttl=3600 description=null masters=[]
        new name=null type="PRIMARY" attributes={}
        never status="PENDING" action="CREATE" serial=null version=1 pool_id="794ccc2c-d751-44fe-b57f-8894c9f5c842" project_id=null
        never transferred_at=null created_at=null updated_at=null shared=false
    "# };

#[rustfmt::skip]
pub(super) static RECORDSET: ResourceType = ResourceType { kind: Kind::Recordset, path: "recordsets", plural: "recordsets", single: "RecordSet", not_found: ("recordset_not_found", "Could not find RecordSet"), fields: r#"
        always records=null ttl=null description=null
        new name=null type?A|AAAA|CNAME|MX|SRV|TXT|SPF|NS|PTR|SSHFP|CAA
        never status="PENDING" action="CREATE" zone_id=null zone_name=null project_id=null version=1 created_at=null updated_at=null
    "# };

test_tables!([&ZONE, &RECORDSET].into_iter());
