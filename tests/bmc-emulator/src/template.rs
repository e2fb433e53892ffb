//! Templates: JSON with placeholders. A text `{name}` stands for a value, and `{name}` inside a longer text for the text of a value.

use serde_json::{Map, Value};

/// The key of an object that repeats once for each item of the list that the key names.
const EACH: &str = "$each";
/// The end of a property's name whose value is the length of another property.
const COUNT: &str = "@odata.count";

/// The values that an item of a list gives to placeholders.
pub(crate) type Item = Map<String, Value>;

/// The values and lists of a machine.
pub(crate) struct Source<'a> {
    pub(crate) value: &'a dyn Fn(&str) -> Option<Value>,
    pub(crate) items: &'a dyn Fn(&str) -> Option<Vec<Item>>,
}

/// Fills in `template`. The values of `item` hide those of `source`. A placeholder without a value stays as it is.
pub(crate) fn fill(template: &Value, item: &Item, source: &Source<'_>) -> Value {
    let find = |name: &str| item.get(name).cloned().or_else(|| (source.value)(name));
    match template {
        Value::String(text) => fill_text(text, &find),
        Value::Array(members) => {
            members.iter().flat_map(|member| repeat(member, item, source)).collect()
        }
        Value::Object(fields) => {
            let wanted = fields.iter().filter(|(name, _)| *name != EACH);
            let wanted = wanted.filter(|(_, value)| !is_left_out(value, &find));
            let mut filled: Map<String, Value> =
                wanted.map(|(name, value)| (name.clone(), fill(value, item, source))).collect();
            let lengths: Vec<(String, usize)> = filled
                .iter()
                .filter_map(|(name, value)| {
                    Some((format!("{name}{COUNT}"), value.as_array()?.len()))
                })
                .collect();
            for (name, length) in lengths {
                filled.entry(name).and_modify(|count| *count = length.into());
            }
            Value::Object(filled)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

/// Replaces the placeholders that `constants` name. Values of constants may name other constants.
pub(crate) fn substitute(template: &Value, constants: &Item) -> Value {
    match template {
        Value::String(text) => match fill_text(text, &|name| constants.get(name).cloned()) {
            same if same == *template => same,
            value => substitute(&value, constants),
        },
        Value::Array(members) => {
            members.iter().map(|member| substitute(member, constants)).collect()
        }
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), substitute(value, constants)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

/// The members of an array that `member` stands for.
fn repeat(member: &Value, item: &Item, source: &Source<'_>) -> Vec<Value> {
    let list = member.get(EACH).and_then(Value::as_str).and_then(source.items);
    let Some(list) = list else { return vec![fill(member, item, source)] };
    list.into_iter()
        .map(|one| fill(member, &item.clone().into_iter().chain(one).collect(), source))
        .collect()
}

/// Whether `value` is a placeholder `{name?}`, which leaves out its property, and has no value now.
fn is_left_out(value: &Value, find: &dyn Fn(&str) -> Option<Value>) -> bool {
    let name = value.as_str().and_then(|text| text.strip_prefix('{')?.strip_suffix("?}"));
    name.and_then(find).is_some_and(|value| value.is_null())
}

fn fill_text(text: &str, find: &dyn Fn(&str) -> Option<Value>) -> Value {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        filled.push_str(before);
        match find(name.trim_end_matches('?')) {
            Some(value) if name.len() + 2 == text.len() => return value,
            Some(Value::String(value)) => filled.push_str(&value),
            Some(value) => filled.push_str(&value.to_string()),
            None => filled.push_str(&format!("{{{name}}}")),
        }
        rest = after;
    }
    Value::String(filled + rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(value: Value) -> Item {
        serde_json::from_value(value).unwrap()
    }

    #[track_caller]
    fn check(template: Value, want: Value) {
        let values = item(json!({"on": true, "none": null, "name": "outer"}));
        let source = Source {
            value: &|name| values.get(name).cloned(),
            items: &|name| {
                let list = json!([{"n": "1"}, {"n": "2", "name": "inner"}]);
                (name == "two").then(|| serde_json::from_value(list).unwrap())
            },
        };
        assert_eq!(fill(&template, &item(json!({"n": "0"})), &source), want);
    }

    #[test]
    fn a_placeholder_alone_is_a_value_and_inside_a_text_is_text() {
        check(json!(["{on}", "{n}: {on} {name}"]), json!([true, "0: true outer"]));
    }

    #[test]
    fn an_optional_property_without_a_value_is_left_out() {
        check(json!({"a": "{none?}", "b": "{none}", "c": "{on?}"}), json!({"b": null, "c": true}));
    }

    #[test]
    fn an_object_repeats_for_each_item_of_its_list() {
        let template = json!({"a": [{"$each": "two", "id": "{n}", "name": "{name}"}], "a@odata.count": "{count}"});
        let want = [json!({"id": "1", "name": "outer"}), json!({"id": "2", "name": "inner"})];
        check(template, json!({"a": want, "a@odata.count": 2}));
    }

    #[test]
    fn an_unknown_placeholder_stays() {
        check(json!("{what} {on}"), json!("{what} true"));
        check(json!([{"$each": "nothing"}]), json!([{}]));
    }

    #[test]
    fn constants_may_name_constants() {
        let constants = item(json!({"a": "b{c}{n}", "c": "d", "e": {"f": "{a}"}}));
        let want = json!({"g": {"f": "bd{n}"}, "h": "x/bd{n}"});
        assert_eq!(substitute(&json!({"g": "{e}", "h": "x/{a}"}), &constants), want);
    }
}
