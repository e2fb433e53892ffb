//! Container images, and the registries that they are pulled from.

use std::collections::BTreeMap;

use crate::AddOnError;
use crate::error::text;

/// A container image as its maker publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    registry: &'static str,
    /// The image's name in the maker's registry.
    path: &'static str,
    /// The image's name in a mirror and in the settings. No two images share this name.
    name: &'static str,
    tag: &'static str,
}

/// The registry of images: the registries of their makers, or a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageSource {
    /// A registry and a path that replace the registries of all images, as Magnum's `container_infra_prefix` does:
    /// `registry.example/kubernetes` holds `registry.example/kubernetes/flannel:v0.27.4`. With `None` images come from their makers.
    pub mirror: Option<String>,
    /// Tags that replace the default tags, by image name.
    pub tags: BTreeMap<String, String>,
    /// The required digests, by name and tag: `flannel:v0.27.4` maps to `sha256:…`.
    pub digests: BTreeMap<String, String>,
}

impl Image {
    pub(crate) const fn new(
        registry: &'static str,
        name: &'static str,
        tag: &'static str,
    ) -> Image {
        Image { registry, path: name, name, tag }
    }

    /// Gives the image another name in mirrors, because two makers chose the same name.
    pub(crate) const fn known_as(self, name: &'static str) -> Image {
        Image { name, ..self }
    }
}

impl ImageSource {
    /// The reference that a node pulls.
    pub(crate) fn reference(&self, image: &Image) -> String {
        let tag = self.tag(image);
        let place = match &self.mirror {
            Some(mirror) => format!("{}/{}:{tag}", mirror.trim_end_matches('/'), image.name),
            None => format!("{}/{}:{tag}", image.registry, image.path),
        };
        match self.digests.get(&format!("{}:{tag}", image.name)) {
            Some(digest) => format!("{place}@{digest}"),
            None => place,
        }
    }

    /// The tag of the image, after the settings are applied.
    pub(crate) fn tag(&self, image: &Image) -> String {
        self.tags.get(image.name).map_or(image.tag, String::as_str).to_owned()
    }

    pub(crate) fn check(&self) -> Result<(), AddOnError> {
        let all = |value: &str, more: &str| {
            !value.is_empty()
                && value.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        if self.mirror.as_ref().is_some_and(|it| !all(it, "-._:/[]") || it.contains("//")) {
            return Err(text(
                "images.mirror",
                "must be must be a registry and a path, without https://",
            ));
        }
        if self.tags.values().any(|tag| !all(tag, "_.-") || tag.len() > 128 || tag == "latest") {
            return Err(text(
                "images.tags",
                "only letters, digits and _.- are permitted, and the tag must not be latest",
            ));
        }
        let digest = |it: &String| {
            let digits = it.strip_prefix("sha256:").unwrap_or_default();
            digits.len() == 64 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        match self.digests.values().all(digest) {
            true => Ok(()),
            false => Err(text(
                "images.digests",
                "must be sha256: and 64 hexadecimal digits in lower case",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLANNEL: Image = Image::new("ghcr.io/flannel-io", "flannel", "v0.27.4");

    #[track_caller]
    fn check(source: ImageSource, want: &str) {
        source.check().unwrap();
        assert_eq!(source.reference(&FLANNEL), want);
    }

    #[test]
    fn an_image_comes_from_its_maker_or_a_mirror() {
        check(ImageSource::default(), "ghcr.io/flannel-io/flannel:v0.27.4");
        let mirror = Some("registry.example:5000/k8s/".to_owned());
        check(
            ImageSource { mirror, ..ImageSource::default() },
            "registry.example:5000/k8s/flannel:v0.27.4",
        );
    }

    #[test]
    fn a_digest_holds_for_one_tag() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let digests = BTreeMap::from([("flannel:v0.27.4".to_owned(), digest.clone())]);
        let source = ImageSource { digests, ..ImageSource::default() };
        check(source.clone(), &format!("ghcr.io/flannel-io/flannel:v0.27.4@{digest}"));
        let tags = BTreeMap::from([("flannel".to_owned(), "v0.27.2".to_owned())]);
        check(ImageSource { tags, ..source }, "ghcr.io/flannel-io/flannel:v0.27.2");
    }

    #[test]
    fn an_invalid_image_source_is_refused() {
        let source = ImageSource::default;
        let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let mirror = |place: &str| ImageSource { mirror: Some(place.to_owned()), ..source() };
        let tag = |tag: &str| ImageSource { tags: pair("flannel", tag), ..source() };
        let digest = |digest: &str| ImageSource { digests: pair("flannel:v1", digest), ..source() };
        let hex = "0a".repeat(32);
        for good in [
            mirror("registry.example"),
            mirror("[fd00::1]:5000/a-b_c/"),
            tag("v1.2_3-4"),
            tag(&"x".repeat(128)),
            digest(&format!("sha256:{hex}")),
        ] {
            assert_eq!(good.check(), Ok(()), "{good:?}");
        }
        for bad in [
            mirror("https://registry.example"),
            mirror("registry.example//a"),
            mirror("registry example"),
            mirror(""),
            tag("latest"),
            tag("v1 --privileged"),
            tag(""),
            tag(&"x".repeat(129)),
            digest("sha256:0"),
            digest(&hex),
            digest(&format!("sha256:{hex}0")),
            digest(&format!("sha256:{}", "0A".repeat(32))),
            digest(&format!("sha256:{}", "0g".repeat(32))),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
