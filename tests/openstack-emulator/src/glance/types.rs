//! The resource type of Glance (glance, api/v2/images.py), and its errors.

use crate::object::Kind;
use crate::request::refusals;
use crate::resource::{ResourceType, test_tables};

/// An image. Clients may add fields that the table does not have.
#[rustfmt::skip]
pub(super) static IMAGE: ResourceType = ResourceType { kind: Kind::Image, path: "images", plural: "images", single: "image", not_found: ("", "No image found with ID {}"), fields: r#"
        always name=null visibility="shared" protected=false os_hidden=false tags=[] owner=null min_ram=0 min_disk=0
        always disk_format=null container_format=null
        new id
        never status="queued" size=null virtual_size=null checksum=null os_hash_algo=null os_hash_value=null created_at=null
        never updated_at=null file self schema
    "# };

refusals! {
    403 read_only(field): "Attribute '{field}' is read-only.";
    409 exists(id): "Image ID {id} already exists!";
    400 bad_format(format, known): "Invalid value '{format}' for parameter 'disk_format': Value must be one of {known}";
    403 not_public(): "You are not authorized to complete publicize_image action.";
    400 bad_visibility(given): "'{given}' is not one of ['community', 'public', 'private', 'shared']";
    409 no_property(name): "Property {name} does not exist.";
    400 no_list(): "Request body must be a JSON array of operation objects.";
    400 bad_operation(): "Operations must be one of add, remove, replace.";
    403 protected(id): "Image {id} is protected and cannot be deleted.";
    404 no_tag(tag, id): "Tag {tag} not found on image {id}";
    403 unauthorized(): "You are not authorized to complete this action.";
    400 formats_needed(): "Properties disk_format, container_format must be set prior to saving data.";
    409 wrong_status(status, next): "Image status transition from {status} to {next} is not allowed";
    400 uri_needed(): "URI is required if import method is 'web-download'";
    400 bad_uri(url): "URI for web-download does not pass filtering: {url}";
    400 bad_method(name): "Unknown import method name '{name}'.";
    410 not_kept(): "The emulator keeps no bytes of an image as large as this one.";
    403 not_shared(): "Only shared images have members.";
    400 member_needed(): "Expected a dict in the form: {{\"member\": \"image_id\"}}";
    409 member_exists(who, id): "Image member {who} already exists for image {id}";
    404 no_member(who): "Image member {who} could not be found";
    400 bad_status(): "Status must be one of pending, accepted, rejected.";
}

test_tables!([&IMAGE].into_iter());
