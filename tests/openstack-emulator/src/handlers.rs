//! The handlers of all resource types: create, list, show, update, delete.

use serde_json::{Value, json};

use crate::list::{self, Lists};
use crate::object::{Fields, Object};
use crate::page;
use crate::request::{Answer, ApiAnswer, ApiError, ApiRequest, ApiResult};
use crate::resource::ResourceType;
use crate::world::World;

/// The conventions of a service, and the functions for behaviour that its tables of fields cannot express.
pub(crate) struct Handlers {
    /// The method of an update.
    pub(crate) update: &'static str,
    /// The statuses of a create, an update and a delete.
    pub(crate) statuses: [u16; 3],
    pub(crate) form: Form,
    /// Whether a list shows only ids, names and links, except at `/detail`.
    pub(crate) brief: bool,
    pub(crate) lists: Lists,
    pub(crate) sees: fn(&World, &ApiRequest, &ResourceType, &Object) -> bool,
    pub(crate) shown: fn(&World, &ApiRequest, &ResourceType, &Object) -> Value,
    /// Creates an object and returns its id.
    pub(crate) create: Create,
    pub(crate) change: Change,
    pub(crate) delete: Delete,
}

/// The form of one object in a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object is under its key. The answer to a delete is empty.
    Wrapped,
    /// The object is the body. The answer to a delete has the object too if its deletion takes time.
    Bare,
}

type Create = fn(&mut World, &ApiRequest, &ResourceType, &Fields) -> ApiResult<String>;
type Change = fn(&mut World, &ApiRequest, &ResourceType, &str, &Fields) -> ApiResult;
type Delete = fn(&mut World, &ApiRequest, &ResourceType, &str) -> ApiResult;

impl Handlers {
    /// Answers `METHOD /COLLECTION/PATH`.
    pub(crate) fn answer(
        &self,
        world: &mut World,
        asked: &ApiRequest,
        of: &ResourceType,
        path: &[&str],
    ) -> ApiAnswer {
        let [create, update, delete] = self.statuses;
        match (asked.method.as_str(), path) {
            ("GET", []) => self.list(world, asked, of, None),
            ("GET", ["detail"]) if self.brief => self.list(world, asked, of, None),
            ("POST", []) => {
                let given = self.given(asked, of)?;
                let id = (self.create)(world, asked, of, &given)?;
                self.one(world, asked, of, &id, create)
            }
            ("GET", [id]) => {
                self.find(world, asked, of, id)?;
                self.one(world, asked, of, id, 200)
            }
            (method, [id]) if method == self.update => {
                self.find(world, asked, of, id)?;
                let given = self.given(asked, of)?;
                (self.change)(world, asked, of, id, &given)?;
                self.one(world, asked, of, id, update)
            }
            ("DELETE", [id]) => {
                self.find(world, asked, of, id)?;
                (self.delete)(world, asked, of, id)?;
                match (self.form, world.store.get(of.kind, id)) {
                    (Form::Bare, Some(_)) => self.one(world, asked, of, id, delete),
                    (Form::Wrapped, _) | (Form::Bare, None) => Ok(Answer::empty(delete)),
                }
            }
            _ => Err(ApiError::unknown_path()),
        }
    }

    /// Answers a request for a list. `within` narrows the list to the objects that meet the condition.
    pub(crate) fn list(
        &self,
        world: &World,
        asked: &ApiRequest,
        of: &ResourceType,
        within: Option<(&str, &str)>,
    ) -> ApiAnswer {
        let page = list::page(world, asked, of, &self.lists, within)?;
        let is_brief = self.brief && asked.segments.last().is_none_or(|it| it != "detail");
        list::answer(asked, of, self.lists.links, page, |one| {
            let all = (self.shown)(world, asked, of, one);
            match is_brief {
                true => json!({"id": all["id"], "name": all["name"], "links": all["links"]}),
                false => all,
            }
        })
    }

    /// The object with this id, if the caller may see it.
    pub(crate) fn find<'w>(
        &self,
        world: &'w World,
        asked: &ApiRequest,
        of: &ResourceType,
        id: &str,
    ) -> ApiResult<&'w Object> {
        let found = world.store.get(of.kind, id);
        found.filter(|one| (self.sees)(world, asked, of, one)).ok_or_else(|| of.missing(id))
    }

    /// The answer that shows one object.
    pub(crate) fn one(
        &self,
        world: &World,
        asked: &ApiRequest,
        of: &ResourceType,
        id: &str,
        status: u16,
    ) -> ApiAnswer {
        let one = world.store.get(of.kind, id).ok_or_else(|| of.missing(id))?;
        let mut body = (self.shown)(world, asked, of, one);
        if asked.method == http::Method::GET {
            body = page::pick(asked, body);
        }
        Ok(Answer::json(
            status,
            match self.form {
                Form::Wrapped => json!({of.single: body}),
                Form::Bare => body,
            },
        ))
    }

    fn given(&self, asked: &ApiRequest, of: &ResourceType) -> ApiResult<Fields> {
        match self.form {
            Form::Wrapped => asked.wrapped(of.single),
            Form::Bare => Ok(asked.json()?.as_object().cloned().unwrap_or_default()),
        }
    }
}
