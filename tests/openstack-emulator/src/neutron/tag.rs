//! The tags of Neutron's objects.

use serde_json::Value;

use super::object::touch;
use super::refuse;
use crate::request::{ApiAnswer, ApiRequest, ApiResult};
use crate::resource::ResourceType;
use crate::tags;
use crate::world::World;

/// The most characters of a tag.
const LONGEST: usize = 255;

pub(super) fn answer(
    world: &mut World,
    asked: &ApiRequest,
    of: &ResourceType,
    id: &str,
    path: &[&str],
) -> ApiAnswer {
    let is_own = world.store.get(of.kind, id).is_some_and(|object| asked.sees(&object.project));
    if asked.method != http::Method::GET && !is_own {
        return Err(refuse::not_own("update", "tags"));
    }
    let rules = tags::Rules { missing: |_, tag| refuse::no_tag(tag), checked, known: 201 };
    let answer = tags::answer(world, asked, (of, id), path, &rules)?;
    if asked.method != http::Method::GET {
        touch(world, of.kind, id);
    }
    Ok(answer)
}

/// The tags of a request without duplicates. Refuses tags that are too long.
pub(super) fn checked(tags: Vec<Value>) -> ApiResult<Vec<Value>> {
    let mut checked: Vec<Value> = Vec::new();
    for tag in tags {
        let text = tag.as_str().ok_or_else(|| refuse::bad_tags("a tag is a string"))?;
        if text.len() > LONGEST {
            return Err(refuse::bad_tags("'tag' exceeds maximum length of 255"));
        }
        if !checked.contains(&tag) {
            checked.push(tag);
        }
    }
    Ok(checked)
}
