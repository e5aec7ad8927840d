//! Files that a program has encrypted, or replaced by a pointer: their content is no manifest before it is opened.

/// Program that has sealed a file or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// age.
    Age,
    /// Ansible Vault.
    AnsibleVault,
    /// git-crypt, in a clone that is locked.
    GitCrypt,
    /// Git LFS: the file is a pointer.
    GitLfs,
    /// `openssl enc`.
    OpenSsl,
    /// PGP.
    Pgp,
    /// SOPS: values are encrypted, each by itself.
    Sops,
}

/// Beginnings of sealed files.
const MARKS: [(&[u8], Seal); 9] = [
    (b"\0GITCRYPT\0", Seal::GitCrypt),
    (b"age-encryption.org/", Seal::Age),
    (b"-----BEGIN AGE ENCRYPTED FILE-----", Seal::Age),
    (b"-----BEGIN PGP MESSAGE-----", Seal::Pgp),
    (b"$ANSIBLE_VAULT;", Seal::AnsibleVault),
    (b"version https://git-lfs.github.com/spec/", Seal::GitLfs),
    (b"Salted__", Seal::OpenSsl),
    (b"U2FsdGVkX1", Seal::OpenSsl),
    (b"-----BEGIN OPENSSL ENC", Seal::OpenSsl),
];

impl Seal {
    /// Finds the seal of a whole file; `None` if the file is not sealed.
    pub fn of_file(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        MARKS.iter().find(|(mark, _)| bytes.starts_with(mark)).map(|(_, seal)| *seal)
    }

    /// Describes how the file or object is sealed.
    pub fn deed(self) -> &'static str {
        match self {
            Self::Age => "it is encrypted by age",
            Self::AnsibleVault => "it is encrypted by Ansible Vault",
            Self::GitCrypt => "it is encrypted by git-crypt",
            Self::GitLfs => "it is a pointer of Git LFS, in place of the file",
            Self::OpenSsl => "it is encrypted by openssl enc",
            Self::Pgp => "it is encrypted by PGP",
            Self::Sops => "it is encrypted by SOPS",
        }
    }
}
