//! The folder of images, which machines fetch as `/images/NAME`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path as FilePath, PathBuf};

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;
use tower::ServiceExt;
use tower_http::services::ServeFile;

use super::state::Provisioning;

/// The longest name of a file or folder, in bytes: NAME_MAX of Linux.
const LONGEST_NAME: usize = 255;

/// `GET /images/{name}`: an image. Symbolic links are never followed, because they could lead out of the folder.
pub(super) async fn image(
    State(provisioning): State<Provisioning>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, ErrorAnswer> {
    let Some(folder) = provisioning.files.images.clone() else { return Err(missing()) };
    serve(folder, name, request).await
}

async fn serve(folder: PathBuf, name: String, request: Request) -> Result<Response, ErrorAnswer> {
    for part in name.split('/') {
        check(part).map_err(|why| ErrorAnswer::bad_request(format!("name: {why}")))?;
    }
    let opened = tokio::task::spawn_blocking(move || open_beneath(&folder, &name)).await;
    let file = opened.map_err(|_| missing())?.map_err(|_| missing())?;
    // The path of the open file, so that another file that replaces the image meanwhile is not served.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let response = ServeFile::new(path).oneshot(request).await.map_err(|_| missing())?;
    drop(file);
    Ok(response.into_response())
}

fn missing() -> ErrorAnswer {
    ErrorAnswer::not_found("the image")
}

/// Checks that a part of a path can be the name of a file or folder inside another.
fn check(part: &str) -> Result<(), String> {
    match part {
        "" | "." | ".." => Err("must be the name of a file below the folder of images".to_owned()),
        _ if part.len() > LONGEST_NAME => {
            Err(format!("longer than a file name can be ({LONGEST_NAME} bytes)"))
        }
        _ if part.contains('\0') => Err("contains a zero byte".to_owned()),
        _ => Ok(()),
    }
}

/// Opens a file below `folder`, one folder after the other, without following symbolic links.
fn open_beneath(folder: &FilePath, name: &str) -> io::Result<OwnedFd> {
    let folders = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The administrator configured the folder itself, so it may be a link.
    let mut at = open(folder, folders, Mode::empty())?;
    let (parents, name) = name.rsplit_once('/').unwrap_or(("", name));
    for parent in parents.split('/').filter(|parent| !parent.is_empty()) {
        at = openat(&at, parent, folders | OFlags::NOFOLLOW, Mode::empty())?;
    }
    // Without NONBLOCK, opening a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&at, name, flags, Mode::empty())?;
    let is_file = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::RegularFile;
    if is_file { Ok(file) } else { Err(Errno::NOENT.into()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use axum::body::{Body, to_bytes};
    use axum::http::{StatusCode, header};

    use super::*;

    async fn asked(folder: &FilePath, name: &str, range: Option<&str>) -> (StatusCode, String) {
        let mut request = Request::get("/");
        if let Some(range) = range {
            request = request.header(header::RANGE, range);
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = serve(folder.to_owned(), name.to_owned(), request).await.into_response();
        let status = answer.status();
        let body = to_bytes(answer.into_body(), 4096).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn an_image_is_served_whole_or_in_part() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("debian")).unwrap();
        std::fs::write(folder.path().join("debian/12.raw"), "0123456789").unwrap();
        let whole = asked(folder.path(), "debian/12.raw", None).await;
        assert_eq!(whole, (StatusCode::OK, "0123456789".to_owned()));
        let part = asked(folder.path(), "debian/12.raw", Some("bytes=4-")).await;
        assert_eq!(part, (StatusCode::PARTIAL_CONTENT, "456789".to_owned()));
        for name in ["debian", "debian/13.raw", "debian/12.raw/x"] {
            assert_eq!(asked(folder.path(), name, None).await.0, StatusCode::NOT_FOUND, "{name}");
        }
    }

    #[tokio::test]
    async fn a_name_that_no_file_can_have_is_a_bad_request() {
        let folder = tempfile::tempdir().unwrap();
        let (long, longest) = ("x".repeat(256), "x".repeat(255));
        for name in [&*long, &format!("a/{long}"), &format!("{long}/a"), "a\0b", "..", "a//b", ""] {
            let (status, said) = asked(folder.path(), name, None).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{name:?}");
            assert!(said.contains("name: "), "{said}");
        }
        assert_eq!(asked(folder.path(), &longest, None).await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn no_link_leads_out_of_the_folder_of_images() {
        let all = tempfile::tempdir().unwrap();
        let (folder, outside) = (all.path().join("images"), all.path().join("outside"));
        for made in [&folder, &outside] {
            std::fs::create_dir(made).unwrap();
        }
        std::fs::write(outside.join("seal.keys"), "secret").unwrap();
        symlink(outside.join("seal.keys"), folder.join("file")).unwrap();
        symlink(&outside, folder.join("folder")).unwrap();
        for name in ["file", "folder/seal.keys", "folder"] {
            let (status, said) = asked(&folder, name, None).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{name}");
            assert!(!said.contains("secret"), "{name}: {said}");
        }
    }
}
