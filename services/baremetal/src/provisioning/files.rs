//! Files that are the same for every machine: kernel, ramdisk, iPXE.

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use baremetal_api::agents::ErrorAnswer;
use tower::ServiceExt;
use tower_http::services::ServeFile;

use super::state::Provisioning;

/// `GET /ramdisk/kernel` and `GET /ramdisk/ramdisk`.
pub(super) async fn ramdisk(
    State(provisioning): State<Provisioning>,
    Path(file): Path<String>,
    request: Request,
) -> Result<Response, ErrorAnswer> {
    let path = match &*file {
        "kernel" => &provisioning.files.kernel,
        "ramdisk" => &provisioning.files.ramdisk,
        _ => return Err(ErrorAnswer::not_found("the file")),
    };
    serve(ServeFile::new(path), request).await
}

/// `GET /ipxe/{loader}`: only the loaders that DHCP answers name.
pub(super) async fn loader(
    State(provisioning): State<Provisioning>,
    Path(loader): Path<String>,
    request: Request,
) -> Result<Response, ErrorAnswer> {
    let known = pxe::Loader::ALL.iter().any(|known| known.file_name() == loader);
    if !known {
        return Err(ErrorAnswer::not_found("the loader"));
    }
    serve(ServeFile::new(provisioning.files.loaders.join(&loader)), request).await
}

async fn serve(file: ServeFile, request: Request) -> Result<Response, ErrorAnswer> {
    let response = file.oneshot(request).await.map_err(|_| ErrorAnswer::not_found("the file"))?;
    Ok(response.into_response())
}
