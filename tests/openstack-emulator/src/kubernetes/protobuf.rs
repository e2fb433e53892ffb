//! The part of Kubernetes' protobuf format that `kubectl certificate approve` sends. kubectl asks for JSON answers but sends protobuf.

use serde_json::{Value, json};

/// The first bytes of every protobuf body.
const MAGIC: &[u8] = b"k8s\0";

/// The conditions of the certificate request in a body.
pub(super) fn conditions(body: &[u8]) -> Option<Value> {
    // runtime.Unknown: the object is in field 2; its status is in field 3, conditions in field 1 of that.
    let object = bytes(body.strip_prefix(MAGIC)?, 2).next()?;
    let status = bytes(object, 3).next()?;
    let text = |condition: &[u8], field: u64| {
        bytes(condition, field)
            .next()
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .unwrap_or_default()
    };
    let row = |condition: &[u8]| json!({"type": text(condition, 1), "status": text(condition, 6), "reason": text(condition, 2), "message": text(condition, 3)});
    Some(Value::Array(bytes(status, 1).map(row).collect()))
}

/// The fields of this number that contain bytes.
fn bytes(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    let mut rest = message;
    std::iter::from_fn(move || {
        loop {
            let key = number(&mut rest)?;
            let length = match key & 7 {
                0 => {
                    number(&mut rest)?;
                    continue;
                }
                1 => 8,
                2 => usize::try_from(number(&mut rest)?).ok()?,
                5 => 4,
                _ => return None,
            };
            let (field, after) = rest.split_at_checked(length)?;
            rest = after;
            if key >> 3 == wanted && key & 7 == 2 {
                return Some(field);
            }
        }
    })
}

/// A number of variable length (varint).
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::conditions;

    #[test]
    fn the_conditions_of_a_request_are_found_among_other_fields() {
        let mut condition = vec![0x0a, 8];
        condition.extend(b"Approved");
        condition.extend([0x32, 4]);
        condition.extend(b"True");
        let mut status = vec![0x0a, u8::try_from(condition.len()).unwrap()];
        status.extend(condition);
        // Another field in front, which must be skipped.
        let mut object = vec![0x20, 0x96, 0x01, 0x1a, u8::try_from(status.len()).unwrap()];
        object.extend(status);
        let mut body = b"k8s\0\x12".to_vec();
        body.push(u8::try_from(object.len()).unwrap());
        body.extend(object);
        let found = conditions(&body).unwrap();
        assert_eq!((&found[0]["type"], &found[0]["status"]), (&"Approved".into(), &"True".into()));
        assert_eq!(conditions(b"{}"), None);
    }
}
