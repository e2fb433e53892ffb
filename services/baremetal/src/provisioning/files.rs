//! Files that are the same for every machine: kernel, ramdisk, iPXE.

use axum::extract::{Path, Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use tower::ServiceExt;
use tower_http::services::ServeFile;

use super::downloads::{Downloads, holding};
use super::state::{Provisioning, RamdiskFiles};

/// The number of bytes of a kernel or a ramdisk that are read at a time. Each read is a trip to another thread.
const CHUNK: usize = 128 << 10;

/// `GET /ramdisk/kernel` and `GET /ramdisk/ramdisk`.
pub(super) async fn ramdisk(
    State(provisioning): State<Provisioning>,
    Path(file): Path<String>,
    request: Request,
) -> Result<Response, ErrorAnswer> {
    let files = &provisioning.files;
    one_of(Some(&files.ramdisk), &file, request, &files.downloads).await
}

/// `GET /ramdisk/aarch64/kernel` and `GET /ramdisk/aarch64/ramdisk`.
pub(super) async fn ramdisk_of_arm(
    State(provisioning): State<Provisioning>,
    Path(file): Path<String>,
    request: Request,
) -> Result<Response, ErrorAnswer> {
    let files = &provisioning.files;
    one_of(files.ramdisk_of_arm.as_ref(), &file, request, &files.downloads).await
}

async fn one_of(
    files: Option<&RamdiskFiles>,
    file: &str,
    request: Request,
    downloads: &Downloads,
) -> Result<Response, ErrorAnswer> {
    let path = match (files, file) {
        (Some(files), "kernel") => &files.kernel,
        (Some(files), "ramdisk") => &files.ramdisk,
        (_, _) => return Err(ErrorAnswer::not_found("the file")),
    };
    let is_read = request.method() == Method::GET;
    let place = if is_read { downloads.place().await } else { None };
    let file = ServeFile::new(path).with_buf_chunk_size(CHUNK);
    Ok(holding(serve(file, request).await?, place))
}

/// `GET /ipxe/{loader}`: only the loaders that DHCP answers name.
pub(super) async fn loader(
    State(provisioning): State<Provisioning>,
    Path(loader): Path<String>,
    request: Request,
) -> Result<Response, ErrorAnswer> {
    let mut loaders = provisioning.files.loaders.iter();
    let Some((_, path)) = loaders.find(|(known, _)| known.file_name() == loader) else {
        return Err(ErrorAnswer::not_found("the loader"));
    };
    serve(ServeFile::new(path), request).await
}

async fn serve(file: ServeFile, request: Request) -> Result<Response, ErrorAnswer> {
    let response = file.oneshot(request).await.map_err(|_| ErrorAnswer::not_found("the file"))?;
    Ok(response.into_response())
}
