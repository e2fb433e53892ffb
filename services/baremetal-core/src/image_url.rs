//! Checks the URLs from which agents, BMCs and iPXE load images.

/// The longest URL, in bytes.
const LONGEST: usize = 2048;

/// The beginning of the location of an image on the host of the service.
pub const FILE_SCHEME: &str = "file://";

/// Checks the location of an image: a URL, or `file://` and the path of a file on the host of the service.
pub(crate) fn check_source(source: &str) -> Result<(), &'static str> {
    let Some(path) = source.strip_prefix(FILE_SCHEME) else { return check_url(source) };
    let names = path.strip_prefix('/').ok_or("must have an absolute path: file:///FOLDER/NAME")?;
    // No character has a meaning in a URL, so the path is a part of one as it is.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+@=,".contains(&byte);
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_plain);
    if names.split('/').all(is_name) && source.len() <= LONGEST {
        Ok(())
    } else {
        Err("the path of a file has names of letters, digits and -._~+@=, between slashes")
    }
}

/// Checks a URL from which an agent, a BMC or the service loads a file. The error tells what is wrong with the URL.
pub(crate) fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.ok_or("must be an http or https URL")?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or("");
    if host.is_empty() || host.starts_with(':') {
        return Err("the URL names no host");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.len() > LONGEST {
        return Err("a URL has up to 2048 visible ASCII characters and no blanks");
    }
    Ok(())
}

/// Checks a URL from which iPXE loads a file. The distributed binaries of iPXE trust no certificate of a site, so https is refused.
pub(crate) fn check_ipxe_url(url: &str) -> Result<(), &'static str> {
    check_url(url)?;
    if url.starts_with("https://") {
        return Err("must be an http URL, because iPXE loads the file");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_and_is_one_word() {
        assert_eq!(check_url("https://images/x.raw?y=1"), Ok(()));
        assert_eq!(check_url("http://[::1]:80/x"), Ok(()));
        for bad in ["file:///etc/shadow", "x", "", "http://", "http:///x", "http://:80/x"] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
        assert!(check_url("http://h/x y").is_err());
        assert!(check_url(&format!("http://h/{}", "x".repeat(LONGEST))).is_err());
    }

    #[test]
    fn an_image_is_at_a_url_or_in_a_file() {
        assert_eq!(check_source("https://images/x.raw?y=1"), Ok(()));
        assert_eq!(check_source("file:///srv/images/debian/12+b@1.qcow2"), Ok(()));
        for bad in ["file://", "file:///", "file://srv/x", "file:/srv/x", "file:///srv//x"] {
            assert!(check_source(bad).is_err(), "{bad}");
        }
        for bad in ["file:///srv/../x", "file:///srv/./x", "file:///srv/x?y", "file:///srv/%2e"] {
            assert!(check_source(bad).is_err(), "{bad}");
        }
        assert!(check_source(&format!("file:///{}", "x".repeat(LONGEST))).is_err());
    }

    #[test]
    fn ipxe_loads_by_plain_http() {
        assert_eq!(check_ipxe_url("http://h/kernel"), Ok(()));
        assert!(check_ipxe_url("https://h/kernel").is_err());
        assert!(check_ipxe_url("tftp://h/kernel").is_err());
    }
}
