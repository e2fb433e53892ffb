#!/usr/bin/env bash
# repository.sh FOLDER KEY - makes the folder, which has the packages of a release, a signed repository of apt, with signed checksums of all files.
#
# KEY names a secret key of gpg; GNUPGHOME is its keyring. bedplate.asc is its public key. Every host that serves the folder is as good as another,
# because apt checks the signature.
set -euo pipefail
cd "${1:?usage: repository.sh FOLDER KEY}"
KEY=${2:?}
sign() { gpg --batch --yes --quiet --local-user "$KEY" "$@"; }

rm -f Packages* Release InRelease SHA256SUMS*
gpg --batch --armor --export "$KEY" >bedplate.asc
apt-ftparchive packages . >Packages
xz -k Packages
apt-ftparchive -o APT::FTPArchive::Release::Origin=Bedplate -o APT::FTPArchive::Release::Label=Bedplate release . >../Release.$$
mv ../Release.$$ Release
sign --clearsign --output InRelease Release
find . -maxdepth 1 -type f ! -name 'Packages*' ! -name '*Release' -printf '%f\n' | LC_ALL=C sort | xargs sha256sum >../SHA256SUMS.$$
mv ../SHA256SUMS.$$ SHA256SUMS
sign --armor --detach-sign --output SHA256SUMS.asc SHA256SUMS
